//! Models of the conformance checks. A correct queue passes. Two faulty queues fail, although they
//! lose a task only if another thread pushes at the wrong moment.
use super::{
    Order, Subject, a_wake_from_another_thread_is_not_lost, schedule,
    wakes_from_two_other_threads_are_not_lost,
};
use crate::{Notified, Schedule, WakeKind};
use alloc::collections::VecDeque;
use sync_shim::{
    Model, model_must_fail,
    sync::{Arc, Mutex},
    thread,
};

/// The values of `ATOMIC`: the threads that push in one turn of the lock.
const ALL: u8 = 0;
const OTHER_THREADS: u8 = 1;
const THE_WORKER: u8 = 2;

/// A locked queue; `None` once it is closed. A thread that isn't in `ATOMIC` locks twice for a
/// push: it takes the tasks out, and then puts them back with the new one. A push of another thread
/// between these two steps is lost.
struct Locked<const ATOMIC: u8>(Arc<State<ATOMIC>>);

struct State<const ATOMIC: u8> {
    tasks: Queue<ATOMIC>,
    others: Queue<ATOMIC>,
    worker: thread::Thread,
}

type Queue<const ATOMIC: u8> = Mutex<Option<VecDeque<Notified<Locked<ATOMIC>>>>>;

impl<const ATOMIC: u8> Schedule for Locked<ATOMIC> {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let state = task.scheduler().0.clone();
        let by_worker = thread::current().id() == state.worker.id();
        let (queue, atomic) = match ATOMIC {
            ALL => (&state.tasks, true),
            OTHER_THREADS => (&state.tasks, !by_worker),
            _ if by_worker => (&state.tasks, true),
            _ => (&state.others, false),
        };
        let mut refused = Some(task);
        if atomic {
            if let Some(tasks) = &mut *queue.lock() {
                tasks.extend(refused.take());
            }
        } else {
            let mut tasks = queue.lock().as_mut().map(std::mem::take);
            if let Some(tasks) = &mut tasks {
                tasks.extend(refused.take());
            }
            let before = std::mem::replace(&mut *queue.lock(), tasks);
            drop(before);
        }
        drop(refused);
    }
}

impl<const ATOMIC: u8> Subject for Locked<ATOMIC> {
    type Scheduler = Self;
    const ORDER: Order = Order::Fifo;

    fn new() -> Self {
        let queue = || Mutex::new(Some(VecDeque::new()));
        Self(Arc::new(State {
            tasks: queue(),
            others: queue(),
            worker: thread::current(),
        }))
    }

    fn scheduler(&self) -> Self {
        Self(self.0.clone())
    }

    fn next(&mut self) -> Option<Notified<Self>> {
        let own = self.0.tasks.lock().as_mut()?.pop_front();
        if ATOMIC != THE_WORKER {
            return own;
        }
        own.or_else(|| self.0.others.lock().as_mut()?.pop_front())
    }

    fn end(self) {
        for queue in [&self.0.tasks, &self.0.others] {
            let left = queue.lock().take();
            drop(left);
        }
    }
}

#[test]
fn a_locked_queue_passes() {
    schedule::<Locked<ALL>>();
}

#[test]
fn a_push_in_two_turns_of_the_lock_loses_a_wake() {
    model_must_fail(
        "a_wake_from_another_thread_is_not_lost: lost",
        a_wake_from_another_thread_is_not_lost::<Locked<OTHER_THREADS>>,
    );
}

/// Only the check with two other threads finds this fault: the check with one other thread passes.
#[test]
fn pushes_of_two_threads_in_two_turns_of_the_lock_lose_a_wake() {
    model_must_fail(
        "wakes_from_two_other_threads_are_not_lost: lost",
        wakes_from_two_other_threads_are_not_lost::<Locked<THE_WORKER>>,
    );
}

#[test]
fn one_thread_pushing_in_two_turns_of_the_lock_loses_nothing() {
    Model::new()
        .bound(3)
        .check(a_wake_from_another_thread_is_not_lost::<Locked<THE_WORKER>>);
}
