//! The checks of a run, and its failure.
use super::{
    World, epoch,
    threads::{Panic, State, Thread},
};
use crate::failure::Failure;
use std::time::Duration;
use sync_shim::sim::{Subject, Wait};

/// How long work may wait while a thread that could take it waits, too. A thread between the push
/// of a task and the notification may be busy for a few microseconds.
const WAKE_BOUND: Duration = Duration::from_millis(1);

impl World {
    /// Checks the subjects while no thread can run before the time `next`.
    pub(super) fn check(&self, next: Option<u64>) {
        let is_busy = |thread: &Thread| thread.state == State::Waiting(Wait::Busy);
        let any_busy = self.threads.borrow().iter().any(is_busy);
        // A check, and the drop of a last reference, are code of the program (rule 2).
        let existing: Vec<_> = {
            let mut subjects = self.subjects.borrow_mut();
            subjects.retain(|(_, subject)| subject.strong_count() > 0);
            let subjects = subjects.iter();
            subjects
                .filter_map(|(_, subject)| subject.upgrade())
                .collect()
        };
        let mut unserved = None;
        for subject in existing {
            if let Some(failure) = self.check_subject(&*subject, any_busy, next) {
                return self.fail(failure);
            }
            unserved = unserved.or_else(|| subject.unserved());
        }
        let Some(what) = unserved else {
            return self.unserved_since.set(None);
        };
        let since = self.unserved_since.get().unwrap_or(self.now.get());
        self.unserved_since.set(Some(since));
        let waits = Duration::from_nanos(next.unwrap_or(u64::MAX).saturating_sub(since));
        if waits > WAKE_BOUND {
            self.fail(Failure::LostWake(what));
        }
    }

    fn check_subject(
        &self,
        subject: &dyn Subject,
        any_busy: bool,
        next: Option<u64>,
    ) -> Option<Failure> {
        if !any_busy {
            if let Some(what) = subject.ready() {
                return Some(Failure::LostWake(what));
            }
        }
        let at = subject
            .deadline(epoch())?
            .saturating_duration_since(epoch());
        let late = Duration::from_nanos(next?).checked_sub(at)?;
        (late > self.settings.timer_bound).then_some(Failure::LateTimer(late))
    }

    /// Checks that no task has been ready for too long. A task may be one of a runtime that nobody
    /// drives, so this looks at runs with one runtime alone.
    pub(super) fn check_fairness(&self) {
        if self.subjects.borrow().len() != 1 || !self.settings.fairness {
            return;
        }
        let threads = self.threads.borrow();
        let works = |id: usize| {
            let thread = id.checked_sub(1).map(|at| &threads[at]);
            thread.is_some_and(|thread| !thread.is_passive())
        };
        let starved = self.tasks.borrow_mut().find_starved(self.now.get(), works);
        if let Some((task, polls)) = starved {
            drop(threads);
            self.fail(Failure::Starved { task, polls });
        }
    }

    /// All threads wait for ever. Runtimes that list their tasks first say what these wait for, in
    /// one more thread. The run fails after that, whatever their polls for it have changed: see
    /// `fail`.
    pub(super) fn deadlock(&self) {
        if let Some(threads) = self.deadlock.take() {
            return self.fail(Failure::Deadlock(threads));
        }
        let threads = self.waits();
        // As in `check`.
        let parts: Vec<_> = {
            let subjects = self.subjects.borrow();
            let parts = subjects.iter();
            parts
                .filter_map(|(host, part)| Some((*host, part.upgrade()?)))
                .collect()
        };
        let dumps = parts
            .into_iter()
            .filter_map(|(host, part)| Some((host, part.dump()?)));
        let dumps: Vec<_> = dumps.collect();
        let Some(&(host, _)) = dumps.first() else {
            return self.fail(Failure::Deadlock(threads));
        };
        *self.deadlock.borrow_mut() = Some(threads);
        let world = std::ptr::from_ref(self);
        let dump = move || {
            let lines = dumps.into_iter().flat_map(|(_, dump)| dump());
            let lines: Vec<_> = lines.collect();
            // SAFETY: the world outlives its threads.
            let world = unsafe { &*world };
            let mut threads = world.deadlock.take().unwrap_or_default();
            threads.extend(lines);
            world.fail(Failure::Deadlock(threads));
        };
        if self
            .spawn_on(host, Some("dump".into()), Box::new(dump))
            .is_err()
        {
            let threads = self.deadlock.take().unwrap_or_default();
            self.fail(Failure::Deadlock(threads));
        }
    }

    /// Describes the threads that have not ended.
    pub(super) fn waits(&self) -> Vec<String> {
        let threads = self.threads.borrow();
        let left = threads.iter().filter(|thread| thread.state != State::Over);
        left.map(Thread::describe).collect()
    }

    /// Ends the run with this failure, unless it has failed already. If a thread unwinds, its panic
    /// is the failure: the rest may be a consequence.
    pub(super) fn fail(&self, failure: Failure) {
        // A dump's polls may lead to other failures.
        let failure = match self.deadlock.take() {
            Some(threads) => Failure::Deadlock(threads),
            None => failure,
        };
        let failure = match self.first_panic() {
            Some((thread, panic)) if !matches!(failure, Failure::Panic { .. }) => {
                let Panic { message, place, .. } = panic;
                let message = format!("{message} (while it unwinds: {failure})");
                Failure::Panic {
                    thread,
                    message,
                    place,
                }
            }
            _ => failure,
        };
        self.record(0, failure.kind(), 0, 0);
        self.failure.borrow_mut().get_or_insert(failure);
    }

    /// Returns the first of the panics that go on, with the name of its thread.
    fn first_panic(&self) -> Option<(String, Panic)> {
        if !std::thread::panicking() {
            return None;
        }
        let threads = self.threads.borrow();
        let panics = threads
            .iter()
            .filter_map(|thread| Some((thread, thread.panics.first()?)));
        let first = panics.min_by_key(|(_, panic)| panic.number);
        first.map(|(thread, panic)| (thread.name().to_owned(), panic.clone()))
    }

    /// Forgets the panics that have begun: no thread unwinds, so all were caught.
    #[inline]
    pub(super) fn forget_caught_panics(&self) {
        if self.panics_go_on.get() && !std::thread::panicking() {
            self.panics_go_on.set(false);
            let mut threads = self.threads.borrow_mut();
            threads.iter_mut().for_each(|thread| thread.panics.clear());
        }
    }

    /// Checks what is left. The threads that have not ended are leaked (rule 6).
    pub(super) fn end(&self) {
        if self.failure.borrow().is_none() {
            let live = self.tasks.borrow().live();
            let subjects = self.subjects.borrow();
            let parts = subjects
                .iter()
                .filter(|(_, subject)| subject.strong_count() > 0)
                .count();
            if live > 0 {
                self.fail(Failure::TasksLeft(live));
            } else if parts > 0 {
                self.fail(Failure::PartsLeft(parts));
            }
        }
        self.run.end();
        self.threads.take();
    }
}
