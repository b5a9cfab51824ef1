//! `IdleState`: what a worker remembers of its searches and its sleeps.
//!
//! ```text
//!          runs out of tasks            finds none
//!  busy ---------------------> searching ---------> asleep
//!       <---------------------           <---------
//!            finds a task                 is notified, or finds work after all
//! ```
//!
//! The counts of all workers' states, by which pushes notify, are in
//! [`Idle`](worker_idle::Idle).
use std::cell::Cell;
use worker_idle::{Backoff, WatchState};

/// The state of a LIFO slot at one look of the watcher: the content of the slot, and the count of
/// polls of the slot's worker. `None` if the slot was empty.
pub(crate) type Seen = Option<(worker_queue::SlotContent, u64)>;

pub(crate) struct IdleState {
    pub(crate) searching: Cell<bool>,
    /// Whether the worker has announced its sleep, and its thread is in the code of that sleep.
    pub(crate) asleep: Cell<bool>,
    /// Whether the worker has called the hook for a park, and has yet to call the hook for the
    /// unpark.
    pub(crate) owes_unpark: Cell<bool>,
    /// Whether a short wait before a park pays.
    pub(crate) backoff: Cell<Backoff>,
    /// The progress of the last watch, unless a notification ended it.
    pub(crate) watch: Cell<WatchState>,
    /// The contents of the workers' slots at this watcher's last look.
    pub(crate) seen: Cell<Vec<Seen>>,
    /// The worker's count of polls when a notification last ended its park. The next park clears
    /// this.
    pub(crate) notified_at: Cell<Option<u64>>,
}

impl IdleState {
    pub(crate) fn new(backoff: Backoff) -> Self {
        Self {
            searching: Cell::new(false),
            asleep: Cell::new(false),
            owes_unpark: Cell::new(false),
            backoff: Cell::new(backoff),
            watch: Cell::new(WatchState::default()),
            seen: Cell::new(Vec::new()),
            notified_at: Cell::new(None),
        }
    }

    /// Notes that a notification has ended a park, after this many polls.
    pub(crate) fn note_notified(&self, polls: u64) {
        self.notified_at.set(Some(polls));
    }

    /// Returns whether a notification has ended the last park, and the worker has polled no task
    /// since: it has this many polls. Forgets the notification.
    pub(crate) fn take_notified(&self, polls: u64) -> bool {
        self.notified_at.take() == Some(polls)
    }
}
