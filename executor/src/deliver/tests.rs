use super::*;
use crate::{Builder, Runtime, Tick, Worker, batches::KEPT, park::ThreadPark, watch::Waiting};
use std::{
    future::poll_fn,
    sync::{Arc, Mutex},
    task::{Poll, Waker},
    time::Duration,
};
use worker_idle::park::ThreadUnpark;

/// A parker with events, each of which wakes a task.
struct Events(Vec<Waker>);

impl Park for Events {
    type Unpark = ThreadUnpark;

    fn park(&mut self) {}

    fn park_timeout(&mut self, _: Duration) {}

    fn has_events(&self) -> bool {
        !self.0.is_empty()
    }

    fn deliver(&mut self) {
        self.0.drain(..).for_each(Waker::wake);
    }

    fn unparker(&self) -> ThreadUnpark {
        ThreadPark::new().unparker()
    }
}

/// Two workers, of which the second counts as asleep, and an event for each of some tasks, which
/// wait.
struct Scene {
    _runtime: Runtime,
    workers: Vec<Worker<ThreadPark>>,
    events: Events,
}

impl Scene {
    fn new(tasks: usize) -> Self {
        let parks = [ThreadPark::new(), ThreadPark::new()];
        let (runtime, mut workers) = Builder::new().build_driven(parks);
        let wakers = Arc::new(Mutex::new(Vec::new()));
        for _ in 0..tasks {
            let wakers = wakers.clone();
            runtime.spawn_detached(poll_fn(move |cx| {
                wakers.lock().unwrap().push(cx.waker().clone());
                Poll::<()>::Pending
            }));
        }
        while workers[0].tick() == Tick::Ran {}
        let events = Events(std::mem::take(&mut *wakers.lock().unwrap()));
        assert_eq!(events.0.len(), tasks);
        workers[0].core.shared.idle.sleep(1, false);
        Self {
            _runtime: runtime,
            workers,
            events,
        }
    }

    fn core(&self) -> &Core {
        &self.workers[0].core
    }

    /// Delivers the events. Returns whether that notified the sleeper.
    fn notifies(&mut self) -> bool {
        let events = &mut self.events;
        self.workers[0].core.deliver(events);
        self.core().shared.idle.counts() == (1, 0)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let idle = &self.core().shared.idle;
        let _ = idle.wake_self(1);
        idle.stop_searching();
    }
}

const SHORT: Option<u64> = Some(1_000);

// Fails if the slot, through which the task goes, requests a watcher.
#[test]
fn single_event_notifies_nobody() {
    let mut scene = Scene::new(1);
    assert!(!scene.notifies());
    assert!(!scene.core().shared.idle.is_watcher_wanted());
    assert_eq!(scene.workers[0].tick(), Tick::Ran);
    assert_eq!(scene.workers[0].tick(), Tick::Idle);
}

// Fails if a task is left behind another one, whose poll may be long, while a worker sleeps.
#[test]
fn single_event_behind_another_task_notifies() {
    let mut scene = Scene::new(1);
    let queued = Arc::new(Mutex::new(None));
    let waker = queued.clone();
    scene._runtime.spawn_detached(poll_fn(move |cx| {
        *waker.lock().unwrap() = Some(cx.waker().clone());
        Poll::<()>::Pending
    }));
    while scene.workers[0].tick() == Tick::Ran {}
    let first: Waker = queued.lock().unwrap().take().unwrap();
    scene.core().as_worker(|| first.wake());
    scene.core().shared.idle.stop_searching();
    assert!(scene.notifies());
}

#[test]
fn batch_of_unknown_length_notifies() {
    assert!(Scene::new(3).notifies());
}

#[test]
fn batch_of_long_polls_notifies_beside_a_watcher() {
    let mut scene = Scene::new(3);
    assert!(scene.core().shared.idle.try_watch(1));
    scene
        .core()
        .batches
        .mean
        .set(Some(KEPT.as_nanos() as u64 / 2));
    assert!(scene.notifies());
}

#[test]
fn short_batch_beside_a_watcher_is_kept() {
    let mut scene = Scene::new(3);
    assert!(scene.core().shared.idle.try_watch(1));
    scene.core().batches.mean.set(SHORT);
    assert!(!scene.notifies());
    // Thieves can take them: the task that came last runs next, and is in no ring.
    assert_eq!(scene.core().remote.stealer.len(), 3);
}

#[test]
fn short_batch_without_a_watcher_requests_one() {
    let mut scene = Scene::new(3);
    scene.core().batches.mean.set(SHORT);
    assert!(scene.notifies());
    assert!(scene.core().shared.idle.is_watcher_wanted());
}

// Fails if a panic of a waker leaves tasks that nobody was notified of, or ends all notification.
#[test]
fn panic_of_a_waker_notifies_of_the_tasks_before() {
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("the test's panic");
        }
    }
    let mut scene = Scene::new(3);
    scene.events.0.push(Arc::new(Panics).into());
    let deliver = std::panic::AssertUnwindSafe(|| scene.notifies());
    assert!(std::panic::catch_unwind(deliver).is_err());
    assert_eq!(scene.core().shared.idle.counts(), (1, 0));
    assert!(!scene.core().batches.delivers());
}

// Fails if a watcher takes tasks from a worker that polls on, or leaves them in a long poll.
#[test]
fn kept_batch_is_aged_after_two_looks_within_one_poll() {
    let mut scene = Scene::new(3);
    assert!(scene.core().shared.idle.try_watch(1));
    scene.core().batches.mean.set(SHORT);
    assert!(!scene.notifies());
    let look = |scene: &Scene| scene.workers[1].core.look_at_queues().unwrap_err();
    assert!(look(&scene) == Waiting::Fresh);
    assert_eq!(scene.workers[0].tick(), Tick::Ran);
    assert!(look(&scene) == Waiting::Fresh);
    assert!(look(&scene) == Waiting::Aged);
    while scene.workers[0].tick() == Tick::Ran {}
    assert!(look(&scene) == Waiting::Nothing);
}
