//! The scenarios: programs whose threads are simulated. Each checks its own results. The simulator
//! checks the rest: lost wakes, late timers, deadlocks, and what is left at the end.
//!
//! Times are virtual. *Soon* is a bound of the scheduler, plus the longest time that a simulated
//! poll takes.
use crate::mistakes::is_planted;
use net_driver::time::{Instant, interval, sleep, sleep_until, timeout};
use selvedge_executor::{
    Builder, Handle, JoinHandle, LocalSet, SchedulingGroup, block_in_place, park::ThreadPark,
    spawn, spawn_blocking, spawn_in, spawn_local, syscall, yield_now,
};
use selvedge_sim::{Polls, Run, Sim, busy, random_below, thread};
use std::{
    cell::Cell,
    future::{Future, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Poll, Waker},
    time::Duration,
};
use task_sync::{Barrier, Notify, RwLock, Semaphore, broadcast, mpsc, oneshot, watch};

/// A scenario's name, and the function that runs it.
pub type Scenario = (&'static str, fn(Sim) -> Run);

/// The scenarios whose hosts crash. A crash leaks the stacks of its threads, so a process runs them
/// with so many seeds at most.
pub const CRASHING: &[&str] = &[
    "requests",
    "leases",
    "datagrams",
    "alarms",
    "jobs",
    "quorums",
    "leaders",
    "actors",
    "kv_replicated",
    "log",
    "replace",
    "replace_in_order",
    "disk_errors",
];
const MOST_CRASHES: u64 = 2_000;

/// Returns with how many seeds a process runs a scenario at most.
pub fn most_seeds(name: &str) -> u64 {
    match name {
        // A seed takes half a second.
        "cluster_size" => 5,
        name if CRASHING.contains(&name) => MOST_CRASHES,
        _ => u64::MAX,
    }
}

/// All scenarios.
pub const ALL: &[Scenario] = &[
    ("ping", ping),
    ("spawns", spawns),
    ("fork_join", fork_join),
    ("burst", burst),
    ("outside", outside),
    ("timers", timers),
    ("long_polls", long_polls),
    ("unmonitored", unmonitored),
    ("all_busy", all_busy),
    ("cold_start", cold_start),
    ("first_poll", first_poll),
    ("slot", slot),
    ("blocking", blocking),
    ("in_place", in_place),
    ("calls", calls),
    ("shutdown", shutdown),
    ("background", background),
    ("aborts", aborts),
    ("yields", yields),
    ("groups", groups),
    ("local", local),
    ("current_thread", current_thread),
    ("driven", driven),
    ("sync", sync),
    ("cancels", cancels),
    ("channels", channels),
    ("wakers", wakers),
    ("processes", crate::processes::messages),
    ("links", crate::processes::links),
    ("supervisors", crate::processes::supervisors),
    ("calls_of_processes", crate::processes::calls),
    ("deadlines", crate::processes::deadlines),
    ("busy_deadlines", crate::processes::busy_deadlines),
    ("stuck_steps", crate::processes::stuck_steps),
    ("long_steps", crate::processes::long_steps),
    ("families", crate::processes::families),
    ("nested", crate::processes::nested),
    ("ends_of_families", crate::processes::ends_of_families),
    ("sleeps_outside", crate::busy::sleeps_outside),
    ("all_in_calls", crate::busy::all_in_calls),
    ("burst_behind", crate::busy::burst_behind),
    ("frames", crate::busy::frames),
    ("sharded", crate::busy::sharded),
    ("wake_each_other", crate::busy::wake_each_other),
    ("driven_busy", crate::busy::driven_busy),
    ("calls_at_the_end", crate::ends::calls_at_the_end),
    ("at_exit", crate::ends::at_exit),
    ("plain_driver", crate::drivers::plain_driver),
    ("pollers_of_a_set", crate::drivers::pollers_of_a_set),
    ("yields_in_a_set", crate::drivers::yields_in_a_set),
    ("rwlocks", crate::primitives::rwlocks),
    ("broadcasts", crate::primitives::broadcasts),
    ("closes", crate::primitives::closes),
    ("input_events", crate::busy::input_events),
    ("operations", crate::shares::operations),
    ("shares", crate::shares::shares),
    ("blocks", crate::shares::blocks),
    ("bursts_of_steps", crate::shares::bursts_of_steps),
    ("rounds_of_failures", crate::processes::rounds_of_failures),
    ("kept_handles", crate::ends::kept_handles),
    ("requests", crate::network::requests),
    ("echo", crate::network::echo),
    ("transfers", crate::network::transfers),
    ("leases", crate::network::leases),
    ("datagrams", crate::network::datagrams),
    ("full_queue", crate::network::full_queue),
    ("endings", crate::network::endings),
    ("cluster", crate::cluster::cluster),
    ("cluster_faults", crate::cluster_faults::cluster_faults),
    ("cluster_late", crate::cluster_late::cluster_late),
    ("cluster_size", crate::cluster_size::cluster_size),
    ("log", crate::disks::log),
    ("replace", crate::disks::replace),
    ("replace_in_order", crate::disks::replace_in_order),
    ("disk_errors", crate::disks::errors),
    ("alarms", crate::programs::alarms),
    ("frames_of_a_stream", crate::programs::frames_of_a_stream),
    ("increments", crate::programs::increments),
    ("orders", crate::programs::orders),
    ("updates", crate::programs::updates),
    ("dated_leases", crate::programs::dated_leases),
    ("jobs", crate::programs::jobs),
    ("quorums", crate::replicas::quorums),
    ("leaders", crate::replicas::leaders),
    ("actors", crate::actors::actors),
    ("kv_replicated", |sim| {
        let two_files = is_planted("version and value are in two files");
        crate::kv_replicated::scenario(sim, two_files)
    }),
];

pub const MS: Duration = Duration::from_millis(1);

/// The bound of what waits for a poll that goes on: 10 ms for the monitor or the watcher to notice,
/// twice, and the longest polls that the simulator adds.
pub const SOON: Duration = Duration::from_millis(150);

pub fn workers() -> usize {
    1 + random_below(4) as usize
}

pub fn runtime(workers: usize) -> selvedge_executor::Runtime {
    let builder = Builder::new()
        .workers(workers)
        .stall_threshold(Duration::MAX);
    builder.build().expect("the simulator starts each thread")
}

/// Runs the future in a runtime with one to four workers.
pub fn run<F: Future>(sim: &Sim, app: impl FnOnce() -> F + Send + 'static) -> Run {
    sim.run_main(move || {
        runtime(workers()).block_on(app());
    })
}

pub async fn all<T>(tasks: impl IntoIterator<Item = JoinHandle<T>>) -> Vec<T> {
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

/// Two tasks send each other a message, in turn.
pub fn ping(sim: Sim) -> Run {
    sim.workers(2).run(|| async {
        let (to_pong, mut pings) = mpsc::channel::<u32>(1);
        let (to_ping, mut pongs) = mpsc::channel::<u32>(1);
        let pong = spawn(async move {
            while let Some(n) = pings.recv().await {
                to_ping.send(n + 1).await.unwrap();
            }
        });
        let ping = spawn(async move {
            for n in 0..10 {
                to_pong.send(n).await.unwrap();
                assert_eq!(pongs.recv().await, Some(n + 1));
            }
        });
        ping.await.unwrap();
        pong.await.unwrap();
    })
}

/// Tasks spawn tasks, with idle times between.
fn spawns(sim: Sim) -> Run {
    run(&sim, || async {
        for _ in 0..4 {
            let tasks = (0..8_u64).map(|n| {
                spawn(async move {
                    for _ in 0..random_below(3) {
                        yield_now().await;
                    }
                    let child = spawn(async move { n });
                    busy(Duration::from_micros(random_below(30)));
                    child.await.unwrap()
                })
            });
            let tasks: Vec<_> = tasks.collect();
            assert_eq!(all(tasks).await.iter().sum::<u64>(), 28);
            sleep(MS * random_below(20) as u32).await;
        }
    })
}

fn fork_join(sim: Sim) -> Run {
    fn fork(depth: u32) -> Pin<Box<dyn Future<Output = u32> + Send>> {
        Box::pin(async move {
            if depth == 0 {
                busy(Duration::from_micros(random_below(5)));
                return 1;
            }
            let left = spawn(fork(depth - 1));
            let right = fork(depth - 1).await;
            left.await.unwrap() + right
        })
    }
    run(&sim, || async {
        assert_eq!(spawn(fork(5)).await.unwrap(), 32);
    })
}

/// Tasks from outside arrive beside long polls.
fn burst(sim: Sim) -> Run {
    sim.run_main(|| {
        let workers = workers();
        let runtime = runtime(workers);
        let stop = Arc::new(Mutex::new(false));
        let polls = (0..workers + 1).map(|_| {
            let stop = stop.clone();
            runtime.spawn(async move {
                while !*stop.lock().unwrap() {
                    busy(Duration::from_micros(200));
                    yield_now().await;
                }
            })
        });
        let polls: Vec<_> = polls.collect();
        for _ in 0..3 {
            let tasks: Vec<_> = (0..20).map(|n| runtime.spawn(async move { n })).collect();
            let begun = sync_shim::time::now();
            runtime.block_on(async {
                assert_eq!(all(tasks).await.iter().sum::<u32>(), 190);
            });
            let took = sync_shim::time::since(begun);
            assert!(took < 2 * SOON, "a burst waits for {took:?}");
            thread::sleep(MS * random_below(5) as u32);
        }
        *stop.lock().unwrap() = true;
        runtime.block_on(all(polls));
    })
}

/// Threads wake and spawn tasks from outside, while workers fall asleep.
fn outside(sim: Sim) -> Run {
    sim.run_main(|| {
        let runtime = runtime(workers());
        let handle = runtime.handle().clone();
        let threads = (0..3).map(|_| {
            let handle = handle.clone();
            thread::spawn(move || {
                for n in 0..6_u32 {
                    let (sender, receiver) = oneshot::channel();
                    let task = handle.spawn(async move { receiver.await.unwrap() });
                    if random_below(2) == 0 {
                        thread::sleep(Duration::from_micros(random_below(3_000)));
                    }
                    sender.send(n).unwrap();
                    assert_eq!(handle.block_on(task).unwrap(), n);
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        for thread in threads {
            thread.join().unwrap();
        }
    })
}

/// Sleeps end at their time, in their order, whatever else runs.
fn timers(sim: Sim) -> Run {
    run(&sim, || async {
        let tasks = (0..12_u64).map(|n| {
            spawn(async move {
                for _ in 0..3 {
                    let time = Duration::from_micros(random_below(30_000));
                    let due = Instant::now() + time;
                    if n % 3 == 0 {
                        // A reset to earlier and to later.
                        let mut sleep = pin!(sleep(Duration::from_secs(5)));
                        poll_fn(|cx| Poll::Ready(sleep.as_mut().poll(cx).is_ready())).await;
                        sleep.as_mut().reset(due);
                        sleep.await;
                    } else if n % 3 == 1 {
                        let late = sleep_until(due + Duration::from_secs(1));
                        assert!(timeout(time, late).await.is_err());
                    } else {
                        sleep_until(due).await;
                    }
                    let now = Instant::now();
                    assert!(now >= due, "a sleep ends early");
                    assert!(now < due + SOON, "a sleep ends {:?} late", now - due);
                    busy(Duration::from_micros(random_below(50)));
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let mut ticks = interval(MS);
        for _ in 0..10 {
            ticks.tick().await;
        }
        all(tasks).await;
    })
}

/// Timers fire, and tasks run, beside polls that are long.
fn long_polls(sim: Sim) -> Run {
    sim.run_main(|| {
        let workers = 2 + random_below(3) as usize;
        let runtime = runtime(workers);
        // One worker is left for the others at any time.
        let polls = (0..workers - 1).map(|_| {
            runtime.spawn(async {
                for _ in 0..3 {
                    busy(MS * 200);
                    yield_now().await;
                }
            })
        });
        let polls: Vec<_> = polls.collect();
        let sleeps = (0..4_u64).map(|n| {
            runtime.spawn(async move {
                for _ in 0..5 {
                    let due = Instant::now() + MS * (1 + n as u32);
                    sleep_until(due).await;
                    let late = Instant::now() - due;
                    assert!(late < SOON, "a sleep ends {late:?} late, beside long polls");
                }
            })
        });
        let sleeps: Vec<_> = sleeps.collect();
        runtime.block_on(async {
            all(sleeps).await;
            all(polls).await;
        });
    })
}

/// Timers fire beside long polls in a runtime without a monitor: a parked worker, or a thread in
/// `block_on`, stands by. One poll at a time is long: if all are, nobody is left to stand by.
fn unmonitored(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let workers = 2 + random_below(2) as usize;
        let builder = Builder::new().workers(workers).monitor(false);
        let runtime = builder.build().unwrap();
        let sleeps = (0..3_u64).map(|n| {
            runtime.spawn(async move {
                for _ in 0..6 {
                    // Busy times, and quiet ones.
                    let below = if random_below(4) == 0 { 200_000 } else { 9_000 };
                    let due = Instant::now() + Duration::from_micros(random_below(below));
                    sleep_until(due).await;
                    let late = Instant::now() - due;
                    assert!(
                        late < SOON,
                        "sleep {n} ends {late:?} late, without a monitor"
                    );
                    if n == 0 && random_below(3) == 0 {
                        busy(MS * 200);
                    }
                }
            })
        });
        let sleeps: Vec<_> = sleeps.collect();
        if random_below(2) == 0 {
            thread::sleep(MS * random_below(500) as u32);
        }
        runtime.block_on(all(sleeps));
    })
}

/// Timers are due while all workers are in long polls, some of them the first ones, and no thread
/// is in `block_on`. The simulator checks that the timers fire.
fn all_busy(sim: Sim) -> Run {
    sim.polls(Polls::Short).run_main(|| {
        let workers = workers();
        let runtime = runtime(workers);
        let sleeps = (0..2).map(|_| {
            runtime.spawn(async {
                sleep(MS * random_below(40) as u32).await;
            })
        });
        let mut tasks: Vec<_> = sleeps.collect();
        if random_below(2) == 0 {
            thread::sleep(MS);
        }
        tasks.extend((0..workers).map(|_| {
            runtime.spawn(async {
                let armed = spawn(sleep(MS * 5));
                yield_now().await;
                busy(MS * 300);
                drop(armed);
            })
        }));
        thread::sleep(MS * random_below(500) as u32);
        runtime.block_on(all(tasks));
    })
}

/// The first poll of a runtime is long. Tasks and timers that come before or after it must not wait
/// for it.
fn cold_start(sim: Sim) -> Run {
    sim.run_main(|| {
        let workers = 2 + random_below(3) as usize;
        let runtime = runtime(workers);
        let long = |runtime: &selvedge_executor::Runtime| {
            runtime.spawn(async {
                busy(MS * 500);
            })
        };
        let short = |runtime: &selvedge_executor::Runtime| {
            runtime.spawn(async {
                let begun = Instant::now();
                sleep(MS).await;
                begun.elapsed()
            })
        };
        let begun = sync_shim::time::now();
        let (long, short) = if random_below(2) == 0 {
            let long = long(&runtime);
            (long, short(&runtime))
        } else {
            let short = short(&runtime);
            (long(&runtime), short)
        };
        if random_below(2) == 0 {
            thread::sleep(MS * random_below(30) as u32);
        }
        let slept = runtime.block_on(short).unwrap();
        assert!(slept < SOON, "the sleep took {slept:?}");
        let took = sync_shim::time::since(begun);
        assert!(took < 2 * SOON, "the task took {took:?}");
        runtime.block_on(long).unwrap();
    })
}

/// The first poll arms a timer for another task, wakes a task, or spawns one, and is then long.
#[allow(
    clippy::async_yields_async,
    reason = "the main function awaits the other task"
)]
fn first_poll(sim: Sim) -> Run {
    sim.run_main(|| {
        let runtime = runtime(2 + random_below(2) as usize);
        let first = runtime.spawn(async {
            let kind = random_below(3);
            let (sender, receiver) = oneshot::channel();
            let begun = Instant::now();
            let other = match kind {
                0 => spawn(async move {
                    sleep(MS).await;
                    begun.elapsed()
                }),
                1 => spawn(async move {
                    receiver.await.unwrap();
                    begun.elapsed()
                }),
                _ => spawn(async move { begun.elapsed() }),
            };
            if random_below(2) == 0 {
                yield_now().await;
            }
            let _ = sender.send(());
            busy(MS * 400);
            other
        });
        let other = runtime.block_on(first).unwrap();
        let took = runtime.block_on(other).unwrap();
        assert!(took < SOON, "the other task took {took:?}");
    })
}

/// A task wakes another one, which goes to its slot, and its poll goes on.
fn slot(sim: Sim) -> Run {
    run(&sim, || async {
        if selvedge_executor::Handle::current().metrics().num_workers() < 2 {
            return;
        }
        for _ in 0..3 {
            let notify = Arc::new(Notify::new());
            let woken = {
                let notify = notify.clone();
                spawn(async move {
                    notify.notified().await;
                    Instant::now()
                })
            };
            sleep(MS * random_below(20) as u32).await;
            let waker = spawn(async move {
                let at = Instant::now();
                notify.notify_one();
                busy(MS * 300);
                at
            });
            let (at, ran) = (waker.await.unwrap(), woken.await.unwrap());
            assert!(ran - at < SOON, "the slot's task waits for {:?}", ran - at);
        }
    })
}

fn blocking(sim: Sim) -> Run {
    run(&sim, || async {
        let closures = (0..8_u64).map(|n| {
            spawn_blocking(move || {
                thread::sleep(MS * random_below(5) as u32);
                let inner = Handle::current().block_on(spawn(async move { n * 2 }));
                inner.unwrap()
            })
        });
        let closures: Vec<_> = closures.collect();
        assert_eq!(all(closures).await.iter().sum::<u64>(), 56);
        sleep(Duration::from_secs(random_below(20))).await;
        assert_eq!(spawn_blocking(|| 7).await.unwrap(), 7);
    })
}

/// Tasks lend their worker to another thread.
fn in_place(sim: Sim) -> Run {
    run(&sim, || async {
        let tasks = (0..6_u64).map(|n| {
            spawn(async move {
                for _ in 0..2 {
                    let (sender, receiver) = oneshot::channel();
                    spawn(async move {
                        yield_now().await;
                        let _ = sender.send(n);
                    });
                    // Waits for a task that may be behind this one.
                    let got = block_in_place(|| Handle::current().block_on(receiver));
                    assert_eq!(got.unwrap(), n);
                    yield_now().await;
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        all(tasks).await;
    })
}

/// Tasks are in calls that the monitor watches, some of them long.
fn calls(sim: Sim) -> Run {
    run(&sim, || async {
        let tasks = (0..6_u64).map(|n| {
            spawn(async move {
                for _ in 0..3 {
                    let time = if n == 0 { 50_000 } else { 20 };
                    syscall(|| busy(Duration::from_micros(random_below(time))));
                    yield_now().await;
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let begun = Instant::now();
        let other = spawn(async move { begun.elapsed() });
        assert!(other.await.unwrap() < SOON);
        all(tasks).await;
    })
}

/// Counts drops.
pub struct Dropped(pub Arc<AtomicUsize>);

impl Drop for Dropped {
    fn drop(&mut self) {
        // Ordering: SeqCst, as it is only a count.
        self.0.fetch_add(1, SeqCst);
    }
}

/// A runtime ends while its tasks wait, run, sleep, are woken, and block.
fn shutdown(sim: Sim) -> Run {
    sim.run_main(|| {
        let runtime = runtime(workers());
        let (drops, mut made) = (Arc::new(AtomicUsize::new(0)), 0);
        let (sender, _) = broadcast::channel::<u32>(4);
        for n in 0..12_u64 {
            let (dropped, mut receiver) = (Dropped(drops.clone()), sender.subscribe());
            made += 1;
            let future = async move {
                let _dropped = dropped;
                match n % 6 {
                    0 => sleep(Duration::from_secs(3_600)).await,
                    1 => drop(receiver.recv().await),
                    2 => loop {
                        busy(Duration::from_micros(1));
                        yield_now().await;
                    },
                    3 => drop(spawn_blocking(|| thread::sleep(MS)).await),
                    4 => block_in_place(|| thread::sleep(MS)),
                    _ => syscall(|| thread::sleep(MS)),
                }
            };
            drop(runtime.spawn(future));
        }
        let waker = {
            let handle = runtime.handle().clone();
            thread::spawn(move || {
                for n in 0..4 {
                    let _ = sender.send(n);
                    drop(handle.spawn(async {}));
                    thread::sleep(Duration::from_micros(random_below(500)));
                }
            })
        };
        thread::sleep(Duration::from_micros(random_below(3_000)));
        drop(runtime);
        waker.join().unwrap();
        // Ordering: SeqCst, as it is only a count.
        assert_eq!(drops.load(SeqCst), made, "each future is dropped once");
    })
}

/// A runtime is dropped in the background, or with a limit, or by a task of another one.
fn background(sim: Sim) -> Run {
    sim.run_main(|| {
        let one = runtime(workers());
        one.spawn_detached(async {
            sleep(MS * 3).await;
            drop(spawn_blocking(|| thread::sleep(MS * 30)).await);
        });
        thread::sleep(MS * random_below(6) as u32);
        match random_below(3) {
            0 => one.shutdown_background(),
            1 => drop(one.shutdown_timeout(MS * 10)),
            _ => {
                let other = runtime(workers());
                other
                    .block_on(other.spawn(async move { one.shutdown_background() }))
                    .unwrap();
            }
        }
        thread::sleep(Duration::from_secs(30));
    })
}

fn aborts(sim: Sim) -> Run {
    run(&sim, || async {
        let drops = Arc::new(AtomicUsize::new(0));
        let mut tasks = Vec::new();
        for n in 0..9_u64 {
            let dropped = Dropped(drops.clone());
            tasks.push(spawn(async move {
                let _dropped = dropped;
                match n % 3 {
                    0 => sleep(Duration::from_secs(60)).await,
                    1 => loop {
                        busy(Duration::from_micros(1));
                        yield_now().await;
                    },
                    _ => {}
                }
            }));
        }
        sleep(Duration::from_micros(random_below(300))).await;
        for task in tasks.drain(..) {
            task.abort();
            if random_below(2) == 0 {
                drop(task.await);
            }
        }
        for _ in 0..100 {
            // Ordering: SeqCst, as it is only a count.
            if drops.load(SeqCst) == 9 {
                return;
            }
            sleep(MS).await;
        }
        panic!("an aborted task was never dropped");
    })
}

/// Tasks that never wait share the workers with others.
fn yields(sim: Sim) -> Run {
    run(&sim, || async {
        let stop = Arc::new(Mutex::new(false));
        let spinners = (0..3).map(|_| {
            let stop = stop.clone();
            spawn(async move {
                while !*stop.lock().unwrap() {
                    busy(Duration::from_micros(3));
                    yield_now().await;
                }
            })
        });
        let spinners: Vec<_> = spinners.collect();
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let reader = spawn(async move {
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
            }
            sum
        });
        for n in 0..30_u64 {
            sender.send(n).unwrap();
            if n % 10 == 0 {
                sleep(MS).await;
            }
        }
        drop(sender);
        let sum = timeout(2 * SOON, reader)
            .await
            .expect("the reader waits")
            .unwrap();
        assert_eq!(sum, 435);
        *stop.lock().unwrap() = true;
        all(spinners).await;
    })
}

/// Groups run out of tasks, and get new ones from inside and outside.
fn groups(sim: Sim) -> Run {
    sim.run_main(|| {
        let runtime = runtime(workers());
        let names = ["one", "two", "three"];
        let group = |name: &&str| {
            let shares = 10 + random_below(90) as u32;
            runtime
                .handle()
                .group(*name)
                .shares(shares)
                .build()
                .unwrap()
        };
        let groups: Vec<SchedulingGroup> = names.iter().map(group).collect();
        let mut tasks = Vec::new();
        for n in 0..12_u64 {
            let group = groups[n as usize % 3].clone();
            let inner = groups[(n as usize + 1) % 3].clone();
            let task = async move {
                for _ in 0..3 {
                    busy(Duration::from_micros(random_below(700)));
                    yield_now().await;
                    sleep(Duration::from_micros(random_below(2_000))).await;
                }
                spawn_in(&inner, async move { n }).unwrap().await.unwrap()
            };
            tasks.push(spawn_in(&group, task).unwrap());
            if random_below(3) == 0 {
                thread::sleep(Duration::from_micros(random_below(1_000)));
            }
        }
        assert_eq!(runtime.block_on(all(tasks)).iter().sum::<u64>(), 66);
    })
}

/// A set of tasks that stay on their thread, woken from workers.
fn local(sim: Sim) -> Run {
    run(&sim, || async {
        let set = LocalSet::new();
        let count = Rc::new(Cell::new(0));
        let counted = count.clone();
        set.run_until(async move {
            let mut tasks = Vec::new();
            for n in 0..5_u32 {
                let count = counted.clone();
                tasks.push(spawn_local(async move {
                    let (sender, receiver) = oneshot::channel();
                    spawn(async move {
                        sleep(Duration::from_micros(random_below(500))).await;
                        sender.send(n).unwrap();
                    });
                    let got = receiver.await.unwrap();
                    count.set(count.get() + got);
                }));
            }
            for task in tasks {
                task.await.unwrap();
            }
        })
        .await;
        assert_eq!(count.get(), 10);
    })
}

/// Two threads are in `block_on` of a runtime without threads. One hands its tasks to the other.
fn current_thread(sim: Sim) -> Run {
    // A timer waits for the runtime's only thread, which may be in a poll of 40 ms.
    let sim = sim.timer_bound(Duration::from_millis(50));
    sim.run_main(|| {
        let runtime = Arc::new(Builder::new_current_thread().build().unwrap());
        let (sender, mut receiver) = mpsc::channel::<u32>(2);
        let reader = runtime.spawn(async move {
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
                sleep(Duration::from_micros(random_below(300))).await;
            }
            sum
        });
        let threads = (0..2).map(|_| {
            let (runtime, sender) = (runtime.clone(), sender.clone());
            thread::spawn(move || {
                for n in 0..5 {
                    runtime.block_on(async {
                        sender.send(n).await.unwrap();
                        sleep(Duration::from_micros(random_below(300))).await;
                    });
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        drop(sender);
        assert_eq!(runtime.block_on(reader).unwrap(), 20);
        for thread in threads {
            thread.join().unwrap();
        }
        drop(Arc::into_inner(runtime));
    })
}

/// Driven workers, each in the loop of a thread.
fn driven(sim: Sim) -> Run {
    sim.run_main(|| {
        let parks = (0..workers()).map(|_| ThreadPark::new());
        let (runtime, drivers) = Builder::new().build_driven(parks.collect::<Vec<_>>());
        let threads = drivers.into_iter().map(|worker| SendOnce(worker).start());
        let threads: Vec<_> = threads.collect();
        for _ in 0..3 {
            let tasks = (0..6_u64).map(|n| {
                runtime.spawn(async move {
                    sleep(Duration::from_micros(random_below(2_000))).await;
                    spawn(async move { n }).await.unwrap()
                })
            });
            let tasks: Vec<_> = tasks.collect();
            assert_eq!(runtime.block_on(all(tasks)).iter().sum::<u64>(), 15);
            thread::sleep(MS * random_below(3) as u32);
        }
        drop(runtime);
        for thread in threads {
            thread.join().unwrap();
        }
    })
}

struct SendOnce(selvedge_executor::Worker<ThreadPark>);

impl SendOnce {
    fn start(self) -> thread::JoinHandle<()> {
        thread::spawn(move || self.0.run())
    }
}

/// Locks, semaphores, barriers and watches, in many tasks.
fn sync(sim: Sim) -> Run {
    run(&sim, || async {
        let lock = Arc::new(task_sync::Mutex::new(0_u64));
        let shared = Arc::new(RwLock::new(0_u64));
        let permits = Arc::new(Semaphore::new(2));
        let barrier = Arc::new(Barrier::new(5));
        let (sender, receiver) = watch::channel(0_u64);
        let tasks = (0..5_u64).map(|n| {
            let (lock, shared, permits) = (lock.clone(), shared.clone(), permits.clone());
            let (barrier, mut receiver) = (barrier.clone(), receiver.clone());
            spawn(async move {
                for _ in 0..3 {
                    let _permit = permits.acquire().await.unwrap();
                    *lock.lock().await += 1;
                    yield_now().await;
                    if n % 2 == 0 {
                        *shared.write().await += 1;
                    } else {
                        let _ = *shared.read().await;
                    }
                }
                barrier.wait().await;
                receiver.wait_for(|value| *value == 3).await.unwrap();
            })
        });
        let tasks: Vec<_> = tasks.collect();
        for n in 1..=3 {
            sleep(Duration::from_micros(random_below(200))).await;
            sender.send(n).unwrap();
        }
        all(tasks).await;
        assert_eq!((*lock.lock().await, *shared.read().await), (15, 9));
    })
}

/// Waits for locks and permits are given up in the middle.
fn cancels(sim: Sim) -> Run {
    run(&sim, || async {
        let permits = Arc::new(Semaphore::new(3));
        let lock = Arc::new(task_sync::Mutex::new(()));
        let notify = Arc::new(Notify::new());
        let tasks = (0..8_u64).map(|n| {
            let (permits, lock, notify) = (permits.clone(), lock.clone(), notify.clone());
            spawn(async move {
                for _ in 0..4 {
                    let limit = Duration::from_micros(random_below(400));
                    if n % 2 == 0 {
                        let many = 1 + random_below(3) as u32;
                        let got = timeout(limit, permits.acquire_many(many)).await;
                        if let Ok(permit) = got {
                            sleep(Duration::from_micros(random_below(200))).await;
                            drop(permit);
                        }
                    } else if let Ok(_guard) = timeout(limit, lock.lock()).await {
                        sleep(Duration::from_micros(random_below(200))).await;
                    }
                    let _ = timeout(limit, notify.notified()).await;
                    notify.notify_one();
                }
            })
        });
        let tasks: Vec<_> = tasks.collect();
        all(tasks).await;
        assert_eq!(permits.available_permits(), 3);
        drop(
            timeout(SOON, permits.acquire_many(3))
                .await
                .expect("all are free")
                .unwrap(),
        );
        drop(timeout(SOON, lock.lock()).await.expect("it is free"));
    })
}

/// Senders and receivers of a small channel come and go.
fn channels(sim: Sim) -> Run {
    run(&sim, || async {
        let (sender, mut receiver) = mpsc::channel::<u64>(1 + random_below(3) as usize);
        let senders = (0..4).map(|_| {
            let sender = sender.clone();
            spawn(async move {
                let mut sent = 0;
                for n in 0..6 {
                    let limit = Duration::from_micros(random_below(500));
                    if timeout(limit, sender.reserve()).await.is_ok_and(|permit| {
                        permit.unwrap().send(n);
                        true
                    }) {
                        sent += n;
                    }
                }
                sent
            })
        });
        let senders: Vec<_> = senders.collect();
        drop(sender);
        let reader = spawn(async move {
            let mut sum = 0;
            while let Some(n) = receiver.recv().await {
                sum += n;
                if random_below(2) == 0 {
                    sleep(Duration::from_micros(random_below(100))).await;
                }
            }
            sum
        });
        let sent: u64 = all(senders).await.iter().sum();
        assert_eq!(reader.await.unwrap(), sent);
    })
}

/// A waker moves between threads, and is used late and more than once.
fn wakers(sim: Sim) -> Run {
    sim.run_main(|| {
        let runtime = runtime(workers());
        let kept: Arc<Mutex<Vec<Waker>>> = Arc::default();
        let tasks = (0..4).map(|_| {
            let kept = kept.clone();
            runtime.spawn(async move {
                let mut polls = 0;
                poll_fn(|cx| {
                    polls += 1;
                    kept.lock().unwrap().push(cx.waker().clone());
                    if polls > 3 {
                        Poll::Ready(())
                    } else {
                        Poll::Pending
                    }
                })
                .await;
            })
        });
        let tasks: Vec<_> = tasks.collect();
        let ended = Arc::new(Mutex::new(false));
        let threads = (0..2).map(|_| {
            let (kept, ended) = (kept.clone(), ended.clone());
            thread::spawn(move || {
                while !*ended.lock().unwrap() {
                    let wakers = std::mem::take(&mut *kept.lock().unwrap());
                    for waker in &wakers {
                        waker.wake_by_ref();
                    }
                    thread::sleep(Duration::from_micros(random_below(200)));
                    wakers.into_iter().for_each(Waker::wake);
                }
            })
        });
        let threads: Vec<_> = threads.collect();
        runtime.block_on(all(tasks));
        *ended.lock().unwrap() = true;
        for thread in threads {
            thread.join().unwrap();
        }
        drop(runtime);
        // These come after the runtime.
        let wakers = std::mem::take(&mut *kept.lock().unwrap());
        wakers.into_iter().for_each(Waker::wake);
    })
}
