//! Tasks, as in tokio.
pub use selvedge::task::*;

/// The old path of [`coop::Unconstrained`].
#[doc(hidden)]
pub use selvedge::task::coop::Unconstrained;
