//! Tasks, as in tokio.
pub use selvedge::task::*;

mod builder;

pub use builder::Builder;
/// The old path of [`coop::Unconstrained`].
#[doc(hidden)]
pub use selvedge::task::coop::Unconstrained;

/// Runs a blocking closure inside a task, while other threads run the other tasks. See
/// [`selvedge::task::block_in_place`].
///
/// # Panics
/// In a runtime of one thread, and in a [`LocalSet`].
#[track_caller]
pub fn block_in_place<F: FnOnce() -> R, R>(f: F) -> R {
    selvedge::task::block_in_place_beside_workers(f)
}
