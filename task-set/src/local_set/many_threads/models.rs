//! Models of a set whose tasks many threads wake: more threads than the model checker takes.
use super::super::*;
use std::{array, rc::Rc};
use sync_shim::{
    atomic::{AtomicBool, Ordering::Relaxed},
    model,
    sync::Mutex,
    thread,
};

const THREADS: usize = 4;
const ENDING_TASKS: usize = 3;

/// The conditions of a task, one for each thread.
#[derive(Default)]
struct Task {
    conditions: [AtomicBool; THREADS],
    waker: Mutex<Option<Waker>>,
}

/// Spawns a task and returns it with the count of its polls. If `ends` is true, the task is ready
/// when all its conditions are set. Only this thread may use the count while the future lives.
fn spawn(set: &LocalSet, ends: bool) -> (Arc<Task>, Rc<Cell<usize>>) {
    let (task, polls) = (Arc::new(Task::default()), Rc::new(Cell::new(0)));
    let (own, counted) = (task.clone(), polls.clone());
    set.spawn_detached(poll_fn(move |cx| {
        counted.set(counted.get() + 1);
        if counted.get() == 1 {
            *own.waker.lock() = Some(cx.waker().clone());
        }
        // Ordering: Relaxed; each thread stores before it wakes the task, and the wake orders that
        // store before this poll.
        if ends && own.conditions.iter().all(|met| met.load(Relaxed)) {
            return Poll::Ready(());
        }
        Poll::Pending
    }));
    (task, polls)
}

/// Each of four threads sets one condition of each task and wakes that task, by reference or by
/// value. Three of the four tasks then complete. The fourth task never completes: the set's drop
/// drops its future while threads may still wake the task. After a lost wake the set would sleep
/// forever. Each task is polled once after its spawn, and then at most once per wake. This thread
/// drops each future.
///
/// Fails if `next_ready_or_register` checks only once, if `List::take` clears the stack's tag for
/// good, or if the set's drop returns without waiting.
#[test]
fn tasks_woken_by_four_threads_are_polled_and_dropped() {
    model(|| {
        let set = LocalSet::new();
        let tasks: [_; ENDING_TASKS + 1] = array::from_fn(|n| spawn(&set, n < ENDING_TASKS));
        let gate = Gate::new();
        let waker = from_arc(gate.clone());
        let poll = || set.poll_tasks(&mut Context::from_waker(&waker));
        assert!(poll().is_pending());
        let wakers: Vec<_> = (tasks.iter())
            .map(|(task, _)| task.waker.lock().take().expect("the task was polled"))
            .collect();
        let threads: [_; THREADS] = array::from_fn(|me| {
            let wakers = wakers.clone();
            let tasks: Vec<_> = tasks.iter().map(|(task, _)| task.clone()).collect();
            thread::spawn(move || {
                for (n, waker) in wakers.into_iter().enumerate() {
                    // Ordering: Relaxed, as in the task.
                    tasks[n].conditions[me].store(true, Relaxed);
                    if (me + n) % 2 == 0 {
                        waker.wake();
                    } else {
                        waker.wake_by_ref();
                    }
                }
            })
        });
        drop(wakers);
        while set.len() > 1 {
            gate.pass(&mut 0);
            assert!(poll().is_pending());
        }
        drop(set);
        for (_, polls) in &tasks {
            assert_eq!(Rc::strong_count(polls), 1);
            assert!((1..=1 + THREADS).contains(&polls.get()));
        }
        for thread in threads {
            thread.join().unwrap();
        }
        assert!(tasks.iter().all(|(task, _)| Arc::strong_count(task) == 1));
    });
}
