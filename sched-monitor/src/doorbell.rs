//! The sleep of a monitor. While all workers are idle the monitor sleeps and costs nothing. A
//! worker that becomes busy ends the sleep.
//!
//! # Actors and states
//!
//! The *monitor* is *awake* or *asleep*. Between two rounds, an awake monitor pauses for a limited
//! time. A monitor that is asleep waits until it is woken. A *worker* is *idle* or *busy*, and
//! rings after it became busy. A *stopper* ends the monitor.
//!
//! # Rules
//!
//! 1. *The monitor does not stay asleep while a worker is busy.* The monitor announces its sleep,
//!    executes a fence, and then checks that all workers are idle. A worker becomes busy, executes
//!    a fence, and then checks for a sleep. One of the two `SeqCst` fences is first: either the
//!    monitor sees the busy worker, or the worker sees the sleep and wakes the monitor.
//! 2. A ring is kept in `rung` under the lock, so it is not lost between the monitor's check of the
//!    workers and its wait. A ring that comes late costs one round.
use std::{fmt, time::Duration};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicBool,
        Ordering::{Relaxed, SeqCst},
        fence,
    },
    sync::{Condvar, Mutex},
};

/// Wakes a sleeping monitor when a worker becomes busy, and can stop the monitor.
///
/// ```
/// use sched_monitor::Doorbell;
///
/// let bell = Doorbell::new();
/// bell.ring(); // A worker was woken. The monitor is awake, so this does nothing.
/// bell.stop();
/// assert!(bell.is_stopped());
/// ```
pub struct Doorbell {
    /// Written only when the monitor goes to sleep or wakes. So the cache line of this flag stays
    /// in the caches of all workers.
    asleep: CachePadded<AtomicBool>,
    state: Mutex<Flags>,
    changed: Condvar,
}

#[derive(Default)]
struct Flags {
    rung: bool,
    stopped: bool,
}

impl Doorbell {
    /// Creates the doorbell of an awake monitor.
    pub fn new() -> Self {
        Self {
            asleep: CachePadded::new(AtomicBool::new(false)),
            state: Mutex::new(Flags::default()),
            changed: Condvar::new(),
        }
    }

    /// Wakes the monitor if it is asleep. Otherwise the call costs a fence and a load.
    ///
    /// A worker calls this after it became busy: when [`Workers::sample`](crate::Workers::sample)
    /// no longer says that the worker is idle.
    #[inline]
    pub fn ring(&self) {
        // Ordering: SeqCst pairs with the fence in `sleep` (rule 1).
        fence(SeqCst);
        // Ordering: Relaxed, as the fence above orders this load.
        if self.asleep.load(Relaxed) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        self.state.lock().rung = true;
        self.changed.notify_one();
    }

    /// Ends the monitor's [`run`](crate::Monitor::run) after the round in progress.
    pub fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_one();
    }

    /// Returns whether the monitor was stopped.
    pub fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    /// Ends a pause or a sleep of the monitor, so that its next round comes at once.
    ///
    /// ```
    /// let bell = sched_monitor::Doorbell::new();
    /// bell.hurry();
    /// ```
    pub fn hurry(&self) {
        self.wake();
    }

    /// Waits for `limit`, or until the monitor is hurried or stopped.
    pub(crate) fn pause(&self, limit: Duration) {
        let mut state = self.state.lock();
        if !state.rung && !state.stopped {
            state = self.changed.wait_timeout(state, limit).0;
        }
        state.rung = false;
    }

    /// Waits until a worker rings. Returns at once if a worker is busy, or the monitor was stopped.
    pub(crate) fn sleep(&self, all_idle: impl FnOnce() -> bool) {
        // Ordering: Relaxed, as the fence below orders this store.
        self.asleep.store(true, Relaxed);
        // Ordering: SeqCst pairs with the fence in `ring` (rule 1).
        fence(SeqCst);
        if all_idle() {
            let mut state = self.state.lock();
            while !state.rung && !state.stopped {
                state = self.changed.wait(state);
            }
            state.rung = false;
        }
        // Ordering: Relaxed. A worker that sees the old value rings once too often.
        self.asleep.store(false, Relaxed);
    }
}

impl Default for Doorbell {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Doorbell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: Relaxed, a snapshot for debug output.
        let asleep = self.asleep.load(Relaxed);
        f.debug_struct("Doorbell")
            .field("asleep", &asleep)
            .finish_non_exhaustive()
    }
}
