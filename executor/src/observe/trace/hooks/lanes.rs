//! The recorder of a runtime, and the events that a worker writes into its own lane.
use super::{
    recordings::{PART, Reason, RecorderSettings},
    saver::Saver,
};
use crate::worker::shared::Shared;
use std::time::Duration;
use sync_shim::sync::Arc;
use task_header::{Id, WakeKind};
use task_trace::recorder::{Capture, Cause, Event, Lane, Recorder};

/// The recorder of a runtime.
pub(crate) struct Trace {
    recorder: Recorder,
    /// The events for which each worker has room.
    capacity: usize,
    /// The time that a flight recorder keeps.
    keep: Option<Duration>,
    saver: Saver,
}

#[inline]
pub(crate) fn number(task: Id) -> u64 {
    task.into()
}

impl Trace {
    /// Makes the recorder. A flight recorder is on.
    pub(crate) fn new(workers: usize, settings: RecorderSettings) -> Self {
        let trace = Self {
            recorder: Recorder::new(workers),
            capacity: settings.capacity(workers),
            keep: settings.keep,
            saver: Saver::new(settings.recordings),
        };
        if trace.keep.is_some() {
            trace.start();
        }
        trace
    }

    #[inline]
    pub(crate) fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Starts the recorder. A flight recorder takes a part of the time at most.
    pub(super) fn start(&self) {
        match self.keep {
            Some(keep) => self.recorder.start_limited(self.capacity, PART, keep),
            None => self.recorder.start(self.capacity),
        }
    }

    /// Copies the part of the recording that a flight recorder keeps, or all of another recording.
    pub(super) fn capture_kept(&self) -> Capture {
        self.recorder
            .capture_last(self.keep.unwrap_or(Duration::MAX))
    }

    pub(super) fn saver(&self) -> &Saver {
        &self.saver
    }

    /// Starts the thread that saves, if the builder has set a folder.
    pub(crate) fn begin(&self, shared: &Arc<Shared>) {
        self.saver.start(shared);
    }

    /// Saves the recording soon, as the monitor has reported a stall.
    pub(crate) fn note_stall(&self) {
        self.saver.request(Reason::Stall);
    }

    /// Saves the recording soon, as user code has panicked.
    pub(crate) fn note_panic(&self) {
        self.saver.request(Reason::Panic);
    }

    /// Whether a panic leads to a save.
    pub(crate) fn saves_on_panic(&self) -> bool {
        self.saver.saves_on_panic()
    }

    /// Lets the saving thread end.
    pub(crate) fn close(&self) {
        self.saver.close();
    }

    /// Waits for the end of the saving thread, up to `limit`. Returns whether it has ended.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> bool {
        self.saver.wait(limit)
    }

    /// Ends a pause of the recorder that is over. Costs a load.
    #[inline]
    pub(crate) fn go_on(&self) {
        self.recorder.go_on();
    }

    /// Runs `f` on a worker's lane, if the recorder is on. The calling thread has the core.
    #[inline]
    pub(crate) fn record(&self, worker: usize, f: impl FnOnce(&Lane)) {
        if self.recorder.is_on() {
            self.recorder.with_worker(worker, f);
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
