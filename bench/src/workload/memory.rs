//! The memory of a waiting task.
use super::Measured;
use crate::{
    noise::{Window, resident},
    rt::Rt,
};
use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

const TASKS: usize = super::size(1_000_000);

/// Number of tasks in a batch. A batch is spawned when the batch before it has been polled, so no
/// queue grows.
const BATCH: usize = 1_000;

/// Number of polls of all [`Idle`]s. It is a static, as an `Idle` has no room for a pointer.
static POLLED: AtomicUsize = AtomicUsize::new(0);

/// A future that waits forever. It holds its waker, as some runtimes would free the task otherwise.
struct Idle(Option<Waker>);

const _: () = assert!(size_of::<Idle>() <= 16);

impl Future for Idle {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0 = Some(cx.waker().clone());
        // Ordering: Relaxed. Only the number matters.
        POLLED.fetch_add(1, Relaxed);
        Poll::Pending
    }
}

/// Spawns a million tasks, or one batch if the time is zero. The tasks wait until the process ends.
pub(super) fn idle<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let spawn = |tasks: usize| {
        for _ in 0..tasks / BATCH {
            // Ordering: Relaxed, as in `poll`.
            let polled = POLLED.load(Relaxed);
            (0..BATCH).for_each(|_| runtime.spawn_outside(Idle(None)));
            // Ordering: Relaxed, as in `poll`.
            while POLLED.load(Relaxed) < polled + BATCH {
                thread::yield_now();
            }
        }
    };
    // This first batch lets queues, slabs and the allocator grow to their first size.
    spawn(BATCH);
    let tasks = if at_least.is_zero() { BATCH } else { TASKS };
    let window = Window::open();
    let before = resident()?;
    spawn(tasks);
    let after = resident()?;
    let bytes = after.saturating_sub(before).max(1);
    let value = bytes as f64 / tasks as f64;
    Some(Measured::of(tasks as u64, value, window.close()))
}
