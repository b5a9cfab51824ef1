//! The answer to a call: the place for it, and its future.
use crate::{CallError, deadline::Deadline, oneshot};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
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
                return answer.map_err(|()| CallError::Dropped);
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
            Poll::Ready(Err(())) => Poll::Ready(Err(CallError::Dropped)),
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
