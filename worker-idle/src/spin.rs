//! A worker that polls tasks in vain yields its CPU from time to time.
//!
//! Tasks that only yield, again and again, usually wait for another thread. That thread may share
//! the CPU with this worker. As this worker never sleeps, the system lets it run for milliseconds.
//! Meanwhile the worker polls those tasks a hundred thousand times for nothing. So a worker that
//! has made no progress for a while yields its CPU once. If no thread wants the CPU, this costs one
//! system call in some thousand polls.
use std::cell::Cell;
use sync_shim::thread;

/// Polls without progress before the CPU is yielded.
const POLLS: u64 = 4_096;

/// Yields the CPU of a worker whose polls make no progress.
///
/// ```
/// let spin = worker_idle::Spin::new();
/// let (mut news, mut yielded) = (0, 0);
/// for polls in 0..=40_960 {
///     news += u64::from(polls < 20_480); // For example, a task was woken.
///     yielded += u32::from(spin.look(news, polls));
/// }
/// assert_eq!(yielded, 5);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spin {
    news: Cell<u64>,
    /// The number of polls at the last progress, or at the last yield.
    polls: Cell<u64>,
}

impl Spin {
    /// Creates a state without progress or polls.
    pub const fn new() -> Self {
        Self {
            news: Cell::new(0),
            polls: Cell::new(0),
        }
    }

    /// Yields the CPU, and returns true, if the last 4,096 polls made no progress.
    ///
    /// Call it now and then, for example when a look at remote work finds nothing. `polls` is the
    /// number of all polls so far. `news` is any number that changes when the worker does more than
    /// poll tasks that yield.
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
