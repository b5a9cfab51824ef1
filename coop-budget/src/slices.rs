//! The slices of several workers, for those who don't mind which of them looks up.
//!
//! Who has work for a runtime whose workers are all busy wants one of them to look at it. Each thread nudges them in turn, by a count of its own that begins anywhere, so that nothing is
//! written that all share. One that was nudged and has not heard yet, as it is in a poll without operations, is passed over, and so is a deaf one: the next is nudged then.
use crate::Preempt;
use std::{cell::Cell, collections::hash_map::RandomState, hash::BuildHasher};
use sync_shim::CachePadded;

sync_shim::thread_local! {
    static TURN: Cell<Option<u32>> = const { Cell::new(None) };
}

/// A [`Preempt`] for each worker of a runtime, on a line of its own.
///
/// ```
/// use coop_budget::Slices;
///
/// let slices = Slices::new(2);
/// slices.nudge_one();
/// slices.nudge_one();
/// // Both are by now.
/// assert!(!slices.of(0).nudge() && !slices.of(1).nudge());
/// ```
#[derive(Debug)]
pub struct Slices(Box<[CachePadded<Preempt>]>);

impl Slices {
    /// For so many workers.
    ///
    /// # Panics
    /// When `workers` is 0, or more than 2³² − 1.
    #[track_caller]
    pub fn new(workers: usize) -> Self {
        assert!(
            workers > 0 && u32::try_from(workers).is_ok(),
            "slices are for 1 to 2^32 - 1 workers, not {workers}"
        );
        let slices = (0..workers).map(|_| CachePadded::new(Preempt::new()));
        Self(slices.collect())
    }

    /// That of a worker.
    ///
    /// # Panics
    /// When there is no such worker.
    #[inline]
    #[track_caller]
    pub fn of(&self, worker: usize) -> &Preempt {
        &self.0[worker]
    }

    /// [Nudges](Preempt::nudge) a worker, the next each time that this thread does; or the one after it, if that one doesn't hear. Two loads at most, and a store.
    ///
    /// What is to be looked at is pushed before, with a fence in between.
    #[inline]
    pub fn nudge_one(&self) {
        // A thread whose locals are gone begins with the first.
        let turn = TURN.try_with(|turn| {
            let now = turn.get().unwrap_or_else(anywhere);
            turn.set(Some(now.wrapping_add(1)));
            now
        });
        let of = |turn: u32| &self.0[(turn % self.0.len() as u32) as usize];
        let turn = turn.unwrap_or(0);
        let _ = of(turn).nudge() || of(turn.wrapping_add(1)).nudge();
    }
}

/// A model is to take the same way each time.
#[cold]
fn anywhere() -> u32 {
    if cfg!(any(selvedge_loom, selvedge_shuttle)) {
        0
    } else {
        RandomState::new().hash_one(()) as u32
    }
}
