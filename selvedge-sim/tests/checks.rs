//! Each check finds a program that breaks its rule, and the same seed finds it again.
#![cfg(selvedge_sim)]

use net_driver::time::sleep;
use selvedge_executor::{
    Builder,
    park::{Park, ThreadPark},
    spawn, yield_now,
};
use selvedge_sim::{Failure, Order, Replay, Run, Sim, check, explore, thread};
use std::{
    future::{pending, poll_fn},
    mem,
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicBool, AtomicU32,
            Ordering::{Relaxed, SeqCst},
        },
    },
    task::{Poll, Wake, Waker},
    time::Duration,
};
use task_sync::Notify;

const MS: Duration = Duration::from_millis(1);

fn kind(run: &Run) -> &'static str {
    run.failure().map_or("none", Failure::kind)
}

async fn app() {
    let tasks: Vec<_> = (0..6_u32)
        .map(|n| {
            spawn(async move {
                yield_now().await;
                sleep(MS * n).await;
                spawn(async move { n }).await.unwrap()
            })
        })
        .collect();
    let mut sum = 0;
    for task in tasks {
        sum += task.await.unwrap();
    }
    assert_eq!(sum, 15);
}

#[test]
fn runs_of_a_seed_have_the_same_events() {
    for seed in 0..200 {
        let run = || Sim::new(seed).workers(3).run(app);
        let (one, other) = (run(), run());
        one.unwrap();
        assert_eq!(one.hash(), other.hash(), "{seed}");
    }
}

#[test]
fn seeds_have_different_events() {
    let hash = |seed| Sim::new(seed).workers(3).run(app).hash();
    let mut hashes: Vec<_> = (0..100).map(hash).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert!(hashes.len() > 90, "{} of 100", hashes.len());
}

#[test]
fn block_on_that_never_ends_is_a_deadlock() {
    let run = Sim::new(1).run(|| async {
        spawn(pending::<()>()).await.unwrap();
    });
    let Some(Failure::Deadlock(threads)) = run.failure() else {
        panic!("{run}");
    };
    assert!(threads[0].contains("main) is parked"), "{threads:?}");
}

/// Each seed shows the same tasks, as their names are numbers.
#[test]
fn deadlock_of_two_locks_shows_the_tasks_and_their_circle() {
    let run = |seed| {
        Sim::new(seed).list_tasks(true).run(|| async {
            let locks = Arc::new([(); 2].map(task_sync::Mutex::new));
            let tasks = [0, 1].map(|n: usize| {
                let locks = locks.clone();
                spawn(async move {
                    let _one = locks[n].lock().await;
                    sleep(MS).await;
                    let _other = locks[1 - n].lock().await;
                })
            });
            for task in tasks {
                task.await.unwrap();
            }
        })
    };
    for seed in 0..20 {
        let found = run(seed);
        let Some(Failure::Deadlock(lines)) = found.failure() else {
            panic!("{found}");
        };
        let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
        assert_eq!(count("2 tasks wait for each other"), 1, "{found}");
        // Two in the list of the tasks, and two in the circle.
        assert_eq!(count("a mutex 0x"), 4, "{found}");
        assert_eq!(count("held by task 0x"), 4, "{found}");
        assert_eq!(run(seed).hash(), found.hash());
    }
}

/// A parker whose unparks come to nothing.
struct LosesUnparks;

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

impl Park for LosesUnparks {
    fn park(&mut self) {
        thread::park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        thread::park_timeout(limit);
    }

    fn waker(&self) -> Waker {
        Arc::new(Nothing).into()
    }
}

#[test]
fn unpark_that_is_lost_is_a_lost_wake() {
    let found = explore(0..100, |sim| {
        sim.run_main(|| {
            let (runtime, mut workers) = Builder::new().build_driven([LosesUnparks]);
            let worker = workers.remove(0);
            thread::spawn(move || worker.run());
            thread::sleep(MS);
            runtime.block_on(runtime.spawn(async {})).unwrap();
        })
    });
    let found = found.found.expect("the task is never run");
    assert_eq!(kind(&found.run), "lost-wake", "{found}");
}

/// A parker that sleeps too long.
struct Oversleeps(ThreadPark);

impl Park for Oversleeps {
    fn park(&mut self) {
        self.0.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.0.park_timeout(limit + MS * 100);
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }
}

/// Says that work waits, while the flag is set.
struct LeavesWork(AtomicBool);

impl sync_shim::sim::Subject for LeavesWork {
    fn ready(&self) -> Option<String> {
        None
    }

    fn unserved(&self) -> Option<String> {
        // Ordering: Relaxed, as all threads of the run are one thread of the system.
        self.0.load(Relaxed).then(|| "a job waits".to_owned())
    }

    fn deadline(&self, _: std::time::Instant) -> Option<std::time::Instant> {
        None
    }
}

/// Fails if the check is made only while no thread is busy, or if the time of several waits is
/// added up.
#[test]
fn work_left_for_long_beside_a_busy_thread_is_a_lost_wake() {
    let run = |waits: &'static [u64]| {
        Sim::new(1).run_main(move || {
            let part = Arc::new(LeavesWork(AtomicBool::new(false)));
            sync_shim::sim::watch(&part);
            for time in waits {
                // Ordering: Relaxed, as above.
                part.0.store(true, Relaxed);
                selvedge_sim::busy(Duration::from_micros(*time));
                // Ordering: Relaxed, as above.
                part.0.store(false, Relaxed);
                selvedge_sim::busy(Duration::from_micros(10));
            }
        })
    };
    run(&[900, 900, 900]).unwrap();
    let lost = run(&[900, 1_100]);
    assert_eq!(kind(&lost), "lost-wake", "{lost}");
    assert!(lost.to_string().contains("a job waits"), "{lost}");
}

#[test]
fn timer_that_nobody_serves_in_time_is_late() {
    let scenario = |bound: Duration| {
        let sim = Sim::new(1).timer_bound(bound);
        sim.run_main(|| {
            let (runtime, mut workers) =
                Builder::new().build_driven([Oversleeps(ThreadPark::new())]);
            let worker = workers.remove(0);
            let thread = thread::spawn(move || worker.run());
            let task = runtime.spawn(sleep(MS * 30));
            while !task.is_finished() {
                thread::sleep(MS * 50);
            }
            drop((task, runtime));
            thread.join().unwrap();
        })
    };
    scenario(MS * 200).unwrap();
    let late = scenario(MS * 25);
    assert_eq!(kind(&late), "late-timer", "{late}");
}

#[test]
fn handle_that_is_forgotten_leaves_a_part() {
    let run = Sim::new(1).run_main(|| {
        let runtime = Builder::new().workers(1).build().unwrap();
        mem::forget(runtime.handle().clone());
    });
    assert_eq!(run.failure(), Some(&Failure::PartsLeft(1)), "{run}");
}

/// A task that is woken and that no worker ever finds, beside tasks that keep the workers busy.
#[test]
fn task_that_no_worker_polls_is_starved() {
    let run = |is_woken: bool, checks: bool| {
        Sim::new(1).fairness(checks).run(move || async move {
            let task = 8;
            sync_shim::sim::allocated(task);
            if is_woken {
                sync_shim::sim::event("wake", task, 0);
            }
            let polls = if cfg!(debug_assertions) {
                100_000
            } else {
                400_000
            };
            let yields = [(); 3].map(|()| {
                spawn(async move {
                    for _ in 0..polls {
                        yield_now().await;
                    }
                })
            });
            for task in yields {
                task.await.unwrap();
            }
            sync_shim::sim::freed(task);
        })
    };
    assert_eq!(kind(&run(true, true)), "starved");
    run(true, false).unwrap();
    run(false, true).unwrap();
}

#[test]
fn waker_that_is_forgotten_leaves_a_task() {
    let run = Sim::new(1).run(|| async {
        let task = spawn(poll_fn(|cx| {
            mem::forget(cx.waker().clone());
            Poll::Ready(())
        }));
        task.await.unwrap();
    });
    assert_eq!(kind(&run), "tasks-left", "{run}");
}

#[test]
fn runtime_that_is_forgotten_leaves_threads() {
    let run = Sim::new(1).run_main(|| {
        let runtime = Builder::new().workers(1).build().unwrap();
        runtime.spawn_detached(async {
            loop {
                sleep(MS).await;
            }
        });
        mem::forget(runtime);
    });
    assert_eq!(kind(&run), "threads-left", "{run}");
}

#[test]
fn panic_of_the_main_function_is_reported() {
    let run = Sim::new(1).run(|| async { panic!("as asked") });
    let Some(Failure::Panic {
        thread,
        message,
        place: Some(place),
    }) = run.failure()
    else {
        panic!("{run}");
    };
    assert_eq!((&**thread, &**message), ("main", "as asked"));
    assert!(place.contains("tests/checks.rs:"), "{place}");
}

#[test]
fn endless_loop_of_polls_is_too_long() {
    let run = Sim::new(1).steps(10_000).run(|| async {
        spawn(async {
            loop {
                yield_now().await;
            }
        })
        .await
        .unwrap();
    });
    assert_eq!(kind(&run), "too-long", "{run}");
}

#[test]
fn program_with_state_outside_of_the_run_diverges() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let explored = explore(0..1, |sim| {
        // Ordering: Relaxed, as it is only a count.
        let runs = RUNS.fetch_add(1, Relaxed);
        sim.run(move || async move {
            for _ in 0..runs {
                spawn(async {}).await.unwrap();
            }
        })
    });
    let found = explored.found.expect("each run spawns more tasks");
    assert_eq!(kind(&found.run), "diverged", "{found}");
}

/// Two tasks each read a number, yield, and write the number plus one.
fn race(sim: Sim) -> Run {
    sim.workers(2).run(|| async {
        let number = Arc::new(Mutex::new(0));
        let tasks = [(); 2].map(|()| {
            let number = number.clone();
            spawn(async move {
                let read = *number.lock().unwrap();
                yield_now().await;
                *number.lock().unwrap() = read + 1;
            })
        });
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*number.lock().unwrap(), 2, "an update is lost");
    })
}

#[test]
fn failure_is_shrunk_and_replayed_from_its_file() {
    let found = explore(0..1_000, race)
        .found
        .expect("a seed loses an update");
    // Even the simplest order loses an update.
    assert!(found.choices_before > 0);
    assert_eq!(found.choices.as_deref(), Some(&[][..]), "{found}");
    let file = std::env::temp_dir().join(format!("selvedge-sim-{}.sim", std::process::id()));
    Replay::of("race", &found).write(&file).unwrap();
    let replay = Replay::read(&file).unwrap();
    std::fs::remove_file(file).unwrap();
    assert!(replay.is_of_this_build());
    let again = replay.run(race);
    assert_eq!(again.failure(), found.run.failure());
    assert_eq!(replay.compare(&again), None);
}

/// One more poll stands for a source that was changed since.
#[test]
fn replay_of_a_changed_program_says_that_it_differs() {
    let found = explore(0..1_000, race).found.unwrap();
    let replay = Replay::of("race", &found);
    let changed = |sim: Sim| {
        sim.run(|| async {
            selvedge_executor::yield_now().await;
            panic!("another program fails, too");
        })
    };
    let difference = replay.compare(&replay.run(changed)).unwrap();
    assert!(difference.contains("has the hash"), "{difference}");
    // A build of the same source in another folder is another program, with the same events.
    let moved = Replay {
        build: "0123".to_owned(),
        ..replay
    };
    assert_eq!(moved.compare(&moved.run(race)), None);
    assert!(!moved.is_of_this_build());
    let difference = moved.compare(&moved.run(changed)).unwrap();
    assert!(difference.contains("another source"), "{difference}");
}

#[test]
#[should_panic = "an update is lost"]
fn check_panics_with_the_report() {
    check(0..1_000, race);
}

#[test]
fn each_order_repeats() {
    for order in [Order::Uniform, Order::Priorities, Order::Starve] {
        let run = || Sim::new(5).workers(4).order(order).run(app);
        let (one, other) = (run(), run());
        one.unwrap();
        assert_eq!((one.hash(), one.stats().order), (other.hash(), order));
    }
}

/// A thread of the system holds a lock for longer than a simulated one waits there first.
#[test]
fn wait_for_a_thread_outside_takes_no_time() {
    let lock = Arc::new(Mutex::new(()));
    let (held, is_held) = std::sync::mpsc::channel();
    let outside = std::thread::spawn({
        let lock = lock.clone();
        move || {
            let _guard = lock.lock().unwrap();
            held.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    is_held.recv().unwrap();
    let run = Sim::new(3).workers(2).run(move || async move {
        let sleeper = spawn(sleep(Duration::from_secs(1)));
        let begun = std::time::Instant::now();
        drop(lock.lock().unwrap());
        assert!(begun.elapsed() < Duration::from_millis(500));
        sleeper.await.unwrap();
    });
    run.unwrap();
    outside.join().unwrap();
}

#[test]
fn day_of_sleep_takes_no_time() {
    let begun = std::time::Instant::now();
    let day = Duration::from_secs(86_400);
    let run = Sim::new(1).run(move || async move { sleep(day).await });
    run.unwrap();
    assert!(run.stats().time >= day);
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// The door of the guide's chapter on simulations. It is safe to enter only if a guest begins to
/// wait before it looks at the door.
#[derive(Default)]
struct Door {
    is_open: AtomicBool,
    opened: Notify,
}

impl Door {
    fn open(&self) {
        // Ordering: SeqCst, as it is not on a hot path.
        self.is_open.store(true, SeqCst);
        self.opened.notify_waiters();
    }

    async fn enter(&self, waits_first: bool) {
        loop {
            let opened = waits_first.then(|| self.opened.notified());
            // Ordering: SeqCst, as above.
            if self.is_open.load(SeqCst) {
                return;
            }
            yield_now().await;
            match opened {
                Some(opened) => opened.await,
                None => self.opened.notified().await,
            }
        }
    }
}

fn guests(waits_first: bool) -> impl Fn(Sim) -> Run {
    move |sim| {
        sim.workers(2).run(move || async move {
            let door = Arc::new(Door::default());
            let host = door.clone();
            let host = spawn(async move { host.open() });
            let guests = [(); 3].map(|()| {
                let door = door.clone();
                spawn(async move { door.enter(waits_first).await })
            });
            host.await.unwrap();
            for guest in guests {
                guest.await.unwrap();
            }
        })
    }
}

#[test]
fn wait_that_begins_too_late_is_a_deadlock() {
    let found = explore(0..1_000, guests(false)).found;
    let found = found.expect("a seed opens the door between a look and a wait");
    assert_eq!(kind(&found.run), "deadlock");
    assert!(explore(0..1_000, guests(true)).found.is_none());
}
