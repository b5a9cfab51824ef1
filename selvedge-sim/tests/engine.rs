//! The promises of the simulator to a program: its runs are apart from each other, threads switch
//! at each call that another thread can observe, and the clocks and hash maps of std repeat.
#![cfg(selvedge_sim)]

use selvedge_executor::{Builder, park::Park};
use selvedge_sim::{Failure, Replay, Run, Sim, explore, thread};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering::Relaxed},
        mpsc,
    },
    task::Waker,
    time::{Duration, Instant, SystemTime},
};
use sync_shim::{
    sync::{Condvar, Mutex as SimulatedMutex},
    thread::current,
};

const MS: Duration = Duration::from_millis(1);

fn kind(run: &Run) -> &'static str {
    run.failure().map_or("none", Failure::kind)
}

/// Runs `main` with this seed, and returns its result.
fn result_of<T: Send + 'static>(seed: u64, main: impl FnOnce() -> T + Send + 'static) -> T {
    let (sender, receiver) = mpsc::channel();
    let run = Sim::new(seed).run_main(move || sender.send(main()).unwrap());
    run.unwrap();
    receiver.recv().unwrap()
}

#[test]
fn hash_map_of_std_iterates_in_the_order_of_the_seed() {
    let keys = |seed| {
        result_of(seed, || {
            let map: HashMap<u32, ()> = (0..20).map(|key| (key, ())).collect();
            map.into_keys().collect::<Vec<_>>()
        })
    };
    assert_eq!(keys(1), keys(1));
    assert_ne!(keys(1), keys(2));
}

#[test]
fn clocks_of_std_show_the_virtual_time() {
    let times = || {
        result_of(1, || {
            let (begun, date) = (Instant::now(), SystemTime::now());
            thread::sleep(Duration::from_secs(3_600));
            let passed = begun.elapsed();
            let shown = Instant::now().duration_since(sync_shim::time::now());
            assert!(
                shown < MS,
                "std's clock is {shown:?} ahead of the virtual one"
            );
            (passed, date, SystemTime::now())
        })
    };
    let (passed, date, later) = times();
    assert!(passed >= Duration::from_secs(3_600), "{passed:?}");
    assert!(
        later >= date + Duration::from_secs(3_600),
        "{date:?} {later:?}"
    );
    assert_eq!((passed, date, later), times());
}

/// The thread of the handle has the number 1 in the first run. So has the main thread of the
/// second.
#[test]
fn handle_of_an_earlier_run_leaves_the_next_run_alone() {
    let earlier = result_of(1, current);
    let slept = result_of(2, move || {
        assert_ne!(earlier.id(), current().id());
        thread::spawn(move || earlier.unpark());
        let begun = selvedge_sim::now();
        thread::park_timeout(Duration::from_secs(1));
        selvedge_sim::now() - begun
    });
    assert!(slept >= Duration::from_secs(1), "the park took {slept:?}");
}

#[test]
fn handles_of_an_ended_run_do_nothing_on_a_thread_of_std() {
    let (main, other) = result_of(1, || {
        let other = thread::spawn(|| 7);
        thread::sleep(MS);
        (current(), other)
    });
    main.unpark();
    assert_eq!(other.join().unwrap(), 7);
}

#[test]
fn handle_of_a_run_that_goes_on_panics_on_a_thread_of_std() {
    let run = Sim::new(1).run_main(|| {
        let main = current();
        let unparked = std::thread::spawn(move || main.unpark()).join();
        assert!(
            unparked.is_err(),
            "the unpark comes from outside of the run"
        );
    });
    run.unwrap();
}

#[test]
fn task_waker_after_the_end_of_its_runtime_does_nothing() {
    let explored = explore(0..100, |sim| {
        sim.run_main(|| {
            let kept = Arc::new(Mutex::new(None));
            let keep = kept.clone();
            let runtime = Builder::new().workers(2).build().unwrap();
            runtime.spawn_detached(std::future::poll_fn(move |cx| {
                *keep.lock().unwrap() = Some(cx.waker().clone());
                std::task::Poll::<()>::Pending
            }));
            thread::sleep(MS);
            drop(runtime);
            let waker: Option<Waker> = kept.lock().unwrap().take();
            if let Some(waker) = waker {
                waker.wake_by_ref();
                thread::spawn(move || waker.wake()).join().unwrap();
            }
        })
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

/// Fails if another thread may run between the unlock and the wait.
#[test]
fn condvar_wait_loses_no_notification() {
    let explored = explore(0..500, |sim| {
        sim.run_main(|| {
            let shared = Arc::new((SimulatedMutex::new(false), Condvar::new()));
            let notifier = shared.clone();
            let (flag, condvar) = &*shared;
            let mut is_set = flag.lock();
            thread::spawn(move || {
                *notifier.0.lock() = true;
                notifier.1.notify_one();
            });
            // The other thread waits for the lock meanwhile.
            thread::sleep(MS);
            while !*is_set {
                is_set = condvar.wait(is_set);
            }
        })
    });
    assert!(explored.found.is_none(), "{}", explored.found.unwrap());
}

#[test]
fn thread_may_be_replaced_between_two_locks() {
    let explored = explore(0..1_000, |sim| {
        sim.run_main(|| {
            let number = Arc::new(SimulatedMutex::new(0));
            let threads = [(); 2].map(|()| {
                let number = number.clone();
                thread::spawn(move || {
                    let read = *number.lock();
                    *number.lock() = read + 1;
                })
            });
            for thread in threads {
                thread.join().unwrap();
            }
            assert_eq!(*number.lock(), 2, "an update is lost");
        })
    });
    let found = explored.found.expect("a seed loses an update");
    assert_eq!(kind(&found.run), "panic", "{found}");
    // One thread has to be replaced at one place: that takes few choices that are not the simplest.
    let others = found.count_choices().expect("the failure repeats");
    assert!((1..=3).contains(&others), "{found}");
}

#[test]
fn thread_may_be_replaced_at_a_notification_of_nobody() {
    let explored = explore(0..1_000, |sim| {
        sim.run_main(|| {
            let number = Arc::new(AtomicU32::new(0));
            let reader = number.clone();
            let condvar = Condvar::new();
            // Ordering: Relaxed, as all threads run on one thread of the system.
            let thread = thread::spawn(move || assert_ne!(reader.load(Relaxed), 1));
            number.store(1, Relaxed);
            condvar.notify_one();
            number.store(2, Relaxed);
            thread.join().unwrap();
        })
    });
    assert!(
        explored.found.is_some(),
        "no thread has seen the first number"
    );
}

#[test]
fn panic_of_a_thread_is_a_failure_with_its_place() {
    let run = Sim::new(1).run_main(|| {
        thread::spawn(|| panic!("in a thread"));
    });
    assert_eq!(kind(&run), "panic", "{run}");
    let report = run.to_string();
    assert!(report.contains("in a thread"), "{report}");
    assert!(report.contains("tests/engine.rs:"), "{report}");
}

/// A parker that panics.
struct Panics;

impl Park for Panics {
    fn park(&mut self) {
        panic!("in a park");
    }

    fn park_timeout(&mut self, _: Duration) {
        self.park();
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

/// Panics in its drop, and catches the panic.
struct CatchesInDrop;

impl Drop for CatchesInDrop {
    fn drop(&mut self) {
        assert!(std::panic::catch_unwind(|| panic!("in the drop")).is_err());
    }
}

/// Fails if the second panic, which was caught, takes the place of the first.
#[test]
fn panic_caught_in_a_drop_does_not_hide_the_first() {
    let run = Sim::new(1).run_main(|| {
        let _caught = CatchesInDrop;
        panic!("the first");
    });
    let Some(Failure::Panic { message, place, .. }) = run.failure() else {
        panic!("{run}");
    };
    assert_eq!(message, "the first");
    assert!(place.is_some(), "{run}");
}

#[test]
fn panic_of_a_worker_outside_of_polls_is_a_failure() {
    let run = Sim::new(1).run_main(|| {
        let (runtime, mut workers) = Builder::new().build_driven([Panics]);
        let worker = workers.remove(0);
        thread::spawn(move || worker.run());
        thread::sleep(MS);
        drop(runtime);
    });
    assert_eq!(kind(&run), "panic", "{run}");
    assert!(run.to_string().contains("in a park"), "{run}");
}

/// Its drop waits for ever.
struct Waits;

impl Drop for Waits {
    fn drop(&mut self) {
        thread::park();
    }
}

fn panics_and_waits() {
    let _waits = Waits;
    panic!("at first");
}

#[test]
fn panic_is_reported_rather_than_its_consequence() {
    let run = Sim::new(1).run_main(panics_and_waits);
    assert_eq!(kind(&run), "panic", "{run}");
    assert!(run.to_string().contains("at first"), "{run}");
}

#[test]
fn run_after_a_panic_that_goes_on_for_ever_is_not_panicking() {
    let first = Sim::new(1).run_main(panics_and_waits);
    assert!(first.failure().is_some());
    assert!(!result_of(1, std::thread::panicking));
}

#[test]
fn thread_local_of_std_is_new_in_each_run() {
    std::thread_local! {
        static COUNT: std::cell::Cell<u32> = const { std::cell::Cell::new(0) };
    }
    let count = || {
        result_of(1, || {
            COUNT.set(COUNT.get() + 1);
            COUNT.get()
        })
    };
    assert_eq!((count(), count()), (1, 1));
}

#[test]
fn replay_of_a_divergence_diverges() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let scenario = |sim: Sim| {
        // Ordering: Relaxed, as it is only a count.
        let runs = RUNS.fetch_add(1, Relaxed);
        sim.run(move || async move {
            for _ in 0..runs {
                selvedge_executor::spawn(async {}).await.unwrap();
            }
        })
    };
    let found = explore(0..1, scenario).found.expect("each run spawns more");
    assert_eq!(kind(&found.run), "diverged", "{found}");
    let again = Replay::of("spawns", &found).run(scenario);
    assert_eq!(kind(&again), "diverged", "{again}");
}

#[test]
fn failure_that_does_not_repeat_is_reported_all_the_same() {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let scenario = |sim: Sim| {
        // Ordering: Relaxed, as it is only a count.
        let is_first = RUNS.fetch_add(1, Relaxed) == 0;
        sim.run_main(move || assert!(!is_first, "only once"))
    };
    let found = explore(0..1, scenario).found.expect("the first run fails");
    assert_eq!(kind(&found.run), "panic", "{found}");
}

/// Runs itself in another process, where the scenario of this test hangs.
#[test]
fn loop_that_never_switches_ends_the_process_with_words() {
    const NAME: &str = "loop_that_never_switches_ends_the_process_with_words";
    const HANGS: &str = "SELVEDGE_SIM_TEST_HANGS";
    if std::env::var_os(HANGS).is_some() {
        let sim = Sim::new(7).watchdog(Some(MS * 300));
        let _ = sim.run_main(|| {
            let spins = thread::Builder::new().name("spinner".to_owned());
            let spins = spins.spawn(|| {
                loop {
                    std::hint::spin_loop();
                }
            });
            spins.unwrap().join().unwrap();
        });
        unreachable!("the thread never ends");
    }
    let program = std::env::current_exe().unwrap();
    let mut command = std::process::Command::new(program);
    command.args(["--exact", NAME]).env(HANGS, "1");
    let output = command.output().unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{report}");
    assert!(report.contains("seed 7"), "{report}");
    assert!(report.contains("thread 2 (spinner)"), "{report}");
}

#[test]
fn long_computation_without_a_watchdog_ends() {
    let run = Sim::new(1).watchdog(None).run_main(|| {
        std::thread::sleep(MS * 300);
    });
    run.unwrap();
}

/// Fails if the clock jumps to the end of a sleep of centuries: it overflows there.
#[test]
fn sleep_of_centuries_beside_a_park_without_end_is_a_deadlock() {
    let run = Sim::new(1).run_main(|| {
        let sleeper = thread::spawn(|| thread::sleep(Duration::from_nanos(u64::MAX - 1_000_000)));
        sleeper.join().unwrap();
    });
    assert_eq!(kind(&run), "deadlock");
}

/// Counts the drops of its clones.
#[derive(Clone)]
struct Dropped(Arc<AtomicU32>);

impl Drop for Dropped {
    fn drop(&mut self) {
        // Ordering: Relaxed, as one thread of the system runs the test at a time.
        self.0.fetch_add(1, Relaxed);
    }
}

impl Dropped {
    fn count(&self) -> u32 {
        // Ordering: as above.
        self.0.load(Relaxed)
    }
}

#[test]
fn values_of_threads_that_never_end_are_leaked() {
    let dropped = Dropped(Arc::default());
    let on_stack = dropped.clone();
    let run = Sim::new(1).run_main(move || {
        let _on_stack = on_stack;
        thread::park();
    });
    assert_eq!(kind(&run), "deadlock");
    drop(run);
    assert_eq!(dropped.count(), 0);
}

sync_shim::thread_local! {
    static FIRST: std::cell::RefCell<Option<ReadsOther>> = std::cell::RefCell::new(None);
    static OTHER: std::cell::Cell<u32> = std::cell::Cell::new(0);
}

/// Its drop adds what another thread-local has, and looks for its own one.
struct ReadsOther(Arc<AtomicU32>);

impl Drop for ReadsOther {
    fn drop(&mut self) {
        let is_gone = FIRST.try_with(|_| ()).is_err();
        // Ordering: Relaxed, as in `Dropped`.
        self.0.fetch_add(OTHER.get() + u32::from(is_gone), Relaxed);
    }
}

#[test]
fn thread_locals_are_dropped_at_the_end_of_their_thread() {
    let sum = result_of(1, || {
        let sum = Arc::new(AtomicU32::new(0));
        let threads = [10, 200].map(|number| {
            let reads = ReadsOther(sum.clone());
            thread::spawn(move || {
                OTHER.set(number);
                FIRST.with(|first| *first.borrow_mut() = Some(reads));
                thread::yield_now();
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        // Ordering: Relaxed, as in `Dropped`.
        sum.load(Relaxed)
    });
    assert_eq!(sum, 10 + 1 + 200 + 1);
}
