//! The public semaphore: its permits and its errors. [`raw`] has the protocol.
use super::raw::{self, AsSemaphore, Closed, Permits, RawSemaphore, Refused};
use crate::{wait::Wait, waiting::Waiting};
use alloc::sync::Arc;
use core::{
    error::Error,
    fmt,
    mem::forget,
    panic::{RefUnwindSafe, UnwindSafe},
};

/// A count of permits, for which tasks wait in turn.
///
/// A permit stands for whatever the program limits: an open file, a request in flight, a unit of
/// memory. A task that gets no permit waits, and tasks get permits in the order in which they first
/// asked. A request for many permits at the front of the queue keeps the permits that arrive until
/// it has all: later small requests do not overtake it. A future that is dropped while it waits
/// gives back the permits that it kept, and leaves the queue.
///
/// | operation | read-modify-writes |
/// |---|---|
/// | acquire, while nobody waits and there are permits | 1 |
/// | release, while nobody waits | 1 |
/// | release to a waiter | the lock of the queue, which is 1, and the wake |
/// | wait | a clone of the waker, and the lock of the queue; no allocation |
///
/// ```
/// use futures::executor::block_on;
/// use task_sync::{Semaphore, TryAcquireError};
///
/// static CONNECTIONS: Semaphore = Semaphore::const_new(3);
///
/// block_on(async {
///     let one = CONNECTIONS.acquire().await.unwrap();
///     let two = CONNECTIONS.acquire_many(2).await.unwrap();
///     assert_eq!(CONNECTIONS.available_permits(), 0);
///     assert_eq!(CONNECTIONS.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
///     drop(two);
///     assert!(CONNECTIONS.try_acquire_many(2).is_ok());
///     drop(one);
/// });
/// ```
///
/// A server may resize its semaphore, and close it at the end:
///
/// ```
/// use futures::{executor::block_on, join};
/// use task_sync::Semaphore;
///
/// let slots = Semaphore::new(1);
/// block_on(async {
///     slots.add_permits(2);
///     assert_eq!(slots.forget_permits(10), 3); // As many as there were.
///     join!(
///         async { assert!(slots.acquire().await.is_err()) },
///         async { slots.close() },
///     );
///     assert!(slots.is_closed());
/// });
/// ```
pub struct Semaphore {
    raw: RawSemaphore,
}

// A panic in user code finds the semaphore as the last operation left it.
impl UnwindSafe for Semaphore {}
impl RefUnwindSafe for Semaphore {}

impl Semaphore {
    /// The largest number of permits that a semaphore holds: `usize::MAX >> 3`.
    ///
    /// ```
    /// use task_sync::Semaphore;
    ///
    /// let full = Semaphore::new(Semaphore::MAX_PERMITS);
    /// assert_eq!(full.available_permits(), usize::MAX >> 3);
    /// ```
    pub const MAX_PERMITS: usize = raw::MAX_PERMITS;

    sync_shim::const_fn! {
        /// Creates a semaphore with `permits` permits. `const`, except under a model.
        ///
        /// # Panics
        /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
        pub const fn const_new(permits: usize) -> Self {
            assert!(permits <= Self::MAX_PERMITS, "{}", raw::TOO_MANY);
            Self { raw: RawSemaphore::new(permits) }
        }
    }

    /// Creates a semaphore with `permits` permits.
    ///
    /// # Panics
    /// If there are more than [`MAX_PERMITS`](Self::MAX_PERMITS).
    pub fn new(permits: usize) -> Self {
        Self::const_new(permits)
    }

    /// Returns how many permits could be acquired at this moment.
    pub fn available_permits(&self) -> usize {
        self.raw.available()
    }

    /// Adds permits, and gives them to the tasks that wait.
    ///
    /// # Panics
    /// If more than [`MAX_PERMITS`](Self::MAX_PERMITS) permits would be available. Tasks that wait
    /// get theirs all the same, and none of the others is added.
    #[track_caller]
    pub fn add_permits(&self, permits: usize) {
        assert!(self.raw.add(permits), "{}", raw::TOO_MANY);
    }

    /// Takes up to `permits` permits away for ever, and returns how many it took: those that are
    /// available at this moment. It does not wait for permits that are in use.
    pub fn forget_permits(&self, permits: usize) -> usize {
        self.raw.forget(permits)
    }

    /// Waits for a permit.
    ///
    /// Cancel safety: a future that is dropped takes no permit, but loses its place in the queue.
    ///
    /// # Errors
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Panics
    /// A future that is dropped, or that finds the semaphore closed, gives back what it was granted
    /// before. That panics as the drop of a [`SemaphorePermit`] does, if the permits do not fit.
    pub fn acquire(&self) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        self.acquire_many(1)
    }

    /// Waits for `permits` permits at once.
    ///
    /// Cancel safety: as of [`acquire`](Self::acquire). What the future was granted before its drop
    /// goes to the next in the queue.
    ///
    /// # Errors
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// # Panics
    /// As of [`acquire`](Self::acquire).
    pub fn acquire_many(
        &self,
        permits: u32,
    ) -> impl Future<Output = Result<SemaphorePermit<'_>, AcquireError>> {
        let request = Permits { of: self, permits };
        Wait::new(request, |request: Permits<&'_ Self>, result| match result {
            Ok(()) => Ok(request.of.permit(request.permits)),
            Err(Closed) => Err(AcquireError(())),
        })
    }

    /// Waits for a permit that holds the semaphore alive.
    ///
    /// Cancel safety and errors: as of [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// ```
    /// use std::{sync::Arc, thread};
    /// use task_sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = futures::executor::block_on(semaphore.clone().acquire_owned()).unwrap();
    /// thread::spawn(move || drop(permit)).join().unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    pub fn acquire_owned(
        self: Arc<Self>,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        self.acquire_many_owned(1)
    }

    /// Waits for `permits` permits at once, which hold the semaphore alive.
    ///
    /// Cancel safety: as of [`acquire_many`](Self::acquire_many).
    ///
    /// # Errors
    /// If the semaphore is closed, or is closed meanwhile.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use task_sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let permits = futures::executor::block_on(semaphore.clone().acquire_many_owned(2)).unwrap();
    /// assert_eq!((permits.num_permits(), semaphore.available_permits()), (2, 1));
    /// ```
    pub fn acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> impl Future<Output = Result<OwnedSemaphorePermit, AcquireError>> {
        let request = Permits { of: self, permits };
        Wait::new(
            request,
            |request: Permits<Arc<Self>>, result| match result {
                Ok(()) => Ok(request.of.owned_permit(request.permits)),
                Err(Closed) => Err(AcquireError(())),
            },
        )
    }

    /// Takes a permit, if there is one and no task waits.
    ///
    /// # Errors
    /// If there is none, or if the semaphore is closed.
    pub fn try_acquire(&self) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.try_acquire_many(1)
    }

    /// Takes `permits` permits, if there are so many and no task waits.
    ///
    /// # Errors
    /// If there are fewer, or if the semaphore is closed.
    pub fn try_acquire_many(&self, permits: u32) -> Result<SemaphorePermit<'_>, TryAcquireError> {
        self.raw.try_acquire(permits as usize)?;
        Ok(self.permit(permits))
    }

    /// Takes a permit that holds the semaphore alive, if there is one and no task waits.
    ///
    /// # Errors
    /// If there is none, or if the semaphore is closed.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use task_sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().try_acquire_owned().unwrap();
    /// assert!(semaphore.clone().try_acquire_owned().is_err());
    /// drop(permit);
    /// ```
    pub fn try_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.try_acquire_many_owned(1)
    }

    /// Takes `permits` permits that hold the semaphore alive, if there are so many and no task
    /// waits.
    ///
    /// # Errors
    /// If there are fewer, or if the semaphore is closed.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use task_sync::{Semaphore, TryAcquireError};
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let permits = semaphore.clone().try_acquire_many_owned(2).unwrap();
    /// let more = semaphore.clone().try_acquire_many_owned(2);
    /// assert_eq!(more.unwrap_err(), TryAcquireError::NoPermits);
    /// drop(permits);
    /// ```
    pub fn try_acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        self.raw.try_acquire(permits as usize)?;
        Ok(self.owned_permit(permits))
    }

    /// Blocks this thread until it has a permit.
    ///
    /// Not for a task: the thread of a task that blocks can't run the task that has the permits.
    ///
    /// ```
    /// use std::{sync::Arc, thread};
    /// use task_sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.blocking_acquire().unwrap();
    /// let other = {
    ///     let semaphore = semaphore.clone();
    ///     thread::spawn(move || drop(semaphore.blocking_acquire().unwrap()))
    /// };
    /// drop(permit);
    /// other.join().unwrap();
    /// ```
    ///
    /// # Errors
    /// As of [`acquire`](Self::acquire).
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    #[track_caller]
    pub fn blocking_acquire(&self) -> Result<SemaphorePermit<'_>, AcquireError> {
        crate::blocking::block_on(self.acquire())
    }

    /// Blocks this thread until it has `permits` permits at once.
    ///
    /// Not for a task, as [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// ```
    /// let semaphore = task_sync::Semaphore::new(3);
    /// let permits = semaphore.blocking_acquire_many(2).unwrap();
    /// assert_eq!((permits.num_permits(), semaphore.available_permits()), (2, 1));
    /// ```
    ///
    /// # Errors
    /// As of [`acquire`](Self::acquire).
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    #[track_caller]
    pub fn blocking_acquire_many(&self, permits: u32) -> Result<SemaphorePermit<'_>, AcquireError> {
        crate::blocking::block_on(self.acquire_many(permits))
    }

    /// Blocks this thread until it has a permit that holds the semaphore alive.
    ///
    /// Not for a task, as [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// ```
    /// use std::{sync::Arc, thread};
    /// use task_sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(1));
    /// let permit = semaphore.clone().blocking_acquire_owned().unwrap();
    /// thread::spawn(move || drop(permit)).join().unwrap();
    /// assert_eq!(semaphore.available_permits(), 1);
    /// ```
    ///
    /// # Errors
    /// As of [`acquire`](Self::acquire).
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    #[track_caller]
    pub fn blocking_acquire_owned(self: Arc<Self>) -> Result<OwnedSemaphorePermit, AcquireError> {
        crate::blocking::block_on(self.acquire_owned())
    }

    /// Blocks this thread until it has `permits` permits at once, which hold the semaphore alive.
    ///
    /// Not for a task, as [`blocking_acquire`](Self::blocking_acquire).
    ///
    /// ```
    /// use std::sync::Arc;
    /// use task_sync::Semaphore;
    ///
    /// let semaphore = Arc::new(Semaphore::new(3));
    /// let permits = semaphore.clone().blocking_acquire_many_owned(2).unwrap();
    /// assert_eq!((permits.num_permits(), semaphore.available_permits()), (2, 1));
    /// ```
    ///
    /// # Errors
    /// As of [`acquire`](Self::acquire).
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    #[track_caller]
    pub fn blocking_acquire_many_owned(
        self: Arc<Self>,
        permits: u32,
    ) -> Result<OwnedSemaphorePermit, AcquireError> {
        crate::blocking::block_on(self.acquire_many_owned(permits))
    }

    /// Closes the semaphore: no permit is acquired any more, and tasks that wait get an error.
    /// Permits that were acquired stay valid.
    pub fn close(&self) {
        self.raw.close();
    }

    /// Returns whether the semaphore is closed.
    pub fn is_closed(&self) -> bool {
        self.raw.is_closed()
    }

    /// Calls `f` for each task that waits, in the order of the queue. `f` runs under the internal
    /// lock, so it must be short; see [`Waiting`] for what it must not do.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::{future::poll_fn, pin::pin, task::Poll};
    /// use task_sync::Semaphore;
    ///
    /// let semaphore = Semaphore::new(2);
    /// let mut waits = pin!(semaphore.acquire_many(5));
    /// block_on(poll_fn(|cx| {
    ///     assert!(waits.as_mut().poll(cx).is_pending());
    ///     semaphore.for_each_waiter(|waiting| {
    ///         assert_eq!(waiting.needed(), 3);
    ///         assert!(waiting.waker().will_wake(cx.waker()));
    ///     });
    ///     Poll::Ready(())
    /// }));
    /// ```
    pub fn for_each_waiter(&self, f: impl FnMut(&Waiting<'_>)) {
        self.raw.for_each_waiter(f);
    }

    fn permit(&self, permits: u32) -> SemaphorePermit<'_> {
        SemaphorePermit {
            semaphore: self,
            permits: permits as usize,
        }
    }

    fn owned_permit(self: Arc<Self>, permits: u32) -> OwnedSemaphorePermit {
        OwnedSemaphorePermit {
            semaphore: self,
            permits: permits as usize,
        }
    }
}

impl AsSemaphore for &Semaphore {
    fn semaphore(&self) -> &RawSemaphore {
        &self.raw
    }
}

impl AsSemaphore for Arc<Semaphore> {
    fn semaphore(&self) -> &RawSemaphore {
        &self.raw
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("permits", &self.available_permits())
            .field("closed", &self.is_closed())
            .finish()
    }
}

/// Permits of a [`Semaphore`]. Their drop gives them back.
///
/// # Panics
/// The drop panics if more than [`Semaphore::MAX_PERMITS`] would be available then, which takes
/// calls of [`Semaphore::add_permits`] while permits are in use. These permits are gone, and the
/// semaphore stays usable.
///
/// ```
/// use task_sync::Semaphore;
///
/// let semaphore = Semaphore::new(5);
/// let mut permit = semaphore.try_acquire_many(4).unwrap();
/// let half = permit.split(2).unwrap();
/// assert_eq!((permit.num_permits(), half.num_permits()), (2, 2));
/// assert!(permit.split(3).is_none());
/// permit.merge(half);
/// assert!(std::ptr::eq(permit.semaphore(), &semaphore));
/// drop(permit);
/// assert_eq!(semaphore.available_permits(), 5);
/// semaphore.try_acquire().unwrap().forget(); // One permit less from now on.
/// assert_eq!(semaphore.available_permits(), 4);
/// ```
#[must_use = "the drop gives the permits back"]
#[derive(Debug)]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl SemaphorePermit<'_> {
    /// Keeps the permits from the semaphore for ever. [`Semaphore::add_permits`] can add others.
    pub fn forget(self) {
        forget(self);
    }

    /// Adds the permits of `other` to these.
    ///
    /// # Panics
    /// If `other` is of another semaphore, or if these would be more than
    /// [`Semaphore::MAX_PERMITS`]. `other` is given back then.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            core::ptr::eq(self.semaphore, other.semaphore),
            "permits of two semaphores can't be merged"
        );
        self.permits = merged(self.permits, other.permits);
        other.permits = 0;
    }

    /// Splits `n` permits off. Returns `None`, and changes nothing, if there are fewer.
    pub fn split(&mut self, n: usize) -> Option<Self> {
        self.permits = self.permits.checked_sub(n)?;
        Some(Self {
            semaphore: self.semaphore,
            permits: n,
        })
    }

    /// Returns the semaphore that the permits are of.
    pub fn semaphore(&self) -> &Semaphore {
        self.semaphore
    }

    /// Returns how many permits these are.
    pub fn num_permits(&self) -> usize {
        self.permits
    }
}

impl Drop for SemaphorePermit<'_> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.raw.release(self.permits);
    }
}

/// Permits of a [`Semaphore`] that hold the semaphore alive. Their drop gives them back.
///
/// # Panics
/// The drop panics as that of a [`SemaphorePermit`] does.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use task_sync::Semaphore;
///
/// let semaphore = Arc::new(Semaphore::new(5));
/// let mut permit = block_on(semaphore.clone().acquire_many_owned(4)).unwrap();
/// let half = permit.split(2).unwrap();
/// assert_eq!((permit.num_permits(), half.num_permits()), (2, 2));
/// permit.merge(half);
/// assert!(Arc::ptr_eq(permit.semaphore(), &semaphore));
/// std::thread::spawn(move || drop(permit)).join().unwrap();
/// assert_eq!(semaphore.available_permits(), 5);
/// semaphore.clone().try_acquire_owned().unwrap().forget(); // One permit less from now on.
/// assert_eq!(semaphore.available_permits(), 4);
/// ```
#[must_use = "the drop gives the permits back"]
#[derive(Debug)]
pub struct OwnedSemaphorePermit {
    semaphore: Arc<Semaphore>,
    permits: usize,
}

impl OwnedSemaphorePermit {
    /// Keeps the permits from the semaphore for ever. [`Semaphore::add_permits`] can add others.
    pub fn forget(mut self) {
        self.permits = 0;
    }

    /// Adds the permits of `other` to these.
    ///
    /// # Panics
    /// If `other` is of another semaphore, or if these would be more than
    /// [`Semaphore::MAX_PERMITS`]. `other` is given back then.
    #[track_caller]
    pub fn merge(&mut self, mut other: Self) {
        assert!(
            Arc::ptr_eq(&self.semaphore, &other.semaphore),
            "permits of two semaphores can't be merged"
        );
        self.permits = merged(self.permits, other.permits);
        other.permits = 0;
    }

    /// Splits `n` permits off. Returns `None`, and changes nothing, if there are fewer.
    pub fn split(&mut self, n: usize) -> Option<Self> {
        self.permits = self.permits.checked_sub(n)?;
        Some(Self {
            semaphore: self.semaphore.clone(),
            permits: n,
        })
    }

    /// Returns the semaphore that the permits are of.
    pub fn semaphore(&self) -> &Arc<Semaphore> {
        &self.semaphore
    }

    /// Returns how many permits these are.
    pub fn num_permits(&self) -> usize {
        self.permits
    }
}

impl Drop for OwnedSemaphorePermit {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.raw.release(self.permits);
    }
}

/// Returns the sum of two numbers of permits, unless it is above the limit.
#[track_caller]
fn merged(permits: usize, more: usize) -> usize {
    let sum = permits.checked_add(more);
    sum.filter(|sum| *sum <= Semaphore::MAX_PERMITS)
        .expect(raw::TOO_MANY)
}

/// The error of an acquire: the semaphore is closed.
///
/// ```
/// use futures::executor::block_on;
/// use task_sync::{AcquireError, Semaphore};
///
/// let semaphore = Semaphore::new(1);
/// semaphore.close();
/// let error: AcquireError = block_on(semaphore.acquire()).unwrap_err();
/// assert_eq!(error.to_string(), "the semaphore is closed");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcquireError(());

impl fmt::Display for AcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the semaphore is closed")
    }
}

impl Error for AcquireError {}

/// The error of a `try_acquire`.
///
/// ```
/// use task_sync::{Semaphore, TryAcquireError};
///
/// let semaphore = Semaphore::new(0);
/// assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::NoPermits);
/// semaphore.close();
/// assert_eq!(semaphore.try_acquire().unwrap_err(), TryAcquireError::Closed);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TryAcquireError {
    /// The semaphore is closed.
    Closed,
    /// There are too few permits, or other tasks wait for some.
    NoPermits,
}

impl From<Refused> for TryAcquireError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Closed => Self::Closed,
            Refused::NoPermits => Self::NoPermits,
        }
    }
}

impl fmt::Display for TryAcquireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Closed => "the semaphore is closed",
            Self::NoPermits => "there are too few permits",
        })
    }
}

impl Error for TryAcquireError {}

#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
