//! Tests of the public API on one thread. Most of the tests of panics come first.
use crate::{AfterPoll, JoinHandle, Notified, Owned, Ran, Schedule, WakeKind, new, new_detached};
use std::{
    future::{Future, pending, poll_fn},
    pin::{Pin, pin},
    ptr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, RawWaker, RawWakerVTable, Waker},
};

#[derive(Clone, Default)]
struct Queue(Arc<Mutex<Vec<Notified<Queue>>>>);

impl Queue {
    fn pop(&self) -> Option<Notified<Queue>> {
        self.0.lock().unwrap().pop()
    }
}

impl Schedule for Queue {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let queue = task.scheduler().clone();
        queue.0.lock().unwrap().push(task);
    }
}

fn poll_once<F: Future>(future: F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

/// Counts its own drops.
#[derive(Clone, Default)]
struct Drops(Arc<AtomicUsize>);

impl Drop for Drops {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

struct PanicOnDrop;

impl Drop for PanicOnDrop {
    fn drop(&mut self) {
        panic!("drop");
    }
}

fn count() -> (Arc<AtomicUsize>, Drops) {
    let drops = Drops::default();
    (drops.0.clone(), drops)
}

#[test]
fn the_output_reaches_the_handle() {
    let (task, mut join) = new(async { 6 * 7 }, Queue::default());
    assert!(poll_once(&mut join).is_pending());
    assert!(matches!(task.run(), Ran::Complete));
    assert!(join.is_finished());
    let Poll::Ready(Ok(output)) = poll_once(&mut join) else {
        panic!("no output")
    };
    assert_eq!(output, 42);
}

#[test]
fn a_panic_in_poll_reaches_the_handle_and_names_itself() {
    let (task, join) = new(async { panic!("on purpose") }, Queue::default());
    assert!(matches!(task.run(), Ran::Complete));
    let Poll::Ready(Err::<(), _>(error)) = poll_once(join) else {
        panic!("no error")
    };
    assert!(error.is_panic());
    assert!(
        error.to_string().ends_with("panicked: on purpose"),
        "{error}"
    );
    assert_eq!(
        *error.into_panic().downcast::<&str>().unwrap(),
        "on purpose"
    );
}

#[test]
fn a_panic_in_the_futures_drop_reaches_the_handle() {
    let bomb = PanicOnDrop;
    let future = poll_fn(move |_| {
        let _held = &bomb;
        Poll::Ready(())
    });
    let (task, join) = new(future, Queue::default());
    assert!(matches!(task.run(), Ran::Complete));
    assert!(matches!(poll_once(join), Poll::Ready(Err(error)) if error.is_panic()));
}

#[test]
fn a_panic_in_an_outputs_drop_stays_in_the_task() {
    let task = new_detached(async { PanicOnDrop }, Queue::default());
    assert!(matches!(task.run(), Ran::Complete));
    let (task, join) = new(async { PanicOnDrop }, Queue::default());
    assert!(matches!(task.run(), Ran::Complete));
    drop(join);
}

#[test]
fn a_panic_in_the_join_waker_stays_in_the_task() {
    struct Bomb;
    impl std::task::Wake for Bomb {
        fn wake(self: Arc<Self>) {
            panic!("wake");
        }
    }
    let (task, mut join) = new(async {}, Queue::default());
    let waker = Waker::from(Arc::new(Bomb));
    assert!(
        Pin::new(&mut join)
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    assert!(matches!(task.run(), Ran::Complete));
    assert!(matches!(poll_once(join), Poll::Ready(Ok(()))));
}

/// Makes a waker whose drop panics.
fn waker_that_panics_in_its_drop() -> Waker {
    struct Bomb(PanicOnDrop);
    impl std::task::Wake for Bomb {
        fn wake(self: Arc<Self>) {
            let _ = &self.0;
        }
    }
    Waker::from(Arc::new(Bomb(PanicOnDrop)))
}

/// Registers a clone of `waker` with the join handle, and drops `waker`.
fn leave_waker<T>(join: &mut JoinHandle<T>, waker: Waker) {
    let polled = Pin::new(join).poll(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    drop(waker);
}

#[test]
fn replaced_join_waker_panic_in_drop_stays_in_the_task() {
    let (task, mut join) = new(async { 7 }, Queue::default());
    leave_waker(&mut join, waker_that_panics_in_its_drop());
    assert!(poll_once(&mut join).is_pending());
    assert!(matches!(task.run(), Ran::Complete));
    assert!(matches!(poll_once(join), Poll::Ready(Ok(7))));
}

#[test]
fn set_waker_replaces_one_that_panics_in_its_drop() {
    let (task, mut join) = new(async { 7 }, Queue::default());
    leave_waker(&mut join, waker_that_panics_in_its_drop());
    assert!(join.set_waker(Waker::noop().clone()));
    assert!(matches!(task.run(), Ran::Complete));
    assert!(matches!(join.try_join(), Some(Ok(7))));
}

// The waker is refused at the first look at the state word.
#[test]
fn set_waker_of_a_complete_task_contains_its_drop() {
    let (task, mut join) = new(async { 7 }, Queue::default());
    assert!(matches!(task.run(), Ran::Complete));
    assert!(!join.set_waker(waker_that_panics_in_its_drop()));
    assert!(matches!(join.try_join(), Some(Ok(7))));
}

#[test]
fn owner_waker_panic_in_drop_stays_in_the_list() {
    let owned = Owned::<Queue>::new(waker_that_panics_in_its_drop());
    drop(owned);
}

// Fails if the drop of a list releases only the tasks that ended elsewhere before that drop.
#[test]
fn list_drop_releases_tasks_that_end_in_it() {
    let (freed, details) = count();
    let queue = Queue::default();
    let mut owned = Owned::new(Waker::noop().clone());
    let mut wait = |task: Notified<Queue>| {
        let waker = task.waker();
        assert!(matches!(owned.run(task), Ran::Pending));
        waker.wake();
        queue.pop().unwrap()
    };
    let builder = crate::Builder::new().metadata(details.clone());
    let last = wait(builder.spawn_detached(pending::<()>(), queue.clone()));
    let builder = crate::Builder::new().metadata((details, last));
    let first = wait(builder.spawn_detached(pending::<()>(), queue.clone()));
    drop(first);
    assert_eq!(freed.load(Relaxed), 0);
    drop(owned);
    assert_eq!(freed.load(Relaxed), 2);
}

#[test]
fn owner_waker_clone_panic_leaves_wake_to_next_release() {
    static CLONES: AtomicUsize = AtomicUsize::new(0);
    static WAKES: AtomicUsize = AtomicUsize::new(0);
    const VTABLE: RawWakerVTable = RawWakerVTable::new(
        |_| {
            assert_ne!(CLONES.fetch_add(1, Relaxed), 0, "the first one");
            RawWaker::new(ptr::null(), &VTABLE)
        },
        |_| _ = WAKES.fetch_add(1, Relaxed),
        |_| _ = WAKES.fetch_add(1, Relaxed),
        |_| (),
    );
    // SAFETY: the vtable's functions use no pointer, and any thread may call them.
    let waker = unsafe { Waker::from_raw(RawWaker::new(ptr::null(), &VTABLE)) };
    let queue = Queue::default();
    let mut owned = Owned::new(waker);
    let mut joins = [(); 2].map(|()| {
        let (task, join) = new(pending::<()>(), queue.clone());
        assert!(matches!(owned.run(task), Ran::Pending));
        join
    });
    owned.watch_releases();
    for (join, woken) in joins.iter_mut().zip([0, 1]) {
        join.abort();
        assert!(matches!(queue.pop().unwrap().run(), Ran::Complete));
        assert_eq!(WAKES.load(Relaxed), woken);
    }
    owned.drain();
    assert!(owned.is_empty());
}

#[test]
fn a_dropped_notified_cancels_its_task_there() {
    let (drops, held) = count();
    let (task, join) = new(async move { drop(held) }, Queue::default());
    drop(task);
    assert_eq!(drops.load(Relaxed), 1);
    assert!(matches!(poll_once(join), Poll::Ready(Err(error)) if error.is_cancelled()));
}

#[test]
fn an_aborted_idle_task_is_dropped_at_its_next_run() {
    let queue = Queue::default();
    let (drops, held) = count();
    let (task, join) = new(
        async move {
            let _held = held;
            pending::<()>().await;
        },
        queue.clone(),
    );
    assert!(matches!(task.run(), Ran::Pending));
    join.abort();
    join.abort();
    assert_eq!(drops.load(Relaxed), 0);
    assert!(matches!(queue.pop().unwrap().run(), Ran::Complete));
    assert_eq!(drops.load(Relaxed), 1);
    assert!(queue.pop().is_none());
    assert!(matches!(poll_once(join), Poll::Ready(Err(error)) if error.is_cancelled()));
}

/// Makes a future that aborts its own task in the first poll that finds a handle in `aborts`. If
/// `wakes` is true, each poll also wakes the task.
fn aborts_itself(
    wakes: bool,
    aborts: &Arc<Mutex<Option<crate::AbortHandle>>>,
) -> impl Future<Output = ()> + Send + use<> {
    let aborts = aborts.clone();
    poll_fn(move |cx| {
        if let Some(abort) = aborts.lock().unwrap().take() {
            abort.abort();
        }
        if wakes {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    })
}

#[test]
fn an_abort_in_a_poll_ends_the_task_with_that_poll() {
    for (wakes, again) in [(false, false), (true, false), (false, true)] {
        let (queue, (drops, held)) = (Queue::default(), count());
        let aborts = Arc::<Mutex<_>>::default();
        let inner = aborts_itself(wakes, &aborts);
        let future = async move {
            let _held = held;
            inner.await;
        };
        let (task, join) = new(future, queue.clone());
        *aborts.lock().unwrap() = Some(join.abort_handle());
        let mut owned = Owned::new(Waker::noop().clone());
        let ran = task.run_with(|| AfterPoll {
            owned: Some(&mut owned),
            again,
        });
        assert!(
            matches!(ran, Ran::Complete),
            "the task was queued once more"
        );
        assert!(queue.pop().is_none());
        assert_eq!((drops.load(Relaxed), owned.len()), (1, 0));
        assert!(matches!(poll_once(join), Poll::Ready(Err(error)) if error.is_cancelled()));
    }
}

#[test]
fn an_abort_in_a_later_poll_takes_the_task_off_its_list() {
    let (queue, aborts) = (Queue::default(), Arc::<Mutex<_>>::default());
    let (task, join) = new(aborts_itself(false, &aborts), queue.clone());
    let mut owned = Owned::new(Waker::noop().clone());
    let waker = task.waker();
    assert!(matches!(owned.run(task), Ran::Pending));
    *aborts.lock().unwrap() = Some(join.abort_handle());
    waker.wake();
    assert_eq!(owned.len(), 1);
    assert!(matches!(owned.run(queue.pop().unwrap()), Ran::Complete));
    assert_eq!(owned.len(), 0);
    assert!(queue.pop().is_none() && join.is_finished());
}

/// The runner is asked for its list after the poll. An abort at that time comes after the poll, but
/// still ends the task with the run.
#[test]
fn an_abort_after_a_poll_ends_the_task_with_the_run() {
    let queue = Queue::default();
    let (drops, held) = count();
    let future = async move {
        let _held = held;
        pending::<()>().await;
    };
    let (task, join) = new(future, queue.clone());
    let mut owned = Owned::new(Waker::noop().clone());
    let ran = task.run_in(|| {
        join.abort();
        Some(&mut owned)
    });
    assert!(matches!(ran, Ran::Complete));
    assert!(queue.pop().is_none() && join.is_finished());
    assert_eq!(drops.load(Relaxed), 1);
    owned.drain();
    assert!(owned.is_empty());
}

#[test]
fn a_task_that_nobody_can_wake_is_dropped_at_once() {
    let (drops, held) = count();
    let task = new_detached(
        async move {
            let _held = held;
            pending::<()>().await;
        },
        Queue::default(),
    );
    assert!(matches!(task.run(), Ran::Complete));
    assert_eq!(drops.load(Relaxed), 1);
}

#[test]
fn a_listed_task_waits_for_its_owner() {
    let (drops, held) = count();
    let task = new_detached(
        async move {
            let _held = held;
            pending::<()>().await;
        },
        Queue::default(),
    );
    let mut owned = Owned::new(Waker::noop().clone());
    assert!(matches!(owned.run(task), Ran::Pending));
    assert_eq!((owned.len(), drops.load(Relaxed)), (1, 0));
    owned.watch_releases();
    owned.cancel_all();
    assert_eq!((owned.len(), drops.load(Relaxed)), (0, 1));
}

#[test]
fn a_list_that_is_dropped_with_tasks_leaves_them_whole() {
    let queue = Queue::default();
    let slot = Arc::new(Mutex::new(None));
    let waker = slot.clone();
    let task = new_detached(
        poll_fn(move |cx| {
            *waker.lock().unwrap() = Some(cx.waker().clone());
            Poll::<()>::Pending
        }),
        queue.clone(),
    );
    let mut owned = Owned::new(Waker::noop().clone());
    assert!(matches!(owned.run(task), Ran::Pending));
    // No waker and no handle reaches this task. LISTED is a reference that the list never gives up,
    // so the task is no orphan, and its future leaks.
    let (drops, held) = count();
    let waits = async move {
        let _held = held;
        pending::<()>().await;
    };
    let task = new_detached(waits, queue.clone());
    assert!(matches!(owned.run(task), Ran::Pending));
    drop(owned);
    slot.lock().unwrap().take().unwrap().wake();
    drop(queue.pop().unwrap());
    assert!(queue.pop().is_none());
    assert_eq!(drops.load(Relaxed), 0);
}

#[test]
fn a_wake_in_the_poll_gives_the_task_back() {
    let (task, join) = new(
        poll_fn({
            let mut polls = 0;
            move |cx| {
                polls += 1;
                cx.waker().wake_by_ref();
                if polls == 3 {
                    Poll::Ready(polls)
                } else {
                    Poll::Pending
                }
            }
        }),
        Queue::default(),
    );
    let Ran::Notified(task) = task.run() else {
        panic!()
    };
    let Ran::Notified(task) = task.run() else {
        panic!()
    };
    assert!(matches!(task.run(), Ran::Complete));
    assert!(matches!(poll_once(join), Poll::Ready(Ok(3))));
}

#[test]
fn a_wake_after_completion_does_nothing() {
    let queue = Queue::default();
    let slot = Arc::new(Mutex::new(None));
    let waker = slot.clone();
    let (task, join) = new(
        poll_fn(move |cx| {
            *waker.lock().unwrap() = Some(cx.waker().clone());
            Poll::Ready(())
        }),
        queue.clone(),
    );
    assert!(matches!(task.run(), Ran::Complete));
    let waker = slot.lock().unwrap().take().unwrap();
    waker.wake_by_ref();
    drop(join);
    waker.wake();
    assert!(queue.pop().is_none());
}

#[test]
fn over_aligned_and_empty_futures_are_laid_out_right() {
    #[repr(align(256))]
    struct Wide(u8);
    let wide = Wide(9);
    let (task, join) = new(
        poll_fn(move |_| {
            assert_eq!((&raw const wide).addr() % 256, 0);
            Poll::Ready(wide.0)
        }),
        Queue::default(),
    );
    assert!(matches!(task.run(), Ran::Complete));
    assert!(matches!(poll_once(join), Poll::Ready(Ok(9))));
    let (task, join) = new(std::future::ready(()), Queue::default());
    assert!(matches!(task.run(), Ran::Complete));
    assert!(matches!(poll_once(join), Poll::Ready(Ok(()))));
}

#[test]
fn task_without_owner_after_first_poll_is_requeued() {
    let (dropped, held) = count();
    let task = new_detached(
        async move {
            let _held = held;
            pending::<()>().await;
        },
        Queue::default(),
    );
    let Ran::Notified(task) = task.run_in(|| None) else {
        panic!("the task is in no list and in no queue")
    };
    let mut owned = Owned::new(Waker::noop().clone());
    assert!(matches!(task.run_in(|| Some(&mut owned)), Ran::Pending));
    assert_eq!((owned.len(), dropped.load(Relaxed)), (1, 0));
    owned.cancel_all();
    assert_eq!((owned.len(), dropped.load(Relaxed)), (0, 1));
}

#[test]
fn task_going_on_is_polled_unwoken_and_listed_when_it_waits() {
    let (dropped, held) = count();
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = polls.clone();
    let (task, join) = new(
        poll_fn(move |_| {
            let _held = &held;
            counted.fetch_add(1, Relaxed);
            Poll::<()>::Pending
        }),
        Queue::default(),
    );
    let mut owned = Owned::new(Waker::noop().clone());
    let mut turn = |task: Notified<Queue>, again| {
        let owned = Some(&mut owned);
        task.run_with(|| AfterPoll { owned, again })
    };
    let Ran::Notified(task) = turn(task, true) else {
        panic!("the run does not go on")
    };
    let Ran::Notified(task) = turn(task, true) else {
        panic!("the run does not go on")
    };
    assert!(matches!(turn(task, false), Ran::Pending));
    assert_eq!((owned.len(), polls.load(Relaxed)), (1, 3));
    assert!(!join.is_finished());
    owned.cancel_all();
    assert_eq!((owned.len(), dropped.load(Relaxed)), (0, 1));
}

#[test]
fn a_task_that_goes_on_is_cancelled_by_an_abort_or_by_its_drop() {
    let again = |task: Notified<Queue>| {
        let ran = task.run_with(|| AfterPoll {
            owned: None,
            again: true,
        });
        let Ran::Notified(task) = ran else {
            panic!("the run does not go on")
        };
        task
    };
    for aborted in [true, false] {
        let (dropped, held) = count();
        let future = async move {
            let _held = held;
            pending::<()>().await;
        };
        let (task, join) = new(future, Queue::default());
        let task = again(task);
        assert_eq!(dropped.load(Relaxed), 0);
        if aborted {
            join.abort();
            assert_eq!(dropped.load(Relaxed), 0);
            assert!(matches!(task.run(), Ran::Complete));
        } else {
            drop(task);
        }
        assert_eq!(dropped.load(Relaxed), 1);
        let Poll::Ready(Err(error)) = poll_once(join) else {
            panic!("no outcome")
        };
        assert!(error.is_cancelled());
    }
}

#[test]
fn listed_task_ended_by_another_owner_is_released_by_its_own() {
    let queue = Queue::default();
    let [mut own, mut other] = [(); 2].map(|()| Owned::new(Waker::noop().clone()));
    let (task, join) = new(pending::<()>(), queue.clone());
    assert!(matches!(own.run(task), Ran::Pending));
    let stays = new_detached(pending::<()>(), queue.clone());
    assert!(matches!(other.run(stays), Ran::Pending));
    join.abort();
    assert!(matches!(other.run(queue.pop().unwrap()), Ran::Complete));
    assert_eq!((own.len(), other.len()), (1, 1));
    own.drain();
    other.cancel_all();
    assert_eq!((own.len(), other.len()), (0, 0));
}

/// Fails if the key is that of the list that ran the task last.
#[test]
fn owner_key_is_that_of_the_list_that_keeps_the_task() {
    let queue = Queue::default();
    let [mut own, mut other] = [1, 2].map(|key| Owned::with_key(Waker::noop().clone(), key));
    let mut wakes = false;
    let polled = poll_fn(move |cx| {
        if std::mem::replace(&mut wakes, true) {
            cx.waker().wake_by_ref();
        }
        Poll::<()>::Pending
    });
    let (task, join) = new(polled, queue.clone());
    assert_eq!(task.owner_key(), None);
    let waker = task.waker();
    assert!(matches!(own.run(task), Ran::Pending));
    waker.wake();
    let woken = queue.pop().unwrap();
    assert_eq!(woken.owner_key(), Some(1));
    let Ran::Notified(again) = other.run(woken) else {
        panic!("the task was woken in its poll")
    };
    assert_eq!(again.owner_key(), Some(1));
    join.abort();
    other.cancel(again);
    own.drain();
    assert_eq!((own.len(), other.len()), (0, 0));
    let unlisted = new_detached(async {}, queue).owner_key();
    assert_eq!(unlisted, None);
}

#[test]
fn listed_task_ended_without_an_owner_is_released_by_its_own() {
    let queue = Queue::default();
    let mut owned = Owned::new(Waker::noop().clone());
    let waker = Arc::<Mutex<Option<Waker>>>::default();
    let slot = waker.clone();
    let mut polls = 0;
    let (task, join) = new(
        poll_fn(move |cx| {
            polls += 1;
            match polls {
                1 => *slot.lock().unwrap() = Some(cx.waker().clone()),
                2 => cx.waker().wake_by_ref(),
                _ => return Poll::Ready(7),
            }
            Poll::Pending
        }),
        queue.clone(),
    );
    assert!(matches!(owned.run(task), Ran::Pending));
    waker.lock().unwrap().take().unwrap().wake();
    let Ran::Notified(task) = queue.pop().unwrap().run_in(|| None) else {
        panic!("the task was woken in its poll")
    };
    assert!(matches!(task.run_in(|| None), Ran::Complete));
    assert_eq!(owned.len(), 1);
    owned.drain();
    assert_eq!(owned.len(), 0);
    assert!(matches!(poll_once(join), Poll::Ready(Ok(7))));
}

/// A value that a closure captures. It has no size, but has a drop.
struct Sizeless(());

static SIZELESS: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

impl Drop for Sizeless {
    fn drop(&mut self) {
        SIZELESS.fetch_add(1, Relaxed);
    }
}

#[test]
fn closure_scheduler_lives_while_it_completes_its_last_task() {
    let guard = Sizeless(());
    let schedule = move |task: crate::Runnable| {
        drop(task.run());
        let Sizeless(()) = &guard;
        assert_eq!(SIZELESS.load(Relaxed), 0);
    };
    let (task, join) = crate::spawn(async { 7 }, schedule);
    assert!(!join.is_finished());
    drop(join);
    task.schedule();
    assert_eq!(SIZELESS.load(Relaxed), 1);

    let (dropped, held) = count();
    let schedule = move |task: crate::Runnable| {
        let held = &held;
        drop(task.run());
        assert_eq!(held.0.load(Relaxed), 0);
    };
    let (task, join) = crate::spawn(async {}, schedule);
    drop(join);
    task.schedule();
    assert_eq!(dropped.load(Relaxed), 1);
}

// The contract of `spawn_with_unchecked` names the list as a reference that drops the closure.
#[test]
fn closure_of_a_listed_task_is_dropped_by_its_list() {
    let (dropped, held) = count();
    let schedule = move |task: crate::Runnable| {
        let _held = &held;
        drop(task.run());
    };
    let mut owned = Owned::new(Waker::noop().clone());
    let (task, join) = crate::spawn(pending::<()>(), schedule);
    assert!(matches!(owned.run(task), Ran::Pending));
    join.abort();
    drop(join);
    assert_eq!(dropped.load(Relaxed), 0);
    owned.drain();
    assert_eq!(dropped.load(Relaxed), 1);
}

#[test]
fn builder_details_are_dropped_with_the_task() {
    let (dropped, held) = count();
    let task = crate::Builder::new()
        .metadata(held)
        .name(String::from("one"))
        .here()
        .spawn_detached(async {}, Queue::default());
    assert_eq!(
        (task.name(), task.location().is_some()),
        (Some("one"), true)
    );
    assert_eq!(dropped.load(Relaxed), 0);
    assert!(matches!(task.run(), Ran::Complete));
    assert_eq!(dropped.load(Relaxed), 1);
}

#[test]
fn panics_of_the_scheduler_and_of_the_details_stay_in_the_task() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("as it is freed");
        }
    }
    struct Scheduler(Bomb);
    impl Schedule for Scheduler {
        fn schedule(_: Notified<Self>, _: WakeKind) {}
    }
    let builder = crate::Builder::new().metadata(Bomb);
    let task = builder.spawn_detached(async {}, Scheduler(Bomb));
    assert!(matches!(task.run(), Ran::Complete));
}

#[test]
fn panic_in_the_choice_of_a_list_cancels_the_task() {
    let (dropped, held) = count();
    let (task, join) = new(
        async move {
            let _held = held;
            pending::<()>().await;
        },
        Queue::default(),
    );
    let run = std::panic::AssertUnwindSafe(|| task.run_in(|| panic!("no list")));
    assert!(std::panic::catch_unwind(run).is_err());
    assert_eq!(dropped.load(Relaxed), 1);
    let Poll::Ready(Err(error)) = poll_once(join) else {
        panic!()
    };
    assert!(error.is_cancelled());
}

// Fails if a task that has yielded counts as one whose future is gone.
#[cfg(feature = "std")]
#[test]
fn panic_in_the_choice_of_a_list_keeps_a_ready_output() {
    let (task, join) = new(async { 7 }, Queue::default());
    let run = std::panic::AssertUnwindSafe(|| task.run_in(|| panic!("on purpose")));
    assert!(std::panic::catch_unwind(run).is_err());
    assert!(matches!(poll_once(join), Poll::Ready(Ok(7))));
}

#[test]
fn panic_in_the_choice_of_a_list_cancels_a_task_that_yielded() {
    let (dropped, held) = count();
    let future = std::future::poll_fn(move |cx| {
        let _held = &held;
        assert!(crate::yield_now(cx.waker()));
        Poll::<()>::Pending
    });
    let (task, join) = new(future, Queue::default());
    let run = std::panic::AssertUnwindSafe(|| task.run_in_loop(|| panic!("no list")));
    assert!(std::panic::catch_unwind(run).is_err());
    assert_eq!(dropped.load(Relaxed), 1);
    let Poll::Ready(Err(error)) = poll_once(join) else {
        panic!()
    };
    assert!(error.is_cancelled());
}

#[test]
fn task_from_raw_runs_and_is_dropped_once() {
    let (dropped, held) = count();
    let future = async move { drop(held) };
    let (task, join) = new(future, Queue::default());
    let raw = task.into_raw();
    assert_eq!(raw.addr().get() % align_of::<usize>(), 0);
    // The holder of the pointer may use the lowest bit as a tag.
    let tagged = raw.as_ptr().map_addr(|address| address | 1);
    let raw = ptr::NonNull::new(tagged.map_addr(|address| address & !1)).unwrap();
    // SAFETY: `into_raw` returned the pointer, which was not used before.
    let task = unsafe { Notified::<Queue>::from_raw(raw) };
    assert_eq!(task.id(), join.id());
    assert!(matches!(task.run(), Ran::Complete));
    assert_eq!(dropped.load(Relaxed), 1);
    let (dropped, held) = count();
    let raw = new_detached(async move { drop(held) }, Queue::default()).into_raw();
    // SAFETY: as above.
    drop(unsafe { Notified::<Queue>::from_raw(raw) });
    assert_eq!(dropped.load(Relaxed), 1);
}

#[test]
fn handle_from_raw_knows_whether_its_output_was_taken() {
    for takes in [false, true] {
        let (dropped, held) = count();
        let (task, mut join) = new(async move { held }, Queue::default());
        assert!(matches!(task.run(), Ran::Complete));
        if takes {
            assert!(matches!(poll_once(&mut join), Poll::Ready(Ok(_))));
        }
        let raw = join.into_raw();
        assert_eq!(raw.addr().get() & 1, usize::from(takes));
        assert_eq!(dropped.load(Relaxed), usize::from(takes));
        // SAFETY: `into_raw` returned the pointer, which was not used before.
        let join = unsafe { JoinHandle::<Drops>::from_raw(raw) };
        assert!(join.is_finished());
        drop(join);
        assert_eq!(dropped.load(Relaxed), 1);
    }
}

#[test]
fn a_waker_of_a_handle_keeps_the_cell_and_not_the_future() {
    let (dropped, held) = count();
    let (freed, details) = count();
    let queue = Queue::default();
    let future = async move {
        let _held = held;
        pending::<()>().await;
    };
    let builder = crate::Builder::new().metadata(details);
    let (task, join) = builder.spawn(future, queue.clone());
    let wakers = [task.waker(), join.waker(), join.abort_handle().waker()];
    assert!(wakers.iter().all(|waker| waker.will_wake(&wakers[0])));
    assert!(matches!(task.run(), Ran::Pending));
    for waker in &wakers {
        waker.wake_by_ref();
    }
    assert!(matches!(queue.pop().unwrap().run(), Ran::Pending));
    assert!(queue.pop().is_none());
    join.abort();
    drop((queue.pop(), join));
    assert_eq!((dropped.load(Relaxed), freed.load(Relaxed)), (1, 0));
    wakers.into_iter().for_each(Waker::wake);
    assert!(queue.pop().is_none());
    assert_eq!(freed.load(Relaxed), 1);
}
