//! The charge to the poll's budget: of `coop-budget` with that feature, else nothing.
use std::task::{Context, Poll, ready};

#[cfg(feature = "coop-budget")]
use coop_budget::remaining;
#[cfg(feature = "coop-budget")]
pub(crate) use coop_budget::{Progress, WaitsOn, poll_proceed};

#[cfg(not(feature = "coop-budget"))]
mod free {
    use std::task::{Context, Poll};

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

    #[inline(always)]
    pub(super) fn remaining() -> Option<u32> {
        None
    }
}
#[cfg(not(feature = "coop-budget"))]
use free::remaining;
#[cfg(not(feature = "coop-budget"))]
pub(crate) use free::{Progress, WaitsOn, poll_proceed};

/// Charges an operation that is ready at once.
#[inline]
pub(crate) fn poll_charge(cx: &mut Context<'_>) -> Poll<()> {
    poll_proceed(cx).map(Progress::made_progress)
}

/// The rounds of a loop in a poll, each of which costs at least one unit of the budget.
///
/// The reader or writer of a round usually charges its operation, as a socket does. If it has not,
/// then the next round pays for that one. So a loop over an object in memory yields too, and a loop
/// over a socket does not pay twice.
pub(crate) struct Rounds {
    /// The rest of the budget at the start of the last round.
    before: Option<Option<u32>>,
}

impl Rounds {
    /// Starts a loop. Its first round costs nothing but what the operation in it charges.
    #[inline]
    pub(crate) fn new() -> Self {
        Self { before: None }
    }

    /// Starts a round. If it is `Pending`, the budget is used up and the task is woken.
    #[inline]
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut now = remaining();
        if self.before == Some(now) {
            ready!(poll_charge(cx));
            if now.is_some() {
                now = remaining();
            }
        }
        self.before = Some(now);
        Poll::Ready(())
    }
}
