//! Tests of homes, on two workers that do not steal. The test ticks the workers, so it decides
//! which of them runs next.
use crate::{
    Builder, Runtime, Tick, Worker, spawn, spawn_in,
    worker::park::{Park, ThreadPark},
    worker_index, yield_now,
};
use std::{
    future::{Future, poll_fn},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Poll, Wake, Waker},
    thread,
};
use worker_queue::RunQueue;

/// A runtime with two workers that do not steal.
struct Two {
    runtime: Runtime,
    workers: [Worker<ThreadPark>; 2],
}

impl Two {
    fn new() -> Self {
        Self::of(Builder::new())
    }

    fn of(builder: Builder) -> Self {
        let parks = [(); 2].map(|()| ThreadPark::new());
        let (runtime, workers) = builder.sharded(true).build_driven(parks);
        let workers = workers.try_into().map_err(drop).expect("two parks");
        Self { runtime, workers }
    }

    /// Spawns a task, in main or in a group, and lets the worker run its first poll.
    fn spawn_at(
        &mut self,
        worker: usize,
        in_group: bool,
        future: impl Future<Output = ()> + Send + 'static,
    ) {
        if in_group {
            let group = self.runtime.group("batch").build().unwrap();
            drop(spawn_in(&group, future).unwrap());
        } else {
            self.runtime.spawn_detached(future);
        }
        assert_eq!(self.workers[worker].tick(), Tick::Ran);
    }

    /// Whether the worker had nothing to run.
    fn is_idle(&mut self, worker: usize) -> bool {
        self.workers[worker].tick() == Tick::Idle
    }

    fn run_all(&mut self, worker: usize) {
        while self.workers[worker].tick() == Tick::Ran {}
    }

    /// The number of tasks that wait on a worker.
    fn queued(&self, worker: usize) -> usize {
        self.runtime.handle().shared().remotes[worker].stealer.len()
    }

    fn end(self) {
        drop(self.runtime);
        for mut worker in self.workers {
            assert_eq!(worker.tick(), Tick::Ended);
        }
    }
}

/// Notes the worker of each poll of a task, and keeps the task's waker.
#[derive(Clone, Default)]
struct Visits {
    workers: Arc<Mutex<Vec<Option<usize>>>>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Visits {
    /// Returns a future that waits for `wakes` wakes.
    fn task(&self, wakes: usize) -> impl Future<Output = ()> + Send + use<> {
        let this = self.clone();
        poll_fn(move |cx| {
            let mut workers = this.workers.lock().unwrap();
            workers.push(worker_index());
            if workers.len() > wakes {
                return Poll::Ready(());
            }
            *this.waker.lock().unwrap() = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    fn wake(&self) {
        let waker = self.waker.lock().unwrap().take();
        waker.expect("the task waits").wake();
    }

    fn note(&self) {
        self.workers.lock().unwrap().push(worker_index());
    }

    fn seen(&self) -> Vec<Option<usize>> {
        self.workers.lock().unwrap().clone()
    }
}

/// Fails if the woken task goes to the worker whose task has woken it.
#[test]
fn task_woken_by_another_workers_poll_runs_at_home() {
    for in_group in [false, true] {
        let (mut two, visits) = (Two::new(), Visits::default());
        two.spawn_at(1, in_group, visits.task(1));
        let wakes = visits.clone();
        two.spawn_at(0, !in_group, async move { wakes.wake() });
        assert!(two.is_idle(0));
        two.run_all(1);
        assert_eq!(visits.seen(), [Some(1), Some(1)]);
        two.end();
    }
}

/// Fails if a wake from outside goes to the injector.
#[test]
fn task_woken_by_an_outside_thread_runs_at_home() {
    for in_group in [false, true] {
        let (mut two, visits) = (Two::new(), Visits::default());
        two.spawn_at(1, in_group, visits.task(1));
        let wakes = visits.clone();
        thread::spawn(move || wakes.wake()).join().unwrap();
        assert!(two.is_idle(0));
        two.run_all(1);
        assert_eq!(visits.seen(), [Some(1), Some(1)]);
        two.end();
    }
}

/// A parker that wakes tasks, on another thread, while its worker sleeps. It counts its unparks.
#[derive(Default)]
struct Burst {
    tasks: Vec<Visits>,
    unparks: Arc<Counts>,
}

#[derive(Default)]
struct Counts(AtomicU64);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl Park for Burst {
    fn park(&mut self) {
        let tasks = std::mem::take(&mut self.tasks);
        let wakes = move || tasks.iter().for_each(Visits::wake);
        thread::spawn(wakes).join().unwrap();
    }

    fn park_timeout(&mut self, _: std::time::Duration) {
        self.park();
    }

    fn waker(&self) -> Waker {
        Waker::from(self.unparks.clone())
    }
}

/// Fails if each wake of a burst unparks the sleeping home.
#[test]
fn burst_of_wakes_unparks_the_sleeping_home_once() {
    for in_group in [false, true] {
        let park = Burst::default();
        let unparks = park.unparks.clone();
        let (runtime, mut workers) = Builder::new().sharded(true).build_driven([park]);
        let mut home = workers.remove(0);
        let all: Vec<_> = (0..10).map(|_| Visits::default()).collect();
        let group = runtime.group("batch").build().unwrap();
        for visits in &all {
            match in_group {
                true => drop(spawn_in(&group, visits.task(3)).unwrap()),
                false => runtime.spawn_detached(visits.task(3)),
            }
        }
        for round in 1..=3 {
            while home.tick() == Tick::Ran {}
            home.park_mut().tasks = all.clone();
            unparks.0.store(0, Relaxed);
            home.park();
            assert_eq!(unparks.0.load(Relaxed), 1);
            assert_eq!(runtime.snapshot().unparks, round);
        }
        while home.tick() == Tick::Ran {}
        assert!(all.iter().all(|visits| visits.seen() == [Some(0); 4]));
        drop(runtime);
        assert_eq!(home.tick(), Tick::Ended);
    }
}

/// Fails if the end of a task queues the task that joins it on the worker of the ended task.
#[test]
fn task_woken_by_a_join_handle_runs_at_home() {
    let (mut two, ends, joins) = (Two::new(), Visits::default(), Visits::default());
    let joined = two.runtime.spawn(ends.task(1));
    assert_eq!(two.workers[0].tick(), Tick::Ran);
    let visits = joins.clone();
    two.spawn_at(1, false, async move {
        visits.note();
        joined.await.unwrap();
        visits.note();
    });
    ends.wake();
    two.run_all(0);
    two.run_all(1);
    assert_eq!(ends.seen(), [Some(0), Some(0)]);
    assert_eq!(joins.seen(), [Some(1), Some(1)]);
    two.end();
}

/// Notes the worker on which it is dropped.
struct NotesDrop(Visits);

impl Drop for NotesDrop {
    fn drop(&mut self) {
        self.0.note();
    }
}

/// Fails if an abort from outside goes to the injector.
#[test]
fn task_aborted_by_an_outside_thread_is_dropped_at_home() {
    let (mut two, drops) = (Two::new(), Visits::default());
    let notes = NotesDrop(drops.clone());
    let task = two.runtime.spawn(async move {
        let _notes = notes;
        std::future::pending::<()>().await;
    });
    assert_eq!(two.workers[1].tick(), Tick::Ran);
    task.abort();
    assert!(two.is_idle(0));
    two.run_all(1);
    assert_eq!(drops.seen(), [Some(1)]);
    two.end();
}

/// A worker fires a timer of the other worker, whose task then runs at home.
///
/// Fails if a timer's wake goes to the worker that fires the timer.
#[cfg(feature = "net")]
#[test]
fn task_woken_by_a_timer_runs_at_home() {
    for in_group in [false, true] {
        let (mut two, visits) = (Two::new(), Visits::default());
        let notes = visits.clone();
        two.spawn_at(1, in_group, async move {
            notes.note();
            net_driver::time::sleep(std::time::Duration::from_millis(1)).await;
            notes.note();
        });
        // The first worker parks until it has fired the timer, while the second one does nothing.
        while two.queued(1) == 0 && visits.seen().len() == 1 {
            if two.is_idle(0) {
                two.workers[0].park_timeout(std::time::Duration::from_millis(1));
            }
        }
        two.run_all(1);
        assert_eq!(visits.seen(), [Some(1), Some(1)]);
        two.end();
    }
}

/// Fails if tasks that overflow a ring go to the injector.
#[test]
fn tasks_that_overflow_a_ring_stay_on_their_worker() {
    let (mut two, visits) = (Two::of(Builder::new().ring_capacity(4)), Visits::default());
    let notes = visits.clone();
    two.spawn_at(1, false, async move {
        for _ in 0..100 {
            let notes = notes.clone();
            drop(spawn(async move { notes.note() }));
        }
    });
    assert!(two.is_idle(0));
    two.run_all(1);
    assert_eq!(visits.seen(), [Some(1); 100]);
    two.end();
}

/// Fails if the tasks that overflow a ring in one batch, or those that were pushed since the home
/// last looked, count as one.
#[test]
fn depth_of_a_ring_counts_each_task_of_the_inbox() {
    for in_group in [false, true] {
        let mut two = Two::of(Builder::new().ring_capacity(4).lifo_slot(false));
        let all: Vec<_> = (0..10).map(|_| Visits::default()).collect();
        for visits in &all {
            two.spawn_at(1, in_group, visits.task(1));
        }
        two.spawn_at(1, false, async {
            for _ in 0..100 {
                drop(spawn(async {}));
            }
        });
        assert_eq!(two.queued(1), 100);
        all.iter().for_each(Visits::wake);
        assert_eq!(two.queued(1), 110);
        let depth = || two.runtime.snapshot().per_worker[1].ring_depth;
        assert_eq!(depth(), 110);
        two.run_all(1);
        assert_eq!(two.queued(1), 0);
        two.end();
    }
}

/// Fails if a task whose time slice is over goes to the injector.
#[test]
fn task_whose_slice_is_over_stays_on_its_worker() {
    let (mut two, visits) = (Two::new(), Visits::default());
    let handle = two.runtime.handle().clone();
    let notes = visits.clone();
    two.spawn_at(1, false, async move {
        drop(spawn(yield_now()));
        drop(spawn(yield_now()));
        notes.note();
        handle.preempt(1);
        coop_budget::consume().await;
        notes.note();
    });
    assert!(two.is_idle(0));
    two.run_all(1);
    assert_eq!(visits.seen(), [Some(1), Some(1)]);
    two.end();
}

/// A worker that always has tasks of its own runs a task from its inbox at the end of an interval,
/// and one task from the injector as well.
///
/// Fails if a look at the inbox takes the place of the look at the injector, or the reverse.
#[test]
fn busy_home_looks_at_its_inbox_and_the_injector() {
    for in_group in [false, true] {
        let time = Arc::new(AtomicU64::new(0));
        let mut two = Two::of(Builder::new().group_clock(time.clone()));
        let (visits, outside) = (Visits::default(), Visits::default());
        two.spawn_at(1, in_group, visits.task(usize::MAX));
        two.spawn_at(1, in_group, async move {
            loop {
                time.fetch_add(100_000, Relaxed);
                yield_now().await;
            }
        });
        for round in 2..20 {
            visits.wake();
            let notes = outside.clone();
            two.runtime.spawn_detached(async move { notes.note() });
            for _ in 0..200 {
                assert_eq!(two.workers[1].tick(), Tick::Ran);
            }
            assert_eq!(visits.seen(), vec![Some(1); round]);
            assert_eq!(outside.seen(), vec![Some(1); round - 1]);
        }
        two.end();
    }
}

/// Fails if the tasks that a home takes when it chooses its next task are not counted, or twice.
#[test]
fn home_that_shares_its_time_counts_each_task_from_outside() {
    for (in_group, of_all) in [(false, false), (true, false), (false, true), (true, true)] {
        let (time, visits) = (Arc::new(AtomicU64::new(0)), Visits::default());
        let mut two = Two::of(Builder::new().group_clock(time.clone()));
        two.spawn_at(1, in_group, visits.task(usize::MAX));
        // A worker shares its time while it has a task of a group.
        two.spawn_at(1, of_all, async move {
            loop {
                time.fetch_add(100_000, Relaxed);
                yield_now().await;
            }
        });
        let injected = |two: &Two| two.runtime.snapshot().per_worker[1].injected_tasks;
        assert_eq!(injected(&two), 2);
        for round in 1..20 {
            visits.wake();
            for _ in 0..200 {
                assert_eq!(two.workers[1].tick(), Tick::Ran);
            }
            assert_eq!(injected(&two), 2 + round);
        }
        two.end();
    }
}

/// Fails if a look that wants one task from outside does not note the mail that it also takes.
#[test]
fn look_for_one_task_notes_the_others_that_it_takes() {
    for in_group in [false, true] {
        let mut two = Two::of(Builder::new().lifo_slot(false));
        let all: Vec<_> = (0..3).map(|_| Visits::default()).collect();
        for visits in &all {
            two.spawn_at(1, in_group, visits.task(1));
        }
        all.iter().for_each(Visits::wake);
        two.runtime.spawn_detached(async {});
        let core = &**two.workers[1].core;
        let mut taken = 0;
        core.as_worker(|| {
            while let Some(task) = core.queue.take_one(core.shared.injector.mine(), core) {
                taken += 1 + core.queue.take_noted();
                core.queue.push_back(task, core);
            }
        });
        assert_eq!((taken, two.queued(1)), (4, 4));
        two.run_all(1);
        two.end();
    }
}

/// Returns two workers, and the places of the drops of a task that waits in the inbox of the second
/// one.
fn with_mail(in_group: bool) -> (Two, Visits) {
    let (mut two, visits) = (Two::new(), Visits::default());
    let notes = NotesDrop(Visits::default());
    let drops = notes.0.clone();
    let waits = visits.task(1);
    two.spawn_at(1, in_group, async move {
        let _notes = notes;
        waits.await;
    });
    visits.wake();
    (two, drops)
}

/// A task that waits in an inbox when its runtime ends is dropped once.
///
/// Fails if a worker leaves although tasks are in inboxes.
#[test]
fn task_in_an_inbox_is_dropped_at_the_end() {
    for in_group in [false, true] {
        let (two, drops) = with_mail(in_group);
        two.end();
        assert_eq!(drops.seen().len(), 1);
    }
}

/// A thread holds a task while the task's home, a driven worker, is dropped. The thread drops the
/// task in place of queueing it. The memory of the task and of the runtime is leaked.
///
/// Fails if a thread that ends queued tasks does not look at the inboxes.
#[test]
fn task_queued_after_its_home_was_dropped_is_dropped() {
    for in_group in [false, true] {
        let (two, drops) = with_mail(in_group);
        let shared = two.runtime.handle().shared().clone();
        let task = shared.groups.pop_mail().expect("it was woken");
        let [mut other, home] = two.workers;
        drop(home);
        assert!(drops.seen().is_empty());
        shared.take_in(task);
        assert_eq!(drops.seen(), [None]);
        drop(two.runtime);
        assert_eq!(other.tick(), Tick::Ended);
    }
}

/// The monitor sees that a task waits in the inbox of a worker in a `syscall`.
///
/// Fails if the monitor does not look at inboxes.
#[test]
fn monitor_finds_a_task_in_an_inbox() {
    for in_group in [false, true] {
        let (mut two, visits) = (Two::new(), Visits::default());
        two.spawn_at(1, in_group, visits.task(1));
        let has_work = |two: &Two| [0, 1].map(|at| two.runtime.handle().shared().has_work_for(at));
        assert_eq!(has_work(&two), [false, false]);
        visits.wake();
        assert_eq!(has_work(&two), [false, true]);
        two.run_all(1);
        assert_eq!(has_work(&two), [false, false]);
        two.end();
    }
}

/// A home that has just found mail ignores the nudge of the next wake, and never looks by itself.
/// The monitor makes it look.
///
/// Fails if the monitor watches the injector alone, or if it insists although the worker sleeps or
/// has looked since the last round.
#[test]
fn monitor_insists_on_the_mail_of_a_busy_home() {
    use sched_monitor::{Duty, Observed, Round, Sample, State};

    let mut two = Two::of(Builder::new().global_interval(u32::MAX));
    let visits = Visits::default();
    two.spawn_at(1, false, visits.task(usize::MAX));
    two.spawn_at(1, false, async {
        loop {
            yield_now().await;
        }
    });
    let shared = two.runtime.handle().shared().clone();
    let mut mail = crate::groups::duties::mail::Mail::new(shared.clone());
    let mut look = |state| {
        let sample = Sample {
            state,
            ..Sample::default()
        };
        let worker = Observed {
            sample,
            ..Observed::default()
        };
        let round = Round {
            now: std::time::Duration::ZERO,
            workers: &[worker; 2],
        };
        mail.look(&round).is_some()
    };
    for round in 2..10 {
        visits.wake();
        (0..100).for_each(|_| assert_eq!(two.workers[1].tick(), Tick::Ran));
        assert_eq!(visits.seen().len(), round - 1, "the nudge was ignored");
        assert!(!look(State::Polling) && !look(State::Idle) && !look(State::Polling));
        assert!(!shared.slices.of(1).is_set());
        assert!(look(State::Polling) && shared.slices.of(1).is_set());
        (0..10).for_each(|_| assert_eq!(two.workers[1].tick(), Tick::Ran));
        assert_eq!(visits.seen(), vec![Some(1); round]);
        assert!(!look(State::Polling));
    }
    drop(shared);
    two.end();
}

/// A burst of wakes by one poll reaches all homes, also beyond the capacity of a ring.
///
/// Fails if a worker takes more from its inbox than its ring has room for, and loses the rest.
#[test]
fn burst_of_wakes_runs_every_task_at_home() {
    let mut two = Two::of(Builder::new().ring_capacity(4));
    let all: Vec<_> = (0..200).map(|_| Visits::default()).collect();
    for (n, visits) in all.iter().enumerate() {
        two.spawn_at(n % 2, n % 3 == 0, visits.task(1));
    }
    let wakes = all.clone();
    two.spawn_at(0, false, async move { wakes.iter().for_each(Visits::wake) });
    two.run_all(0);
    two.run_all(1);
    for (n, visits) in all.iter().enumerate() {
        assert_eq!(visits.seen(), [Some(n % 2); 2]);
    }
    two.end();
}
