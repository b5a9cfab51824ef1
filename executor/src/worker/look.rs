//! A busy worker's looks at the injector. The worker looks at the end of an interval, at a signal,
//! and while it owes time to tasks from outside. [`interval`](crate::worker::interval) has the
//! rules. Each look is also one at the worker's inbox, if it has one.
use crate::worker::{core::Core, interval::Reading, scheduler::Task, shared::Shared};
use std::time::Duration;
use sync_shim::atomic::Ordering::Relaxed;
use worker_queue::RunQueue;

impl Core {
    /// Looks at the end of an interval, and begins the next interval.
    pub(crate) fn look_at_interval(&self) -> Option<Task> {
        self.look(false)
    }

    /// Looks because of a signal.
    ///
    /// A refused operation also leads to this call. If there was no signal, the operation was
    /// refused because the budget is used up. Then the interval goes on.
    #[cold]
    #[inline(never)]
    pub(crate) fn look_at_signal(&self) -> Option<Task> {
        self.forced.set(false);
        // The signal may have come after the check of `look_before_own`.
        self.publish_requeued_if(|| true);
        if !self.slice().is_set() {
            return self.take_share();
        }
        if self.begin_slice_before_own(false) {
            return None;
        }
        self.look(true)
    }

    fn look(&self, is_due: bool) -> Option<Task> {
        let interval = &self.interval;
        let reading = interval.begin(is_due);
        if interval.owes_own() && !self.queue.is_empty() {
            interval.stop_repaying();
            interval.note_look(false, reading.is_some());
            return None;
        }
        let repays = interval.owes() || interval.is_one_tick() && self.queue.is_empty();
        let task = if repays {
            self.take_one()
        } else {
            self.take_share()
        };
        if repays && task.is_some() {
            interval.repay(reading.is_some());
        } else {
            interval.stop_repaying();
        }
        interval.note_look(task.is_some(), reading.is_some());
        if let Some(reading) = reading.filter(|_| task.is_some()) {
            self.record_wait(&reading);
        }
        task
    }

    /// Takes the next task from outside, if the worker takes such tasks one by one now.
    pub(crate) fn look_again(&self) -> Option<Task> {
        let goes_on = self.interval.goes_on_repaying();
        goes_on.then(|| self.look(false)).flatten()
    }

    fn take_one(&self) -> Option<Task> {
        let injector = &self.shared.injector;
        let task = self.slice().look(|| self.queue.take_one(injector, self))?;
        self.count_injected(1);
        Some(task)
    }

    /// Records the wait of the work that this look has found. The wait counts from the push that
    /// nudged this worker, or from the worker's last reading of the clock if that is later.
    fn record_wait(&self, reading: &Reading) {
        let nudged = &self.remote.nudged_at;
        // Ordering: Relaxed, as the stamp orders no other data. A look that does not see the
        // nudger's stamp yet counts from the last reading, so the wait may come out too long.
        let nudge = match nudged.load(Relaxed) {
            0 => None,
            at => self.shared.begun.checked_add(Duration::from_nanos(at)),
        };
        // Ordering: Relaxed, as above. This store may overwrite a newer stamp. The newer stamp is
        // that of a push that waits for the next look, or a late stamp of the push that this look
        // has found. In both cases the wait counts from the last reading, as above.
        nudged.store(0, Relaxed);
        if let Some(since) = nudge.max(reading.before) {
            let waited = reading.now.saturating_duration_since(since);
            self.counters().record_wait(waited);
        }
    }
}

impl Shared {
    /// Nudges a busy worker after a push. If the workers read the clock, also stamps the time of
    /// the nudge.
    pub(crate) fn nudge(&self) {
        if let Some(worker) = self.slices.nudge_one() {
            self.note_nudge(worker);
        }
    }

    /// Stamps the time of a nudge, if the workers read the clock.
    pub(crate) fn note_nudge(&self, worker: usize) {
        if self.settings.adapts {
            let now = self.begun.elapsed().as_nanos() as u64;
            // Ordering: Relaxed, see `Core::record_wait`.
            self.remotes[worker].nudged_at.store(now.max(1), Relaxed);
        }
    }
}

#[cfg(all(test, not(selvedge_count)))]
mod models;
