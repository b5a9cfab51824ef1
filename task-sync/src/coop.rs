//! The charge to the poll's budget: of `coop-budget` with that feature, else nothing.
#[cfg(feature = "coop-budget")]
pub(crate) use coop_budget::{WaitsOn, poll_proceed};
use core::{future::poll_fn, task::Context};

#[cfg(not(feature = "coop-budget"))]
mod free {
    use core::task::{Context, Poll};

    /// The charge of an operation that costs nothing.
    pub(crate) struct Progress;

    impl Progress {
        #[inline(always)]
        pub(crate) fn made_progress(self) {}

        #[inline(always)]
        pub(crate) fn waits_for(self, _: impl FnOnce() -> WaitsOn) {}
    }

    /// Stands for what an operation waits for, of which nobody asks.
    pub(crate) struct WaitsOn;

    impl WaitsOn {
        pub(crate) fn event<T: ?Sized>(_: &'static str, _: &T) -> Self {
            Self
        }
    }

    /// Grants every operation.
    #[inline(always)]
    pub(crate) fn poll_proceed(_: &mut Context<'_>) -> Poll<Progress> {
        Poll::Ready(Progress)
    }
}
#[cfg(not(feature = "coop-budget"))]
pub(crate) use free::{WaitsOn, poll_proceed};

/// Charges an operation that does not wait.
pub(crate) async fn proceed() {
    let charge = |cx: &mut Context<'_>| poll_proceed(cx).map(|progress| progress.made_progress());
    poll_fn(charge).await;
}
