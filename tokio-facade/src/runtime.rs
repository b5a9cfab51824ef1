//! Runtimes, as in tokio.
pub use selvedge::runtime::*;

mod builder;

pub use builder::Builder;
