//! A task's own way to the back of the queue.
use crate::context;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Lets the other tasks of this worker run before the current one goes on.
///
/// The task itself is requeued when its poll ends: it is not woken, nor is a waker cloned. One read-modify-write, the pop's,
/// until the task runs again.
///
/// ```
/// let runtime = selvedge::Runtime::new().unwrap();
/// runtime.block_on(async { selvedge::yield_now().await });
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// The future of [`yield_now`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct YieldNow {
    yielded: bool,
}

impl Future for YieldNow {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.yielded {
            return Poll::Ready(());
        }
        self.yielded = true;
        context::give_way(cx.waker());
        Poll::Pending
    }
}
