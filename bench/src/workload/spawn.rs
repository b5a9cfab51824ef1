//! Workloads that make tasks.
use super::Done;
use crate::rt::Rt;

/// Tasks in the `many` rows.
pub(super) const MANY: usize = 10_000;

/// Tasks spawned by a thread that is no worker.
pub(super) fn many_remote<R: Rt>(runtime: &R, done: Done) {
    for _ in 0..MANY {
        runtime.spawn_outside(async move { done.one() });
    }
}

/// Tasks spawned, and then awaited, by a thread that is no worker.
pub(super) fn many_remote_join<R: Rt>(runtime: &R, done: Done) {
    let tasks: Vec<_> = (0..MANY)
        .map(|i| runtime.join_outside(async move { i }))
        .collect();
    let sum = futures_lite::future::block_on(async move {
        let mut sum = 0;
        for task in tasks {
            sum += task.await;
        }
        sum
    });
    assert_eq!(sum, MANY * (MANY - 1) / 2, "every task ran once");
    done.one();
}

/// Tasks spawned by a task.
pub(super) fn many_local<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for _ in 0..MANY {
            R::spawn(async move { done.one() });
        }
    });
}

/// Links of the chain.
pub(super) const DEPTH: usize = 1_000;

/// A task whose last act is to spawn the next.
pub(super) fn chained<R: Rt>(runtime: &R, done: Done) {
    fn link<R: Rt>(left: usize, done: Done) {
        if left == 0 {
            return done.one();
        }
        R::spawn(async move { link::<R>(left - 1, done) });
    }
    runtime.spawn_outside(async move { link::<R>(DEPTH - 1, done) });
}

/// Tasks that one task awaits in turn.
pub(super) const JOINS: usize = 1_000;

/// A task that spawns one and awaits it, again and again.
pub(super) fn join<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for i in 0..JOINS {
            assert_eq!(R::join(async move { i }).await, i);
        }
        done.one();
    });
}
