//! Panics of all kinds of user code, in each state of a task. Each panic becomes the error of the
//! join handle, reaches the caller, or is dropped. Each value is dropped once, and the cell is
//! freed.
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
    /// The panics that were reported to the scheduler.
    messages: Mutex<Vec<String>>,
}

/// The scheduler. Each task has one of its own, so the number of schedulers that are left is the
/// number of cells that are not freed.
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
        panic!("not reported");
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

    /// Returns the panics that were reported since the last call.
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

/// A future that waits, and the last waker that it has seen.
struct Waits(Arc<Mutex<Option<Waker>>>, #[expect(dead_code)] Bomb);

impl Future for Waits {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        *self.0.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    }
}

/// A world and its tasks. Their futures count their drops, and panic in their drop if `explodes` is
/// set.
struct Test {
    world: Arc<World>,
    drops: Arc<AtomicUsize>,
    explodes: bool,
    tasks: usize,
}

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

    fn task(&mut self) -> (Notified<Queue>, JoinHandle<()>, Slot) {
        self.tasks += 1;
        let slot = Slot::default();
        let future = Waits(slot.clone(), self.bomb());
        let (task, join) = new(future, Queue(self.world.clone()));
        (task, join, slot)
    }

    /// Spawns a task that was polled once, in no list.
    fn idle(&mut self) -> (JoinHandle<()>, Slot) {
        let (task, join, slot) = self.task();
        assert!(matches!(task.run(), Ran::Pending));
        (join, slot)
    }

    /// Asserts that every future was dropped once, and that every cell is freed.
    fn over(self) {
        assert_eq!(self.drops.load(SeqCst), self.tasks);
        assert!(self.world.pop().is_none());
        assert_eq!(Arc::strong_count(&self.world), 1, "a cell is left");
    }
}

fn panics(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).is_err()
}

fn outcome<T>(join: JoinHandle<T>) -> Result<T, JoinError> {
    let Poll::Ready(outcome) = pin!(join).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the task is not done");
    };
    outcome
}

/// Asserts that the error of the join handle says how the future ended: cancelled, or with the
/// panic of its drop.
fn ended(join: JoinHandle<()>, explodes: bool) {
    let error = outcome(join).unwrap_err();
    assert_eq!(error.is_panic(), explodes, "{error}");
}

fn take(slot: &Slot) -> Waker {
    slot.lock().unwrap().take().unwrap()
}

/// A scheduler that panics drops the task that it was given: the task is cancelled, and the panic
/// reaches the thread that scheduled it.
#[test]
fn scheduler_panic_cancels_the_task_and_reaches_its_caller() {
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

        // The drop of the last reference schedules the task: first of a waker, then of a join
        // handle.
        let (join, slot) = test.idle();
        drop(join);
        assert!(panics(|| drop(take(&slot))));
        let (join, slot) = test.idle();
        drop(take(&slot));
        assert!(panics(|| drop(join)));
        test.over();
    }
}

#[test]
fn closure_scheduler_panic_cancels_the_task_too() {
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

#[test]
fn task_whose_future_panics_in_its_drop_ends_in_any_state() {
    let mut test = Test::new(true);
    // A queued task is dropped; or is aborted and then run; or is cancelled by an owner.
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
    // A task that waits in a list is cancelled by the owner, or is aborted and then run elsewhere.
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
    // A task whose last reference is dropped is scheduled once more, and then dropped.
    let (join, slot) = test.idle();
    drop((join, take(&slot)));
    drop(test.world.pop().unwrap());
    // A task without a join handle is dropped.
    let (task, join, _) = test.task();
    drop(join);
    drop(task);
    test.over();
}

/// The scheduler of thread-local tasks.
struct Sends;

impl ScheduleLocal for Sends {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        task.send();
    }
}

/// Notes in its drop whether the thread is panicking.
struct Panicking(Arc<AtomicBool>);

impl Drop for Panicking {
    fn drop(&mut self) {
        self.0.store(std::thread::panicking(), SeqCst);
    }
}

/// A future that holds `H` and panics in its poll. An `async` block would drop `H` itself while its
/// poll unwinds.
struct Holds<H>(H);

impl<H: Unpin> Future for Holds<H> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        panic!("poll")
    }
}

#[test]
fn a_future_that_panics_is_dropped_as_the_panic_unwinds() {
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
fn a_future_that_panics_poisons_the_mutex_whose_guard_it_holds() {
    let list = LocalOwned::new(Waker::noop().clone());
    static MUTEX: Mutex<()> = Mutex::new(());
    let (task, join) = list.spawn(Holds(MUTEX.lock().unwrap()), Sends);
    assert!(matches!(list.run(task), LocalRan::Complete));
    assert!(MUTEX.is_poisoned());
    ended(join, true);
}

/// Nothing unwinds while a cancelled future is dropped, so the drop sees a thread that does not
/// panic.
#[test]
fn a_future_that_is_cancelled_is_not_dropped_as_in_a_panic() {
    let panicking = Arc::new(AtomicBool::new(true));
    let future = Holds(Panicking(panicking.clone()));
    let (task, join) = new(future, Queue(Arc::default()));
    drop(task);
    assert!(!panicking.load(SeqCst));
    ended(join, false);
}

/// A panic in the future's drop, while the poll's panic unwinds, is caught, and so does not end the
/// process.
#[test]
fn future_panic_in_poll_and_drop_ends_the_task_once() {
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
    // The output was taken, so the panic of its drop reaches the thread that took it.
    let (task, join) = new(output(&test), Queue(test.world.clone()));
    assert!(matches!(task.run(), Ran::Complete));
    assert!(panics(|| drop(outcome(join).unwrap())));
    test.over();
}

/// Makes a waker that panics in one of its functions, and counts how many clones of it exist.
fn waker(at: &'static str, there: &Arc<AtomicUsize>) -> Waker {
    struct Inner(&'static str, Arc<AtomicUsize>);
    fn act(data: *const (), now: &str) {
        // SAFETY: each waker holds a box of this type.
        let at = unsafe { &*data.cast::<Inner>() }.0;
        assert!(at != now, "waker {now}");
    }
    fn free(data: *const ()) {
        // SAFETY: as above, and the waker is not used afterwards.
        let inner = unsafe { Box::from_raw(data.cast::<Inner>().cast_mut()) };
        inner.1.fetch_sub(1, SeqCst);
    }
    fn make(at: &'static str, there: &Arc<AtomicUsize>) -> RawWaker {
        there.fetch_add(1, SeqCst);
        RawWaker::new(
            Box::into_raw(Box::new(Inner(at, there.clone()))).cast(),
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
            let Inner(at, there) = unsafe { &*data.cast::<Inner>() };
            make(at, there)
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
    // SAFETY: the functions keep a waker's contract.
    unsafe { Waker::from_raw(make(at, there)) }
}

#[test]
fn panicking_join_waker_is_dropped_once_and_the_output_comes() {
    for at in ["clone", "wake", "drop", "nowhere"] {
        for listed in [false, true] {
            let (test, there) = (Test::new(false), Arc::new(AtomicUsize::new(0)));
            let mut owned = Owned::new(Waker::noop().clone());
            let (task, mut join) = new(async { 7 }, Queue(test.world.clone()));
            let bad = waker(at, &there);
            let poll = |join: &mut JoinHandle<_>, waker: &Waker| {
                panics(|| _ = Pin::new(join).poll(&mut Context::from_waker(waker)))
            };
            assert_eq!(poll(&mut join, &bad), at == "clone");
            // A waker replaces `bad`, and then `bad` replaces that waker: a poll does not get the
            // panic of the waker that it replaces.
            assert!(!poll(&mut join, Waker::noop()));
            assert_eq!(poll(&mut join, &bad), at == "clone");
            assert_eq!(panics(|| drop(bad)), at == "drop");
            let ran = if listed { owned.run(task) } else { task.run() };
            assert!(matches!(ran, Ran::Complete));
            assert_eq!(outcome(join).unwrap(), 7);
            assert_eq!(there.load(SeqCst), 0, "{at}");
            test.over();
        }
    }
}

#[test]
fn panicking_join_waker_lets_the_handle_drop() {
    for at in ["wake", "drop"] {
        let (mut test, there) = (Test::new(false), Arc::new(AtomicUsize::new(0)));
        let (task, mut join, _) = test.task();
        let bad = waker(at, &there);
        let _ = Pin::new(&mut join).poll(&mut Context::from_waker(&bad));
        drop(join);
        assert_eq!(panics(|| drop(bad)), at == "drop");
        drop(task);
        assert_eq!(there.load(SeqCst), 0, "{at}");
        test.over();
    }
}

/// The drop of the last reference drops the scheduler and the details, and frees the cell. The
/// panics in the drops of the scheduler and of the details are contained.
#[test]
fn panic_in_the_drop_of_a_cells_parts_is_contained() {
    let mut test = Test::new(false);
    test.world.drops_panic.store(true, SeqCst);
    // A cancelled run frees the cell.
    let (task, join, _) = test.task();
    drop(join);
    drop(task);
    // The join handle, a waker, an abort handle or a list frees the cell.
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
    // The future panics in a poll, and then in its drop.
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
    // One future panics in its drop after its last poll, and another in its drop without a poll.
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
    // The output panics in its drop: the run drops it, or the join handle does.
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
    // A join waker panics when it is woken, when another waker replaces it, or when the handle
    // drops it. The last waker was left behind by a poll whose own waker could not be cloned.
    for (at, then) in [
        ("wake", "run"),
        ("drop", "another"),
        ("drop", "go"),
        ("drop", "stay"),
    ] {
        let there = Arc::new(AtomicUsize::new(0));
        let (task, mut join) = new(async {}, queue());
        let poll = |join: &mut JoinHandle<()>, waker: &Waker| {
            panics(|| _ = Pin::new(join).poll(&mut Context::from_waker(waker)))
        };
        let bad = waker(at, &there);
        poll(&mut join, &bad);
        panics(|| drop(bad));
        match then {
            "run" => {}
            "another" => assert!(!poll(&mut join, Waker::noop())),
            "go" => drop(join),
            _ => {
                assert!(poll(&mut join, &waker("clone", &there)));
                drop(join);
                assert!(world.messages().is_empty());
            }
        }
        assert!(matches!(task.run(), Ran::Complete));
        assert_eq!(world.messages(), [format!("waker {at}")], "{then}");
        assert_eq!(there.load(SeqCst), 0, "{then}");
    }
    drop(world);
    test.over();
}

/// The join handle gets the payload of the first panic. The drop of that payload panics again; the
/// payload of this second panic is leaked, because its drop could panic forever.
#[test]
fn panic_in_a_payloads_drop_is_reported() {
    let mut test = Test::new(true);
    test.tasks += 1;
    let bomb = test.bomb();
    let future = poll_fn(move |_| -> Poll<()> {
        let Bomb { drops, explodes } = &bomb;
        let (drops, explodes) = (drops.clone(), *explodes);
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
