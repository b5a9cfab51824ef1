//! A worker that does nothing but spin gives its processor away from time to time.
//!
//! Tasks that give way again and again wait for something, as a rule for another thread. If that one has to share the processor with this worker it waits in turn, for as long as the
//! system lets a thread run that never sleeps: milliseconds, in which the tasks are polled a hundred thousand times for nothing. So a worker that has had no news
//! for a while yields the processor once. Where nobody else wants it that is a system call in some thousand polls.
use sync_shim::thread;

/// Looks without news before the processor is yielded.
const LOOKS: u32 = 64;

/// Whether a worker has had news of late.
///
/// ```
/// let mut spin = worker_idle::Spin::new();
/// let (mut news, mut yielded) = (0, 0);
/// for look in 0..640 {
///     news += u64::from(look < 320); // A task was woken, say.
///     yielded += u32::from(spin.look(news));
/// }
/// assert_eq!(yielded, 5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spin {
    news: u64,
    looks: u32,
}

impl Spin {
    /// No look yet.
    pub const fn new() -> Self {
        Self { news: 0, looks: 0 }
    }

    /// Whether the last look found no news.
    pub const fn is_without_news(&self) -> bool {
        self.looks > 0
    }

    /// To be called at times, say whenever a worker looks at what comes from outside. `news` is a number that is another one if anything has happened since the last look but polls of
    /// tasks that gave way. At every 64th look in a row without news it yields the processor, and says so.
    pub fn look(&mut self, news: u64) -> bool {
        let same = news == self.news;
        self.news = news;
        self.looks = match (same, self.looks) {
            (false, _) => 0,
            (true, LOOKS) => 1,
            (true, looks) => looks + 1,
        };
        let spins = self.looks == LOOKS;
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
    use super::{LOOKS, Spin};

    #[test]
    fn one_look_of_so_many_without_news_yields() {
        let mut spin = Spin::default();
        let yields = (1..=3 * LOOKS).filter(|_| spin.look(0));
        assert_eq!(yields.collect::<Vec<_>>(), [LOOKS, 2 * LOOKS, 3 * LOOKS]);
    }

    #[test]
    fn news_begin_the_count_anew() {
        let mut spin = Spin::new();
        for news in 1..100 {
            // One look with news, and all but one of those without.
            assert!((0..LOOKS).all(|_| !spin.look(news)), "{news}");
        }
        assert!(spin.look(99) && spin.is_without_news());
        assert!(!spin.look(100) && !spin.is_without_news());
    }
}
