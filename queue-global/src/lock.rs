//! The lock of a queue. It is the user's lock or, in models and under ThreadSanitizer, the mutex of
//! `sync-shim`.
use sync_shim::{cell::UnsafeCell, hint::spin_loop};

/// A lock for an [`Injector`](crate::Injector) or a [`ValueInjector`](crate::ValueInjector).
///
/// These types implement the trait:
///
/// - `std::sync::Mutex<()>`, if the feature `std` is enabled;
/// - every `lock_api::Mutex<R, ()>`, if the feature `lock_api` is enabled. Two examples are
///   `parking_lot::Mutex<()>` and `spin::lock_api::Mutex<()>`.
///
/// You can also implement the trait for a lock of your own, as the example below does.
///
/// `lock`, `try_lock` and the drop of a guard should not panic: a panic may leak the items that are
/// being pushed or popped. Nor should these three use the queue that the lock belongs to: such a
/// use may deadlock.
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
/// // SAFETY: after the exchange has succeeded for one caller, it fails for all callers until that
/// // caller's guard stores `false`. This store is Release, and the next successful exchange is
/// // Acquire, so each guard's life is ordered before the next guard's.
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
/// - At any time, at most one guard of a lock is alive, whether `lock` or `try_lock` returned it,
///   and on whichever thread.
/// - Everything that happens before a guard is dropped also happens before the next guard is
///   returned.
pub unsafe trait Lock {
    /// The guard of a lock that is taken. The drop of the guard releases the lock.
    type Guard<'a>
    where
        Self: 'a;

    /// Takes the lock and returns its guard, or returns `None` if the lock is taken already.
    fn try_lock(&self) -> Option<Self::Guard<'_>>;

    /// Waits until the lock is free, takes the lock, and returns its guard.
    fn lock(&self) -> Self::Guard<'_>;
}

/// The default lock of an [`Injector`](crate::Injector) and of a
/// [`ValueInjector`](crate::ValueInjector).
#[cfg(feature = "std")]
pub type DefaultLock = std::sync::Mutex<()>;

// SAFETY: std's mutex has at most one live guard at a time, and orders each guard before the next.
// No code under the lock panics while the locked value is half changed. So the value is whole even
// if the mutex is poisoned, and the poison can be ignored.
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

// SAFETY: every `RawMutex` allows one guard at a time, and orders each guard before the next. If
// one did not, `lock_api::Mutex` itself would be unsound. A `RawMutex` may panic: the section
// "Safety" of `Lock` does not forbid that.
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

/// The number of spin hints that a thread executes before it tries a taken lock again. On most
/// processors this pause takes about 0.5 us.
///
/// The number was chosen by a measurement of the `Injector`, in the benchmark's row *both*: two
/// threads, each on a processor of its own. Each pushes one item and pops one, again and again.
/// This command repeats the row: `cargo bench -p bench --bench injector -- contended both`.
///
/// The work under the lock takes 20 ns. For most of this time the lock's holder waits for two cache
/// lines, which come from the other processor. One of them holds the lock and the list. The other
/// one holds the word that every push changes (`top` in `injector.rs`). A thread that tries the
/// lock takes the first line away from the holder. If the thread gets the lock, it pushes its next
/// item afterwards, which takes the second line away. So if the other thread tried again at once,
/// both lines would move between the processors for every item. While the other thread pauses, the
/// holder can push and pop some dozens of items. So the pause doubles the throughput of both
/// threads.
const PAUSES: u32 = 32;
/// The number of times that a thread tries the lock before it waits in [`Lock::lock`]. The first
/// attempt, which no pause precedes, counts too.
const TRIES: u32 = 8;

/// A value, and the lock that protects it.
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
    /// Takes the lock, runs `f` on the value, and releases the lock.
    #[inline]
    pub(crate) fn with<R>(&self, f: impl FnOnce(&mut T) -> R) -> R {
        let _guard = match self.lock.try_lock() {
            Some(guard) => guard,
            None => self.contended(),
        };
        self.value.with_mut(|value| {
            // SAFETY: the guard is alive, so by the contract of `Lock` no other thread uses the
            // value. Nor does `f` call this function again. `f` could do so only through user code,
            // and the only user code in `f` is `next` and `set_next` of `Linked`. The contract of
            // `Linked` forbids these two to use a queue.
            f(unsafe { &mut *value })
        })
    }

    /// Takes the lock after the first attempt has failed.
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

/// The lock that a [`Locked`] takes. Outside of models, this is the user's lock.
#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
type Checked<L> = L;

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
const fn checked<L>(lock: L) -> L {
    lock
}

/// The lock that a [`Locked`] takes. In models, this is the mutex of `sync-shim`. The user's lock
/// is stored, but never taken: the model checker can't observe it.
#[cfg(any(selvedge_loom, selvedge_shuttle))]
struct Checked<L> {
    lock: sync_shim::sync::Mutex<()>,
    _unused: L,
}

#[cfg(any(selvedge_loom, selvedge_shuttle))]
sync_shim::const_fn! {
    const fn checked<L>(lock: L) -> Checked<L> {
        Checked { lock: sync_shim::sync::Mutex::new(()), _unused: lock }
    }
}

// SAFETY: the mutex of `sync-shim` has at most one live guard at a time, and orders each guard
// before the next.
#[cfg(any(selvedge_loom, selvedge_shuttle))]
unsafe impl<L> Lock for Checked<L> {
    type Guard<'a>
        = sync_shim::sync::MutexGuard<'a, ()>
    where
        L: 'a;

    /// Waits until the lock is free, because the mutex of `sync-shim` has no `try_lock`. So this
    /// never returns `None`.
    fn try_lock(&self) -> Option<Self::Guard<'_>> {
        Some(self.lock.lock())
    }

    fn lock(&self) -> Self::Guard<'_> {
        self.lock.lock()
    }
}
