//! The hooks of the recorder, in builds that have it.
mod folder;
mod lanes;
mod observer;
mod recordings;
mod saver;
mod tracer;

pub(crate) use {lanes::Trace, observer::watch, recordings::RecorderSettings};
pub use {recordings::Recordings, task_trace::recorder::Capture, tracer::Tracer};

use super::simulated;
use crate::{
    scope,
    worker::{
        context::with_core,
        core::Core,
        queue::Stealer,
        scheduler::{Scheduler, Task},
        shared::{Remote, Shared},
    },
};
use lanes::number;
use std::{cell::Cell, panic::Location};
use sync_shim::sync::Arc;
use task_header::{Ran, WakeKind};
use task_trace::recorder::{Cause, Event, Lane, Outcome};

/// The worker from which a searcher steals.
pub(crate) struct Victim(Cell<usize>);

impl Victim {
    pub(crate) fn new() -> Self {
        Self(Cell::new(0))
    }

    /// Notes the worker at which the searcher looks, and returns its queue.
    #[inline]
    pub(crate) fn look<'a>(&self, all: &[Arc<Remote>], remote: &'a Arc<Remote>) -> &'a Stealer {
        let from_start = std::ptr::from_ref(remote).addr() - all.as_ptr().addr();
        self.0.set(from_start / size_of::<Arc<Remote>>());
        &remote.stealer
    }
}

/// Runs `f` on the worker's lane, if the recorder is on.
#[inline]
fn record(core: &Core, f: impl FnOnce(&Lane)) {
    core.shared.trace.record(core.index, f);
}

/// Runs `f` on the lane of the worker whose core this thread has. If this thread has no core of
/// the runtime, runs `f` on the thread's own lane.
#[cold]
fn on_lane(shared: &Shared, f: impl FnOnce(&Lane)) {
    let recorder = shared.trace.recorder();
    let own = |core: &Core| std::ptr::eq(&*core.shared, shared).then_some(core.index);
    match with_core(own).flatten() {
        Some(index) => recorder.with_worker(index, f),
        None => recorder.with_thread(f),
    }
}

/// Notes that user code has panicked on this thread, for its current runtime.
#[cold]
pub(crate) fn note_panic_here() {
    if let Some(shared) = scope::current() {
        shared.trace.note_panic();
    }
}

/// Records that the caller spawns a task, without a name.
#[inline]
#[track_caller]
pub(crate) fn spawn(shared: &Shared, task: &Task) {
    spawn_at(shared, task, Location::caller());
}

/// Records that a task is spawned at the place `at`, without a name.
#[inline]
pub(crate) fn spawn_at(shared: &Shared, task: &Task, at: &'static Location<'static>) {
    simulated::of_task("spawn", task.id(), 0);
    if shared.trace.recorder().is_on() {
        on_lane(shared, |lane| lane.spawn(number(task.id()), at));
    }
}

/// Records that a task is spawned, and the task's name if it has one. The name is recorded even
/// while the recorder is off.
pub(crate) fn spawn_named(shared: &Shared, task: &Task, at: &'static Location<'static>) {
    spawn_at(shared, task, at);
    if let Some(name) = task.name() {
        on_lane(shared, |lane| lane.name(number(task.id()), name));
    }
}

/// Why a task is woken, as the recorder keeps it.
pub(crate) type Reason = WakeKind;

#[inline]
pub(crate) fn reason(why: WakeKind) -> Reason {
    why
}

/// Records that a thread which is not a worker of the runtime wakes a task.
#[inline]
pub(crate) fn wake_from_outside(shared: &Shared, task: &Task, why: Reason) {
    simulated::of_task("wake", task.id(), 0);
    if shared.trace.recorder().is_on() {
        let cause = match why {
            WakeKind::Wake => Cause::Thread,
            _ => Cause::Abort,
        };
        let (task, by) = (number(task.id()), None);
        let event = Event::Wake { task, by, cause };
        shared
            .trace
            .recorder()
            .with_thread(|lane| lane.record(event));
    }
}

/// Records that a poll begins.
#[inline]
pub(crate) fn poll_begin(shared: &Shared, task: &Task) {
    simulated::poll_begin(task);
    if shared.trace.recorder().is_on() {
        let (task, named) = (number(task.id()), task.name().is_some());
        with_core(|core| record(core, |lane| lane.poll_begin(task, named)));
    }
}

/// Records that a poll ends, and whether the task is complete. If the poll has lost its core,
/// [`lend`] has recorded the poll's end in the worker's lane already, and this function records
/// nothing.
#[inline]
pub(crate) fn poll_end(shared: &Shared, ran: &Ran<Scheduler>) {
    simulated::poll_end(ran);
    if shared.trace.recorder().is_on() {
        let outcome = match ran {
            Ran::Pending => Outcome::Pending,
            Ran::Complete => Outcome::Ready,
            Ran::Notified(_) => Outcome::Again,
        };
        with_core(|core| record(core, |lane| lane.poll_end(outcome)));
    }
}

/// The task that lends its worker, if the begin of its poll was recorded.
pub(crate) type Lender = Option<u64>;

/// Records that a task lends its worker, as the end of its poll. If the task takes the worker
/// back, [`take_back`] records that the poll goes on.
pub(crate) fn lend(core: &Core) -> Lender {
    let mut polled = None;
    record(core, |lane| {
        polled = lane.polled();
        lane.poll_end(Outcome::Lent);
    });
    polled
}

/// Records that a task has taken back the worker that it lent, and that its poll goes on.
pub(crate) fn take_back(core: &Core, polled: Lender) {
    if let Some(task) = polled {
        record(core, |lane| lane.poll_begin(task, true));
    }
}

#[inline]
pub(crate) fn steal(core: &Core, from: &Victim, tasks: usize) {
    simulated::of_scheduler("steal", tasks);
    let (from, tasks) = (from.0.get(), tasks as u32);
    record(core, |lane| lane.record(Event::Steal { from, tasks }));
}

pub(crate) fn steal_slot(core: &Core, from: usize, task: &Task) {
    simulated::of_task("steal from slot", task.id(), from);
    let task = number(task.id());
    record(core, |lane| lane.record(Event::StealSlot { from, task }));
}

pub(crate) fn park(core: &Core) {
    record(core, |lane| lane.record(Event::Park));
}

pub(crate) fn unpark(core: &Core) {
    core.shared.trace.go_on();
    let notified = core.idle_state.notified_at.get() == Some(core.counters().polls.get());
    record(core, |lane| lane.record(Event::Unpark { notified }));
}

/// Records that this thread unparks a worker, or starts the worker's thread.
pub(crate) fn notify(shared: &Shared, worker: usize) {
    simulated::of_scheduler("notify", worker);
    if shared.trace.recorder().is_on() {
        on_lane(shared, |lane| lane.record(Event::Notify { worker }));
    }
}
