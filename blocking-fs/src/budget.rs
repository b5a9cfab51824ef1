//! The budget of a task's poll, to which each read, write and seek of a file is charged.
#[cfg(feature = "coop-budget")]
pub(crate) use coop_budget::poll_proceed;

/// Says to a dump of tasks that the calling operation waits.
#[inline]
pub(crate) fn note_wait(what: &'static str) {
    #[cfg(feature = "coop-budget")]
    coop_budget::note_wait(|| what.into());
    #[cfg(not(feature = "coop-budget"))]
    let _ = what;
}

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

/// Returns the value of a result. Returns an error from the calling poll, whose operation has then
/// ended: it charges the budget.
macro_rules! or_end {
    ($result:expr, $charge:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => {
                $charge;
                return ::std::task::Poll::Ready(Err(error));
            }
        }
    };
}
pub(crate) use or_end;
