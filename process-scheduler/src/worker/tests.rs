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
};

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
    assert!(worker.takes_last, "the owner is stuck");
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
    assert!(worker.takes_last, "the owner is stuck");
    assert!(last_step.lock().unwrap().elapsed() >= Duration::from_millis(1));
}
