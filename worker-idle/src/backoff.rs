//! A short wait before a thread parks, while such waits cost less processor time than they save.
//!
//! A park and the wake-up that ends it cost as much processor time as hundreds of small tasks, and
//! often work comes soon: from a thread that waits for this CPU, or from one that was just woken.
//! So a worker without work may yield its CPU a few times before it parks, and look for work after
//! each yield. A won wait saves the park. A lost wait is paid on top of it.
//!
//! # When a wait pays
//!
//! A thread keeps three means, in which the newest value counts for an eighth: what share of its
//! waits is *won*, what processor time a wait costs, and what processor time a park costs. Waits
//! pay as long as
//!
//! ```text
//! cost of a wait < share of won waits * worth of a won wait
//! ```
//!
//! | [`Wait`] | worth of a won wait |
//! |---|---|
//! | `Adaptive` | what a park costs, and half as much again: after a sleep the caches are cold |
//! | `Latency` | 50 µs: so much processor time may be spent to save a wake-up's latency |
//! | `Power` | nothing: there are no waits |
//!
//! | outcome of a wait | condition | the next wait |
//! |---|---|---|
//! | *won* | a look found work in time | before the next park |
//! | *lost* | no look found work | before the next park if waits pay; else after a pause of 2, 4, … 1,024 parks |
//! | *late* | the wait took longer than 200 µs, whatever it found | after a pause of at least 64, 128, … 1,024 parks |
//!
//! # Rules
//!
//! 1. A wait yields and does not spin, so another thread that wants the CPU gets it. The time of
//!    that thread is not part of the cost of the wait: a client on the same CPU may answer in it.
//! 2. A wait ends after the worth of a won wait. So even before the means are known, a wait costs
//!    no more than it can save.
//! 3. A late wait is a loss, whatever it found: another thread kept the CPU meanwhile. If this
//!    thread had parked instead, the system could have woken it on another CPU. Late waits become
//!    rarer with each late wait. 64 won waits in a row forget one late wait.
//! 4. The first wait is before the 16th park: a thread that parks only a few times gains nothing.
//! 5. A reading of the thread's processor time is a system call. So it is read for each eighth wait
//!    and each 64th park. Where the system does not tell it, a wait costs the time that it
//!    takes, and a park 10 µs.
use crate::thread_time;
use std::time::{Duration, Instant};
use sync_shim::thread;

/// The number of looks in a wait. They take some microseconds on an idle CPU. A model needs fewer.
const LOOKS: u32 = if cfg!(any(selvedge_loom, selvedge_shuttle)) {
    2
} else {
    20
};

/// A wait that takes longer than this is late.
const LATE: Duration = Duration::from_micros(200);

/// The first pause: the first wait is before the park with this number.
const FIRST: u32 = 16;

/// The longest pause is two to this power.
const LONGEST: u32 = 10;

/// The pause after the first late wait is at least two to this power.
const AFTER_LATE: u32 = 6;

/// So many won waits in a row forget one late wait.
const FORGETS_LATE: u32 = 64;

/// The cost of a park in nanoseconds, before one was measured.
const PARK_COST: u32 = 10_000;

/// The worth of a won wait under [`Wait::Latency`], and the largest cost that a mean counts, in
/// nanoseconds.
const MOST: u32 = 50_000;

/// Measures one wait of so many.
const MEASURED: u32 = 8;

/// Measures one park of so many.
const MEASURED_PARKS: u32 = 64;

/// The share of won waits if all are won.
const ALL: u32 = 1 << 16;

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
    /// Waits while that costs less processor time than it saves.
    #[default]
    Adaptive,
    /// Waits while a saved wake-up costs at most 50 µs of processor time.
    Latency,
    /// Does not wait. Each time without work ends in a park.
    Power,
}

/// Decides whether a thread yields its CPU a few times before it parks, by what such waits cost
/// and save.
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
    /// The next wait is before the park with this number from now. 0 and 1 are the next park.
    pause: u32,
    /// The last pause was two to this power. 0 if waits pay.
    doublings: u32,
    /// The number of late waits that are not forgotten.
    late: u32,
    /// The number of waits that were won in a row.
    won_in_a_row: u32,
    /// The share of waits that are won, of [`ALL`].
    won: u32,
    /// The mean cost of a wait in nanoseconds of processor time.
    wait_cost: u32,
    /// The mean cost of a park in nanoseconds of processor time.
    park_cost: u32,
    waits: u32,
    parks: u32,
}

impl Backoff {
    /// Creates a state that knows of no waits yet.
    pub const fn new() -> Self {
        Self {
            wait: Wait::Adaptive,
            pause: FIRST,
            doublings: 0,
            late: 0,
            won_in_a_row: 0,
            won: ALL,
            wait_cost: 0,
            park_cost: PARK_COST,
            waits: 0,
            parks: 0,
        }
    }

    /// Creates a state in which even the first park is preceded by a wait.
    pub const fn eager() -> Self {
        Self {
            pause: 0,
            ..Self::new()
        }
    }

    /// Sets what a wait may spend.
    #[must_use]
    pub const fn with(mut self, wait: Wait) -> Self {
        self.wait = wait;
        self
    }

    /// Returns what a wait may spend.
    pub const fn rule(&self) -> Wait {
        self.wait
    }

    /// Returns whether to [`wait`](Self::wait) before the coming park. Call it before each park.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0 && !matches!(self.wait, Wait::Power)
    }

    /// Yields the CPU and then calls `look`, up to 20 times. The wait ends early if a look returns
    /// true, or if it has taken as long as a won wait is worth.
    ///
    /// Returns what the last look found. Takes some microseconds if no other thread wants the CPU.
    pub fn wait(&mut self, look: impl FnMut() -> bool) -> bool {
        let (mut looks, limit) = (0, self.longest());
        let goes_on = |begun: Instant| {
            looks += 1;
            looks <= LOOKS && (looks == 1 || !has_passed(limit, begun))
        };
        self.measure_wait(|backoff| backoff.wait_while(goes_on, look))
    }

    /// Waits as [`wait`](Self::wait) does, but bounds the wait by this `limit` instead of by a
    /// number of looks. Use it if a look is a system call.
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
        let limit = limit.min(self.longest());
        self.measure_wait(|backoff| {
            if look() {
                backoff.won();
                return true;
            }
            backoff.wait_while(|begun| begun.elapsed() < limit, look)
        })
    }

    /// Parks by `park`, and measures some of these parks. Without this call a park counts as 10 µs
    /// of processor time.
    ///
    /// ```
    /// use std::{thread, time::Duration};
    ///
    /// let mut backoff = worker_idle::Backoff::new();
    /// backoff.park(|| thread::park_timeout(Duration::from_millis(1)));
    /// ```
    pub fn park<R>(&mut self, park: impl FnOnce() -> R) -> R {
        self.parks = self.parks.wrapping_add(1);
        let is_measured = thread_time::EXISTS && self.parks % MEASURED_PARKS == 1;
        if !is_measured || self.wait != Wait::Adaptive {
            return park();
        }
        let (parked, cost) = thread_time::of(park);
        count(&mut self.park_cost, cost);
        parked
    }

    /// The longest time of a wait (rule 2).
    fn longest(&self) -> Duration {
        Duration::from_nanos(self.worth().into())
    }

    /// The worth of a won wait in nanoseconds.
    fn worth(&self) -> u32 {
        match self.wait {
            Wait::Adaptive => self.park_cost + self.park_cost / 2,
            Wait::Latency => MOST,
            Wait::Power => 0,
        }
    }

    fn pays(&self) -> bool {
        let saves = u64::from(self.won) * u64::from(self.worth()) / u64::from(ALL);
        u64::from(self.wait_cost) < saves
    }

    fn measure_wait(&mut self, wait: impl FnOnce(&mut Self) -> bool) -> bool {
        self.waits = self.waits.wrapping_add(1);
        // A wait after a pause decides for long, so it is measured.
        if self.waits % MEASURED != 1 && self.doublings == 0 {
            return wait(self);
        }
        let (found, cost) = thread_time::of(|| wait(self));
        count(&mut self.wait_cost, cost);
        found
    }

    fn wait_while(
        &mut self,
        mut goes_on: impl FnMut(Instant) -> bool,
        mut look: impl FnMut() -> bool,
    ) -> bool {
        let begun = Instant::now();
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
        self.won += (ALL - self.won) / 8;
        self.won_in_a_row += 1;
        if self.won_in_a_row == FORGETS_LATE {
            self.won_in_a_row = 0;
            self.late = self.late.saturating_sub(1);
        }
        if self.pays() {
            self.doublings = 0;
        }
    }

    fn lost(&mut self) {
        self.won -= self.won.div_ceil(8);
        self.won_in_a_row = 0;
        if self.pays() {
            self.doublings = 0;
            return;
        }
        self.doublings = LONGEST.min(self.doublings + 1);
        self.pause = 1 << self.doublings;
    }

    /// Updates the state after a late wait (rule 3).
    fn late(&mut self) {
        self.won_in_a_row = 0;
        self.doublings = LONGEST.min((AFTER_LATE + self.late).max(self.doublings + 1));
        self.late = (self.late + 1).min(LONGEST - AFTER_LATE);
        self.pause = 1 << self.doublings;
    }
}

/// Counts a cost for a mean.
fn count(mean: &mut u32, cost: Duration) {
    let cost = cost.min(Duration::from_nanos(MOST.into())).subsec_nanos();
    *mean = *mean - *mean / 8 + cost / 8;
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
    cfg!(not(any(selvedge_loom, selvedge_shuttle))) && since.elapsed() >= time
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
