//! The slices of several workers, for those who don't mind which of them ends its own.
//!
//! Who has work for a runtime whose workers are all busy wants one of them to look at it. Each thread asks them in turn, by a count of its own, so that nothing is
//! written that all share. One that has been asked and has not heard yet, as it is in a poll without operations, is passed over, and so is a deaf one: the next is asked then.
use crate::Preempt;
use std::cell::Cell;
use sync_shim::CachePadded;

sync_shim::thread_local! {
    static TURN: Cell<u32> = const { Cell::new(0) };
}

/// A [`Preempt`] for each worker of a runtime, on a line of its own.
///
/// ```
/// use coop_budget::Slices;
///
/// let slices = Slices::new(2);
/// slices.ask_one();
/// slices.ask_one();
/// assert!(slices.of(0).need_preempt() && slices.of(1).need_preempt());
/// ```
#[derive(Debug)]
pub struct Slices(Box<[CachePadded<Preempt>]>);

static_assertions::assert_impl_all!(Slices: Send, Sync);

impl Slices {
    /// For so many workers.
    ///
    /// # Panics
    /// When `workers` is 0, or more than 2³² − 1.
    pub fn new(workers: usize) -> Self {
        assert!(
            workers > 0 && u32::try_from(workers).is_ok(),
            "slices of {workers} workers"
        );
        let slices = (0..workers).map(|_| CachePadded::new(Preempt::new()));
        Self(slices.collect())
    }

    /// That of a worker.
    ///
    /// # Panics
    /// When there is no such worker.
    #[inline]
    pub fn of(&self, worker: usize) -> &Preempt {
        &self.0[worker]
    }

    /// Asks a worker to end its slice, the next each time that this thread asks; or the one after it, if that one was asked already or is deaf. Two loads at most, and a store.
    #[inline]
    pub fn ask_one(&self) {
        // A thread whose locals are gone begins with the first.
        let turn = TURN.try_with(|turn| turn.replace(turn.get().wrapping_add(1)));
        let of = |turn: u32| &self.0[(turn % self.0.len() as u32) as usize];
        let turn = turn.unwrap_or(0);
        let _ = of(turn).ask() || of(turn.wrapping_add(1)).ask();
    }
}
