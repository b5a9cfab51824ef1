//! Compares the cost of one granted operation in `coop-budget` and in tokio: a call of
//! `poll_proceed`, and then one of `made_progress`. `cargo bench -p bench --bench coop`.
//!
//! Each figure is a time in nanoseconds: of one scope in the group `a scope`, and of one operation
//! in the other groups. A poll does 100 operations.
use coop_budget::{Budget, Scope};
use criterion::Criterion;
use std::{
    future::poll_fn,
    hint::black_box,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

const OPERATIONS: u64 = 100;

#[inline(never)]
fn time_ours(cx: &mut Context<'_>) -> Duration {
    let begun = Instant::now();
    for _ in 0..OPERATIONS {
        match coop_budget::poll_proceed(black_box(&mut *cx)) {
            Poll::Ready(progress) => progress.made_progress(),
            Poll::Pending => unreachable!("the budget has 128 operations"),
        }
    }
    begun.elapsed()
}

#[inline(never)]
fn time_tokio(cx: &mut Context<'_>) -> Duration {
    let begun = Instant::now();
    for _ in 0..OPERATIONS {
        match tokio::task::coop::poll_proceed(black_box(&mut *cx)) {
            Poll::Ready(progress) => progress.made_progress(),
            Poll::Pending => unreachable!("the budget has 128 operations"),
        }
    }
    begun.elapsed()
}

/// Adds up the times of as many polls as `n` operations need, and scales the sum to exactly `n`.
fn scaled_time(n: u64, mut poll: impl FnMut() -> Duration) -> Duration {
    let polls = n.div_ceil(OPERATIONS);
    let sum: Duration = (0..polls).map(|_| poll()).sum();
    sum.mul_f64(n as f64 / (polls * OPERATIONS) as f64)
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    let mut group = criterion.benchmark_group("an operation in a scope");
    group.bench_function("coop-budget", |bencher| {
        bencher.iter_custom(|n| {
            scaled_time(n, || Scope::new(Budget::DEFAULT).run(|| time_ours(&mut cx)))
        });
    });
    group.bench_function("tokio", |bencher| {
        bencher.iter_custom(|n| {
            runtime.block_on(async {
                let polls = n.div_ceil(OPERATIONS);
                let mut sum = Duration::ZERO;
                for _ in 0..polls {
                    sum += poll_fn(|cx| Poll::Ready(time_tokio(cx))).await;
                    // The next poll has a new budget.
                    tokio::task::yield_now().await;
                }
                sum.mul_f64(n as f64 / (polls * OPERATIONS) as f64)
            })
        });
    });
    drop(group);
    let mut group = criterion.benchmark_group("an operation outside");
    group.bench_function("coop-budget", |bencher| {
        bencher.iter_custom(|n| scaled_time(n, || time_ours(&mut cx)));
    });
    group.bench_function("tokio", |bencher| {
        bencher.iter_custom(|n| scaled_time(n, || time_tokio(&mut cx)));
    });
    drop(group);
    let mut group = criterion.benchmark_group("a scope");
    group.bench_function("coop-budget", |bencher| {
        bencher.iter(|| Scope::new(black_box(Budget::DEFAULT)).run(|| black_box(())));
    });
    drop(group);
    criterion.final_summary();
}
