//! A lock whose release is a store.
//!
//! `taken` is true while a guard is alive; only the holder of the guard touches `value`. A thread
//! becomes the holder by the exchange of `false` for `true`, so there is one holder at a time.
//!
//! The release does not know whether another thread waits: a store cannot tell. So nobody wakes a
//! thread that waits. It looks at the lock again and again: first at once, then after it has
//! yielded its processor, and in the end after short sleeps. The sleeps are for a holder that runs
//! only if the waiting thread does not, as under a scheduler with priorities.
use core::{
    marker::PhantomData,
    ops::{Deref, DerefMut},
};
use sync_shim::{
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    cell::UnsafeCell,
    hint::spin_loop,
};

pub(crate) struct Lock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

/// It gives what a `&mut T` gives, and is `Send` and `Sync` as that is.
pub(crate) struct LockGuard<'a, T>(&'a Lock<T>, PhantomData<&'a mut T>);

// SAFETY: the lock lends the value to one thread at a time, and moves it with itself.
unsafe impl<T: Send> Send for Lock<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    sync_shim::const_fn! {
        pub(crate) const fn new(value: T) -> Self {
            Self { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        // Ordering: Acquire pairs with the Release of the last guard's drop. Relaxed on failure:
        // nothing is read before an exchange has succeeded.
        let taken = self.taken.compare_exchange(false, true, Acquire, Relaxed);
        if taken.is_err() {
            self.lock_slowly();
        }
        LockGuard(self, PhantomData)
    }

    #[cold]
    #[inline(never)]
    fn lock_slowly(&self) {
        self.lock_with(wait);
    }

    /// Looks at the lock until it is free. After each look that finds it taken, calls `wait` with
    /// the number of looks before that.
    #[inline]
    fn lock_with(&self, mut wait: impl FnMut(u32)) {
        let mut looks = 0_u32;
        loop {
            // Ordering: Relaxed, a guess that saves exchanges.
            if !self.taken.load(Relaxed)
                // Ordering: as in `lock`.
                && self
                    .taken
                    .compare_exchange(false, true, Acquire, Relaxed)
                    .is_ok()
            {
                return;
            }
            wait(looks);
            looks = looks.saturating_add(1);
        }
    }
}

/// How often a thread looks at the lock before it yields after each look.
#[cfg(all(feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
const SPINS: u32 = 100;
/// How often a thread looks at the lock before it sleeps after each look. Each sleep is longer than
/// any section of a thread that runs, unless that is in the closure of a `for_each_waiter`.
#[cfg(all(feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
const YIELDS: u32 = 1_000;

/// Waits before the next look at the lock.
#[cfg(all(feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
fn wait(looks: u32) {
    use core::time::Duration;
    use sync_shim::thread::{sleep, yield_now};

    match looks {
        ..SPINS => spin_loop(),
        SPINS..YIELDS => yield_now(),
        YIELDS.. => sleep(Duration::from_micros(50)),
    }
}

/// As above, without threads of `std`, or under a model.
#[cfg(not(all(feature = "std", not(any(selvedge_loom, selvedge_shuttle)))))]
fn wait(_looks: u32) {
    spin_loop();
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let value = self.0.value.with(|value| value);
        // SAFETY: this guard is the only one, and it lends the value as itself is borrowed.
        unsafe { &*value }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        let value = self.0.value.with_mut(|value| value);
        // SAFETY: as in `deref`, and this guard is borrowed mutably.
        unsafe { &mut *value }
    }
}

impl<T> Drop for LockGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // Ordering: Release pairs with the exchange of the next `lock`.
        self.0.taken.store(false, Release);
    }
}

#[cfg(test)]
const _: () = {
    static_assertions::assert_impl_all!(LockGuard<'static, u8>: Send, Sync);
    static_assertions::assert_not_impl_any!(LockGuard<'static, core::cell::Cell<u8>>: Sync);
};

#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;

#[cfg(all(test, feature = "std"))]
mod models {
    use super::Lock;
    use sync_shim::{model, sync::Arc, thread};

    /// Two threads add under the lock. Fails if the Acquire of `lock` or the Release of the guard's
    /// drop is Relaxed.
    #[test]
    fn threads_under_the_spin_lock_take_turns() {
        model(|| {
            let lock = Arc::new(Lock::new(0));
            let other = {
                let lock = lock.clone();
                thread::spawn(move || *lock.lock() += 1)
            };
            *lock.lock() += 1;
            other.join().unwrap();
            assert_eq!(*lock.lock(), 2);
        });
    }
}
