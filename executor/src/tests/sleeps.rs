//! Tests of user code around a sleep: hooks, parkers, and loops that drive workers.
use super::LONG;
use crate::{
    Builder, Tick,
    worker::park::{Park, ThreadPark},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Wake, Waker},
    thread,
    time::{Duration, Instant},
};

/// Waits long enough for all workers to go to sleep.
fn rest() {
    thread::sleep(Duration::from_millis(150));
}

/// Once set, the trap holds up the first thread that passes it, until the trap is released.
#[derive(Clone, Default)]
struct Trap {
    set: Arc<AtomicBool>,
    caught: Arc<AtomicBool>,
    released: Arc<AtomicBool>,
}

impl Trap {
    fn pass(&self) {
        if self.set.swap(false, SeqCst) {
            self.caught.store(true, SeqCst);
            while !self.released.load(SeqCst) {
                thread::sleep(Duration::from_millis(1));
            }
        }
    }

    fn wait_until_caught(&self) {
        while !self.caught.load(SeqCst) {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Spawns a task from outside. The task must run while the trap holds a thread.
fn runs_meanwhile(runtime: &crate::Runtime, trap: &Trap) {
    let (done, ran) = mpsc::channel();
    runtime.spawn_detached(async move { done.send(()).unwrap() });
    ran.recv_timeout(LONG).expect("it runs on another worker");
    trap.released.store(true, SeqCst);
}

#[test]
fn worker_in_its_park_hook_blocks_no_wake_ups() {
    for lifo in [true, false] {
        let trap = Trap::default();
        let hook = trap.clone();
        let runtime = Builder::new()
            .workers(3)
            .lifo_slot(lifo)
            .on_thread_park(move || hook.pass())
            .build()
            .unwrap();
        rest();
        trap.set.store(true, SeqCst);
        runtime.block_on(runtime.spawn(async {})).unwrap();
        trap.wait_until_caught();
        runs_meanwhile(&runtime, &trap);
    }
}

#[test]
fn worker_in_its_unpark_hook_blocks_no_wake_ups() {
    let trap = Trap::default();
    let hook = trap.clone();
    let runtime = Builder::new()
        .workers(3)
        .on_thread_unpark(move || hook.pass())
        .build()
        .unwrap();
    rest();
    trap.set.store(true, SeqCst);
    // On a busy host a worker may still look for tasks, and find one without a sleep.
    while !trap.caught.load(SeqCst) {
        runtime.spawn_detached(async {});
        thread::sleep(Duration::from_millis(5));
    }
    runs_meanwhile(&runtime, &trap);
}

#[test]
fn each_park_hook_has_its_unpark_hook() {
    let (parks, unparks) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (p, u) = (parks.clone(), unparks.clone());
    let (runtime, mut workers) = Builder::new()
        .on_thread_park(move || {
            p.fetch_add(1, SeqCst);
        })
        .on_thread_unpark(move || {
            u.fetch_add(1, SeqCst);
        })
        .build_driven([ThreadPark::new()]);
    for _ in 0..10 {
        runtime.spawn_detached(async {});
        while workers[0].tick() == Tick::Ran {}
        assert_eq!(parks.load(SeqCst), unparks.load(SeqCst));
        workers[0].park_timeout(Duration::from_micros(1));
    }
    assert_eq!(parks.load(SeqCst), 10);
    drop(runtime);
    workers.remove(0).run();
    assert_eq!(parks.load(SeqCst), unparks.load(SeqCst));
}

#[test]
fn task_spawned_in_a_driven_workers_park_hook_runs() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = ran.clone();
    let (_runtime, mut workers) = Builder::new()
        .on_thread_park(move || {
            let count = count.clone();
            crate::spawn_detached(async move {
                count.fetch_add(1, SeqCst);
            });
        })
        .build_driven([ThreadPark::new()]);
    assert_eq!(workers[0].tick(), Tick::Idle);
    workers[0].park();
    assert_eq!(workers[0].tick(), Tick::Ran);
    assert_eq!(ran.load(SeqCst), 1);
}

#[test]
fn driven_worker_busy_elsewhere_blocks_no_wake_ups() {
    let (runtime, mut workers) = Builder::new()
        .lifo_slot(false)
        .build_driven([ThreadPark::new(), ThreadPark::new()]);
    let other = workers.pop().unwrap();
    let other = thread::spawn(move || other.run());
    rest();
    let mut busy_elsewhere = workers.pop().unwrap();
    assert_eq!(busy_elsewhere.tick(), Tick::Idle);
    for _ in 0..2 {
        let (done, ran) = mpsc::channel();
        runtime.spawn_detached(async move { done.send(()).unwrap() });
        ran.recv_timeout(LONG).expect("the other runs it");
        rest();
        // This park ends by itself.
        busy_elsewhere.park_timeout(Duration::from_micros(1));
    }
    drop(runtime);
    busy_elsewhere.run();
    other.join().unwrap();
}

#[test]
fn idle_driven_workers_have_no_wake_ups() {
    let (runtime, workers) = Builder::new().build_driven([ThreadPark::new(), ThreadPark::new()]);
    let threads: Vec<_> = workers
        .into_iter()
        .map(|worker| thread::spawn(|| worker.run()))
        .collect();
    let begun = Instant::now();
    let parent = runtime.spawn(async { crate::spawn(async {}).await });
    runtime.block_on(parent).unwrap().unwrap();
    // The spawn in the task began a watch over the slots. The loop waits until the watch has ended.
    loop {
        let before = runtime.snapshot();
        thread::sleep(Duration::from_millis(300));
        if runtime.snapshot().parks == before.parks {
            break;
        }
        assert!(begun.elapsed() < LONG, "{before}");
    }
    runtime.block_on(runtime.spawn(async {})).unwrap();
    drop(runtime);
    for thread in threads {
        thread.join().unwrap();
    }
}

/// Parker that panics in its first wait, if its flag is set.
struct Frail(ThreadPark, bool);

impl Frail {
    fn wait(&mut self, wait: impl FnOnce(&mut ThreadPark)) {
        if std::mem::take(&mut self.1) {
            panic!("in a park");
        }
        wait(&mut self.0);
    }
}

impl Park for Frail {
    fn park(&mut self) {
        self.wait(ThreadPark::park);
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.wait(|park| park.park_timeout(limit));
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }
}

#[test]
fn a_worker_whose_parker_panicked_goes_on_or_ends() {
    for goes_on in [true, false] {
        let parks = [
            Frail(ThreadPark::new(), true),
            Frail(ThreadPark::new(), false),
        ];
        let (runtime, mut workers) = Builder::new().lifo_slot(false).build_driven(parks);
        let other = workers.pop().unwrap();
        let mut frail = workers.pop().unwrap();
        assert_eq!(frail.tick(), Tick::Idle);
        assert!(catch_unwind(AssertUnwindSafe(|| frail.park())).is_err());
        if goes_on {
            let task = runtime.spawn(async {});
            assert_eq!(frail.tick(), Tick::Ran);
            assert!(task.is_finished());
            assert_eq!(frail.tick(), Tick::Idle);
            frail.park_timeout(Duration::from_micros(1));
            let other = thread::spawn(move || other.run());
            rest();
            runtime.block_on(runtime.spawn(async {})).unwrap();
            drop(runtime);
            frail.run();
            other.join().unwrap();
        } else {
            drop(frail);
            other.run();
        }
    }
}

/// Wakes a parker, and panics once when its flag is set.
struct Explosive(Waker, Arc<AtomicBool>);

impl Wake for Explosive {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
        if self.1.swap(false, SeqCst) {
            panic!("in an unpark");
        }
    }
}

struct Bomb(ThreadPark, Arc<AtomicBool>);

impl Park for Bomb {
    fn park(&mut self) {
        self.0.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.0.park_timeout(limit);
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::new(Explosive(self.0.waker(), self.1.clone())))
    }
}

#[test]
fn panic_of_a_parkers_waker_goes_to_the_handler() {
    let armed = Arc::new(AtomicBool::new(false));
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let (runtime, mut workers) = Builder::new()
        .on_panic(move |_| {
            count.fetch_add(1, SeqCst);
        })
        .build_driven([Bomb(ThreadPark::new(), armed.clone())]);
    let worker = workers.pop().unwrap();
    let worker = thread::spawn(move || worker.run());
    let begun = std::time::Instant::now();
    while runtime.snapshot().parks == 0 {
        assert!(begun.elapsed() < LONG, "{}", runtime.snapshot());
        thread::yield_now();
    }
    armed.store(true, SeqCst);
    // A worker that is still on its way to its sleep needs no unpark.
    while armed.load(SeqCst) {
        runtime.block_on(runtime.spawn(async {})).unwrap();
    }
    armed.store(true, SeqCst);
    drop(runtime);
    worker.join().unwrap();
    assert_eq!(heard.load(SeqCst), 2);
}

/// Parker that calls a closure once, while its worker sleeps.
#[derive(Default)]
struct Meanwhile(Option<Box<dyn FnOnce() + Send>>);

impl Park for Meanwhile {
    fn park(&mut self) {
        if let Some(happens) = self.0.take() {
            happens();
        }
    }

    fn park_timeout(&mut self, _: Duration) {
        self.park();
    }

    fn waker(&self) -> Waker {
        ThreadPark::new().waker()
    }
}

#[test]
fn wake_up_for_a_task_run_by_another_counts_as_false() {
    for stolen in [true, false] {
        let other = Arc::new(std::sync::Mutex::new(None));
        let handle = Arc::new(std::sync::Mutex::new(None::<crate::Handle>));
        let happens: Box<dyn FnOnce() + Send> = {
            let (other, handle) = (other.clone(), handle.clone());
            Box::new(move || {
                handle
                    .lock()
                    .unwrap()
                    .take()
                    .unwrap()
                    .spawn_detached(async {});
                if stolen {
                    let run = move || {
                        let worker: &mut Option<crate::Worker<Meanwhile>> =
                            &mut other.lock().unwrap();
                        assert_eq!(worker.as_mut().unwrap().tick(), Tick::Ran);
                    };
                    thread::spawn(run).join().unwrap();
                }
            })
        };
        let parks = [Meanwhile(Some(happens)), Meanwhile(None)];
        let (runtime, mut workers) = Builder::new().build_driven(parks);
        *other.lock().unwrap() = workers.pop();
        *handle.lock().unwrap() = Some(runtime.handle().clone());
        let mut woken = workers.remove(0);
        woken.park();
        let ran = if stolen { Tick::Idle } else { Tick::Ran };
        assert_eq!(woken.tick(), ran);
        woken.park(); // The worker's parker returns without a notification.
        let counts = &runtime.snapshot().per_worker[0];
        assert_eq!((counts.unparks, counts.parks), (1, 2));
        assert_eq!(counts.false_wakes, 1 + u64::from(stolen));
    }
}

/// A spawn starts the thread of a second worker, and that thread takes long to run. Fails if a
/// paused clock jumps before the worker has entered the driver: the worker could not take the task.
#[cfg(feature = "test-util")]
#[test]
fn paused_clock_waits_for_a_worker_whose_thread_starts() {
    let trap = Trap::default();
    let stalled = trap.clone();
    let runtime = Builder::new()
        .workers(2)
        .start_paused(true)
        .before_threads(move || {
            if thread::current().name() == Some("selvedge-1") {
                stalled.pass();
            }
        })
        .build()
        .unwrap();
    trap.set.store(true, SeqCst);
    let (starts, started) = mpsc::channel();
    let (sender, goes) = mpsc::channel();
    runtime.spawn_detached(async move {
        starts.send(()).unwrap();
        goes.recv().unwrap();
    });
    started.recv().unwrap();
    let second = runtime.spawn(async {});
    trap.wait_until_caught();
    sender.send(()).unwrap();
    runtime.block_on(second).unwrap();
    let releases = {
        let trap = trap.clone();
        thread::spawn(move || {
            rest();
            trap.released.store(true, SeqCst);
        })
    };
    runtime.block_on(net_driver::time::sleep(LONG));
    assert!(trap.released.load(SeqCst), "the clock has jumped too early");
    releases.join().unwrap();
}
