//! Scenarios of runtimes that end.
use crate::scenarios::{Dropped, MS, runtime, workers};
use net_driver::time::sleep;
use selvedge_executor::{
    block_in_place, park::ThreadPark, spawn, spawn_blocking, syscall, yield_now,
};
use selvedge_sim::{Run, Sim, random_below, thread};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

/// Tasks come back from calls that block while their runtime ends, and go on.
pub fn calls_at_the_end(sim: Sim) -> Run {
    sim.run_main(|| {
        let runtime = runtime(workers());
        let drops = Arc::new(AtomicUsize::new(0));
        for n in 0..6_u64 {
            let dropped = Dropped(drops.clone());
            runtime.spawn_detached(async move {
                let _dropped = dropped;
                loop {
                    let time = Duration::from_micros(random_below(3_000));
                    match n % 2 {
                        0 => block_in_place(|| thread::sleep(time)),
                        _ => syscall(|| thread::sleep(time)),
                    }
                    match n % 3 {
                        0 => sleep(MS).await,
                        1 => drop(spawn(async {}).await),
                        _ => yield_now().await,
                    }
                }
            });
        }
        thread::sleep(Duration::from_micros(random_below(8_000)));
        drop(runtime);
        // Ordering: SeqCst, as it is only a count.
        assert_eq!(drops.load(SeqCst), 6, "each future is dropped once");
    })
}

/// The futures of the runtime's end sleep, spawn closures, and wait for tasks, beside tasks with
/// timers.
pub fn at_exit(sim: Sim) -> Run {
    sim.run_main(|| {
        let runtime = runtime(workers());
        let handle = runtime.handle().clone();
        let (ends, drops) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for n in 0..4_u64 {
            let (ended, dropped) = (Dropped(ends.clone()), Dropped(drops.clone()));
            handle.at_exit(async move {
                let _dropped = dropped;
                sleep(Duration::from_micros(random_below(4_000))).await;
                if n % 2 == 0 {
                    yield_now().await;
                } else {
                    drop(spawn_blocking(|| thread::sleep(MS)).await);
                }
                drop(ended);
            });
            let dropped = Dropped(drops.clone());
            runtime.spawn_detached(async move {
                let _dropped = dropped;
                loop {
                    sleep(Duration::from_micros(random_below(2_000))).await;
                }
            });
        }
        if random_below(2) == 0 {
            thread::sleep(Duration::from_micros(random_below(3_000)));
        }
        drop(runtime);
        let late = Dropped(drops.clone());
        handle.at_exit(async move { drop(late) });
        // Ordering: SeqCst, as these are only counts.
        assert_eq!(
            (ends.load(SeqCst), drops.load(SeqCst)),
            (4, 9),
            "each has ended"
        );
    })
}

/// Threads keep handles of a runtime and of its tasks beyond the runtime's end, and wait for the
/// tasks.
pub fn kept_handles(sim: Sim) -> Run {
    sim.run_main(|| {
        let runtime = runtime(workers());
        let (kept, drops) = (runtime.handle().clone(), Arc::new(AtomicUsize::new(0)));
        let tasks = (0..8_u64).map(|n| {
            let dropped = Dropped(drops.clone());
            let task = async move {
                let _dropped = dropped;
                let time = Duration::from_micros(random_below(3_000));
                match n % 4 {
                    0 => block_in_place(|| thread::sleep(time)),
                    1 => syscall(|| thread::sleep(time)),
                    2 => sleep(time).await,
                    _ => drop(spawn_blocking(move || thread::sleep(time)).await),
                }
                yield_now().await;
            };
            runtime.spawn(task)
        });
        let tasks: Vec<_> = tasks.collect();
        let waits = tasks
            .into_iter()
            .map(|task| thread::spawn(move || drop(ThreadPark::block_on(task))));
        let waits: Vec<_> = waits.collect();
        thread::sleep(Duration::from_micros(random_below(4_000)));
        drop(runtime);
        // Ordering: SeqCst, as it is only a count.
        assert_eq!(drops.load(SeqCst), 8, "each future is dropped once");
        for wait in waits {
            wait.join().unwrap();
        }
        drop(kept);
    })
}
