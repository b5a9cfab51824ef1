//! The monitor of a runtime: a thread that watches the workers ([`sched_monitor`]).
//!
//! # What it watches
//!
//! | word of a worker | written by |
//! |---|---|
//! | its bit among the sleepers ([`Idle`](worker_idle::Idle)) | the worker, or the thread that wakes it |
//! | the task that it polls, or 0 ([`Counters::polled`]) | the worker: at each poll, and before it sleeps |
//! | its counts of polls, of polls that inherit a slice, of calls | the worker |
//! | its core, while it is in a [`syscall`](crate::syscall()) | the worker; the monitor retakes it |
//!
//! The task is not cleared at the end of a poll, which would cost each poll a store. So a worker
//! that is awake between two polls counts as polling the last task, and during the hook before a
//! poll as polling the next one. The time between two polls is long only if a hook or a driver
//! blocks.
//!
//! # Rules
//!
//! 1. The thread starts on first need: when a worker finds a task at the end of an interval, when
//!    there is work for a second worker, when a task calls [`syscall`](crate::syscall()), or at the
//!    first timer or socket, because without a monitor no thread might serve it during a long poll.
//!    `build` starts the thread if the builder says so, or if the builder sets a hook for stalls.
//! 2. So a runtime that runs one short task, without timers and sockets, starts no monitor. A
//!    runtime that runs longer is watched from a worker's second poll on: the first interval has
//!    only two ticks (unless the builder fixes the length of intervals), and after an interval that
//!    ends without a task the next one has one tick.
//! 3. If the monitor is off or its thread cannot be started, the runtime works without a monitor. A
//!    `syscall` then hands its worker over at once, as `block_in_place` does.
//! 4. The monitor ends when the last core of its runtime is dropped. So it retakes cores as long as
//!    any worker may be in a call, also while the runtime ends. `Runtime::drop` joins the monitor's
//!    thread after it has joined the workers' threads.
//! 5. The monitor's thread is one of the runtime's own. So if this thread drops the runtime, in a
//!    hook for example, the drop does not wait for the runtime's threads.
//! 6. Driven workers have no monitor.
//!
//! Under a model checker there is no monitor: `sched-monitor` has models of the protocols.
use super::{
    poll_overdue::PollOverdue,
    report,
    state::{Monitor, REFUSED, RUNNING, STARTING, UNSTARTED},
};
use crate::{blocking, groups, observe::trace, scope, worker::shared::Shared};
use sched_monitor::{
    EndSlices, Monitor as Rounds, Remote as InjectedWork, Retake, Sample, Stall, Stalls, State,
};
use std::io;
use sync_shim::{atomic::Ordering::Relaxed, sync::Arc, thread};

impl Monitor {
    /// Starts the thread in `build`, if the builder says so.
    pub(crate) fn start_at_once(&self, shared: &Arc<Shared>) {
        if self.settings.at_once {
            self.start(shared);
        }
    }

    /// Whether the monitor's thread may still be started.
    pub(crate) fn is_unstarted(&self) -> bool {
        // Ordering: Relaxed, as in `start`.
        self.state.load(Relaxed) == UNSTARTED
    }

    /// Starts the monitor's thread. If a start was tried before, or if the monitor is off, this
    /// does nothing, and costs a load. Returns whether the thread runs.
    #[inline]
    pub(crate) fn start(&self, shared: &Arc<Shared>) -> bool {
        // Ordering: Relaxed. The state publishes nothing. The thread's handle is under a lock. The
        // monitor's reads of the workers are ordered by `Doorbell::ring` and by the hand-over of a
        // core.
        match self.state.load(Relaxed) {
            UNSTARTED => self.start_thread(shared),
            state => state == RUNNING,
        }
    }

    #[cold]
    fn start_thread(&self, shared: &Arc<Shared>) -> bool {
        if !self.claim_start() || shared.is_in_forked_child() {
            return false;
        }
        let started = self.spawn(shared);
        let state = if started.is_ok() { RUNNING } else { REFUSED };
        *self.thread.lock() = started.ok();
        // Ordering: Relaxed, as in `start`.
        self.state.store(state, Relaxed);
        if state == REFUSED {
            shared.events.let_stand_by();
        }
        state == RUNNING
    }

    /// Returns whether the caller must start the thread. This is true for only one caller.
    fn claim_start(&self) -> bool {
        // Ordering: Relaxed, as in `start`.
        let exchanged = (self.state).compare_exchange(UNSTARTED, STARTING, Relaxed, Relaxed);
        exchanged.is_ok()
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
        // A worker whose thread could not be started is idle for good.
        let is_idle = !shared.idle.was_notified(worker) || counters.thread_refusals.get() > 0;
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

fn rounds(shared: &Arc<Shared>) -> Rounds<Workers> {
    let end = {
        let shared = shared.clone();
        EndSlices::new(move |worker| shared.slices.of(worker).request())
    };
    #[cfg(test)]
    let end = match shared.monitor.settings.endless_slices {
        true => end.limit(std::time::Duration::MAX),
        false => end,
    };
    let has_work = {
        let shared = shared.clone();
        move |worker| shared.has_work_for(worker)
    };
    let hand_over = {
        let shared = shared.clone();
        move |worker| retake(&shared, worker)
    };
    let injected = {
        let shared = shared.clone();
        move || {
            let remotes = shared.remotes.iter();
            let taken = remotes.map(|remote| remote.counters.injected_tasks.get());
            (shared.injected_depth(), taken.sum())
        }
    };
    let make_all_look = {
        let shared = shared.clone();
        move || {
            for worker in 0..shared.remotes.len() {
                shared.slices.of(worker).insist();
            }
        }
    };
    let subject_of = {
        let shared = shared.clone();
        move |worker| report::subject(&shared, worker)
    };
    let report_stall = {
        let shared = shared.clone();
        let mut reports = report::Reports::default();
        move |stall: &Stall| {
            let monitor = &shared.monitor;
            // Ordering: Relaxed, as it is only a count.
            monitor.stalls.fetch_add(1 + stall.held_back, Relaxed);
            let hook = monitor.settings.on_stall.as_ref();
            let deliver = || reports.deliver(&shared, stall, hook);
            shared.hooks.contain(deliver);
            shared.trace.note_stall();
        }
    };
    let settings = &shared.monitor.settings;
    let stalls = Stalls::new(subject_of, report_stall)
        .threshold(settings.threshold)
        .per_minute(settings.reports_per_minute);
    let rounds = Rounds::new(Workers(shared.clone()))
        .duty(Retake::new(has_work, hand_over))
        .duty(end);
    let rounds = groups::watch(rounds, shared)
        .duty(InjectedWork::new(injected, make_all_look))
        .duty(PollOverdue::new(shared.clone()));
    // The observer records a long poll before its report leads to a save.
    trace::watch(rounds, shared).duty(stalls)
}

impl Shared {
    /// Whether work waits that this worker would run if it were not in a call.
    pub(crate) fn has_work_for(&self, worker: usize) -> bool {
        let has_own = self.remotes[worker].has_tasks();
        has_own || self.is_closing() || self.has_injected() && self.idle.counts() == (0, 0)
    }
}

/// Hands the core of a worker in a call over to another thread, if the core is still in
/// [`Remote::call`](crate::worker::shared::Remote::call).
fn retake(shared: &Arc<Shared>, worker: usize) {
    if let Some(core) = shared.remotes[worker].call.retake() {
        // The core is this thread's, and so are its counters.
        core.counters().set_polled(None);
        core.counters().retakes.add(1);
        core.busy_time.end(core.counters());
        blocking::offer(shared, core);
    }
}

#[cfg(test)]
mod models {
    use super::{Monitor, UNSTARTED};
    use crate::monitor::Settings;
    use crate::settings::attributes::Attributes;
    use sync_shim::{atomic::Ordering::Relaxed, model, sync::Arc, thread};

    /// Fails if `claim_start` loads and then stores the state, instead of its compare-exchange.
    #[test]
    fn two_starts_at_a_time_start_one_thread() {
        model(|| {
            let attributes = Attributes::of_this_thread();
            let monitor = Arc::new(Monitor::new(Settings::new(), 1, attributes));
            // Ordering: Relaxed, as no other thread runs yet. This store turns the monitor on,
            // because a new monitor is off in a model.
            monitor.state.store(UNSTARTED, Relaxed);
            let other = {
                let monitor = monitor.clone();
                thread::spawn(move || monitor.claim_start())
            };
            let claimed = monitor.claim_start();
            assert!(claimed != other.join().unwrap(), "one thread");
        });
    }
}
