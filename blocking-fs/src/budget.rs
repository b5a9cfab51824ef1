//! The budget of a task's poll, to which each read, write and seek of a file is charged.
#[cfg(feature = "coop-budget")]
pub(crate) use coop_budget::poll_proceed;

/// Stands for the budget in builds without the feature `coop-budget`.
#[cfg(not(feature = "coop-budget"))]
pub(crate) fn poll_proceed(_: &std::task::Context<'_>) -> std::task::Poll<Unlimited> {
    std::task::Poll::Ready(Unlimited)
}

#[cfg(not(feature = "coop-budget"))]
pub(crate) struct Unlimited;

#[cfg(not(feature = "coop-budget"))]
impl Unlimited {
    pub(crate) fn made_progress(self) {}
}
