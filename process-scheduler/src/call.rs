//! The answer to a call: the place for it, and its future.
use crate::{CallError, deadline::Deadline, guard::guarded, oneshot};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Wake, Waker},
};
use sync_shim::sync::Mutex;
use worker_idle::park::{Park, ThreadPark};

/// The place for the answer to a call: see [`Address::call`](crate::Address::call).
///
/// If the reply is dropped without an answer, the call ends with [`CallError::Dropped`].
pub struct Reply<R>(pub(crate) oneshot::Sender<R>);

impl<R> Reply<R> {
    /// Answers the call.
    ///
    /// # Errors
    /// Hands the answer back if the [`Call`] was dropped.
    pub fn send(self, answer: R) -> Result<(), R> {
        self.0.send(answer)
    }

    /// Ends the call with [`CallError::NodeDown`]: for a relay that has sent the request to a node
    /// that it can no longer reach.
    pub fn node_down(self) {
        self.0.end_by_loss();
    }

    /// Returns whether the [`Call`] was dropped, and nobody waits for the answer.
    pub fn is_abandoned(&self) -> bool {
        self.0.is_abandoned()
    }
}

impl<R: Send + 'static> Reply<R> {
    /// Makes a place for an answer whose taker is a function: for the answer to a call that has
    /// come from another node. The function is called once, on the thread that answers, with
    /// [`CallError::Dropped`] if the reply is dropped, or with [`CallError::NodeDown`]. A panic of
    /// the function is dropped.
    ///
    /// ```
    /// use process_scheduler::{CallError, Reply};
    ///
    /// let (sender, seen) = std::sync::mpsc::channel();
    /// let other = sender.clone();
    /// Reply::from_fn(move |answer| sender.send(answer).unwrap()).send(7).unwrap();
    /// drop(Reply::from_fn(move |answer| other.send(answer).unwrap()));
    /// assert_eq!(seen.iter().collect::<Vec<_>>(), [Ok(7), Err(CallError::Dropped)]);
    /// ```
    pub fn from_fn(take: impl FnOnce(Result<R, CallError>) + Send + 'static) -> Self {
        let (sender, receiver) = oneshot::channel();
        let taker = Arc::new(Taker(Mutex::new(Some((receiver, take)))));
        taker.wake_by_ref();
        Self(sender)
    }
}

/// The taker of an answer: the waker of its own receiver. The receiver's slot has the waker, and so
/// the taker, until the sender ends.
struct Taker<R, F>(Mutex<Option<(oneshot::Receiver<R>, F)>>);

impl<R: Send + 'static, F> Wake for Taker<R, F>
where
    F: FnOnce(Result<R, CallError>) + Send + 'static,
{
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let taken = self.0.lock().take();
        let Some((mut receiver, take)) = taken else {
            return;
        };
        let waker = Waker::from(self.clone());
        match receiver.poll(&Context::from_waker(&waker)) {
            Poll::Ready(answer) => {
                guarded(|| take(answer.map_err(CallError::from)));
            }
            Poll::Pending => *self.0.lock() = Some((receiver, take)),
        }
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

/// The future of [`Address::call`](crate::Address::call).
#[must_use = "the answer is in the future"]
pub struct Call<R> {
    receiver: oneshot::Receiver<R>,
    refused: Option<CallError>,
    deadline: Deadline,
}

impl<R> Call<R> {
    pub(crate) fn new(
        receiver: oneshot::Receiver<R>,
        refused: Option<CallError>,
        deadline: Deadline,
    ) -> Self {
        Self {
            receiver,
            refused,
            deadline,
        }
    }

    /// Blocks the thread until the call ends. A process must not wait here, because the wait would
    /// block the process's worker.
    ///
    /// # Errors
    /// The errors of the future.
    pub fn wait(mut self) -> Result<R, CallError> {
        if let Some(refused) = self.refused {
            return Err(refused);
        }
        // The thread waits for the deadline itself: all workers may be in long steps.
        let mut park = ThreadPark::new();
        let waker = park.waker();
        loop {
            if let Poll::Ready(answer) = self.receiver.poll(&Context::from_waker(&waker)) {
                return answer.map_err(CallError::from);
            }
            let Some(at) = self.deadline.at else {
                park.park();
                continue;
            };
            let left = at.saturating_duration_since(sync_shim::time::now());
            if left.is_zero() {
                return Err(CallError::Timeout);
            }
            park.park_timeout(left);
        }
    }
}

impl<R> Unpin for Call<R> {}

impl<R> Future for Call<R> {
    type Output = Result<R, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(refused) = self.refused {
            return Poll::Ready(Err(refused));
        }
        match self.receiver.poll(cx) {
            Poll::Ready(Ok(answer)) => Poll::Ready(Ok(answer)),
            Poll::Ready(Err(none)) => Poll::Ready(Err(none.into())),
            Poll::Pending if self.deadline.poll(cx) => Poll::Ready(Err(CallError::Timeout)),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<R> fmt::Debug for Call<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}
