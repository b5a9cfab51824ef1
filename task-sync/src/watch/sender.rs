//! The sending half of a watch channel.
use super::{
    Receiver, Ref,
    error::SendError,
    value::{Closed, Shared},
};
use crate::wait::until;
use alloc::sync::Arc;
use core::{
    fmt,
    future::Future,
    mem::replace,
    panic::{RefUnwindSafe, UnwindSafe},
};

/// Changes the value of a channel.
///
/// [`channel`](super::channel) creates it. When the last sender is dropped, the channel is closed.
///
/// ```
/// use task_sync::watch;
///
/// let (tx, rx) = watch::channel(vec![1]);
/// tx.send_modify(|list| list.push(2));
/// assert_eq!(*rx.borrow(), [1, 2]);
/// ```
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

impl<T> Sender<T> {
    /// Creates a channel without a receiver.
    ///
    /// ```
    /// use task_sync::watch::Sender;
    ///
    /// let tx = Sender::new(1);
    /// assert!(tx.send(2).is_err());
    /// let rx = tx.subscribe();
    /// assert!(tx.send(3).is_ok());
    /// assert_eq!(*rx.borrow(), 3);
    /// ```
    pub fn new(init: T) -> Self {
        Self {
            shared: Shared::new(init),
        }
    }

    /// Replaces the value, drops the old one, and wakes the receivers.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// tx.send(2).unwrap();
    /// assert_eq!(*rx.borrow(), 2);
    /// drop(rx);
    /// assert!(tx.send(3).is_err());
    /// assert_eq!(*tx.borrow(), 2);
    /// ```
    ///
    /// # Errors
    /// Returns the new value, and keeps the old one, if there is no receiver.
    /// [`send_replace`](Self::send_replace) needs none.
    ///
    /// # Panics
    /// If the drop of the old value panics. The new value was sent then.
    pub fn send(&self, value: T) -> Result<(), SendError<T>> {
        if self.shared.receivers() == 0 {
            return Err(SendError(value));
        }
        drop(self.send_replace(value));
        Ok(())
    }

    /// Changes the value in place, and wakes the receivers. Needs no receiver.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, mut rx) = watch::channel(1);
    /// tx.send_modify(|n| *n += 1);
    /// assert_eq!(*rx.borrow_and_update(), 2);
    /// ```
    ///
    /// # Panics
    /// If `modify` panics. The receivers are not woken then, and the value does not count as
    /// changed.
    pub fn send_modify<F>(&self, modify: F)
    where
        F: FnOnce(&mut T),
    {
        self.shared.modify(|value| {
            modify(value);
            Some(())
        });
    }

    /// Changes the value in place. Wakes the receivers if `modify` returns true. Needs no receiver.
    /// Returns what `modify` returns.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// let set = |new| tx.send_if_modified(|n| std::mem::replace(n, new) != new);
    /// assert!(!set(1));
    /// assert!(!rx.has_changed().unwrap());
    /// assert!(set(2));
    /// assert!(rx.has_changed().unwrap());
    /// ```
    ///
    /// # Panics
    /// As [`send_modify`](Self::send_modify).
    pub fn send_if_modified<F>(&self, modify: F) -> bool
    where
        F: FnOnce(&mut T) -> bool,
    {
        self.shared
            .modify(|value| modify(value).then_some(()))
            .is_some()
    }

    /// Replaces the value, wakes the receivers, and returns the old value. Needs no receiver.
    ///
    /// ```
    /// use task_sync::watch::Sender;
    ///
    /// let tx = Sender::new(1);
    /// assert_eq!(tx.send_replace(2), 1);
    /// assert_eq!(tx.send_replace(3), 2);
    /// ```
    pub fn send_replace(&self, value: T) -> T {
        let mut new = Some(value);
        let old = self
            .shared
            .modify(|value| new.take().map(|new| replace(value, new)));
        match old {
            Some(old) => old,
            // The closure runs once, and returns the old value for the new one.
            None => unreachable!("the value was replaced"),
        }
    }

    /// Returns a reference to the value, under a lock. See [the module](super) for its limits.
    ///
    /// ```
    /// use task_sync::watch::Sender;
    ///
    /// let tx = Sender::new(1);
    /// assert_eq!(*tx.borrow(), 1);
    /// ```
    pub fn borrow(&self) -> Ref<'_, T> {
        // The sender has seen all values.
        Ref::new(self.shared.read(), None)
    }

    /// Returns whether there is no receiver.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// assert!(!tx.is_closed());
    /// drop(rx);
    /// assert!(tx.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.receiver_count() == 0
    }

    /// Waits until there is no receiver. If the future is dropped, nothing is lost.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// std::thread::spawn(move || drop(rx));
    /// futures::executor::block_on(tx.closed());
    /// assert!(tx.is_closed());
    /// ```
    pub fn closed(&self) -> impl Future<Output = ()> {
        until(Closed(&self.shared))
    }

    /// Creates a receiver, which has seen the present value.
    ///
    /// ```
    /// use task_sync::watch::Sender;
    ///
    /// let tx = Sender::new(1);
    /// let rx = tx.subscribe();
    /// assert!(!rx.has_changed().unwrap());
    /// tx.send(2).unwrap();
    /// assert!(rx.has_changed().unwrap());
    /// ```
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::new(self.shared.clone())
    }

    /// Returns the number of receivers.
    ///
    /// ```
    /// use task_sync::watch;
    ///
    /// let (tx, rx) = watch::channel(1);
    /// let _other = rx.clone();
    /// assert_eq!(tx.receiver_count(), 2);
    /// ```
    pub fn receiver_count(&self) -> usize {
        self.shared.receivers()
    }

    /// Returns the number of senders.
    ///
    /// ```
    /// use task_sync::watch::Sender;
    ///
    /// let tx = Sender::new(1);
    /// let _other = tx.clone();
    /// assert_eq!(tx.sender_count(), 2);
    /// ```
    pub fn sender_count(&self) -> usize {
        self.shared.senders()
    }

    /// Returns whether both senders belong to one channel.
    ///
    /// ```
    /// use task_sync::watch::Sender;
    ///
    /// let tx = Sender::new(1);
    /// assert!(tx.same_channel(&tx.clone()));
    /// assert!(!tx.same_channel(&Sender::new(1)));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        let shared = self.shared.clone();
        shared.add_sender();
        Self { shared }
    }
}

impl<T: Default> Default for Sender<T> {
    fn default() -> Self {
        Self::new(T::default())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.shared.drop_sender();
    }
}

impl<T: fmt::Debug> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("watch::Sender").finish_non_exhaustive()
    }
}

// A panic under the lock may leave a value half changed, as under a `Mutex` without poison.
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}
