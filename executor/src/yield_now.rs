//! `yield_now`: requeues the current task behind the others.
use crate::context;
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// Lets the other tasks of this worker run before the current one goes on.
///
/// The worker requeues the task itself when its poll ends: it wakes no waker, and clones none.
/// Until the task runs again, this costs:
/// - no read-modify-write if the worker has no other task;
/// - one if it has: that of the pop;
/// - also a `SeqCst` fence if the task that it spawned or woke last is still in the LIFO slot.
///
/// ```
/// let runtime = selvedge::Builder::new().workers(1).build()?;
/// let said = runtime.spawn(async {
///     let (sender, receiver) = std::sync::mpsc::channel();
///     selvedge::spawn_detached(async move { sender.send("I have run").unwrap() });
///     selvedge::yield_now().await;
///     receiver.try_recv()
/// });
/// assert_eq!(runtime.block_on(said).unwrap(), Ok("I have run"));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn yield_now() -> YieldNow {
    YieldNow { yielded: false }
}

/// Future of [`yield_now`].
///
/// ```
/// use std::{future::Future, pin::Pin, task::{Context, Waker}};
///
/// let mut turn: selvedge::YieldNow = selvedge::yield_now();
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(Pin::new(&mut turn).poll(&mut cx).is_pending());
/// assert!(Pin::new(&mut turn).poll(&mut cx).is_ready());
/// ```
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
        context::yield_task(cx.waker());
        Poll::Pending
    }
}
