//! The lock of a queue: the user's, or in a model the shim's.
use sync_shim::{cell::UnsafeCell, hint::spin_loop};

/// A lock that an [`Injector`](crate::Injector) or a [`ValueInjector`](crate::ValueInjector) can
/// use: `std::sync::Mutex<()>`, with the feature `lock_api` also a `lock_api::Mutex<R, ()>` (of
/// parking_lot and spin), or your own.
///
/// Neither function should panic, nor should a guard's drop: a panic may leak the items that are
/// being pushed or popped. None of the three should use the queue that has the lock: that may
/// deadlock.
///
/// ```
/// use queue_global::{Boxed, Injector, Lock};
/// use std::sync::atomic::{AtomicBool, Ordering::{Acquire, Relaxed, Release}};
///
/// struct Spin(AtomicBool);
///
/// struct Guard<'a>(&'a AtomicBool);
///
/// impl Drop for Guard<'_> {
///     fn drop(&mut self) {
///         self.0.store(false, Release);
///     }
/// }
///
/// // SAFETY: the exchange succeeds for one caller, until its guard stores `false`; Acquire and
/// // Release order one guard's life before the next.
/// unsafe impl Lock for Spin {
///     type Guard<'a> = Guard<'a>;
///
///     fn try_lock(&self) -> Option<Guard<'_>> {
///         let taken = self.0.compare_exchange(false, true, Acquire, Relaxed);
///         taken.is_ok().then(|| Guard(&self.0))
///     }
///
///     fn lock(&self) -> Guard<'_> {
///         loop {
///             if let Some(guard) = self.try_lock() {
///                 return guard;
///             }
///             std::hint::spin_loop();
///         }
///     }
/// }
///
/// static QUEUE: Injector<Boxed<u32>, Spin> = Injector::with_lock(Spin(AtomicBool::new(false)));
///
/// QUEUE.push(Box::new(Boxed::new(7))).unwrap();
/// assert_eq!(QUEUE.pop().unwrap().value, 7);
/// ```
///
/// # Safety
///
/// - At any time at most one of the guards that `lock` and `try_lock` return is alive, on all
///   threads.
/// - Everything that happened before a guard was dropped happens before the next guard is returned.
pub unsafe trait Lock {
    /// A guard. The lock is held until its guard is dropped.
    type Guard<'a>
    where
        Self: 'a;

    /// Tries to take the lock. Returns `None` if it is taken.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;

    /// Takes the lock. If it is taken, waits until it is free.
    fn lock(&self) -> Self::Guard<'_>;
}

/// The default lock of an [`Injector`](crate::Injector) and of a
/// [`ValueInjector`](crate::ValueInjector).
#[cfg(feature = "std")]
pub type DefaultLock = std::sync::Mutex<()>;

// SAFETY: std's mutex returns one guard at a time, and orders each guard before the next. No code
// under the lock panics with the list half changed, so a poisoned mutex can be used like any other.
#[cfg(feature = "std")]
unsafe impl Lock for std::sync::Mutex<()> {
    type Guard<'a> = std::sync::MutexGuard<'a, ()>;

    #[inline]
    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        match self.try_lock() {
            Ok(guard) => Some(guard),
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => None,
        }
    }

    #[inline]
    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

// SAFETY: a `RawMutex` promises exclusion and the order of the guards; without these promises
// `lock_api::Mutex` would be unsound. A `RawMutex` may panic: the section "Safety" of `Lock` does
// not forbid that.
#[cfg(feature = "lock_api")]
unsafe impl<R: lock_api::RawMutex> Lock for lock_api::Mutex<R, ()> {
    type Guard<'a>
        = lock_api::MutexGuard<'a, R, ()>
    where
        R: 'a;

    #[inline]
    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        self.try_lock()
    }

    #[inline]
    fn lock(&self) -> Self::Guard<'_> {
        self.lock()
    }
}

/// The number of spin hints (together about 0.5 us on most processors) that a consumer executes
/// before it tries a taken lock again. The work under the lock takes 20 ns. Most of that time the
/// lock's holder waits for the cache lines of the list and of the stack's word, which come from
/// another processor. If consumers retried at once, these lines would move between the processors
/// for every item. The pause lets the other consumer take some dozens of items, and doubles the
/// throughput of both consumers (`cargo bench -p bench --bench injector -- contended both`).
const PAUSES: u32 = 32;
/// The number of times that a consumer tries the lock before it waits in [`Lock::lock`].
const TRIES: u32 = 8;

/// A value under a lock.
pub(crate) struct Locked<L, T> {
    lock: Checked<L>,
    value: UnsafeCell<T>,
}

impl<L, T> Locked<L, T> {
    sync_shim::const_fn! {
        pub(crate) const fn new(lock: L, value: T) -> Self {
            Self { lock: checked(lock), value: UnsafeCell::new(value) }
        }
    }
}

impl<L: Lock, T> Locked<L, T> {
    /// Runs `f` under the lock.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let _guard = match self.lock.try_lock() {
            Some(guard) => guard,
            None => self.contended(),
        };
        self.value.with_mut(|value| {
            // SAFETY: the guard is alive, so by the contract of `Lock` no other thread uses the
            // value. `f` does not call this function again: the only user code that it runs is that
            // of the links (`Linked`).
            f(unsafe { &mut *value })
        })
    }

    /// Takes the lock after a first failed attempt.
    #[cold]
    fn contended(&self) -> <Checked<L> as Lock>::Guard<'_> {
        for _ in 1..TRIES {
            (0..PAUSES).for_each(|_| spin_loop());
            if let Some(guard) = self.lock.try_lock() {
                return guard;
            }
        }
        self.lock.lock()
    }
}

/// Outside of models and ThreadSanitizer: the user's lock itself.
#[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_tsan)))]
type Checked<L> = L;

#[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_tsan)))]
const fn checked<L>(lock: L) -> L {
    lock
}

/// In models and under ThreadSanitizer: the shim's mutex in place of the user's lock. The model
/// checker can't see the user's lock, and ThreadSanitizer can't see std's.
#[cfg(any(selvedge_loom, selvedge_shuttle, selvedge_tsan))]
struct Checked<L> {
    lock: sync_shim::sync::Mutex<()>,
    _unused: L,
}

#[cfg(any(selvedge_loom, selvedge_shuttle, selvedge_tsan))]
sync_shim::const_fn! {
    const fn checked<L>(lock: L) -> Checked<L> {
        Checked { lock: sync_shim::sync::Mutex::new(()), _unused: lock }
    }
}

// SAFETY: the shim's mutex returns one guard at a time, and orders each guard before the next.
#[cfg(any(selvedge_loom, selvedge_shuttle, selvedge_tsan))]
unsafe impl<L> Lock for Checked<L> {
    type Guard<'a>
        = sync_shim::sync::MutexGuard<'a, ()>
    where
        L: 'a;

    /// Waits for the lock, because the shim's mutex has no `try_lock`.
    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        Some(self.lock.lock())
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock.lock()
    }
}
