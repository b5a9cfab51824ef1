//! The receiving half of a broadcast channel.
use super::{
    error::{RecvError, TryRecvError},
    receiving::List,
    ring::Missing,
    shared::Shared,
};
use crate::{
    coop::WaitsOn,
    wait::{Condition, until},
    waiters::Waiters,
    waiting::Waiting,
};
use alloc::sync::Arc;
use core::{
    fmt,
    future::Future,
    panic::{RefUnwindSafe, UnwindSafe},
};
use sync_shim::atomic::Ordering::Relaxed;

/// Receives each value that is sent after its creation.
///
/// [`channel`](super::channel) and [`Sender::subscribe`](super::Sender::subscribe) create it.
///
/// ```
/// use task_sync::broadcast;
///
/// let (tx, mut rx) = broadcast::channel(4);
/// let received = std::thread::spawn(move || {
///     futures::executor::block_on(async {
///         let mut sum = 0;
///         while let Ok(n) = rx.recv().await {
///             sum += n;
///         }
///         sum
///     })
/// });
/// for n in 1..=3 {
///     tx.send(n).unwrap();
/// }
/// drop(tx);
/// assert_eq!(received.join().unwrap(), 6);
/// ```
pub struct Receiver<T> {
    pub(super) shared: Arc<Shared<T>>,
    /// The position of the next value. The receiver is counted for it, if it was sent.
    next: u64,
    list: List,
}

// No code of a value or of a waker leaves the channel half changed if it panics.
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Receiver<T> {
    #[track_caller]
    pub(super) fn new(shared: Arc<Shared<T>>) -> Self {
        let (next, list) = shared.subscribe();
        Self { shared, next, list }
    }

    /// Returns the number of values that were sent and that this receiver has not got. If it is
    /// greater than the channel's capacity, the next receive returns that it lags.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, mut rx) = broadcast::channel(2);
    /// (0..3).for_each(|n| assert!(tx.send(n).is_ok()));
    /// assert_eq!(rx.len(), 3);
    /// assert!(rx.try_recv().is_err());
    /// assert_eq!(rx.len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        let tail = self.shared.tail();
        tail.position.wrapping_sub(self.next) as usize
    }

    /// Returns whether this receiver has got all values.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, mut rx) = broadcast::channel(2);
    /// tx.send(1).unwrap();
    /// assert!(!rx.is_empty());
    /// rx.try_recv().unwrap();
    /// assert!(rx.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether both receivers belong to one channel.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (_tx, rx) = broadcast::channel::<u8>(2);
    /// assert!(rx.same_channel(&rx.resubscribe()));
    /// assert!(!rx.same_channel(&broadcast::channel(2).1));
    /// ```
    pub fn same_channel(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }

    /// Creates a receiver of the values that are sent from now on. It does not get the values that
    /// this receiver has yet to get.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel(2);
    /// tx.send("before").unwrap();
    /// let mut other = rx.resubscribe();
    /// tx.send("after").unwrap();
    /// assert_eq!(other.try_recv(), Ok("after"));
    /// ```
    ///
    /// # Panics
    /// If there are more than `usize::MAX / 32` receivers.
    #[track_caller]
    pub fn resubscribe(&self) -> Self {
        Self::new(self.shared.clone())
    }

    /// Returns whether all senders were dropped. There may be values left to receive.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel::<u8>(2);
    /// assert!(!rx.is_closed());
    /// drop(tx);
    /// assert!(rx.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.shared.senders() == 0
    }

    /// Returns the number of senders.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel::<u8>(2);
    /// let _other = tx.clone();
    /// assert_eq!(rx.sender_strong_count(), 2);
    /// ```
    pub fn sender_strong_count(&self) -> usize {
        self.shared.senders()
    }

    /// Returns the number of [`WeakSender`](super::WeakSender)s.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, rx) = broadcast::channel::<u8>(2);
    /// let _weak = tx.downgrade();
    /// assert_eq!(rx.sender_weak_count(), 1);
    /// ```
    pub fn sender_weak_count(&self) -> usize {
        // Ordering: Relaxed, the number is only reported.
        self.shared.weak_senders.load(Relaxed)
    }

    /// Calls `f` for each task that waits for a value of this channel. For dumps of tasks. `f` runs
    /// under the internal lock, so it must be short; see [`Waiting`] for what it may do. The call
    /// skips the tasks that a send is about to wake.
    ///
    /// ```
    /// use futures::{FutureExt, future::join};
    /// use task_sync::broadcast;
    ///
    /// let (_tx, mut rx) = broadcast::channel::<u8>(2);
    /// let other = rx.resubscribe();
    /// let count = async {
    ///     let mut waiting = 0;
    ///     other.for_each_waiter(|task| waiting += task.needed());
    ///     assert_eq!(waiting, 1);
    /// };
    /// assert!(join(rx.recv(), count).now_or_never().is_none());
    /// ```
    pub fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        self.shared
            .receiving
            .for_each(&mut |waker| f(&Waiting::new(waker, 1)));
    }

    /// Skips the values that were replaced, and returns their number.
    #[cold]
    fn catch_up(&mut self) -> u64 {
        let tail = self.shared.tail().position;
        let oldest = tail.wrapping_sub(self.shared.ring.capacity());
        let missed = oldest.wrapping_sub(self.next);
        self.next = oldest;
        missed
    }
}

impl<T: Clone> Receiver<T> {
    /// Waits for the next value.
    ///
    /// If the future is dropped, no value is lost: it takes the value in the poll that returns it.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, mut rx) = broadcast::channel(4);
    /// tx.send(7).unwrap();
    /// assert_eq!(futures::executor::block_on(rx.recv()), Ok(7));
    /// ```
    ///
    /// # Errors
    /// - [`Closed`](RecvError::Closed): no sender is left, and this receiver has got all values.
    /// - [`Lagged`](RecvError::Lagged): values were replaced before this receiver got them. The
    ///   next call goes on with the oldest value that is left.
    ///
    /// # Panics
    /// If the clone of the value panics, or the drop of a value that was replaced during its clone.
    /// The next call goes on with the next value.
    pub fn recv(&mut self) -> impl Future<Output = Result<T, RecvError>> {
        until(Receiving(self))
    }

    /// Receives the next value, if it was sent.
    ///
    /// ```
    /// use task_sync::broadcast::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = broadcast::channel(4);
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(7).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// ```
    ///
    /// # Errors
    /// - [`Empty`](TryRecvError::Empty): this receiver has got all values so far.
    /// - [`Closed`](TryRecvError::Closed), [`Lagged`](TryRecvError::Lagged): as of
    ///   [`recv`](Self::recv).
    ///
    /// # Panics
    /// As [`recv`](Self::recv).
    #[inline]
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let next = self.next;
        loop {
            // Advanced before the value's clone, which may panic: the receiver is not counted
            // afterwards.
            self.next = next.wrapping_add(1);
            // SAFETY: this receiver is counted for the position, if it was sent.
            let missing = match unsafe { self.shared.ring.take(next) } {
                Ok(value) => return Ok(value),
                Err(missing) => missing,
            };
            self.next = next;
            if let Missing::Replaced = missing {
                return Err(TryRecvError::Lagged(self.catch_up()));
            }
            if self.shared.senders() != 0 {
                return Err(TryRecvError::Empty);
            }
            // A value may have come before the end.
            if self.shared.ring.missing(next) == Some(Missing::Unsent) {
                return Err(TryRecvError::Closed);
            }
        }
    }

    /// Receives the next value as [`recv`](Self::recv) does, and blocks the thread meanwhile. Not
    /// for use in a task: it would block the other tasks of its thread.
    ///
    /// ```
    /// use task_sync::broadcast;
    ///
    /// let (tx, mut rx) = broadcast::channel(4);
    /// let received = std::thread::spawn(move || rx.blocking_recv());
    /// tx.send(7).unwrap();
    /// assert_eq!(received.join().unwrap(), Ok(7));
    /// ```
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    ///
    /// # Panics
    /// As [`recv`](Self::recv).
    #[cfg(feature = "std")]
    #[track_caller]
    pub fn blocking_recv(&mut self) -> Result<T, RecvError> {
        crate::blocking::block_on(self.recv())
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        self.shared.unsubscribe(self.next);
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("broadcast::Receiver")
            .finish_non_exhaustive()
    }
}

/// The condition that a receiver has something to return.
struct Receiving<'a, T>(&'a mut Receiver<T>);

impl<T: Clone> Condition for Receiving<'_, T> {
    type Shared = ();
    type Output = Result<T, RecvError>;

    fn queue(&self) -> &Waiters<()> {
        self.0.shared.receiving.tasks(self.0.list)
    }

    #[inline]
    fn output(&mut self) -> Option<Self::Output> {
        match self.0.try_recv() {
            Ok(value) => Some(Ok(value)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Closed) => Some(Err(RecvError::Closed)),
            Err(TryRecvError::Lagged(missed)) => Some(Err(RecvError::Lagged(missed))),
        }
    }

    fn may_be_met(&self, &(): &()) -> bool {
        let shared = &self.0.shared;
        shared.receiving.mark_used(self.0.list);
        shared.may_receive(self.0.next)
    }

    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event("a message of a broadcast channel", &*self.0.shared)
    }
}
