//! The answer to a call: the place for it, and its future.
use crate::{CallError, oneshot, timer::Deadline};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};
use worker_idle::park::{ThreadPark, block_on};

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
    pub fn wait(self) -> Result<R, CallError> {
        block_on(&mut ThreadPark::new(), self)
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
