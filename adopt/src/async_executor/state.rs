//! What the runners and the tasks of an executor share.
use queue_global::{Closed, Injector};
use queue_spmc::ring;
use std::{
    cell::RefCell,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::Waker,
};
use task_header::{Node, Notified, Owned, Schedule, WakeKind};
use waker_vtable::WakerCell;
use worker_idle::Idle;

pub(super) type Task = Notified<Scheduler>;

/// Capacity of a runner's ring.
pub(super) const RING: usize = 256;

/// The state that the executor and its tasks share.
pub(super) struct State {
    pub(super) injector: Injector<Node<Scheduler>>,
    pub(super) idle: Idle,
    pub(super) slots: Box<[Slot]>,
    /// Unparks the thread that drops the executor and waits for tasks (rule 4 of
    /// `async_executor.rs`).
    pub(super) dropper: Waker,
}

/// The parts of a runner, and the handles by which other threads reach the runner.
pub(super) struct Slot {
    /// `None` while a runner uses the parts.
    pub(super) parts: Mutex<Option<Parts>>,
    pub(super) stealer: ring::Stealer<Task>,
    pub(super) waker: WakerCell,
}

pub(super) struct Parts {
    pub(super) ring: ring::Worker<Task>,
    pub(super) owned: Owned<Scheduler>,
}

/// The scheduler in each task's cell.
pub(super) struct Scheduler(pub(super) Arc<State>);

/// The ring of the runner that this thread polls, and the runner's executor.
pub(super) struct Current {
    pub(super) state: Arc<State>,
    pub(super) ring: ring::Worker<Task>,
}

thread_local! {
    pub(super) static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

impl Schedule for Scheduler {
    fn schedule(task: Task, _: WakeKind) {
        let Some(task) = push_here(task) else { return };
        // Once the task is queued, another thread may free it, and its scheduler with it.
        let state = task.scheduler().0.clone();
        match state.injector.push(task) {
            Ok(()) => state.notify(),
            Err(Closed(task)) => {
                state.injector.requeue(task);
                state.dropper.wake_by_ref();
            }
        }
    }
}

/// Pushes the task to the ring of the runner that this thread polls. Returns the task if the thread
/// polls no runner of the task's executor.
fn push_here(task: Task) -> Option<Task> {
    let mut task = Some(task);
    let push = |current: &RefCell<Option<Current>>| {
        let mut current = current.borrow_mut();
        let Current { state, ring } = current.as_mut()?;
        let task = task.take_if(|task| Arc::ptr_eq(state, &task.scheduler().0))?;
        ring.push_or_overflow(task, &state.injector);
        // The waker is called after this borrow of the ring has ended, as the waker may push.
        state.idle.notify().map(|slot| (state.clone(), slot))
    };
    // A thread whose thread-locals are gone polls no runner.
    if let Ok(Some((state, slot))) = CURRENT.try_with(push) {
        state.slots[slot].waker.wake();
    }
    task
}

impl State {
    pub(super) fn notify(&self) {
        if let Some(slot) = self.idle.notify() {
            self.slots[slot].waker.wake();
        }
    }

    pub(super) fn has_work(&self) -> bool {
        !self.injector.is_empty() || self.slots.iter().any(|slot| !slot.stealer.is_empty())
    }
}

impl Slot {
    pub(super) fn parts(&self) -> MutexGuard<'_, Option<Parts>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
