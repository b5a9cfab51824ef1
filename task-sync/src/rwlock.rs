//! A lock for one writer or many readers.
//!
//! The protocol is in [`raw`]. A guard has an entry into the lock (`held.rs`), and a pointer to the
//! data.
mod borrowed;
mod held;
mod owned;
mod raw;

use crate::{holder, try_lock_error::TryLockError, wait::Wait, waiting::Waiting};
use alloc::sync::Arc;
use core::fmt;
use raw::{AsRwLock, Entry, Kind, RawRwLock, Shared, Whole};
use sync_shim::cell::UnsafeCell;

pub use borrowed::{RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard};
pub use owned::{OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard};

/// The number of readers that a lock allows, unless it is created with another one.
const MAX_READERS: u32 = u32::MAX >> 3;

/// A lock for one writer or many readers, which a task may hold across an await.
///
/// The lock is fair, but not first come, first served, as tokio's is:
///
/// | event | here | in tokio |
/// |---|---|---|
/// | the first waiter may enter after an unlock | it is woken; a reader with those behind it | they enter |
/// | a task asks for a lock that admits it, others wait | it enters | it waits behind all |
/// | a reader unlocks, others stay, a writer is first | later readers wait behind it | |
/// | the woken task is not admitted | it is the next one in, and others wait behind it | |
/// | `try_read` or `try_write` while tasks wait | enters, if the lock admits it | fails |
///
/// So short sections without an await run one after the other, without a change of tasks. A waiter
/// is overtaken only in the cases above. Among waiters the order is first come, first served.
///
/// A task that has a reader's lock must not wait for another one: if a writer has come between,
/// both may wait for ever.
///
/// | operation | read-modify-writes |
/// |---|---|
/// | read or write, while the lock admits it | 1 |
/// | unlock, while nobody waits, or a woken task is on its way | 1 |
/// | unlock, if others must be woken | 3, and the wakes |
/// | wait | a clone of the waker, and 3; no allocation |
///
/// A panic while the lock is held unlocks it. There is no poison: the next owner finds the data as
/// the panic left it.
///
/// ```
/// use futures::executor::block_on;
/// use task_sync::RwLock;
///
/// static NAMES: RwLock<Vec<&str>> = RwLock::const_new(Vec::new());
///
/// block_on(async {
///     NAMES.write().await.push("one");
///     let (reader, another) = (NAMES.read().await, NAMES.read().await);
///     assert_eq!(reader.len() + another.len(), 2);
///     assert!(NAMES.try_write().is_err());
/// });
/// ```
///
/// With guards that hold the lock alive, and a limit of readers:
///
/// ```
/// use futures::executor::block_on;
/// use std::{sync::Arc, thread};
/// use task_sync::RwLock;
///
/// let lock = Arc::new(RwLock::with_max_readers(1, 2));
/// let readers = [0, 1].map(|_| lock.clone().try_read_owned().unwrap());
/// assert!(lock.try_read().is_err(), "there are two readers");
/// let writer = {
///     let lock = lock.clone();
///     thread::spawn(move || *block_on(lock.write_owned()) += 1)
/// };
/// drop(readers);
/// writer.join().unwrap();
/// assert_eq!(*block_on(lock.clone().read_owned()), 2);
/// *lock.clone().try_write_owned().unwrap() += 1;
/// let mut lock = Arc::into_inner(lock).unwrap();
/// *lock.get_mut() += 1;
/// assert_eq!(lock.into_inner(), 4);
/// ```
pub struct RwLock<T: ?Sized> {
    raw: RawRwLock,
    value: UnsafeCell<T>,
}

// SAFETY: the lock owns the value.
unsafe impl<T: ?Sized + Send> Send for RwLock<T> {}
// SAFETY: the lock lends the value to one writer, or shares it among readers, on any thread.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLock<T> {}

impl<T> RwLock<T> {
    sync_shim::const_fn! {
        /// Creates a lock. `const`, except under a model. With the feature `coop-budget`, the first
        /// entry costs one read-modify-write more.
        pub const fn const_new(value: T) -> Self {
            Self::const_with_max_readers(value, MAX_READERS)
        }
    }

    sync_shim::const_fn! {
        /// Creates a lock for at most `max_readers` readers at a time. `const`, except under a
        /// model.
        ///
        /// # Panics
        /// If there may be no reader, or more than `u32::MAX >> 3`.
        #[track_caller]
        pub const fn const_with_max_readers(value: T, max_readers: u32) -> Self {
            Self::with(value, max_readers, holder::IN_CONSTANTS)
        }
    }

    /// Creates a lock.
    pub fn new(value: T) -> Self {
        Self::with(value, MAX_READERS, holder::begins())
    }

    /// Creates a lock for at most `max_readers` readers at a time.
    ///
    /// # Panics
    /// If there may be no reader, or more than `u32::MAX >> 3`.
    #[track_caller]
    pub fn with_max_readers(value: T, max_readers: u32) -> Self {
        Self::with(value, max_readers, holder::begins())
    }

    sync_shim::const_fn! {
        #[track_caller]
        const fn with(value: T, max_readers: u32, notes_holder: bool) -> Self {
            assert!(
                0 < max_readers && max_readers <= MAX_READERS,
                "a RwLock has 1 to u32::MAX >> 3 readers"
            );
            Self {
                raw: RawRwLock::new(max_readers, notes_holder),
                value: UnsafeCell::new(value),
            }
        }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> RwLock<T> {
    /// Waits for a reader's lock.
    ///
    /// Cancel safety: a future that is dropped does not take the lock, but loses its place in the
    /// queue.
    pub fn read(&self) -> impl Future<Output = RwLockReadGuard<'_, T>> {
        let request = Entry::<_, Shared>::new(self);
        Wait::new(request, |request, ()| RwLockReadGuard::new(request.of))
    }

    /// Waits for a writer's lock.
    ///
    /// Cancel safety: as of [`read`](Self::read).
    pub fn write(&self) -> impl Future<Output = RwLockWriteGuard<'_, T>> {
        let request = Entry::<_, Whole>::new(self);
        Wait::new(request, |request, ()| RwLockWriteGuard::new(request.of))
    }

    /// Waits for a reader's lock, which holds this lock alive.
    ///
    /// Cancel safety: as of [`read`](Self::read).
    pub fn read_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockReadGuard<T>> {
        let request = Entry::<_, Shared>::new(self);
        Wait::new(request, |request, ()| OwnedRwLockReadGuard::new(request.of))
    }

    /// Waits for a writer's lock, which holds this lock alive.
    ///
    /// Cancel safety: as of [`read`](Self::read).
    pub fn write_owned(self: Arc<Self>) -> impl Future<Output = OwnedRwLockWriteGuard<T>> {
        let request = Entry::<_, Whole>::new(self);
        Wait::new(request, |request, ()| {
            OwnedRwLockWriteGuard::new(request.of)
        })
    }

    /// Blocks this thread until it has a reader's lock.
    ///
    /// Not for a task: the thread of a task that blocks can't run the task that holds the lock.
    ///
    /// ```
    /// use std::{sync::Arc, thread};
    /// use task_sync::RwLock;
    ///
    /// let lock = Arc::new(RwLock::new(1));
    /// let reader = lock.blocking_read();
    /// let writer = {
    ///     let lock = lock.clone();
    ///     thread::spawn(move || *lock.blocking_write() += 1)
    /// };
    /// assert_eq!(*reader, 1);
    /// drop(reader);
    /// writer.join().unwrap();
    /// assert_eq!(*lock.blocking_read(), 2);
    /// ```
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn blocking_read(&self) -> RwLockReadGuard<'_, T> {
        crate::blocking::assert_may_block();
        match self.try_read() {
            Ok(guard) => guard,
            Err(_) => crate::blocking::block_on(self.read()),
        }
    }

    /// Blocks this thread until it has the writer's lock.
    ///
    /// Not for a task, as [`blocking_read`](Self::blocking_read).
    ///
    /// ```
    /// let lock = task_sync::RwLock::new(1);
    /// *lock.blocking_write() += 1;
    /// assert_eq!(lock.into_inner(), 2);
    /// ```
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn blocking_write(&self) -> RwLockWriteGuard<'_, T> {
        crate::blocking::assert_may_block();
        match self.try_write() {
            Ok(guard) => guard,
            Err(_) => crate::blocking::block_on(self.write()),
        }
    }

    /// Takes a reader's lock, if no writer has the lock, and no waiting task is the next one in.
    ///
    /// # Errors
    /// If not.
    pub fn try_read(&self) -> Result<RwLockReadGuard<'_, T>, TryLockError> {
        match self.raw.try_enter(Kind::Read) {
            true => Ok(RwLockReadGuard::new(self)),
            false => Err(TryLockError(())),
        }
    }

    /// Takes the writer's lock, if the lock is free.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_write(&self) -> Result<RwLockWriteGuard<'_, T>, TryLockError> {
        match self.raw.try_enter(Kind::Write) {
            true => Ok(RwLockWriteGuard::new(self)),
            false => Err(TryLockError(())),
        }
    }

    /// Takes a reader's lock as [`try_read`](Self::try_read) does. The guard holds this lock alive.
    ///
    /// # Errors
    /// As of [`try_read`](Self::try_read).
    pub fn try_read_owned(self: Arc<Self>) -> Result<OwnedRwLockReadGuard<T>, TryLockError> {
        match self.raw.try_enter(Kind::Read) {
            true => Ok(OwnedRwLockReadGuard::new(self)),
            false => Err(TryLockError(())),
        }
    }

    /// Takes the writer's lock, if the lock is free. The guard holds this lock alive.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_write_owned(self: Arc<Self>) -> Result<OwnedRwLockWriteGuard<T>, TryLockError> {
        match self.raw.try_enter(Kind::Write) {
            true => Ok(OwnedRwLockWriteGuard::new(self)),
            false => Err(TryLockError(())),
        }
    }

    /// Returns the value. The mutable borrow shows that nobody holds the lock.
    pub fn get_mut(&mut self) -> &mut T {
        let value = self.value.with_mut(|value| value);
        // SAFETY: the lock is borrowed mutably, so no guard is alive.
        unsafe { &mut *value }
    }

    /// Calls `f` for each task that waits, in the order of the queue. A writer needs that as many
    /// leave as there are readers; else a task needs 1. `f` runs under the internal lock, so it
    /// must be short; see [`Waiting`] for what it must not do.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::{future::poll_fn, pin::pin, task::Poll};
    /// use task_sync::RwLock;
    ///
    /// let lock = RwLock::new(());
    /// let readers = [lock.try_read().unwrap(), lock.try_read().unwrap()];
    /// let mut writes = pin!(lock.write());
    /// block_on(poll_fn(|cx| {
    ///     assert!(writes.as_mut().poll(cx).is_pending());
    ///     lock.for_each_waiter(|waiting| assert_eq!(waiting.needed(), readers.len()));
    ///     Poll::Ready(())
    /// }));
    /// ```
    pub fn for_each_waiter(&self, f: impl FnMut(&Waiting<'_>)) {
        self.raw.for_each_waiter(f);
    }
}

impl<T: ?Sized> AsRwLock for &RwLock<T> {
    #[inline]
    fn rwlock(&self) -> &RawRwLock {
        &self.raw
    }
}

impl<T: ?Sized> AsRwLock for Arc<RwLock<T>> {
    #[inline]
    fn rwlock(&self) -> &RawRwLock {
        &self.raw
    }
}

impl<T: Default> Default for RwLock<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for RwLock<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for RwLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("RwLock");
        match self.try_read() {
            Ok(guard) => out.field("data", &&*guard),
            Err(_) => out.field("data", &format_args!("<locked>")),
        };
        out.finish()
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
