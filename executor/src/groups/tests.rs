//! Tests of groups. In most of them the time is a number that the tasks increase, so that the
//! results are exact.
use crate::{
    Builder, GroupError, GroupGone, GroupLocal, Runtime, SchedulingGroup, Tick, WithGroup, Worker,
    block_in_place, spawn, spawn_blocking, spawn_in, worker::park::ThreadPark, yield_now,
};
use futures::FutureExt;
use std::{
    future::{Future, pending},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Mutex,
        atomic::{
            AtomicBool, AtomicU64, AtomicUsize,
            Ordering::{Relaxed, SeqCst},
        },
        mpsc,
    },
    time::Duration,
};
use worker_queue::RunQueue;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// A runtime with one worker, which the test ticks. The tasks advance the clock of the groups.
struct OneWorker {
    time: Arc<AtomicU64>,
    runtime: Runtime,
    worker: Worker<ThreadPark>,
}

impl OneWorker {
    fn new() -> Self {
        Self::of(Builder::new())
    }

    fn of(builder: Builder) -> Self {
        let time = Arc::new(AtomicU64::new(0));
        let builder = builder.group_clock(time.clone());
        let (runtime, mut workers) = builder.build_driven([ThreadPark::new()]);
        let worker = workers.remove(0);
        Self {
            time,
            runtime,
            worker,
        }
    }

    fn group(&self, name: &str, shares: u32) -> SchedulingGroup {
        self.runtime.group(name).shares(shares).build().unwrap()
    }

    /// Spawns a task that never ends. It goes on in steps of 100 µs. After each step it requests
    /// the end of overdue turns, and awaits `may_end`. Returns the count of steps.
    fn steps<F: Future<Output = ()> + Send>(
        &self,
        group: &SchedulingGroup,
        may_end: impl Fn() -> F + Send + 'static,
    ) -> Arc<AtomicU64> {
        let steps = Arc::new(AtomicU64::new(0));
        let (count, time) = (steps.clone(), self.time.clone());
        let handle = self.runtime.handle().clone();
        let task = async move {
            loop {
                time.fetch_add(100 * US, Relaxed);
                count.fetch_add(1, Relaxed);
                handle.preempt_overdue_groups();
                may_end().await;
            }
        };
        drop(spawn_in(group, task).unwrap());
        steps
    }

    /// Spawns tasks that never end, each poll of which takes `nanos`. Returns the count of polls.
    fn load(&self, group: &SchedulingGroup, tasks: usize, nanos: u64) -> Arc<AtomicU64> {
        let polls = Arc::new(AtomicU64::new(0));
        for _ in 0..tasks {
            let task = busy(self.time.clone(), polls.clone(), nanos);
            drop(spawn_in(group, task).unwrap());
        }
        polls
    }

    fn run_until(&mut self, time: u64) {
        while self.time.load(Relaxed) < time {
            assert_eq!(self.worker.tick(), Tick::Ran);
        }
    }

    fn run_all(&mut self) {
        while self.worker.tick() == Tick::Ran {}
    }

    /// Whether the group has an entry in the worker's turns.
    fn knows(&self, group: &SchedulingGroup) -> bool {
        let turns = &self.runtime.handle().shared().groups.workers[0];
        turns.with(|state| state.known(&group.group).is_some())
    }

    fn runtime_of(&self, name: &str) -> Duration {
        let metrics = self.runtime.snapshot();
        metrics
            .groups
            .into_iter()
            .find(|group| group.name == name)
            .unwrap()
            .runtime
    }

    fn end(mut self) {
        drop(self.runtime);
        assert_eq!(self.worker.tick(), Tick::Ended);
    }
}

async fn busy(time: Arc<AtomicU64>, polls: Arc<AtomicU64>, nanos: u64) {
    loop {
        time.fetch_add(nanos, Relaxed);
        polls.fetch_add(1, Relaxed);
        yield_now().await;
    }
}

fn assert_near(is: u64, expected: u64, percent: u64) {
    assert!(
        is.abs_diff(expected) * 100 <= expected * percent,
        "{is}, not {expected}"
    );
}

#[test]
fn groups_with_work_run_in_proportion_to_shares() {
    let mut one = OneWorker::new();
    let (a, b, c) = (one.group("a", 100), one.group("b", 20), one.group("c", 50));
    let polls = [
        one.load(&a, 5, 1000 * US),
        one.load(&b, 3, 100 * US),
        one.load(&c, 2, 400 * US),
    ];
    one.run_until(10_000 * MS);
    let [a, b, c] = polls.map(|polls| polls.load(Relaxed));
    assert_near(a, 5882, 1);
    assert_near(b / 10, 1176, 1);
    assert_near(c * 2 / 5, 2941, 1);
    one.end();
}

#[test]
fn main_shares_its_time_with_the_groups() {
    let mut one = OneWorker::new();
    let group = one.group("a", 250);
    let main = one.runtime.handle().main_group();
    let (own, main) = (one.load(&group, 2, 10 * US), one.load(&main, 3, 10 * US));
    one.run_until(1000 * MS);
    assert_near(main.load(Relaxed), 80_000, 1);
    assert_near(own.load(Relaxed), 20_000, 1);
    assert_near(one.runtime_of("main").as_nanos() as u64, 800 * MS, 1);
    one.end();
}

/// Fails if the shares that a group got are those of its time among all groups, and not only its
/// siblings, or if a group without work counts.
#[test]
fn metrics_of_a_group_have_the_shares_that_it_got() {
    let mut one = OneWorker::new();
    let (a, b) = (one.group("a", 100), one.group("b", 300));
    let idle = one.group("idle", 600);
    let child = one.runtime.group("child").shares(7).parent(&a);
    let child = child.build().unwrap();
    assert_eq!(child.metrics().shares_got, 0);
    one.load(&child, 1, 10 * US);
    one.load(&b, 1, 10 * US);
    one.run_until(1000 * MS);
    // Of 1000 shares of main, 100, 300 and 600, as much as the time of 1 and 3 parts.
    let [child, a, b, idle] = [child, a, b, idle].map(|group| group.metrics());
    assert_eq!((child.shares, child.shares_got), (7, 7));
    assert_near(a.shares_got, 500, 2);
    assert_near(b.shares_got, 1500, 2);
    assert_eq!(
        (&*idle.name, idle.shares, idle.shares_got),
        ("idle", 600, 0)
    );
    let sum: u64 = one
        .runtime
        .snapshot()
        .groups
        .iter()
        .map(|group| group.shares_got)
        .sum();
    assert_near(sum, 2007, 1);
    one.end();
}

#[test]
fn metrics_of_a_destroyed_group_are_zero() {
    let one = OneWorker::new();
    let group = one.group("gone", 100);
    group.destroy().unwrap();
    let metrics = group.metrics();
    assert_eq!(
        (&*metrics.name, metrics.tasks, metrics.shares_got),
        ("gone", 0, 0)
    );
    let main = one.runtime.handle().main_group().metrics();
    assert_eq!((&*main.name, main.shares), ("main", 1000));
    one.end();
}

#[test]
fn children_divide_the_time_of_their_parent() {
    let mut one = OneWorker::new();
    let parent = one.group("parent", 100);
    let other = one.group("other", 100);
    let child = |name, shares| {
        let child = one.runtime.group(name).shares(shares);
        child.parent(&parent).build().unwrap()
    };
    let (x, y) = (child("x", 30), child("y", 10));
    let polls = [&other, &x, &y].map(|group| one.load(group, 1, 50 * US));
    one.run_until(4000 * MS);
    let [other, x, y] = polls.map(|polls| polls.load(Relaxed));
    assert_near(other, 40_000, 1);
    assert_near(x, 30_000, 1);
    assert_near(y, 10_000, 1);
    assert!(parent.destroy().is_err(), "it has children");
    one.end();
}

#[test]
fn idle_group_earns_no_credit() {
    let mut one = OneWorker::new();
    let (a, b) = (one.group("a", 100), one.group("b", 100));
    let first = one.load(&a, 1, 100 * US);
    one.run_until(500 * MS);
    let second = one.load(&b, 1, 100 * US);
    let before = first.load(Relaxed);
    one.run_until(700 * MS);
    assert_near(first.load(Relaxed) - before, 1000, 2);
    assert_near(second.load(Relaxed), 1000, 2);
    one.end();
}

#[test]
fn new_shares_take_effect_at_once() {
    let mut one = OneWorker::new();
    let (a, b) = (one.group("a", 100), one.group("b", 100));
    let polls = [one.load(&a, 1, 100 * US), one.load(&b, 1, 100 * US)];
    one.run_until(100 * MS);
    b.set_shares(300).unwrap();
    let before = polls.each_ref().map(|polls| polls.load(Relaxed));
    one.run_until(500 * MS);
    let [a, b] = [0, 1].map(|i| polls[i].load(Relaxed) - before[i]);
    assert_near(a, 1000, 2);
    assert_near(b, 3000, 2);
    one.end();
}

#[test]
fn tasks_of_a_group_take_turns() {
    let mut one = OneWorker::new();
    let group = one.group("a", 100);
    let polls = [(); 5].map(|()| one.load(&group, 1, 100 * US));
    one.run_until(100 * MS); // By now all tasks are in the worker's list for the group.
    let before = polls.each_ref().map(|polls| polls.load(Relaxed));
    one.run_until(600 * MS);
    for (polls, before) in polls.iter().zip(before) {
        assert!((polls.load(Relaxed) - before).abs_diff(1000) <= 1);
    }
    one.end();
}

/// A turn lasts for the quota, and then at most until the end of the poll under way.
#[test]
fn turn_ends_after_the_quota() {
    let mut one = OneWorker::of(Builder::new().group_quota(Duration::from_millis(2)));
    let order = Arc::new(Mutex::new(Vec::new()));
    for name in ["a", "b"] {
        let (group, order, time) = (one.group(name, 100), order.clone(), one.time.clone());
        let task = async move {
            loop {
                order.lock().unwrap().push(name);
                time.fetch_add(300 * US, Relaxed);
                yield_now().await;
            }
        };
        drop(spawn_in(&group, task).unwrap());
    }
    one.run_until(100 * MS);
    let order = order.lock().unwrap();
    let turns: Vec<_> = order
        .chunk_by(|one, next| one == next)
        .map(<[_]>::len)
        .collect();
    let whole = &turns[1..turns.len() - 1];
    assert!(whole.iter().all(|polls| *polls == 7), "{turns:?}");
    drop(order);
    one.end();
}

#[test]
fn panic_is_charged_to_its_group() {
    let mut one = OneWorker::new();
    let group = one.group("a", 100);
    let other = one.group("b", 100);
    let (time, polls) = (one.time.clone(), one.load(&other, 1, MS));
    let task = spawn_in(&group, async move {
        time.fetch_add(20 * MS, Relaxed);
        panic!("it takes long to fail");
    });
    one.run_until(21 * MS);
    assert_eq!(one.runtime_of("a"), Duration::from_millis(20));
    let next = one.load(&group, 1, MS);
    one.run_until(40 * MS);
    assert!(next.load(Relaxed) <= 1, "the others had less until now");
    assert!(polls.load(Relaxed) >= 18);
    assert!(
        futures::executor::block_on(task.unwrap())
            .unwrap_err()
            .is_panic()
    );
    one.end();
}

#[test]
fn task_spawned_by_a_task_is_in_its_group() {
    let mut one = OneWorker::new();
    let group = one.group("a", 100);
    let (sender, names) = mpsc::channel();
    let task = async move {
        let said = |sender: &mpsc::Sender<String>| {
            let name = SchedulingGroup::current().name();
            sender.send(name).unwrap();
        };
        said(&sender);
        let child = sender.clone();
        spawn(async move { said(&child) }).await.unwrap();
        let handle = crate::Handle::current();
        let child = sender.clone();
        handle.spawn(async move { said(&child) }).await.unwrap();
        let main = handle.main_group();
        spawn_in(&main, async move { said(&sender) })
            .unwrap()
            .await
            .unwrap();
    };
    drop(spawn_in(&group, task).unwrap());
    one.run_all();
    assert_eq!(names.iter().collect::<Vec<_>>(), ["a", "a", "a", "main"]);
    group.destroy().unwrap();
    one.end();
}

#[test]
fn closure_and_blocking_poll_keep_the_group() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let group = runtime.group("a").build().unwrap();
    let name = || SchedulingGroup::current().name();
    let task = spawn_in(&group, async move {
        let closure = spawn_blocking(move || {
            let handle = crate::Handle::current();
            (
                name(),
                handle
                    .block_on(handle.spawn(async move { name() }))
                    .unwrap(),
            )
        });
        let in_closure = closure.await.unwrap();
        let (sender, receiver) = mpsc::channel();
        spawn(async move { sender.send(()).unwrap() });
        let in_place = block_in_place(|| {
            receiver.recv().unwrap(); // Another thread has the core, and ran the task that sends.
            name()
        });
        let after = spawn(async move { name() }).await.unwrap();
        [in_closure.0, in_closure.1, in_place, after]
    });
    assert_eq!(runtime.block_on(task.unwrap()).unwrap(), ["a"; 4]);
    let outside = runtime.block_on(runtime.spawn_blocking(name)).unwrap();
    assert_eq!(outside, "main");
    group.destroy().unwrap();
}

/// In `block_in_place` a driven worker stays with its task, but is hidden from the closure. Then a
/// blocking thread ticks the worker, in a closure that a task of another group spawned.
///
/// Fails if the closure of `block_in_place`, or a task that it spawns, is in another group than the
/// task: in main, or in the group of the closure that ticks.
#[test]
fn blocking_poll_of_a_driven_worker_keeps_the_group() {
    fn name() -> String {
        SchedulingGroup::current().name()
    }
    async fn names() -> [String; 3] {
        let (closure, spawned) = block_in_place(|| (name(), spawn(async { name() })));
        [closure, spawned.await.unwrap(), name()]
    }
    let mut one = OneWorker::new();
    let (a, ticks) = (one.group("a", 100), one.group("ticks", 100));
    let in_a = spawn_in(&a, names()).unwrap();
    one.run_all();
    assert_eq!(in_a.now_or_never().unwrap().unwrap(), ["a"; 3]);

    let (sender, receiver) = mpsc::channel::<OneWorker>();
    let closure = move || {
        let mut one = receiver.recv().unwrap();
        one.run_all();
        (one, name())
    };
    let spawns = async move { [spawn_blocking(closure)] };
    let spawns = spawn_in(&ticks, spawns).unwrap();
    one.run_all();
    let [closure] = spawns.now_or_never().unwrap().unwrap();
    let (in_a, in_main) = (spawn_in(&a, names()).unwrap(), one.runtime.spawn(names()));
    sender.send(one).unwrap();
    let (one, after) = futures::executor::block_on(closure).unwrap();
    assert_eq!(in_a.now_or_never().unwrap().unwrap(), ["a"; 3]);
    assert_eq!(in_main.now_or_never().unwrap().unwrap(), ["main"; 3]);
    assert_eq!(after, "ticks");
    one.end();
}

/// Fails if the group's name is locked while the formatter writes: the formatter is user code.
#[test]
fn formatter_of_a_group_may_use_the_group() {
    struct Renames(SchedulingGroup);
    impl std::fmt::Write for Renames {
        fn write_str(&mut self, _: &str) -> std::fmt::Result {
            self.0.rename("b");
            Ok(())
        }
    }
    let one = OneWorker::new();
    let group = one.group("a", 100);
    std::fmt::write(&mut Renames(group.clone()), format_args!("{group:?}")).unwrap();
    assert_eq!(group.name(), "b");
    drop(group);
    one.end();
}

/// Fails if a hook for a park or an unpark is in the group whose task the worker ran last, or runs
/// next: a worker calls these hooks for no task.
#[test]
fn hooks_for_sleeps_are_in_main() {
    let (sender, names) = mpsc::channel();
    let report = move |hook| {
        let sender = sender.clone();
        move || {
            let name = SchedulingGroup::current().name();
            sender.send((hook, name)).unwrap();
        }
    };
    let builder = Builder::new().on_thread_park(report("park"));
    let mut one = OneWorker::of(builder.on_thread_unpark(report("unpark")));
    let a = one.group("a", 100);
    let task = spawn_in(&a, yield_now()).unwrap();
    one.worker.park(); // Returns at once, as does the next one: there is a task.
    assert_eq!(one.worker.tick(), Tick::Ran);
    one.worker.park();
    one.run_all();
    task.now_or_never().unwrap().unwrap();
    one.end();
    let in_main = |hook| (hook, "main".to_string());
    let expected = ["park", "unpark", "park", "unpark"].map(in_main);
    assert_eq!(names.try_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn destroy_of_a_busy_group_changes_nothing() {
    let mut one = OneWorker::new();
    let group = one.group("a", 100);
    let polls = one.load(&group, 1, MS);
    assert!(group.destroy().is_err());
    one.run_until(3 * MS);
    assert_eq!(polls.load(Relaxed), 3);
    assert_eq!(group.tasks(), 1);
    assert!(one.runtime.handle().main_group().destroy().is_err());
    one.end();
}

#[test]
fn destroyed_group_refuses_and_returns_the_future() {
    let mut one = OneWorker::new();
    let group = one.group("a", 100);
    let task = spawn_in(&group, async { 7 }).unwrap();
    one.run_all();
    assert_eq!(futures::executor::block_on(task).unwrap(), 7);
    group.destroy().unwrap();
    group.destroy().unwrap();
    let GroupGone(future) = spawn_in(&group, async { 8 }).unwrap_err();
    assert_eq!(futures::executor::block_on(future), 8);
    let child = one.runtime.group("child").parent(&group).build();
    assert_eq!(child.unwrap_err(), GroupError::ParentGone);
    one.end();
}

#[test]
fn groups_come_and_go_in_the_same_place() {
    let mut one = OneWorker::new();
    let ran = Arc::new(AtomicUsize::new(0));
    for round in 0..100 {
        let parent = one.group("parent", 100);
        let child = one.runtime.group("child").parent(&parent).build().unwrap();
        let other = one.group("other", 1 + round);
        for group in [&parent, &child, &other] {
            let ran = ran.clone();
            let task = async move {
                yield_now().await;
                ran.fetch_add(1, Relaxed);
            };
            drop(spawn_in(group, task).unwrap());
        }
        one.run_all();
        for group in [child, parent, other] {
            group.destroy().unwrap();
        }
    }
    assert_eq!(ran.load(Relaxed), 300);
    let groups = one.runtime.snapshot().groups;
    assert_eq!(groups.len(), 1, "main is left: {groups:?}");
    one.end();
}

/// A worker's task is in a long `syscall`, and other tasks are queued on that worker: then the
/// monitor hands the worker to another thread. It must do so even if nobody may steal the tasks.
///
/// Fails if the monitor counts only tasks that a thief may take.
#[test]
fn monitor_finds_the_work_of_a_sharded_worker() {
    let mut one = OneWorker::of(Builder::new().sharded(true));
    let has_work = |one: &OneWorker| one.runtime.handle().shared().has_work_for(0);
    let spawns = async { (0..2).for_each(|_| drop(spawn(async {}))) };
    drop(one.runtime.spawn(spawns));
    assert_eq!(one.worker.tick(), Tick::Ran);
    assert!(has_work(&one), "a task in the ring");
    one.run_all();
    assert!(!has_work(&one));
    let group = one.group("a", 100);
    let spawns = async { (0..2).for_each(|_| drop(spawn(async {}))) };
    drop(spawn_in(&group, spawns).unwrap());
    assert_eq!(one.worker.tick(), Tick::Ran);
    assert!(has_work(&one), "tasks in a list");
    one.end();
}

/// Two groups always have work. A third group has a task now and then. With a goal for latency this
/// task waits for a few polls of the other groups, and not for a turn as long as the quota.
///
/// Fails if the worker's fair queue does not know the goal.
#[test]
fn goal_for_latency_shortens_the_turns_of_others() {
    let wait = |goal: Option<Duration>| {
        let mut one = OneWorker::new();
        let (a, b) = (one.group("a", 100), one.group("b", 100));
        let reads = one.runtime.group("reads").shares(100);
        let reads = goal.map_or(reads.clone(), |goal| reads.latency(goal));
        let reads = reads.build().unwrap();
        assert_eq!(reads.latency(), goal);
        let _polls = [one.load(&a, 1, 10 * US), one.load(&b, 1, 10 * US)];
        let longest = Arc::new(AtomicU64::new(0));
        for round in 1..100 {
            one.run_until(round * 1_330 * US);
            let (time, longest) = (one.time.clone(), longest.clone());
            let begun = time.load(Relaxed);
            let read = async move {
                longest.fetch_max(time.load(Relaxed) - begun, Relaxed);
            };
            drop(spawn_in(&reads, read).unwrap());
        }
        one.run_until(200 * MS);
        one.end();
        longest.load(Relaxed)
    };
    assert!(wait(None) >= 300 * US, "turns last for the quota");
    let waited = wait(Some(Duration::from_micros(20)));
    assert!(waited <= 50 * US, "{waited} ns");
}

/// Fails, by an overflow of the stack, if a group's ancestors are added or dropped by recursion.
#[test]
fn deeply_nested_groups_run_and_end() {
    let mut one = OneWorker::new();
    let mut last = one.group("first", 100);
    for _ in 0..50_000 {
        let child = one.runtime.group("child").parent(&last);
        last = child.build().unwrap();
    }
    let ran = Arc::new(AtomicBool::new(false));
    let done = ran.clone();
    let task = async move { done.store(true, Relaxed) };
    drop(spawn_in(&last, task).unwrap());
    drop(last);
    one.run_all();
    assert!(ran.load(Relaxed));
    one.end();
}

/// Fails if a worker cannot go on after it has found that a group is gone but the group's child is
/// not. A worker may find this if both groups end while it looks at the groups.
#[test]
fn parent_gone_before_its_child_is_removed_with_it() {
    let mut one = OneWorker::new();
    let parent = one.group("parent", 100);
    let child = one.runtime.group("child").parent(&parent).build().unwrap();
    drop(spawn_in(&child, async {}).unwrap());
    one.run_all();
    // The parent is gone and the child is not. A worker finds the same if it looks at the child
    // before the child's end, and at the parent after the parent's end.
    parent.group.leave();
    assert!(parent.group.destroy());
    one.runtime.handle().shared().groups.changed();
    drop(spawn_in(&child, async {}).unwrap());
    one.run_all();
    assert!(one.knows(&parent) && one.knows(&child));
    assert!(child.group.destroy());
    one.runtime.handle().shared().groups.changed();
    drop(spawn_in(&one.group("other", 100), async {}).unwrap());
    one.run_all();
    assert!(!one.knows(&parent) && !one.knows(&child));
    one.end();
}

#[test]
fn shares_of_zero_are_refused() {
    let one = OneWorker::new();
    let refused = one.runtime.group("none").shares(0).build().unwrap_err();
    assert_eq!(refused, GroupError::ZeroShares);
    let group = one.group("a", 100);
    assert_eq!(group.set_shares(0), Err(GroupError::ZeroShares));
    assert_eq!(group.shares(), 100);
}

#[test]
fn parent_of_another_runtime_is_refused() {
    let (one, other) = (OneWorker::new(), OneWorker::new());
    let parent = other.group("a", 100);
    let refused = one.runtime.group("b").parent(&parent).build().unwrap_err();
    assert_eq!(refused, GroupError::OtherRuntime);
    parent.destroy().unwrap();
}

#[test]
fn dropped_future_in_a_group_aborts_its_task() {
    let mut one = OneWorker::new();
    let group = one.group("a", 100);
    let mut future = Box::pin(pending::<()>().in_group(&group));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(future.as_mut().poll(&mut cx).is_pending());
    one.run_all();
    assert!(group.destroy().is_err());
    drop(future);
    one.run_all();
    group.destroy().unwrap();
    one.end();
}

#[test]
fn panic_in_a_group_reaches_the_task_that_waits() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let group = runtime.group("a").build().unwrap();
    let panics = async { panic!("oh no") }.in_group(&group);
    let caught = catch_unwind(AssertUnwindSafe(|| runtime.block_on(panics)));
    let payload = caught.map(drop).unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"oh no"));
}

#[test]
fn value_of_a_group_is_dropped_with_it() {
    static DROPPED: AtomicUsize = AtomicUsize::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, SeqCst);
        }
    }
    static VALUE: GroupLocal<Counted> = GroupLocal::new(|| Counted);
    let one = OneWorker::new();
    let (a, b) = (one.group("a", 100), one.group("b", 100));
    assert!(Arc::ptr_eq(&VALUE.get_in(&a), &VALUE.get_in(&a)));
    drop(VALUE.get_in(&b));
    a.destroy().unwrap();
    assert_eq!(DROPPED.load(SeqCst), 1);
    drop(VALUE.get_in(&a));
    assert_eq!(
        DROPPED.load(SeqCst),
        2,
        "a value of a destroyed group is kept by nobody"
    );
    drop((a, b));
    one.end();
    assert_eq!(DROPPED.load(SeqCst), 3);
}

/// A task of main that a group's task wakes runs in main's turn, and not from the slot in the
/// group's turn.
#[test]
fn woken_task_of_main_runs_in_mains_turn() {
    let mut one = OneWorker::new();
    let group = one.group("a", 1000);
    let (sender, receiver) = async_channel::unbounded::<()>();
    let polls = Arc::new(AtomicU64::new(0));
    let (count, time) = (polls.clone(), one.time.clone());
    let main = one.runtime.spawn(async move {
        while receiver.recv().await.is_ok() {
            time.fetch_add(MS, Relaxed);
            count.fetch_add(1, Relaxed);
        }
    });
    let (sends, time) = (Arc::new(AtomicU64::new(0)), one.time.clone());
    let count = sends.clone();
    let task = async move {
        loop {
            time.fetch_add(MS, Relaxed);
            count.fetch_add(1, Relaxed);
            sender.try_send(()).unwrap();
            yield_now().await;
        }
    };
    drop(spawn_in(&group, task).unwrap());
    one.run_until(1000 * MS);
    assert_near(polls.load(Relaxed), 500, 2);
    assert_near(sends.load(Relaxed), 500, 2);
    assert!(!main.is_finished());
    one.end();
}

#[test]
fn overdue_turn_ends_at_the_next_operation() {
    let mut one = OneWorker::of(Builder::new().budget(crate::Budget::UNLIMITED));
    let (a, b) = (one.group("a", 100), one.group("b", 100));
    let operations = one.steps(&a, coop_budget::consume);
    let other = one.load(&b, 1, 500 * US);
    one.run_until(100 * MS);
    assert_near(operations.load(Relaxed), 500, 4);
    assert_near(other.load(Relaxed), 100, 4);
    assert!(one.runtime.snapshot().ended_slices > 90);
    one.end();
}

/// Fails if `yield_if_needed` does not look at the slice's flag, or if the task whose turn was
/// ended goes to the injector instead of its group's list.
#[test]
fn overdue_turn_ends_where_the_task_may_yield() {
    let mut one = OneWorker::new();
    let (a, b) = (one.group("a", 100), one.group("b", 100));
    let steps = one.steps(&a, crate::yield_if_needed);
    let other = one.load(&b, 1, 500 * US);
    one.run_until(100 * MS);
    assert_near(steps.load(Relaxed), 500, 4);
    assert_near(other.load(Relaxed), 100, 4);
    let metrics = one.runtime.snapshot();
    assert!(metrics.ended_slices > 90);
    assert_eq!(metrics.injected_tasks, 2, "the spawns");
    one.end();
}

/// The groups' clock moves on once, in a poll of the task that must let the other group's task run.
///
/// Fails without the monitor's duty `EndTurns`: no slice ends by itself here.
#[test]
fn monitor_ends_overdue_turns() {
    let time = Arc::new(AtomicU64::new(0));
    let builder = Builder::new().workers(1).group_clock(time.clone());
    let runtime = builder.endless_slices().build().unwrap();
    let [a, b] = ["a", "b"].map(|name| runtime.group(name).build().unwrap());
    let done = Arc::new(AtomicBool::new(false));
    let set = done.clone();
    let long = async move {
        for _ in 0..200 {
            yield_now().await; // The monitor starts meanwhile.
        }
        drop(spawn_in(&b, async move { set.store(true, SeqCst) }).unwrap());
        time.fetch_add(MS, Relaxed);
        while !done.load(SeqCst) {
            crate::yield_if_needed().await;
        }
    };
    runtime.block_on(spawn_in(&a, long).unwrap()).unwrap();
    assert!(runtime.snapshot().ended_slices > 0);
}

/// The nanoseconds that each group was charged, read at the beginnings of polls.
struct Charges {
    runtime: Runtime,
    groups: [SchedulingGroup; 5],
    begun: std::time::Instant,
    over: AtomicBool,
    log: Mutex<Vec<[i128; 5]>>,
}

impl Charges {
    const TOTAL: Duration = Duration::from_millis(300);

    /// Adds an entry to the log. A task calls this at the beginning of its poll. When `TOTAL` is
    /// over, this returns false, and adds nothing from then on.
    fn note(&self) -> bool {
        if self.begun.elapsed() >= Self::TOTAL {
            self.over.store(true, Relaxed);
        }
        if self.over.load(Relaxed) {
            return false;
        }
        let turns = &self.runtime.handle().shared().groups.workers[0];
        let charges = turns.with(|state| {
            self.groups.each_ref().map(|group| {
                let key = state.known(&group.group).expect("it has tasks here");
                let metrics = state.fair.metrics(key).expect("it is there");
                metrics.runtime.as_nanos() as i128
            })
        });
        self.log.lock().unwrap().push(charges);
        true
    }

    fn assert_bound(&self, siblings: [(usize, i128); 2]) {
        let log = self.log.lock().unwrap();
        let (apart, bound) = apart_and_bound(&log, sched_group::DEFAULT_QUOTA, siblings);
        let entries = log.len();
        assert!(apart <= bound, "{apart} > {bound}, {entries} entries");
    }
}

/// Returns the two sides of `|Wi/si - Wj/sj| <= (Q + Li)/si + (Q + Lj)/sj`, both multiplied by
/// `si * sj`. `Wi` is the time that group i was charged in an interval of the log, `si` are the
/// shares of the group, and `Q` is the quota. The left side is the largest over all intervals.
///
/// The worker checks between two polls whether a turn is over. So a turn lasts for at most the
/// quota plus the time from a check to the next check. `Li` is the largest charge of group i from
/// the first to the last of three entries in a row. It covers the time between two checks: each
/// poll makes one entry, so there is a check between the first and the second of the three, and
/// one between the second and the third. If the log has fewer than three entries, `Li` is the
/// charge of the whole log. `Li` includes the time in which the thread waited for a processor,
/// because the queue charges that time too.
fn apart_and_bound(
    log: &[[i128; 5]],
    quota: Duration,
    [one, two]: [(usize, i128); 2],
) -> (i128, i128) {
    let longest = |group: usize| {
        let charged = log
            .windows(log.len().clamp(1, 3))
            .map(|entries| entries[entries.len() - 1][group] - entries[0][group]);
        charged.max().unwrap_or(0)
    };
    let quota = quota.as_nanos() as i128;
    let bound = (quota + longest(one.0)) * two.1 + (quota + longest(two.0)) * one.1;
    let ahead = log
        .iter()
        .map(|charges| charges[one.0] * two.1 - charges[two.0] * one.1);
    let most = ahead.clone().max().unwrap_or(0);
    (most - ahead.min().unwrap_or(0), bound)
}

/// On a stalled machine the log may have two entries, or none, when the time is over.
///
/// Fails if the bound of a log with two entries leaves out the time between them, or if an empty
/// log has no bound.
#[test]
fn bound_of_a_short_log_includes_all_of_its_time() {
    let stalled = 400_000_000;
    let log = [[0; 5], [stalled, 0, 0, 0, 0]];
    for entries in 0..=2 {
        let siblings = [(0, 100), (1, 30)];
        let (apart, bound) = apart_and_bound(&log[..entries], Duration::ZERO, siblings);
        assert!(apart <= bound, "{apart} > {bound}, {entries} entries");
    }
}

/// The groups run on a thread of the runtime, with the system's clock. Their polls take 10 to 300
/// microseconds.
///
/// Fails, on a machine that is not too busy, if a turn takes ten times the quota.
#[test]
fn groups_on_a_thread_stay_within_the_bound() {
    let runtime = Builder::new().workers(1).build().unwrap();
    let group = |name, shares| runtime.group(name).shares(shares);
    let parent = group("parent", 150).build().unwrap();
    let groups = [
        group("a", 100).build().unwrap(),
        group("b", 30).build().unwrap(),
        group("c", 200).parent(&parent).build().unwrap(),
        group("d", 50).parent(&parent).build().unwrap(),
        parent,
    ];
    let charges = Arc::new(Charges {
        runtime,
        groups,
        begun: std::time::Instant::now(),
        over: AtomicBool::new(false),
        log: Mutex::default(),
    });
    let shared = charges.clone();
    // The tasks of all groups get to the worker's lists in one poll.
    let start = charges.runtime.spawn(async move {
        let mut tasks = Vec::new();
        for group in &shared.groups[..4] {
            for micros in [10, 70, 300] {
                let charges = shared.clone();
                let task = async move {
                    while charges.note() {
                        let begun = std::time::Instant::now();
                        while begun.elapsed() < Duration::from_micros(micros) {}
                        yield_now().await;
                    }
                };
                tasks.push(spawn_in(group, task).unwrap());
            }
        }
        tasks
    });
    for task in charges.runtime.block_on(start).unwrap() {
        charges.runtime.block_on(task).unwrap();
    }
    let [a, b, c, d, parent] = [(0, 100), (1, 30), (2, 200), (3, 50), (4, 150)];
    for siblings in [[a, b], [a, parent], [b, parent], [c, d]] {
        charges.assert_bound(siblings);
    }
}

/// Rule 9 of `groups.rs`. Fails if `is_empty` ignores the task in the field `requeued`, or if
/// `leave`, a look at the injector or at a signal, or `take_any` (for the shutdown) leaves the task
/// there.
#[test]
fn requeued_task_is_counted_published_and_taken() {
    let one = OneWorker::new();
    let polls = one.load(&one.group("a", 100), 1, US);
    let core = &**one.worker.core;
    let queued = || core.shared.groups.workers[0].queued();
    core.as_worker(|| {
        let next = |polled| {
            super::models::poll_next(core);
            assert_eq!(polls.load(Relaxed), polled);
            assert_eq!(queued(), 0);
            assert!(!core.queue.is_empty());
        };
        next(1);
        core.queue.leave(core);
        assert_eq!(queued(), 1);
        next(2);
        // The next look calls `take_share`, which asserts that the field is empty.
        core.looks.forced.set(true);
        next(3);
        // As the worker does if a signal comes after the check of `look_before_own`.
        assert!(core.look_at_signal().is_none());
        assert_eq!(queued(), 1);
        next(4);
        let task = core.queue.take_any().expect("it is requeued");
        assert!(core.queue.is_empty());
        core.queue.push_back(task, core);
    });
    one.end();
}

/// A yielded task of a group waits behind the others of its group, and before a task that a later
/// poll spawns.
#[test]
fn requeued_task_keeps_its_place() {
    let one = OneWorker::new();
    let (group, order) = (one.group("a", 100), Arc::new(Mutex::new(Vec::new())));
    for name in ["first", "second"] {
        let (inner, order) = (order.clone(), order.clone());
        let task = async move {
            order.lock().unwrap().push(name);
            yield_now().await;
            order.lock().unwrap().push(name);
            drop(spawn(async move { inner.lock().unwrap().push("spawned") }));
        };
        drop(spawn_in(&group, task).unwrap());
    }
    let core = &**one.worker.core;
    core.as_worker(|| (0..6).for_each(|_| super::models::poll_next(core)));
    let order: Vec<_> = order.lock().unwrap().drain(..).collect();
    let expected = ["first", "second", "first", "second", "spawned", "spawned"];
    assert_eq!(order, expected);
    one.end();
}

fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}

/// Tasks of 50 groups run on real threads. They are spawned from outside and by tasks, woken by
/// other tasks, and stolen. Each task counts itself once, and no group is left with a task.
#[test]
fn random_tasks_of_fifty_groups_run_once_each() {
    const TASKS: usize = 100_000;
    let runtime = Builder::new().workers(4).ring_capacity(16).build().unwrap();
    let mut seed = 0x9e37_79b9;
    let mut groups: Vec<SchedulingGroup> = Vec::new();
    for n in 0..50 {
        let group = runtime
            .group(format!("{n}"))
            .shares(1 + random(&mut seed) as u32 % 1000);
        let parent = groups.get(random(&mut seed) as usize % 100).cloned();
        let group = parent
            .iter()
            .fold(group, |group, parent| group.parent(parent));
        groups.push(group.build().unwrap());
    }
    let groups = Arc::new(groups);
    let ran: Arc<Vec<AtomicUsize>> = Arc::new((0..TASKS).map(|_| AtomicUsize::new(0)).collect());
    let (sender, receiver) = async_channel::unbounded();
    let mut spawners = Vec::new();
    for first in (0..TASKS).step_by(1000) {
        let (groups, ran, sender) = (groups.clone(), ran.clone(), sender.clone());
        let receiver = receiver.clone();
        let mut seed = seed ^ (first as u64 + 1);
        let spawner = groups[random(&mut seed) as usize % 50].clone();
        let spawner = spawn_in(&spawner, async move {
            for n in first..first + 1000 {
                let (ran, sender, receiver) = (ran.clone(), sender.clone(), receiver.clone());
                let kind = random(&mut seed) % 4;
                let task = async move {
                    match kind {
                        0 => yield_now().await,
                        1 => sender.send(()).await.unwrap(),
                        2 => drop(receiver.try_recv()),
                        _ => {}
                    }
                    ran[n].fetch_add(1, Relaxed);
                };
                let group = &groups[random(&mut seed) as usize % 50];
                match random(&mut seed) % 8 {
                    0 => drop(spawn(task)),
                    _ => drop(spawn_in(group, task).unwrap()),
                }
                if n % 100 == 0 {
                    yield_now().await;
                }
            }
        });
        spawners.push(spawner.unwrap());
    }
    for spawner in spawners {
        runtime.block_on(spawner).unwrap();
    }
    while runtime.snapshot().live_tasks > 0 {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(ran.iter().all(|ran| ran.load(Relaxed) == 1));
    let mut left: Vec<_> = groups.iter().collect();
    left.reverse(); // In `groups`, children come after their parents.
    for group in left {
        group.destroy().unwrap();
    }
}

/// The shutdown pops the tasks one by one. Fails if each pop begins its search at the first group:
/// with as many groups as tasks, the shutdown then takes the square of their number.
#[test]
fn shutdown_continues_at_the_group_of_the_previous_pop() {
    let mut one = OneWorker::new();
    let groups = ["a", "b", "c"].map(|name| one.group(name, 100));
    let spawned = groups.clone();
    one.runtime.spawn_detached(async move {
        for group in &spawned {
            drop(spawn_in(group, pending::<()>()).unwrap());
        }
    });
    assert_eq!(one.worker.tick(), Tick::Ran);
    let place = |task: &crate::worker::scheduler::Task| {
        let of = |group: &SchedulingGroup| {
            Arc::as_ptr(&group.group) == task.scheduler().group().as_ptr()
        };
        groups.iter().position(of)
    };
    let turns = &one.runtime.handle().shared().groups.workers[0];
    let places = turns.with(|state| {
        let [first, second] = [(); 2].map(|()| state.pop_any().unwrap());
        let mut places = [&first, &second].map(place).to_vec();
        state.push(first);
        let [third, fourth] = [(); 2].map(|()| state.pop_any().unwrap());
        places.extend([&third, &fourth].map(place));
        for task in [second, third, fourth] {
            state.push(task);
        }
        places
    });
    assert_eq!(places, [Some(0), Some(1), Some(2), Some(0)]);
    one.end();
}

/// The tasks of two workers on real threads are always ready. No task is lost when it is stolen,
/// and the end of the runtime drops all tasks.
#[test]
fn end_drops_the_tasks_of_all_groups() {
    let dropped = Arc::new(AtomicUsize::new(0));
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    for sharded in [false, true] {
        let runtime = Builder::new().workers(2).sharded(sharded).build().unwrap();
        let groups = [1, 2, 3].map(|n| runtime.group("g").shares(n).build().unwrap());
        for n in 0..300 {
            let counted = Counted(dropped.clone());
            let task = async move {
                let _counted = counted;
                loop {
                    yield_now().await;
                }
            };
            drop(spawn_in(&groups[n % 3], task).unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
        drop(runtime);
        assert_eq!(dropped.swap(0, SeqCst), 300);
        for group in groups {
            group.destroy().unwrap();
        }
    }
}

/// An idle worker takes a group's task that waits on the other worker.
#[test]
fn idle_worker_steals_the_tasks_of_a_group() {
    let runtime = Builder::new().workers(2).build().unwrap();
    let group = runtime.group("a").build().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let set = done.clone();
    let task = spawn_in(&group, async move {
        let other = spawn(async move { set.store(true, SeqCst) });
        // This task blocks its worker, so only a thief can run the other task.
        while !done.load(SeqCst) {
            std::thread::yield_now();
        }
        other.await.unwrap();
    });
    runtime.block_on(task.unwrap()).unwrap();
}
