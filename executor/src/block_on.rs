//! A future on a thread of its own, which parks while it waits.
use crate::park::{Park, ThreadPark, Unpark};
use coop_budget::Budget;
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Wake, Waker},
};

/// Any unparker as a waker.
pub(crate) struct UnparkWake<U>(pub(crate) U);

impl<U: Unpark> Wake for UnparkWake<U> {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.unpark();
    }

    fn wake_by_ref(self: &std::sync::Arc<Self>) {
        self.0.unpark();
    }
}

/// A waker that unparks.
pub(crate) fn unpark_waker(unpark: impl Unpark) -> Waker {
    Waker::from(std::sync::Arc::new(UnparkWake(unpark)))
}

/// Polls until the output is there. The budget of a poll is the task's, as on a worker.
pub(crate) fn block_on<F: Future>(budget: Budget, future: F) -> F::Output {
    let mut future = pin!(future);
    let mut park = ThreadPark::new();
    let waker = unpark_waker(park.unparker());
    let mut cx = Context::from_waker(&waker);
    loop {
        let polled = coop_budget::with_budget(budget, || future.as_mut().poll(&mut cx));
        if let Poll::Ready(output) = polled {
            return output;
        }
        park.park();
    }
}
