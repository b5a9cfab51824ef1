//! A short wait before a thread parks, while such waits pay for themselves.
//!
//! A park and the wake-up that ends it cost as much processor time as hundreds of small tasks, and
//! often work comes soon: from a thread that waits for this CPU, or from one that was just woken.
//! So a worker without work may yield its CPU a few times before it parks, and look for work after
//! each yield. A won wait saves the park and its wake-up. A lost wait is paid on top of them.
//!
//! # When to wait
//!
//! A wait is *won* if a look found work in time, *lost* if no look did, and *late* if it took
//! longer than 200 µs, whatever it found. Work often comes in bursts. So a thread waits before each
//! park after a won wait. After lost ones it leaves out 1, 3, 7, and so on up to 1,023 parks.
//!
//! This suffices where a look costs little. Where each look is a system call, a thread may also
//! make *trials* ([`Backoff::with_trials`]). Nobody knows beforehand what a wake-up costs: that
//! depends on the machine, on who wakes, and on whether the CPU sleeps deeply. So a trial measures
//! it, in pairs of *rounds* of 32 parks: one round with waits as above, and one without. The
//! cheaper round is the one in which the process spent less processor time for each piece of work.
//! So the wake-ups that other threads of the process make count too.
//!
//! | state | waits | next state |
//! |---|---|---|
//! | *resting* | before no park | after 16 parks at first, later after 512, 2,048, 8,192, 32,768 parks: trial, or waiting for a thread without trials |
//! | *trial* | in each second round | at a lead of three pairs: resting if waits were costlier, by 3 % at least; waiting if they were not |
//! | *waiting* | before parks, as above | after 4,096 parks, later after 16,384 and 32,768: trial, or waiting |
//!
//! A late wait ends in the state resting. In a trial it counts as a lead of the rounds without
//! waits.
//!
//! # Rules
//!
//! 1. A wait yields and does not spin, so another thread that wants the CPU gets it. If that is a
//!    thread of another process, its time does not count in a trial: a client on the same CPU may
//!    answer in it.
//! 2. A wait ends after 50 µs: a park and its wake-up seldom cost more.
//! 3. After a late wait this thread rests: another thread kept the CPU meanwhile. If this thread
//!    had parked instead, the system could have woken it on another CPU. The first rest lasts for
//!    64 parks, and each later one twice as long as the one before, up to 1,024 parks. 64 won waits
//!    in a row forget one late wait.
//! 4. Where waits and parks cost the same, this thread waits: a won wait has the lower latency. If
//!    other threads of the process use much processor time, a trial may be a coin's toss. Then the
//!    cost of waits is small beside that time, and the latency is that of either outcome.
//! 5. A thread that parks only a few times makes no trial.
use crate::process_time;
use std::time::{Duration, Instant};
use sync_shim::thread;

/// The number of looks in a wait. They take some microseconds on an idle CPU. A model needs fewer.
const LOOKS: u32 = if cfg!(any(selvedge_loom, selvedge_shuttle)) {
    2
} else {
    20
};

/// The longest time of a wait.
const LONGEST_WAIT: Duration = Duration::from_micros(50);

/// A wait that takes longer than this is late.
const LATE: Duration = Duration::from_micros(200);

/// The first trial begins with the park with this number.
const FIRST: u32 = 16;

/// The number of parks in a round.
const ROUND: u32 = 32;

/// A trial ends when one outcome has so many pairs of rounds more than the other.
const DECIDES: i8 = 3;

/// The shortest and the longest state waiting, in parks. Each one in a row lasts four times as long
/// as the one before.
const WAITING: (u32, u32) = (4_096, 32_768);

/// The shortest and the longest rest after a trial, in parks. Each rest lasts four times as long as
/// the one before.
const RESTS: (u32, u32) = (512, 32_768);

/// The shortest and the longest rest after a late wait are two to this power.
const RESTS_IF_LATE: (u32, u32) = (6, 10);

/// So many won waits in a row forget one late wait.
const FORGETS_LATE: u32 = 64;

/// The longest pause after a lost wait is two to this power.
const LONGEST_PAUSE: u32 = 10;

/// Sets what a thread may spend before it parks: see [`Backoff`].
///
/// ```
/// use worker_idle::{Backoff, Wait};
///
/// let mut backoff = Backoff::eager().with(Wait::Power);
/// assert!(!backoff.is_due()); // It never waits.
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Wait {
    /// Waits while waits find work, and cost no processor time where trials are made.
    #[default]
    Adaptive,
    /// Waits up to 50 µs before each park, unless a wait was late.
    Latency,
    /// Does not wait. Each time without work ends in a park.
    Power,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Resting,
    Trial,
    Waiting,
}

/// The processor time of a round, and the work that the thread did for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Spent {
    time: Duration,
    work: u32,
}

impl Spent {
    /// Returns whether a piece of work cost more than in the other round, by 3 % at least.
    fn is_costlier_than(self, other: Self) -> bool {
        let cost = |of: Self, work: u32| of.time.as_nanos() * u128::from(work.max(1));
        cost(self, other.work) * 33 > cost(other, self.work) * 34
    }
}

/// Decides whether a thread yields its CPU a few times before it parks, by what such waits have
/// brought so far.
///
/// A park and the wake-up that ends it cost two threads as much as hundreds of small tasks. Often
/// work comes soon: from a thread that waits for this CPU, or from one that was just woken. So a
/// thread may gain by a few yields with a look for work after each. If such waits gain nothing,
/// they become rare.
///
/// ```
/// use worker_idle::Backoff;
///
/// let (sender, jobs) = std::sync::mpsc::channel();
/// std::thread::spawn(move || (0..100).for_each(|n| sender.send(n).unwrap()));
/// let (mut backoff, mut sum) = (Backoff::new(), 0);
/// loop {
///     let mut job = jobs.try_recv().ok();
///     if job.is_none() && backoff.is_due() {
///         backoff.wait(|| {
///             job = jobs.try_recv().ok();
///             job.is_some()
///         });
///     }
///     match job.or_else(|| jobs.recv().ok()) { // `recv` parks.
///         Some(n) => sum += n,
///         None => break,
///     }
/// }
/// assert_eq!(sum, 4950);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    wait: Wait,
    makes_trials: bool,
    state: State,
    /// The number of parks after which the state, or the round of a trial, ends. 0 and 1 are the
    /// next park.
    left: u32,
    /// The length of the next rest after a trial.
    rest: u32,
    /// The length of the next state waiting.
    waiting: u32,
    /// The number of late waits that are not forgotten.
    late: u32,
    /// The number of waits that were won in a row.
    won_in_a_row: u32,
    /// The next wait is before the park with this number from now, where waits are made at all. 0
    /// and 1 are the next park.
    pause: u32,
    /// The last pause was two to this power. 0 after a won wait.
    doublings: u32,
    /// The number of the round in the trial, modulo 4.
    round: u8,
    /// The number of pairs of rounds in which waits were costlier, less the number of the others.
    costlier: i8,
    /// The processor time of the process when the round began.
    round_begun: Duration,
    /// The work of the round so far.
    work: u32,
    /// The first round of the pair.
    first: Spent,
}

impl Backoff {
    /// Creates a state that knows of no waits yet.
    pub const fn new() -> Self {
        const NOTHING: Spent = Spent {
            time: Duration::ZERO,
            work: 0,
        };
        Self {
            wait: Wait::Adaptive,
            makes_trials: false,
            state: State::Resting,
            left: FIRST,
            rest: RESTS.0,
            waiting: WAITING.0,
            late: 0,
            won_in_a_row: 0,
            pause: 0,
            doublings: 0,
            round: 0,
            costlier: 0,
            round_begun: Duration::ZERO,
            work: 0,
            first: NOTHING,
        }
    }

    /// Creates a state in which even the first park is preceded by a wait.
    pub const fn eager() -> Self {
        Self {
            left: 0,
            ..Self::new()
        }
    }

    /// Makes trials, which compare parks with waits and without. Use it if a look is a system call.
    #[must_use]
    pub const fn with_trials(mut self) -> Self {
        self.makes_trials = true;
        self
    }

    /// Sets what a wait may spend. Another rule than before begins in the state resting.
    #[must_use]
    pub const fn with(mut self, wait: Wait) -> Self {
        if self.wait as u8 != wait as u8 {
            self.wait = wait;
            self.state = State::Resting;
            self.left = if matches!(wait, Wait::Latency) {
                0
            } else {
                FIRST
            };
            self.pause = 0;
        }
        self
    }

    /// Returns what a wait may spend.
    pub const fn rule(&self) -> Wait {
        self.wait
    }

    /// Counts pieces of work that were done since the last call: tasks, jobs, events. A trial
    /// compares the costs of a piece of work, so a thread with trials calls this at each park.
    #[inline]
    pub fn add_work(&mut self, pieces: u32) {
        self.work = self.work.saturating_add(pieces);
    }

    /// Returns whether to [`wait`](Self::wait) before the coming park. Call it before each park.
    ///
    /// With trials this reads the processor time of the process, once in 32 calls at most.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.is_due_at(process_time::now)
    }

    /// Does what [`is_due`](Self::is_due) does. `time` returns the processor time of the process.
    #[inline]
    fn is_due_at(&mut self, time: impl FnOnce() -> Duration) -> bool {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 {
            self.end(time);
        }
        let may = match (self.wait, self.state) {
            (Wait::Power, _) | (_, State::Resting) => false,
            (_, State::Waiting) => true,
            (_, State::Trial) => self.waits_in_round(),
        };
        if may {
            self.pause = self.pause.saturating_sub(1);
        }
        may && self.pause == 0
    }

    /// Ends the state, or the round of a trial. `time` returns the processor time of the process.
    #[cold]
    fn end(&mut self, time: impl FnOnce() -> Duration) {
        match self.wait {
            Wait::Adaptive if self.makes_trials => {}
            Wait::Adaptive | Wait::Latency => return self.begin(State::Waiting, WAITING.1),
            Wait::Power => return self.begin(State::Resting, WAITING.1),
        }
        let now = time();
        let spent = Spent {
            time: now.saturating_sub(self.round_begun),
            work: self.work,
        };
        (self.round_begun, self.work) = (now, 0);
        if self.state != State::Trial {
            self.round = 0;
            self.costlier = 0;
            return self.begin(State::Trial, ROUND);
        }
        if self.round % 2 == 0 {
            self.first = spent;
        } else {
            let (with, without) = match self.waits_in_round() {
                true => (spent, self.first),
                false => (self.first, spent),
            };
            self.costlier += if with.is_costlier_than(without) {
                1
            } else {
                -1
            };
        }
        self.round = (self.round + 1) % 4;
        self.left = ROUND;
        if self.costlier == DECIDES {
            self.rest();
        } else if self.costlier == -DECIDES {
            self.rest = RESTS.0;
            self.begin(State::Waiting, self.waiting);
            self.waiting = WAITING.1.min(4 * self.waiting);
        }
    }

    /// Returns whether the round has waits: with, without, without, with. So a load that grows
    /// favours neither.
    fn waits_in_round(&self) -> bool {
        matches!(self.round, 0 | 3)
    }

    fn begin(&mut self, state: State, parks: u32) {
        self.state = state;
        self.left = parks;
    }

    /// Rests for longer than the last time.
    fn rest(&mut self) {
        self.begin(State::Resting, self.rest);
        self.rest = RESTS.1.min(4 * self.rest);
        self.waiting = WAITING.0;
    }

    /// Yields the CPU and then calls `look`, up to 20 times. The wait ends early if a look returns
    /// true, or after 50 µs.
    ///
    /// Returns what the last look found. Takes some microseconds if no other thread wants the CPU.
    pub fn wait(&mut self, look: impl FnMut() -> bool) -> bool {
        let mut looks = 0;
        let goes_on = |begun: Instant| {
            looks += 1;
            looks <= LOOKS && (looks == 1 || !has_passed(LONGEST_WAIT, begun))
        };
        self.wait_while(goes_on, look)
    }

    /// Waits as [`wait`](Self::wait) does, but bounds the wait by this `limit`, and by 50 µs,
    /// instead of by a number of looks. Use it if a look is a system call.
    ///
    /// The rules are those of [`wait`](Self::wait), except that the first look comes before the
    /// first yield.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let mut backoff = worker_idle::Backoff::eager();
    /// assert!(backoff.is_due());
    /// assert!(!backoff.wait_for(Duration::from_micros(20), || false));
    /// ```
    pub fn wait_for(&mut self, limit: Duration, mut look: impl FnMut() -> bool) -> bool {
        if look() {
            self.won();
            return true;
        }
        let limit = limit.min(LONGEST_WAIT);
        self.wait_while(|begun| sync_shim::time::since(begun) < limit, look)
    }

    fn wait_while(
        &mut self,
        mut goes_on: impl FnMut(Instant) -> bool,
        mut look: impl FnMut() -> bool,
    ) -> bool {
        let begun = sync_shim::time::now();
        while goes_on(begun) {
            yield_now();
            let found = look();
            if is_late(begun) {
                self.late();
                return found;
            }
            if found {
                self.won();
                return true;
            }
        }
        self.lost();
        false
    }

    fn won(&mut self) {
        self.doublings = 0;
        self.won_in_a_row += 1;
        if self.won_in_a_row == FORGETS_LATE {
            self.won_in_a_row = 0;
            self.late = self.late.saturating_sub(1);
        }
    }

    fn lost(&mut self) {
        self.won_in_a_row = 0;
        if self.wait == Wait::Adaptive {
            self.doublings = LONGEST_PAUSE.min(self.doublings + 1);
            self.pause = 1 << self.doublings;
        }
    }

    /// Rests after a late wait (rule 3).
    fn late(&mut self) {
        self.won_in_a_row = 0;
        let (shortest, longest) = RESTS_IF_LATE;
        let rest = 1 << (shortest + self.late).min(longest);
        self.late = (self.late + 1).min(longest - shortest);
        if self.state == State::Trial {
            self.rest();
        }
        // So many parks have no wait: the one after them ends the state.
        let left = if self.state == State::Resting {
            self.left
        } else {
            0
        };
        self.begin(State::Resting, left.max(rest) + 1);
    }
}

/// Yields, except in a model. If a model yielded here, the checker would always run another thread
/// next. It would never explore the executions in which this thread parks before the other
/// thread pushes.
fn yield_now() {
    if cfg!(not(any(selvedge_loom, selvedge_shuttle))) {
        thread::yield_now();
    }
}

/// Returns whether this time has passed since then. In a model no time passes.
fn has_passed(time: Duration, since: Instant) -> bool {
    cfg!(not(any(selvedge_loom, selvedge_shuttle))) && sync_shim::time::since(since) >= time
}

/// Returns whether a wait is late.
fn is_late(begun: Instant) -> bool {
    has_passed(LATE, begun)
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
