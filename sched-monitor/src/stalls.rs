//! The duty that reports long polls.
//!
//! 1. A poll is *stalled* once it has lasted for the threshold. It is reported then, and again each
//!    time its age has doubled. A worker that is idle, looks for a task, or is in an annotated call
//!    is never reported. Nor is a poll that has ended before the round.
//!
//!    The duty asks for the subject before and after it reads the cause. If the second answer is
//!    another poll or none, the duty reports nothing. If the worker has begun an annotated call in
//!    between, the call may have ended again, and the cause may be that of the call: then the
//!    report says that the cause is unknown.
//! 2. The number of reports in a minute is limited, over all workers. The next report says how many
//!    reports the limit has held back.
//! 3. When a poll has lasted for half of the threshold, the duty reads the CPU times of the poll's
//!    thread, and for a report it reads them again. The difference shows whether the thread
//!    computed, or waited for a CPU. If the monitor itself had no CPU in between, there is one
//!    reading only: then the duty looks again half a threshold later.
//! 4. A poll is not stalled by its thread's wait for a CPU, on a busy machine or beyond a
//!    container's quota. So the poll is reported once it has lasted for the threshold without the
//!    waits between the two readings. The time before the first reading counts as at most three
//!    quarters of the threshold, because the thread may have waited then, as the monitor did.
//! 5. With the feature `backtrace` the duty captures the thread's stack for the report. So the
//!    thread is interrupted once for each report, and for none that is held back.
use crate::{Cause, Duty, Observed, Round, State, Times, cause::Reading};
use std::{fmt, time::Duration};

/// How long the duty waits for a stack.
const CAPTURE_LIMIT: Duration = Duration::from_millis(10);

/// The facts that a scheduler knows of a worker's poll.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// The scheduler's number of the task that is polled.
    pub task: Option<u64>,
    /// The system's id of the thread that polls the task; see [`thread_id`](crate::thread_id).
    pub thread: Option<u32>,
    /// The number of annotated calls that the worker has begun, also of calls during which another
    /// thread has the worker. Read it before the other facts: otherwise it may count a call that
    /// begins after they were read.
    pub calls: u64,
}

/// A stalled poll, as reported by [`Stalls`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stall {
    /// The worker's index.
    pub worker: usize,
    /// The worker's thread, and the task that the thread polls.
    pub subject: Subject,
    /// How long the poll has lasted, at least: since the monitor first observed it.
    pub lasted: Duration,
    /// Why the poll lasts.
    pub cause: Cause,
    /// How much CPU time the thread has had, and how long it has waited for a CPU, since the poll
    /// had lasted for half of the threshold. A wait that has not ended counts only if the thread
    /// has not blocked meanwhile, and does not block now. `None` if the system does not report the
    /// times.
    pub times: Option<Times>,
    /// How many reports the limit has held back since the last delivered report.
    pub held_back: u64,
    /// The number of the poll, as in [`Sample::polls`](crate::Sample::polls). If the worker has
    /// begun another poll meanwhile, the cause and the stack may be of that other poll.
    pub poll: u64,
    /// The stack of the thread, if it was captured: with the feature `backtrace`, on Linux.
    pub stack: Option<crate::Stack>,
}

/// Reports each stalled poll, with its cause.
///
/// ```
/// use sched_monitor::{Duty, Observed, Round, Sample, Stall, Stalls, State, Subject};
/// use std::{sync::mpsc, time::Duration};
///
/// let (sender, reports) = mpsc::channel();
/// let subject = |_worker| Some(Subject { task: Some(7), thread: None, calls: 0 });
/// let report = move |stall: &Stall| sender.send(stall.clone()).unwrap();
/// let mut duty = Stalls::new(subject, report).threshold(Duration::from_millis(25));
///
/// // The monitor makes the rounds. The worker is in one poll all the time.
/// let sample = Sample { state: State::Polling, polls: 1, ..Sample::default() };
/// let workers = [Observed { sample, ..Observed::default() }];
/// for millis in (0..=50).step_by(5) {
///     duty.look(&Round { now: Duration::from_millis(millis), workers: &workers });
/// }
/// let lasted: Vec<u128> = reports.try_iter().map(|stall| stall.lasted.as_millis()).collect();
/// assert_eq!(lasted, [25, 50]);
/// ```
pub struct Stalls<S, F> {
    threshold: Duration,
    per_minute: u32,
    subject: S,
    report: F,
    workers: Vec<Watched>,
    /// The minute in progress: when it began, and the number of reports in it.
    minute: (Duration, u32),
    held_back: u64,
}

/// The duty's record of a worker.
#[derive(Clone, Copy, Default)]
struct Watched {
    /// The poll that the other fields describe.
    poll: u64,
    /// The age at which the poll is reported next.
    next: Duration,
    /// The thread's times at half of the threshold, and the age of the poll at that moment.
    before: Option<(Reading, Duration)>,
    has_read: bool,
}

impl<S, F> Stalls<S, F>
where
    S: FnMut(usize) -> Option<Subject> + Send,
    F: FnMut(&Stall) + Send,
{
    /// Creates the duty, with a threshold of 25 ms and at most five reports a minute. `report`
    /// delivers a report. `subject` returns the task that a worker polls and its thread, or `None`
    /// for a worker that polls no task or is in an annotated call.
    pub fn new(subject: S, report: F) -> Self {
        Self {
            threshold: Duration::from_millis(25),
            per_minute: 5,
            subject,
            report,
            workers: Vec::new(),
            minute: (Duration::ZERO, 0),
            held_back: 0,
        }
    }

    /// Sets how long a poll lasts before it is reported. A threshold of zero becomes 1 ns.
    #[must_use]
    pub fn threshold(mut self, threshold: Duration) -> Self {
        self.threshold = threshold.max(Duration::from_nanos(1));
        self
    }

    /// Sets how many reports are delivered in a minute at most.
    #[must_use]
    pub fn per_minute(mut self, reports: u32) -> Self {
        self.per_minute = reports;
        self
    }

    /// Looks at one worker. Returns the time until the duty wants to look again.
    fn look_at(&mut self, worker: usize, seen: &Observed, now: Duration) -> Option<Duration> {
        let watched = &mut self.workers[worker];
        if seen.sample.state != State::Polling {
            watched.next = Duration::ZERO; // The record begins anew, even if the poll goes on.
            return None;
        }
        if watched.poll != seen.sample.polls || watched.next.is_zero() {
            *watched = Watched {
                poll: seen.sample.polls,
                next: self.threshold,
                ..Watched::default()
            };
        }
        let age = now.saturating_sub(seen.poll_since);
        let half = self.threshold / 2;
        if age < half {
            return Some(half - age);
        }
        if !watched.has_read {
            watched.has_read = true;
            let subject = (self.subject)(worker);
            let read = subject.and_then(|is| Reading::of(is.thread?));
            watched.before = read.map(|reading| (reading, age));
            if watched.before.is_some() && age >= watched.next {
                watched.next = age.saturating_add(half);
            }
        }
        if age >= watched.next {
            // The longest age cannot double.
            while watched.next <= age && watched.next < Duration::MAX {
                watched.next = watched.next.saturating_mul(2);
            }
            self.deliver(worker, age, now);
        }
        let next = self.workers[worker].next;
        Some(next.saturating_sub(age))
    }

    fn deliver(&mut self, worker: usize, lasted: Duration, now: Duration) {
        const MINUTE: Duration = Duration::from_secs(60);
        let Some(subject) = (self.subject)(worker) else {
            return;
        };
        let reading = subject.thread.and_then(Reading::of);
        let readings = self.workers[worker].before.zip(reading);
        let judged = readings.map(|((before, _), now)| now.since(before));
        let known = judged.and_then(|(times, is_covered)| is_covered.then_some(times));
        let mut times = judged.map(|(times, _)| times);
        let mut cause = subject
            .thread
            .map_or(Cause::Unknown, |id| Cause::of(id, known));
        if matches!(cause, Cause::Blocked { .. }) {
            // It may have blocked since before the first reading: then it did not wait for a CPU.
            times = readings.map(|((before, _), now)| now.counted_since(before));
        }
        if let (Some(((_, age), _)), Some(times)) = (readings, times) {
            let missing = missing(self.threshold, lasted, age, times.runnable);
            if !missing.is_zero() {
                let pause = missing.max(self.threshold / 4);
                self.workers[worker].next = lasted.saturating_add(pause);
                return;
            }
        }
        if now.saturating_sub(self.minute.0) >= MINUTE {
            self.minute = (now, 0);
        }
        if self.minute.1 >= self.per_minute {
            self.held_back += 1;
            return;
        }
        let Some(after) = (self.subject)(worker) else {
            return;
        };
        if (after.task, after.thread) != (subject.task, subject.thread) {
            return;
        }
        if after.calls != subject.calls {
            (cause, times) = (Cause::Unknown, None);
        }
        self.minute.1 += 1;
        let stall = Stall {
            worker,
            subject,
            lasted,
            cause,
            times,
            held_back: std::mem::take(&mut self.held_back),
            poll: self.workers[worker].poll,
            // This comes after the cause, because the signal ends the wait of a thread that blocks.
            stack: (subject.thread).and_then(|id| crate::Stack::capture(id, CAPTURE_LIMIT)),
        };
        (self.report)(&stall);
    }
}

/// Returns how much a poll lacks of the threshold without its waits (rule 4). The poll has lasted
/// for `lasted`, of which it waited for `waited` since it had lasted for `age`. Waits of an eighth
/// of the threshold are left in: they take turns with other threads.
fn missing(threshold: Duration, lasted: Duration, age: Duration, waited: Duration) -> Duration {
    let unseen = age.saturating_sub(threshold / 4 * 3);
    let own = lasted.saturating_sub(unseen).saturating_sub(waited);
    match threshold.saturating_sub(own) {
        few if few <= threshold / 8 => Duration::ZERO,
        missing => missing,
    }
}

impl<S, F> Duty for Stalls<S, F>
where
    S: FnMut(usize) -> Option<Subject> + Send,
    F: FnMut(&Stall) + Send,
{
    fn look(&mut self, round: &Round<'_>) -> Option<Duration> {
        self.workers.resize(round.workers.len(), Watched::default());
        let workers = round.workers.iter().enumerate();
        let wishes = workers.filter_map(|(worker, seen)| self.look_at(worker, seen, round.now));
        wishes.min()
    }
}

impl<S, F> fmt::Debug for Stalls<S, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stalls")
            .field("threshold", &self.threshold)
            .field("per_minute", &self.per_minute)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn waits_do_not_count_as_a_part_of_the_threshold() {
        let missing = |lasted, age, waited| missing(ms(24), ms(lasted), ms(age), ms(waited));
        assert_eq!(missing(24, 12, 0), ms(0));
        assert_eq!(missing(24, 12, 3), ms(0), "a short wait");
        assert_eq!(missing(24, 12, 12), ms(12));
        assert_eq!(missing(48, 12, 24), ms(0));
        // The monitor came late: of the first 100 ms at most 18 count.
        assert_eq!(missing(103, 100, 0), ms(0));
        assert_eq!(missing(103, 100, 3), ms(6));
        // A thread that gets a quarter of a CPU is reported in the end.
        assert_eq!(missing(40, 16, 18), ms(0));
        assert_eq!(missing(u64::MAX / 2_000_000, 12, 0), ms(0));
    }
}
