//! The counts, the masks and the watch. The rules are those of the [front page](crate).
use alloc::vec::Vec;
use core::fmt;
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicBool, AtomicU64, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        Retire, fence,
    },
    count::shared,
    hint,
};

const SEARCHING: u64 = 1;
const SLEEPING: u64 = 1 << 32;

/// What a reservation adds.
const RESERVATION: u64 = SEARCHING.wrapping_sub(SLEEPING);

#[inline]
fn searching(counts: u64) -> u64 {
    counts & (SLEEPING - 1)
}

/// Below 0 while there are more reservations than bits (rule 2).
#[inline]
fn sleeping(counts: u64) -> i64 {
    counts as i64 >> 32
}

/// Whether a push wakes nobody: it finds a searcher, or no sleeper. (While `sleeping` is below 0 a
/// reservation is held, which counts as a searcher.)
#[inline]
fn wakes_nobody(counts: u64) -> bool {
    // One test for both: rotated, a searcher is at bit 32 or above, no sleeper wraps around, and
    // `sleeping` is below 2³¹.
    counts.rotate_left(32).wrapping_sub(1) >> 31 != 0
}

/// Who of a number of workers searches, and who sleeps. See the [front page](crate).
pub struct Idle {
    line: CachePadded<Line>,
    watch: CachePadded<Watchers>,
    /// The masks of the workers from the 65th on. A `Vec`, as an empty one is a constant.
    more: Vec<AtomicU64>,
    workers: u64,
}

/// On one line, as who changes the counts changes a mask next, or has just done so.
struct Line {
    /// `searching` in the low half, `sleeping`, which is signed, in the high half.
    counts: AtomicU64,
    /// A bit a worker: set by itself, cleared by whoever wakes it. That of the first 64.
    first: AtomicU64,
}

struct Watchers {
    /// The watcher's index and 1, or 0.
    watcher: AtomicUsize,
    wanted: AtomicBool,
}

/// How a sleeper that took itself back was counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// By itself. Nobody unparks it.
    BySelf,
    /// By a notifier that had chosen it, and unparks it.
    ByNotifier,
}

impl Idle {
    /// For so many workers, none of whom searches or sleeps. [`inline`](Self::inline) is for a static.
    ///
    /// # Panics
    /// When `workers` is 0, or more than 2³¹ − 1.
    #[track_caller]
    pub fn new(workers: usize) -> Self {
        assert!(
            workers > 0 && i32::try_from(workers).is_ok(),
            "{workers} workers"
        );
        let more = 1..workers.div_ceil(64);
        Self::with(workers, more.map(|_| shared(AtomicU64::new(0))).collect())
    }

    sync_shim::const_fn! {
        /// For so many workers, up to 64, none of whom searches or sleeps. It allocates nothing.
        ///
        /// A `const fn`, but under a model: for a static.
        ///
        /// ```
        /// use worker_idle::Idle;
        ///
        /// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
        /// static IDLE: Idle = Idle::inline(4);
        ///
        /// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))] {
        /// IDLE.sleep(3, false);
        /// assert_eq!(IDLE.notify(), Some(3));
        /// # }
        /// ```
        ///
        /// # Panics
        /// When `workers` is 0, or more than 64; in a constant, the build fails.
        #[track_caller]
        pub const fn inline(workers: usize) -> Self {
            assert!(
                workers > 0 && workers <= 64,
                "an inline Idle is for 1 to 64 workers"
            );
            Self::with(workers, Vec::new())
        }
    }

    sync_shim::const_fn! {
        const fn with(workers: usize, more: Vec<AtomicU64>) -> Self {
            Self {
                line: CachePadded::new(Line {
                    counts: shared(AtomicU64::new(0)),
                    first: shared(AtomicU64::new(0)),
                }),
                watch: CachePadded::new(Watchers {
                    watcher: AtomicUsize::new(0),
                    wanted: AtomicBool::new(false),
                }),
                more,
                workers: workers as u64,
            }
        }
    }

    #[track_caller]
    #[inline]
    fn check(&self, worker: usize) {
        let workers = self.workers;
        assert!(
            (worker as u64) < workers,
            "there is no worker {worker}: their indices are below {workers}"
        );
    }

    #[track_caller]
    #[inline]
    fn mask(&self, worker: usize) -> (&AtomicU64, u64) {
        self.check(worker);
        let mask = match (worker / 64).checked_sub(1) {
            None => &self.line.first,
            Some(i) => &self.more[i],
        };
        (mask, 1 << (worker % 64))
    }

    fn masks(&self) -> impl Iterator<Item = &AtomicU64> {
        core::iter::once(&self.line.first).chain(&self.more)
    }

    /// After a push: gives the worker that the caller must unpark, if one is called for.
    ///
    /// The worker counts as searching from here on, so that of a burst of pushes one wakes. Costs a fence
    /// and a load; two read-modify-writes when somebody is woken. Waits for no other thread.
    #[inline]
    pub fn notify(&self) -> Option<usize> {
        // Ordering: SeqCst pairs with the fences in `sleep` and `stop_searching` (rule 3).
        fence(SeqCst);
        // Ordering: Relaxed, the fence orders it after the push.
        let counts = self.line.counts.load(Relaxed);
        if wakes_nobody(counts) {
            return None;
        }
        self.reserve(counts)
    }

    /// Makes a reservation and takes a bit for it, unless nobody is to be woken by now.
    #[inline(never)]
    fn reserve(&self, mut counts: u64) -> Option<usize> {
        while !wakes_nobody(counts) {
            let reserved = counts.wrapping_add(RESERVATION);
            // Ordering: Acquire pairs with `sleep`: the bit was set before it was counted, so `take_any` finds it at once. No Release: see
            // "Why relaxed operations do".
            match self
                .line
                .counts
                .compare_exchange_weak(counts, reserved, Acquire, Relaxed)
            {
                Ok(_) => {
                    if let Some(worker) = self.take_any() {
                        return Some(worker);
                    }
                    counts = self.give_back(); // Rule 4.
                    // The other thread is at work on this very line.
                    hint::spin_loop();
                }
                Err(now) => counts = now,
            }
        }
        None
    }

    /// Takes a bit for a reservation, the watcher's last of its mask. None if a sleeper has taken
    /// itself back meanwhile, or a bit was set in a mask that was read before.
    fn take_any(&self) -> Option<usize> {
        // Ordering: Relaxed, a preference.
        let watcher = self.watch.watcher.load(Relaxed).wrapping_sub(1);
        for (i, mask) in self.masks().enumerate() {
            // Ordering: Relaxed, the exchange below confirms what was read.
            let mut bits = mask.load(Relaxed);
            while bits != 0 {
                let others = match watcher {
                    at if at / 64 == i => bits & !(1 << (at % 64)),
                    _ => bits,
                };
                let from = if others != 0 { others } else { bits };
                let bit = from & from.wrapping_neg();
                // Ordering: Relaxed, as all changes of the masks: they carry nothing, the fences carry the proof (see "Why relaxed operations do").
                match mask.compare_exchange_weak(bits, bits & !bit, Relaxed, Relaxed) {
                    Ok(_) => return Some(i * 64 + bit.trailing_zeros() as usize),
                    Err(now) => bits = now,
                }
            }
        }
        None
    }

    /// Gives back a reservation that woke nobody. Returns the counts after that.
    fn give_back(&self) -> u64 {
        // Ordering: Relaxed, as in `try_search`.
        let before = self.line.counts.fetch_sub(RESERVATION, Relaxed);
        before.wrapping_sub(RESERVATION)
    }

    /// Begins to search, unless half of the workers do. A throttle, not a limit: a few more may slip in.
    #[inline]
    pub fn try_search(&self) -> bool {
        // Ordering: Relaxed, a throttle.
        if 2 * searching(self.line.counts.load(Relaxed)) >= self.workers {
            return false;
        }
        // Ordering: Relaxed, as all changes of the counts: they carry nothing, the fences carry the proof.
        self.line.counts.fetch_add(SEARCHING, Relaxed);
        true
    }

    /// Ends a search that found work. True for the last searcher, who must look whether there is more work
    /// and then [`notify`](Self::notify): pushes since have relied on it.
    ///
    /// # Panics
    /// With debug assertions, when nobody searches. Without them the counts are wrong from there on: wakes may be lost.
    #[inline]
    pub fn stop_searching(&self) -> bool {
        // Ordering: Relaxed, as in `try_search`.
        let before = self.line.counts.fetch_sub(SEARCHING, Relaxed);
        debug_assert!(searching(before) > 0, "nobody searched");
        let last = searching(before) == 1;
        if last {
            // Ordering: SeqCst pairs with the fence in `notify`.
            fence(SeqCst);
        }
        last
    }

    /// Announces that `worker` will sleep. It must now look at every queue once more, a retry counting as work, and
    /// then either park or [`wake_self`](Self::wake_self). Two read-modify-writes and a fence.
    ///
    /// # Panics
    /// When there is no such worker; and with debug assertions, when it sleeps already. Without them, and when `was_searching` is untrue, the counts are wrong
    /// from there on: wakes may be lost, and a notifier may look for ever for a sleeper that
    /// isn't there.
    #[track_caller]
    pub fn sleep(&self, worker: usize, was_searching: bool) {
        let (mask, bit) = self.mask(worker);
        // Ordering: Relaxed, published by the count below.
        let before = mask.fetch_or(bit, Relaxed);
        debug_assert_eq!(before & bit, 0, "worker {worker} sleeps already");
        let change = if was_searching {
            SLEEPING - SEARCHING
        } else {
            SLEEPING
        };
        // Ordering: Release publishes the bit to `notify`.
        self.line.counts.fetch_add(change, Release);
        // Ordering: SeqCst pairs with the fence in `notify` (rule 3).
        fence(SeqCst);
    }

    /// A sleeper takes itself back; it counts as searching afterwards.
    ///
    /// Two read-modify-writes. Waits for no other thread.
    ///
    /// # Panics
    /// When there is no such worker.
    #[track_caller]
    pub fn wake_self(&self, worker: usize) -> Woken {
        if self.was_notified(worker) {
            return Woken::ByNotifier;
        }
        let (mask, bit) = self.mask(worker);
        // Ordering: Relaxed, as in `try_search`.
        self.line.counts.fetch_add(RESERVATION, Relaxed);
        // Ordering: Relaxed, as in `take_any`.
        if mask.fetch_and(!bit, Relaxed) & bit != 0 {
            return Woken::BySelf;
        }
        // A notifier was faster and has counted this worker.
        self.give_back();
        Woken::ByNotifier
    }

    /// After a park: whether a notifier chose this worker, which then counts as searching. Else it
    /// sleeps on, or takes itself back. A load.
    ///
    /// # Panics
    /// When there is no such worker.
    #[inline]
    #[track_caller]
    pub fn was_notified(&self, worker: usize) -> bool {
        let (mask, bit) = self.mask(worker);
        // Ordering: Relaxed. Who finds itself chosen looks for work, and once more after the fence of its next `sleep`, which the notifier's fence precedes then
        // (see "Why relaxed operations do").
        mask.load(Relaxed) & bit == 0
    }

    /// Makes a sleeper the watcher, unless there is one. A load, and a read-modify-write if it becomes that.
    ///
    /// # Panics
    /// When there is no such worker.
    #[track_caller]
    pub fn try_watch(&self, worker: usize) -> bool {
        self.check(worker);
        // Ordering: Relaxed, there is one: a watcher takes over nothing from the last.
        !self.is_watched()
            && self
                .watch
                .watcher
                .compare_exchange(0, worker + 1, Relaxed, Relaxed)
                .is_ok()
    }

    /// The watcher leaves.
    #[inline]
    pub fn leave_watch(&self) {
        // Ordering: Relaxed, as in `try_watch`.
        self.watch.watcher.store(0, Relaxed);
    }

    /// Whether there is a watcher. A load of a line that changes when one comes or goes.
    #[inline]
    pub fn is_watched(&self) -> bool {
        // Ordering: Acquire pairs with `give_up_watch`. Who reads it late calls for a watcher once too often, or relies on one that is about to leave: one that gives up looks
        // once more after a while, one that leaves for work is a searcher, and looks when it leaves that.
        self.watch.watcher.load(Acquire) != 0
    }

    /// Says that a watcher is wanted: by who fills a place that is watched, and sees no watcher. If somebody sleeps then, it has to [`notify`](Self::notify). And the last searcher,
    /// when it looks whether there is more work, looks for a filled place, too, if a watcher is wanted and there is none. A load; a store and a fence if nobody wanted one.
    #[inline]
    pub fn want_watcher(&self) {
        // Ordering: Relaxed. Acquire in `is_watched`, before, has it see what a watch that was given up has left.
        if !self.watch.wanted.load(Relaxed) {
            // Ordering: Relaxed, the fence orders it.
            self.watch.wanted.store(true, Relaxed);
            // Ordering: SeqCst pairs with the fence in `sleep`: who goes to sleep sees that it is wanted, or the caller sees the sleeper.
            fence(SeqCst);
        }
    }

    /// Whether a watcher is wanted. A load. Asked after [`sleep`](Self::sleep).
    pub fn is_watcher_wanted(&self) -> bool {
        // Ordering: Relaxed, the fence in `sleep` orders it after the sleeper was counted.
        self.watch.wanted.load(Relaxed)
    }

    /// The watch is given up: no watcher is wanted until somebody says so again.
    pub(crate) fn give_up_watch(&self) {
        // Ordering: Relaxed. Who has seen it wanted relies on the look that is still to come.
        self.watch.wanted.store(false, Relaxed);
        // Ordering: Release pairs with `is_watched`: who sees no watcher says that one is wanted after this, not before.
        self.watch.watcher.store(0, Release);
    }

    /// How many search and how many sleep, reserved ones not among them. A snapshot.
    #[inline]
    pub fn counts(&self) -> (usize, usize) {
        // Ordering: Relaxed, a snapshot.
        let counts = self.line.counts.load(Relaxed);
        (searching(counts) as usize, sleeping(counts).max(0) as usize)
    }
}

impl Drop for Idle {
    /// Nobody may notify any more: the model sees who does all the same.
    fn drop(&mut self) {
        self.line.counts.retire();
        self.watch.watcher.retire();
        self.line.first.retire();
        self.more.iter_mut().for_each(Retire::retire);
    }
}

impl fmt::Debug for Idle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (searching, sleeping) = self.counts();
        f.debug_struct("Idle")
            .field("searching", &searching)
            .field("sleeping", &sleeping)
            .finish()
    }
}

#[cfg(all(test, feature = "std", not(selvedge_loom)))]
mod crowd {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
