//! The guards that hold the lock alive.
use super::{
    RwLock,
    held::OwnedHeld,
    raw::{Shared, Whole},
};
use crate::guard::guard;
use alloc::sync::Arc;
use core::ptr;

/// A reader's lock of a [`RwLock`], or of a part of its data, which holds the lock alive. Its drop
/// unlocks.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use task_sync::{OwnedRwLockReadGuard, RwLock};
///
/// let lock = Arc::new(RwLock::new((1, "one")));
/// let guard = block_on(lock.clone().read_owned());
/// assert!(Arc::ptr_eq(OwnedRwLockReadGuard::rwlock(&guard), &lock));
/// let guard = OwnedRwLockReadGuard::try_map(guard, |_| None::<&i32>).unwrap_err();
/// let name: OwnedRwLockReadGuard<(i32, &str), &str> =
///     OwnedRwLockReadGuard::map(guard, |pair| &pair.1);
/// assert_eq!(*name, "one");
/// assert!(lock.try_write().is_err());
/// ```
#[must_use = "the drop unlocks"]
pub struct OwnedRwLockReadGuard<T: ?Sized, U: ?Sized = T> {
    held: OwnedHeld<T, Shared>,
    data: *const U,
}

// SAFETY: the guard is an `Arc` of the lock and a shared borrow of its data.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Sync> Send for OwnedRwLockReadGuard<T, U> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync for OwnedRwLockReadGuard<T, U> {}

guard! { [T: ?Sized, U: ?Sized] OwnedRwLockReadGuard<T, U> => U }

impl<T: ?Sized> OwnedRwLockReadGuard<T> {
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>) -> Self {
        let data = lock.value.with(|value| value);
        let held = OwnedHeld::new(lock);
        Self { held, data }
    }
}

impl<T: ?Sized, U: ?Sized> OwnedRwLockReadGuard<T, U> {
    #[inline]
    fn pointer(&self) -> *const U {
        self.data
    }

    /// Returns the lock.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.held.lock
    }

    /// Makes a guard of a part of the data.
    pub fn map<V: ?Sized>(this: Self, f: impl FnOnce(&U) -> &V) -> OwnedRwLockReadGuard<T, V> {
        let data = ptr::from_ref(f(&*this));
        let held = this.held;
        OwnedRwLockReadGuard { held, data }
    }

    /// Makes a guard of a part of the data, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<V: ?Sized>(
        this: Self,
        f: impl FnOnce(&U) -> Option<&V>,
    ) -> Result<OwnedRwLockReadGuard<T, V>, Self> {
        let Some(data) = f(&*this).map(ptr::from_ref) else {
            return Err(this);
        };
        let held = this.held;
        Ok(OwnedRwLockReadGuard { held, data })
    }
}

/// A writer's lock of a [`RwLock`], which the guard holds alive. Its drop unlocks.
///
/// ```
/// use futures::executor::block_on;
/// use std::sync::Arc;
/// use task_sync::{
///     OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock,
/// };
///
/// let lock = Arc::new(RwLock::new((1, "one")));
/// let mut guard = block_on(lock.clone().write_owned());
/// guard.0 += 1;
/// assert!(Arc::ptr_eq(OwnedRwLockWriteGuard::rwlock(&guard), &lock));
/// let mut name: OwnedRwLockMappedWriteGuard<(i32, &str), &str> =
///     OwnedRwLockWriteGuard::map(guard, |pair| &mut pair.1);
/// *name = "two";
/// drop(name);
///
/// let write = || lock.clone().try_write_owned().unwrap();
/// let guard = OwnedRwLockWriteGuard::try_map(write(), |_| None::<&mut i32>).unwrap_err();
/// let guard = OwnedRwLockWriteGuard::try_downgrade_map(guard, |_| None::<&i32>).unwrap_err();
/// drop(OwnedRwLockWriteGuard::into_mapped(guard));
/// drop(OwnedRwLockWriteGuard::downgrade_map(write(), |pair| &pair.0));
/// let guard: OwnedRwLockReadGuard<_> = write().downgrade();
/// assert_eq!(*lock.try_read().unwrap(), (2, "two"));
/// # drop(guard);
/// ```
#[must_use = "the drop unlocks"]
pub struct OwnedRwLockWriteGuard<T: ?Sized> {
    held: OwnedHeld<T, Whole>,
    data: *mut T,
}

// SAFETY: the guard is an `Arc` of the lock and a mutable borrow of its data.
unsafe impl<T: ?Sized + Send + Sync> Send for OwnedRwLockWriteGuard<T> {}
// SAFETY: as above. A shared guard gives out shared borrows alone.
unsafe impl<T: ?Sized + Send + Sync> Sync for OwnedRwLockWriteGuard<T> {}

guard! { mut [T: ?Sized] OwnedRwLockWriteGuard<T> => T }

impl<T: ?Sized> OwnedRwLockWriteGuard<T> {
    #[inline]
    pub(super) fn new(lock: Arc<RwLock<T>>) -> Self {
        let data = lock.value.with_mut(|value| value);
        let held = OwnedHeld::new(lock);
        Self { held, data }
    }

    #[inline]
    fn pointer(&self) -> *mut T {
        self.data
    }

    /// Returns the lock.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.held.lock
    }

    /// Makes the guard a reader's: other readers may enter, but no writer has been between.
    pub fn downgrade(self) -> OwnedRwLockReadGuard<T> {
        let (held, data) = (self.held.downgrade(), self.data.cast_const());
        OwnedRwLockReadGuard { held, data }
    }

    /// Makes a reader's guard of a part of the data.
    pub fn downgrade_map<U: ?Sized>(
        this: Self,
        f: impl FnOnce(&T) -> &U,
    ) -> OwnedRwLockReadGuard<T, U> {
        let data = ptr::from_ref(f(&*this));
        let held = this.held.downgrade();
        OwnedRwLockReadGuard { held, data }
    }

    /// Makes a reader's guard of a part of the data, if `f` returns one.
    ///
    /// # Errors
    /// The guard, which is still a writer's, if `f` returns `None`.
    pub fn try_downgrade_map<U: ?Sized>(
        this: Self,
        f: impl FnOnce(&T) -> Option<&U>,
    ) -> Result<OwnedRwLockReadGuard<T, U>, Self> {
        let Some(data) = f(&*this).map(ptr::from_ref) else {
            return Err(this);
        };
        let held = this.held.downgrade();
        Ok(OwnedRwLockReadGuard { held, data })
    }

    /// Makes a mapped guard of all data.
    pub fn into_mapped(this: Self) -> OwnedRwLockMappedWriteGuard<T> {
        let (held, data) = (this.held, this.data);
        OwnedRwLockMappedWriteGuard { held, data }
    }

    /// Makes a guard of a part of the data.
    pub fn map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> &mut U,
    ) -> OwnedRwLockMappedWriteGuard<T, U> {
        let data = ptr::from_mut(f(&mut *this));
        let held = this.held;
        OwnedRwLockMappedWriteGuard { held, data }
    }

    /// Makes a guard of a part of the data, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<U: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut T) -> Option<&mut U>,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, U>, Self> {
        let Some(data) = f(&mut *this).map(ptr::from_mut) else {
            return Err(this);
        };
        let held = this.held;
        Ok(OwnedRwLockMappedWriteGuard { held, data })
    }
}

/// A writer's lock of a [`RwLock`], which the guard holds alive, and a part of its data. Its drop
/// unlocks. Made by [`OwnedRwLockWriteGuard::map`].
///
/// ```
/// use std::sync::Arc;
/// use task_sync::{OwnedRwLockMappedWriteGuard, OwnedRwLockWriteGuard, RwLock};
///
/// let lock = Arc::new(RwLock::new(((1, 2), 3)));
/// let guard = lock.clone().try_write_owned().unwrap();
/// let pair = OwnedRwLockWriteGuard::map(guard, |data| &mut data.0);
/// assert!(Arc::ptr_eq(OwnedRwLockMappedWriteGuard::rwlock(&pair), &lock));
/// let pair = OwnedRwLockMappedWriteGuard::try_map(pair, |_| None::<&mut i32>).unwrap_err();
/// let mut last = OwnedRwLockMappedWriteGuard::map(pair, |pair| &mut pair.1);
/// *last += 2;
/// drop(last);
/// assert_eq!(*lock.try_read().unwrap(), ((1, 4), 3));
/// ```
#[must_use = "the drop unlocks"]
pub struct OwnedRwLockMappedWriteGuard<T: ?Sized, U: ?Sized = T> {
    held: OwnedHeld<T, Whole>,
    data: *mut U,
}

// SAFETY: the guard is an `Arc` of the lock and a mutable borrow of a part of its data.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Send
    for OwnedRwLockMappedWriteGuard<T, U>
{
}
// SAFETY: as above. A shared guard gives out shared borrows alone.
unsafe impl<T: ?Sized + Send + Sync, U: ?Sized + Send + Sync> Sync
    for OwnedRwLockMappedWriteGuard<T, U>
{
}

guard! { mut [T: ?Sized, U: ?Sized] OwnedRwLockMappedWriteGuard<T, U> => U }

impl<T: ?Sized, U: ?Sized> OwnedRwLockMappedWriteGuard<T, U> {
    #[inline]
    fn pointer(&self) -> *mut U {
        self.data
    }

    /// Returns the lock.
    pub fn rwlock(this: &Self) -> &Arc<RwLock<T>> {
        &this.held.lock
    }

    /// Makes a guard of a part of this part.
    pub fn map<V: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut U) -> &mut V,
    ) -> OwnedRwLockMappedWriteGuard<T, V> {
        let data = ptr::from_mut(f(&mut *this));
        let held = this.held;
        OwnedRwLockMappedWriteGuard { held, data }
    }

    /// Makes a guard of a part of this part, if `f` returns one.
    ///
    /// # Errors
    /// The guard, if `f` returns `None`.
    pub fn try_map<V: ?Sized>(
        mut this: Self,
        f: impl FnOnce(&mut U) -> Option<&mut V>,
    ) -> Result<OwnedRwLockMappedWriteGuard<T, V>, Self> {
        let Some(data) = f(&mut *this).map(ptr::from_mut) else {
            return Err(this);
        };
        let held = this.held;
        Ok(OwnedRwLockMappedWriteGuard { held, data })
    }
}
