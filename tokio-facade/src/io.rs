//! Traits, utilities and descriptors of reading and writing, as in tokio.
#[doc(inline)]
pub use selvedge::io::*;
