//! Scenarios of a driver without a runtime, and of sets of thread-local tasks.
use crate::scenarios::{MS, SOON, run};
use net_driver::{
    Driver,
    time::{Instant, sleep, sleep_until, timeout},
};
use selvedge_executor::{LocalSet, spawn, spawn_local, yield_now};
use selvedge_sim::{Run, Sim, busy, random_below, thread};
use std::{cell::Cell, rc::Rc, time::Duration};
use task_sync::oneshot;

/// Threads are the workers of one driver. Each waits there for a while, and then does something
/// else.
pub fn plain_driver(sim: Sim) -> Run {
    sim.run_main(|| {
        let workers = 1 + random_below(3) as usize;
        let driver = Driver::new(workers);
        let driver = match random_below(2) {
            0 => driver,
            _ => driver.with_standby(),
        };
        let threads = (0..workers).map(|worker| {
            let driver = driver.clone();
            thread::spawn(move || {
                let mut park = driver.park(worker);
                for _ in 0..4 {
                    let late = park.block_on(async {
                        let mut late = Duration::ZERO;
                        for _ in 0..=random_below(3) {
                            let due = Instant::now() + MS * random_below(12) as u32;
                            sleep_until(due).await;
                            late = late.max(Instant::now() - due);
                        }
                        late
                    });
                    assert!(late < SOON, "a sleep ends {late:?} late");
                    thread::sleep(MS * random_below(9) as u32);
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().unwrap();
        }
    })
}

/// Several tasks wait in one set, each for a future of its own. Any of them may end first.
pub fn pollers_of_a_set(sim: Sim) -> Run {
    run(&sim, || async {
        let outer = LocalSet::new();
        outer
            .run_until(async {
                let inner = Rc::new(LocalSet::new());
                let pollers = (0..3).map(|_| {
                    let inner = inner.clone();
                    spawn_local(async move {
                        for _ in 0..3 {
                            inner.run_until(wait_in_a_set()).await;
                        }
                    })
                });
                let pollers: Vec<_> = pollers.collect();
                for poller in pollers {
                    poller.await.unwrap();
                }
            })
            .await;
    })
}

/// A task of a set yields until the other tasks are done, which other threads wake.
pub fn yields_in_a_set(sim: Sim) -> Run {
    run(&sim, || async {
        let set = LocalSet::new();
        set.run_until(async {
            let waits = Rc::new(Cell::new(4));
            let spinner = {
                let waits = waits.clone();
                spawn_local(async move {
                    while waits.get() > 0 {
                        busy(Duration::from_micros(3));
                        yield_now().await;
                    }
                })
            };
            for _ in 0..waits.get() {
                let waits = waits.clone();
                spawn_local(async move {
                    wait_in_a_set().await;
                    waits.set(waits.get() - 1);
                });
            }
            let ended = timeout(2 * SOON, spinner).await;
            ended.expect("the tasks that others wake run").unwrap();
        })
        .await;
    })
}

/// Awaits a task of the current set, which another thread wakes.
async fn wait_in_a_set() {
    let (sender, receiver) = oneshot::channel();
    let task = spawn_local(async move {
        receiver.await.unwrap();
        sleep(Duration::from_micros(random_below(300))).await;
    });
    spawn(async move {
        sleep(Duration::from_micros(random_below(2_000))).await;
        sender.send(()).unwrap();
    });
    task.await.unwrap();
}
