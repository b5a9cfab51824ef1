//! A cell that is set once, and for which tasks can wait.
//!
//! | field | may be touched by |
//! |---|---|
//! | `is_set` | read by anyone; set once, under the lock of `waiters` |
//! | `value` | written under that lock before `is_set`; read by anyone that has seen `is_set` |
//!
//! `set` writes the value, sets `is_set` and wakes all, so a wait either sees `is_set` under the
//! lock, or has its waiter in the queue. Two threads that set are ordered by the lock: the one that
//! fails sees the other's value.
use crate::{
    coop::WaitsOn,
    wait::{Condition, until},
    waiters::Waiters,
    waiting::Waiting,
};
use core::{
    error::Error,
    fmt,
    future::Future,
    mem::MaybeUninit,
    panic::{RefUnwindSafe, UnwindSafe},
};
use sync_shim::{
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    cell::UnsafeCell,
};

/// A cell that is set at most once. Tasks can wait until it is set.
///
/// ```
/// use task_sync::SetOnce;
///
/// static CONFIG: SetOnce<String> = SetOnce::const_new();
///
/// let reader = std::thread::spawn(|| futures::executor::block_on(CONFIG.wait()).len());
/// CONFIG.set("verbose".to_string()).unwrap();
/// assert_eq!(reader.join().unwrap(), 7);
/// assert!(CONFIG.set("quiet".to_string()).is_err());
/// ```
pub struct SetOnce<T> {
    is_set: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
    waiters: Waiters<()>,
}

// SAFETY: threads share references to the value, and a thread may set it for another one.
unsafe impl<T: Send + Sync> Sync for SetOnce<T> {}
// SAFETY: the value moves with the cell.
unsafe impl<T: Send> Send for SetOnce<T> {}

// The value is never half changed.
impl<T: UnwindSafe> UnwindSafe for SetOnce<T> {}
impl<T: UnwindSafe + RefUnwindSafe> RefUnwindSafe for SetOnce<T> {}

impl<T> SetOnce<T> {
    sync_shim::const_fn! {
        /// Creates a cell without a value. `const`, except under a model.
        ///
        /// ```
        /// let cell = task_sync::SetOnce::<u8>::new();
        /// assert!(!cell.initialized());
        /// ```
        pub const fn new() -> Self {
            Self {
                is_set: AtomicBool::new(false),
                value: UnsafeCell::new(MaybeUninit::uninit()),
                waiters: Waiters::new(()),
            }
        }
    }

    sync_shim::const_fn! {
        /// Creates a cell in a `static`. The same as [`new`](Self::new).
        ///
        /// ```
        /// static CELL: task_sync::SetOnce<u8> = task_sync::SetOnce::const_new();
        /// assert_eq!(CELL.get(), None);
        /// ```
        pub const fn const_new() -> Self {
            Self::new()
        }
    }

    sync_shim::const_fn! {
        /// Creates a cell that has a value. `const`, except under a model.
        ///
        /// ```
        /// static CELL: task_sync::SetOnce<u8> = task_sync::SetOnce::const_new_with(7);
        /// assert_eq!(CELL.get(), Some(&7));
        /// ```
        pub const fn const_new_with(value: T) -> Self {
            Self {
                is_set: AtomicBool::new(true),
                value: UnsafeCell::new(MaybeUninit::new(value)),
                waiters: Waiters::new(()),
            }
        }
    }

    /// Creates a cell with the value, if there is one.
    ///
    /// ```
    /// use task_sync::SetOnce;
    ///
    /// assert_eq!(SetOnce::new_with(Some(7)).get(), Some(&7));
    /// assert_eq!(SetOnce::<u8>::new_with(None).get(), None);
    /// ```
    pub fn new_with(value: Option<T>) -> Self {
        value.map_or_else(Self::new, Self::const_new_with)
    }

    /// Returns whether the cell has a value.
    ///
    /// ```
    /// let cell = task_sync::SetOnce::new();
    /// cell.set(7).unwrap();
    /// assert!(cell.initialized());
    /// ```
    pub fn initialized(&self) -> bool {
        // Ordering: Acquire pairs with the Release of `set`: the value is written.
        self.is_set.load(Acquire)
    }

    /// Returns the value, if the cell has one.
    ///
    /// ```
    /// let cell = task_sync::SetOnce::new();
    /// assert_eq!(cell.get(), None);
    /// cell.set(7).unwrap();
    /// assert_eq!(cell.get(), Some(&7));
    /// ```
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.initialized().then(|| {
            let value = self.value.with(|value| value.cast::<T>());
            // SAFETY: the value is written, and stays until the cell is owned.
            unsafe { &*value }
        })
    }

    /// Sets the value, and wakes the tasks that wait for it.
    ///
    /// ```
    /// use task_sync::{SetOnce, SetOnceError};
    ///
    /// let cell = SetOnce::new();
    /// assert_eq!(cell.set(7), Ok(()));
    /// assert_eq!(cell.set(8), Err(SetOnceError(8)));
    /// ```
    ///
    /// # Errors
    /// Returns `value` if the cell has a value already. [`get`](Self::get) then returns that.
    pub fn set(&self, value: T) -> Result<(), SetOnceError<T>> {
        if self.initialized() {
            return Err(SetOnceError(value));
        }
        let locked = self.waiters.lock();
        // Ordering: Relaxed, only the lock's holder sets it.
        if self.is_set.load(Relaxed) {
            // The guard is dropped before the value.
            drop(locked);
            return Err(SetOnceError(value));
        }
        self.value.with_mut(|slot| {
            // SAFETY: the lock is held, and no other thread reads before `is_set`.
            unsafe { (*slot).write(value) };
        });
        // Ordering: Release pairs with the Acquire of `initialized`.
        self.is_set.store(true, Release);
        locked.wake_all(|()| ());
        Ok(())
    }

    /// Returns the value, if the cell has one.
    ///
    /// ```
    /// assert_eq!(task_sync::SetOnce::from(7).into_inner(), Some(7));
    /// ```
    pub fn into_inner(self) -> Option<T> {
        let is_set = self.initialized();
        // Ordering: Relaxed, the cell is owned. Its drop then leaves the value alone.
        self.is_set.store(false, Relaxed);
        is_set.then(|| {
            self.value.with(|value| {
                // SAFETY: the value is written, and it is not used again.
                unsafe { value.cast::<T>().read() }
            })
        })
    }

    /// Waits until the cell has a value. If the future is dropped, nothing is lost.
    ///
    /// ```
    /// let cell = task_sync::SetOnce::new();
    /// std::thread::scope(|threads| {
    ///     threads.spawn(|| assert_eq!(*futures::executor::block_on(cell.wait()), 7));
    ///     cell.set(7).unwrap();
    /// });
    /// ```
    pub fn wait(&self) -> impl Future<Output = &T> {
        until(Set(self))
    }

    /// Calls `f` for each task that waits for the value. For dumps of tasks. `f` runs under the
    /// internal lock, so it must be short; see [`Waiting`] for what it may do. The call skips the
    /// tasks that a `set` is about to wake.
    ///
    /// ```
    /// use futures::{FutureExt, future::join};
    ///
    /// let cell = task_sync::SetOnce::<u8>::new();
    /// let count = async {
    ///     let mut waiting = 0;
    ///     cell.for_each_waiter(|task| waiting += task.needed());
    ///     assert_eq!(waiting, 1);
    /// };
    /// assert!(join(cell.wait(), count).now_or_never().is_none());
    /// ```
    pub fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        let mut locked = self.waiters.lock();
        locked.for_each(|waker, ()| f(&Waiting::new(waker, 1)));
    }
}

impl<T> Drop for SetOnce<T> {
    fn drop(&mut self) {
        if self.initialized() {
            self.value.with_mut(|value| {
                // SAFETY: the value is written, and it is not used again.
                unsafe { value.cast::<T>().drop_in_place() };
            });
        }
    }
}

impl<T> Default for SetOnce<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Clone> Clone for SetOnce<T> {
    fn clone(&self) -> Self {
        Self::new_with(self.get().cloned())
    }
}

impl<T: PartialEq> PartialEq for SetOnce<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: Eq> Eq for SetOnce<T> {}

impl<T> From<T> for SetOnce<T> {
    fn from(value: T) -> Self {
        Self::const_new_with(value)
    }
}

impl<T: fmt::Debug> fmt::Debug for SetOnce<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetOnce")
            .field("value", &self.get())
            .finish()
    }
}

/// The error of [`SetOnce::set`]: the cell has a value already. It has the value that was refused.
///
/// ```
/// use task_sync::{SetOnce, SetOnceError};
///
/// let SetOnceError(refused) = SetOnce::from(7).set(8).unwrap_err();
/// assert_eq!(refused, 8);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetOnceError<T>(pub T);

impl<T> fmt::Display for SetOnceError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the cell has a value already")
    }
}

impl<T: fmt::Debug> Error for SetOnceError<T> {}

/// The condition that a cell has a value.
struct Set<'a, T>(&'a SetOnce<T>);

impl<'a, T> Condition for Set<'a, T> {
    type Shared = ();
    type Output = &'a T;

    fn queue(&self) -> &Waiters<()> {
        &self.0.waiters
    }

    fn output(&mut self) -> Option<&'a T> {
        self.0.get()
    }

    fn may_be_met(&self, &(): &()) -> bool {
        self.0.initialized()
    }

    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event("the value of a once cell", self.0)
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
