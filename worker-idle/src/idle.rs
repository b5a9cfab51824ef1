//! The counts, the masks and the watch. The rules are those of the [front page](crate).
use alloc::boxed::Box;
use core::fmt;
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicBool, AtomicU64, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        Retire, fence,
    },
    count::shared,
};

const SEARCHING: u64 = 1;
const SLEEPING: u64 = 1 << 32;

#[inline]
fn searching(counts: u64) -> u64 {
    counts & (SLEEPING - 1)
}

#[inline]
fn sleeping(counts: u64) -> u64 {
    counts / SLEEPING
}

/// Lets another thread do the few instructions that this one waits for.
fn stand_aside() {
    #[cfg(feature = "std")]
    sync_shim::thread::yield_now();
    #[cfg(not(feature = "std"))]
    sync_shim::hint::spin_loop();
}

/// Who of a number of workers searches, and who sleeps. See the [front page](crate).
pub struct Idle {
    line: CachePadded<Line>,
    watch: CachePadded<Watchers>,
    /// The masks of the workers from the 65th on.
    more: Box<[AtomicU64]>,
    workers: u64,
}

/// On one line, as who changes the counts changes a mask next, or has just done so.
struct Line {
    /// `searching` in the low half, `sleeping` in the high half.
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
    /// For so many workers, none of whom searches or sleeps.
    ///
    /// # Panics
    /// When `workers` is 0, or more than 2³² − 1.
    pub fn new(workers: usize) -> Self {
        assert!(
            workers > 0 && u32::try_from(workers).is_ok(),
            "{workers} workers"
        );
        Self {
            line: CachePadded::new(Line {
                counts: shared(AtomicU64::new(0)),
                first: shared(AtomicU64::new(0)),
            }),
            watch: CachePadded::new(Watchers {
                watcher: AtomicUsize::new(0),
                wanted: AtomicBool::new(false),
            }),
            more: (1..workers.div_ceil(64))
                .map(|_| shared(AtomicU64::new(0)))
                .collect(),
            workers: workers as u64,
        }
    }

    fn mask(&self, worker: usize) -> (&AtomicU64, u64) {
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
    /// and a load; two read-modify-writes when somebody is woken.
    #[inline]
    pub fn notify(&self) -> Option<usize> {
        // Ordering: SeqCst pairs with the fences in `sleep` and `stop_searching` (rule 3).
        fence(SeqCst);
        // Ordering: Relaxed, the fence orders it after the push.
        let mut counts = self.line.counts.load(Relaxed);
        loop {
            if searching(counts) > 0 || sleeping(counts) == 0 {
                return None;
            }
            let reserved = counts - SLEEPING + SEARCHING;
            // Ordering: Acquire pairs with `sleep`: the bit was set before it was counted, so `take_any` finds it at once. No Release: see
            // "Why relaxed operations do".
            match self
                .line
                .counts
                .compare_exchange_weak(counts, reserved, Acquire, Relaxed)
            {
                Ok(_) => return Some(self.take_any()),
                Err(now) => counts = now,
            }
        }
    }

    /// Takes a bit for a reservation. There is one (rule 2), though others may get in between. The watcher's comes last of its mask.
    fn take_any(&self) -> usize {
        // Ordering: Relaxed, a preference.
        let watcher = self.watch.watcher.load(Relaxed).wrapping_sub(1);
        loop {
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
                        Ok(_) => return i * 64 + bit.trailing_zeros() as usize,
                        Err(now) => bits = now,
                    }
                }
            }
            stand_aside();
        }
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
    /// from there on: wakes may be lost, and a notifier may wait for ever for a sleeper that isn't there.
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

    /// A sleeper takes itself back; it counts as searching afterwards. Two read-modify-writes.
    ///
    /// # Panics
    /// When there is no such worker.
    pub fn wake_self(&self, worker: usize) -> Woken {
        let (mask, bit) = self.mask(worker);
        // Ordering: Relaxed, the exchange below confirms what was read.
        let mut counts = self.line.counts.load(Relaxed);
        loop {
            if self.was_notified(worker) {
                return Woken::ByNotifier;
            }
            if sleeping(counts) == 0 {
                // Every bit is reserved, so this one too: a notifier is about to take it, or one that
                // was set since.
                stand_aside();
                // Ordering: as above.
                counts = self.line.counts.load(Relaxed);
                continue;
            }
            let reserved = counts - SLEEPING + SEARCHING;
            // Ordering: Relaxed, as in `try_search`.
            match self
                .line
                .counts
                .compare_exchange_weak(counts, reserved, Relaxed, Relaxed)
            {
                Ok(_) => break,
                Err(now) => counts = now,
            }
        }
        // Ordering: Relaxed, as in `take_any`.
        if mask.fetch_and(!bit, Relaxed) & bit != 0 {
            return Woken::BySelf;
        }
        // A notifier was faster and has counted this worker: the reservation goes back.
        // Ordering: Relaxed, as in `try_search`.
        self.line.counts.fetch_add(SLEEPING - SEARCHING, Relaxed);
        Woken::ByNotifier
    }

    /// After a park: whether a notifier chose this worker, which then counts as searching. Else it
    /// sleeps on, or takes itself back. A load.
    ///
    /// # Panics
    /// When there is no such worker.
    #[inline]
    pub fn was_notified(&self, worker: usize) -> bool {
        let (mask, bit) = self.mask(worker);
        // Ordering: Relaxed. Who finds itself chosen looks for work, and once more after the fence of its next `sleep`, which the notifier's fence precedes then
        // (see "Why relaxed operations do").
        mask.load(Relaxed) & bit == 0
    }

    /// Makes a sleeper the watcher, unless there is one. A load, and a read-modify-write if it becomes that.
    pub fn try_watch(&self, worker: usize) -> bool {
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
        (searching(counts) as usize, sleeping(counts) as usize)
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
