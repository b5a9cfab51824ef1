//! Counts, for 2 to 256 workers, how often a poll writes to words that all workers share.
//!
//! The figures are counted, not timed. So there may be more threads than processors.
//!
//! ```sh
//! RUSTFLAGS="--cfg selvedge_count" cargo run --release -p bench --example scale \
//!     --target-dir target/count
//! ```
//!
//! The program counts over all threads, for each poll:
//!
//! - read-modify-writes;
//! - the read-modify-writes of words that all workers share: the idle word and masks, the
//!   injector's stack, the count of outside spawns;
//! - `SeqCst` fences.
//!
//! Searches, stolen tasks, tasks taken from the injector and sleeps come from the runtime's own
//! counters.
#[cfg(selvedge_count)]
mod counted {
    use futures_lite::future::block_on;
    use selvedge::{Builder, Runtime};
    use std::{hint::black_box, time::Duration};
    use sync_shim::count::total;

    const TASKS: u64 = 20_000;

    type Row = (&'static str, fn(&Runtime));

    const ROWS: &[Row] = &[
        ("spawn from a task", |runtime| {
            block_on(runtime.spawn(async {
                let tasks: Vec<_> = (0..TASKS).map(|_| selvedge::spawn(async {})).collect();
                for task in tasks {
                    task.await.expect("it doesn't panic");
                }
            }))
            .expect("it doesn't panic");
        }),
        ("spawn from outside", |runtime| {
            let tasks: Vec<_> = (0..TASKS).map(|_| runtime.spawn(async {})).collect();
            for task in tasks {
                block_on(task).expect("it doesn't panic");
            }
        }),
        ("spawn and await", |runtime| {
            block_on(runtime.spawn(async {
                for _ in 0..TASKS {
                    let task = selvedge::spawn(async {});
                    task.await.expect("it doesn't panic");
                }
            }))
            .expect("it doesn't panic");
        }),
        ("yield, 4 tasks a worker", |runtime| {
            let tasks = 4 * runtime.metrics().workers;
            let yields = TASKS.div_ceil(tasks);
            let tasks: Vec<_> = (0..tasks)
                .map(|_| {
                    runtime.spawn(async move {
                        for _ in 0..yields {
                            selvedge::yield_now().await;
                        }
                    })
                })
                .collect();
            for task in tasks {
                block_on(task).expect("it doesn't panic");
            }
        }),
        ("work of 20 µs from a task", |runtime| {
            block_on(runtime.spawn(async {
                let work = || (0..20_000_u64).fold(1, |x, i| black_box(x ^ i));
                let spawn = |_| selvedge::spawn(async move { black_box(work()) });
                let tasks: Vec<_> = (0..TASKS / 10).map(spawn).collect();
                for task in tasks {
                    task.await.expect("it doesn't panic");
                }
            }))
            .expect("it doesn't panic");
        }),
    ];

    pub(super) fn main() {
        println!(
            "| row | workers | read-modify-writes | of these shared | `SeqCst` fences | searches \
             | stolen | from the injector | sleeps |\n\
             |---|---|---|---|---|---|---|---|---|"
        );
        for (row, run) in ROWS {
            for workers in [2, 8, 64, 256] {
                let runtime = Builder::new().workers(workers).prestart().build();
                let runtime = runtime.expect("it starts");
                // After this time all workers sleep.
                std::thread::sleep(Duration::from_millis(100));
                let (before, counters) = (total(), runtime.metrics());
                run(&runtime);
                let (after, now) = (total(), runtime.metrics());
                let operations = (now.polls - counters.polls) as f64;
                let each = |after: u64, before: u64| (after - before) as f64 / operations;
                println!(
                    "| {row} | {workers} | {:.2} | {:.3} | {:.3} | {:.3} | {:.3} | {:.3} | {:.4} |",
                    each(after.rmws, before.rmws),
                    each(after.shared_rmws, before.shared_rmws),
                    each(after.seqcst_fences, before.seqcst_fences),
                    each(now.searches, counters.searches),
                    each(now.stolen, counters.stolen),
                    each(now.injected, counters.injected),
                    each(now.parks, counters.parks),
                );
            }
        }
    }
}

fn main() {
    #[cfg(selvedge_count)]
    counted::main();
    #[cfg(not(selvedge_count))]
    println!(
        "nothing is counted without RUSTFLAGS=\"--cfg selvedge_count\" \
         (and --target-dir target/count)"
    );
}
