//! A worker's core: the state that makes a thread a worker, and the map of its paths.
//!
//! A core belongs to one thread at a time, and no other thread touches it. That thread is the
//! worker's own, or the thread that accepted the core when a task of the worker blocked (see
//! [`Lent`](blocking_threads::Lent)). A task in its poll may lend the core, so nothing borrows it
//! across a call of user code in a poll.
//!
//! | path | file |
//! |---|---|
//! | a spawned task enters the queue | [`spawn`](crate::spawn) |
//! | a woken task enters the queue, and a sleeper is called | [`wake`](super::wake) |
//! | the worker finds its next task | [`next`](super::next), [`steal`](super::steal) |
//! | the worker runs a task, and requeues it | [`run`](super::run) |
//! | the worker sleeps, watches, and delivers events | [`park`](super::park), [`watch`](super::watch) |
//! | the loop of a thread of the runtime, and of a driven worker | [`threads`](super::threads), [`driven`](super::driven) |
//! | the core goes to another thread | [`context`](super::context), [`blocking`](crate::blocking) |
//! | the worker ends | [`shutdown`](crate::shutdown) |
use crate::{
    observe::metrics::Counters,
    worker::{
        busy_time::BusyTime,
        driver::Parker,
        idle_state::IdleState,
        interval::{Interval, Slice},
        lending::Lending,
        looks::Looks,
        queue::Queue,
        scheduler::Scheduler,
        shared::{Remote, Shared},
    },
};
use coop_budget::Budget;
use std::cell::Cell;
use sync_shim::{cell::UnsafeCell, sync::Arc};
use task_header::Owned;

/// The state that makes a thread a worker. It has cache lines of its own, because each poll writes
/// to it. The list of live tasks comes first: its address is the core's, so `after_poll` needs one
/// pointer.
#[repr(C, align(128))]
pub(crate) struct Core {
    owned: UnsafeCell<Owned<Scheduler>>,
    pub(crate) queue: Queue,
    /// The worker's time slice. With it, other threads nudge the worker to look at the injector, or
    /// request the end of the slice.
    // Declared, and so dropped, before `shared`, which keeps its slices alive.
    pub(crate) slice: Slice,
    pub(crate) shared: Arc<Shared>,
    pub(crate) remote: Arc<Remote>,
    /// The settings that every poll reads.
    pub(crate) budget: Budget,
    pub(crate) observed: bool,
    /// Spawns take the slow path: a hook is set, or an `EnterGuard` redirects them.
    pub(crate) special_spawns: Cell<bool>,
    pub(crate) lending: Lending,
    pub(crate) idle_state: IdleState,
    pub(crate) looks: Looks,
    pub(crate) busy_time: BusyTime,
    pub(crate) index: usize,
    /// The parker of a thread of the runtime. A driven worker keeps its own.
    pub(crate) park: Cell<Option<Parker>>,
}

impl Core {
    pub(crate) fn new(shared: Arc<Shared>, index: usize, queue: Queue) -> Self {
        let remote = shared.remotes[index].clone();
        let settings = &shared.settings;
        let interval = Interval::new(settings.global_interval, settings.adapts);
        Self {
            owned: UnsafeCell::new(Owned::with_key(remote.unparker.waker().clone(), index)),
            queue,
            // SAFETY: the core has a reference to the runtime, and drops the slice before it.
            slice: unsafe { Slice::of(&shared.slices, index) },
            budget: settings.budget,
            observed: settings.observed,
            special_spawns: Cell::new(settings.special_spawns),
            lending: Lending::new(),
            idle_state: IdleState::new(settings.backoff),
            looks: Looks::new(interval),
            busy_time: BusyTime::new(settings.busy_time),
            index,
            park: Cell::new(None),
            remote,
            shared,
        }
    }

    #[inline]
    pub(crate) fn counters(&self) -> &Counters {
        &self.remote.counters
    }

    /// The tasks that this worker keeps.
    ///
    /// # Safety
    /// The caller uses no other borrow of the list while it uses this one.
    #[expect(clippy::mut_from_ref, reason = "it is a cell")]
    pub(crate) unsafe fn owned(&self) -> &mut Owned<Scheduler> {
        self.owned.with_mut(|owned| {
            // SAFETY: the core is this thread's; the caller guarantees the rest.
            unsafe { &mut *owned }
        })
    }

    pub(crate) fn has_releases(&self) -> bool {
        // SAFETY: the list is borrowed for this call, which runs no user code.
        unsafe { self.owned() }.has_releases()
    }

    /// Releases tasks that ended on other threads. This may free their memory, and so drop metadata
    /// of users.
    pub(crate) fn drain(&self) {
        // SAFETY: the borrow ends with this call. The values that the call drops may use the
        // queues in their drops, but no list of tasks.
        unsafe { self.owned() }.drain();
    }

    /// Runs `f`, which may be user code outside of a poll. The core stays with this thread.
    #[cold]
    pub(crate) fn without_lending<R>(&self, f: impl FnOnce(&Self) -> R) -> R {
        let was_allowed = self.lending.forbid();
        let result = f(self);
        self.lending.restore(was_allowed);
        result
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.shared.monitor.core_dropped();
    }
}
