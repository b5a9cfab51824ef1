//! A channel for one value, from one task to another.
//!
//! [`channel`] returns a [`Sender`] and a [`Receiver`]. The sender sends without waiting; the
//! receiver is the future of the value.
//!
//! ```
//! use task_sync::oneshot;
//!
//! let (tx, rx) = oneshot::channel();
//! std::thread::spawn(move || tx.send(7));
//! assert_eq!(futures::executor::block_on(rx), Ok(7));
//! ```
//!
//! A channel is one allocation: the value and 40 bytes on a 64-bit target. A send is one
//! read-modify-write. A receive of a value that is there is none, and a wait is one.
pub mod error;
mod inner;

use crate::coop::{WaitsOn, poll_proceed};
use core::{
    fmt,
    future::{Future, poll_fn},
    mem::ManuallyDrop,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    ptr::NonNull,
    task::{Context, Poll, ready},
};
use error::{RecvError, TryRecvError};
use inner::{CLOSED, End, Inner, TX_GONE, VALUE};

/// Creates a channel for one value.
///
/// ```
/// use task_sync::oneshot;
///
/// let (tx, rx) = oneshot::channel();
/// tx.send("a value").unwrap();
/// assert_eq!(futures::executor::block_on(rx), Ok("a value"));
/// ```
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let inner = Inner::new();
    (Sender { inner }, Receiver { inner: Some(inner) })
}

/// Sends the value of a [`channel`].
///
/// The receiver of a sender that is dropped without a send gets an error.
///
/// ```
/// use task_sync::oneshot;
///
/// let (tx, rx) = oneshot::channel::<u32>();
/// drop(tx);
/// assert!(futures::executor::block_on(rx).is_err());
/// ```
pub struct Sender<T> {
    inner: NonNull<Inner<T>>,
}

/// Receives the value of a [`channel`]: a future.
///
/// It is cancel safe. A `&mut Receiver` is a future too, so that one select loop after another can
/// wait for the same value. A receiver that was ready must not be polled again: see
/// [`is_terminated`](Self::is_terminated).
///
/// ```
/// use task_sync::oneshot;
///
/// # futures::executor::block_on(async {
/// let (tx, mut rx) = oneshot::channel();
/// assert!(rx.try_recv().is_err());
/// tx.send(7).unwrap();
/// assert_eq!((&mut rx).await, Ok(7));
/// assert!(rx.is_terminated());
/// # });
/// ```
#[must_use = "a future does nothing unless it is awaited"]
pub struct Receiver<T> {
    /// `None` if this end has left.
    inner: Option<NonNull<Inner<T>>>,
}

// SAFETY: an end moves the value to the thread of the other end. Shared references to an end do not
// reach the value, and what they read is atomic.
unsafe impl<T: Send> Send for Sender<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Sender<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Send for Receiver<T> {}
// SAFETY: as above.
unsafe impl<T: Send> Sync for Receiver<T> {}

// The code of a value or of a waker runs when the channel is in order.
impl<T> UnwindSafe for Sender<T> {}
impl<T> RefUnwindSafe for Sender<T> {}
impl<T> UnwindSafe for Receiver<T> {}
impl<T> RefUnwindSafe for Receiver<T> {}

impl<T> Sender<T> {
    fn inner(&self) -> &Inner<T> {
        // SAFETY: the allocation is live while this end has not left.
        unsafe { self.inner.as_ref() }
    }

    /// Sends the value, and wakes the receiver. Never waits.
    ///
    /// The receiver may still be dropped, or closed, before it takes the value.
    ///
    /// ```
    /// use task_sync::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel();
    /// drop(rx);
    /// assert_eq!(tx.send(7), Err(7));
    /// ```
    ///
    /// A panic of the receiver's waker is dropped.
    ///
    /// # Errors
    /// Hands the value back if the receiver is dropped or has closed the channel.
    pub fn send(self, value: T) -> Result<(), T> {
        if self.is_closed() {
            return Err(value);
        }
        // SAFETY: this is the sender, which has not sent.
        unsafe { self.inner().write(value) };
        match self.inner().change(End::Sender, VALUE | TX_GONE, CLOSED) {
            Ok(taken) => {
                // This end has left.
                let _ = ManuallyDrop::new(self);
                taken.wake();
                Ok(())
            }
            // SAFETY: `VALUE` is not set, so the value is still the sender's.
            Err(_) => Err(unsafe { self.inner().read() }),
        }
    }

    /// Waits until the receiver is dropped or closes the channel: for a task that makes the value,
    /// and can stop.
    ///
    /// ```
    /// use task_sync::oneshot;
    ///
    /// # futures::executor::block_on(async {
    /// let (mut tx, rx) = oneshot::channel::<u32>();
    /// drop(rx);
    /// tx.closed().await;
    /// # });
    /// ```
    ///
    /// # Cancel safety
    /// A future that is dropped early has no effect.
    pub async fn closed(&mut self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }

    /// Returns whether the receiver is dropped or has closed the channel.
    ///
    /// ```
    /// use task_sync::oneshot;
    ///
    /// let (tx, mut rx) = oneshot::channel::<u32>();
    /// assert!(!tx.is_closed());
    /// rx.close();
    /// assert!(tx.is_closed());
    /// ```
    pub fn is_closed(&self) -> bool {
        self.inner().state() & CLOSED != 0
    }

    /// Polls as [`closed`](Self::closed) does. Only the waker of the last poll is woken.
    ///
    /// ```
    /// use std::task::{Context, Waker};
    /// use task_sync::oneshot;
    ///
    /// let (mut tx, rx) = oneshot::channel::<u32>();
    /// let mut cx = Context::from_waker(Waker::noop());
    /// assert!(tx.poll_closed(&mut cx).is_pending());
    /// drop(rx);
    /// assert!(tx.poll_closed(&mut cx).is_ready());
    /// ```
    pub fn poll_closed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let progress = ready!(poll_proceed(cx));
        let inner = self.inner();
        if inner.poll_register(End::Sender, cx.waker()).is_pending() {
            let what = "the end of the receiver of a oneshot channel";
            progress.waits_for(|| WaitsOn::event(what, inner));
            return Poll::Pending;
        }
        progress.made_progress();
        Poll::Ready(())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        // SAFETY: this is the sender, which does not use the allocation again.
        let value = unsafe { Inner::leave(self.inner, End::Sender) };
        debug_assert!(value.is_none());
    }
}

impl<T> fmt::Debug for Sender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("is_closed", &self.is_closed())
            .finish_non_exhaustive()
    }
}

impl<T> Receiver<T> {
    fn inner(&self) -> Option<&Inner<T>> {
        // SAFETY: the allocation is live while this end has not left.
        self.inner.map(|inner| unsafe { inner.as_ref() })
    }

    /// Closes the channel: a later send fails. A value that was sent before can still be received.
    ///
    /// ```
    /// use task_sync::oneshot::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// rx.close();
    /// assert_eq!(tx.send(7), Err(7));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    /// ```
    pub fn close(&mut self) {
        let Some(inner) = self.inner() else { return };
        if let Ok(taken) = inner.change(End::Receiver, CLOSED, CLOSED | TX_GONE) {
            taken.wake();
        }
    }

    /// Returns whether the value was received, or its absence was reported. Such a receiver must
    /// not be polled.
    ///
    /// ```
    /// use task_sync::oneshot;
    ///
    /// let (tx, mut rx) = oneshot::channel::<u32>();
    /// drop(tx);
    /// assert!(!rx.is_terminated());
    /// assert!(futures::executor::block_on(&mut rx).is_err());
    /// assert!(rx.is_terminated());
    /// ```
    pub fn is_terminated(&self) -> bool {
        self.inner.is_none()
    }

    /// Returns whether no value is there to be received.
    ///
    /// ```
    /// use task_sync::oneshot;
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// assert!(rx.is_empty());
    /// tx.send(7).unwrap();
    /// assert!(!rx.is_empty());
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// assert!(rx.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.inner().is_none_or(|inner| inner.state() & VALUE == 0)
    }

    /// Receives the value if it is there. Registers no waker.
    ///
    /// A value whose send has returned is there. A receiver that has returned the value, or
    /// [`Closed`](TryRecvError::Closed), is [terminated](Self::is_terminated).
    ///
    /// ```
    /// use task_sync::oneshot::{self, error::TryRecvError};
    ///
    /// let (tx, mut rx) = oneshot::channel();
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
    /// tx.send(7).unwrap();
    /// assert_eq!(rx.try_recv(), Ok(7));
    /// assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    /// ```
    ///
    /// # Errors
    /// If no value is there: see [`TryRecvError`].
    pub fn try_recv(&mut self) -> Result<T, TryRecvError> {
        let Some(inner) = self.inner() else {
            return Err(TryRecvError::Closed);
        };
        if inner.state() & (TX_GONE | CLOSED) == 0 {
            return Err(TryRecvError::Empty);
        }
        self.finish().ok_or(TryRecvError::Closed)
    }

    /// Blocks the thread until the value is there.
    ///
    /// Call it from a thread that runs no async tasks: it would stop them. With the feature
    /// `coop-budget` it panics in a poll that has a budget.
    ///
    /// ```
    /// use task_sync::oneshot;
    ///
    /// let (tx, rx) = oneshot::channel();
    /// let thread = std::thread::spawn(move || rx.blocking_recv());
    /// tx.send(7).unwrap();
    /// assert_eq!(thread.join().unwrap(), Ok(7));
    /// ```
    ///
    /// # Errors
    /// As the future: if the sender is dropped before it sends.
    #[cfg(feature = "std")]
    #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
    #[track_caller]
    pub fn blocking_recv(self) -> Result<T, RecvError> {
        crate::blocking::block_on(self)
    }

    /// Leaves the channel and returns the value, if there is one.
    fn finish(&mut self) -> Option<T> {
        let inner = self.inner.take()?;
        // SAFETY: this is the receiver, which has no pointer to the allocation any more.
        unsafe { Inner::leave(inner, End::Receiver) }
    }
}

impl<T> Future for Receiver<T> {
    type Output = Result<T, RecvError>;

    /// With the feature `coop-budget`, a poll that is ready is charged to the surrounding budget.
    ///
    /// # Panics
    /// If the receiver [is terminated](Receiver::is_terminated).
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = self.inner().expect("a receiver that was ready is polled");
        let progress = ready!(poll_proceed(cx));
        if inner.poll_register(End::Receiver, cx.waker()).is_pending() {
            progress.waits_for(|| WaitsOn::event("the value of a oneshot channel", inner));
            return Poll::Pending;
        }
        progress.made_progress();
        Poll::Ready(self.finish().ok_or(RecvError(())))
    }
}

impl<T> Drop for Receiver<T> {
    /// Closes the channel, and drops a value that was not received.
    fn drop(&mut self) {
        drop(self.finish());
    }
}

impl<T> fmt::Debug for Receiver<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("is_terminated", &self.is_terminated())
            .field("is_empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
