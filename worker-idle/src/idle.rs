//! The counts, the masks and the watcher. The states, rules and proofs are on the [front
//! page](crate).
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

/// A reservation adds this to the counts.
const RESERVATION: u64 = SEARCHING.wrapping_sub(SLEEPING);

#[inline]
fn searching(counts: u64) -> u64 {
    counts & (SLEEPING - 1)
}

/// Returns the number of sleeping workers. It is below 0 while more reservations are held than bits
/// are set (rule 2).
#[inline]
fn sleeping(counts: u64) -> i64 {
    counts as i64 >> 32
}

/// Returns whether a push wakes nobody: a worker searches, or none sleeps. (While `sleeping` is
/// below 0 a reservation is held, which counts as a searcher.)
#[inline]
fn wakes_nobody(counts: u64) -> bool {
    // One test for both conditions. After the rotation, a searcher sets bit 32 or a higher one. If
    // there is neither a searcher nor a sleeper, the subtraction wraps. `sleeping` is below 2³¹.
    counts.rotate_left(32).wrapping_sub(1) >> 31 != 0
}

/// The state of a scheduler's workers: how many search, and which sleep.
///
/// See the [front page](crate).
pub struct Idle {
    line: CachePadded<Line>,
    watch: CachePadded<Watchers>,
    /// The masks of the workers from the 65th on. It is a `Vec`, because a constant can hold an
    /// empty `Vec`.
    more: Vec<AtomicU64>,
    workers: u64,
}

/// The counts and the first mask share a cache line, as a thread that changes the counts also
/// changes a mask.
struct Line {
    /// `searching` in the low half, and `sleeping`, which is signed, in the high half.
    counts: AtomicU64,
    /// The mask of the first 64 workers. A worker sets its own bit; the thread that wakes it clears
    /// the bit.
    first: AtomicU64,
}

struct Watchers {
    /// The watcher's index plus 1, or 0 if there is no watcher.
    watcher: AtomicUsize,
    wanted: AtomicBool,
}

/// Names the thread that woke a sleeper: the result of [`Idle::wake_self`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// The sleeper itself, or the thread that called `wake_self` for it. No notifier unparks it.
    BySelf,
    /// A notifier, which had chosen the sleeper and unparks it.
    ByNotifier,
}

impl Idle {
    /// Creates the state of `workers` workers, all running. For a static use
    /// [`inline`](Self::inline).
    ///
    /// # Panics
    /// If `workers` is 0, or more than 2³¹ − 1.
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
        /// Creates the state of up to 64 workers, all running. It allocates nothing.
        ///
        /// A `const fn`, except under a model checker, so it can initialise a static.
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
        /// If `workers` is 0, or more than 64. In a constant this is a compile error.
        #[track_caller]
        pub const fn inline(workers: usize) -> Self {
            assert!(
                workers > 0 && workers <= 64,
                "an inline Idle has 1 to 64 workers"
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
            "there is no worker {worker}: the indices are below {workers}"
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

    /// Returns the worker to unpark after a push, if any. The caller must unpark it.
    ///
    /// The worker counts as searching from now on, so a burst of pushes wakes one worker. The call
    /// costs a fence and a load, and two read-modify-writes if a worker is chosen. It never waits
    /// for another thread.
    #[inline]
    pub fn notify(&self) -> Option<usize> {
        // Ordering: SeqCst pairs with the fences in `sleep` and in `stop_searching` (rule 3).
        fence(SeqCst);
        // Ordering: Relaxed, the fence orders the load after the push.
        let counts = self.line.counts.load(Relaxed);
        if wakes_nobody(counts) {
            return None;
        }
        self.reserve(counts)
    }

    /// Makes a reservation, clears a bit for it, and returns that bit's worker. Returns `None` if
    /// no worker need be woken any more.
    #[inline(never)]
    fn reserve(&self, mut counts: u64) -> Option<usize> {
        while !wakes_nobody(counts) {
            let reserved = counts.wrapping_add(RESERVATION);
            // Ordering: Acquire pairs with `sleep`, which sets the bit before it counts itself. So
            // `take_any` finds the bit at once. Release is not needed: see "Why relaxed operations
            // suffice" on the front page.
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
                    // Another thread is changing the same cache line, so this one pauses.
                    hint::spin_loop();
                }
                Err(now) => counts = now,
            }
        }
        None
    }

    /// Clears a bit for a reservation, and returns the bit's worker. The scan takes the watcher's
    /// bit only if that bit's mask has no other. Returns `None` if the scan finds no bit: a sleeper
    /// woke itself meanwhile, or a bit was set in a mask that the scan had passed.
    fn take_any(&self) -> Option<usize> {
        // Ordering: Relaxed, because the scan only prefers other sleepers to the watcher.
        let watcher = self.watch.watcher.load(Relaxed).wrapping_sub(1);
        for (i, mask) in self.masks().enumerate() {
            // Ordering: Relaxed, the exchange below checks the value.
            let mut bits = mask.load(Relaxed);
            while bits != 0 {
                let others = match watcher {
                    at if at / 64 == i => bits & !(1 << (at % 64)),
                    _ => bits,
                };
                let from = if others != 0 { others } else { bits };
                let bit = from & from.wrapping_neg();
                // Ordering: Relaxed, like all changes of the masks. They publish nothing: the proof
                // rests on the fences (see "Why relaxed operations suffice").
                match mask.compare_exchange_weak(bits, bits & !bit, Relaxed, Relaxed) {
                    Ok(_) => return Some(i * 64 + bit.trailing_zeros() as usize),
                    Err(now) => bits = now,
                }
            }
        }
        None
    }

    /// Gives back a reservation that woke nobody (rule 4). Returns the counts after that.
    fn give_back(&self) -> u64 {
        // Ordering: Relaxed, as in `try_search`.
        let before = self.line.counts.fetch_sub(RESERVATION, Relaxed);
        before.wrapping_sub(RESERVATION)
    }

    /// Begins to search, unless half of the workers already do. The limit is approximate: a few
    /// more may search.
    #[inline]
    pub fn try_search(&self) -> bool {
        // Ordering: Relaxed, an approximate limit.
        if 2 * searching(self.line.counts.load(Relaxed)) >= self.workers {
            return false;
        }
        // Ordering: Relaxed, like all changes of the counts. They publish nothing: the proof rests
        // on the fences.
        self.line.counts.fetch_add(SEARCHING, Relaxed);
        true
    }

    /// Ends a search that found work. Returns true for the last searcher, if a worker sleeps.
    ///
    /// Then the caller must look for more work, and call [`notify`](Self::notify) if there is any:
    /// while it searched, pushes woke nobody. If no worker sleeps, nobody could be woken, and each
    /// worker that goes to sleep from now on sees the work itself.
    ///
    /// # Panics
    /// With debug assertions, if no worker searches. Without them the counts are wrong from then
    /// on, and wake-ups may be lost.
    #[inline]
    pub fn stop_searching(&self) -> bool {
        // Ordering: Relaxed, as in `try_search`.
        let before = self.line.counts.fetch_sub(SEARCHING, Relaxed);
        debug_assert!(searching(before) > 0, "no worker searches");
        let must_look = searching(before) == 1 && sleeping(before) > 0;
        if must_look {
            // Ordering: SeqCst pairs with the fence in `notify` (rule 3).
            fence(SeqCst);
        }
        must_look
    }

    /// Announces that `worker` will sleep. The worker must then look at every queue once more.
    ///
    /// A "retry" of a queue counts as work. If the worker finds work, it calls
    /// [`wake_self`](Self::wake_self). Otherwise it parks. The call costs two read-modify-writes
    /// and a fence.
    ///
    /// # Panics
    /// If there is no such worker. With debug assertions, also if the worker already sleeps.
    ///
    /// Such a call without debug assertions, or a wrong `was_searching`, makes the counts wrong
    /// from then on: wake-ups may be lost, and a notifier may loop forever in search of a sleeper
    /// that does not exist.
    #[cfg_attr(not(selvedge_loom), track_caller)]
    pub fn sleep(&self, worker: usize, was_searching: bool) {
        let (mask, bit) = self.mask(worker);
        // Ordering: Relaxed, the change of the counts below publishes the bit.
        let before = mask.fetch_or(bit, Relaxed);
        debug_assert_eq!(before & bit, 0, "worker {worker} already sleeps");
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

    /// Wakes the calling worker, for example because it found work before it parked. The worker
    /// then counts as searching.
    ///
    /// Returns whether a notifier had chosen the worker meanwhile. The call costs two
    /// read-modify-writes, or none if it finds at once that a notifier had chosen the worker. It
    /// never waits for another thread.
    ///
    /// Another thread may call this to choose this sleeper and no other, for example because a task
    /// waits that only this worker runs. The push of that task and a `SeqCst` fence come first. If
    /// the call returns [`Woken::BySelf`], that thread is the sleeper's notifier, and must unpark
    /// it.
    ///
    /// # Panics
    /// If there is no such worker.
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
        // A notifier has chosen this worker and counted it.
        self.give_back();
        Woken::ByNotifier
    }

    /// Returns whether a notifier chose this worker. Ask after each park. The call costs a load.
    ///
    /// A worker that was chosen counts as searching. A worker that was not chosen parks again, or
    /// wakes itself.
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    #[track_caller]
    pub fn was_notified(&self, worker: usize) -> bool {
        let (mask, bit) = self.mask(worker);
        // Ordering: Relaxed. A worker that was chosen looks for work, and does so again after the
        // fence of its next `sleep`, which then follows the notifier's fence (see "Why relaxed
        // operations suffice").
        mask.load(Relaxed) & bit == 0
    }

    /// Makes a sleeper the watcher, and returns true, unless there is a watcher. The call costs a
    /// load, and a read-modify-write if the load finds no watcher.
    ///
    /// # Panics
    /// If there is no such worker.
    #[cfg_attr(not(selvedge_loom), track_caller)]
    pub fn try_watch(&self, worker: usize) -> bool {
        self.check(worker);
        // Ordering: Relaxed, the exchange admits one watcher, which takes over nothing from the
        // watcher before it.
        !self.is_watched()
            && self
                .watch
                .watcher
                .compare_exchange(0, worker + 1, Relaxed, Relaxed)
                .is_ok()
    }

    /// Ends the watch of the caller, which is the watcher.
    #[inline]
    pub fn leave_watch(&self) {
        // Ordering: Relaxed, as in `try_watch`.
        self.watch.watcher.store(0, Relaxed);
    }

    /// Returns whether there is a watcher. Loads a line that changes only when a watcher comes,
    /// goes or is requested.
    #[inline]
    pub fn is_watched(&self) -> bool {
        // Ordering: Acquire pairs with `give_up_watch`. A caller that reads an old value requests a
        // watcher once too often, or relies on a watcher that is about to end its watch. If that
        // watcher gave up, it looks once more later. If it left for work, it searches, and the last
        // searcher to stop looks at the places. No fence makes such a look see the place if the
        // look comes at once (see "What a watch may miss" in `watch.rs`).
        self.watch.watcher.load(Acquire) != 0
    }

    /// Requests a watcher. The caller has filled a watched place and saw no watcher.
    ///
    /// If a worker sleeps, the caller must then call [`notify`](Self::notify). When the last
    /// searcher looks for more work, and a watcher is wanted but there is none, it must also look
    /// for filled places. The call costs a load; also a store and a fence if no watcher was wanted
    /// before.
    #[inline]
    pub fn want_watcher(&self) {
        // Ordering: Relaxed. The caller's Acquire in `is_watched` shows the caller the store of
        // `wanted` in `give_up_watch`.
        if !self.watch.wanted.load(Relaxed) {
            // Ordering: Relaxed, the fence orders the store.
            self.watch.wanted.store(true, Relaxed);
            // Ordering: SeqCst pairs with the fence in `sleep`: the worker that goes to sleep sees
            // that a watcher is wanted, or the caller sees the sleeper.
            fence(SeqCst);
        }
    }

    /// Returns whether a watcher is wanted. Ask after [`sleep`](Self::sleep). Costs a load.
    pub fn is_watcher_wanted(&self) -> bool {
        // Ordering: Relaxed, the fence in `sleep` orders this load after the count of the sleeper.
        self.watch.wanted.load(Relaxed)
    }

    /// Gives up the watch: no watcher is wanted until the next request.
    pub(crate) fn give_up_watch(&self) {
        // Ordering: Relaxed. A thread that saw a watcher wanted relies on the last look, which is
        // still to come, after an interval in which the thread's stores become visible.
        self.watch.wanted.store(false, Relaxed);
        // Ordering: Release pairs with `is_watched`: a thread that sees no watcher requests one
        // after this, not before.
        self.watch.watcher.store(0, Release);
    }

    /// Returns how many workers search and how many sleep, as a snapshot. A reserved worker counts
    /// as searching.
    #[inline]
    pub fn counts(&self) -> (usize, usize) {
        // Ordering: Relaxed, a snapshot.
        let counts = self.line.counts.load(Relaxed);
        (searching(counts) as usize, sleeping(counts).max(0) as usize)
    }
}

impl Drop for Idle {
    /// Ends the use of this state: no thread may notify any more. Under loom, `retire` makes a
    /// later use fail the model.
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
mod many_threads {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
