//! Tests of a set whose tasks wait in a queue until the test runs them.
use crate::{JoinSet, LocalSet};
use std::{
    collections::VecDeque,
    future::{Future, pending},
    pin::pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};
use task_header::{JoinError, JoinHandle, Ran, Runnable};

#[derive(Clone, Default)]
struct Queue(Arc<Mutex<VecDeque<Runnable>>>);

impl Queue {
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let queue = self.clone();
        let (task, join) =
            task_header::spawn(future, move |task| queue.0.lock().unwrap().push_back(task));
        task.schedule();
        join
    }

    fn run_nth(&self, n: usize) {
        let task = self.0.lock().unwrap().remove(n).unwrap();
        let _ = task.run();
    }

    fn run_all(&self) {
        loop {
            let task = self.0.lock().unwrap().pop_front();
            let Some(task) = task else { return };
            let _ = task.run();
        }
    }
}

fn next<T>(set: &mut JoinSet<T>) -> Poll<Option<Result<T, JoinError>>> {
    pin!(set.join_next()).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn outputs_come_in_the_order_in_which_tasks_end() {
    let queue = Queue::default();
    let mut set: JoinSet<_> = (0..3).map(|n| queue.spawn(async move { n })).collect();
    assert!(next(&mut set).is_pending());
    queue.run_nth(2);
    assert!(matches!(next(&mut set), Poll::Ready(Some(Ok(2)))));
    queue.run_nth(0);
    queue.run_nth(0);
    assert_eq!(set.len(), 3 - 1);
    assert!(matches!(set.try_join_next(), Some(Ok(0))));
    assert!(matches!(set.try_join_next(), Some(Ok(1))));
    assert!(matches!(next(&mut set), Poll::Ready(None)));
}

#[test]
fn task_done_before_its_insert_is_handed_out() {
    let queue = Queue::default();
    let join = queue.spawn(async { 1 });
    queue.run_all();
    let mut set = JoinSet::new();
    set.insert(join);
    assert!(matches!(next(&mut set), Poll::Ready(Some(Ok(1)))));
}

#[test]
fn handle_whose_output_was_taken_is_ignored() {
    let queue = Queue::default();
    let mut join = queue.spawn(async { 1 });
    queue.run_all();
    let mut cx = Context::from_waker(Waker::noop());
    assert!(pin!(&mut join).poll(&mut cx).is_ready());
    let mut set = JoinSet::new();
    set.insert(join);
    assert!(set.is_empty());
    assert!(matches!(next(&mut set), Poll::Ready(None)));
}

#[test]
fn burst_of_completions_wakes_the_waiting_task_once() {
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }
    let count = Arc::new(Count(AtomicUsize::new(0)));
    let waker = Waker::from(count.clone());
    let mut cx = Context::from_waker(&waker);
    let queue = Queue::default();
    let mut set: JoinSet<_> = (0..5).map(|_| queue.spawn(async {})).collect();
    assert!(set.poll_join_next(&mut cx).is_pending());
    queue.run_all();
    assert_eq!(count.0.load(Relaxed), 1);
    for _ in 0..5 {
        assert!(set.poll_join_next(&mut cx).is_ready());
    }
}

/// A waker that counts its wakes.
fn counting() -> (Arc<Wakes>, Waker) {
    let wakes = Arc::new(Wakes(AtomicUsize::new(0)));
    (wakes.clone(), Waker::from(wakes))
}

struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

#[test]
fn insert_of_a_done_task_wakes_the_waiting_poller() {
    let queue = Queue::default();
    let (wakes, waker) = counting();
    let mut cx = Context::from_waker(&waker);
    let done = queue.spawn(async { 1 });
    queue.run_all();
    let mut set = JoinSet::from_iter([queue.spawn(pending())]);
    assert!(set.poll_join_next(&mut cx).is_pending());
    set.insert(done);
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(matches!(
        set.poll_join_next(&mut cx),
        Poll::Ready(Some(Ok(1)))
    ));
    // The queue's tasks hold the queue, so those that are left would leak.
    drop(set);
    queue.run_all();
}

#[test]
fn detach_all_wakes_the_waiting_poller() {
    let queue = Queue::default();
    let (wakes, waker) = counting();
    let mut cx = Context::from_waker(&waker);
    let mut set = JoinSet::from_iter([queue.spawn(pending::<()>())]);
    assert!(set.poll_join_next(&mut cx).is_pending());
    set.detach_all();
    assert_eq!(wakes.0.load(Relaxed), 1);
    assert!(matches!(set.poll_join_next(&mut cx), Poll::Ready(None)));
    // As above.
    queue.run_all();
}

#[test]
fn a_dropped_set_aborts_and_a_detached_one_does_not() {
    let queue = Queue::default();
    let ran = Arc::new(AtomicUsize::new(0));
    let spawn = |queue: &Queue| {
        let ran = ran.clone();
        queue.spawn(async move {
            ran.fetch_add(1, Relaxed);
        })
    };
    let mut set = JoinSet::from_iter([spawn(&queue), spawn(&queue)]);
    set.detach_all();
    assert!(set.is_empty());
    drop(set);
    drop(JoinSet::from_iter([spawn(&queue)]));
    queue.run_all();
    assert_eq!(ran.load(Relaxed), 2);
}

#[test]
fn detached_tasks_are_not_handed_out() {
    let queue = Queue::default();
    let mut set = JoinSet::from_iter([queue.spawn(async { 1 })]);
    set.detach_all();
    set.insert(queue.spawn(async { 2 }));
    queue.run_all();
    assert!(matches!(next(&mut set), Poll::Ready(Some(Ok(2)))));
    assert!(matches!(next(&mut set), Poll::Ready(None)));
}

#[test]
fn shutdown_waits_until_all_are_gone() {
    let local = LocalSet::new();
    let run = async {
        let mut set: JoinSet<()> = (0..3).map(|_| local.spawn(pending())).collect();
        set.shutdown().await;
        assert!(set.is_empty());
    };
    let mut run = pin!(local.run_until(run));
    let mut cx = Context::from_waker(Waker::noop());
    while run.as_mut().poll(&mut cx).is_pending() {}
    assert!(local.is_empty());
}

#[test]
fn join_all_ends_with_the_first_error_and_aborts_the_rest() {
    let queue = Queue::default();
    let set: JoinSet<u8> = [true, false]
        .map(|bad| {
            queue.spawn(async move {
                assert!(!bad, "on purpose");
                1
            })
        })
        .into_iter()
        .collect();
    queue.run_nth(0);
    let all = pin!(set.join_all());
    let Poll::Ready(Err(error)) = all.poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("no error")
    };
    assert!(error.is_panic());
    queue.run_all();
}

#[test]
fn slots_are_used_again() {
    let queue = Queue::default();
    let mut set = JoinSet::new();
    for n in 0..100 {
        set.insert(queue.spawn(async move { n }));
        set.insert(queue.spawn(async move { n }));
        queue.run_all();
        assert!(matches!(set.try_join_next(), Some(Ok(m)) if m == n));
        assert!(matches!(set.try_join_next(), Some(Ok(m)) if m == n));
        assert!(set.try_join_next().is_none());
    }
    assert_eq!(set.slots.len(), 2);
}

#[test]
fn every_member_is_handed_out_once_while_others_complete() {
    let queue = Queue::default();
    let mut set: JoinSet<usize> = (0..500).map(|n| queue.spawn(async move { n })).collect();
    let running = {
        let queue = queue.clone();
        thread::spawn(move || queue.run_all())
    };
    let mut seen = vec![0; 500];
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut cx = Context::from_waker(&waker);
    loop {
        match set.poll_join_next(&mut cx) {
            Poll::Ready(Some(output)) => seen[output.unwrap()] += 1,
            Poll::Ready(None) => break,
            Poll::Pending => thread::park(),
        }
    }
    running.join().unwrap();
    assert!(seen.iter().all(|&times| times == 1));
}

struct Unpark(thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

#[test]
fn late_completion_of_a_detached_task_spares_later_members() {
    let mut set = JoinSet::new();
    let (early, handle) = task_header::spawn(async { 1 }, drop);
    set.insert(handle);
    set.detach_all();
    assert!(matches!(early.run(), Ran::Complete));
    assert!(set.try_join_next().is_none());
    let (late, handle) = task_header::spawn(async { 2 }, drop);
    set.insert(handle);
    assert!(set.try_join_next().is_none());
    assert!(matches!(late.run(), Ran::Complete));
    assert_eq!(set.try_join_next().unwrap().unwrap(), 2);
}
