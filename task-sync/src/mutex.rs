//! A lock that a task may hold across an await.
//!
//! [`raw`] has the protocol. This file has the data and the guards.
pub(crate) mod raw;

use crate::{guard::guard, holder, try_lock_error::TryLockError, wait::Wait, waiting::Waiting};
use alloc::sync::Arc;
use core::{fmt, marker::PhantomData, mem::ManuallyDrop, ptr};
use raw::{AsMutex, Lock, RawMutex};
use sync_shim::cell::UnsafeCell;

/// A lock that a task may hold across an await.
///
/// If the lock is never held across an await, a lock of the standard library is usually better: it
/// is faster, and the compiler then shows where a guard would cross an await.
///
/// # Order
///
/// The mutex is fair, but not first come, first served, as tokio's is:
///
/// | event | here | in tokio |
/// |---|---|---|
/// | an unlock, while tasks wait | the lock is free; the first waiter is woken | the first waiter owns the lock |
/// | a task locks, while a woken task is on its way | it gets the lock | it waits behind all others |
/// | the woken task finds the lock taken | the next unlock makes it the owner | |
/// | woken tasks find it taken again and again, each by one taking | each of the next unlocks, up to 1,023, makes the waiter that is first then the owner | |
/// | `try_lock` while tasks wait | gets the lock, if it is free | never gets it |
///
/// So a critical section without an await does not wait for the scheduler, while others want the
/// lock too. Each waiter is overtaken only from the time that it is woken until the time that it is
/// polled, once. Among waiters the order is first come, first served.
///
/// # Costs
///
/// | operation | read-modify-writes |
/// |---|---|
/// | lock, if the lock is free | 1 |
/// | unlock, if nobody waits, or a woken waiter is on its way | 1 |
/// | unlock, if the first waiter must be woken | 3, and the wake |
/// | wait | a clone of the waker, and 3; no allocation |
///
/// A panic while the lock is held unlocks it. There is no poison: the next owner finds the data as
/// the panic left it.
///
/// ```
/// use futures::{executor::block_on, join};
/// use task_sync::Mutex;
///
/// static LOG: Mutex<Vec<&str>> = Mutex::const_new(Vec::new());
///
/// async fn twice(name: &'static str) {
///     let mut log = LOG.lock().await;
///     log.push(name);
///     async { /* The guard is held across this await. */ }.await;
///     log.push(name);
/// }
///
/// block_on(async { join!(twice("one"), twice("two")) });
/// assert_eq!(*LOG.try_lock().unwrap(), ["one", "one", "two", "two"]);
/// ```
///
/// With a guard that holds the mutex alive:
///
/// ```
/// use futures::executor::block_on;
/// use std::{sync::Arc, thread};
/// use task_sync::{Mutex, OwnedMutexGuard};
///
/// let mutex = Arc::new(Mutex::new(1));
/// let guard: OwnedMutexGuard<i32> = mutex.clone().try_lock_owned().unwrap();
/// let other = {
///     let mutex = mutex.clone();
///     thread::spawn(move || *block_on(mutex.lock_owned()) += 1)
/// };
/// drop(guard);
/// other.join().unwrap();
/// let mut mutex = Arc::into_inner(mutex).unwrap();
/// *mutex.get_mut() += 1;
/// assert_eq!(mutex.into_inner(), 3);
/// ```
pub struct Mutex<T: ?Sized> {
    raw: RawMutex,
    value: UnsafeCell<T>,
}

// SAFETY: the mutex owns the value.
unsafe impl<T: ?Sized + Send> Send for Mutex<T> {}
// SAFETY: the mutex lends the value to one owner of the lock at a time, on any thread.
unsafe impl<T: ?Sized + Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    sync_shim::const_fn! {
        /// Creates a mutex. `const`, except under a model. With the feature `coop-budget`, its
        /// first lock costs two read-modify-writes more.
        pub const fn const_new(value: T) -> Self {
            Self::with(RawMutex::new(holder::IN_CONSTANTS), value)
        }
    }

    /// Creates a mutex.
    pub fn new(value: T) -> Self {
        Self::with(RawMutex::new(holder::begins()), value)
    }

    sync_shim::const_fn! {
        const fn with(raw: RawMutex, value: T) -> Self {
            Self { raw, value: UnsafeCell::new(value) }
        }
    }

    /// Returns the value.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    /// Waits for the lock.
    ///
    /// Cancel safety: a future that is dropped does not take the lock, but loses its place in the
    /// queue.
    pub fn lock(&self) -> impl Future<Output = MutexGuard<'_, T>> {
        Wait::new(Lock(self), |request: Lock<&Self>, ()| request.0.guard())
    }

    /// Waits for the lock. The guard holds the mutex alive.
    ///
    /// Cancel safety: as of [`lock`](Self::lock).
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedMutexGuard<T>> {
        Wait::new(Lock(self), |request: Lock<Arc<Self>>, ()| {
            request.0.owned_guard()
        })
    }

    /// Blocks this thread until it has the lock.
    ///
    /// Not for a task: the thread of a task that blocks can't run the task that holds the lock.
    ///
    /// ```
    /// use std::{sync::Arc, thread};
    /// use task_sync::Mutex;
    ///
    /// let mutex = Arc::new(Mutex::new(1));
    /// let guard = mutex.clone().blocking_lock_owned();
    /// let other = {
    ///     let mutex = mutex.clone();
    ///     thread::spawn(move || *mutex.blocking_lock() += 1)
    /// };
    /// drop(guard);
    /// other.join().unwrap();
    /// assert_eq!(*mutex.blocking_lock(), 2);
    /// ```
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn blocking_lock(&self) -> MutexGuard<'_, T> {
        crate::blocking::assert_may_block();
        match self.try_lock() {
            Ok(guard) => guard,
            Err(_) => crate::blocking::block_on(self.lock()),
        }
    }

    /// Blocks this thread until it has the lock. The guard holds the mutex alive.
    ///
    /// Not for a task, as [`blocking_lock`](Self::blocking_lock).
    ///
    /// ```
    /// use std::{sync::Arc, thread};
    /// use task_sync::Mutex;
    ///
    /// let mutex = Arc::new(Mutex::new(1));
    /// let other = mutex.clone();
    /// thread::spawn(move || *other.blocking_lock_owned() += 1).join().unwrap();
    /// assert_eq!(*mutex.blocking_lock_owned(), 2);
    /// ```
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn blocking_lock_owned(self: Arc<Self>) -> OwnedMutexGuard<T> {
        crate::blocking::assert_may_block();
        if self.raw.try_lock() {
            return self.owned_guard();
        }
        crate::blocking::block_on(self.lock_owned())
    }

    /// Takes the lock, if it is free.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_lock(&self) -> Result<MutexGuard<'_, T>, TryLockError> {
        match self.raw.try_lock() {
            true => Ok(self.guard()),
            false => Err(TryLockError(())),
        }
    }

    /// Takes the lock, if it is free. The guard holds the mutex alive.
    ///
    /// # Errors
    /// If it is not.
    pub fn try_lock_owned(self: Arc<Self>) -> Result<OwnedMutexGuard<T>, TryLockError> {
        match self.raw.try_lock() {
            true => Ok(self.owned_guard()),
            false => Err(TryLockError(())),
        }
    }

    /// Returns the value. The mutable borrow shows that nobody holds the lock.
    pub fn get_mut(&mut self) -> &mut T {
        let value = self.value.with_mut(|value| value);
        // SAFETY: the mutex is borrowed mutably, so no guard is alive.
        unsafe { &mut *value }
    }

    /// Calls `f` for each task that waits, in the order of the queue. `f` runs under the internal
    /// lock, so it must be short; see [`Waiting`] for what it must not do.
    ///
    /// ```
    /// use futures::executor::block_on;
    /// use std::{future::poll_fn, pin::pin, task::Poll};
    /// use task_sync::Mutex;
    ///
    /// let mutex = Mutex::new(());
    /// let guard = mutex.try_lock().unwrap();
    /// let mut waits = pin!(mutex.lock());
    /// block_on(poll_fn(|cx| {
    ///     assert!(waits.as_mut().poll(cx).is_pending());
    ///     let mut waiters = 0;
    ///     mutex.for_each_waiter(|_| waiters += 1);
    ///     assert_eq!(waiters, 1);
    ///     Poll::Ready(())
    /// }));
    /// ```
    pub fn for_each_waiter(&self, f: impl FnMut(&Waiting<'_>)) {
        self.raw.for_each_waiter(f);
    }

    /// Returns the guard of a lock that was taken.
    #[inline]
    fn guard(&self) -> MutexGuard<'_, T> {
        let mutex = self;
        MutexGuard {
            mutex,
            _data: PhantomData,
        }
    }

    /// Returns the guard of a lock that was taken.
    #[inline]
    fn owned_guard(self: Arc<Self>) -> OwnedMutexGuard<T> {
        OwnedMutexGuard {
            mutex: self,
            _data: PhantomData,
        }
    }
}

impl<T: ?Sized> AsMutex for &Mutex<T> {
    #[inline]
    fn mutex(&self) -> &RawMutex {
        &self.raw
    }
}

impl<T: ?Sized> AsMutex for Arc<Mutex<T>> {
    #[inline]
    fn mutex(&self) -> &RawMutex {
        &self.raw
    }
}

impl<T: Default> Default for Mutex<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> From<T> for Mutex<T> {
    fn from(value: T) -> Self {
        Self::new(value)
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Mutex");
        match self.try_lock() {
            Ok(guard) => out.field("data", &&*guard),
            Err(_) => out.field("data", &format_args!("<locked>")),
        };
        out.finish()
    }
}

/// The lock of a [`Mutex`], held by a borrow of the mutex. Its drop unlocks.
///
/// ```
/// use futures::executor::block_on;
/// use task_sync::{MappedMutexGuard, Mutex, MutexGuard};
///
/// let mutex = Mutex::new((1, "one"));
/// let mut guard = block_on(mutex.lock());
/// guard.0 += 1;
/// assert!(std::ptr::eq(MutexGuard::mutex(&guard), &mutex));
/// let mut name: MappedMutexGuard<'_, &str> = MutexGuard::map(guard, |pair| &mut pair.1);
/// *name = "two";
/// drop(name);
/// let guard = mutex.try_lock().unwrap();
/// let Err(guard) = MutexGuard::try_map(guard, |pair| (pair.0 > 5).then_some(&mut pair.1)) else {
///     unreachable!()
/// };
/// assert_eq!(*guard, (2, "two"));
/// ```
#[must_use = "the drop unlocks"]
pub struct MutexGuard<'a, T: ?Sized> {
    mutex: &'a Mutex<T>,
    /// The guard stands for a mutable borrow: it is `Sync` only if `T` is.
    _data: PhantomData<&'a mut T>,
}

guard! { mut ['a, T: ?Sized] MutexGuard<'a, T> => T }

impl<'a, T: ?Sized> MutexGuard<'a, T> {
    #[inline]
    fn pointer(&self) -> *mut T {
        self.mutex.value.with_mut(|value| value)
    }

    /// Returns the mutex.
    pub fn mutex(this: &Self) -> &'a Mutex<T> {
        this.mutex
    }

    /// Makes a guard of a part of the data.
    pub fn map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> &mut U,
    ) -> MappedMutexGuard<'a, U> {
        let data = ptr::from_mut(f(&mut *this));
        MappedMutexGuard {
            raw: &ManuallyDrop::new(this).mutex.raw,
            data,
            _data: PhantomData,
        }
    }

    /// Makes a guard of a part of the data, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<MappedMutexGuard<'a, U>, Self> {
        let Some(data) = f(&mut *this).map(ptr::from_mut) else {
            return Err(this);
        };
        Ok(MappedMutexGuard {
            raw: &ManuallyDrop::new(this).mutex.raw,
            data,
            _data: PhantomData,
        })
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard owns the lock.
        unsafe { self.mutex.raw.unlock() };
    }
}

/// The lock of a [`Mutex`], and a part of its data. Its drop unlocks. Made by [`MutexGuard::map`].
///
/// ```
/// use task_sync::{MappedMutexGuard, Mutex, MutexGuard};
///
/// let mutex = Mutex::new(((1, 2), 3));
/// let pair = MutexGuard::map(mutex.try_lock().unwrap(), |data| &mut data.0);
/// let pair = MappedMutexGuard::try_map(pair, |_| None::<&mut i32>).unwrap_err();
/// let mut last = MappedMutexGuard::map(pair, |pair| &mut pair.1);
/// *last += 2;
/// drop(last);
/// assert_eq!(mutex.into_inner(), ((1, 4), 3));
/// ```
#[must_use = "the drop unlocks"]
pub struct MappedMutexGuard<'a, T: ?Sized> {
    raw: &'a RawMutex,
    data: *mut T,
    _data: PhantomData<&'a mut T>,
}

// SAFETY: the guard is a mutable borrow of the data, and a `RawMutex` is unlocked on any thread.
unsafe impl<T: ?Sized + Send> Send for MappedMutexGuard<'_, T> {}
// SAFETY: as above. A shared guard gives out shared borrows alone.
unsafe impl<T: ?Sized + Sync> Sync for MappedMutexGuard<'_, T> {}

guard! { mut ['a, T: ?Sized] MappedMutexGuard<'a, T> => T }

impl<'a, T: ?Sized> MappedMutexGuard<'a, T> {
    #[inline]
    fn pointer(&self) -> *mut T {
        self.data
    }

    /// Makes a guard of a part of this part.
    pub fn map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> &mut U,
    ) -> MappedMutexGuard<'a, U> {
        let data = ptr::from_mut(f(&mut *this));
        MappedMutexGuard {
            raw: ManuallyDrop::new(this).raw,
            data,
            _data: PhantomData,
        }
    }

    /// Makes a guard of a part of this part, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<MappedMutexGuard<'a, U>, Self> {
        let Some(data) = f(&mut *this).map(ptr::from_mut) else {
            return Err(this);
        };
        Ok(MappedMutexGuard {
            raw: ManuallyDrop::new(this).raw,
            data,
            _data: PhantomData,
        })
    }
}

impl<T: ?Sized> Drop for MappedMutexGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard owns the lock.
        unsafe { self.raw.unlock() };
    }
}

/// The lock of a [`Mutex`], which the guard holds alive. Its drop unlocks.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use task_sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
///
/// let mutex = Arc::new(Mutex::new((1, "one")));
/// let guard = block_on(mutex.clone().lock_owned());
/// assert!(Arc::ptr_eq(OwnedMutexGuard::mutex(&guard), &mutex));
/// let guard = OwnedMutexGuard::try_map(guard, |_| None::<&mut i32>).unwrap_err();
/// let mut name: OwnedMappedMutexGuard<(i32, &str), &str> =
///     OwnedMutexGuard::map(guard, |pair| &mut pair.1);
/// *name = "two";
/// drop(name);
/// assert_eq!(*mutex.try_lock().unwrap(), (1, "two"));
/// ```
#[must_use = "the drop unlocks"]
pub struct OwnedMutexGuard<T: ?Sized> {
    mutex: Arc<Mutex<T>>,
    /// Neither `Send` nor `Sync`, but for the impls below.
    _data: PhantomData<*mut T>,
}

// SAFETY: the guard is an `Arc` of the mutex and a mutable borrow of its data.
unsafe impl<T: ?Sized + Send> Send for OwnedMutexGuard<T> {}
// SAFETY: as above. A shared guard gives out shared borrows of the data, and of the mutex.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedMutexGuard<T> {}

guard! { mut [T: ?Sized] OwnedMutexGuard<T> => T }

impl<T: ?Sized> OwnedMutexGuard<T> {
    #[inline]
    fn pointer(&self) -> *mut T {
        self.mutex.value.with_mut(|value| value)
    }

    /// Returns the mutex.
    pub fn mutex(this: &Self) -> &Arc<Mutex<T>> {
        &this.mutex
    }

    /// Makes a guard of a part of the data.
    pub fn map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> &mut U,
    ) -> OwnedMappedMutexGuard<T, U> {
        let data = ptr::from_mut(f(&mut *this));
        OwnedMappedMutexGuard {
            mutex: this.into_mutex(),
            data,
        }
    }

    /// Makes a guard of a part of the data, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<OwnedMappedMutexGuard<T, U>, Self> {
        let Some(data) = f(&mut *this).map(ptr::from_mut) else {
            return Err(this);
        };
        let mutex = this.into_mutex();
        Ok(OwnedMappedMutexGuard { mutex, data })
    }

    /// Returns the mutex, and keeps it locked.
    fn into_mutex(self) -> Arc<Mutex<T>> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, so the `Arc` moves.
        unsafe { ptr::read(&this.mutex) }
    }
}

impl<T: ?Sized> Drop for OwnedMutexGuard<T> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard owns the lock.
        unsafe { self.mutex.raw.unlock() };
    }
}

/// The lock of a [`Mutex`], which the guard holds alive, and a part of its data. Its drop unlocks.
/// Made by [`OwnedMutexGuard::map`].
///
/// ```
/// use std::sync::Arc;
/// use task_sync::{Mutex, OwnedMappedMutexGuard, OwnedMutexGuard};
///
/// let mutex = Arc::new(Mutex::new(((1, 2), 3)));
/// let guard = mutex.clone().try_lock_owned().unwrap();
/// let pair = OwnedMutexGuard::map(guard, |data| &mut data.0);
/// let pair = OwnedMappedMutexGuard::try_map(pair, |_| None::<&mut i32>).unwrap_err();
/// let mut last = OwnedMappedMutexGuard::map(pair, |pair| &mut pair.1);
/// *last += 2;
/// drop(last);
/// assert_eq!(*mutex.try_lock().unwrap(), ((1, 4), 3));
/// ```
#[must_use = "the drop unlocks"]
pub struct OwnedMappedMutexGuard<T: ?Sized, U: ?Sized = T> {
    mutex: Arc<Mutex<T>>,
    data: *mut U,
}

// SAFETY: the guard is an `Arc` of the mutex and a mutable borrow of a part of its data.
unsafe impl<T: ?Sized + Send, U: ?Sized + Send> Send for OwnedMappedMutexGuard<T, U> {}
// SAFETY: as above. A shared guard gives out shared borrows of the part.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedMappedMutexGuard<T, U> {}

guard! { mut [T: ?Sized, U: ?Sized] OwnedMappedMutexGuard<T, U> => U }

impl<T: ?Sized, U: ?Sized> OwnedMappedMutexGuard<T, U> {
    #[inline]
    fn pointer(&self) -> *mut U {
        self.data
    }

    /// Makes a guard of a part of this part.
    pub fn map<V: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut U) -> &mut V,
    ) -> OwnedMappedMutexGuard<T, V> {
        let data = ptr::from_mut(f(&mut *this));
        OwnedMappedMutexGuard {
            mutex: this.into_mutex(),
            data,
        }
    }

    /// Makes a guard of a part of this part, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<V: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut U) -> Option<&mut V>,
    ) -> Result<OwnedMappedMutexGuard<T, V>, Self> {
        let Some(data) = f(&mut *this).map(ptr::from_mut) else {
            return Err(this);
        };
        let mutex = this.into_mutex();
        Ok(OwnedMappedMutexGuard { mutex, data })
    }

    /// Returns the mutex, and keeps it locked.
    fn into_mutex(self) -> Arc<Mutex<T>> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped, so the `Arc` moves.
        unsafe { ptr::read(&this.mutex) }
    }
}

impl<T: ?Sized, U: ?Sized> Drop for OwnedMappedMutexGuard<T, U> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the guard owns the lock.
        unsafe { self.mutex.raw.unlock() };
    }
}

#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
