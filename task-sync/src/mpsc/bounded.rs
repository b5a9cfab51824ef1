//! The channel with a bound.
use super::error::{SendError, SendTimeoutError, TrySendError};
use super::handle::{Rx, Tx, Weak};
use super::permit::{Permit, PermitIterator};
use super::reserve::reserve;
use super::room::MAX_CAPACITY;
use crate::waiting::Waiting;
use core::{
    fmt,
    future::{Future, poll_fn},
    mem::ManuallyDrop,
    pin::pin,
    task::Poll,
};

/// Creates a channel that holds up to `capacity` messages. A send waits for room.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::channel(1);
/// futures::executor::block_on(async {
///     tx.send(1).await.unwrap();
///     assert!(tx.try_send(2).is_err());
///     assert_eq!(rx.recv().await, Some(1));
///     assert!(tx.try_send(3).is_ok());
/// });
/// ```
///
/// # Panics
/// If the capacity is 0, or above `usize::MAX >> 3`.
#[track_caller]
pub fn channel<T>(capacity: usize) -> (Sender<T>, Receiver<T>) {
    assert!(capacity > 0, "a channel for no message");
    assert!(capacity <= MAX_CAPACITY, "a channel for too many messages");
    let (tx, rx) = super::handle::channel(capacity);
    (Sender { tx }, Receiver { rx })
}

/// Sends to a [`channel`]. Clone it to send from several tasks.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::channel(2);
/// let other = tx.clone();
/// other.try_send(1).unwrap();
/// tx.try_send(2).unwrap();
/// assert_eq!((rx.try_recv(), rx.try_recv()), (Ok(1), Ok(2)));
/// ```
pub struct Sender<T> {
    tx: Tx<T, true>,
}

/// A sender that does not keep its channel open. [Upgrade](Self::upgrade) it to send.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::channel(1);
/// let weak = tx.downgrade();
/// weak.upgrade().unwrap().try_send(7).unwrap();
/// drop(tx);
/// assert!(weak.upgrade().is_none());
/// assert_eq!(rx.blocking_recv(), Some(7));
/// assert_eq!(rx.blocking_recv(), None);
/// ```
pub struct WeakSender<T> {
    weak: Weak<T, true>,
}

/// Receives from a [`channel`].
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::channel(1);
/// tx.try_send(7).unwrap();
/// drop(tx);
/// futures::executor::block_on(async {
///     while let Some(message) = rx.recv().await {
///         assert_eq!(message, 7);
///     }
/// });
/// ```
pub struct Receiver<T> {
    rx: Rx<T, true>,
}

impl<T> Sender<T> {
    /// Sends a message, as soon as there is room.
    ///
    /// Costs three read-modify-writes if there is room and the receiver does not wait for this
    /// message. With the feature `coop-budget`, a send is charged to the surrounding budget.
    ///
    /// ```
    /// use task_sync::mpsc::{self, error::SendError};
    ///
    /// let (tx, mut rx) = mpsc::channel(2);
    /// futures::executor::block_on(async {
    ///     tx.send(1).await.unwrap();
    ///     rx.close();
    ///     assert_eq!(tx.send(2).await, Err(SendError(2)));
    ///     assert_eq!(rx.recv().await, Some(1));
    /// });
    /// ```
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready drops the message, and loses its place among the
    /// senders that wait. To keep the message, await [`reserve`](Self::reserve) first.
    ///
    /// # Errors
    /// Hands the message back if the receiver is dropped or closes the channel.
    pub async fn send(&self, message: T) -> Result<(), SendError<T>> {
        match reserve(&self.tx, 1).await {
            Ok(()) => {
                Permit::new(&self.tx).send(message);
                Ok(())
            }
            Err(()) => Err(SendError(message)),
        }
    }

    /// Sends a message if there is room and no sender waits for it.
    ///
    /// After a receive there is room for a message, if no sender waits.
    ///
    /// ```
    /// use task_sync::mpsc::{self, error::TrySendError};
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// tx.try_send(1).unwrap();
    /// assert_eq!(tx.try_send(2), Err(TrySendError::Full(2)));
    /// rx.try_recv().unwrap();
    /// tx.try_send(2).unwrap();
    /// ```
    ///
    /// # Errors
    /// Hands the message back: see [`TrySendError`].
    pub fn try_send(&self, message: T) -> Result<(), TrySendError<T>> {
        match self.tx.room.try_reserve(1) {
            Ok(()) => {
                Permit::new(&self.tx).send(message);
                Ok(())
            }
            Err(TrySendError::Full(())) => Err(TrySendError::Full(message)),
            Err(TrySendError::Closed(())) => Err(TrySendError::Closed(message)),
        }
    }

    /// Sends a message, as soon as there is room, unless `end` is ready first.
    ///
    /// `end` may be a future of your runtime that sleeps.
    ///
    /// ```
    /// use task_sync::mpsc::{self, error::SendTimeoutError};
    ///
    /// let (tx, _rx) = mpsc::channel(1);
    /// futures::executor::block_on(async {
    ///     tx.send_until(1, std::future::pending::<()>()).await.unwrap();
    ///     let no_time = std::future::ready(());
    ///     assert_eq!(tx.send_until(2, no_time).await, Err(SendTimeoutError::Timeout(2)));
    /// });
    /// ```
    ///
    /// # Cancel safety
    /// As of [`send`](Self::send).
    ///
    /// # Errors
    /// Hands the message back: see [`SendTimeoutError`].
    pub async fn send_until<F: Future>(
        &self,
        message: T,
        end: F,
    ) -> Result<(), SendTimeoutError<T>> {
        let reserved = {
            let mut reserved = pin!(reserve(&self.tx, 1));
            let mut end = pin!(end);
            poll_fn(|cx| {
                if let Poll::Ready(reserved) = reserved.as_mut().poll(cx) {
                    return Poll::Ready(Some(reserved));
                }
                end.as_mut().poll(cx).map(|_| None)
            })
            .await
        };
        match reserved {
            Some(Ok(())) => {
                Permit::new(&self.tx).send(message);
                Ok(())
            }
            Some(Err(())) => Err(SendTimeoutError::Closed(message)),
            None => Err(SendTimeoutError::Timeout(message)),
        }
    }

    /// Sends a message, as soon as there is room, unless the time is over first.
    ///
    /// The timer is one of the crate `net-driver`, so the caller must be in a runtime that has a
    /// driver of that crate. [`send_until`](Self::send_until) takes a timer of any runtime.
    ///
    /// ```
    /// use net_driver::Driver;
    /// use std::time::Duration;
    /// use task_sync::mpsc::{self, error::SendTimeoutError};
    ///
    /// let mut park = Driver::new(1).park(0);
    /// let (tx, _rx) = mpsc::channel(1);
    /// park.block_on(async {
    ///     let limit = Duration::from_millis(1);
    ///     tx.send_timeout(1, limit).await.unwrap();
    ///     assert_eq!(tx.send_timeout(2, limit).await, Err(SendTimeoutError::Timeout(2)));
    /// });
    /// ```
    ///
    /// # Cancel safety
    /// As of [`send`](Self::send).
    ///
    /// # Errors
    /// Hands the message back: see [`SendTimeoutError`].
    ///
    /// # Panics
    /// If it has to wait where there is no driver.
    #[cfg(feature = "net-driver")]
    #[cfg_attr(docsrs, doc(cfg(feature = "net-driver")))]
    pub async fn send_timeout(
        &self,
        message: T,
        limit: core::time::Duration,
    ) -> Result<(), SendTimeoutError<T>> {
        self.send_until(message, net_driver::time::sleep(limit))
            .await
    }

    /// Blocks the thread as [`send`](Self::send) suspends a task.
    ///
    /// Call it from a thread that runs no async tasks: it would stop them. With the feature
    /// `coop-budget` it panics in a poll that has a budget.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let sender = std::thread::spawn(move || tx.blocking_send(7));
    /// assert_eq!(futures::executor::block_on(rx.recv()), Some(7));
    /// sender.join().unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// As of [`send`](Self::send).
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    #[track_caller]
    pub fn blocking_send(&self, message: T) -> Result<(), SendError<T>> {
        crate::blocking::block_on(self.send(message))
    }

    /// Reserves room for one message, as soon as there is some.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// futures::executor::block_on(async {
    ///     let permit = tx.reserve().await.unwrap();
    ///     assert_eq!(tx.capacity(), 0);
    ///     permit.send(7);
    ///     assert_eq!(rx.recv().await, Some(7));
    /// });
    /// ```
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready loses its place among the senders that wait.
    ///
    /// # Errors
    /// If the receiver is dropped or closes the channel.
    pub async fn reserve(&self) -> Result<Permit<'_, T>, SendError<()>> {
        reserve(&self.tx, 1).await.map_err(SendError)?;
        Ok(Permit::new(&self.tx))
    }

    /// Reserves room for `count` messages, as soon as there is some. A sender that waits keeps what
    /// room there is, until it has all that it needs.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(2);
    /// futures::executor::block_on(async {
    ///     for permit in tx.reserve_many(2).await.unwrap() {
    ///         permit.send(7);
    ///     }
    ///     assert_eq!(rx.len(), 2);
    /// });
    /// ```
    ///
    /// # Cancel safety
    /// As of [`reserve`](Self::reserve).
    ///
    /// # Errors
    /// If the receiver is dropped or closes the channel, or if `count` is above the capacity.
    pub async fn reserve_many(&self, count: usize) -> Result<PermitIterator<'_, T>, SendError<()>> {
        reserve(&self.tx, count).await.map_err(SendError)?;
        Ok(PermitIterator::new(&self.tx, count))
    }

    /// Reserves room for one message, as soon as there is some. The permit owns this sender.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// futures::executor::block_on(async {
    ///     let permit = tx.reserve_owned().await.unwrap();
    ///     let tx = permit.send(7);
    ///     assert_eq!(rx.recv().await, Some(7));
    ///     drop(tx);
    /// });
    /// ```
    ///
    /// # Cancel safety
    /// A future that is dropped before it is ready drops the sender.
    ///
    /// # Errors
    /// If the receiver is dropped or closes the channel.
    pub async fn reserve_owned(self) -> Result<OwnedPermit<T>, SendError<()>> {
        reserve(&self.tx, 1).await.map_err(SendError)?;
        Ok(OwnedPermit::new(self))
    }

    /// Reserves room for one message if there is some and no sender waits for it.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel(1);
    /// let permit = tx.try_reserve().unwrap();
    /// assert!(tx.try_reserve().is_err());
    /// permit.send(7);
    /// ```
    ///
    /// # Errors
    /// See [`TrySendError`].
    pub fn try_reserve(&self) -> Result<Permit<'_, T>, TrySendError<()>> {
        self.tx.room.try_reserve(1)?;
        Ok(Permit::new(&self.tx))
    }

    /// Reserves room for `count` messages if there is room for all and no sender waits for it.
    ///
    /// ```
    /// use task_sync::mpsc::{self, error::TrySendError};
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(2);
    /// assert_eq!(tx.try_reserve_many(2).unwrap().len(), 2);
    /// assert_eq!(tx.try_reserve_many(3).unwrap_err(), TrySendError::Full(()));
    /// ```
    ///
    /// # Errors
    /// See [`TrySendError`].
    pub fn try_reserve_many(
        &self,
        count: usize,
    ) -> Result<PermitIterator<'_, T>, TrySendError<()>> {
        if count > self.max_capacity() {
            return Err(match self.is_closed() {
                true => TrySendError::Closed(()),
                false => TrySendError::Full(()),
            });
        }
        self.tx.room.try_reserve(count)?;
        Ok(PermitIterator::new(&self.tx, count))
    }

    /// Reserves room for one message if there is some and no sender waits for it. The permit owns
    /// this sender.
    ///
    /// ```
    /// use task_sync::mpsc::{self, error::TrySendError};
    ///
    /// let (tx, _rx) = mpsc::channel(1);
    /// let permit = tx.clone().try_reserve_owned().unwrap();
    /// let Err(TrySendError::Full(tx)) = tx.try_reserve_owned() else { unreachable!() };
    /// drop(tx);
    /// permit.send(7);
    /// ```
    ///
    /// # Errors
    /// Hands the sender back: see [`TrySendError`].
    pub fn try_reserve_owned(self) -> Result<OwnedPermit<T>, TrySendError<Self>> {
        match self.tx.room.try_reserve(1) {
            Ok(()) => Ok(OwnedPermit::new(self)),
            Err(TrySendError::Full(())) => Err(TrySendError::Full(self)),
            Err(TrySendError::Closed(())) => Err(TrySendError::Closed(self)),
        }
    }

    /// Returns the number of messages for which there is room now.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel(3);
    /// tx.try_send(7).unwrap();
    /// let _permit = tx.try_reserve().unwrap();
    /// assert_eq!((tx.capacity(), tx.max_capacity()), (1, 3));
    /// ```
    pub fn capacity(&self) -> usize {
        self.tx.room.capacity()
    }

    /// Returns the number of messages that the channel can hold. [`capacity`](Self::capacity) has
    /// an example.
    ///
    /// ```
    /// let (tx, rx) = task_sync::mpsc::channel::<u32>(4);
    /// tx.try_send(1).unwrap();
    /// assert_eq!((tx.capacity(), tx.max_capacity()), (3, 4));
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.tx.room.max_capacity()
    }

    /// Calls `f` for each task that waits for room in this channel, in the order of the queue, with
    /// the number of messages for which it lacks room. For dumps of tasks. `f` runs under the
    /// internal lock, so it must be short; see [`Waiting`] for what it may do. The task that waits
    /// for a message comes last, with 1, and is woken by the call.
    ///
    /// ```
    /// use futures::{FutureExt, future::join};
    /// use task_sync::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel(3);
    /// tx.try_send(1).unwrap();
    /// let count = async {
    ///     let mut lacking = Vec::new();
    ///     tx.for_each_waiter(|task| lacking.push(task.needed()));
    ///     assert_eq!(lacking, [1]); // It has got room for two messages.
    /// };
    /// assert!(join(tx.reserve_many(3), count).now_or_never().is_none());
    /// ```
    pub fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        self.tx.room.for_each_waiter(&mut f);
        self.tx.for_waiting_receiver(f);
    }
}

impl<T> Receiver<T> {
    /// Returns the number of messages for which there is room now.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, rx) = mpsc::channel(3);
    /// tx.try_send(7).unwrap();
    /// assert_eq!((rx.capacity(), rx.max_capacity()), (2, 3));
    /// ```
    pub fn capacity(&self) -> usize {
        self.rx.chan().room.capacity()
    }

    /// Returns the number of messages that the channel can hold. [`capacity`](Self::capacity) has
    /// an example.
    ///
    /// ```
    /// let (tx, rx) = task_sync::mpsc::channel::<u32>(4);
    /// tx.try_send(1).unwrap();
    /// assert_eq!((rx.capacity(), rx.max_capacity()), (3, 4));
    /// ```
    pub fn max_capacity(&self) -> usize {
        self.rx.chan().room.max_capacity()
    }

    /// Calls `f` for each task that waits for room in this channel, in the order of the queue, with
    /// the number of messages for which it lacks room. For dumps of tasks. `f` runs under the
    /// internal lock, so it must be short; see [`Waiting`] for what it may do. The task that waits
    /// for a message comes last, with 1, and is woken by the call.
    ///
    /// ```
    /// use futures::{FutureExt, future::join};
    /// use task_sync::mpsc;
    ///
    /// let (tx, rx) = mpsc::channel(3);
    /// tx.try_send(1).unwrap();
    /// let count = async {
    ///     let mut lacking = Vec::new();
    ///     rx.for_each_waiter(|task| lacking.push(task.needed()));
    ///     assert_eq!(lacking, [1]); // It has got room for two messages.
    /// };
    /// assert!(join(tx.reserve_many(3), count).now_or_never().is_none());
    /// ```
    pub fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        self.rx.chan().room.for_each_waiter(&mut f);
        self.rx.chan().for_waiting_receiver(f);
    }
}

/// Room for one message, with a sender of its own, from [`Sender::reserve_owned`]. Its drop gives
/// the room back and drops the sender.
///
/// ```
/// use task_sync::mpsc;
///
/// let (tx, mut rx) = mpsc::channel(1);
/// let permit = tx.try_reserve_owned().unwrap();
/// std::thread::spawn(move || permit.send(7));
/// assert_eq!(rx.blocking_recv(), Some(7));
/// ```
#[must_use = "a permit that is dropped gives the room back"]
pub struct OwnedPermit<T> {
    sender: ManuallyDrop<Sender<T>>,
}

impl<T> OwnedPermit<T> {
    /// Makes a permit of room that the caller has reserved.
    fn new(sender: Sender<T>) -> Self {
        Self {
            sender: ManuallyDrop::new(sender),
        }
    }

    fn into_sender(self) -> Sender<T> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: the permit is not used or dropped again.
        unsafe { ManuallyDrop::take(&mut this.sender) }
    }

    /// Sends the message, and returns the sender. If the receiver is dropped, drops the message.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, mut rx) = mpsc::channel(1);
    /// let tx = tx.try_reserve_owned().unwrap().send(7);
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// assert_eq!(tx.capacity(), 1);
    /// ```
    pub fn send(self, message: T) -> Sender<T> {
        let sender = self.into_sender();
        drop(sender.tx.push(message));
        sender
    }

    /// Gives the room back, and returns the sender.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(1);
    /// let tx = tx.try_reserve_owned().unwrap().release();
    /// assert_eq!(tx.capacity(), 1);
    /// ```
    pub fn release(self) -> Sender<T> {
        let sender = self.into_sender();
        sender.tx.give_back(1);
        sender
    }

    /// Returns whether both permits belong to the same channel.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(2);
    /// let one = tx.clone().try_reserve_owned().unwrap();
    /// let two = tx.clone().try_reserve_owned().unwrap();
    /// assert!(one.same_channel(&two) && one.same_channel_as_sender(&tx));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        self.sender.same_channel(&other.sender)
    }

    /// Returns whether the sender belongs to the permit's channel.
    /// [`same_channel`](Self::same_channel) has an example.
    ///
    /// ```
    /// use task_sync::mpsc;
    ///
    /// let (tx, _rx) = mpsc::channel::<u32>(1);
    /// let permit = tx.clone().try_reserve_owned().unwrap();
    /// assert!(permit.same_channel_as_sender(&tx));
    /// ```
    pub fn same_channel_as_sender(&self, sender: &Sender<T>) -> bool {
        self.sender.same_channel(sender)
    }
}

impl<T> Drop for OwnedPermit<T> {
    fn drop(&mut self) {
        self.sender.tx.give_back(1);
        // SAFETY: the sender is not used or dropped again.
        unsafe { ManuallyDrop::drop(&mut self.sender) };
    }
}

impl<T> fmt::Debug for OwnedPermit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPermit").finish_non_exhaustive()
    }
}

super::common::handles! { Sender, WeakSender, Receiver, "mpsc::channel(1)" }
