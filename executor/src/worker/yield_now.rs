//! `yield_now`: requeues the current task behind the others. `yield_if_needed` does so if the
//! task's budget is used up or its time slice was asked to end.
use crate::worker::context;
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
/// - one if it has other tasks: that of the pop;
/// - also a `SeqCst` fence if the task that it spawned or woke last is still in the LIFO slot.
///
/// ```
/// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
/// let said = runtime.spawn(async {
///     let (sender, receiver) = std::sync::mpsc::channel();
///     selvedge_executor::spawn_detached(async move { sender.send("I have run").unwrap() });
///     selvedge_executor::yield_now().await;
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
/// let mut turn: selvedge_executor::YieldNow = selvedge_executor::yield_now();
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

/// Yields, as [`yield_now`], if the task's budget is used up or its time slice was asked to end.
///
/// A loop that makes no operations calls this function between its steps. So a task that computes
/// for long lets the others run when the monitor requests it, after 10 ms. With the feature
/// `groups`, the task also does so when its group's quota is used up. A call that does not yield
/// costs a thread-local look-up and two loads: of the budget, and of the flag that
/// [`need_preempt`](coop_budget::need_preempt) reads (Relaxed). The call charges no operation.
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let sum = runtime.spawn(async {
///     let mut sum = 0;
///     for n in 0..100_000_u64 {
///         sum += n;
///         if n % 1000 == 0 {
///             selvedge_executor::yield_if_needed().await;
///         }
///     }
///     sum
/// });
/// assert_eq!(runtime.block_on(sum).unwrap(), 4_999_950_000);
/// # Ok::<(), std::io::Error>(())
/// ```
pub async fn yield_if_needed() {
    if !coop_budget::has_remaining() {
        yield_now().await;
    }
}
