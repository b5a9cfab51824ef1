//! The recorder of a runtime, and the events that a worker writes into its own lane.
use task_header::{Id, WakeKind};
use task_trace::recorder::{Cause, Event, Lane, Recorder};

/// The recorder of a runtime.
pub(crate) struct Trace(Recorder);

#[inline]
pub(crate) fn number(task: Id) -> u64 {
    task.into()
}

impl Trace {
    pub(crate) fn new(workers: usize) -> Self {
        Self(Recorder::new(workers))
    }

    #[inline]
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.0
    }

    /// Runs `f` on a worker's lane, if the recorder is on. The calling thread has the core.
    #[inline]
    pub(crate) fn record(&self, worker: usize, f: impl FnOnce(&Lane)) {
        if self.0.is_on() {
            f(self.0.worker(worker));
        }
    }

    /// Records that a worker wakes a task of its runtime.
    #[inline]
    pub(crate) fn wake(&self, worker: usize, task: Id, why: WakeKind) {
        super::super::simulated::of_task("wake", task, 0);
        self.record(worker, |lane| {
            let (task, by) = (number(task), lane.polled());
            let cause = match why {
                WakeKind::Wake if by.is_some() => Cause::Task,
                WakeKind::Wake => Cause::Worker,
                _ => Cause::Abort,
            };
            lane.record(Event::Wake { task, by, cause });
        });
    }

    #[inline]
    pub(crate) fn inject(&self, worker: usize, tasks: usize) {
        let tasks = tasks as u32;
        self.record(worker, |lane| lane.record(Event::Inject { tasks }));
    }

    pub(crate) fn overflow(&self, worker: usize) {
        self.record(worker, |lane| lane.record(Event::Overflow));
    }

    pub(crate) fn slice(&self, worker: usize) {
        self.record(worker, |lane| lane.record(Event::Slice));
    }

    pub(crate) fn forced_yield(&self, worker: usize) {
        self.record(worker, |lane| lane.record(Event::ForcedYield));
    }
}
