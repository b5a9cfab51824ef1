//! A clock that tests pause, with the feature `test-util`.
//!
//! While the clock is paused, no time passes except by [`advance`], or when the whole runtime is
//! idle: then the clock jumps to the next deadline. The runtime is *idle* if no worker runs, no
//! thread in a `block_on` of the driver runs, and no [`ClockHold`] exists.
//!
//! 1. The poller decides whether the runtime is idle. It looks at the tokens of all other threads,
//!    which say whether those threads wait. A thread that was unparked counts as running from that
//!    moment, as its token is `NOTIFIED`. The poller itself also counts as running after an unpark:
//!    its park then ends without a jump, and the executor looks for tasks. A worker whose thread
//!    has not started counts as waiting: it has no task yet. An executor that starts such a thread
//!    for a task keeps a [`ClockHold`] until the worker has entered the driver.
//! 2. A thread that begins to wait unparks the poller afterwards, so that the poller looks again.
//!    Between the start of its wait and that unpark, the thread passes a `SeqCst` fence. The poller
//!    takes the role, passes the fence of `Role::publish_until`, and then looks. So either the
//!    poller sees that the thread waits, or the thread sees the poller and unparks it. An unpark
//!    ends the poller's park: the executor looks for tasks, and then the poller parks again.
//! 3. The poller looks at one token after the other. Once it has seen that a thread waits, another
//!    thread may unpark that thread, and wait itself before the poller looks at it. So a thread
//!    adds to `waits` before it counts as waiting, and the poller's look is void if `waits` has
//!    changed during the look. A thread may also unpark the poller and then wait. So
//!    the poller reads its own token, too, between the two loads of `waits`.
//! 4. A thread may enter a `block_on`, and arm a timer there, after the poller has looked. So a
//!    thread also adds to `waits` when it enters or leaves a `block_on`, or when it starts as a
//!    worker. The poller reads the next deadline before its second load of `waits`.
//! 5. With this feature a tick is a nanosecond, so that a paused sleep takes exactly its time.
use super::{Instant, clock};
use sync_shim::{
    atomic::{
        AtomicBool, AtomicUsize,
        Ordering::{Relaxed, Release},
        fence,
    },
    sync::Mutex,
};

mod idle;
pub(super) mod pause;

/// The clock of a driver, and the threads and guards that keep it from jumping.
pub(crate) struct Clock {
    /// Whether the clock was ever paused.
    is_used: AtomicBool,
    reading: Mutex<Option<Reading>>,
    /// For each worker, whether its thread has run.
    started: Box<[AtomicBool]>,
    holds: AtomicUsize,
    /// Counts the waits that were about to begin, and the threads that entered or left a `block_on`
    /// or started as a worker (rules 3 and 4).
    waits: AtomicUsize,
}

/// The state of a clock that was paused at least once.
#[derive(Clone, Copy)]
struct Reading {
    /// The time that the clock showed at `since`, or shows now if it is paused.
    shown: std::time::Instant,
    /// The time when the clock was resumed last. `None` while the clock is paused.
    since: Option<std::time::Instant>,
}

impl Reading {
    fn now(self) -> std::time::Instant {
        match self.since {
            None => self.shown,
            Some(since) => self.shown + sync_shim::time::since(since),
        }
    }
}

impl Clock {
    pub(crate) fn new(workers: usize) -> Self {
        Self {
            is_used: AtomicBool::new(false),
            reading: Mutex::new(None),
            started: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            holds: AtomicUsize::new(0),
            waits: AtomicUsize::new(0),
        }
    }

    pub(crate) fn now(&self) -> Instant {
        // Ordering: Relaxed: the lock orders the reading. The flag is visible to the thread that
        // paused the clock, and to each thread that learned of the pause. For the poller, the
        // fences of rule 2 order the flag.
        let paused_once = self.is_used.load(Relaxed);
        let reading = paused_once.then(|| *self.reading.lock()).flatten();
        Instant::from_std(reading.map_or_else(sync_shim::time::now, Reading::now))
    }

    pub(crate) fn is_paused(&self) -> bool {
        // Ordering: Relaxed, as in `now`.
        self.is_used.load(Relaxed) && self.reading.lock().is_some_and(|r| r.since.is_none())
    }

    pub(crate) fn set_started(&self, worker: usize) {
        if let Some(started) = self.started.get(worker) {
            // Ordering: Relaxed. The poller's look may miss a worker that starts meanwhile, as if
            // the worker started after the look. If the poller sees a timer of that worker,
            // `will_wait` makes the look void.
            if !started.load(Relaxed) {
                // Ordering: as above.
                started.store(true, Relaxed);
                self.will_wait();
            }
        }
    }

    /// Records that a thread is about to count as waiting, has entered a `block_on` or is about to
    /// leave one, or has started as a worker (rules 3 and 4).
    pub(crate) fn will_wait(&self) {
        // Ordering: Release pairs with the first load of `if_idle_but`: the poller sees that this
        // thread has unparked others.
        self.waits.fetch_add(1, Release);
        // Ordering: Release pairs with the fence in `if_idle_but`: a poller that sees this thread
        // waiting, or its timers, sees the count.
        fence(Release);
    }

    /// Sets the clock forward to `time`, but not beyond `clock::end`. Does nothing if the clock is
    /// not paused, or already shows a later time.
    fn jump_to(&self, time: std::time::Instant) {
        if let Some(reading) = &mut *self.reading.lock() {
            if reading.since.is_none() {
                reading.shown = reading.shown.max(time.min(clock::end()));
            }
        }
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
