//! The monitor of a runtime: a thread that watches the workers ([`sched_monitor`]).
//!
//! # What it watches
//!
//! | word of a worker | written by |
//! |---|---|
//! | its bit among the sleepers ([`Idle`](worker_idle::Idle)) | the worker, or whoever wakes it |
//! | the task that it polls, or 0 ([`Counters::polled`]) | the worker: at each poll, and before it sleeps |
//! | its counts of polls, of polls that inherit a slice, of calls | the worker |
//! | its core, while it is in a [`syscall`](crate::syscall()) | the worker; the monitor retakes it |
//!
//! The task is not cleared at the end of a poll, which would cost each poll a store. So a worker
//! that is awake between two polls counts as polling the last task. That takes long only if a hook
//! or a driver blocks.
//!
//! # Rules
//!
//! 1. The thread starts on first need: when a worker has a second tick, when there is work for a
//!    second worker, or when a task begins an annotated call. `build` starts it if the builder says
//!    so, or sets a hook for stalls. So a runtime for one short task has none.
//! 2. A runtime whose monitor is off, or cannot be started, works without: an annotated call then
//!    hands its worker over at once, as `block_in_place` does.
//! 3. The monitor ends when the last core of its runtime is dropped. So it retakes cores as long as
//!    any worker may be in a call, also while the runtime ends. `Runtime::drop` joins it last.
//! 4. Its thread is one of the runtime's own: a runtime that is dropped there is not waited for.
//! 5. Driven workers have no monitor.
//!
//! Under a model checker there is no monitor: `sched-monitor` has models of the protocols.
use crate::{
    attributes::Attributes,
    blocking, scope,
    shared::Shared,
    stall::{self, StallHook},
};
use sched_monitor::{
    Doorbell, Duty, EndSlices, Monitor as Rounds, Remote, Retake, Round, Sample, Stalls, State,
};
use std::{io, time::Duration};
use sync_shim::{
    atomic::{
        AtomicU32, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    sync::{Arc, Mutex},
    thread,
};

/// Whether there may be a monitor. A model has no time.
pub(crate) const WATCHES: bool = cfg!(not(any(selvedge_loom, selvedge_shuttle)));

const OFF: u32 = 0;
const UNSTARTED: u32 = 1;
const STARTING: u32 = 2;
const RUNNING: u32 = 3;
const REFUSED: u32 = 4;

/// The builder's settings for the monitor.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) on: bool,
    /// Whether `build` starts it.
    pub(crate) at_once: bool,
    pub(crate) threshold: Duration,
    pub(crate) on_stall: Option<StallHook>,
    /// Whether the start of the thread fails.
    #[cfg(test)]
    pub(crate) fails: bool,
}

impl Settings {
    pub(crate) fn new() -> Self {
        Self {
            on: true,
            at_once: false,
            threshold: Duration::from_millis(25),
            on_stall: None,
            #[cfg(test)]
            fails: false,
        }
    }

    pub(crate) fn turn_off(&mut self) {
        self.on = false;
    }
}

/// The monitor's state, which the runtime shares.
pub(crate) struct Monitor {
    state: AtomicU32,
    bell: Doorbell,
    /// Cores that are not dropped yet.
    cores: AtomicUsize,
    thread: Mutex<Option<thread::JoinHandle<()>>>,
    settings: Settings,
    attributes: Attributes,
    stalls: AtomicU64,
}

impl Monitor {
    pub(crate) fn new(settings: Settings, cores: usize) -> Self {
        let on = settings.on && WATCHES;
        Self {
            state: AtomicU32::new(if on { UNSTARTED } else { OFF }),
            bell: Doorbell::new(),
            cores: AtomicUsize::new(cores),
            thread: Mutex::new(None),
            settings,
            attributes: Attributes::of_this_thread(),
            stalls: AtomicU64::new(0),
        }
    }

    /// Starts it in `build`, if the builder says so.
    pub(crate) fn start_at_once(&self, shared: &Arc<Shared>) {
        if self.settings.at_once {
            self.start(shared);
        }
    }

    /// Starts the thread, unless that was tried before or the monitor is off. A load if so. Returns
    /// whether the thread runs.
    #[inline]
    pub(crate) fn start(&self, shared: &Arc<Shared>) -> bool {
        // Ordering: Acquire pairs with the store in `start_thread`: the thread has been started.
        match self.state.load(Acquire) {
            UNSTARTED => self.start_thread(shared),
            state => state == RUNNING,
        }
    }

    #[cold]
    fn start_thread(&self, shared: &Arc<Shared>) -> bool {
        // Ordering: Relaxed, one thread alone gets to start it.
        let exchanged = (self.state).compare_exchange(UNSTARTED, STARTING, Relaxed, Relaxed);
        if exchanged.is_err() || shared.process != std::process::id() {
            return false;
        }
        let started = self.spawn(shared);
        let state = if started.is_ok() { RUNNING } else { REFUSED };
        *self.thread.lock() = started.ok();
        // Ordering: Release pairs with the load in `start`.
        self.state.store(state, Release);
        state == RUNNING
    }

    fn spawn(&self, shared: &Arc<Shared>) -> io::Result<thread::JoinHandle<()>> {
        #[cfg(test)]
        if self.settings.fails {
            return Err(io::Error::other("no thread, as the test asked"));
        }
        let name = format!("{}-monitor", shared.settings.thread_name);
        let shared = shared.clone();
        thread::Builder::new().name(name).spawn(move || {
            shared.monitor.attributes.apply();
            scope::mark_own_thread(&shared.hooks);
            rounds(&shared).run(&shared.monitor.bell);
        })
    }

    /// Wakes the monitor, if there may be one, after a worker became busy. A fence and a load.
    #[inline]
    pub(crate) fn ring(&self) {
        if WATCHES && self.settings.on {
            self.bell.ring();
        }
    }

    /// Counts the drop of a core (rule 3).
    pub(crate) fn core_dropped(&self) {
        // Ordering: AcqRel, so that the last drop follows the others.
        if WATCHES && self.cores.fetch_sub(1, AcqRel) == 1 {
            self.bell.stop();
        }
    }

    /// Waits for the end of the thread, after all workers have ended.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // Panics of duties and of hooks are contained.
            let _ = thread.join();
        }
    }

    /// Reports of stalls, with those that were held back.
    pub(crate) fn stalls(&self) -> u64 {
        // Ordering: Relaxed, for a snapshot.
        self.stalls.load(Relaxed)
    }

    /// Whether the thread could not be started.
    pub(crate) fn is_refused(&self) -> bool {
        // Ordering: Relaxed, for a snapshot.
        self.state.load(Relaxed) == REFUSED
    }
}

/// The workers, as the monitor sees them.
struct Workers(Arc<Shared>);

impl sched_monitor::Workers for Workers {
    fn count(&self) -> usize {
        self.0.remotes.len()
    }

    fn sample(&self, worker: usize) -> Sample {
        let (shared, remote) = (&self.0, &self.0.remotes[worker]);
        let counters = &remote.counters;
        // A worker that was given up is idle for good.
        let is_idle = !shared.idle.was_notified(worker) || counters.refused.get() > 0;
        let state = if is_idle {
            State::Idle
        } else if remote.call.is_inside() {
            State::Calling
        } else if counters.polled() != 0 {
            State::Polling
        } else {
            State::Awake
        };
        let (inherited, polls) = (counters.inherited_slices.get(), counters.polls.get());
        Sample {
            state,
            polls,
            runs: polls.wrapping_sub(inherited),
            calls: counters.syscalls.get(),
        }
    }
}

/// Fires timers and polls sockets while no worker waits for them and those that are awake are in
/// polls that last. The tasks go to the injector, and wake a worker that sleeps.
struct PollOverdue(Arc<Shared>);

impl Duty for PollOverdue {
    fn look(&mut self, _: &Round<'_>) -> Option<Duration> {
        let shared = &self.0;
        // Wakers are code of users.
        shared.hooks.contain(|| shared.events.poll_overdue());
        None
    }
}

fn rounds(shared: &Arc<Shared>) -> Rounds<Workers> {
    let of = || shared.clone();
    let (slices, waits, retakes, counts, looks) = (of(), of(), of(), of(), of());
    let end = EndSlices::new(move |worker| slices.slices.of(worker).request());
    let retake = Retake::new(
        move |worker| waits.has_work_for(worker),
        move |worker| retake(&retakes, worker),
    );
    let injected = move || {
        let taken = counts
            .remotes
            .iter()
            .map(|remote| remote.counters.injected.get());
        (counts.injector.len(), taken.sum())
    };
    let look = move || {
        let slices = (0..looks.remotes.len()).map(|worker| looks.slices.of(worker));
        for slice in slices {
            slice.insist();
        }
    };
    let (subjects, reports) = (of(), of());
    let stalls = Stalls::new(
        move |worker| stall::subject(&subjects, worker),
        move |stall| {
            let monitor = &reports.monitor;
            // Ordering: Relaxed, a count.
            monitor.stalls.fetch_add(1 + stall.held_back, Relaxed);
            let hook = monitor.settings.on_stall.as_ref();
            reports
                .hooks
                .contain(|| stall::report(&reports, stall, hook));
        },
    );
    Rounds::new(Workers(shared.clone()))
        .duty(retake)
        .duty(end)
        .duty(Remote::new(injected, look))
        .duty(PollOverdue(shared.clone()))
        .duty(stalls.threshold(shared.monitor.settings.threshold))
}

impl Shared {
    /// Whether work waits that this worker would run if it were not in a call.
    fn has_work_for(&self, worker: usize) -> bool {
        let stealer = &self.remotes[worker].stealer;
        !stealer.is_empty()
            || !stealer.slot_is_empty()
            || self.is_closing()
            || self.has_injected() && self.idle.counts() == (0, 0)
    }
}

/// Hands the core of a worker in a call over to another thread, if it is still there.
fn retake(shared: &Arc<Shared>, worker: usize) {
    if let Some(core) = shared.remotes[worker].call.retake() {
        // The core is this thread's, and so are its counters.
        core.counters().set_polled(None);
        core.counters().retaken.add(1);
        core.clock_out();
        blocking::offer(shared, core);
    }
}
