//! Tests of a list on its own thread, beside a second thread that wakes, sends, aborts or drops its
//! tasks.
use crate::{LocalNotified, LocalOwned, LocalRan, ScheduleLocal, WakeKind};
use std::{
    future::{Future, pending, poll_fn},
    pin::Pin,
    rc::Rc,
    sync::{Arc, Mutex},
    task::{Context, Poll, Waker},
    thread,
};

#[derive(Clone, Default)]
struct Queue(Arc<Mutex<Vec<LocalNotified<Queue>>>>);

impl Queue {
    fn pop(&self) -> Option<LocalNotified<Queue>> {
        self.0.lock().unwrap().pop()
    }
}

impl ScheduleLocal for Queue {
    fn schedule(task: LocalNotified<Self>, _: WakeKind) {
        let queue = task.scheduler().clone();
        queue.0.lock().unwrap().push(task);
    }
}

fn list() -> LocalOwned<Queue> {
    LocalOwned::new(Waker::noop().clone())
}

/// Returns an `Rc`, and a future that never completes and holds a clone of the `Rc`. The count of
/// the `Rc` shows whether the future was dropped.
fn holds() -> (Rc<()>, impl Future<Output = ()>) {
    let count = Rc::new(());
    let held = count.clone();
    let future = async move {
        let _held = held;
        pending::<()>().await;
    };
    (count, future)
}

fn poll_once<F: Future + Unpin>(mut future: F) -> Poll<F::Output> {
    Pin::new(&mut future).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_future_that_is_not_send_gives_its_output_on_its_thread() {
    let list = list();
    let output = Rc::new(5);
    let (task, join) = list.spawn(async move { output }, Queue::default());
    assert_eq!(list.len(), 1);
    assert!(matches!(list.run(task), LocalRan::Complete));
    assert!(list.is_empty());
    let Poll::Ready(Ok(output)) = poll_once(join) else {
        panic!("no output")
    };
    assert_eq!(*output, 5);
}

#[test]
fn another_list_gives_the_task_back() {
    let (mine, other) = (list(), list());
    let task = mine.spawn_detached(async {}, Queue::default());
    let LocalRan::NotOwned(task) = other.run(task) else {
        panic!("the task ran")
    };
    let task = other.cancel(task).unwrap_err();
    assert!(matches!(mine.run(task), LocalRan::Complete));
}

#[test]
fn a_wake_elsewhere_brings_the_task_to_its_queue_and_back() {
    let (list, queue) = (list(), Queue::default());
    let slot = Arc::new(Mutex::new(None));
    let waker = slot.clone();
    let mut polls = 0;
    let future = poll_fn(move |cx| {
        polls += 1;
        *waker.lock().unwrap() = Some(cx.waker().clone());
        if polls == 2 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    let task = list.spawn_detached(future, queue.clone());
    assert!(matches!(list.run(task), LocalRan::Pending));
    let waker: Waker = slot.lock().unwrap().take().unwrap();
    thread::spawn(move || waker.wake()).join().unwrap();
    let task = queue.pop().unwrap();
    thread::spawn(move || task.send()).join().unwrap();
    let task = list.receive().unwrap();
    assert!(matches!(list.run(task), LocalRan::Complete));
    assert!(list.is_empty() && list.receive().is_none());
}

#[test]
fn a_notified_that_is_dropped_elsewhere_is_cancelled_here() {
    let list = list();
    let (count, future) = holds();
    let (task, join) = list.spawn(future, Queue::default());
    thread::spawn(move || drop(task)).join().unwrap();
    assert_eq!((Rc::strong_count(&count), join.is_finished()), (2, false));
    assert!(list.has_received());
    let task = list.receive().unwrap();
    assert!(matches!(list.run(task), LocalRan::Complete));
    assert_eq!(Rc::strong_count(&count), 1);
    assert!(matches!(poll_once(join), Poll::Ready(Err(error)) if error.is_cancelled()));
}

#[test]
fn an_abort_elsewhere_drops_the_future_here() {
    let (list, queue) = (list(), Queue::default());
    let (count, future) = holds();
    let (task, join) = list.spawn(future, queue.clone());
    assert!(matches!(list.run(task), LocalRan::Pending));
    thread::spawn(move || join.abort()).join().unwrap();
    assert_eq!(Rc::strong_count(&count), 2);
    assert!(matches!(list.run(queue.pop().unwrap()), LocalRan::Complete));
    assert_eq!(Rc::strong_count(&count), 1);
}

/// The module `exposed` panics if a pointer is made from an address that was not exposed.
#[test]
fn abort_all_of_idle_tasks_keeps_their_provenance() {
    let list = list();
    let counts = [(); 3].map(|()| {
        let (count, future) = holds();
        let task = list.spawn_detached(future, Queue::default());
        assert!(matches!(list.run(task), LocalRan::Pending));
        count
    });
    list.abort_all();
    while let Some(task) = list.receive() {
        assert!(matches!(list.run(task), LocalRan::Complete));
    }
    assert!(counts.iter().all(|count| Rc::strong_count(count) == 1));
}

#[test]
fn list_drop_drops_idle_and_sent_tasks() {
    let list = list();
    let (idle, future) = holds();
    let task = list.spawn_detached(future, Queue::default());
    assert!(matches!(list.run(task), LocalRan::Pending));
    let (sent, future) = holds();
    list.spawn_detached(future, Queue::default()).send();
    let (dropped, future) = holds();
    drop(list.spawn_detached(future, Queue::default()));
    drop(list);
    for count in [idle, sent, dropped] {
        assert_eq!(Rc::strong_count(&count), 1);
    }
}

#[test]
fn sent_tasks_are_received_in_order() {
    let list = list();
    let ids: Vec<_> = (0..5)
        .map(|_| {
            let task = list.spawn_detached(async {}, Queue::default());
            let id = task.id();
            task.send();
            id
        })
        .collect();
    for id in ids {
        let task = list.receive().unwrap();
        assert_eq!(task.id(), id);
        assert!(matches!(list.run(task), LocalRan::Complete));
    }
    assert!(list.receive().is_none());
}

#[test]
fn owner_is_woken_once_for_tasks_sent_before_it_looks() {
    struct Count(std::sync::atomic::AtomicUsize);
    impl std::task::Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    }
    let count = Arc::new(Count(0.into()));
    let list = LocalOwned::new(Waker::from(count.clone()));
    let wakes = || count.0.load(std::sync::atomic::Ordering::Relaxed);
    list.spawn_detached(async {}, Queue::default()).send();
    list.spawn_detached(async {}, Queue::default()).send();
    assert_eq!(wakes(), 1);
    while let Some(task) = list.receive() {
        assert!(matches!(list.run(task), LocalRan::Complete));
    }
    list.spawn_detached(async {}, Queue::default()).send();
    assert_eq!(wakes(), 2);
}

#[test]
fn a_task_may_use_its_list_from_its_poll() {
    let list = Rc::new(list());
    let inner = list.clone();
    let (task, join) = list.spawn(
        async move {
            let (task, join) = inner.spawn(async { 1 }, Queue::default());
            assert!(matches!(inner.run(task), LocalRan::Complete));
            join.await.unwrap() + inner.len()
        },
        Queue::default(),
    );
    assert!(matches!(list.run(task), LocalRan::Complete));
    assert!(matches!(poll_once(join), Poll::Ready(Ok(2))));
}
