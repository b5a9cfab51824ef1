//! Tests of a set on its thread, and of wakes from other threads.
use crate::LocalSet;
use std::{
    cell::{Cell, RefCell},
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread::{self, Thread},
};

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        thread::park();
    }
}

async fn yield_now() {
    let mut yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[test]
fn tasks_run_in_turn_until_the_future_is_done() {
    let set = LocalSet::new();
    let order = Rc::new(RefCell::new(Vec::new()));
    for n in 0..3 {
        let order = order.clone();
        set.spawn_detached(async move {
            for _ in 0..2 {
                order.borrow_mut().push(n);
                yield_now().await;
            }
        });
    }
    let last = set.spawn(async { 7 });
    assert_eq!(block_on(set.run_until(last)).unwrap(), 7);
    block_on(set);
    assert_eq!(*order.borrow(), [0, 1, 2, 0, 1, 2]);
}

#[test]
fn local_set_is_ready_when_its_tasks_are_done() {
    let set = Rc::new(LocalSet::new());
    let count = Rc::new(Cell::new(0));
    let (inner, counted) = (Rc::downgrade(&set), count.clone());
    set.spawn_detached(async move {
        for _ in 0..200 {
            let count = counted.clone();
            inner.upgrade().unwrap().spawn_detached(async move {
                yield_now().await;
                count.set(count.get() + 1);
            });
        }
    });
    block_on(poll_fn(|cx| set.poll_tasks(cx)));
    assert_eq!(count.get(), 200);
}

#[test]
fn a_task_spawns_another_into_the_set_that_runs_it() {
    let set = Rc::new(LocalSet::new());
    let inner = Rc::downgrade(&set);
    let outer = set.spawn(async move {
        let set = inner.upgrade().unwrap();
        set.spawn(async { 3 }).await.unwrap()
    });
    assert_eq!(block_on(set.run_until(outer)).unwrap(), 3);
}

#[test]
fn wakes_from_another_thread_reach_the_set() {
    let set = LocalSet::new();
    let (send, receive) = mpsc::channel::<(Waker, Arc<AtomicUsize>)>();
    let waking = thread::spawn(move || {
        for (waker, set) in receive {
            set.store(1, Relaxed);
            waker.wake();
        }
    });
    let tasks: Vec<_> = (0..50)
        .map(|_| {
            let send = send.clone();
            let flag = Arc::new(AtomicUsize::new(0));
            let mut sent = false;
            let here = Rc::new(());
            set.spawn(poll_fn(move |cx| {
                let _here = &here;
                if flag.load(Relaxed) == 1 {
                    return Poll::Ready(());
                }
                if !std::mem::replace(&mut sent, true) {
                    send.send((cx.waker().clone(), flag.clone())).unwrap();
                }
                Poll::Pending
            }))
        })
        .collect();
    drop(send);
    block_on(set.run_until(async {
        for task in tasks {
            task.await.unwrap();
        }
    }));
    drop(set);
    waking.join().unwrap();
}

#[test]
fn a_spawn_between_polls_wakes_the_set() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    let set = LocalSet::new();
    set.spawn_detached(pending::<()>());
    assert!(
        set.poll_tasks(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert_eq!(count.0.load(Relaxed), 0);
    let join = set.spawn(async {});
    assert_eq!(count.0.load(Relaxed), 1);
    assert!(
        set.poll_tasks(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert!(join.is_finished());
}

#[test]
fn poll_of_a_local_set_runs_at_most_61_tasks() {
    let set = LocalSet::new();
    let polls = Rc::new(Cell::new(0));
    let counted = polls.clone();
    set.spawn_detached(async move {
        loop {
            counted.set(counted.get() + 1);
            yield_now().await;
        }
    });
    assert!(
        set.poll_tasks(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    assert_eq!(polls.get(), 61);
}

#[test]
fn local_set_drop_drops_each_future_on_its_thread() {
    let set = LocalSet::new();
    let held = Rc::new(());
    let (sender, receiver) = mpsc::channel::<Waker>();
    for _ in 0..3 {
        let held = held.clone();
        let sender = sender.clone();
        set.spawn_detached(poll_fn(move |cx| {
            let _held = &held;
            sender.send(cx.waker().clone()).unwrap();
            Poll::<()>::Pending
        }));
    }
    assert!(
        set.poll_tasks(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    let unpolled = held.clone();
    let join = set.spawn(async move { drop(unpolled) });
    let wakers: Vec<_> = receiver.try_iter().collect();
    let waking = thread::spawn(move || wakers.into_iter().for_each(Waker::wake));
    drop(set);
    assert_eq!(Rc::strong_count(&held), 1);
    waking.join().unwrap();
    assert!(matches!(block_on(join), Err(error) if error.is_cancelled()));
}

#[test]
fn abort_all_leaves_the_set_empty_after_a_poll() {
    let set = LocalSet::new();
    let joins: Vec<_> = (0..3).map(|_| set.spawn(pending::<()>())).collect();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(set.poll_tasks(&mut cx).is_pending());
    set.abort_all();
    assert!(set.poll_tasks(&mut cx).is_ready());
    assert!(joins.iter().all(task_header::JoinHandle::is_finished));
}

#[test]
fn sets_nest() {
    let outer = LocalSet::new();
    let join = outer.spawn(async {
        let inner = LocalSet::new();
        let join = inner.spawn(async {
            yield_now().await;
            4
        });
        inner.run_until(join).await.unwrap()
    });
    assert_eq!(block_on(outer.run_until(join)).unwrap(), 4);
}

#[test]
fn a_panic_stays_in_its_task() {
    let set = LocalSet::new();
    let bad = set.spawn(async { panic!("on purpose") });
    let good = set.spawn(async { 1 });
    let (bad, good) = block_on(set.run_until(async { (bad.await, good.await) }));
    let bad: Result<(), _> = bad;
    assert!(bad.unwrap_err().is_panic());
    assert_eq!(good.unwrap(), 1);
}

#[test]
fn a_handle_of_a_local_task_may_be_awaited_elsewhere() {
    let set = LocalSet::new();
    let here = Rc::new(9);
    let join = set.spawn(async move {
        yield_now().await;
        *here
    });
    let waiting = thread::spawn(move || block_on(join));
    let mut set = set;
    block_on(Pin::new(&mut set));
    assert_eq!(waiting.join().unwrap().unwrap(), 9);
}

struct Counts(AtomicUsize);

impl Wake for Counts {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn future_that_acts_on_the_set_as_it_ends_wakes_next_poller() {
    for ends in [true, false] {
        let set = LocalSet::new();
        let woken = Arc::new(Counts(AtomicUsize::new(0)));
        let driver = Waker::from(woken.clone());
        set.spawn_detached(pending::<()>());
        assert!(
            set.poll_tasks(&mut Context::from_waker(&driver))
                .is_pending()
        );
        let future = async {
            set.spawn_detached(async {});
            assert!(ends, "the future panics");
        };
        let mut future = pin!(set.run_until(future));
        let mut cx = Context::from_waker(Waker::noop());
        let poll = std::panic::AssertUnwindSafe(|| future.as_mut().poll(&mut cx));
        assert_eq!(std::panic::catch_unwind(poll).is_ok(), ends);
        assert_eq!(woken.0.load(Relaxed), 1);
    }
}

#[test]
fn abort_all_wakes_the_poller_of_the_set() {
    let set = LocalSet::new();
    let woken = Arc::new(Counts(AtomicUsize::new(0)));
    let driver = Waker::from(woken.clone());
    set.spawn_detached(pending::<()>());
    assert!(
        set.poll_tasks(&mut Context::from_waker(&driver))
            .is_pending()
    );
    set.abort_all();
    assert_eq!(woken.0.load(Relaxed), 1);
}

fn counts() -> (Arc<Counts>, Waker) {
    let counts = Arc::new(Counts(AtomicUsize::new(0)));
    (counts.clone(), Waker::from(counts))
}

/// Polls a future of its own beside the set, and is ready once `done` is set.
async fn until(set: &LocalSet, done: Rc<Cell<bool>>) {
    set.run_until(poll_fn(|_| match done.get() {
        true => Poll::Ready(()),
        false => Poll::Pending,
    }))
    .await;
}

#[test]
fn a_poller_that_ends_hands_the_set_over() {
    for drops in [true, false] {
        let (set, done) = (LocalSet::new(), Rc::new(Cell::new(false)));
        let (woken, waker) = counts();
        let mut first = pin!(until(&set, Rc::default()));
        let mut last = Box::pin(until(&set, done.clone()));
        let mut cx = Context::from_waker(&waker);
        assert!(first.as_mut().poll(&mut cx).is_pending());
        let mut cx_last = Context::from_waker(Waker::noop());
        assert!(last.as_mut().poll(&mut cx_last).is_pending());
        if drops {
            drop(last);
        } else {
            done.set(true);
            assert!(last.as_mut().poll(&mut cx_last).is_ready());
        }
        let join = set.spawn(async {});
        assert_eq!(woken.0.load(Relaxed), 1);
        assert!(first.as_mut().poll(&mut cx).is_pending());
        assert!(join.is_finished());
        set.spawn_detached(async {});
        assert_eq!(woken.0.load(Relaxed), 2);
    }
}

#[test]
fn a_poller_that_ends_hands_over_to_a_driver_by_hand() {
    let set = LocalSet::new();
    let (woken, waker) = counts();
    set.spawn_detached(pending::<()>());
    let mut cx = Context::from_waker(&waker);
    assert!(set.poll_tasks(&mut cx).is_pending());
    let mut last = Box::pin(until(&set, Rc::default()));
    let mut cx_last = Context::from_waker(Waker::noop());
    assert!(last.as_mut().poll(&mut cx_last).is_pending());
    drop(last);
    assert_eq!(woken.0.load(Relaxed), 1);
}

#[test]
fn poller_that_was_not_last_wakes_only_for_work() {
    let set = LocalSet::new();
    let (woken, waker) = counts();
    let mut cx = Context::from_waker(&waker);
    let mut cx_first = Context::from_waker(Waker::noop());
    for works in [false, true] {
        let done = Rc::new(Cell::new(false));
        let first = set.run_until(async {
            until(&set, done.clone()).await;
            if works {
                set.spawn_detached(async {});
            }
        });
        let mut first = Box::pin(first);
        let mut last = pin!(until(&set, Rc::default()));
        assert!(first.as_mut().poll(&mut cx_first).is_pending());
        assert!(last.as_mut().poll(&mut cx).is_pending());
        let before = woken.0.load(Relaxed);
        done.set(true);
        assert!(first.as_mut().poll(&mut cx_first).is_ready());
        assert_eq!(woken.0.load(Relaxed) - before, usize::from(works));
    }
}

#[test]
fn every_remaining_poller_is_woken() {
    let set = LocalSet::new();
    let (woken, waker) = counts();
    let mut cx = Context::from_waker(&waker);
    let mut pollers: Vec<_> = (0..4)
        .map(|_| Box::pin(until(&set, Rc::default())))
        .collect();
    for _ in 0..2 {
        for poller in &mut pollers {
            assert!(poller.as_mut().poll(&mut cx).is_pending());
        }
    }
    drop(pollers.remove(1));
    assert_eq!(woken.0.load(Relaxed), 0);
    drop(pollers.pop());
    assert_eq!(woken.0.load(Relaxed), 2);
}

thread_local! {
    static ON_DROP: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// A waker whose drop runs the closure in the thread's `ON_DROP`.
struct OnDrop;

impl Wake for OnDrop {
    fn wake(self: Arc<Self>) {}
}

impl Drop for OnDrop {
    fn drop(&mut self) {
        if let Some(does) = ON_DROP.take() {
            does();
        }
    }
}

#[test]
fn waker_drop_that_polls_the_set_loses_no_pollers_wake() {
    // The set is leaked. The static keeps its address where a leak checker finds it.
    static SET: AtomicPtr<LocalSet> = AtomicPtr::new(std::ptr::null_mut());
    let set: &'static LocalSet = Box::leak(Box::default());
    SET.store(std::ptr::from_ref(set).cast_mut(), Relaxed);
    let (woken, waker) = counts();
    let mut first = Box::pin(until(set, Rc::default()));
    let mut last = pin!(until(set, Rc::default()));
    let mut cx_noop = Context::from_waker(Waker::noop());
    let on_drop = Waker::from(Arc::new(OnDrop));
    assert!(
        first
            .as_mut()
            .poll(&mut Context::from_waker(&on_drop))
            .is_pending()
    );
    drop(on_drop);
    assert!(last.as_mut().poll(&mut cx_noop).is_pending());
    // Only the set has the waker `on_drop` by now. The set drops it when the first poller registers
    // another waker.
    let by_drop = Rc::new(RefCell::new(Box::pin(until(set, Rc::default()))));
    let polls = by_drop.clone();
    ON_DROP.set(Some(Box::new(move || {
        let mut cx = Context::from_waker(&waker);
        assert!(polls.borrow_mut().as_mut().poll(&mut cx).is_pending());
    })));
    assert!(first.as_mut().poll(&mut cx_noop).is_pending());
    assert!(ON_DROP.take().is_none());
    drop(first);
    set.spawn_detached(async {});
    assert_eq!(woken.0.load(Relaxed), 1);
}

#[test]
fn set_runs_new_tasks_after_cancel_all() {
    let set = LocalSet::new();
    let (woken, waker) = counts();
    let mut cx = Context::from_waker(&waker);
    let mut poller = pin!(until(&set, Rc::default()));
    let held = Rc::new(());
    let join = set.spawn({
        let held = held.clone();
        async move {
            pending::<()>().await;
            drop(held);
        }
    });
    assert!(poller.as_mut().poll(&mut cx).is_pending());
    set.cancel_all();
    assert!(set.is_empty() && Rc::strong_count(&held) == 1);
    assert!(block_on(join).unwrap_err().is_cancelled());
    assert_eq!(woken.0.load(Relaxed), 1);
    assert!(poller.as_mut().poll(&mut cx).is_pending());
    let join = set.spawn(async {});
    assert_eq!(woken.0.load(Relaxed), 2);
    assert!(poller.as_mut().poll(&mut cx).is_pending());
    assert!(join.is_finished());
}

#[test]
fn cancel_all_in_a_task_of_the_set_panics() {
    let set = Rc::new(LocalSet::new());
    let inner = Rc::downgrade(&set);
    let join = set.spawn(async move {
        let set = inner.upgrade().unwrap();
        let other = LocalSet::new();
        // The call panics also if it is made in a poll of another set within this set's poll.
        other.run_until(async { set.cancel_all() }).await;
    });
    assert!(block_on(set.run_until(join)).unwrap_err().is_panic());
}

// Fails if `next_ready` takes other threads' wakes only when the queue is empty.
#[test]
fn task_that_yields_lets_a_task_run_that_was_woken_outside() {
    let set = LocalSet::new();
    let woken = Rc::new(Cell::new(false));
    let waker = Rc::new(RefCell::new(None));
    let (seen, stored) = (woken.clone(), waker.clone());
    set.spawn_detached(poll_fn(move |cx| {
        match stored.borrow_mut().replace(cx.waker().clone()) {
            None => Poll::Pending,
            Some(_) => {
                seen.set(true);
                Poll::Ready(())
            }
        }
    }));
    set.spawn_detached(poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    }));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(set.poll_tasks(&mut cx).is_pending());
    let outside = waker.borrow().clone();
    outside.unwrap().wake();
    assert!(set.poll_tasks(&mut cx).is_pending());
    assert!(set.poll_tasks(&mut cx).is_pending());
    assert!(woken.get());
}

/// Spawns a task that ends once it is woken, and returns a function that makes the task ready.
fn spawn_held(set: &LocalSet) -> impl FnOnce() + use<> {
    let (open, waker) = (Rc::new(Cell::new(false)), Rc::new(RefCell::new(None)));
    let (opened, stored) = (open.clone(), waker.clone());
    set.spawn_detached(poll_fn(move |cx| {
        stored.replace(Some(cx.waker().clone()));
        match opened.get() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }));
    move || {
        open.set(true);
        let waker: Option<Waker> = waker.take();
        waker.expect("the task was polled").wake();
    }
}

#[test]
fn poller_that_empties_the_set_wakes_a_poller_by_hand() {
    let set = LocalSet::new();
    let release = spawn_held(&set);
    let (woken, waker) = counts();
    let mut cx = Context::from_waker(&waker);
    assert!(set.poll_tasks(&mut cx).is_pending());
    let mut last = pin!(until(&set, Rc::default()));
    let mut cx_last = Context::from_waker(Waker::noop());
    assert!(last.as_mut().poll(&mut cx_last).is_pending());
    release();
    assert_eq!(woken.0.load(Relaxed), 0);
    assert!(last.as_mut().poll(&mut cx_last).is_pending());
    assert!(set.is_empty());
    assert_eq!(woken.0.load(Relaxed), 1);
    assert!(set.poll_tasks(&mut cx).is_ready());
}

#[test]
fn try_run_that_empties_the_set_wakes_a_poller_by_hand() {
    let set = LocalSet::new();
    let release = spawn_held(&set);
    let (woken, waker) = counts();
    let mut cx = Context::from_waker(&waker);
    assert!(set.poll_tasks(&mut cx).is_pending());
    let mut last = pin!(until(&set, Rc::default()));
    let mut cx_last = Context::from_waker(Waker::noop());
    assert!(last.as_mut().poll(&mut cx_last).is_pending());
    release();
    assert_eq!(set.try_run(), Some(crate::Ran::Complete));
    assert_eq!(woken.0.load(Relaxed), 1);
}

#[test]
fn cancel_all_wakes_a_poller_by_hand_that_was_displaced() {
    let set = LocalSet::new();
    set.spawn_detached(pending::<()>());
    let (woken, waker) = counts();
    let mut cx = Context::from_waker(&waker);
    assert!(set.poll_tasks(&mut cx).is_pending());
    let mut last = pin!(until(&set, Rc::default()));
    let mut cx_last = Context::from_waker(Waker::noop());
    assert!(last.as_mut().poll(&mut cx_last).is_pending());
    set.cancel_all();
    assert_eq!(woken.0.load(Relaxed), 1);
}

// The poller that ends has never registered, so the poller by hand is the last one.
#[test]
fn poller_that_ends_after_a_try_run_wakes_a_poller_by_hand() {
    let set = LocalSet::new();
    let release = spawn_held(&set);
    let (woken, waker) = counts();
    assert!(
        set.poll_tasks(&mut Context::from_waker(&waker))
            .is_pending()
    );
    let mut ends = pin!(set.run_until(async {
        release();
        assert_eq!(set.try_run(), Some(crate::Ran::Complete));
    }));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(ends.as_mut().poll(&mut cx).is_ready());
    assert!(set.is_empty());
    assert_eq!(woken.0.load(Relaxed), 1);
}

// A poll that runs its 61 tasks registers no waker and does not look whether the set is empty.
#[test]
fn poller_that_ends_after_61_runs_wakes_a_poller_by_hand() {
    for is_displaced in [false, true] {
        let set = LocalSet::new();
        let release = spawn_held(&set);
        let (woken, waker) = counts();
        assert!(
            set.poll_tasks(&mut Context::from_waker(&waker))
                .is_pending()
        );
        let mut cx = Context::from_waker(Waker::noop());
        let mut last = pin!(until(&set, Rc::default()));
        if is_displaced {
            assert!(last.as_mut().poll(&mut cx).is_pending());
        }
        let mut release = Some(release);
        let mut ends = pin!(set.run_until(poll_fn(|_| match release.take() {
            Some(release) => {
                release();
                for _ in 1..super::TASKS_PER_POLL {
                    set.spawn_detached(async {});
                }
                Poll::Pending
            }
            None => Poll::Ready(()),
        })));
        assert!(ends.as_mut().poll(&mut cx).is_pending());
        assert!(set.is_empty());
        assert!(ends.as_mut().poll(&mut cx).is_ready());
        assert_eq!(woken.0.load(Relaxed), 1);
    }
}

/// Two places of one task poll the set. Fails if the task then wakes itself at each poll, for as
/// long as it lives.
#[test]
fn poller_of_an_empty_set_wakes_no_poller_by_hand() {
    let set = LocalSet::new();
    let (woken, waker) = counts();
    let mut cx = Context::from_waker(&waker);
    let mut other = pin!(until(&set, Rc::default()));
    for _ in 0..3 {
        assert!(set.poll_tasks(&mut cx).is_ready());
        assert!(other.as_mut().poll(&mut cx).is_pending());
    }
    assert_eq!(woken.0.load(Relaxed), 0);
    // A task that comes later wakes the last poller.
    set.spawn_detached(async {});
    assert_eq!(woken.0.load(Relaxed), 1);
}

#[test]
fn poller_by_hand_whose_waker_panics_wakes_the_others() {
    use std::task::RawWakerVTable;

    /// A waker whose clone panics.
    static UNCLONABLE: RawWakerVTable =
        RawWakerVTable::new(|_| panic!("the clone panics"), |_| {}, |_| {}, |_| {});

    let set = LocalSet::new();
    let (woken, waker) = counts();
    let mut other = pin!(until(&set, Rc::default()));
    let mut cx = Context::from_waker(&waker);
    set.spawn_detached(pending::<()>());
    assert!(other.as_mut().poll(&mut cx).is_pending());
    // SAFETY: the functions use no data, and a panic is allowed.
    let unclonable = unsafe { Waker::new(std::ptr::null(), &UNCLONABLE) };
    let poll = std::panic::AssertUnwindSafe(|| {
        let _ = set.poll_tasks(&mut Context::from_waker(&unclonable));
    });
    assert!(std::panic::catch_unwind(poll).is_err());
    set.spawn_detached(async {});
    assert!(woken.0.load(Relaxed) > 0);
    assert!(other.as_mut().poll(&mut cx).is_pending());
    assert_eq!(set.len(), 1);
}

// A set that waits for another thread displaces the waker of its poller.
#[test]
fn wait_of_a_set_contains_the_panic_of_a_displaced_waker() {
    let set = LocalSet::new();
    let on_drop = Waker::from(Arc::new(OnDrop));
    set.spawn_detached(pending::<()>());
    assert!(
        set.poll_tasks(&mut Context::from_waker(&on_drop))
            .is_pending()
    );
    drop(on_drop);
    // There is work, so the wait returns at once. A spawn would have woken the waker.
    let task = set.owned.spawn_detached(async {}, super::SetScheduler);
    set.queue.borrow_mut().push_back(task);
    ON_DROP.set(Some(Box::new(|| panic!("the drop panics"))));
    set.wait(super::BY_HAND, &mut None);
    assert!(ON_DROP.take().is_none());
}
