//! A short wait before a sleep, where that pays.
//!
//! To sleep and be woken costs two threads as much as hundreds of small tasks. Often the work is about to come: from a thread that waits for this very processor, or
//! that was woken a moment ago. So who has run out of work gives the processor away a few times, and looks each time whether there is some.
//!
//! 1. It yields, and doesn't spin: if anybody else wants the processor, it is his.
//! 2. It is a bet. One that is won saves about as much as two lost ones cost, so each won one pays for two that are lost. After that the next
//!    is made only after two sleeps, then four, and so on up to 1,024, until one is won.
//! 3. One that takes long is lost, whatever it finds: somebody has kept the processor, and the system would have found a sleeper
//!    another one. The next is made after 32 sleeps, or twice as many as the last pause had if that is more: on a machine that others use, too, a late one
//!    says little about the next.
//! 4. The first sleeps are without: for who sleeps a few times only, nothing is to be won.
use std::time::{Duration, Instant};
use sync_shim::thread;

/// Looks of one wait. That many yields take some microseconds on a processor that nobody else wants. A model is content with fewer.
const LOOKS: u32 = if cfg!(any(selvedge_loom, selvedge_shuttle)) {
    2
} else {
    20
};

/// A wait that takes longer is lost.
const LATE: Duration = Duration::from_micros(200);

/// Sleeps before the first bet.
const FIRST: u32 = 16;

/// The longest pause between bets is two to this.
const LONGEST: u32 = 10;

/// The pause after one that took long is two to this at least.
const AFTER_LATE: u32 = 5;

/// Lost bets that are paid for at most.
const CREDIT: u32 = 8;

/// Whether a thread's short waits before its sleeps have paid so far: whether it waits before the next.
///
/// To sleep and be woken costs two threads as much as hundreds of small tasks. Often the work is about to come: from a thread that waits for this very
/// processor, or was itself woken a moment ago. So it pays to give the processor away a few times, and to look each time whether there is some. Where
/// that has been in vain it is done ever more seldom.
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
///     match job.or_else(|| jobs.recv().ok()) { // Sleeps.
///         Some(n) => sum += n,
///         None => break,
///     }
/// }
/// assert_eq!(sum, 4950);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// Sleeps until the next bet.
    pause: u32,
    /// The last pause was two to this.
    doublings: u32,
    /// Lost bets that are paid for.
    credit: u32,
}

impl Backoff {
    /// Nothing is known yet.
    pub const fn new() -> Self {
        Self {
            pause: FIRST,
            doublings: 0,
            credit: 0,
        }
    }

    /// One that waits from the first time on.
    pub const fn eager() -> Self {
        Self {
            pause: 0,
            ..Self::new()
        }
    }

    /// Before each sleep: whether it is time to wait once more. Who is told so calls [`wait`](Self::wait).
    #[inline]
    pub fn is_due(&mut self) -> bool {
        self.pause = self.pause.saturating_sub(1);
        self.pause == 0
    }

    /// Yields the processor and calls `look`, until that is true or it has been enough. Some
    /// microseconds, if nobody else wants the processor.
    pub fn wait(&mut self, mut look: impl FnMut() -> bool) -> bool {
        let begun = Instant::now();
        for _ in 0..LOOKS {
            stand_aside();
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

    /// Rule 2.
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

    /// Rule 3.
    fn late(&mut self) {
        self.credit = 0;
        self.doublings = LONGEST.min(AFTER_LATE.max(self.doublings + 1));
        self.pause = 1 << self.doublings;
    }
}

/// A yield, but in a model: a model goes on with another thread wherever it can, and after a yield it would always, so that no sleep came before its work.
fn stand_aside() {
    if cfg!(not(any(selvedge_loom, selvedge_shuttle))) {
        thread::yield_now();
    }
}

/// A model has no clock.
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
