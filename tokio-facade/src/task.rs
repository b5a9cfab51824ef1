//! Tasks, as in tokio.
pub use selvedge::task::*;

mod builder;

pub use builder::Builder;
/// The old path of [`coop::Unconstrained`].
#[doc(hidden)]
pub use selvedge::task::coop::Unconstrained;
