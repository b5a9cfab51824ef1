//! Measures `selvedge::syscall`, and `block_in_place` of selvedge and of tokio, with a closure that
//! returns at once.
//! `cargo bench -p bench --bench call`.
//!
//! Figures are nanoseconds a call, with 100 calls in a poll, on a runtime of one worker.
use criterion::Criterion;
use std::{
    hint::black_box,
    time::{Duration, Instant},
};

const CALLS: u64 = 100;

/// Adds up the times of as many polls as `n` calls need, and scales the sum to exactly `n`. A poll
/// makes 100 calls. The task yields after each poll; the yield is not timed.
macro_rules! scaled_time {
    ($n:expr, $yield_now:path, $call:expr) => {{
        let (polls, mut sum) = ($n.div_ceil(CALLS), Duration::ZERO);
        for _ in 0..polls {
            let begun = Instant::now();
            for call in 0..CALLS {
                assert_eq!($call(|| black_box(call)), call);
            }
            sum += begun.elapsed();
            $yield_now().await;
        }
        sum.mul_f64($n as f64 / (polls * CALLS) as f64)
    }};
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(30)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(400))
        .configure_from_args();
    let ours = selvedge::Builder::new().workers(1).build().unwrap();
    let tokios = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .build()
        .unwrap();
    let mut group = criterion.benchmark_group("a call");
    group.bench_function("selvedge syscall", |bencher| {
        bencher.iter_custom(|n| {
            let task = async move { scaled_time!(n, selvedge::yield_now, selvedge::syscall) };
            ours.block_on(ours.spawn(task)).unwrap()
        });
    });
    group.bench_function("selvedge block_in_place", |bencher| {
        bencher.iter_custom(|n| {
            let task =
                async move { scaled_time!(n, selvedge::yield_now, selvedge::block_in_place) };
            ours.block_on(ours.spawn(task)).unwrap()
        });
    });
    group.bench_function("tokio block_in_place", |bencher| {
        bencher.iter_custom(|n| {
            let task =
                async move { scaled_time!(n, tokio::task::yield_now, tokio::task::block_in_place) };
            tokios.block_on(tokios.spawn(task)).unwrap()
        });
    });
    group.finish();
    criterion.final_summary();
}
