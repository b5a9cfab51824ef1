//! The receiving half of a watch channel.
use super::{
    error::RecvError,
    value::{Changed, List, Reading, Shared, Version},
};
use crate::{coop, wait::until, waiting::Waiting};
use alloc::sync::Arc;
use core::{
    fmt,
    future::Future,
    marker::PhantomData,
    ops::Deref,
    panic::{RefUnwindSafe, UnwindSafe},
};

/// Reads the value of a channel, and waits for its changes.
///
/// [`channel`](super::channel) and [`Sender::subscribe`](super::Sender::subscribe) create it. A
/// clone has seen the same version.
///
/// ```
/// use task_sync::watch;
///
/// let (tx, mut rx) = watch::channel(0);
/// tx.send(1).unwrap();
/// let mut other = rx.clone();
/// futures::executor::block_on(async {
///     rx.changed().await.unwrap();
///     other.changed().await.unwrap();
/// });
/// assert_eq!((*rx.borrow(), *other.borrow()), (1, 1));
/// ```
pub struct Receiver<T> {
    shared: Arc<Shared<T>>,
    seen: Version,
    list: List,
}

impl<T> Receiver<T> {
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let list = shared.add_receiver();
        let (seen, _) = shared.version();
        Self { shared, seen, list }
    }

    /// Returns a reference to the value, under a lock. The value does not count as seen. See
    /// [the module](super) for the limits of a reference.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert_eq!(*rx.borrow(), 2);
    /// assert!(rx.has_changed().unwrap());
    /// ```
    pub fn borrow(&self) -> Ref<'_, T> {
        Ref::new(self.shared.read(), Some(self.seen))
    }

    /// Returns a reference to the value, under a lock, and counts the value as seen. See
    /// [the module](super) for the limits of a reference.
    ///
    /// In a loop with [`changed`](Self::changed) use this method, not [`borrow`](Self::borrow):
    /// after a `borrow` the loop may see the same value twice.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert_eq!(*rx.borrow_and_update(), 2);
    /// assert!(!rx.has_changed().unwrap());
    /// ```
    pub fn borrow_and_update(&mut self) -> Ref<'_, T> {
        let reading = self.shared.read();
        let before = core::mem::replace(&mut self.seen, reading.version());
        Ref::new(reading, Some(before))
    }

    /// Returns whether there is a value that this receiver has not seen.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// assert!(!rx.has_changed().unwrap());
    /// tx.send(2).unwrap();
    /// assert!(rx.has_changed().unwrap());
    /// drop(tx);
    /// assert!(rx.has_changed().is_err());
    /// ```
    ///
    /// # Errors
    /// No sender is left, whether or not the last value was seen.
    pub fn has_changed(&self) -> Result<bool, RecvError> {
        match self.shared.version() {
            (_, true) => Err(RecvError(())),
            (version, false) => Ok(version != self.seen),
        }
    }

    /// Returns whether no sender is left. The last value stays.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// assert!(!rx.is_closed());
    /// drop(tx);
    /// assert!(rx.is_closed());
    /// assert_eq!(*rx.borrow(), 1);
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared.version().1
    }

    /// Counts the value as not seen. The next [`changed`](Self::changed) returns at once.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// rx.mark_changed();
    /// assert!(rx.has_changed().unwrap());
    /// # drop(tx);
    /// ```
    pub fn mark_changed(&mut self) {
        self.seen = self.seen.before();
    }

    /// Counts the value as seen, whatever it is.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// rx.mark_unchanged();
    /// assert!(!rx.has_changed().unwrap());
    /// ```
    pub fn mark_unchanged(&mut self) {
        (self.seen, _) = self.shared.version();
    }

    /// Waits until there is a value that this receiver has not seen, and counts it as seen.
    ///
    /// If the future is dropped, no change is lost: it counts a value as seen in the poll that
    /// returns.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// std::thread::spawn(move || tx.send(2));
    /// futures::executor::block_on(async {
    ///     rx.changed().await.unwrap();
    ///     assert_eq!(*rx.borrow(), 2);
    ///     assert!(rx.changed().await.is_err());
    /// });
    /// ```
    ///
    /// # Errors
    /// No sender is left, and this receiver has seen the last value.
    pub fn changed(&mut self) -> impl Future<Output = Result<(), RecvError>> {
        until(Changed {
            shared: &self.shared,
            seen: &mut self.seen,
            list: self.list,
        })
    }

    /// Waits until `f` returns true for the value. Looks at the present value first, and then at
    /// each new one that it meets; not at one that is replaced soon. Counts each as seen.
    ///
    /// If the future is dropped, a value at which `f` has not looked is not lost.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// std::thread::spawn(move || (2..9).for_each(|n| assert!(tx.send(n).is_ok())));
    /// let found = futures::executor::block_on(rx.wait_for(|n| *n > 7));
    /// assert_eq!(*found.unwrap(), 8);
    /// ```
    ///
    /// # Errors
    /// No sender is left, and `f` returns false for the last value.
    ///
    /// # Panics
    /// If `f` panics.
    pub async fn wait_for(
        &mut self,
        mut f: impl FnMut(&T) -> bool,
    ) -> Result<Ref<'_, T>, RecvError> {
        // The first look. Each later one follows a change, which is charged.
        coop::proceed().await;
        loop {
            let reading = self.shared.read();
            let before = core::mem::replace(&mut self.seen, reading.version());
            if f(&reading) {
                return Ok(Ref::new(reading, Some(before)));
            }
            drop(reading);
            // A new value counts as seen only when `f` has looked at it.
            let mut seen = self.seen;
            let changed = Changed {
                shared: &self.shared,
                seen: &mut seen,
                list: self.list,
            };
            until(changed).await?;
        }
    }

    /// Returns whether both receivers belong to one channel.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (_tx, rx) = watch::channel(1);
    /// assert!(rx.same_channel(&rx.clone()));
    /// assert!(!rx.same_channel(&watch::channel(1).1));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Calls `f` for each task that waits for a change. For dumps of tasks. `f` runs under an
    /// internal lock, so it must be short; see [`Waiting`] for what it may do. The call skips the
    /// tasks that a send is about to wake.
    ///
    /// ```
    /// use futures::{FutureExt, future::join};
    /// use task_sync::watch;
    ///
    /// let (_tx, mut rx) = watch::channel(1);
    /// let other = rx.clone();
    /// let count = async {
    ///     let mut waiting = 0;
    ///     other.for_each_waiter(|task| waiting += task.needed());
    ///     assert_eq!(waiting, 1);
    /// };
    /// assert!(join(rx.changed(), count).now_or_never().is_none());
    /// ```
    pub fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        self.shared
            .changed
            .for_each(&mut |waker| f(&Waiting::new(waker, 1)));
    }
}

impl<T> Clone for Receiver<T> {
    fn clone(&self) -> Self {
        let shared = self.shared.clone();
        let list = shared.add_receiver();
        Self {
            shared,
            seen: self.seen,
            list,
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.drop_receiver();
    }
}

impl<T: fmt::Debug> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("watch::Receiver").finish_non_exhaustive()
    }
}

// A panic under the lock may leave a value half changed, as under a `Mutex` without poison.
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

/// A reference to the value of a channel. Senders wait while it lives: see [the module](super).
///
/// ```
/// use task_sync::watch;
///
/// let (tx, rx) = watch::channel(1);
/// tx.send(2).unwrap();
/// let value = rx.borrow();
/// assert_eq!(*value, 2);
/// assert!(value.has_changed());
/// ```
pub struct Ref<'a, T> {
    reading: Reading<'a, T>,
    has_changed: bool,
    /// Keeps the reference on its thread.
    _not_send: PhantomData<*const ()>,
}

// SAFETY: a shared `Ref` gives a shared reference to the value, and nothing else.
unsafe impl<T: Sync> Sync for Ref<'_, T> {}

impl<T: RefUnwindSafe> UnwindSafe for Ref<'_, T> {}
impl<T: RefUnwindSafe> RefUnwindSafe for Ref<'_, T> {}

impl<'a, T> Ref<'a, T> {
    /// `seen` is the version that the receiver had seen before; `None` for a sender.
    pub(super) fn new(reading: Reading<'a, T>, seen: Option<Version>) -> Self {
        let has_changed = seen.is_some_and(|seen| seen != reading.version());
        Self {
            reading,
            has_changed,
            _not_send: PhantomData,
        }
    }

    /// Returns whether the receiver had not seen this value before. False for a
    /// [`Sender`](super::Sender).
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert!(rx.borrow_and_update().has_changed());
    /// assert!(!rx.borrow_and_update().has_changed());
    /// ```
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }
}

impl<T> Deref for Ref<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.reading
    }
}

impl<T: fmt::Debug> fmt::Debug for Ref<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ref")
            .field("value", &&**self)
            .field("has_changed", &self.has_changed)
            .finish()
    }
}
