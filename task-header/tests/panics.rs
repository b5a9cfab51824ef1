//! User code of each kind panics, in each state of a task. Each panic becomes the error of the join
//! handle, or reaches the caller, or is caught and goes no further. Each value is dropped once, and
//! the cell is freed.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use std::{
    any::Any,
    collections::VecDeque,
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, RawWaker, RawWakerVTable, Waker},
};
use task_header::{
    Builder, JoinError, JoinHandle, LocalNotified, LocalOwned, LocalRan, Notified, Owned, Ran,
    Schedule, ScheduleLocal, TaskRef, WakeKind, new, new_detached, spawn,
};

/// The state that the tasks of one test share.
#[derive(Default)]
struct World {
    queue: Mutex<VecDeque<Notified<Queue>>>,
    schedule_panics: AtomicBool,
    drops_panic: AtomicBool,
    /// The messages of the panics that were reported to the scheduler, or "?" for a panic without a
    /// message.
    messages: Mutex<Vec<String>>,
}

/// The scheduler of a task. Each task has a `Queue` of its own, so the number of `Queue`s that are
/// left is the number of cells that are not freed.
struct Queue(Arc<World>);

impl Schedule for Queue {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let world = task.scheduler().0.clone();
        assert!(!world.schedule_panics.load(SeqCst), "schedule");
        let mut queue = world.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.push_back(task);
    }

    fn panicked(task: TaskRef<'_, Self>, payload: &(dyn Any + Send)) {
        let text = payload.downcast_ref::<String>().cloned();
        let text = text.or_else(|| Some(String::from(*payload.downcast_ref::<&str>()?)));
        let mut messages = task.scheduler().0.messages.lock().unwrap();
        messages.push(text.unwrap_or_else(|| String::from("?")));
        drop(messages);
        // The caller catches this panic, and does not report it.
        panic!("panicked");
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if self.0.drops_panic.load(SeqCst) && !std::thread::panicking() {
            panic!("scheduler's drop");
        }
    }
}

impl World {
    fn pop(&self) -> Option<Notified<Queue>> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    }

    /// Returns the messages of the panics that were reported since the last call.
    fn messages(&self) -> Vec<String> {
        std::mem::take(&mut self.messages.lock().unwrap())
    }
}

/// Counts its drops, and panics in each drop if `explodes` is set.
struct Bomb {
    drops: Arc<AtomicUsize>,
    explodes: bool,
}

impl Drop for Bomb {
    fn drop(&mut self) {
        self.drops.fetch_add(1, SeqCst);
        if self.explodes {
            panic!("drop");
        }
    }
}

/// A future that is never ready. Each poll stores its waker in the slot. The bomb counts the drops
/// of the future.
struct Waits(Slot, #[expect(dead_code)] Bomb);

impl Future for Waits {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        *self.0.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// The world of one test, and the counts of its bombs. A task with a bomb has it in its future or
/// in its output. `over` expects one counted drop for each such task.
struct Test {
    world: Arc<World>,
    /// The number of drops of bombs so far.
    drops: Arc<AtomicUsize>,
    /// Whether each bomb panics in its drop.
    explodes: bool,
    /// The number of tasks with a bomb.
    tasks: usize,
}

/// Holds the waker of a future's last poll.
type Slot = Arc<Mutex<Option<Waker>>>;

impl Test {
    fn new(explodes: bool) -> Self {
        Self {
            world: Arc::default(),
            drops: Arc::default(),
            explodes,
            tasks: 0,
        }
    }

    fn bomb(&self) -> Bomb {
        Bomb {
            drops: self.drops.clone(),
            explodes: self.explodes,
        }
    }

    /// Makes a task whose future is never ready. Also returns the slot that holds its waker.
    fn task(&mut self) -> (Notified<Queue>, JoinHandle<()>, Slot) {
        self.tasks += 1;
        let slot = Slot::default();
        let future = Waits(slot.clone(), self.bomb());
        let (task, join) = new(future, Queue(self.world.clone()));
        (task, join, slot)
    }

    /// Makes a task and polls it once. Then the task waits, and is in no list.
    fn idle(&mut self) -> (JoinHandle<()>, Slot) {
        let (task, join, slot) = self.task();
        assert!(matches!(task.run(), Ran::Pending));
        (join, slot)
    }

    /// Asserts that every bomb was dropped once, that no task is queued, and that every cell is
    /// freed.
    fn over(self) {
        assert_eq!(self.drops.load(SeqCst), self.tasks);
        assert!(self.world.pop().is_none());
        assert_eq!(Arc::strong_count(&self.world), 1, "a cell is left");
    }
}

/// Returns whether `f` panics.
fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

/// Returns the outcome of a task that has ended.
fn outcome<T>(join: JoinHandle<T>) -> Result<T, JoinError> {
    let Poll::Ready(outcome) = pin!(join).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the task has not ended");
    };
    outcome
}

/// Asserts that the task ended without output: by a panic if `explodes` is set, and otherwise by a
/// cancellation.
fn ended(join: JoinHandle<()>, explodes: bool) {
    let error = outcome(join).unwrap_err();
    assert_eq!(error.is_panic(), explodes, "{error}");
}

/// Takes the waker out of a slot.
fn take(slot: &Slot) -> Waker {
    slot.lock().unwrap().take().unwrap()
}

/// A `schedule` that panics drops the `Notified` that it got. This drop cancels the task. The panic
/// reaches the caller that scheduled the task.
#[test]
fn schedule_panic_cancels_the_task_and_reaches_the_caller() {
    for explodes in [false, true] {
        let mut test = Test::new(explodes);
        test.world.schedule_panics.store(true, SeqCst);
        let (task, join, _) = test.task();
        assert!(panics(|| task.schedule()));
        ended(join, explodes);

        let (join, slot) = test.idle();
        let waker = take(&slot);
        assert!(panics(|| waker.wake_by_ref()));
        ended(join, explodes);
        drop(waker);

        let (join, slot) = test.idle();
        assert!(panics(|| take(&slot).wake()));
        ended(join, explodes);

        let (join, slot) = test.idle();
        assert!(panics(|| join.abort()));
        ended(join, explodes);
        drop(slot);

        // The drop of a task's last reference schedules the task. For the first task here that
        // reference is a waker, and for the second task it is a join handle.
        let (join, slot) = test.idle();
        drop(join);
        assert!(panics(|| drop(take(&slot))));
        let (join, slot) = test.idle();
        drop(take(&slot));
        assert!(panics(|| drop(join)));
        test.over();
    }
}

/// A panic drops the last reference to a task, and the scheduler panics as well. The first time
/// that reference is a waker, then an abort handle, then the join handle. Fails, by an abort of the
/// process, if the second panic leaves the drop.
#[test]
fn schedule_panic_in_the_unwinding_of_another_is_contained() {
    for reference in 0..3 {
        let mut test = Test::new(false);
        let (join, slot) = test.idle();
        test.world.schedule_panics.store(true, SeqCst);
        let (waker, abort) = (take(&slot), join.abort_handle());
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            let order: [Box<dyn Any>; 3] = match reference {
                0 => [Box::new(abort), Box::new(join), Box::new(waker)],
                1 => [Box::new(join), Box::new(waker), Box::new(abort)],
                _ => [Box::new(waker), Box::new(abort), Box::new(join)],
            };
            let _dropped_in_order = order;
            panic!("first");
        }));
        assert_eq!(unwound.unwrap_err().downcast_ref(), Some(&"first"));
        test.over();
    }
}

/// Fails if a future, or the value that the closure captures, is not dropped exactly once.
#[test]
fn closure_that_panics_as_scheduler_cancels_the_task() {
    let drops = Arc::new(AtomicUsize::new(0));
    let captured = Arc::new(());
    for captures in [None, Some(captured.clone())] {
        let bomb = Bomb {
            drops: drops.clone(),
            explodes: false,
        };
        let slot = Slot::default();
        let (task, join) = spawn(Waits(slot.clone(), bomb), move |task| {
            let _held = &captures;
            drop(task);
            panic!("schedule");
        });
        assert!(matches!(task.run(), Ran::Pending));
        assert!(panics(|| take(&slot).wake()));
        ended(join, false);
    }
    assert_eq!(drops.load(SeqCst), 2);
    assert_eq!(Arc::strong_count(&captured), 1);
}

/// The closure runs its task and then panics. In the first call the task waits, with no reference
/// but that of the call. So the task is scheduled once more while the panic unwinds, and the
/// closure panics again. Fails, by an abort of the process, if that second panic leaves the drop.
#[test]
fn closure_that_panics_after_a_last_poll_panics_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let (count, dropped) = (calls.clone(), Arc::new(()));
    let held = dropped.clone();
    let future = async move {
        let _held = held;
        pending::<()>().await;
    };
    let (task, join) = spawn(future, move |task| {
        count.fetch_add(1, SeqCst);
        drop(task.run());
        panic!("schedule");
    });
    drop(join);
    assert!(panics(|| task.schedule()));
    assert_eq!(calls.load(SeqCst), 2);
    assert_eq!(Arc::strong_count(&dropped), 1);
    assert_eq!(Arc::strong_count(&calls), 1, "the cell is left");
}

#[test]
fn task_in_any_state_ends_if_its_futures_drop_panics() {
    let mut test = Test::new(true);
    // Three queued tasks. The first is dropped, the second is aborted and then run, and an owner
    // cancels the third.
    let (task, join, _) = test.task();
    drop(task);
    ended(join, true);
    let (task, join, _) = test.task();
    join.abort();
    assert!(matches!(task.run(), Ran::Complete));
    ended(join, true);
    let mut owned = Owned::new(Waker::noop().clone());
    let (task, join, _) = test.task();
    owned.cancel(task);
    ended(join, true);
    // Two tasks that wait in the owner's list. The owner cancels the first. The second is aborted,
    // and then run without the list.
    let (task, join, slot) = test.task();
    assert!(matches!(owned.run(task), Ran::Pending));
    owned.cancel_all();
    ended(join, true);
    drop(take(&slot));
    let (task, join, slot) = test.task();
    assert!(matches!(owned.run(task), Ran::Pending));
    join.abort();
    let task = test.world.pop().unwrap();
    assert!(matches!(task.run(), Ran::Complete));
    owned.drain();
    ended(join, true);
    drop(take(&slot));
    assert!(owned.is_empty());
    // The drop of a task's last reference schedules the task. Then its `Notified` is dropped.
    let (join, slot) = test.idle();
    drop((join, take(&slot)));
    drop(test.world.pop().unwrap());
    // A queued task without a join handle is dropped.
    let (task, join, _) = test.task();
    drop(join);
    drop(task);
    test.over();
}

/// The scheduler of thread-local tasks. It sends each task to the task's owner.
struct Sends;

impl ScheduleLocal for Sends {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        task.send();
    }
}

/// Stores in its drop whether the thread is panicking.
struct Panicking(Arc<AtomicBool>);

impl Drop for Panicking {
    fn drop(&mut self) {
        self.0.store(std::thread::panicking(), SeqCst);
    }
}

/// A future that holds an `H` and panics in its poll. An `async` block would not do: while a panic
/// unwinds out of its poll, the block itself drops its variables. So the `H` would be gone before
/// the task drops the future.
struct Holds<H>(H);

impl<H: Unpin> Future for Holds<H> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        panic!("poll")
    }
}

#[test]
fn future_is_dropped_while_the_panic_of_its_poll_unwinds() {
    let panicking = Arc::new(AtomicBool::new(false));
    let future = Holds(Panicking(panicking.clone()));
    let (task, join) = new(future, Queue(Arc::default()));
    assert!(matches!(task.run(), Ran::Complete));
    assert!(panicking.load(SeqCst));
    assert!(!std::thread::panicking());
    ended(join, true);

    let list = LocalOwned::new(Waker::noop().clone());
    panicking.store(false, SeqCst);
    let (task, join) = list.spawn(Holds(Panicking(panicking.clone())), Sends);
    assert!(matches!(list.run(task), LocalRan::Complete));
    assert!(panicking.load(SeqCst));
    ended(join, true);
}

#[test]
fn future_that_panics_poisons_the_mutex_whose_guard_it_holds() {
    let list = LocalOwned::new(Waker::noop().clone());
    static MUTEX: Mutex<()> = Mutex::new(());
    let (task, join) = list.spawn(Holds(MUTEX.lock().unwrap()), Sends);
    assert!(matches!(list.run(task), LocalRan::Complete));
    assert!(MUTEX.is_poisoned());
    ended(join, true);
}

/// The task is cancelled before its first poll, so the future does not panic.
#[test]
fn cancelled_future_is_dropped_while_no_panic_unwinds() {
    let panicking = Arc::new(AtomicBool::new(true));
    let future = Holds(Panicking(panicking.clone()));
    let (task, join) = new(future, Queue(Arc::default()));
    drop(task);
    assert!(!panicking.load(SeqCst));
    ended(join, false);
}

/// The future's drop panics while the panic of its poll unwinds.
///
/// Fails if the second panic leaves the guard that drops the future while the first one unwinds: a
/// panic that leaves a drop during unwinding ends the process.
#[test]
fn future_that_panics_in_poll_and_drop_ends_the_task_once() {
    let mut test = Test::new(true);
    for listed in [false, true] {
        test.tasks += 1;
        let bomb = test.bomb();
        let future = poll_fn(move |_| -> Poll<()> {
            let _bomb = &bomb;
            panic!("poll");
        });
        let (task, join) = new(future, Queue(test.world.clone()));
        let mut owned = Owned::new(Waker::noop().clone());
        let ran = if listed { owned.run(task) } else { task.run() };
        assert!(matches!(ran, Ran::Complete));
        assert!(outcome(join).unwrap_err().to_string().ends_with("poll"));
    }
    test.over();
}

#[test]
fn output_with_panicking_drop_is_dropped_once() {
    let mut test = Test::new(true);
    let output = |test: &Test| {
        let bomb = test.bomb();
        async move { bomb }
    };
    // The outputs of five tasks. The first task is detached. The join handles of the next three are
    // dropped: before the run, after it, and after it with a registered waker.
    test.tasks = 5;
    let task = new_detached(output(&test), Queue(test.world.clone()));
    assert!(matches!(task.run(), Ran::Complete));
    let (task, join) = new(output(&test), Queue(test.world.clone()));
    drop(join);
    assert!(matches!(task.run(), Ran::Complete));
    let (task, join) = new(output(&test), Queue(test.world.clone()));
    assert!(matches!(task.run(), Ran::Complete));
    drop(join);
    let (task, mut join) = new(output(&test), Queue(test.world.clone()));
    assert!(join.set_waker(Waker::noop().clone()));
    assert!(matches!(task.run(), Ran::Complete));
    drop(join);
    // The join handle returns the fifth output. The panic of the output's drop then reaches the
    // thread that drops the output.
    let (task, join) = new(output(&test), Queue(test.world.clone()));
    assert!(matches!(task.run(), Ran::Complete));
    assert!(panics(|| drop(outcome(join).unwrap())));
    test.over();
}

/// Makes a waker that panics in its function `at`: "clone", "wake" or "drop". With any other word
/// the waker never panics. `live` counts the waker and its clones, as long as they exist.
fn waker(at: &'static str, live: &Arc<AtomicUsize>) -> Waker {
    struct Inner(&'static str, Arc<AtomicUsize>);
    fn act(data: *const (), now: &str) {
        // SAFETY: the data of each waker is a live box of this type.
        let at = unsafe { &*data.cast::<Inner>() }.0;
        assert!(at != now, "waker {now}");
    }
    fn free(data: *const ()) {
        // SAFETY: as above. The waker is not used afterwards.
        let inner = unsafe { Box::from_raw(data.cast::<Inner>().cast_mut()) };
        inner.1.fetch_sub(1, SeqCst);
    }
    fn make(at: &'static str, live: &Arc<AtomicUsize>) -> RawWaker {
        live.fetch_add(1, SeqCst);
        RawWaker::new(
            Box::into_raw(Box::new(Inner(at, live.clone()))).cast(),
            &TABLE,
        )
    }
    struct Free(*const ());
    impl Drop for Free {
        fn drop(&mut self) {
            free(self.0);
        }
    }
    static TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            act(data, "clone");
            // SAFETY: as above.
            let Inner(at, live) = unsafe { &*data.cast::<Inner>() };
            make(at, live)
        },
        |data| {
            let _free = Free(data);
            act(data, "wake");
        },
        |data| act(data, "wake"),
        |data| {
            let _free = Free(data);
            act(data, "drop");
        },
    );
    // SAFETY: the functions of the table fulfil the contract of a waker.
    unsafe { Waker::from_raw(make(at, live)) }
}

#[test]
fn panicking_join_waker_is_dropped_once_and_loses_no_output() {
    for at in ["clone", "wake", "drop", "nowhere"] {
        for listed in [false, true] {
            let (test, live) = (Test::new(false), Arc::new(AtomicUsize::new(0)));
            let mut owned = Owned::new(Waker::noop().clone());
            let (task, mut join) = new(async { 7 }, Queue(test.world.clone()));
            let bad = waker(at, &live);
            let poll = |join: &mut JoinHandle<_>, waker: &Waker| {
                panics(|| _ = Pin::new(join).poll(&mut Context::from_waker(waker)))
            };
            assert_eq!(poll(&mut join, &bad), at == "clone");
            // The next poll registers another waker in place of `bad`, and the poll after it
            // registers `bad` again. If the drop of the replaced waker panics, the poll does not
            // panic. (With "clone", `bad` is never registered.)
            assert!(!poll(&mut join, Waker::noop()));
            assert_eq!(poll(&mut join, &bad), at == "clone");
            assert_eq!(panics(|| drop(bad)), at == "drop");
            let ran = if listed { owned.run(task) } else { task.run() };
            assert!(matches!(ran, Ran::Complete));
            assert_eq!(outcome(join).unwrap(), 7);
            assert_eq!(live.load(SeqCst), 0, "{at}");
            test.over();
        }
    }
}

#[test]
fn join_handle_with_a_panicking_waker_drops_without_panic() {
    for at in ["wake", "drop"] {
        let (mut test, live) = (Test::new(false), Arc::new(AtomicUsize::new(0)));
        let (task, mut join, _) = test.task();
        let bad = waker(at, &live);
        let _ = Pin::new(&mut join).poll(&mut Context::from_waker(&bad));
        drop(join);
        assert_eq!(panics(|| drop(bad)), at == "drop");
        drop(task);
        assert_eq!(live.load(SeqCst), 0, "{at}");
        test.over();
    }
}

/// The drop of the last reference drops the scheduler and the details (name, place of the spawn,
/// metadata), and frees the cell. Panics in the drops of the scheduler and of the details are
/// contained.
#[test]
fn panic_in_the_drop_of_a_cells_parts_is_contained() {
    let mut test = Test::new(false);
    test.world.drops_panic.store(true, SeqCst);
    // The drop of the `Notified` cancels the task and frees the cell.
    let (task, join, _) = test.task();
    drop(join);
    drop(task);
    // The last reference is a join handle, then a waker, then an abort handle, and then twice the
    // list of an owner.
    let (task, join, _) = test.task();
    drop(task);
    ended(join, false);
    let (join, slot) = test.idle();
    join.abort();
    drop(join);
    drop(test.world.pop());
    drop(take(&slot));
    let (task, join, _) = test.task();
    let abort = join.abort_handle();
    drop(join);
    drop(task);
    drop(abort);
    let mut owned = Owned::new(Waker::noop().clone());
    let (task, join, slot) = test.task();
    assert!(matches!(owned.run(task), Ran::Pending));
    drop((join, take(&slot)));
    owned.cancel_all();
    let (task, join, slot) = test.task();
    assert!(matches!(owned.run(task), Ran::Pending));
    join.abort();
    drop((join, take(&slot)));
    drop(test.world.pop());
    owned.drain();
    // The drop of the details panics, too.
    test.tasks += 1;
    let drops = Arc::new(AtomicUsize::new(0));
    let details = Bomb {
        drops: drops.clone(),
        explodes: true,
    };
    let bomb = test.bomb();
    let future = async move {
        let _bomb = bomb;
        pending::<()>().await;
    };
    let builder = Builder::new().metadata(details);
    let (task, join) = builder.spawn(future, Queue(test.world.clone()));
    drop((task, join));
    assert_eq!(drops.load(SeqCst), 1);
    test.over();
}

#[test]
fn each_panic_of_a_tasks_code_is_reported_once() {
    let mut test = Test::new(true);
    let world = test.world.clone();
    let queue = || Queue(world.clone());
    // A future panics in its poll, and then in its drop.
    test.tasks += 1;
    let bomb = test.bomb();
    let future = poll_fn(move |_| -> Poll<()> {
        let _bomb = &bomb;
        panic!("poll");
    });
    let (task, join) = new(future, queue());
    assert!(matches!(task.run(), Ran::Complete));
    assert_eq!(world.messages(), ["poll", "drop"]);
    drop(join);
    // Two futures panic in their drops: the first after its last poll, the second without a poll.
    test.tasks += 1;
    let bomb = test.bomb();
    let future = poll_fn(move |_| {
        let _bomb = &bomb;
        Poll::Ready(())
    });
    assert!(matches!(new(future, queue()).0.run(), Ran::Complete));
    assert_eq!(world.messages(), ["drop"]);
    let (task, join, _) = test.task();
    drop(task);
    assert_eq!(world.messages(), ["drop"]);
    drop(join);
    // The drop of an output panics. The run drops the output, or the join handle does.
    for joined in [false, true] {
        test.tasks += 1;
        let bomb = test.bomb();
        let (task, join) = new(async move { bomb }, queue());
        let mut join = Some(join);
        if !joined {
            join = None;
        }
        assert!(matches!(task.run(), Ran::Complete));
        drop(join);
        assert_eq!(world.messages(), ["drop"], "{joined}");
    }
    // A join waker panics when the completion wakes it, when a poll replaces it by another waker,
    // when the join handle drops it, or when the free of the cell drops it. In the last case, a
    // poll with another waker first clears `JOIN_WAKER`. Then the clone of the other waker panics,
    // before it can replace the join waker. The join handle drops only a registered waker. So the
    // join waker stays in the slot until the cell is freed.
    for (at, by) in [
        ("wake", "completion"),
        ("drop", "poll"),
        ("drop", "handle"),
        ("drop", "free"),
    ] {
        let live = Arc::new(AtomicUsize::new(0));
        let (task, mut join) = new(async {}, queue());
        let poll = |join: &mut JoinHandle<()>, waker: &Waker| {
            panics(|| _ = Pin::new(join).poll(&mut Context::from_waker(waker)))
        };
        let bad = waker(at, &live);
        poll(&mut join, &bad);
        panics(|| drop(bad));
        match by {
            "completion" => {}
            "poll" => assert!(!poll(&mut join, Waker::noop())),
            "handle" => drop(join),
            _ => {
                assert!(poll(&mut join, &waker("clone", &live)));
                drop(join);
                assert!(world.messages().is_empty());
            }
        }
        assert!(matches!(task.run(), Ran::Complete));
        assert_eq!(world.messages(), [format!("waker {at}")], "{by}");
        assert_eq!(live.load(SeqCst), 0, "{by}");
    }
    drop(world);
    test.over();
}

/// There are three panics. The future's poll panics with a bomb as the payload, which the join
/// handle gets. Then the future's drop panics. At the end the drop of the join handle drops the
/// payload, and the payload's drop panics. The scheduler gets a report of each panic.
#[test]
fn panic_in_a_payloads_drop_is_reported() {
    let mut test = Test::new(true);
    test.tasks += 1;
    let bomb = test.bomb();
    let future = poll_fn(move |_| -> Poll<()> {
        let Bomb { drops, explodes } = &bomb;
        let (drops, explodes) = (drops.clone(), *explodes);
        // The task has a second bomb, the payload. `over` expects one drop for each task, so the
        // drop of one of the two must not count.
        drops.fetch_sub(1, SeqCst);
        std::panic::resume_unwind(Box::new(Bomb { drops, explodes }))
    });
    let (task, join) = new(future, Queue(test.world.clone()));
    assert!(matches!(task.run(), Ran::Complete));
    assert_eq!(test.world.messages(), ["?", "drop"]);
    drop(join);
    assert_eq!(test.world.messages(), ["drop"]);
    test.over();
}
