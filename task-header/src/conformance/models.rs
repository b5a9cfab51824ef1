//! The kit under the model, on a queue that passes and on one that only another thread's push in between betrays.
use super::{Order, Subject, a_wake_from_another_thread_is_not_lost, schedule};
use crate::{Notified, Schedule, WakeKind};
use alloc::collections::VecDeque;
use sync_shim::{
    model_must_fail,
    sync::{Arc, Mutex},
};

type Tasks<const ATOMIC: bool> = VecDeque<Notified<Locked<ATOMIC>>>;

/// A locked queue; `None` once it is closed. `ATOMIC`: a push is one turn of the lock.
struct Locked<const ATOMIC: bool>(Arc<Mutex<Option<Tasks<ATOMIC>>>>);

impl<const ATOMIC: bool> Schedule for Locked<ATOMIC> {
    fn schedule(task: Notified<Self>, _: WakeKind) {
        let queue = task.scheduler().0.clone();
        let mut refused = Some(task);
        if ATOMIC {
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

impl<const ATOMIC: bool> Subject for Locked<ATOMIC> {
    type Scheduler = Self;
    const ORDER: Order = Order::Fifo;

    fn new() -> Self {
        Self(Arc::new(Mutex::new(Some(VecDeque::new()))))
    }

    fn scheduler(&self) -> Self {
        Self(self.0.clone())
    }

    fn next(&mut self) -> Option<Notified<Self>> {
        self.0.lock().as_mut()?.pop_front()
    }

    fn end(self) {
        let left = self.0.lock().take();
        drop(left);
    }
}

#[test]
fn a_locked_queue_passes() {
    schedule::<Locked<true>>();
}

#[test]
fn a_push_in_two_turns_of_the_lock_loses_a_wake() {
    model_must_fail(
        "a_wake_from_another_thread_is_not_lost: lost",
        a_wake_from_another_thread_is_not_lost::<Locked<false>>,
    );
}
