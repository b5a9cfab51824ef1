//! The guards that borrow the lock.
use super::{
    RwLock,
    held::Held,
    raw::{Shared, Whole},
};
use crate::guard::guard;
use core::{marker::PhantomData, ptr};

/// A reader's lock of a [`RwLock`], or of a part of its data. Its drop unlocks.
///
/// ```
/// use futures::executor::block_on;
/// use task_sync::{RwLock, RwLockReadGuard};
///
/// let lock = RwLock::new((1, "one"));
/// let guard = block_on(lock.read());
/// let guard = RwLockReadGuard::try_map(guard, |_| None::<&i32>).unwrap_err();
/// let name: RwLockReadGuard<'_, &str> = RwLockReadGuard::map(guard, |pair| &pair.1);
/// assert_eq!(*name, "one");
/// assert!(lock.try_read().is_ok());
/// assert!(lock.try_write().is_err());
/// ```
#[must_use = "the drop unlocks"]
pub struct RwLockReadGuard<'a, T: ?Sized> {
    held: Held<'a, Shared>,
    data: *const T,
    _data: PhantomData<&'a T>,
}

// SAFETY: the guard is a shared borrow of the data, and the lock is unlocked on any thread.
unsafe impl<T: ?Sized + Sync> Send for RwLockReadGuard<'_, T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockReadGuard<'_, T> {}

guard! { ['a, T: ?Sized] RwLockReadGuard<'a, T> => T }

impl<'a, T: ?Sized> RwLockReadGuard<'a, T> {
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>) -> Self {
        Self::of(Held::new(&lock.raw), lock.value.with(|value| value))
    }

    #[inline]
    fn of(held: Held<'a, Shared>, data: *const T) -> Self {
        Self {
            held,
            data,
            _data: PhantomData,
        }
    }

    #[inline]
    fn pointer(&self) -> *const T {
        self.data
    }

    /// Makes a guard of a part of the data.
    pub fn map<U: ?Sized>(this: Self, f: impl FnOnce(&T) -> &U) -> RwLockReadGuard<'a, U> {
        let data = ptr::from_ref(f(&*this));
        RwLockReadGuard::of(this.held, data)
    }

    /// Makes a guard of a part of the data, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<U: ?Sized>(
        this: Self,
        f: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<RwLockReadGuard<'a, U>, Self> {
        match f(&*this).map(ptr::from_ref) {
            Some(data) => Ok(RwLockReadGuard::of(this.held, data)),
            None => Err(this),
        }
    }
}

/// A writer's lock of a [`RwLock`]. Its drop unlocks.
///
/// ```
/// use futures::executor::block_on;
/// use task_sync::{RwLock, RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard};
///
/// let lock = RwLock::new((1, "one"));
/// let mut guard = block_on(lock.write());
/// guard.0 += 1;
/// let mut name: RwLockMappedWriteGuard<'_, &str> =
///     RwLockWriteGuard::map(guard, |pair| &mut pair.1);
/// *name = "two";
/// drop(name);
///
/// let guard = lock.try_write().unwrap();
/// let guard = RwLockWriteGuard::try_map(guard, |_| None::<&mut i32>).unwrap_err();
/// let guard = RwLockWriteGuard::try_downgrade_map(guard, |_| None::<&i32>).unwrap_err();
/// drop(RwLockWriteGuard::into_mapped(guard));
/// let number = RwLockWriteGuard::downgrade_map(lock.try_write().unwrap(), |pair| &pair.0);
/// drop(number);
/// let guard: RwLockReadGuard<'_, _> = lock.try_write().unwrap().downgrade();
/// assert_eq!(*lock.try_read().unwrap(), (2, "two"));
/// # drop(guard);
/// ```
#[must_use = "the drop unlocks"]
pub struct RwLockWriteGuard<'a, T: ?Sized> {
    held: Held<'a, Whole>,
    data: *mut T,
    _data: PhantomData<&'a mut T>,
}

// SAFETY: the guard is a mutable borrow of the data, and the lock is unlocked on any thread. A
// guard that was sent may be downgraded, so other threads may share the data with it: `T: Sync`.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockWriteGuard<'_, T> {}
// SAFETY: as above. A shared guard gives out shared borrows alone.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockWriteGuard<'_, T> {}

guard! { mut ['a, T: ?Sized] RwLockWriteGuard<'a, T> => T }

impl<'a, T: ?Sized> RwLockWriteGuard<'a, T> {
    #[inline]
    pub(super) fn new(lock: &'a RwLock<T>) -> Self {
        Self {
            held: Held::new(&lock.raw),
            data: lock.value.with_mut(|value| value),
            _data: PhantomData,
        }
    }

    #[inline]
    fn pointer(&self) -> *mut T {
        self.data
    }

    /// Makes the guard a reader's: other readers may enter, but no writer has been between.
    pub fn downgrade(self) -> RwLockReadGuard<'a, T> {
        RwLockReadGuard::of(self.held.downgrade(), self.data)
    }

    /// Makes a reader's guard of a part of the data.
    pub fn downgrade_map<U: ?Sized>(
        this: Self,
        f: impl FnOnce(&T) -> &U,
    ) -> RwLockReadGuard<'a, U> {
        let data = ptr::from_ref(f(&*this));
        RwLockReadGuard::of(this.held.downgrade(), data)
    }

    /// Makes a reader's guard of a part of the data, if `f` returns one.
    ///
    /// # Errors
    /// The guard, which is still a writer's, if `f` returns `None`.
    pub fn try_downgrade_map<U: ?Sized>(
        this: Self,
        f: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<RwLockReadGuard<'a, U>, Self> {
        match f(&*this).map(ptr::from_ref) {
            Some(data) => Ok(RwLockReadGuard::of(this.held.downgrade(), data)),
            None => Err(this),
        }
    }

    /// Makes a mapped guard of all data.
    pub fn into_mapped(this: Self) -> RwLockMappedWriteGuard<'a, T> {
        RwLockMappedWriteGuard::of(this.held, this.data)
    }

    /// Makes a guard of a part of the data.
    pub fn map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> &mut U,
    ) -> RwLockMappedWriteGuard<'a, U> {
        let data = ptr::from_mut(f(&mut *this));
        RwLockMappedWriteGuard::of(this.held, data)
    }

    /// Makes a guard of a part of the data, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<RwLockMappedWriteGuard<'a, U>, Self> {
        match f(&mut *this).map(ptr::from_mut) {
            Some(data) => Ok(RwLockMappedWriteGuard::of(this.held, data)),
            None => Err(this),
        }
    }
}

/// A writer's lock of a [`RwLock`], and a part of its data. Its drop unlocks. Made by
/// [`RwLockWriteGuard::map`].
///
/// ```
/// use task_sync::{RwLock, RwLockMappedWriteGuard, RwLockWriteGuard};
///
/// let lock = RwLock::new(((1, 2), 3));
/// let pair = RwLockWriteGuard::map(lock.try_write().unwrap(), |data| &mut data.0);
/// let pair = RwLockMappedWriteGuard::try_map(pair, |_| None::<&mut i32>).unwrap_err();
/// let mut last = RwLockMappedWriteGuard::map(pair, |pair| &mut pair.1);
/// *last += 2;
/// drop(last);
/// assert_eq!(lock.into_inner(), ((1, 4), 3));
/// ```
#[must_use = "the drop unlocks"]
pub struct RwLockMappedWriteGuard<'a, T: ?Sized> {
    held: Held<'a, Whole>,
    data: *mut T,
    _data: PhantomData<&'a mut T>,
}

// SAFETY: as of `RwLockWriteGuard`.
unsafe impl<T: ?Sized + Send + Sync> Send for RwLockMappedWriteGuard<'_, T> {}
// SAFETY: as of `RwLockWriteGuard`.
unsafe impl<T: ?Sized + Send + Sync> Sync for RwLockMappedWriteGuard<'_, T> {}

guard! { mut ['a, T: ?Sized] RwLockMappedWriteGuard<'a, T> => T }

impl<'a, T: ?Sized> RwLockMappedWriteGuard<'a, T> {
    #[inline]
    fn of(held: Held<'a, Whole>, data: *mut T) -> Self {
        Self {
            held,
            data,
            _data: PhantomData,
        }
    }

    #[inline]
    fn pointer(&self) -> *mut T {
        self.data
    }

    /// Makes a guard of a part of this part.
    pub fn map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> &mut U,
    ) -> RwLockMappedWriteGuard<'a, U> {
        let data = ptr::from_mut(f(&mut *this));
        RwLockMappedWriteGuard::of(this.held, data)
    }

    /// Makes a guard of a part of this part, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<RwLockMappedWriteGuard<'a, U>, Self> {
        match f(&mut *this).map(ptr::from_mut) {
            Some(data) => Ok(RwLockMappedWriteGuard::of(this.held, data)),
            None => Err(this),
        }
    }
}
