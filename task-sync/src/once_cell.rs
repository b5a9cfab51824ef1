//! A cell that is set once, by an asynchronous function or at once.
//!
//! # The protocol
//!
//! The cell has a semaphore ([`raw`](crate::semaphore::raw)) with one permit. A task that has the
//! permit may set the value.
//!
//! 1. `value` is written once, by the holder of the permit. The holder then closes the semaphore
//!    and never gives the permit back. So nobody writes after the close.
//! 2. `value` is read only after the semaphore is seen closed. The close is a Release, and
//!    `is_closed` an Acquire, so the reader sees the value.
//! 3. A task whose function fails, panics or is dropped gives the permit back, and the first waiter
//!    gets it. When the semaphore is closed, all waiters wake and read the value.
use crate::{
    semaphore::raw::{AsSemaphore, Closed, Permits, RawSemaphore, Refused},
    wait::Wait,
    waiting::Waiting,
};
use core::{
    convert::Infallible,
    error::Error,
    fmt,
    mem::{forget, take},
};
use sync_shim::cell::UnsafeCell;

/// A cell whose value is set once, by an asynchronous function or at once.
///
/// If several tasks want to set the value, one runs its function and the others wait. If that
/// function fails, panics or is dropped, the next one runs its own. A function must not ask the
/// same cell for its value: it would wait for itself.
///
/// To read a value that is set costs one load.
///
/// ```
/// use futures::{executor::block_on, join};
/// use task_sync::OnceCell;
///
/// static ADDRESS: OnceCell<String> = OnceCell::const_new();
///
/// async fn address() -> &'static str {
///     ADDRESS.get_or_init(|| async { "127.0.0.1".to_owned() }).await
/// }
///
/// assert_eq!(ADDRESS.get(), None);
/// block_on(async { assert_eq!(join!(address(), address()), ("127.0.0.1", "127.0.0.1")) });
/// assert!(ADDRESS.initialized());
/// ```
///
/// A function may fail, and the next one is tried:
///
/// ```
/// use futures::executor::block_on;
/// use task_sync::{OnceCell, SetError};
///
/// let mut cell = OnceCell::new();
/// block_on(async {
///     assert_eq!(cell.get_or_try_init(|| async { Err("no") }).await, Err("no"));
///     assert_eq!(cell.get_or_try_init(|| async { Ok::<_, ()>(5) }).await, Ok(&5));
/// });
/// assert_eq!(cell.set(6), Err(SetError::AlreadyInitializedError(6)));
/// *cell.get_mut().unwrap() += 1;
/// assert_eq!(cell.take(), Some(6));
/// assert_eq!(cell.set(7), Ok(()));
/// assert_eq!(cell.into_inner(), Some(7));
///
/// static GIVEN: OnceCell<u32> = OnceCell::const_new_with(8);
/// assert_eq!(GIVEN.get(), OnceCell::new_with(Some(8)).get());
/// ```
pub struct OnceCell<T> {
    raw: RawSemaphore,
    value: UnsafeCell<Option<T>>,
}

// SAFETY: the cell owns the value.
unsafe impl<T: Send> Send for OnceCell<T> {}
// SAFETY: the cell takes a value in on one thread, gives it out to others, and is dropped on any.
unsafe impl<T: Send + Sync> Sync for OnceCell<T> {}

impl<T> OnceCell<T> {
    sync_shim::const_fn! {
        /// Creates an empty cell. `const`, except under a model.
        pub const fn const_new() -> Self {
            Self { raw: RawSemaphore::new(1), value: UnsafeCell::new(None) }
        }
    }

    sync_shim::const_fn! {
        /// Creates a cell with a value. `const`, except under a model.
        pub const fn const_new_with(value: T) -> Self {
            Self { raw: RawSemaphore::new_closed(), value: UnsafeCell::new(Some(value)) }
        }
    }

    /// Creates an empty cell.
    pub fn new() -> Self {
        Self::const_new()
    }

    /// Creates a cell with a value, or an empty one.
    pub fn new_with(value: Option<T>) -> Self {
        match value {
            Some(value) => Self::const_new_with(value),
            None => Self::const_new(),
        }
    }

    /// Returns whether the value is set.
    #[inline]
    pub fn initialized(&self) -> bool {
        self.raw.is_closed()
    }

    /// Returns the value, if it is set.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        if !self.initialized() {
            return None;
        }
        let value = self.value.with(|value| value);
        // SAFETY: the semaphore is closed, so nobody writes the value any more (rule 1).
        unsafe { (*value).as_ref() }
    }

    /// Returns the value for changes, if it is set.
    pub fn get_mut(&mut self) -> Option<&mut T> {
        let value = self.value.with_mut(|value| value);
        // SAFETY: the cell is borrowed mutably.
        unsafe { (*value).as_mut() }
    }

    /// Sets the value, if it is not set and no task is about to set it.
    ///
    /// # Errors
    /// The value, if it is not set now.
    pub fn set(&self, value: T) -> Result<(), SetError<T>> {
        match self.raw.try_acquire(1) {
            Ok(()) => {
                self.finish(Permit(&self.raw), value);
                Ok(())
            }
            Err(Refused::Closed) => Err(SetError::AlreadyInitializedError(value)),
            Err(Refused::NoPermits) => Err(SetError::InitializingError(value)),
        }
    }

    /// Returns the value. If it is not set, sets it to the output of `f`, or waits for another task
    /// that does so.
    ///
    /// Cancel safety: if the future is dropped, the next task runs its own function.
    pub async fn get_or_init<F, Fut>(&self, f: F) -> &T
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = T>,
    {
        if let Some(value) = self.get() {
            return value;
        }
        let init = async { Ok::<_, Infallible>(f().await) };
        match self.wait_or_init(init).await {
            Ok(value) => value,
            Err(never) => match never {},
        }
    }

    /// Returns the value. If it is not set, sets it to the output of `f`, or waits for another task
    /// that does so.
    ///
    /// Cancel safety: as of [`get_or_init`](Self::get_or_init).
    ///
    /// # Errors
    /// The error of `f`. The value is then not set, and the next task runs its own function.
    pub async fn get_or_try_init<E, F, Fut>(&self, f: F) -> Result<&T, E>
    where
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        if let Some(value) = self.get() {
            return Ok(value);
        }
        self.wait_or_init(async { f().await }).await
    }

    async fn wait_or_init<E>(&self, init: impl Future<Output = Result<T, E>>) -> Result<&T, E> {
        let request = Permits {
            of: &self.raw,
            permits: 1,
        };
        let permit = Wait::new(request, |request: Permits<&RawSemaphore>, result| {
            result.map(|()| Permit(request.of))
        });
        match permit.await {
            Ok(permit) => Ok(self.finish(permit, init.await?)),
            Err(Closed) => Ok(self.get().expect("a cell is closed when it is set")),
        }
    }

    /// Sets the value.
    fn finish(&self, permit: Permit<'_>, value: T) -> &T {
        let slot = self.value.with_mut(|slot| slot);
        // SAFETY: the caller has the permit, so nobody else writes (rule 1), and nobody reads
        // before the close (rule 2).
        unsafe { *slot = Some(value) };
        forget(permit);
        self.raw.close();
        self.get().expect("it was set above")
    }

    /// Returns the value, if it is set.
    pub fn into_inner(self) -> Option<T> {
        self.value.into_inner()
    }

    /// Takes the value out, if it is set. The cell is then empty, and may be set again.
    pub fn take(&mut self) -> Option<T> {
        take(self).into_inner()
    }

    /// Calls `f` for each task that waits for another task's function, in the order of the queue.
    /// `f` runs under the internal lock, so it must be short; see [`Waiting`] for what it must not
    /// do.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::{future::{pending, poll_fn}, pin::pin, task::Poll};
    /// use task_sync::OnceCell;
    ///
    /// let cell = OnceCell::<u32>::new();
    /// let mut sets = pin!(cell.get_or_init(pending));
    /// let mut waits = pin!(cell.get_or_init(|| async { 5 }));
    /// block_on(poll_fn(|cx| {
    ///     assert!(sets.as_mut().poll(cx).is_pending());
    ///     assert!(waits.as_mut().poll(cx).is_pending());
    ///     let mut waiters = 0;
    ///     cell.for_each_waiter(|_| waiters += 1);
    ///     assert_eq!(waiters, 1);
    ///     Poll::Ready(())
    /// }));
    /// ```
    pub fn for_each_waiter(&self, f: impl FnMut(&Waiting<'_>)) {
        self.raw.for_each_waiter(f);
    }
}

/// The right to set the value. Its drop leaves it to the next task.
struct Permit<'a>(&'a RawSemaphore);

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.release(1);
    }
}

impl AsSemaphore for &RawSemaphore {
    const WAITED: &'static str = "the value of a once cell";

    #[inline]
    fn semaphore(&self) -> &RawSemaphore {
        self
    }
}

impl<T> Default for OnceCell<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> From<T> for OnceCell<T> {
    fn from(value: T) -> Self {
        Self::const_new_with(value)
    }
}

impl<T: Clone> Clone for OnceCell<T> {
    fn clone(&self) -> Self {
        Self::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for OnceCell<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for OnceCell<T> {}

impl<T: fmt::Debug> fmt::Debug for OnceCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnceCell")
            .field("value", &self.get())
            .finish()
    }
}

/// The error of [`OnceCell::set`], with the value that was not set.
///
/// ```
/// use task_sync::{OnceCell, SetError};
///
/// let cell = OnceCell::from(1);
/// let error: SetError<i32> = cell.set(2).unwrap_err();
/// assert!(error.is_already_init_err() && !error.is_initializing_err());
/// assert_eq!(error.to_string(), "the cell is set already");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetError<T> {
    /// The value was set before.
    AlreadyInitializedError(T),
    /// A task is about to set the value.
    InitializingError(T),
}

impl<T> SetError<T> {
    /// Returns whether the value was set before.
    pub fn is_already_init_err(&self) -> bool {
        matches!(self, Self::AlreadyInitializedError(_))
    }

    /// Returns whether a task is about to set the value.
    pub fn is_initializing_err(&self) -> bool {
        matches!(self, Self::InitializingError(_))
    }
}

impl<T> fmt::Display for SetError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::AlreadyInitializedError(_) => "the cell is set already",
            Self::InitializingError(_) => "a task is about to set the cell",
        })
    }
}

impl<T: fmt::Debug> Error for SetError<T> {}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
