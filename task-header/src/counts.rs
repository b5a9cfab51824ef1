//! Counts the read-modify-writes that a task costs, for the table in the README.
use crate::{AfterPoll, Notified, Owned, Ran, Schedule, WakeKind, new, new_detached};
use std::{
    cell::RefCell,
    future::{Future, poll_fn},
    pin::Pin,
    task::{Context, Poll, Waker},
};
use sync_shim::count::counted;

thread_local!(static QUEUE: RefCell<Vec<Notified<Local>>> = RefCell::default());

/// A scheduler that costs no read-modify-write itself.
struct Local;

impl Schedule for Local {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        QUEUE.with_borrow_mut(|queue| queue.push(task));
    }
}

fn pop() -> Notified<Local> {
    QUEUE.with_borrow_mut(Vec::pop).expect("a task was woken")
}

fn rmws<R>(f: impl FnOnce() -> R) -> (R, u64) {
    let (result, counts) = counted(f);
    assert_eq!((counts.shared_rmws, counts.seqcst_fences), (0, 0));
    (result, counts.rmws)
}

/// Makes a future that is ready in its poll number `polls`. Until then each poll puts its waker
/// into the slot.
fn waits(
    polls: usize,
) -> (
    impl Future<Output = ()> + Send,
    std::sync::Arc<std::sync::Mutex<Option<Waker>>>,
) {
    let slot = std::sync::Arc::<std::sync::Mutex<Option<Waker>>>::default();
    let waker = slot.clone();
    let mut left = polls;
    let future = poll_fn(move |cx| {
        left -= 1;
        if left == 0 {
            return Poll::Ready(());
        }
        *waker.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    });
    (future, slot)
}

#[test]
fn detached_task_that_ends_in_one_poll_costs_one() {
    let (task, spawn) = rmws(|| new_detached(async {}, Local));
    let (ran, run) = rmws(|| task.run());
    assert!(matches!(ran, Ran::Complete));
    assert_eq!((spawn, run), (0, 1));
}

#[test]
fn joined_task_that_ends_in_one_poll_costs_two() {
    let ((task, join), spawn) = rmws(|| new(async {}, Local));
    let (_, run) = rmws(|| task.run());
    let ((), dropped) = rmws(|| drop(join));
    // The join handle is the last reference, and finds that out with a load.
    assert_eq!((spawn, run, dropped), (0, 2, 0));
}

#[test]
fn poll_that_pends_costs_two_and_each_kind_of_wake_one() {
    let (future, slot) = waits(4);
    let mut owned = Owned::new(Waker::noop().clone());
    let task = new_detached(future, Local);
    let (_, pending) = rmws(|| owned.run(task));
    // One read-modify-write is the future's own clone of its waker.
    assert_eq!(pending, 2 + 1);
    let waker = slot.lock().unwrap().take().unwrap();
    assert_eq!(rmws(|| waker.wake_by_ref()).1, 1);
    assert_eq!(rmws(|| waker.wake_by_ref()).1, 1);
    assert_eq!(rmws(|| drop(waker)).1, 1);
    let _ = owned.run(pop());
    let waker = slot.lock().unwrap().take().unwrap();
    assert_eq!(rmws(|| waker.wake()).1, 1);
    let _ = owned.run(pop());
    slot.lock().unwrap().take().unwrap().wake();
    let (ran, complete) = rmws(|| owned.run(pop()));
    assert!(matches!(ran, Ran::Complete));
    assert_eq!(complete, 1);
}

/// Makes a future that wakes itself in each of its polls, and completes in the third.
fn yields() -> impl Future<Output = ()> + Send {
    let mut polls = 0;
    poll_fn(move |cx| {
        polls += 1;
        cx.waker().wake_by_ref();
        if polls == 3 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
}

#[test]
fn poll_that_wakes_itself_costs_two_and_going_on_none() {
    let mut owned = Owned::new(Waker::noop().clone());
    let Ran::Notified(task) = owned.run(new_detached(yields(), Local)) else {
        panic!()
    };
    let (ran, cost) = rmws(|| owned.run(task));
    assert_eq!(cost, 2);
    let Ran::Notified(task) = ran else { panic!() };
    let _ = owned.run(task);

    let mut task = new_detached(std::future::pending::<()>(), Local);
    for expected in [1, 0, 0] {
        let owned = Some(&mut owned);
        let (ran, cost) = rmws(|| task.run_with(|| AfterPoll { owned, again: true }));
        assert_eq!(cost, expected);
        let Ran::Notified(again) = ran else { panic!() };
        task = again;
    }
}

#[test]
fn poll_that_yields_costs_none() {
    let yields = std::future::poll_fn(|cx| {
        assert!(crate::yield_now(cx.waker()));
        Poll::<()>::Pending
    });
    let mut owned = Owned::new(Waker::noop().clone());
    let mut task = new_detached(yields, Local);
    for expected in [1, 0, 0] {
        let (ran, cost) = rmws(|| owned.run(task));
        assert_eq!(cost, expected);
        let Ran::Notified(again) = ran else { panic!() };
        task = again;
    }
}

#[test]
fn completion_with_join_waker_costs_two_and_elsewhere_four() {
    let (future, slot) = waits(2);
    let (task, mut join) = new(future, Local);
    let mut owned = Owned::new(Waker::noop().clone());
    let _ = owned.run(task);
    // Another task's waker, since `Waker::noop` need not equal its clones.
    let (other, slot_of_other) = waits(2);
    let _ = owned.run(new_detached(other, Local));
    let waker = slot_of_other.lock().unwrap().take().unwrap();
    let mut cx = Context::from_waker(&waker);
    let mut poll = || Pin::new(&mut join).poll(&mut cx).is_pending();
    // The first poll clones the waker and sets the bit. A poll with the same waker costs nothing.
    assert_eq!(rmws(&mut poll), (true, 2));
    assert_eq!(rmws(&mut poll), (true, 0));
    slot.lock().unwrap().take().unwrap().wake();
    let task = pop();
    // The five read-modify-writes of the run are: the start, the completion, the wake of the other
    // task, the run's release, and the push to the owner.
    let (_, elsewhere) = rmws(|| task.run());
    let ((), owner) = rmws(|| owned.drain());
    assert_eq!((elsewhere, owner), (5, 2));
    assert!(join.is_finished());
    drop(pop());
}

#[test]
fn cancel_of_a_list_costs_up_to_four_for_each_idle_task() {
    let mut cx = Context::from_waker(Waker::noop());
    for (joined, awaited, expected) in [(false, false, 2), (true, false, 3), (true, true, 4)] {
        let mut owned = Owned::new(Waker::noop().clone());
        let (task, mut join) = new(std::future::pending::<()>(), Local);
        let _ = owned.run(task);
        assert!(!awaited || Pin::new(&mut join).poll(&mut cx).is_pending());
        let join = joined.then_some(join);
        assert_eq!(rmws(|| owned.cancel_all()).1, expected);
        drop(join);
    }
    // The task is queued: it is only aborted.
    let mut owned = Owned::new(Waker::noop().clone());
    let (task, join) = new(std::future::pending::<()>(), Local);
    let _ = owned.run(task);
    join.waker().wake();
    assert_eq!(rmws(|| owned.cancel_all()).1, 1);
    drop(pop());
}

#[test]
fn waker_costs_one_operation_and_raw_pointer_none() {
    let (task, join) = new(std::future::pending::<()>(), Local);
    let abort = join.abort_handle();
    assert_eq!(rmws(|| task.waker()).1, 1);
    assert_eq!(rmws(|| join.waker()).1, 1);
    assert_eq!(rmws(|| abort.waker()).1, 1);
    assert_eq!(rmws(|| abort.into_waker()).1, 0);
    // SAFETY: a pointer of this task, used once.
    let (task, cost) = rmws(|| unsafe { Notified::<Local>::from_raw(task.into_raw()) });
    assert_eq!(cost, 0);
    // SAFETY: as above.
    let (join, cost) = rmws(|| unsafe { crate::JoinHandle::<()>::from_raw(join.into_raw()) });
    assert_eq!(cost, 0);
    drop((task, join));
}

/// Counts the read-modify-writes of each operation on a task, by name.
fn table() -> Vec<(&'static str, u64)> {
    let mut rows = Vec::new();
    let mut owned = Owned::new(Waker::noop().clone());
    let mut row = |name, n| rows.push((name, n));

    let (task, n) = rmws(|| new_detached(async {}, Local));
    row("spawn", n);
    row(
        "run to completion in the first poll, no join handle",
        rmws(|| owned.run(task)).1,
    );
    let (task, mut join) = new(async {}, Local);
    row("the same, with a join handle", rmws(|| owned.run(task)).1);
    let mut cx = Context::from_waker(Waker::noop());
    row(
        "await of a task that is complete",
        rmws(|| assert!(Pin::new(&mut join).poll(&mut cx).is_ready())).1,
    );
    row(
        "drop of its handle, the last reference",
        rmws(|| drop(join)).1,
    );

    let (future, slot) = waits(4);
    let task = new_detached(future, Local);
    let mut in_poll = |task| {
        let (ran, n) = rmws(|| owned.run(task));
        drop(ran);
        // Leaves out the future's own clone of its waker, if it made one.
        n - u64::from(slot.lock().unwrap().is_some())
    };
    row("poll to pending: start and end", in_poll(task));
    let waker = slot.lock().unwrap().take().unwrap();
    row("wake by reference", rmws(|| waker.wake_by_ref()).1);
    row(
        "wake of a task that is queued already",
        rmws(|| waker.wake_by_ref()).1,
    );
    let (clone, n) = rmws(|| waker.clone());
    row("clone of a waker", n);
    row("drop of a waker", rmws(|| drop(clone)).1);
    drop(waker);
    in_poll(pop());
    let waker = slot.lock().unwrap().take().unwrap();
    row("wake by value", rmws(|| waker.wake()).1);
    in_poll(pop());
    slot.lock().unwrap().take().unwrap().wake();
    row(
        "poll to completion after that, on its owner: start and end",
        in_poll(pop()),
    );

    let Ran::Notified(task) = owned.run(new_detached(yields(), Local)) else {
        panic!()
    };
    let (ran, n) = rmws(|| owned.run(task));
    row("poll that wakes its own task, again and again", n);
    let Ran::Notified(task) = ran else { panic!() };
    drop(owned.run(task));
    let task = new_detached(std::future::pending::<()>(), Local);
    let goes_on = |task: Notified<Local>| {
        task.run_with(|| AfterPoll {
            owned: None,
            again: true,
        })
    };
    let Ran::Notified(task) = goes_on(task) else {
        panic!()
    };
    let (ran, n) = rmws(|| goes_on(task));
    row(
        "poll after which the runner lets the task go on, again and again",
        n,
    );
    drop(ran);

    let (future, slot) = waits(2);
    let (task, mut join) = new(future, Local);
    drop(owned.run(task));
    row(
        "await of a task that is not complete",
        rmws(|| assert!(Pin::new(&mut join).poll(&mut cx).is_pending())).1,
    );
    slot.lock().unwrap().take().unwrap().wake();
    let task = pop();
    row(
        "poll to completion elsewhere, with a join waker",
        rmws(|| drop(task.run())).1,
    );
    row("its owner drains it", rmws(|| owned.drain()).1);
    drop(join);
    rows
}

/// With `SELVEDGE_BLESS=1`, this test writes the table into the README.
#[test]
fn readme_table_equals_the_counted_costs() {
    let mut table = String::from("| | read-modify-writes |\n|---|---|\n");
    for (name, n) in self::table() {
        table += &format!("| {name} | {n} |\n");
    }
    crate::readme::holds("counts", &table);
}
