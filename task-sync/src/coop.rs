//! The charge to the poll's budget: of `coop-budget` with that feature, else nothing.
#[cfg(feature = "coop-budget")]
pub(crate) use coop_budget::poll_proceed;

#[cfg(not(feature = "coop-budget"))]
mod free {
    use core::task::{Context, Poll};

    /// The charge of an operation that costs nothing.
    pub(crate) struct Progress;

    impl Progress {
        #[inline(always)]
        pub(crate) fn made_progress(self) {}
    }

    /// Grants every operation.
    #[inline(always)]
    pub(crate) fn poll_proceed(_: &mut Context<'_>) -> Poll<Progress> {
        Poll::Ready(Progress)
    }
}
#[cfg(not(feature = "coop-budget"))]
pub(crate) use free::poll_proceed;
