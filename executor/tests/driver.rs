//! Tests of a runtime whose workers wait in the user's drivers: which worker is woken, and which
//! one runs the tasks.
use coop_budget::consume as consume_budget;
use selvedge_executor::{
    Builder, Handle, Tick,
    park::{Park, ThreadPark},
    yield_now,
};
use std::{
    future::{Future, poll_fn},
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Poll, Wake, Waker},
    thread,
    time::{Duration, Instant},
};

/// After this time a test fails whose tasks wait for each other.
const LIMIT: Duration = Duration::from_secs(600);

/// Timers of all workers, and the number of wakers that the drivers have called. A worker that
/// parks, or polls its driver, collects the timers that are due.
#[derive(Clone, Default)]
struct Timers(Arc<Mutex<Vec<(Instant, Waker)>>>, Arc<AtomicUsize>);

impl Timers {
    fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + use<> {
        let (timers, at) = (self.clone(), Instant::now() + time);
        poll_fn(move |cx| {
            if Instant::now() >= at {
                return Poll::Ready(());
            }
            timers.0.lock().unwrap().push((at, cx.waker().clone()));
            Poll::Pending
        })
    }

    fn driver(&self) -> impl Fn(usize) -> TimerPark + Send + Sync + use<> {
        let timers = self.clone();
        move |_worker| TimerPark {
            thread: ThreadPark::new(),
            timers: timers.clone(),
            due: Vec::new(),
        }
    }
}

struct TimerPark {
    thread: ThreadPark,
    timers: Timers,
    due: Vec<Waker>,
}

impl Park for TimerPark {
    fn park(&mut self) {
        self.park_timeout(Duration::MAX);
    }

    fn park_timeout(&mut self, limit: Duration) {
        // The limit is short, as a timer that is set during this sleep does not end the sleep.
        self.thread
            .park_timeout(limit.min(Duration::from_micros(500)));
        self.poll(usize::MAX);
    }

    fn poll(&mut self, max: usize) {
        let now = Instant::now();
        let mut timers = self.timers.0.lock().unwrap();
        let (due, later): (Vec<_>, Vec<_>) = timers.drain(..).partition(|(at, _)| *at <= now);
        let mut due = due.into_iter();
        self.due
            .extend(due.by_ref().take(max).map(|(_, waker)| waker));
        timers.extend(due.chain(later));
    }

    fn has_events(&self) -> bool {
        !self.due.is_empty()
    }

    fn deliver(&mut self) {
        self.timers.1.fetch_add(self.due.len(), SeqCst);
        self.due.drain(..).for_each(Waker::wake);
    }

    fn waker(&self) -> Waker {
        self.thread.waker()
    }
}

#[test]
fn driver_wakes_go_to_the_delivering_workers_queue() {
    let timers = Timers::default();
    let runtime = Builder::new().workers(4).driver(timers.driver());
    let runtime = runtime.build().unwrap();
    let tasks: Vec<_> = (0..100)
        .map(|n| {
            let timers = timers.clone();
            runtime.spawn(async move {
                for _ in 0..3 {
                    timers.sleep(Duration::from_micros(n * 50)).await;
                }
            })
        })
        .collect();
    runtime.block_on(async {
        for task in tasks {
            task.await.unwrap();
        }
    });
    let metrics = runtime.snapshot();
    assert_eq!(metrics.remote_wakes, 0, "{metrics}");
    let woken = timers.1.load(SeqCst) as u64;
    // A wake of a task that is being polled does not count as a schedule: the polling worker
    // requeues the task.
    assert!(metrics.local_wakes <= woken, "{metrics}");
    assert_eq!(metrics.polls, 100 + woken, "{metrics}");
    assert_eq!(metrics.injected_tasks, 100, "the spawns alone: {metrics}");
}

/// Driver that collects the wakers that its `Sender`s send.
struct Inbox {
    thread: ThreadPark,
    arrived: Arc<Mutex<Vec<Waker>>>,
    collected: Vec<Waker>,
    panics: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Sender {
    arrived: Arc<Mutex<Vec<Waker>>>,
    unpark: Arc<Mutex<Option<Waker>>>,
    panics: Arc<AtomicBool>,
    made: Arc<AtomicUsize>,
}

impl Sender {
    fn new() -> Self {
        Self {
            arrived: Arc::default(),
            unpark: Arc::default(),
            panics: Arc::default(),
            made: Arc::default(),
        }
    }

    fn inbox(&self) -> Inbox {
        let thread = ThreadPark::new();
        *self.unpark.lock().unwrap() = Some(thread.waker());
        self.made.fetch_add(1, SeqCst);
        Inbox {
            thread,
            arrived: self.arrived.clone(),
            collected: Vec::new(),
            panics: self.panics.clone(),
        }
    }

    fn send(&self, waker: Waker) {
        self.arrived.lock().unwrap().push(waker);
        self.unpark.lock().unwrap().as_ref().unwrap().wake_by_ref();
    }

    /// Sends the waker of its task to the driver, and completes when the driver has woken the task.
    fn pass(&self) -> impl Future<Output = ()> + Send + use<> {
        let (sender, mut sent) = (self.clone(), false);
        poll_fn(move |cx| {
            if sent {
                return Poll::Ready(());
            }
            sent = true;
            sender.send(cx.waker().clone());
            Poll::Pending
        })
    }
}

impl Park for Inbox {
    fn park(&mut self) {
        self.thread.park();
        self.poll(usize::MAX);
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.thread.park_timeout(limit);
        self.poll(usize::MAX);
    }

    fn poll(&mut self, max: usize) {
        let mut arrived = self.arrived.lock().unwrap();
        let count = max.min(arrived.len());
        self.collected.extend(arrived.drain(..count));
    }

    fn has_events(&self) -> bool {
        !self.collected.is_empty()
    }

    fn deliver(&mut self) {
        self.collected.drain(..).for_each(Waker::wake);
        if self.panics.swap(false, SeqCst) {
            panic!("a driver that panics, as the test asked");
        }
    }

    fn waker(&self) -> Waker {
        self.thread.waker()
    }
}

#[test]
fn busy_worker_polls_its_driver() {
    let sender = Sender::new();
    let inbox = sender.clone();
    let runtime = Builder::new().workers(1).driver(move |_| inbox.inbox());
    let runtime = runtime.build().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let (set, passed) = (done.clone(), sender.pass());
    let busy = runtime.spawn(async move {
        // The worker runs from here to the end of this task without a park.
        selvedge_executor::spawn_detached(async move {
            passed.await;
            set.store(true, SeqCst);
        });
        while !done.load(SeqCst) {
            yield_now().await;
        }
    });
    runtime.block_on(busy).unwrap();
    assert_eq!(runtime.snapshot().remote_wakes, 0);
}

/// A waker that reports its group, and spawns a task that reports its own.
#[cfg(feature = "groups")]
struct ReportsGroups(mpsc::Sender<String>);

#[cfg(feature = "groups")]
impl std::task::Wake for ReportsGroups {
    fn wake(self: Arc<Self>) {
        let report = move || {
            let name = selvedge_executor::SchedulingGroup::current().name();
            self.0.send(name).unwrap();
        };
        report();
        selvedge_executor::spawn_detached(async move { report() });
    }
}

/// Fails if a waker that the driver calls, between two polls of a group's task, is in that group.
#[cfg(feature = "groups")]
#[test]
fn waker_between_polls_of_a_group_is_in_main() {
    let sender = Sender::new();
    let inbox = sender.clone();
    let runtime = Builder::new().workers(1).driver(move |_| inbox.inbox());
    let runtime = runtime.build().unwrap();
    let group = runtime.group("a").build().unwrap();
    let (reports, groups) = mpsc::channel();
    let busy = selvedge_executor::spawn_in(&group, async move {
        sender.send(Waker::from(Arc::new(ReportsGroups(reports))));
        // The worker runs from here to the end of this task without a park.
        let mut names = Vec::new();
        while names.len() < 2 {
            names.extend(groups.try_iter());
            yield_now().await;
        }
        names
    });
    assert_eq!(runtime.block_on(busy.unwrap()).unwrap(), ["main"; 2]);
}

#[test]
fn lent_core_takes_its_driver_along() {
    let sender = Sender::new();
    let inbox = sender.clone();
    let runtime = Builder::new().workers(1).driver(move |_| inbox.inbox());
    let runtime = runtime.build().unwrap();
    let passed = sender.pass();
    let task = runtime.spawn(async move {
        let (done, is_done) = mpsc::channel();
        selvedge_executor::spawn_detached(async move {
            passed.await;
            done.send(thread::current().id()).unwrap();
        });
        let there = selvedge_executor::block_in_place(|| is_done.recv().unwrap());
        (thread::current().id(), there)
    });
    let (here, there) = runtime.block_on(task).unwrap();
    assert_ne!(here, there, "another thread was the worker");
    assert_eq!(sender.made.load(SeqCst), 1);
    assert_eq!(runtime.snapshot().remote_wakes, 0);
}

#[test]
fn panic_of_a_driver_goes_to_the_hook_and_no_further() {
    let (sender, panics) = (Sender::new(), Arc::new(AtomicUsize::new(0)));
    let (inbox, count) = (sender.clone(), panics.clone());
    let runtime = Builder::new()
        .workers(1)
        .driver(move |_| inbox.inbox())
        .on_panic(move |_| {
            count.fetch_add(1, SeqCst);
        })
        .build()
        .unwrap();
    sender.panics.store(true, SeqCst);
    runtime.block_on(runtime.spawn(sender.pass())).unwrap();
    runtime.block_on(runtime.spawn(sender.pass())).unwrap();
    assert_eq!(panics.load(SeqCst), 1);
}

/// A parker's waker that blocks in place. It is called in the middle of a worker's own operations,
/// and that worker must keep its core.
struct BlockingWake(Waker, Arc<AtomicUsize>);

impl Wake for BlockingWake {
    fn wake(self: Arc<Self>) {
        let thread = thread::current();
        let by_worker = thread
            .name()
            .is_some_and(|name| name.starts_with("selvedge-"));
        if by_worker && self.1.fetch_add(1, SeqCst) < 20 {
            // If the worker lent its core here, another thread would accept it meanwhile.
            selvedge_executor::block_in_place(|| thread::sleep(Duration::from_millis(2)));
        }
        self.0.wake_by_ref();
    }
}

struct BlockingPark(ThreadPark, Arc<AtomicUsize>);

impl Park for BlockingPark {
    fn park(&mut self) {
        self.0.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.0.park_timeout(limit);
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::new(BlockingWake(self.0.waker(), self.1.clone())))
    }
}

#[test]
fn waker_of_a_parker_that_blocks_in_place_leaves_the_core() {
    let unparks = Arc::new(AtomicUsize::new(0));
    let count = unparks.clone();
    let driver = move |_| BlockingPark(ThreadPark::new(), count.clone());
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let runtime = Builder::new().workers(2).driver(driver);
    let runtime = runtime.on_thread_start(move || {
        count.fetch_add(1, SeqCst);
    });
    let runtime = runtime.build().unwrap();
    let called = unparks.clone();
    let task = runtime.spawn(async move {
        while called.load(SeqCst) == 0 {
            // The other worker goes to sleep. The second spawn displaces the first task from the
            // LIFO slot, and so wakes the other worker.
            thread::sleep(Duration::from_millis(1));
            let tasks = [(); 2].map(|()| selvedge_executor::spawn(yield_now()));
            for task in tasks {
                task.await.unwrap();
            }
        }
    });
    runtime.block_on(task).unwrap();
    drop(runtime);
    assert_eq!(started.load(SeqCst), 2, "no core was lent");
}

/// A careless parker. If its flag is set, it calls wakers in `park`, against its contract. If not,
/// `deliver` wakes only one task, and leaves the other events.
struct Careless(ThreadPark, Arc<Mutex<Vec<Waker>>>, bool);

impl Park for Careless {
    fn park(&mut self) {
        if self.2 {
            self.1.lock().unwrap().drain(..).for_each(Waker::wake);
        }
        self.0.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.0.park_timeout(limit);
    }

    fn has_events(&self) -> bool {
        !self.2 && !self.1.lock().unwrap().is_empty()
    }

    fn deliver(&mut self) {
        let first = self.1.lock().unwrap().pop();
        first.into_iter().for_each(Waker::wake);
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }
}

#[test]
fn wakes_in_a_park_and_events_left_by_a_delivery_are_not_lost() {
    for wakes_in_park in [true, false] {
        let wakers = Arc::new(Mutex::new(Vec::new()));
        let given = wakers.clone();
        let driver = move |_| Careless(ThreadPark::new(), given.clone(), wakes_in_park);
        let runtime = Builder::new().workers(1).driver(driver).build().unwrap();
        let count = if wakes_in_park { 1 } else { 5 };
        let tasks: Vec<_> = (0..count)
            .map(|_| {
                let (wakers, mut polls) = (wakers.clone(), 0);
                runtime.spawn(poll_fn(move |cx| {
                    polls += 1;
                    if polls == 3 {
                        return Poll::Ready(());
                    }
                    wakers.lock().unwrap().push(cx.waker().clone());
                    Poll::Pending
                }))
            })
            .collect();
        runtime.block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
    }
}

#[test]
fn panic_of_a_park_leaves_a_driven_worker_outside_the_search() {
    struct Panics(ThreadPark, bool);
    impl Park for Panics {
        fn park(&mut self) {
            assert!(!self.1, "a park that panics, as the test asks");
            self.0.park();
        }
        fn park_timeout(&mut self, limit: Duration) {
            assert!(!self.1, "a park that panics, as the test asks");
            self.0.park_timeout(limit);
        }
        fn waker(&self) -> Waker {
            self.0.waker()
        }
    }
    let parks = [true, false].map(|panics| Panics(ThreadPark::new(), panics));
    let (runtime, mut workers) = Builder::new().build_driven(parks);
    let other = workers.pop().unwrap();
    let other = thread::spawn(move || other.run());
    while runtime.snapshot().parks == 0 {
        thread::yield_now();
    }
    let mut worker = workers.pop().unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| worker.park()));
    assert!(caught.is_err());
    // If this worker still counted as searching, the spawn would not wake the other worker.
    assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    drop(runtime);
    drop(worker);
    other.join().unwrap();
}

#[test]
fn driven_worker_runs_delivered_tasks_in_their_order() {
    let sender = Sender::new();
    let (runtime, mut workers) = Builder::new().build_driven([sender.inbox()]);
    let mut worker = workers.remove(0);
    let order = Arc::new(Mutex::new(Vec::new()));
    for n in 0..5 {
        let (order, pass) = (order.clone(), sender.pass());
        runtime.spawn_detached(async move {
            pass.await;
            order.lock().unwrap().push(n);
        });
    }
    while worker.tick() == Tick::Ran {}
    assert!(order.lock().unwrap().is_empty());
    worker.park();
    while worker.tick() == Tick::Ran {}
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    drop(runtime);
    worker.run();
}

#[test]
fn driven_worker_that_is_busy_polls_its_park() {
    let sender = Sender::new();
    let (runtime, mut workers) = Builder::new().build_driven([sender.inbox()]);
    let mut worker = workers.remove(0);
    let passed = runtime.spawn(sender.pass());
    runtime.spawn_detached(async {
        loop {
            yield_now().await;
        }
    });
    for _ in 0..200 {
        assert_eq!(worker.tick(), Tick::Ran);
    }
    assert!(passed.is_finished(), "61 ticks are an interval");
    drop(runtime);
    worker.run();
}

#[test]
fn request_ends_a_slice_and_the_next_one_is_open() {
    // The first poll is long. After a long poll a worker without an interval looks at the injector.
    let runtime = Builder::new()
        .workers(1)
        .global_interval(1_000)
        .budget(selvedge_executor::Budget::UNLIMITED);
    let runtime = runtime.build().unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let (first, second) = (order.clone(), order.clone());
    let task = runtime.spawn(async move {
        let other = selvedge_executor::spawn(async move { second.lock().unwrap().push("other") });
        selvedge_executor::spawn_detached(async {}); // It displaces `other` from the LIFO slot.
        for _ in 0..1_000 {
            consume_budget().await;
        }
        first.lock().unwrap().push("no request");
        Handle::current().preempt(0);
        consume_budget().await;
        first.lock().unwrap().push("after the request");
        for _ in 0..1_000 {
            consume_budget().await;
        }
        other.await.unwrap();
    });
    runtime.block_on(task).unwrap();
    let order = order.lock().unwrap();
    assert_eq!(*order, ["no request", "other", "after the request"]);
    let metrics = runtime.snapshot();
    assert_eq!((metrics.preemptions, metrics.ended_slices), (1, 1));
    assert_eq!(metrics.forced_yields, 0);
}

#[test]
#[should_panic(expected = "has no worker 1")]
fn request_to_a_worker_that_is_not_there_panics() {
    let runtime = Builder::new().workers(1).build().unwrap();
    runtime.handle().preempt(1);
}

#[test]
fn limit_of_run_for_leaves_the_rest_for_later() {
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    let mut worker = workers.remove(0);
    runtime.spawn_detached(async {
        loop {
            yield_now().await;
        }
    });
    // With a limit of zero the worker runs one tick.
    assert_eq!(worker.run_for(Duration::ZERO), Tick::Ran);
    drop(runtime);
    assert_eq!(worker.run_for(Duration::MAX), Tick::Ended);
}

/// Keeps a waker, and wakes it in its own wake. Then it blocks in place until `ran` gets a message.
struct WakesAndBlocks(Waker, Mutex<mpsc::Receiver<()>>);

impl Wake for WakesAndBlocks {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
        let ran = self.1.lock().unwrap();
        selvedge_executor::block_in_place(|| ran.recv_timeout(LIMIT)).unwrap();
    }
}

/// A delivery wakes a task and then blocks in place until that task has run. So another worker has
/// to run the task.
///
/// Fails, at the limit, if the worker keeps the task where no other worker finds it.
#[test]
fn task_of_a_delivery_that_blocks_in_place_runs_elsewhere() {
    let sender = Sender::new();
    let made = Arc::new(AtomicUsize::new(0));
    let (inbox, count) = (sender.clone(), made.clone());
    // Only the first worker has the sender's inbox.
    let driver = move |_| match count.fetch_add(1, SeqCst) {
        0 => inbox.inbox(),
        _ => Sender::new().inbox(),
    };
    let runtime = Builder::new().workers(2).driver(driver).build().unwrap();
    let (ran, runs) = mpsc::channel();
    let (own, mut runs, mut is_woken) = (sender.clone(), Some(runs), false);
    let task = runtime.spawn(poll_fn(move |cx| {
        if is_woken {
            ran.send(()).unwrap();
            return Poll::Ready(());
        }
        is_woken = true;
        let wakes = WakesAndBlocks(cx.waker().clone(), Mutex::new(runs.take().unwrap()));
        own.send(Arc::new(wakes).into());
        Poll::Pending
    }));
    runtime.block_on(task).unwrap();
}

/// A driver that has an event once its runtime has stolen a task from a slot.
struct AfterSteal {
    thread: ThreadPark,
    runtime: Arc<OnceLock<Handle>>,
    event: Arc<Mutex<Option<Waker>>>,
}

impl Park for AfterSteal {
    fn park(&mut self) {
        self.thread.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.thread.park_timeout(limit);
    }

    fn has_events(&self) -> bool {
        let steals = self
            .runtime
            .get()
            .map_or(0, |runtime| runtime.snapshot().slot_steals);
        steals > 0 && self.event.lock().unwrap().is_some()
    }

    fn deliver(&mut self) {
        let event = self.event.lock().unwrap().take();
        event.into_iter().for_each(Waker::wake);
    }

    fn waker(&self) -> Waker {
        self.thread.waker()
    }
}

/// A watcher takes a task from the slot of a worker that is blocked, and its delivery wakes another
/// task. The task of the slot waits for that other task.
///
/// Fails, at the limit, if the watcher runs the task of the slot while it keeps the other one where
/// no worker finds it.
#[test]
fn watcher_leaves_no_delivered_task_aside_for_a_stolen_one() {
    let (at, event) = (Arc::new(OnceLock::new()), Arc::new(Mutex::new(None)));
    let (given, waker) = (at.clone(), event.clone());
    let driver = move |_| AfterSteal {
        thread: ThreadPark::new(),
        runtime: given.clone(),
        event: waker.clone(),
    };
    let builder = Builder::new().workers(2).monitor(false);
    let runtime = builder.driver(driver).build().unwrap();
    at.set(runtime.handle().clone()).unwrap();
    let (delivered, delivery) = mpsc::channel();
    let (own, mut is_woken) = (event.clone(), false);
    runtime.spawn_detached(poll_fn(move |cx| {
        if is_woken {
            delivered.send(()).unwrap();
            return Poll::Ready(());
        }
        is_woken = true;
        *own.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    }));
    while event.lock().unwrap().is_none() {
        thread::yield_now();
    }
    let blocked = runtime.spawn(async move {
        let (done, is_done) = mpsc::channel();
        selvedge_executor::spawn_detached(async move {
            delivery
                .recv_timeout(LIMIT)
                .expect("the task of the delivery runs first");
            done.send(()).unwrap();
        });
        is_done.recv_timeout(LIMIT)
    });
    assert_eq!(runtime.block_on(blocked).unwrap(), Ok(()));
}
