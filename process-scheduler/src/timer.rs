//! The timer: a wheel of wakers, which the workers serve.
//!
//! A worker that goes to sleep while no other one keeps the time becomes the *keeper*: it parks
//! until the first deadline at most. When the deadline comes, the keeper counts as awake again,
//! leaves the role, and wakes the tasks that are due. So a process that slept is usually run by the
//! worker that has woken it.
//!
//! A keeper that is woken for a process leaves the role too. Then it looks whether a worker sleeps
//! that could keep the time meanwhile, since the process's step may take long. If all workers are
//! awake, each of them looks at the timer between the runs of processes.
//!
//! ```text
//!              goes to sleep, role vacant              deadline, or a process
//!   awake ───────────────────────────────▶ keeper ───────────────────────────▶ awake
//!     │        goes to sleep, role held              a process
//!     └──────────────────────────────────▶ sleeper ───────────────────────────▶ awake
//! ```
//!
//! # Rules
//!
//! 1. A tick is a millisecond. Deadlines are rounded up and the present down, so that no deadline
//!    fires early.
//! 2. The wheel and the role are under one lock. A worker takes the role after it has announced its
//!    sleep ([`worker_idle::Idle::sleep`]), and leaves it when it counts as awake again.
//! 3. A thread that arms a deadline and finds a keeper that parks for longer wakes the keeper,
//!    which parks again for less. A deadline that is disarmed may still end a park.
//! 4. The timer *lacks a keeper* while it has an entry and the role is vacant. A thread that arms a
//!    deadline then notifies a worker, as after a push. So does a worker that has left the role and
//!    is about to run a process. And the last searcher to leave its search counts this lack as work
//!    for another worker.
//! 5. Wakers are woken and dropped outside of the lock.
//! 6. `fired` is a tick: an entry of a later tick is still in the wheel, with its waker. A worker
//!    stores `fired` before it wakes a task. So the woken task sees that value in its next poll.
//!
//! # Why no deadline waits for a step while a worker sleeps
//!
//! Say that the timer lacks a keeper from the moment L on, and that a worker sleeps which found the
//! role held. The thread that has brought L about, by an entry or by leaving the role, notifies
//! (rule 4). Either the notification wakes a sleeper: it finds a process, or finds nothing and
//! becomes the keeper. Or a worker is searching: it finds a process, or goes to sleep and becomes
//! the keeper. A worker that finds a process and is the last searcher sees the lack, because its
//! fence comes after the fence of that notification, and notifies in turn. So the lack ends, or no
//! worker sleeps.
use crate::guard::{WakerId, wake};
use std::{
    mem,
    task::Waker,
    time::{Duration, Instant},
};
use sync_shim::{
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    sync::Mutex,
};
use timer_wheel::{Key, Timers};

pub(crate) struct Timer {
    start: Instant,
    inner: Mutex<TimerInner>,
    /// Rule 6. Written under the lock.
    fired: AtomicU64,
    /// Rule 4. Written under the lock. It may stay true after the last entry was disarmed.
    lacks_keeper: AtomicBool,
}

struct TimerInner {
    /// Boxed, since a wheel has some kilobytes: the models make the timer on small stacks.
    timers: Box<Timers<Waker>>,
    keeper: Option<Keeper>,
    is_stopped: bool,
}

/// The worker that keeps the time.
struct Keeper {
    worker: usize,
    /// The tick until which it parks.
    until: u64,
}

/// An entry of the wheel.
pub(crate) struct Armed {
    key: Key,
    /// The deadline for which the entry was armed.
    pub(crate) at: Instant,
    /// The tick of `at`.
    tick: u64,
    pub(crate) waker: WakerId,
}

/// The duty of a thread that has armed a deadline.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Alert {
    /// None: the keeper parks until this deadline or an earlier one.
    Nobody,
    /// To wake this worker (rule 3).
    Keeper(usize),
    /// To notify any worker (rule 4).
    Sleeper,
}

impl Timer {
    pub(crate) fn new() -> Self {
        Self {
            start: sync_shim::time::now(),
            inner: Mutex::new(TimerInner {
                timers: Box::default(),
                keeper: None,
                is_stopped: false,
            }),
            fired: AtomicU64::new(0),
            lacks_keeper: AtomicBool::new(false),
        }
    }

    /// Arms a deadline. `None` if the timer has stopped.
    pub(crate) fn arm(&self, at: Instant, waker: Waker) -> Option<(Armed, Alert)> {
        let after = at.saturating_duration_since(self.start);
        let millis = u64::from(after.subsec_nanos().div_ceil(1_000_000));
        let tick = after.as_secs().saturating_mul(1_000).saturating_add(millis);
        let id = WakerId::of(&waker);
        let (key, alert) = self.insert(tick, waker)?;
        let armed = Armed {
            key,
            at,
            tick,
            waker: id,
        };
        Some((armed, alert))
    }

    fn insert(&self, tick: u64, waker: Waker) -> Option<(Key, Alert)> {
        let mut inner = self.inner.lock();
        if inner.is_stopped {
            drop(inner);
            drop(waker);
            return None;
        }
        let key = inner.timers.insert(tick, waker);
        let alert = match &mut inner.keeper {
            Some(keeper) if keeper.until <= tick => Alert::Nobody,
            Some(keeper) => {
                keeper.until = tick;
                Alert::Keeper(keeper.worker)
            }
            None => {
                // Ordering: Relaxed. The fence of the notification orders this store before the
                // load of the counts of searchers and sleepers (rule 4).
                self.lacks_keeper.store(true, Relaxed);
                Alert::Sleeper
            }
        };
        Some((key, alert))
    }

    /// Returns the first deadline, for the checks of a simulation.
    #[cfg(selvedge_sim)]
    pub(crate) fn first_deadline(&self) -> Option<Instant> {
        let next = self.inner.lock().timers.next_expiration()?;
        Some(self.start + Duration::from_millis(next))
    }

    /// Takes the waker of an entry out of the wheel, if it is still there.
    pub(crate) fn disarm(&self, armed: &Armed) -> Option<Waker> {
        self.inner.lock().timers.remove(armed.key)
    }

    /// Returns whether an entry may have left the wheel (rule 6).
    pub(crate) fn may_have_fired(&self, armed: &Armed) -> bool {
        // Ordering: Relaxed. The wake that leads to the task's next poll orders this load: rule 6.
        self.fired.load(Relaxed) >= armed.tick
    }

    /// Takes the role for a worker that has announced its sleep, or renews it (rule 2). Returns for
    /// how long the worker may park: zero if a deadline has come, and [`Duration::MAX`] if there is
    /// no deadline. `None` if another worker has the role.
    pub(crate) fn keep(&self, worker: usize) -> Option<Duration> {
        let mut inner = self.inner.lock();
        let keeper = inner.keeper.as_ref();
        if keeper.is_some_and(|keeper| keeper.worker != worker) {
            return None;
        }
        let until = inner.timers.next_expiration();
        inner.keeper = Some(Keeper {
            worker,
            until: until.unwrap_or(u64::MAX),
        });
        // Ordering: Relaxed, as in `insert`.
        self.lacks_keeper.store(false, Relaxed);
        drop(inner);
        let time_left =
            |until| Duration::from_millis(until).saturating_sub(sync_shim::time::since(self.start));
        Some(until.map_or(Duration::MAX, time_left))
    }

    /// Leaves the role. The worker counts as awake.
    pub(crate) fn leave(&self) {
        let mut inner = self.inner.lock();
        inner.keeper = None;
        // Ordering: Relaxed, as in `insert`: the worker notifies before it runs a process.
        self.lacks_keeper.store(!inner.timers.is_empty(), Relaxed);
    }

    /// Returns whether the timer lacks a keeper (rule 4). One load.
    #[inline]
    pub(crate) fn lacks_keeper(&self) -> bool {
        // Ordering: Relaxed. The last searcher has a fence before this load, which follows the
        // fence of the notification (rule 4). To other callers this is a hint.
        self.lacks_keeper.load(Relaxed)
    }

    /// Wakes the tasks whose deadlines have come.
    pub(crate) fn fire(&self) {
        self.fire_at(sync_shim::time::since(self.start).as_millis() as u64);
    }

    fn fire_at(&self, tick: u64) {
        let mut inner = self.inner.lock();
        // Ordering: Relaxed, as in `may_have_fired`. Only this lock's owner writes.
        let tick = tick.max(self.fired.load(Relaxed));
        // Ordering: as above.
        self.fired.store(tick, Relaxed);
        while let Some(expired) = inner.timers.pop_expired(tick) {
            drop(inner);
            wake(expired.value);
            inner = self.inner.lock();
        }
        let lacks_keeper = inner.keeper.is_none() && !inner.timers.is_empty();
        // Ordering: Relaxed, as in `insert`.
        self.lacks_keeper.store(lacks_keeper, Relaxed);
    }

    /// Ends the timer, after the workers. From then on all deadlines count as passed.
    pub(crate) fn stop(&self) {
        let mut inner = self.inner.lock();
        inner.is_stopped = true;
        // Ordering: Relaxed, as in `may_have_fired`.
        self.fired.store(u64::MAX, Relaxed);
        let mut timers = mem::take(&mut inner.timers);
        drop(inner);
        while let Some(expired) = timers.pop_expired(u64::MAX) {
            wake(expired.value);
        }
    }
}

#[cfg(test)]
mod models;
