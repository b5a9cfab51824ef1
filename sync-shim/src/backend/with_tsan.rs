//! std, for ThreadSanitizer.
//!
//! ThreadSanitizer does not know fences, so here a fence is a read-modify-write of one global. A
//! read-modify-write orders more than a fence does, so ThreadSanitizer misses races that real
//! fences would permit. ThreadSanitizer does not see into std's own locks either, since rustup's
//! std is compiled without it. So this backend uses parking_lot's locks, which are compiled with
//! the program.
pub use super::with_std::{alloc, cell, hint, thread};

pub mod atomic {
    pub use super::super::with_std::atomic::{
        AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize,
    };
    use std::sync::atomic::{AtomicUsize as Word, Ordering};

    static FENCE: Word = Word::new(0);

    /// Executes a fence, which is ordered with every other fence.
    pub fn fence(_order: Ordering) {
        // Ordering: AcqRel pairs with all other fences, in the one modification order of the word.
        FENCE.fetch_add(1, Ordering::AcqRel);
    }
}

pub mod sync {
    pub use parking_lot::MutexGuard;
    pub use std::sync::Arc;

    /// parking_lot's mutex.
    #[derive(Debug, Default)]
    pub struct Mutex<T: ?Sized>(parking_lot::Mutex<T>);

    impl<T> Mutex<T> {
        /// Wraps `value`.
        pub const fn new(value: T) -> Self {
            Self(parking_lot::Mutex::new(value))
        }

        /// Takes the value out.
        pub fn into_inner(self) -> T {
            self.0.into_inner()
        }
    }

    impl<T: ?Sized> Mutex<T> {
        /// Waits for the lock, and locks it.
        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock()
        }
    }

    /// parking_lot's condition variable.
    #[derive(Debug, Default)]
    pub struct Condvar(parking_lot::Condvar);

    impl Condvar {
        /// Creates a condition variable.
        pub const fn new() -> Self {
            Self(parking_lot::Condvar::new())
        }

        /// Waits for a notification.
        pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
            self.0.wait(&mut guard);
            guard
        }

        /// Waits for a notification or for `limit`. Returns true if the time ran out.
        pub fn wait_timeout<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            limit: core::time::Duration,
        ) -> (MutexGuard<'a, T>, bool) {
            let out = self.0.wait_for(&mut guard, limit);
            (guard, out.timed_out())
        }

        /// Wakes one waiter.
        pub fn notify_one(&self) {
            self.0.notify_one();
        }

        /// Wakes all waiters.
        pub fn notify_all(&self) {
            self.0.notify_all();
        }
    }
}
