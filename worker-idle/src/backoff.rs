//! A short wait before a thread parks, if such waits have found work so far.
//!
//! A park and the wake-up that ends it cost two threads as much as hundreds of small tasks. Often
//! work comes soon: from a thread that waits for this CPU, or from one that was just woken. So a
//! worker without work yields its CPU a few times before it parks, and looks for work after each
//! yield.
//!
//! # Outcomes of a wait
//!
//! A *pause* of `n` parks means that the next wait is before the `n`th park from now. A *credit*
//! lets one lost wait cause no pause.
//!
//! | outcome | condition | the next wait |
//! |---|---|---|
//! | *won* | a look found work in time | before the next park; the won wait earns two credits (rule 2) |
//! | *lost* | no look found work | before the next park if a credit is left, which the lost wait uses up; else after a pause of 2, 4, … 1,024 parks |
//! | *late* | the wait took longer than 200 µs, whatever it found | after a pause of 32 parks, or of twice the last pause if that is more; of 1,024 at most |
//!
//! # Rules
//!
//! 1. A wait yields and does not spin, so another thread that wants the CPU gets it.
//! 2. A won wait saves about as much as two lost ones cost, so it earns two credits. Once no credit
//!    is left, each lost wait doubles the pause, until a wait is won.
//! 3. A late wait is a loss, whatever it found: another thread kept the CPU meanwhile. If this
//!    thread had parked instead, the system could have woken it on another CPU. A first late wait
//!    causes a pause of 32 parks rather than the longest pause: on a machine with other load, one
//!    late wait does not mean that the next wait is late.
//! 4. The first wait is before the 16th park: a thread that parks only a few times gains nothing.
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

/// The pause after a late wait is at least two to this power.
const AFTER_LATE: u32 = 5;

/// The largest number of lost waits that earlier won waits may pay for.
const CREDIT: u32 = 8;

/// Decides whether a thread yields its CPU a few times before it parks, by what such waits gained.
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
    /// The next wait is before the park with this number from now. 0 and 1 are the next park.
    pause: u32,
    /// The last pause after a lost or late wait was two to this power. 0 if a wait has been won
    /// since, or if there was no such pause.
    doublings: u32,
    /// The number of lost waits that won waits have paid for in advance.
    credit: u32,
}

impl Backoff {
    /// Creates a state that knows of no waits yet.
    pub const fn new() -> Self {
        Self {
            pause: FIRST,
            doublings: 0,
            credit: 0,
        }
    }

    /// Creates a state in which even the first park is preceded by a wait.
    pub const fn eager() -> Self {
        Self {
            pause: 0,
            ..Self::new()
        }
    }

    /// Returns whether to [`wait`](Self::wait) before the coming park. Call it before each park.
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    /// Yields the CPU and then calls `look`, up to 20 times. The wait ends early if a look returns
    /// true, or if the wait is late.
    ///
    /// Returns what the last look found. Takes some microseconds if no other thread wants the CPU.
    pub fn wait(&mut self, look: impl FnMut() -> bool) -> bool {
        let mut looks = 0;
        let goes_on = |_| {
            looks += 1;
            looks <= LOOKS
        };
        self.wait_while(goes_on, look)
    }

    /// Waits as [`wait`](Self::wait) does, but bounds the wait by time instead of by the number of
    /// looks. Use it if a look is a system call. A `limit` above 100 µs counts as 100 µs. A good
    /// `limit` is the time that one park and one wake-up cost together.
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
    /// assert!(!backoff.is_due()); // The wait was lost.
    /// ```
    pub fn wait_for(&mut self, limit: Duration, mut look: impl FnMut() -> bool) -> bool {
        if look() {
            self.won();
            return true;
        }
        let limit = limit.min(LATE / 2);
        self.wait_while(|begun| begun.elapsed() < limit, look)
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

    /// Updates the state after a won wait (rule 2).
    fn won(&mut self) {
        self.doublings = 0;
        self.credit = CREDIT.min(self.credit + 2);
    }

    fn lost(&mut self) {
        if self.credit > 0 {
            self.credit -= 1;
            return;
        }
        self.doublings = LONGEST.min(self.doublings + 1);
        self.pause = 1 << self.doublings;
    }

    /// Updates the state after a late wait (rule 3).
    fn late(&mut self) {
        self.credit = 0;
        self.doublings = LONGEST.min(AFTER_LATE.max(self.doublings + 1));
        self.pause = 1 << self.doublings;
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

/// Returns whether a wait is late. In a model no time passes.
fn is_late(begun: Instant) -> bool {
    cfg!(not(any(selvedge_loom, selvedge_shuttle))) && begun.elapsed() > LATE
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests;
