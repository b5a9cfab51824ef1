//! What a task takes that waits.
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

/// Spawned before the next are, so that no queue grows.
const BATCH: usize = 1_000;

/// Polls of all [`Idle`]s, which have no room to know whom to tell.
static POLLED: AtomicUsize = AtomicUsize::new(0);

/// Waits for ever, and holds its waker, without which some runtimes would free it.
struct Idle(Option<Waker>);

const _: () = assert!(size_of::<Idle>() <= 16);

impl Future for Idle {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.0 = Some(cx.waker().clone());
        // Ordering: only the number matters.
        POLLED.fetch_add(1, Relaxed);
        Poll::Pending
    }
}

/// A million tasks, or one batch if there is no time; they wait until the process ends.
pub(super) fn idle<R: Rt>(runtime: &R, _: usize, at_least: Duration) -> Option<Measured> {
    let spawn = |tasks: usize| {
        for _ in 0..tasks / BATCH {
            // Ordering: as in `poll`.
            let polled = POLLED.load(Relaxed);
            (0..BATCH).for_each(|_| runtime.spawn_outside(Idle(None)));
            // Ordering: as in `poll`.
            while POLLED.load(Relaxed) < polled + BATCH {
                thread::yield_now();
            }
        }
    };
    // Queues, slabs and the allocator's own have their first size.
    spawn(BATCH);
    let tasks = if at_least.is_zero() { BATCH } else { TASKS };
    let window = Window::open();
    let before = resident()?;
    spawn(tasks);
    let after = resident()?;
    Some(Measured {
        operations: tasks as u64,
        value: (after.saturating_sub(before)).max(1) as f64 / tasks as f64,
        p99: None,
        efficiency: None,
        spent: window.close(),
    })
}
