//! Tests of the notifications for the tasks that a worker queues.
//!
//! In most tests the core of one worker does one step, while another worker counts as sleeping.
//! The test then checks whether the step notified the other worker.
use super::Worker;
use crate::{
    Builder, Runtime, Tick, spawn_detached,
    worker::{
        core::Core,
        park::{Park, ThreadPark},
        scheduler::{Scheduler, Task},
    },
    yield_now,
};
use std::{
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Poll, Waker},
    thread,
    time::{Duration, Instant},
};
use task_header::{Schedule, WakeKind};
use worker_idle::WatchState;
use worker_queue::RunQueue;

/// A watcher looks into the slot of a worker that is in a poll.
///
/// Fails if the watcher takes a task at its first look at that task. Fails also if a look compares
/// only the tasks, and not the worker's counts of polls.
#[test]
fn task_in_a_slot_is_taken_at_the_second_look() {
    let Pair {
        runtime,
        mut first,
        other,
    } = Pair::new();
    let (begun, begins) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    runtime.spawn_detached(async move {
        for _ in 0..3 {
            spawn_detached(async {});
            begun.send(()).unwrap();
            let _ = goes_on.recv();
            yield_now().await;
        }
    });
    let busy = thread::spawn(move || while first.tick() != Tick::Ended {});
    let look = || other.core.look_at_slots();
    for _ in 0..2 {
        // The task in the slot may be at the address of the task of the round before.
        begins.recv().unwrap();
        assert!(matches!(look(), Err(true)));
        go_on.send(()).unwrap();
    }
    begins.recv().unwrap();
    assert!(matches!(look(), Err(true)));
    drop(look().expect("the same task, in the same poll"));
    assert!(matches!(look(), Err(false)));
    drop(go_on);
    drop(other);
    drop(runtime);
    busy.join().unwrap();
}

struct Pair {
    runtime: Runtime,
    first: Worker<ThreadPark>,
    other: Worker<ThreadPark>,
}

impl Pair {
    fn new() -> Self {
        let parks = [ThreadPark::new(), ThreadPark::new()];
        let (runtime, mut workers) = Builder::new().build_driven(parks);
        let other = workers.remove(1);
        Self {
            runtime,
            first: workers.remove(0),
            other,
        }
    }

    /// Returns notified tasks that are in no queue, as a worker has a task that it requeues. The
    /// queues are empty.
    fn tasks<const N: usize>(&self) -> [Task; N] {
        [(); N].map(|()| {
            self.runtime.spawn_detached(pending::<()>());
            let task = self.runtime.handle().shared().injector.pop();
            task.expect("it was spawned from outside")
        })
    }

    fn put(&self, f: impl FnOnce(&Core)) {
        f(&self.first.core);
    }

    /// Runs `f` on the first worker, while the other worker counts as sleeping. Returns the result
    /// of `f`, and whether `f` notified the other worker.
    fn notified_by<R>(&mut self, f: impl FnOnce(&mut Worker<ThreadPark>) -> R) -> (R, bool) {
        let shared = self.runtime.handle().shared().clone();
        shared.idle.sleep(1, false);
        let result = f(&mut self.first);
        let notified = shared.idle.was_notified(1);
        // Notified or not, the other worker counts as searching after `wake_self`.
        let _ = shared.idle.wake_self(1);
        let _ = shared.idle.stop_searching();
        (result, notified)
    }
}

#[test]
fn task_requeued_behind_none_runs_next_and_is_in_no_queue() {
    let mut pair = Pair::new();
    let [task] = pair.tasks();
    let id = task.id();
    let ((), notified) = pair.notified_by(|first| first.core.queue.requeue(task, &**first.core));
    assert!(!notified);
    assert!(!pair.first.core.shared.has_work(), "the task is in a queue");
    let (next, notified) = pair.notified_by(|first| first.core.next());
    assert_eq!(next.map(|task| task.id()), Some(id));
    assert!(!notified);
}

#[test]
fn task_requeued_behind_others_notifies_nobody() {
    let mut pair = Pair::new();
    let [in_ring, task] = pair.tasks();
    pair.put(|core| core.queue.push_back(in_ring, core));
    let id = task.id();
    let ((), notified) = pair.notified_by(|first| first.core.queue.requeue(task, &**first.core));
    assert!(!notified);
    let order = [(); 2].map(|()| pair.first.core.queue.take_any().expect("two are queued"));
    assert_eq!(order[1].id(), id);
}

#[test]
fn task_requeued_behind_the_slots_task_notifies() {
    let mut pair = Pair::new();
    let [in_slot, task] = pair.tasks();
    pair.put(|core| core.queue.push_next(in_slot, core));
    let ((), notified) = pair.notified_by(|first| first.core.queue.requeue(task, &**first.core));
    assert!(notified, "the poll of the slot's task may be long");
}

#[test]
fn task_overtaken_by_the_slots_task_notifies() {
    let mut pair = Pair::new();
    let [requeued, in_slot] = pair.tasks();
    let ids = [in_slot.id(), requeued.id()];
    pair.put(|core| core.queue.requeue(requeued, core));
    pair.put(|core| core.queue.push_next(in_slot, core));
    let (next, notified) = pair.notified_by(|first| first.core.next());
    assert!(notified, "the poll of the slot's task may be long");
    assert_eq!(next.map(|task| task.id()), Some(ids[0]));
    assert!(
        pair.first.core.shared.has_work(),
        "no other worker can take it"
    );
    assert_eq!(
        pair.first.core.queue.take_any().map(|task| task.id()),
        Some(ids[1])
    );
}

#[test]
fn task_overtaken_by_an_injector_share_notifies() {
    let mut pair = Pair::new();
    let [requeued] = pair.tasks();
    let id = requeued.id();
    pair.put(|core| core.queue.requeue(requeued, core));
    pair.runtime.spawn_detached(pending::<()>());
    let (share, notified) = pair.notified_by(|first| first.core.take_share());
    assert!(notified, "the poll of the task from outside may be long");
    assert!(share.is_some_and(|task| task.id() != id));
    assert_eq!(
        pair.first.core.queue.take_any().map(|task| task.id()),
        Some(id)
    );
}

/// Returns a future that counts its polls in `polls`, and yields in each poll.
fn yields(polls: &Arc<AtomicUsize>) -> impl Future<Output = ()> + Send + use<> {
    let polls = polls.clone();
    async move {
        loop {
            polls.fetch_add(1, SeqCst);
            yield_now().await;
        }
    }
}

#[test]
fn yielded_task_can_be_taken_between_two_ticks() {
    let mut pair = Pair::new();
    let polls = Arc::new(AtomicUsize::new(0));
    pair.runtime.spawn_detached(yields(&polls));
    assert_eq!(pair.first.tick(), Tick::Ran);
    let (tick, notified) = pair.notified_by(Worker::tick);
    assert_eq!((tick, notified), (Tick::Ran, false), "it is alone");
    assert_eq!(pair.other.tick(), Tick::Ran);
    assert_eq!(polls.load(SeqCst), 3);
}

#[test]
fn two_yielding_tasks_notify_a_sleeper_between_two_ticks() {
    let mut pair = Pair::new();
    let polls = Arc::new(AtomicUsize::new(0));
    let two = [yields(&polls), yields(&polls)];
    pair.runtime.spawn_detached(async {
        two.into_iter().for_each(spawn_detached);
    });
    // The tick also ran one of the two, from the slot. The other one had left the slot for the ring
    // when this one was spawned.
    assert_eq!(pair.first.tick(), Tick::Ran);
    assert_eq!(polls.load(SeqCst), 1);
    for n in 2..10 {
        let (tick, notified) = pair.notified_by(Worker::tick);
        assert_eq!((tick, notified), (Tick::Ran, true));
        assert_eq!(polls.load(SeqCst), n);
    }
}

#[test]
fn a_yield_between_two_polls_wakes_the_task_whose_waker_it_has() {
    let (sender, waker) = std::sync::mpsc::channel::<Waker>();
    let waker = std::sync::Mutex::new(waker);
    let after_poll = move |_| {
        if let Ok(waker) = waker.lock().unwrap().try_recv() {
            let mut cx = std::task::Context::from_waker(&waker);
            assert!(std::pin::pin!(yield_now()).poll(&mut cx).is_pending());
        }
    };
    let builder = Builder::new().on_after_poll(after_poll);
    let (runtime, mut workers) = builder.build_driven([ThreadPark::new()]);
    let mut sender = Some(sender);
    let task = runtime.spawn(poll_fn(move |cx| match sender.take() {
        Some(sender) => {
            sender.send(cx.waker().clone()).unwrap();
            Poll::Pending
        }
        None => Poll::Ready(()),
    }));
    while workers[0].tick() == Tick::Ran {}
    assert!(task.is_finished(), "its wake was lost");
}

#[test]
fn searcher_that_stops_wakes_a_watcher_for_a_filled_slot() {
    let (runtime, workers) = Builder::new().build_driven([(); 3].map(|()| ThreadPark::new()));
    let [fills, searches, sleeps] = [0, 1, 2].map(|i| &workers[i].core);
    let shared = runtime.handle().shared().clone();
    shared.idle.sleep(2, false);
    assert!(shared.idle.try_search());
    searches.idle_state.searching.set(true);

    runtime.spawn_detached(pending::<()>());
    let task = shared.injector.pop().expect("it was spawned from outside");
    RunQueue::push_next(&fills.queue, task, &***fills);
    assert!(!shared.idle.was_notified(2), "a searcher is there");
    searches.leave_search();
    assert!(shared.idle.was_notified(2));
    // Worker 2 finds nothing, goes to sleep again, and watches the slots.
    shared.idle.sleep(2, true);
    assert!(sleeps.watch().is_some());
    let _ = shared.idle.wake_self(2);
    let _ = shared.idle.stop_searching();
}

#[test]
fn searcher_that_stops_wakes_nobody_if_watched_or_empty() {
    for filled in [false, true] {
        let (runtime, workers) = Builder::new().build_driven([(); 3].map(|()| ThreadPark::new()));
        let shared = runtime.handle().shared().clone();
        shared.idle.want_watcher();
        shared.idle.sleep(2, false);
        assert!(shared.idle.try_search());
        workers[1].core.idle_state.searching.set(true);
        if filled {
            assert!(shared.idle.try_watch(2));
            runtime.spawn_detached(pending::<()>());
            let task = shared.injector.pop().expect("it was spawned from outside");
            workers[0].core.queue.push_next(task, &**workers[0].core);
        }
        workers[1].core.leave_search();
        assert!(!shared.idle.was_notified(2));
        let _ = shared.idle.wake_self(2);
        let _ = shared.idle.stop_searching();
    }
}

/// Fails if `Scheduler::schedule` does not check whether a driven worker was dropped before its end
/// (`Shared::is_abandoned`).
#[test]
fn task_woken_after_its_worker_was_dropped_ends() {
    let (runtime, workers) = Builder::new().build_driven([ThreadPark::new()]);
    let held = Arc::new(());
    let in_task = held.clone();
    runtime.spawn_detached(async move {
        let _held = in_task;
        pending::<()>().await;
    });
    let shared = runtime.handle().shared();
    let on_its_way = shared.injector.pop().expect("it was spawned from outside");
    drop(workers);
    assert_eq!(Arc::strong_count(&held), 2);
    Scheduler::schedule(on_its_way, WakeKind::Wake);
    assert_eq!(Arc::strong_count(&held), 1);
    drop(runtime);
}

/// Fails if the sum in `Core::at_interval` counts all polls, or misses wakes, spawns or tasks from
/// outside.
#[test]
fn only_yields_count_for_the_spin() {
    /// Runs a task that calls `does` with another task's waker, and yields, again and again. With
    /// `outside`, also spawns tasks from outside now and then. Returns whether the worker counts
    /// all polls as polls of tasks that only yield.
    fn finds_none(does: fn(&Waker), outside: bool) -> bool {
        let (runtime, mut workers) = Builder::new()
            .global_interval(4)
            .build_driven([ThreadPark::new()]);
        let mut worker = workers.remove(0);
        let (sender, receiver) = std::sync::mpsc::channel();
        runtime.spawn_detached(poll_fn(move |cx| {
            let _ = sender.send(cx.waker().clone());
            Poll::<()>::Pending
        }));
        runtime.spawn_detached(async move {
            let other = receiver.recv().unwrap();
            loop {
                does(&other);
                yield_now().await;
            }
        });
        let mut seen = Vec::new();
        for tick in 0..4 * 20 {
            // In some intervals nothing is pushed: the worker updates `spin` only when its look at
            // the injector finds nothing.
            if outside && tick % 16 == 2 {
                runtime.spawn_detached(async {});
            }
            assert_eq!(worker.tick(), Tick::Ran);
            if tick >= 40 {
                seen.push(worker.core.looks.spin.clone());
            }
        }
        // `spin` does not change as long as the worker sees nothing but yields.
        seen.iter().all(|spin| *spin == seen[0])
    }
    assert!(finds_none(|_| (), false));
    assert!(!finds_none(Waker::wake_by_ref, false));
    assert!(!finds_none(|_| spawn_detached(async {}), false));
    assert!(!finds_none(|_| (), true));
}

/// Fails if a tick inside a task's poll takes away the task's yield, or its id.
#[test]
fn tick_in_a_task_leaves_the_task_its_yield() {
    let driven = || Builder::new().build_driven([ThreadPark::new()]);
    let ((runtime, mut outer), (inner_runtime, mut inner)) = (driven(), driven());
    inner_runtime.spawn_detached(yield_now());
    let mut polls = 0;
    let ticks = poll_fn(move |cx| {
        polls += 1;
        if polls == 2 {
            return Poll::Ready(());
        }
        let id = task_header::current().unwrap();
        assert!(pin!(yield_now()).poll(cx).is_pending());
        assert_eq!(inner[0].tick(), Tick::Ran);
        assert_eq!(task_header::current().unwrap(), id);
        Poll::Pending
    });
    let task = runtime.spawn(ticks);
    assert_eq!((outer[0].tick(), outer[0].tick()), (Tick::Ran, Tick::Ran));
    assert!(task.is_finished());
}

/// A park with events in it. If its flag is set, each delivery panics after its wakes.
struct Delivers(ThreadPark, Vec<Waker>, bool);

impl Park for Delivers {
    fn park(&mut self) {}

    fn park_timeout(&mut self, _: Duration) {}

    fn has_events(&self) -> bool {
        !self.1.is_empty()
    }

    fn deliver(&mut self) {
        self.1.drain(..).for_each(Waker::wake);
        if self.2 {
            std::panic::resume_unwind(Box::new(()));
        }
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }
}

/// A worker whose park has the waker of a waiting task, beside another worker.
fn delivers(panics: bool) -> (Runtime, Worker<Delivers>, Worker<Delivers>) {
    let parks = [panics, false].map(|panics| Delivers(ThreadPark::new(), Vec::new(), panics));
    let (runtime, mut workers) = Builder::new().build_driven(parks);
    let (other, mut first) = (workers.pop().unwrap(), workers.pop().unwrap());
    let (sender, waker) = mpsc::channel();
    runtime.spawn_detached(poll_fn(move |cx| {
        sender.send(cx.waker().clone()).unwrap();
        Poll::<()>::Pending
    }));
    assert_eq!(first.tick(), Tick::Ran);
    first.park_mut().1.push(waker.recv().unwrap());
    (runtime, first, other)
}

/// The look at the end of a tick wakes a task, and the program may not tick the worker soon.
///
/// Fails if that task is kept aside, or if the tick notifies nobody of it.
#[test]
fn task_woken_at_the_end_of_a_tick_notifies() {
    let (runtime, mut first, other) = delivers(false);
    runtime.spawn_detached(async {});
    let shared = runtime.handle().shared().clone();
    shared.idle.sleep(1, false);
    first.core.looks.poll_is_due.set(true);
    assert_eq!(first.tick(), Tick::Ran);
    assert!(shared.has_work(), "no other worker finds the task");
    assert!(shared.idle.was_notified(1), "the other worker sleeps");
    drop((other, first));
}

/// Fails if the task that a delivery has woken before it panics is kept aside, or if nobody is
/// notified of it.
#[test]
fn task_woken_by_a_delivery_that_panics_notifies() {
    let tick = |first: &mut Worker<Delivers>| {
        first.core.looks.poll_is_due.set(true);
        let _ = first.tick();
    };
    for does in [tick, Worker::park] {
        let (runtime, mut first, other) = delivers(true);
        let shared = runtime.handle().shared().clone();
        shared.idle.sleep(1, false);
        let does = AssertUnwindSafe(|| does(&mut first));
        assert!(catch_unwind(does).is_err());
        assert!(shared.has_work(), "no other worker finds the task");
        assert!(shared.idle.was_notified(1), "the other worker sleeps");
        drop((other, first));
    }
}

/// A worker sleeps whose parks end at once, while a task is in the slot of a worker that is in a
/// poll.
///
/// Fails if each end of a park counts as a look of the watch: then the task is taken at the second
/// park.
#[test]
fn task_in_a_slot_is_not_taken_before_the_watchs_interval() {
    let parks = [(); 2].map(|()| Delivers(ThreadPark::new(), Vec::new(), false));
    let (runtime, mut workers) = Builder::new().build_driven(parks);
    let (mut other, mut first) = (workers.pop().unwrap(), workers.pop().unwrap());
    let in_slot = runtime.spawn(async move {
        let task = crate::spawn(async {});
        let begun = Instant::now();
        while !task.is_finished() {
            other.park();
            let _ = other.tick();
        }
        (begun.elapsed(), other)
    });
    assert_eq!(first.tick(), Tick::Ran);
    let (waited, other) = runtime.block_on(in_slot).unwrap();
    // The watch looks for the first time after a millisecond, and for the second time after one
    // more.
    assert!(waited >= Duration::from_millis(2), "{waited:?}");
    drop((other, first));
}

/// A park that soon ends by an event.
struct Rings {
    park: ThreadPark,
    rings: bool,
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
    }

    fn waker(&self) -> Waker {
        self.park.waker()
    }
}

/// Fails if a watch begins anew after each event: each sleep of the watcher then has a limit, as
/// long as events come.
#[test]
fn watch_ends_although_an_event_ends_each_sleep_of_the_watcher() {
    let parks = [(); 2].map(|()| Rings {
        park: ThreadPark::new(),
        rings: false,
    });
    let (runtime, mut workers) = Builder::new().build_driven(parks);
    let mut worker = workers.pop().unwrap();
    let idle = &runtime.handle().shared().clone().idle;
    idle.want_watcher();
    let watches = |worker: &Worker<Rings>| {
        idle.is_watcher_wanted() || worker.core.idle_state.watch.get() != WatchState::default()
    };
    let begun = Instant::now();
    while watches(&worker) {
        worker.park();
        assert!(begun.elapsed() < Duration::from_secs(10));
        while worker.tick() == Tick::Ran {}
    }
    drop(runtime);
    workers.push(worker);
    while workers
        .iter_mut()
        .any(|worker| worker.tick() != Tick::Ended)
    {}
}

/// Fails if the watch of another worker makes a worker forget its own: the watches of two workers
/// that sleep in turns then never end.
#[test]
fn watch_goes_on_after_a_sleep_beside_another_watcher() {
    let Pair {
        runtime,
        first,
        other,
    } = Pair::new();
    let idle = &runtime.handle().shared().clone().idle;
    idle.want_watcher();
    first.core.watch().unwrap().record_look(false);
    let looks = || first.core.idle_state.watch.get();
    let before = looks();
    let beside = other.core.watch().unwrap();
    assert!(first.core.watch().is_none());
    assert_eq!(looks(), before);
    drop(beside);
}
