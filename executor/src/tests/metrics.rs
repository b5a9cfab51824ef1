//! Tests of the counters. Most tests tick the workers themselves, so they know each step. Two tests
//! of busy time also use a runtime with its own threads.
use super::*;
use crate::{Snapshot, Tick, Worker, worker::park::ThreadPark};
use std::{task::Waker, time::Instant};

fn driven<const N: usize>(builder: Builder) -> (Runtime, [Worker<ThreadPark>; N]) {
    let (runtime, workers) = builder.build_driven([(); N].map(|()| ThreadPark::new()));
    (runtime, workers.try_into().unwrap())
}

fn tick_until_idle<const N: usize>(workers: &mut [Worker<ThreadPark>; N]) {
    for worker in workers {
        while worker.tick() == Tick::Ran {}
    }
}

/// Ends the runtime, and checks that as many tasks ended as were spawned.
fn end<const N: usize>(runtime: Runtime, workers: [Worker<ThreadPark>; N]) -> Snapshot {
    let handle = runtime.handle().clone();
    drop(runtime);
    workers.into_iter().for_each(Worker::run);
    let metrics = handle.snapshot();
    assert_eq!(metrics.spawns, metrics.ends, "{metrics}");
    assert_eq!(
        (metrics.live_tasks, metrics.injector_depth),
        (0, 0),
        "{metrics}"
    );
    metrics
}

/// No worker runs, as if each were in a long poll.
///
/// Fails if the tasks that were pushed since a worker last looked count as one.
#[test]
fn injector_depth_counts_each_task_that_waits() {
    let (runtime, mut workers) = driven::<2>(Builder::new());
    let depths = || {
        let metrics = runtime.handle().metrics();
        let depth = metrics.global_queue_depth() as u64;
        assert_eq!(runtime.snapshot().injector_depth, depth);
        depth
    };
    assert_eq!(depths(), 0);
    for n in 1..=10 {
        runtime.spawn_detached(async {});
        assert_eq!(depths(), n);
    }
    // The worker polls the oldest task.
    assert_eq!(workers[0].tick(), Tick::Ran);
    let taken = depths() + runtime.snapshot().per_worker[0].ring_depth;
    assert_eq!(taken, 9);
    (0..10).for_each(|_| drop(runtime.handle().spawn(async {})));
    assert_eq!(depths() + runtime.snapshot().per_worker[0].ring_depth, 19);
    #[cfg(feature = "groups")]
    {
        let before = depths();
        let group = runtime.group("batch").build().unwrap();
        (0..10).for_each(|_| drop(crate::spawn_in(&group, async {}).unwrap()));
        assert_eq!(depths(), before + 10);
    }
    tick_until_idle(&mut workers);
    assert_eq!(depths(), 0);
    end(runtime, workers);
}

/// Fails if the closures that wait for a thread count as one, or count after they have run.
#[test]
fn blocking_queue_depth_counts_each_closure_that_waits() {
    let builder = Builder::new().workers(1).blocking_threads(1);
    let runtime = builder.build().unwrap();
    let metrics = runtime.handle().metrics();
    let (begin, begun) = mpsc::channel();
    let (release, held) = mpsc::channel::<()>();
    drop(runtime.spawn_blocking(move || {
        begin.send(()).unwrap();
        let _ = held.recv();
    }));
    begun.recv().unwrap();
    assert_eq!(metrics.blocking_queue_depth(), 0);
    let mut closures = Vec::new();
    for n in 1..=10 {
        closures.push(runtime.spawn_blocking(|| {}));
        assert_eq!(metrics.blocking_queue_depth(), n);
    }
    drop(release);
    for closure in closures {
        runtime.block_on(closure).unwrap();
    }
    assert_eq!(metrics.blocking_queue_depth(), 0);
}

/// Task that sends its waker and waits for a wake.
fn once_woken(wakers: mpsc::Sender<Waker>) -> impl Future<Output = ()> + Send {
    let mut polled = false;
    poll_fn(move |cx| {
        if std::mem::replace(&mut polled, true) {
            return Poll::Ready(());
        }
        wakers.send(cx.waker().clone()).unwrap();
        Poll::Pending
    })
}

fn spin_for(limit: Duration) {
    let begun = Instant::now();
    while begun.elapsed() < limit {}
}

const SPAN: Duration = Duration::from_millis(2);

fn busy(handle: &Handle) -> Duration {
    handle.snapshot().busy_time
}

/// Fails if `stolen` counts a batch without its first task.
#[test]
fn each_task_of_a_stolen_batch_is_counted() {
    let (runtime, mut workers) = driven::<2>(Builder::new());
    runtime.spawn_detached(async { (0..8).for_each(|_| spawn_detached(async {})) });
    // The last child runs from the slot. Seven are in the ring.
    assert_eq!(workers[0].tick(), Tick::Ran);
    assert_eq!(workers[1].tick(), Tick::Ran);
    let metrics = runtime.snapshot();
    let left = metrics.per_worker[0].ring_depth;
    let [_, thief] = &metrics.per_worker[..] else {
        unreachable!("two workers")
    };
    assert_eq!((thief.searches, thief.steals), (1, 1));
    assert_eq!((left, thief.ring_depth, thief.polls), (3, 3, 1));
    assert_eq!(
        thief.stolen_tasks,
        7 - left,
        "the task that it runs, and those in its ring"
    );
    tick_until_idle(&mut workers);
    let metrics = end(runtime, workers);
    assert_eq!((metrics.spawns, metrics.polls), (9, 9));
    assert_eq!((metrics.injected_tasks, metrics.lifo_hits), (1, 1));
    assert_eq!((metrics.local_wakes, metrics.overflows), (0, 0));
}

/// Fails if tokio's count leaves out the spawns, or counts those from outside.
#[test]
fn tokios_local_schedule_count_has_spawns_and_wakes() {
    let (runtime, mut workers) = driven::<1>(Builder::new());
    let (sender, wakers) = mpsc::channel();
    runtime.spawn_detached(once_woken(sender));
    tick_until_idle(&mut workers);
    let waker = wakers.recv().unwrap();
    runtime.spawn_detached(async move {
        (0..3).for_each(|_| spawn_detached(async {}));
        waker.wake();
    });
    tick_until_idle(&mut workers);
    let metrics = runtime.handle().metrics();
    assert_eq!(metrics.worker_local_schedule_count(0), 3 + 1);
    assert_eq!(metrics.remote_schedule_count(), 2);
    end(runtime, workers);
}

#[test]
fn polls_equal_spawns_plus_wakes_plus_yields() {
    let (runtime, mut workers) = driven::<1>(Builder::new());
    let (sender, wakers) = mpsc::channel();
    let next = || wakers.recv().unwrap();
    for _ in 0..3 {
        runtime.spawn_detached(once_woken(sender.clone()));
    }
    tick_until_idle(&mut workers);
    next().wake();
    let (first, second) = (next(), next());
    runtime.spawn_detached(async move {
        first.wake();
        yield_now().await;
        second.wake_by_ref();
        second.wake();
        yield_now().await;
    });
    tick_until_idle(&mut workers);
    let metrics = end(runtime, workers);
    assert_eq!((metrics.spawns, metrics.live_tasks), (4, 0));
    assert_eq!(metrics.remote_wakes, 1);
    assert_eq!(metrics.injected_tasks, 4 + 1);
    // The second wake of `second` finds its task notified already, and so is not counted.
    assert_eq!(metrics.local_wakes, 2);
    assert_eq!(metrics.lifo_hits, 2);
    let yields = 2;
    assert_eq!(metrics.polls, 4 + 1 + 2 + yields, "{metrics}");
}

#[test]
fn tasks_that_overflow_count_as_injected() {
    let builder = Builder::new().ring_capacity(4).lifo_slot(false);
    let (runtime, mut workers) = driven::<1>(builder);
    runtime.spawn_detached(async { (0..10).for_each(|_| spawn_detached(async {})) });
    assert_eq!(workers[0].tick(), Tick::Ran);
    let metrics = runtime.snapshot();
    let (overflows, depth) = (metrics.overflows, metrics.per_worker[0].ring_depth);
    assert!(overflows > 0 && depth <= 4, "{metrics}");
    tick_until_idle(&mut workers);
    let metrics = end(runtime, workers);
    assert_eq!((metrics.spawns, metrics.polls), (11, 11));
    assert_eq!(metrics.overflows, overflows, "none overflows twice");
    assert_eq!(metrics.injected_tasks, 1 + 10 - depth, "{metrics}");
    assert_eq!(metrics.lifo_hits, 0);
}

/// Each task is counted once, in whatever state it is when the runtime ends.
#[test]
fn tasks_that_are_dropped_by_the_end_are_counted_once() {
    let (runtime, mut workers) = driven::<2>(Builder::new());
    let (sender, wakers) = mpsc::channel();
    for _ in 0..4 {
        runtime.spawn_detached(once_woken(sender.clone()));
    }
    let aborted = runtime.spawn(pending::<()>());
    tick_until_idle(&mut workers);
    let wakers: Vec<_> = wakers.try_iter().collect();
    assert_eq!(wakers.len(), 4);
    wakers[0].wake_by_ref();
    runtime.spawn_detached(async {
        spawn_detached(pending::<()>());
        spawn_detached(async {});
    });
    aborted.abort();
    let metrics = end(runtime, workers);
    assert_eq!((metrics.spawns, metrics.polls), (6, 5), "{metrics}");
    drop(wakers);
}

#[test]
fn a_run_that_ends_an_aborted_task_counts_as_a_poll() {
    let (runtime, mut workers) = driven::<1>(Builder::new());
    let task = runtime.spawn(pending::<()>());
    tick_until_idle(&mut workers);
    task.abort();
    tick_until_idle(&mut workers);
    let metrics = end(runtime, workers);
    assert_eq!((metrics.polls, metrics.remote_wakes), (2, 1));
}

/// Fails if a driven worker counts as awake only after its first sleep.
#[test]
fn busy_time_of_a_driven_worker_includes_its_first_span() {
    let (runtime, [mut worker]) = driven(Builder::new().measure_busy(true));
    runtime.spawn_detached(async { spin_for(SPAN) });
    assert_eq!(worker.tick(), Tick::Ran);
    worker.park_timeout(Duration::ZERO);
    assert!(busy(runtime.handle()) >= SPAN, "{}", runtime.snapshot());
    drop(end(runtime, [worker]));
}

/// Fails if a worker that ends does not end its core's span of busy time.
#[test]
fn busy_time_includes_the_span_before_the_end() {
    let (runtime, [mut worker]) = driven(Builder::new().measure_busy(true));
    runtime.spawn_detached(async { spin_for(SPAN) });
    assert_eq!(worker.tick(), Tick::Ran);
    let handle = runtime.handle().clone();
    drop(end(runtime, [worker]));
    assert!(busy(&handle) >= SPAN, "{}", handle.snapshot());

    let builder = Builder::new().workers(1).measure_busy(true);
    let runtime = builder.build().unwrap();
    let handle = runtime.handle().clone();
    let (begun, begins) = mpsc::channel();
    runtime.spawn_detached(async move {
        begun.send(()).unwrap();
        spin_for(SPAN);
    });
    begins.recv().unwrap();
    drop(runtime);
    assert!(busy(&handle) >= SPAN, "{}", handle.snapshot());
}

/// Fails if `block_in_place` offers a core before it ends the core's span of busy time.
#[test]
fn busy_time_includes_the_span_before_a_core_is_offered() {
    let builder = Builder::new().workers(1).measure_busy(true);
    let runtime = builder.build().unwrap();
    let task = runtime.spawn(async {
        spin_for(SPAN);
        lose_the_core();
        busy(&Handle::current())
    });
    let busy = block_on(task).unwrap();
    assert!(busy >= SPAN, "{busy:?}");
}
