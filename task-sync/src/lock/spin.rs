//! A spin lock for targets without threads of `std`.
//!
//! `taken` is true while a guard is alive; only the holder of the guard touches `value`. A thread
//! becomes the holder by the exchange of `false` for `true`, so there is one holder at a time.
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

    pub(crate) fn lock(&self) -> LockGuard<'_, T> {
        // Ordering: Acquire pairs with the Release of the last guard's drop. Relaxed on failure and
        // in the load: nothing is read before the exchange has succeeded.
        while self
            .taken
            .compare_exchange(false, true, Acquire, Relaxed)
            .is_err()
        {
            // Ordering: Relaxed, as above.
            while self.taken.load(Relaxed) {
                spin_loop();
            }
        }
        LockGuard(self, PhantomData)
    }
}

impl<T> Deref for LockGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        let value = self.0.value.with(|value| value);
        // SAFETY: this guard is the only one, and it lends the value as itself is borrowed.
        unsafe { &*value }
    }
}

impl<T> DerefMut for LockGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        let value = self.0.value.with_mut(|value| value);
        // SAFETY: as in `deref`, and this guard is borrowed mutably.
        unsafe { &mut *value }
    }
}

impl<T> Drop for LockGuard<'_, T> {
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
