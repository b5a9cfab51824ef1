//! A lock that a worker can try. The simulator has its own lock, and no model locks this one.
#[cfg(selvedge_sim)]
pub(super) use sync_shim::sync::Mutex;

#[cfg(not(selvedge_sim))]
pub(super) use blocking::Mutex;

#[cfg(not(selvedge_sim))]
mod blocking {
    use std::sync::{MutexGuard, PoisonError, TryLockError};

    /// A mutex that ignores poison.
    pub(in crate::recorder) struct Mutex<T>(std::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in crate::recorder) const fn new(value: T) -> Self {
            Self(std::sync::Mutex::new(value))
        }

        /// Waits for the lock, and locks it.
        pub(in crate::recorder) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Locks the mutex if it is free.
        pub(in crate::recorder) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            }
        }
    }
}
