//! Locks that are bits of a word, and a place where threads wait for them.
//!
//! A thread may have to wait for user code, for example for the clone of a value. So it does not
//! spin for long: with `std` it sleeps. Many words may share one [`Parking`]: the slots of a
//! channel do, so a lock costs two bits of a word that is there anyway.
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | bit `LOCKED`, and the units above the two bits | anyone, as below |
//! | bit `PARKED` | set by a thread that holds `Parking::lock`, cleared by a waker that holds it |
//! | `Parking::lock`, `Parking::woken` | anyone |
//!
//! # Rules
//!
//! 1. A lock adds `added` to a word in which no bit of `blocking` is set, in one exchange. The
//!    unlock subtracts. What the units above the two bits count is the caller's: the readers of a
//!    value, or something that has no part in the lock. If `blocking` has `PARKED`, a thread does
//!    not overtake those that sleep.
//! 2. A thread sleeps only if, under `Parking::lock`, it has seen the word blocked with `PARKED`
//!    set.
//! 3. An unlock that leaves no bit of `holders` set, and finds `PARKED`, takes `Parking::lock`,
//!    clears `PARKED` and wakes all sleepers of all words.
//!
//! # Why no wake is lost
//!
//! Say that a thread sleeps for a word. By rule 2 there was a holder when `PARKED` was set or seen,
//! or an unlock that has seen `PARKED` and has yet to take `Parking::lock`. In the first case the
//! last holder's unlock finds `PARKED`, unless it was cleared in between; in the second it is
//! cleared soon. Each clear is followed by a wake of all sleepers, under the lock under which the
//! thread went to sleep. The thread then looks again.
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
    },
    hint::spin_loop,
};

/// The bits of a word, and the unit of the count above them.
pub(crate) const LOCKED: usize = 1;
pub(crate) const PARKED: usize = 2;
pub(crate) const UNIT: usize = 4;

/// No lock is added to a word of at least this much.
const MOST: usize = usize::MAX / 2;

/// How often a thread looks at a lock that is held before it sleeps. It often waits for the clone
/// of a small value, which takes less time than a sleep.
const SPINS: u32 = if cfg!(any(selvedge_loom, selvedge_shuttle)) {
    0
} else {
    100
};

/// The place where threads wait for locks.
pub(crate) struct Parking {
    #[cfg(feature = "std")]
    lock: sync_shim::sync::Mutex<()>,
    #[cfg(feature = "std")]
    woken: sync_shim::sync::Condvar,
}

impl Parking {
    sync_shim::const_fn! {
        pub(crate) const fn new() -> Self {
            Self {
                #[cfg(feature = "std")]
                lock: sync_shim::sync::Mutex::new(()),
                #[cfg(feature = "std")]
                woken: sync_shim::sync::Condvar::new(),
            }
        }
    }

    /// Waits until no bit of `blocking` is set in the word, and adds `added` to it (rule 1).
    /// Returns the new word.
    #[inline]
    pub(crate) fn lock(&self, word: &AtomicUsize, blocking: usize, added: usize) -> usize {
        match try_lock(word, blocking, added) {
            Ok(locked) => locked,
            Err(_) => self.lock_slowly(word, blocking, added),
        }
    }

    /// Subtracts `subtracted`, which may wrap, and wakes the sleepers if no bit of `holders` is
    /// left (rule 3).
    #[inline]
    pub(crate) fn unlock(&self, word: &AtomicUsize, subtracted: usize, holders: usize) {
        // Ordering: Release pairs with the Acquire of the next `try_lock`.
        let was = word.fetch_sub(subtracted, Release);
        if was & PARKED != 0 && was.wrapping_sub(subtracted) & holders == 0 {
            self.wake(word);
        }
    }

    #[cold]
    fn lock_slowly(&self, word: &AtomicUsize, blocking: usize, added: usize) -> usize {
        let mut left = SPINS;
        while left != 0 {
            left -= 1;
            spin_loop();
            if let Ok(locked) = try_lock(word, blocking, added) {
                return locked;
            }
        }
        self.sleep(|| {
            loop {
                let seen = match try_lock(word, blocking, added) {
                    Ok(locked) => return Some(locked),
                    Err(seen) => seen,
                };
                // Ordering: Relaxed. The flag is set and cleared under `Parking::lock`, and an
                // unlock that finds it takes that lock.
                if seen & PARKED != 0
                    || word
                        .compare_exchange(seen, seen | PARKED, Relaxed, Relaxed)
                        .is_ok()
                {
                    return None;
                }
            }
        })
    }

    /// Sleeps until `attempt` returns something. `attempt` runs under the lock.
    #[cfg(feature = "std")]
    fn sleep<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> R {
        let mut guard = self.lock.lock();
        loop {
            match attempt() {
                Some(result) => return result,
                None => guard = self.woken.wait(guard),
            }
        }
    }

    #[cfg(not(feature = "std"))]
    fn sleep<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> R {
        loop {
            match attempt() {
                Some(result) => return result,
                None => spin_loop(),
            }
        }
    }

    #[cold]
    fn wake(&self, word: &AtomicUsize) {
        #[cfg(feature = "std")]
        let _guard = self.lock.lock();
        // Ordering: Relaxed, as the set in `lock_slowly`.
        word.fetch_and(!PARKED, Relaxed);
        #[cfg(feature = "std")]
        self.woken.notify_all();
    }
}

/// Adds `added` if no bit of `blocking` is set. Otherwise returns the word that was seen.
#[inline]
fn try_lock(word: &AtomicUsize, blocking: usize, added: usize) -> Result<usize, usize> {
    // Ordering: Relaxed, a guess that the exchange checks.
    let mut seen = word.load(Relaxed);
    while seen & blocking == 0 {
        // Guards may be forgotten: the count must not run into the bits.
        assert!(seen < MOST, "too many guards of one lock");
        // Ordering: Acquire pairs with the Release of `unlock`. Relaxed on failure: the value is
        // the next guess.
        match word.compare_exchange(seen, seen + added, Acquire, Relaxed) {
            Ok(_) => return Ok(seen + added),
            Err(now) => seen = now,
        }
    }
    Err(seen)
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
