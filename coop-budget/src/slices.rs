//! The time slices of a runtime's workers, for a thread that wants any one of them to look for
//! work.
//!
//! A thread pushes work for a runtime whose workers are all busy, and nudges one of them. Each
//! thread nudges the workers in turn, by a count of its own that starts at a random worker. So
//! nudges write no shared counter. If the worker ignores nudges, or has not noticed an earlier one
//! (its poll does no operations), the thread nudges the next worker.
use crate::Preempt;
use std::cell::Cell;
use sync_shim::CachePadded;

sync_shim::thread_local! {
    static TURN: Cell<Option<u32>> = const { Cell::new(None) };
}

/// The [`Preempt`] flags of a runtime's workers, each on a cache line of its own.
///
/// ```
/// use coop_budget::Slices;
///
/// let slices = Slices::new(2);
/// assert!(slices.nudge_one().is_some() && slices.nudge_one().is_some());
/// // Now both are nudged.
/// assert!(!slices.of(0).nudge() && !slices.of(1).nudge());
/// ```
#[derive(Debug)]
pub struct Slices(Box<[CachePadded<Preempt>]>);

impl Slices {
    /// Creates the flags of `workers` workers.
    ///
    /// # Panics
    /// If `workers` is 0, or more than 2³² − 1.
    #[track_caller]
    pub fn new(workers: usize) -> Self {
        assert!(
            workers > 0 && u32::try_from(workers).is_ok(),
            "slices are for 1 to 2^32 - 1 workers, not {workers}"
        );
        let slices = (0..workers).map(|_| CachePadded::new(Preempt::new()));
        Self(slices.collect())
    }

    /// Returns the flag of a worker.
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    #[track_caller]
    pub fn of(&self, worker: usize) -> &Preempt {
        &self.0[worker]
    }

    /// [Nudges](Preempt::nudge) the next worker in this thread's order, or the one after it if the
    /// first accepts no nudge.
    ///
    /// Push the work first, and then execute a `SeqCst` fence. Returns the worker that was nudged.
    /// Without a race the call costs at most two loads and an exchange.
    ///
    /// ```
    /// let slices = coop_budget::Slices::new(1);
    /// assert_eq!(slices.nudge_one(), Some(0));
    /// assert_eq!(slices.nudge_one(), None, "it is nudged already");
    /// ```
    #[inline]
    pub fn nudge_one(&self) -> Option<usize> {
        // A thread whose thread-locals are gone begins with the first worker.
        let turn = TURN.try_with(|turn| {
            let now = turn.get().unwrap_or_else(anywhere);
            turn.set(Some(now.wrapping_add(1)));
            now
        });
        let of = |turn: u32| (turn % self.0.len() as u32) as usize;
        let turn = turn.unwrap_or(0);
        let mut both = [turn, turn.wrapping_add(1)].into_iter().map(of);
        both.find(|&worker| self.0[worker].nudge())
    }
}

/// Returns a random number, from which a thread begins to count its nudges. Under a model checker
/// the number is 0, as each execution must be repeatable.
#[cold]
fn anywhere() -> u32 {
    if cfg!(any(selvedge_loom, selvedge_shuttle)) {
        0
    } else {
        sync_shim::random::number() as u32
    }
}
