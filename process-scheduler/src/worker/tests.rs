//! Tests of a worker with a process, or with a parker, of their own.
use super::*;
use crate::{
    Scheduler,
    runnable::Run,
    shared::{Config, Shared},
};
use std::{
    panic,
    sync::{Mutex, mpsc},
    task::Waker,
    thread,
};
use worker_idle::Wait;

struct Panics;

impl Run for Panics {
    fn run(self: Arc<Self>, _: &mut RunSlice<'_>) -> Option<Runnable> {
        panic!("in the run");
    }
}

/// No real process panics out of its run. This test of the worker's last guard has one that does.
#[test]
fn run_that_panics_keeps_the_worker() {
    panic::set_hook(Box::new(|_| {}));
    let scheduler = Scheduler::builder().workers(1).build();
    submit(&scheduler.shared, Runnable(Arc::new(Panics)));
    let (sender, steps) = mpsc::channel();
    let probe = scheduler.spawn_fn(move |n: u32, _| sender.send(n).unwrap());
    probe.unwrap().try_send(7).unwrap();
    let limit = std::time::Duration::from_secs(60);
    assert_eq!(steps.recv_timeout(limit), Ok(7));
}

/// A parker whose parks end at once.
struct EndsAtOnce;

impl Park for EndsAtOnce {
    fn park(&mut self) {}

    fn park_timeout(&mut self, _: Duration) {}

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

/// Makes two workers. The first one sleeps: this function returns its context. The second one has a
/// process in its deque. This function returns the deque too, because the drop of the deque would
/// drop the process.
fn sleeper_beside_an_owner() -> (WorkerContext, Deque<Runnable>) {
    let deques = [Deque::new(), Deque::new()];
    let stealers = deques.iter().map(Deque::stealer).collect();
    let wakers = vec![Waker::noop().clone(); 2];
    let shared = Arc::new(Shared::new(Config::default(), stealers, wakers));
    let [own, mut other] = deques;
    other.push(Runnable(Arc::new(Panics)));
    shared.idle.sleep(0, false);
    (WorkerContext::new(shared, 0, own), other)
}

/// A worker has a process in its deque, and makes no step. Another worker watches that deque, and
/// its parks end early, again and again.
///
/// Fails if each end of a park counts as the end of the watch's interval.
#[test]
fn owner_is_not_stuck_before_the_interval_of_the_watch_ends() {
    let (context, _owner) = sleeper_beside_an_owner();
    let mut worker = Worker::new(&context, Box::new(EndsAtOnce));
    let begun = Instant::now();
    worker.park();
    assert!(worker.stuck.is_some(), "the owner is stuck");
    // The first interval of a watch is a millisecond.
    assert!(begun.elapsed() >= Duration::from_millis(1));
}

/// A parker whose parks end at once. In each, the owner of the other deque makes a step, until 3 ms
/// have passed, and in 300 parks more.
struct OwnerSteps {
    shared: Arc<Shared>,
    begun: Option<Instant>,
    last_step: Arc<Mutex<Instant>>,
    more: u32,
}

impl Park for OwnerSteps {
    fn park(&mut self) {}

    fn park_timeout(&mut self, _: Duration) {
        let begun = *self.begun.get_or_insert_with(Instant::now);
        if begun.elapsed() >= Duration::from_millis(3) {
            // By a count, not by the time: a busy machine may let any time pass between two parks.
            self.more = self.more.saturating_sub(1);
        }
        if self.more > 0 {
            // Ordering: Relaxed, as one thread runs the test.
            self.shared.counters.workers[1].steps.fetch_add(1, Relaxed);
            *self.last_step.lock().unwrap() = Instant::now();
        }
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

/// Fails if the watcher measures its interval from the beginning of the park, and not from its last
/// look.
#[test]
fn owner_is_stuck_only_after_an_interval_behind_its_last_step() {
    let (context, _owner) = sleeper_beside_an_owner();
    let last_step = Arc::new(Mutex::new(Instant::now()));
    let park = OwnerSteps {
        shared: context.shared.clone(),
        begun: None,
        last_step: last_step.clone(),
        more: 300,
    };
    let mut worker = Worker::new(&context, Box::new(park));
    worker.park();
    assert!(worker.stuck.is_some(), "the owner is stuck");
    assert!(last_step.lock().unwrap().elapsed() >= Duration::from_millis(1));
}

/// A run that ends at once.
struct Ends;

impl Run for Ends {
    fn run(self: Arc<Self>, _: &mut RunSlice<'_>) -> Option<Runnable> {
        None
    }
}

/// A parker whose parks soon end by an event. The delivery of an event makes processes ready.
struct Rings {
    shared: Arc<Shared>,
    rings: bool,
    wakes: u32,
}

impl Park for Rings {
    fn park(&mut self) {
        self.park_timeout(Duration::MAX);
    }

    fn park_timeout(&mut self, _: Duration) {
        thread::sleep(Duration::from_micros(100));
        self.rings = true;
    }

    fn has_events(&self) -> bool {
        self.rings
    }

    fn deliver(&mut self) {
        self.rings = false;
        for _ in 0..self.wakes {
            submit(&self.shared, Runnable(Arc::new(Ends)));
        }
    }

    fn waker(&self) -> Waker {
        Waker::noop().clone()
    }
}

/// Makes the context of worker 0 of two, which this thread is from now on, and a parker for the
/// worker. Each event wakes this number of processes. Worker 1 sleeps.
fn worker_with_events(wakes: u32) -> (Box<WorkerContext>, Rings, ClearContext) {
    let deques = [Deque::new(), Deque::new()];
    let stealers = deques.iter().map(Deque::stealer).collect();
    let wakers = vec![Waker::noop().clone(); 2];
    let shared = Arc::new(Shared::new(Config::default(), stealers, wakers));
    shared.idle.sleep(1, false);
    let [own, _] = deques;
    let rings = Rings {
        shared: shared.clone(),
        rings: false,
        wakes,
    };
    let context = Box::new(WorkerContext::new(shared, 0, own));
    CONTEXT.set(&raw const *context);
    (context, rings, ClearContext)
}

/// Fails if a watch begins anew after each event, or if a process that an event wakes requests a
/// watcher: each sleep of the watcher then has a limit, as long as events come.
#[test]
fn watch_ends_although_an_event_ends_each_sleep_of_the_watcher() {
    for wakes in [0, 1] {
        let (context, rings, _clear) = worker_with_events(wakes);
        let idle = &context.shared.idle;
        let mut worker = Worker::new(&context, Box::new(rings));
        idle.want_watcher();
        let begun = Instant::now();
        while idle.is_watcher_wanted() || context.watch.get() != WatchState::default() {
            worker.wait();
            assert!(begun.elapsed() < Duration::from_secs(600));
            while let Some(runnable) = worker.find() {
                worker.serve(runnable);
            }
        }
        assert!(!idle.is_watched() && !idle.was_notified(1));
    }
}

/// Fails if a second process that the events of a busy worker wake notifies nobody.
#[test]
fn events_that_wake_two_processes_notify_a_sleeper() {
    for wakes in [1, 2] {
        let (context, mut rings, _clear) = worker_with_events(wakes);
        rings.rings = true;
        let mut worker = Worker::new(&context, Box::new(rings));
        worker.deliver();
        assert_eq!(context.shared.idle.was_notified(1), wakes == 2);
    }
}

/// Fails if a worker runs another process while nobody watches one that an event has woken.
#[test]
fn process_of_an_event_is_watched_behind_one_of_the_injector() {
    let (context, rings, _clear) = worker_with_events(1);
    let shared = &context.shared;
    let mut worker = Worker::new(&context, Box::new(rings));
    worker.wait();
    assert!(!shared.idle.is_watcher_wanted() && !shared.idle.was_notified(1));
    shared.injector.requeue(Runnable(Arc::new(Ends)));
    worker.picks_from_injector = true;
    assert!(worker.find().is_some() && shared.injector.is_empty());
    assert!(shared.idle.is_watcher_wanted());
}

/// Fails if a worker looks for processes before a park although its rule is to save power.
#[test]
fn only_rules_other_than_power_look_before_a_park() {
    let looks = |wait| {
        let (context, rings, _clear) = worker_with_events(0);
        let mut worker = Worker::new(&context, Box::new(rings));
        worker.backoff = Backoff::eager().with(wait);
        let looks = |_: &u32| {
            context.shared.injector.requeue(Runnable(Arc::new(Ends)));
            worker.back_off().is_some()
        };
        (0..100).filter(looks).count()
    };
    assert_eq!(looks(Wait::Power), 0);
    // A wait that a busy machine makes late is followed by parks without waits.
    assert!(looks(Wait::Adaptive) > 0 && looks(Wait::Latency) > 0);
}

/// Fails if a wait takes the last process from an owner too early, or after a step of the owner, or
/// never.
#[test]
fn wait_takes_the_last_process_of_a_stuck_owner_at_look_15() {
    for makes_step in [true, false] {
        let (context, _owner) = sleeper_beside_an_owner();
        let mut worker = Worker::new(&context, Box::new(EndsAtOnce));
        context.shared.idle.wake_self(0);
        worker.searching = true;
        let mut at_wait = Vec::new();
        worker.record_steps(&mut at_wait);
        assert!((1..15).all(|look| worker.look_in_wait(look, &at_wait).is_none()));
        if makes_step {
            context.shared.counters.workers[1].count_step();
        }
        let taken = worker.look_in_wait(15, &at_wait);
        assert_eq!(taken.is_none(), makes_step);
    }
}
