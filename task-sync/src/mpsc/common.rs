//! The methods that the handles of both kinds of channels have.

/// Implements the methods that bounded and unbounded channels have in common.
macro_rules! handles {
    ($sender:ident, $weak:ident, $receiver:ident, $new:literal) => {
        impl<T> $sender<T> {
            /// Waits until the receiver is dropped or closes the channel.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// drop(rx);
            /// futures::executor::block_on(tx.closed());
            /// ```
            ///
            /// # Cancel safety
            /// A future that is dropped early has no effect.
            pub async fn closed(&self) {
                self.tx.closed().await;
            }

            /// Returns whether the receiver is dropped or has closed the channel.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// assert!(!tx.is_closed());
            /// drop(rx);
            /// assert!(tx.is_closed());
            /// ```
            pub fn is_closed(&self) -> bool {
                self.tx.is_closed()
            }

            /// Returns whether both senders belong to the same channel.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, _rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// assert!(tx.same_channel(&tx.clone()));
            /// ```
            pub fn same_channel(&self, other: &Self) -> bool {
                self.tx.same_channel(&other.tx)
            }

            /// Creates a sender that does not keep the channel open.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, _rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// let weak = tx.downgrade();
            /// assert!(weak.upgrade().is_some());
            /// drop(tx);
            /// assert!(weak.upgrade().is_none());
            /// ```
            #[must_use = "a weak sender that is dropped has no effect"]
            pub fn downgrade(&self) -> $weak<T> {
                $weak {
                    weak: self.tx.downgrade(),
                }
            }

            /// Returns the number of senders that are not weak.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, _rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// let weak = tx.downgrade();
            /// assert_eq!((tx.strong_count(), tx.weak_count()), (1, 1));
            /// ```
            pub fn strong_count(&self) -> usize {
                self.tx.strong()
            }

            /// Returns the number of weak senders. [`strong_count`](Self::strong_count) has an
            /// example.
            pub fn weak_count(&self) -> usize {
                self.tx.weak()
            }
        }

        impl<T> Clone for $sender<T> {
            fn clone(&self) -> Self {
                Self {
                    tx: self.tx.clone(),
                }
            }
        }

        impl<T> core::fmt::Debug for $sender<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($sender))
                    .field("is_closed", &self.is_closed())
                    .finish_non_exhaustive()
            }
        }

        impl<T> $weak<T> {
            /// Creates a sender, unless all senders are dropped.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, _rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// let weak = tx.downgrade();
            /// let other = weak.upgrade().unwrap();
            /// drop((tx, other));
            /// assert!(weak.upgrade().is_none());
            /// ```
            pub fn upgrade(&self) -> Option<$sender<T>> {
                Some($sender {
                    tx: self.weak.upgrade()?,
                })
            }

            /// Returns the number of senders that are not weak.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, _rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// let weak = tx.downgrade();
            /// drop(tx);
            /// assert_eq!((weak.strong_count(), weak.weak_count()), (0, 1));
            /// ```
            pub fn strong_count(&self) -> usize {
                self.weak.chan().strong()
            }

            /// Returns the number of weak senders. [`strong_count`](Self::strong_count) has an
            /// example.
            pub fn weak_count(&self) -> usize {
                self.weak.chan().weak()
            }
        }

        impl<T> Clone for $weak<T> {
            fn clone(&self) -> Self {
                Self {
                    weak: self.weak.clone(),
                }
            }
        }

        impl<T> core::fmt::Debug for $weak<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($weak)).finish_non_exhaustive()
            }
        }

        impl<T> $receiver<T> {
            /// Receives the next message. Returns `None` if there is none, and none will come.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, mut rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// drop(tx);
            /// assert_eq!(futures::executor::block_on(rx.recv()), None);
            /// ```
            ///
            /// # Cancel safety
            /// A future that is dropped before it is ready has taken no message.
            pub async fn recv(&mut self) -> Option<T> {
                core::future::poll_fn(|cx| self.poll_recv(cx)).await
            }

            /// Receives up to `limit` messages into `buffer`, at least one. Returns their number.
            /// Returns 0 if there is no message, and none will come, or if `limit` is 0.
            ///
            /// The messages are appended. The buffer grows if it must.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, mut rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// let mut buffer = Vec::new();
            /// drop(tx);
            /// assert_eq!(futures::executor::block_on(rx.recv_many(&mut buffer, 10)), 0);
            /// ```
            ///
            /// # Cancel safety
            /// A future that is dropped before it is ready has taken no message.
            pub async fn recv_many(
                &mut self,
                buffer: &mut alloc::vec::Vec<T>,
                limit: usize,
            ) -> usize {
                core::future::poll_fn(|cx| self.poll_recv_many(cx, buffer, limit)).await
            }

            /// Receives the next message if it is there. Registers no waker.
            ///
            /// A message whose send has returned is there. If the next message is being sent at
            /// this moment, the call waits for it: some instructions, unless the system has
            /// suspended the sender's thread.
            ///
            /// ```
            /// use task_sync::mpsc::{self, error::TryRecvError};
            ///
            #[doc = concat!("let (tx, mut rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// assert_eq!(rx.try_recv(), Err(TryRecvError::Empty));
            /// drop(tx);
            /// assert_eq!(rx.try_recv(), Err(TryRecvError::Disconnected));
            /// ```
            ///
            /// # Errors
            /// If no message is there: see
            /// [`TryRecvError`](crate::mpsc::error::TryRecvError).
            pub fn try_recv(&mut self) -> Result<T, crate::mpsc::error::TryRecvError> {
                self.rx.try_recv()
            }

            /// Blocks the thread as [`recv`](Self::recv) suspends a task.
            ///
            /// Call it from a thread that runs no async tasks: it would stop them. With the feature
            /// `coop-budget` it panics in a poll that has a budget.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, mut rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// let receiver = std::thread::spawn(move || rx.blocking_recv());
            /// drop(tx);
            /// assert_eq!(receiver.join().unwrap(), None);
            /// ```
            #[cfg(feature = "std")]
            #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
            #[track_caller]
            pub fn blocking_recv(&mut self) -> Option<T> {
                crate::blocking::block_on(self.recv())
            }

            /// Blocks the thread as [`recv_many`](Self::recv_many) suspends a task.
            /// [`blocking_recv`](Self::blocking_recv) says where not to call it.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, mut rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// drop(tx);
            /// assert_eq!(rx.blocking_recv_many(&mut Vec::new(), 10), 0);
            /// ```
            #[cfg(feature = "std")]
            #[cfg_attr(docsrs, doc(cfg(feature = "std")))]
            #[track_caller]
            pub fn blocking_recv_many(
                &mut self,
                buffer: &mut alloc::vec::Vec<T>,
                limit: usize,
            ) -> usize {
                crate::blocking::block_on(self.recv_many(buffer, limit))
            }

            /// Closes the channel: no more messages are accepted. Receive until `None` comes to get
            /// those that were accepted before.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, mut rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// rx.close();
            /// assert!(tx.is_closed());
            /// assert_eq!(rx.blocking_recv(), None);
            /// ```
            pub fn close(&mut self) {
                self.rx.close();
            }

            /// Returns whether the channel is closed, or all senders are dropped. Messages may
            /// still be in it.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, mut rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// assert!(!rx.is_closed());
            /// rx.close();
            /// assert!(rx.is_closed());
            /// ```
            pub fn is_closed(&self) -> bool {
                self.rx.chan().is_closed_or_disconnected()
            }

            /// Returns whether no message is in the channel.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// assert!(rx.is_empty());
            /// assert_eq!(rx.len(), 0);
            /// ```
            pub fn is_empty(&self) -> bool {
                self.len() == 0
            }

            /// Returns the number of messages in the channel, with those that are being sent.
            /// [`is_empty`](Self::is_empty) has an example.
            pub fn len(&self) -> usize {
                self.rx.len()
            }

            /// Polls as [`recv`](Self::recv) does. Only the waker of the last poll is woken.
            ///
            /// With the feature `coop-budget`, a poll that is ready is charged to the surrounding
            /// budget.
            ///
            /// ```
            /// use std::task::{Context, Poll, Waker};
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, mut rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// let mut cx = Context::from_waker(Waker::noop());
            /// assert!(rx.poll_recv(&mut cx).is_pending());
            /// drop(tx);
            /// assert_eq!(rx.poll_recv(&mut cx), Poll::Ready(None));
            /// ```
            #[inline]
            pub fn poll_recv(
                &mut self,
                cx: &mut core::task::Context<'_>,
            ) -> core::task::Poll<Option<T>> {
                self.rx.poll_recv(cx)
            }

            /// Polls as [`recv_many`](Self::recv_many) does. Only the waker of the last poll is
            /// woken.
            ///
            /// ```
            /// use std::task::{Context, Poll, Waker};
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, mut rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// let (mut cx, mut buffer) = (Context::from_waker(Waker::noop()), Vec::new());
            /// assert!(rx.poll_recv_many(&mut cx, &mut buffer, 10).is_pending());
            /// drop(tx);
            /// assert_eq!(rx.poll_recv_many(&mut cx, &mut buffer, 10), Poll::Ready(0));
            /// ```
            pub fn poll_recv_many(
                &mut self,
                cx: &mut core::task::Context<'_>,
                buffer: &mut alloc::vec::Vec<T>,
                limit: usize,
            ) -> core::task::Poll<usize> {
                self.rx.poll_recv_many(cx, buffer, limit)
            }

            /// Returns the number of senders that are not weak.
            ///
            /// ```
            /// use task_sync::mpsc;
            ///
            #[doc = concat!("let (tx, rx) = ", $new, ";")]
            #[doc = concat!("# let tx: mpsc::", stringify!($sender), "<u32> = tx;")]
            /// let weak = tx.downgrade();
            /// assert_eq!((rx.sender_strong_count(), rx.sender_weak_count()), (1, 1));
            /// ```
            pub fn sender_strong_count(&self) -> usize {
                self.rx.chan().strong()
            }

            /// Returns the number of weak senders.
            /// [`sender_strong_count`](Self::sender_strong_count) has an example.
            pub fn sender_weak_count(&self) -> usize {
                self.rx.chan().weak()
            }
        }

        impl<T> core::fmt::Debug for $receiver<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($receiver))
                    .field("len", &self.len())
                    .field("is_closed", &self.is_closed())
                    .finish_non_exhaustive()
            }
        }
    };
}
pub(super) use handles;
