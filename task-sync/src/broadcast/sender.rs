//! The sending half of a broadcast channel.
use super::{
    Receiver,
    error::SendError,
    shared::{Closed, Shared},
};
use crate::wait::until;
use alloc::sync::Arc;
use core::{
    fmt,
    future::Future,
    panic::{RefUnwindSafe, UnwindSafe},
};
use sync_shim::atomic::Ordering::Relaxed;

/// Sends values to all receivers of a channel.
///
/// [`channel`](super::channel) creates it. When the last sender is dropped, the channel is closed:
/// receivers get the values that are left, and then the error
/// [`Closed`](super::error::RecvError::Closed).
///
/// ```
/// use task_sync::broadcast;
///
/// let (tx, mut rx) = broadcast::channel(4);
/// let other = tx.clone();
/// std::thread::spawn(move || other.send("from a thread")).join().unwrap().unwrap();
/// tx.send("from here").unwrap();
/// assert_eq!(rx.try_recv(), Ok("from a thread"));
/// assert_eq!(rx.try_recv(), Ok("from here"));
/// ```
pub struct Sender<T> {
    shared: Arc<Shared<T>>,
}

// No code of a value or of a waker leaves the channel half changed if it panics.
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}

impl<T> Sender<T> {
    /// Creates a channel without a receiver. See [`channel`](super::channel) for the capacity.
    ///
    /// ```
    /// use task_sync::broadcast::Sender;
    ///
    /// let tx = Sender::new(4);
    /// assert!(tx.send("nobody is there").is_err());
    /// let mut rx = tx.subscribe();
    /// assert_eq!(tx.send("hello"), Ok(1));
    /// assert_eq!(rx.try_recv(), Ok("hello"));
    /// ```
    ///
    /// # Panics
    /// If `capacity` is 0 or greater than `usize::MAX / 2`.
    #[track_caller]
    pub fn new(capacity: usize) -> Self {
        assert!(capacity > 0, "a broadcast channel keeps at least one value");
        assert!(
            capacity <= usize::MAX / 2,
            "a broadcast channel keeps at most usize::MAX / 2 values"
        );
        Self {
            shared: Shared::new(capacity),
        }
    }

    /// Sends a value to all receivers, and returns their number. Never waits for a receiver.
    ///
    /// After an `Ok` it is still possible that no receiver gets the value: all may be dropped
    /// before.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel(4);
    /// assert_eq!(tx.send(1), Ok(1));
    /// drop(rx);
    /// assert!(tx.send(2).is_err());
    /// let _rx = tx.subscribe();
    /// assert_eq!(tx.send(3), Ok(1));
    /// ```
    ///
    /// # Errors
    /// Returns the value if there is no receiver. A later send may succeed, after a
    /// [`subscribe`](Self::subscribe).
    ///
    /// # Panics
    /// If the drop of a value that is replaced panics. The new value was sent then.
    pub fn send(&self, value: T) -> Result<usize, SendError<T>> {
        self.shared.send(value).map_err(SendError)
    }

    /// Creates a receiver of the values that are sent from now on.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel(4);
    /// tx.send("before").unwrap();
    /// let mut rx = tx.subscribe();
    /// tx.send("after").unwrap();
    /// assert_eq!(rx.try_recv(), Ok("after"));
    /// ```
    ///
    /// # Panics
    /// If there are more than `usize::MAX / 32` receivers.
    #[track_caller]
    pub fn subscribe(&self) -> Receiver<T> {
        Receiver::new(self.shared.clone())
    }

    /// Creates a handle that does not keep the channel open.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u8>(4);
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().is_some());
    /// drop(tx);
    /// assert!(weak.upgrade().is_none());
    /// ```
    #[must_use = "a downgrade does not change the sender"]
    pub fn downgrade(&self) -> WeakSender<T> {
        WeakSender::new(self.shared.clone())
    }

    /// Returns the number of values that are kept: those that some receiver, of those at the time
    /// of the send, has not got yet.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, mut first) = broadcast::channel(4);
    /// let mut second = tx.subscribe();
    /// tx.send(1).unwrap();
    /// tx.send(2).unwrap();
    /// first.try_recv().unwrap();
    /// assert_eq!(tx.len(), 2);
    /// second.try_recv().unwrap();
    /// assert_eq!(tx.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        let tail = self.shared.tail();
        self.shared.ring.unreleased(tail.position)
    }

    /// Returns whether no value is kept.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, mut rx) = broadcast::channel(4);
    /// assert!(tx.is_empty());
    /// tx.send(1).unwrap();
    /// assert!(!tx.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of receivers.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel::<u8>(4);
    /// assert_eq!(tx.receiver_count(), 1);
    /// drop(rx);
    /// assert_eq!(tx.receiver_count(), 0);
    /// ```
    pub fn receiver_count(&self) -> usize {
        self.shared.tail().receivers
    }

    /// Returns whether both senders belong to one channel.
    ///
    /// ```
    /// use task_sync::broadcast::Sender;
    ///
    /// let tx = Sender::<u8>::new(4);
    /// assert!(tx.same_channel(&tx.clone()));
    /// assert!(!tx.same_channel(&Sender::new(4)));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Waits until the channel has no receiver. If the future is dropped, nothing is lost.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel::<u8>(4);
    /// std::thread::spawn(move || drop(rx));
    /// futures::executor::block_on(tx.closed());
    /// assert_eq!(tx.receiver_count(), 0);
    /// ```
    pub fn closed(&self) -> impl Future<Output = ()> {
        until(Closed(&self.shared))
    }

    /// Returns the number of senders.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u8>(4);
    /// let _other = tx.clone();
    /// assert_eq!(tx.strong_count(), 2);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.shared.senders()
    }

    /// Returns the number of [`WeakSender`]s.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u8>(4);
    /// let _weak = tx.downgrade();
    /// assert_eq!(tx.weak_count(), 1);
    /// ```
    pub fn weak_count(&self) -> usize {
        // Ordering: Relaxed, the number is only reported.
        self.shared.weak_senders.load(Relaxed)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        let shared = self.shared.clone();
        shared.add_sender();
        Self { shared }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.shared.drop_sender();
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("broadcast::Sender").finish_non_exhaustive()
    }
}

/// A handle from which a [`Sender`] can be made while the channel has another one.
///
/// ```
/// use task_sync::broadcast;
///
/// let (tx, mut rx) = broadcast::channel(4);
/// let weak = tx.downgrade();
/// weak.upgrade().unwrap().send("hello").unwrap();
/// assert_eq!(rx.try_recv(), Ok("hello"));
/// ```
pub struct WeakSender<T> {
    shared: Arc<Shared<T>>,
}

// As of `Sender`.
impl<T> UnwindSafe for WeakSender<T> {}
impl<T> RefUnwindSafe for WeakSender<T> {}

impl<T> WeakSender<T> {
    fn new(shared: Arc<Shared<T>>) -> Self {
        // Ordering: Relaxed, as in `weak_count`.
        shared.weak_senders.fetch_add(1, Relaxed);
        Self { shared }
    }

    /// Returns a sender, or `None` if all senders have been dropped.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u8>(4);
    /// let weak = tx.downgrade();
    /// assert!(weak.upgrade().unwrap().same_channel(&tx));
    /// ```
    #[must_use]
    pub fn upgrade(&self) -> Option<Sender<T>> {
        let shared = self.shared.clone();
        shared.upgrade().then(|| Sender { shared })
    }

    /// Returns the number of senders.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u8>(4);
    /// let weak = tx.downgrade();
    /// assert_eq!(weak.strong_count(), 1);
    /// drop(tx);
    /// assert_eq!(weak.strong_count(), 0);
    /// ```
    pub fn strong_count(&self) -> usize {
        self.shared.senders()
    }

    /// Returns the number of `WeakSender`s.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, _rx) = broadcast::channel::<u8>(4);
    /// let weak = tx.downgrade();
    /// let _other = weak.clone();
    /// assert_eq!(weak.weak_count(), 2);
    /// ```
    pub fn weak_count(&self) -> usize {
        // Ordering: Relaxed, the number is only reported.
        self.shared.weak_senders.load(Relaxed)
    }
}

impl<T> Clone for WeakSender<T> {
    fn clone(&self) -> Self {
        Self::new(self.shared.clone())
    }
}

impl<T> Drop for WeakSender<T> {
    fn drop(&mut self) {
        // Ordering: Relaxed, as in `weak_count`.
        self.shared.weak_senders.fetch_sub(1, Relaxed);
    }
}

impl<T> fmt::Debug for WeakSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("broadcast::WeakSender")
            .finish_non_exhaustive()
    }
}
