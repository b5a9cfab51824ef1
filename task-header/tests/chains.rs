//! Long chains of tasks on a small stack: the end of each task ends the next one.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use std::{
    collections::VecDeque,
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
    thread,
};
use task_header::{JoinHandle, Notified, Owned, Ran, Schedule, WakeKind, new};

const LONG: usize = 100_000;

/// Runs `f` on a stack that is too small for a hundred thousand frames.
fn on_a_small_stack(f: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(256 << 10);
    thread.spawn(f).unwrap().join().unwrap();
}

#[derive(Clone, Default)]
struct Queue(Arc<Mutex<VecDeque<Notified<Queue>>>>);

impl Schedule for Queue {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let queue = task.scheduler().clone();
        queue.0.lock().unwrap().push_back(task);
    }
}

impl Queue {
    fn pop(&self) -> Option<Notified<Queue>> {
        self.0.lock().unwrap().pop_front()
    }
}

/// A future that never completes. It holds a value, and its poll stores a waker of the task.
struct Holds<T> {
    #[expect(dead_code, reason = "dropped with the future")]
    next: Option<T>,
    waker: Arc<Mutex<Option<Waker>>>,
    drops: Arc<AtomicUsize>,
}

impl<T> Unpin for Holds<T> {}

impl<T> Future for Holds<T> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        *self.waker.lock().unwrap() = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl<T> Drop for Holds<T> {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Relaxed);
    }
}

/// The drop of each task's future drops the last waker of the next task, which submits that task.
/// This scheduler only queues the submitted task, so the drops do not nest.
#[test]
fn tasks_holding_each_others_last_wakers_end_in_turn() {
    on_a_small_stack(|| {
        let (queue, drops) = (Queue::default(), Arc::new(AtomicUsize::new(0)));
        let mut last = None::<Waker>;
        for _ in 0..LONG {
            let waker = Arc::default();
            let next = last.take();
            let future = Holds {
                next,
                waker: Arc::clone(&waker),
                drops: drops.clone(),
            };
            let (task, join) = new(future, queue.clone());
            assert!(matches!(task.run(), Ran::Pending));
            drop(join);
            last = waker.lock().unwrap().take();
        }
        drop(last);
        while let Some(task) = queue.pop() {
            assert!(matches!(task.run(), Ran::Complete));
        }
        assert_eq!(drops.load(Relaxed), LONG);
        assert_eq!(Arc::strong_count(&queue.0), 1);
    });
}

#[test]
fn tasks_holding_each_others_handles_are_cancelled_in_turn() {
    on_a_small_stack(|| {
        let (queue, drops) = (Queue::default(), Arc::new(AtomicUsize::new(0)));
        let mut owned = Owned::new(Waker::noop().clone());
        let mut last = None::<JoinHandle<()>>;
        for _ in 0..LONG {
            let next = last.take();
            let future = Holds {
                next,
                waker: Arc::default(),
                drops: drops.clone(),
            };
            let (task, join) = new(future, queue.clone());
            assert!(matches!(owned.run(task), Ran::Pending));
            last = Some(join);
        }
        drop(last);
        owned.cancel_all();
        assert!(owned.is_empty());
        assert_eq!(drops.load(Relaxed), LONG);
        assert_eq!(Arc::strong_count(&queue.0), 1);
    });
}

/// Each output holds the join handle of another task. The drop of an output drops that handle, and
/// so the other task's output. The drops nest, as in a chain of boxes. So this chain is short, and
/// the README states the limit.
#[test]
fn a_chain_of_outputs_takes_a_stack_as_deep() {
    struct Output(#[expect(dead_code, reason = "dropped with this")] Option<JoinHandle<Output>>);
    on_a_small_stack(|| {
        let queue = Queue::default();
        let mut last = None;
        for _ in 0..DEPTH {
            let output = Output(last.take());
            let (task, join) = new(async move { output }, queue.clone());
            assert!(matches!(task.run(), Ran::Complete));
            last = Some(join);
        }
        drop(last);
        assert_eq!(Arc::strong_count(&queue.0), 1);
    });
}

/// The length of a chain whose drops nest. Each level takes less than 1 KiB of stack.
const DEPTH: usize = 200;
