//! Workloads that spawn tasks.
use super::Done;
use crate::{rt::Rt, work::work};
use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

/// Number of tasks in the `many` rows.
pub(super) const MANY: usize = super::size(10_000);

/// Spawns tasks from an outside thread.
pub(super) fn many_remote<R: Rt>(runtime: &R, done: Done) {
    for _ in 0..MANY {
        runtime.spawn_outside(async move { done.one() });
    }
}

/// Spawns tasks from an outside thread, which then awaits them.
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

/// Spawns tasks from a task.
pub(super) fn many_local<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for _ in 0..MANY {
            R::spawn(async move { done.one() });
        }
    });
}

/// Number of tasks in the chain.
pub(super) const DEPTH: usize = super::size(1_000);

/// Spawns a task that spawns the next one as its last action, and so on.
pub(super) fn chained<R: Rt>(runtime: &R, done: Done) {
    fn link<R: Rt>(left: usize, done: Done) {
        if left == 0 {
            return done.one();
        }
        R::spawn(async move { link::<R>(left - 1, done) });
    }
    runtime.spawn_outside(async move { link::<R>(DEPTH - 1, done) });
}

/// Number of tasks that one task awaits in turn.
pub(super) const JOINS: usize = super::size(1_000);

/// Runs a task that spawns another and awaits it, again and again.
pub(super) fn join<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for i in 0..JOINS {
            assert_eq!(R::join(async move { i }).await, i);
        }
        done.one();
    });
}

/// Number of tasks that keep the workers busy: enough that no worker runs out of them.
pub(super) const BUSY: usize = 8;

/// Number of tasks in a burst beside long polls.
pub(super) const BURST: usize = super::size(1_000);

/// Units of work in a microsecond.
pub(super) const MICRO: u64 = 25;

/// Spawns tasks from an outside thread. Other tasks yield until all spawned tasks have run.
pub(super) fn many_busy_remote<R: Rt>(runtime: &R, done: Done) {
    busy_remote::<R, MANY, 0>(runtime, done);
}

/// Spawns `TASKS` tasks from an outside thread. Other tasks, whose polls take about `MICROS`
/// microseconds, yield until all `TASKS` tasks have run.
pub(super) fn busy_remote<R: Rt, const TASKS: usize, const MICROS: u64>(runtime: &R, done: Done) {
    let left = Arc::new(AtomicUsize::new(TASKS));
    for _ in 0..BUSY {
        let left = left.clone();
        runtime.spawn_outside(async move {
            // Ordering: Relaxed. Only the number matters.
            while left.load(Relaxed) > 0 {
                work(MICROS * MICRO);
                R::yield_now().await;
            }
            done.one();
        });
    }
    for _ in 0..TASKS {
        let left = left.clone();
        runtime.spawn_outside(async move {
            // Ordering: Relaxed. Only the number matters.
            left.fetch_sub(1, Relaxed);
            done.one();
        });
    }
}

/// Number of tasks below the root of the tree.
pub(super) const TREE: usize = (1 << (LEVELS + 1)) - 2;

const LEVELS: usize = if super::SMALL { 10 } else { 16 };

/// Runs a binary tree of tasks: each task above the leaves spawns two and awaits both.
pub(super) fn fork_join<R: Rt>(runtime: &R, done: Done) {
    /// Returns the number of leaves. The future is boxed, since its type contains itself.
    fn fork<R: Rt>(levels: usize) -> Pin<Box<dyn Future<Output = usize> + Send>> {
        Box::pin(async move {
            if levels == 0 {
                return 1;
            }
            let left = R::join(fork::<R>(levels - 1));
            let right = R::join(fork::<R>(levels - 1));
            left.await + right.await
        })
    }
    runtime.spawn_outside(async move {
        let leaves = fork::<R>(LEVELS).await;
        assert_eq!(leaves, 1 << LEVELS, "every leaf was counted once");
        done.one();
    });
}
