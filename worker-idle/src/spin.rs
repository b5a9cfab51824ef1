//! A worker that does nothing but spin gives its processor away from time to time.
//!
//! Tasks that give way again and again wait for something, as a rule for another thread. If that one has to share the processor with this worker it waits in turn, for as long as the
//! system lets a thread run that never sleeps: milliseconds, in which the tasks are polled a hundred thousand times for nothing. So a worker that has had no news
//! for a while yields the processor once. Where nobody else wants it that is a system call in some thousand polls.
use std::cell::Cell;
use sync_shim::thread;

/// Polls without news before the processor is yielded.
const POLLS: u64 = 4_096;

/// Whether a worker has had news of late.
///
/// ```
/// let spin = worker_idle::Spin::new();
/// let (mut news, mut yielded) = (0, 0);
/// for polls in 0..=40_960 {
///     news += u64::from(polls < 20_480); // A task was woken, say.
///     yielded += u32::from(spin.look(news, polls));
/// }
/// assert_eq!(yielded, 5);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spin {
    news: Cell<u64>,
    /// At the last news, or the last yield.
    polls: Cell<u64>,
}

impl Spin {
    /// No look yet.
    pub const fn new() -> Self {
        Self {
            news: Cell::new(0),
            polls: Cell::new(0),
        }
    }

    /// To be called at times, say whenever a worker looks at what comes from outside and finds nothing. `news` is a number that is another one if anything has happened since the last look but
    /// polls of tasks that gave way, `polls` that of all polls so far. After 4,096 of them without news it yields the processor, and says so.
    pub fn look(&self, news: u64, polls: u64) -> bool {
        let same = news == self.news.replace(news);
        let spins = same && polls.wrapping_sub(self.polls.get()) >= POLLS;
        if spins || !same {
            self.polls.set(polls);
        }
        if spins {
            thread::yield_now();
        }
        spins
    }
}

impl Default for Spin {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::{POLLS, Spin};

    #[test]
    fn polls_without_news_yield_once_in_4096() {
        let spin = Spin::default();
        let yields = (1..=3 * POLLS).filter(|&polls| spin.look(0, polls));
        assert_eq!(yields.collect::<Vec<_>>(), [POLLS, 2 * POLLS, 3 * POLLS]);
    }

    #[test]
    fn news_restart_the_count() {
        let spin = Spin::new();
        for news in 1..100 {
            let begun = news * (POLLS - 1);
            assert!(
                (0..POLLS).all(|more| !spin.look(news, begun + more)),
                "{news}"
            );
        }
        assert!(spin.look(99, 100 * POLLS));
    }
}
