//! The error of the locks.
use core::{error::Error, fmt};

/// The error of a `try_lock`, a `try_read` and a `try_write`: the lock is not free.
///
/// ```
/// use task_sync::{Mutex, TryLockError};
///
/// let mutex = Mutex::new(());
/// let guard = mutex.try_lock();
/// let error: TryLockError = mutex.try_lock().unwrap_err();
/// assert_eq!(error.to_string(), "the lock is not free");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TryLockError(pub(crate) ());

impl fmt::Display for TryLockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the lock is not free")
    }
}

impl Error for TryLockError {}
