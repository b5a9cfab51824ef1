//! The monitor: rounds of samples, and the duties that look at them.
//!
//! 1. In a *round* the monitor takes a [`Sample`] of each worker and compares it with the worker's
//!    last one. So the monitor knows since when the worker has been in the same poll, run or call.
//!    Then each [`Duty`] looks at the round.
//! 2. The *pause* before the next round begins at [`MIN_PAUSE`] and doubles up to [`MAX_PAUSE`]. A
//!    duty may request an earlier round. When a worker becomes busy after all workers were idle,
//!    the pause begins at [`MIN_PAUSE`] again.
//! 3. After all workers were idle for [`LINGER`], the monitor sleeps until a worker rings
//!    ([`Doorbell`]).
//! 4. Time comes in as an argument of [`Monitor::round`]. So a test steps the rounds by hand.
//! 5. A duty that panics is dropped, and the others continue, even if its drop panics too.
use crate::Doorbell;
use std::{fmt, time::Duration};
use sync_shim::panics;

/// The shortest pause between two rounds.
pub(crate) const MIN_PAUSE: Duration = Duration::from_millis(1);

/// The longest pause between two rounds.
const MAX_PAUSE: Duration = Duration::from_millis(10);

/// How long all workers are idle before the monitor sleeps.
const LINGER: Duration = Duration::from_millis(50);

/// The state of a worker at the moment of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// The worker sleeps, or has no thread yet. If all workers are idle, the monitor sleeps.
    #[default]
    Idle,
    /// The worker is awake, and looks for a task.
    Awake,
    /// The worker polls a task.
    Polling,
    /// The worker polls a task that is in an annotated call, which may block.
    Calling,
}

/// The words that a worker publishes, as the monitor has read them.
///
/// Only the worker writes these words. The monitor reads them while the worker continues, so they
/// need not agree with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// The state of the worker.
    pub state: State,
    /// The number of polls that the worker has begun.
    pub polls: u64,
    /// The number of runs that the worker has begun. A run is a poll together with the polls after
    /// it that inherit its time slice. Equal to `polls` if no poll inherits a time slice.
    pub runs: u64,
    /// The number of annotated calls that the worker has begun, of those that [`State::Calling`]
    /// shows.
    pub calls: u64,
}

/// The workers of a scheduler, as a monitor sees them.
pub trait Workers: Send + Sync {
    /// Returns the number of workers, which does not change.
    fn count(&self) -> usize;

    /// Reads a worker's words. Costs a few loads, and does not interrupt the worker.
    fn sample(&self, worker: usize) -> Sample;
}

/// A worker in a round: its sample, and the times since which its poll, run and call have been the
/// same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Observed {
    /// The sample of this round.
    pub sample: Sample,
    /// The time of the round in which the poll in progress was first observed.
    pub poll_since: Duration,
    /// The time of the round in which the run in progress was first observed.
    pub run_since: Duration,
    /// The time of the round in which the annotated call in progress was first observed.
    pub call_since: Duration,
}

impl Observed {
    /// Updates the worker by a new sample.
    fn update(&mut self, sample: Sample, now: Duration) {
        let before = std::mem::replace(&mut self.sample, sample);
        let in_poll = |state| matches!(state, State::Polling | State::Calling);
        let is_same_poll = sample.polls == before.polls && in_poll(before.state);
        if !is_same_poll {
            self.poll_since = now;
        }
        if sample.runs != before.runs || sample.state == State::Idle {
            self.run_since = now;
        }
        let is_same_call = sample.calls == before.calls && before.state == State::Calling;
        if !is_same_call || sample.state != State::Calling {
            self.call_since = now;
        }
    }
}

/// A round of the monitor, as its duties see it.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    /// The time of the round, since an arbitrary moment before the first round.
    pub now: Duration,
    /// The workers, by index.
    pub workers: &'a [Observed],
}

impl Round<'_> {
    /// Returns whether no worker is idle.
    pub fn all_busy(&self) -> bool {
        let idle = |worker: &Observed| worker.sample.state == State::Idle;
        !self.workers.iter().any(idle)
    }
}

/// A duty of a monitor: it looks at each round, and acts.
///
/// A duty runs on the monitor's thread and delays the other duties, so it must not block. If a duty
/// panics, the monitor drops it.
///
/// ```
/// use sched_monitor::{Duty, Round};
/// use std::time::Duration;
///
/// /// Fires the timers of a worker whose poll has lasted for 10 ms.
/// struct FireTimers<F>(F);
///
/// impl<F: FnMut(usize) + Send> Duty for FireTimers<F> {
///     fn look(&mut self, round: &Round<'_>) -> Option<Duration> {
///         let limit = Duration::from_millis(10);
///         for (worker, seen) in round.workers.iter().enumerate() {
///             if round.now - seen.poll_since >= limit {
///                 (self.0)(worker);
///             }
///         }
///         None
///     }
/// }
/// ```
pub trait Duty: Send {
    /// Looks at a round. If it returns a time, the next round comes after that time at the latest,
    /// but not within 1 ms.
    fn look(&mut self, round: &Round<'_>) -> Option<Duration>;
}

/// The wait of a monitor until its next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a monitor without pauses spins"]
pub enum Pause {
    /// The monitor waits for this time.
    For(Duration),
    /// The monitor sleeps until a worker becomes busy.
    UntilBusy,
}

/// Watches a scheduler's workers: samples them in rounds, and lets its duties look.
///
/// See the [front page](crate) for a whole example.
///
/// ```
/// use sched_monitor::{Monitor, Pause, Sample, State, Workers};
/// use std::time::Duration;
///
/// struct OneIdle;
///
/// impl Workers for OneIdle {
///     fn count(&self) -> usize {
///         1
///     }
///     fn sample(&self, _: usize) -> Sample {
///         Sample { state: State::Idle, ..Sample::default() }
///     }
/// }
///
/// let mut monitor = Monitor::new(OneIdle);
/// assert!(matches!(monitor.round(Duration::ZERO), Pause::For(_)));
/// assert_eq!(monitor.round(Duration::from_secs(1)), Pause::UntilBusy);
/// ```
pub struct Monitor<W> {
    workers: W,
    duties: Vec<Box<dyn Duty>>,
    observed: Vec<Observed>,
    pause: Duration,
    /// The time of the first round since which each round has found all workers idle, and no poll
    /// begun since the round before.
    idle_since: Option<Duration>,
    rounds: u64,
}

impl<W: Workers> Monitor<W> {
    /// Creates a monitor without duties.
    pub fn new(workers: W) -> Self {
        Self {
            observed: vec![Observed::default(); workers.count()],
            workers,
            duties: Vec::new(),
            pause: MIN_PAUSE,
            idle_since: None,
            rounds: 0,
        }
    }

    /// Adds a duty. Each round calls the duties in the order in which they were added.
    #[must_use]
    pub fn duty(mut self, duty: impl Duty + 'static) -> Self {
        self.duties.push(Box::new(duty));
        self
    }

    /// Samples the workers, and lets each duty look. The caller passes no earlier `now` than in the
    /// round before.
    pub fn round(&mut self, now: Duration) -> Pause {
        let (mut all_idle, mut changed) = (true, false);
        for (worker, seen) in self.observed.iter_mut().enumerate() {
            let sample = self.workers.sample(worker);
            if self.rounds == 0 {
                // The monitor knows nothing of the time before the first round.
                *seen = Observed {
                    sample,
                    poll_since: now,
                    run_since: now,
                    call_since: now,
                };
            }
            all_idle &= sample.state == State::Idle;
            changed |= sample.polls != seen.sample.polls;
            seen.update(sample, now);
        }
        self.rounds += 1;
        let round = Round {
            now,
            workers: &self.observed,
        };
        let (mut wish, mut next) = (MAX_PAUSE, 0);
        while let Some(duty) = self.duties.get_mut(next) {
            match panics::catch(|| duty.look(&round)) {
                Ok(looked) => {
                    wish = wish.min(looked.unwrap_or(MAX_PAUSE));
                    next += 1;
                }
                Err(payload) => {
                    panics::discard(payload);
                    let failed = self.duties.remove(next);
                    panics::contain(|| drop(failed));
                }
            }
        }
        if !all_idle || changed {
            let was_idle = self.idle_since.take().is_some();
            self.pause = if was_idle && !all_idle {
                MIN_PAUSE
            } else {
                (self.pause * 2).min(MAX_PAUSE)
            };
        } else if now.saturating_sub(*self.idle_since.get_or_insert(now)) >= LINGER {
            return Pause::UntilBusy;
        } else {
            self.pause = MAX_PAUSE;
        }
        Pause::For(self.pause.min(wish).max(MIN_PAUSE))
    }

    /// Runs rounds until `bell` is stopped. This is the body of the monitor's thread.
    pub fn run(mut self, bell: &Doorbell) {
        let begun = sync_shim::time::now();
        while !bell.is_stopped() {
            match self.round(sync_shim::time::since(begun)) {
                Pause::For(limit) => bell.pause(limit),
                Pause::UntilBusy => {
                    let Self { workers, .. } = &self;
                    let is_idle = |worker| workers.sample(worker).state == State::Idle;
                    bell.sleep(|| (0..workers.count()).all(is_idle));
                }
            }
        }
    }
}

impl<W> fmt::Debug for Monitor<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor")
            .field("duties", &self.duties.len())
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}
