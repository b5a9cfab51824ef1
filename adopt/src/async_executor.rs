//! An executor in the shape of async-executor: `spawn`, and `run` by up to a fixed number of
//! threads.
//!
//! A *runner* is a call of [`Executor::run`]. Each task is one allocation, and a node of the
//! [`Injector`] that all runners share. Each runner has a [`ring`] for the tasks that are spawned
//! or woken while it is polled. After a push [`Idle`] chooses a sleeping runner, and the
//! [`WakerCell`] of that runner's slot wakes the runner. There is no `unsafe` code.
//!
//! 1. A runner has a slot from the first poll of its `run` until that `run` completes or is
//!    dropped. The runner leaves an empty ring, and its list of tasks, to the slot's next runner.
//! 2. While a runner is polled, its ring is in the thread's `CURRENT`, where spawns and wakes find
//!    the ring. A task that is spawned or woken anywhere else goes to the injector.
//! 3. A waiting task is in the list of the runner that polled it first. If the task ends on another
//!    runner, its cell stays in that list until the first runner is about to sleep, or has run 200
//!    tasks. If that runner is asleep already, the cell stays until the runner is polled again.
//! 4. The drop of the executor closes the injector, and cancels all tasks that are in a list or
//!    queued. Then the drop waits for the tasks that other threads are about to queue.
//! 5. A wake never drops a task, not even after the executor has closed, where a drop would be an
//!    easy way to cancel it: the task's future would be dropped under whatever lock the thread that
//!    wakes holds. The future's drop may need the same lock, as that of event-listener does.
use queue_global::Injector;
use queue_spmc::{Steal, ring};
use std::{
    fmt,
    future::{Future, poll_fn},
    iter,
    pin::pin,
    sync::{Arc, Mutex},
};
use task_header::{JoinHandle, Owned, Schedule, WakeKind};
use waker_vtable::WakerCell;
use worker_idle::{
    Idle,
    park::{Park, ThreadPark},
};

mod runner;
mod state;
#[cfg(test)]
mod tests;

use runner::Runner;
use state::{Parts, RING, Scheduler, Slot, State};

/// Runs tasks on the threads that call [`run`](Self::run). The drop of the executor cancels the
/// tasks that are left.
///
/// ```
/// use adopt::async_executor::Executor;
/// use futures_lite::future::block_on;
///
/// let executor = Executor::new(1);
/// let task = executor.spawn(async { 1 + 2 });
/// assert_eq!(block_on(executor.run(async { task.await.unwrap() * 2 })), 6);
/// ```
pub struct Executor {
    state: Arc<State>,
    /// Parks the thread that drops the executor.
    park: ThreadPark,
}

impl Executor {
    /// Makes an executor for up to `runners` calls of [`run`](Self::run) at a time.
    ///
    /// # Panics
    /// When `runners` is 0.
    pub fn new(runners: usize) -> Self {
        let park = ThreadPark::new();
        let waker = park.waker();
        let slot = |_| {
            let ring = ring::Worker::new(RING);
            let stealer = ring.stealer();
            let owned = Owned::new(waker.clone());
            Slot {
                parts: Mutex::new(Some(Parts { ring, owned })),
                stealer,
                waker: WakerCell::new(),
            }
        };
        let state = Arc::new(State {
            injector: Injector::new(),
            idle: Idle::new(runners),
            slots: (0..runners).map(slot).collect(),
            dropper: park.waker(),
        });
        Self { state, park }
    }

    /// Spawns a future as a task. If the handle is dropped, the task continues.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (task, join) = task_header::new(future, Scheduler(self.state.clone()));
        Scheduler::schedule(task, WakeKind::Wake);
        join
    }

    /// Runs tasks until `future` is done.
    ///
    /// # Panics
    /// When the executor already has as many runners as it was made for, or when `future` panics.
    pub async fn run<F: Future>(&self, future: F) -> F::Output {
        let mut runner = Runner::new(&self.state);
        let mut future = pin!(future);
        poll_fn(|cx| runner.poll(cx, future.as_mut())).await
    }

    /// Moves the tasks of a slot's ring to the injector, which takes them though it is closed. Call
    /// this only when no thread uses the ring any more.
    fn empty_ring(&self, slot: &Slot) {
        loop {
            match slot.stealer.steal() {
                Steal::Success { first, .. } => self.state.injector.requeue(first),
                Steal::Retry => {} // Nobody else steals, so the next try succeeds.
                Steal::Empty => return,
            }
        }
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.state.injector.close();
        // The ring of a forgotten `run` may hold tasks that are in the list of another slot.
        self.state
            .slots
            .iter()
            .for_each(|slot| self.empty_ring(slot));
        for slot in &self.state.slots {
            // A slot without parts belongs to a `run` that was leaked by `mem::forget`. Any other
            // `run` has ended, as it borrows the executor, which is being dropped here.
            let Some(Parts { mut owned, .. }) = slot.parts().take() else {
                continue;
            };
            owned.watch_releases();
            owned.cancel_all();
            loop {
                while let Some(task) = self.state.injector.pop() {
                    owned.cancel(task);
                }
                owned.drain();
                if owned.is_empty() {
                    break;
                }
                self.park.park(); // A thread in a wake holds a task, and is about to push it.
            }
        }
        // If the `run` of every slot was forgotten, the loop above has cancelled no queued task.
        // The drop of a queued task cancels it.
        iter::from_fn(|| self.state.injector.pop()).for_each(drop);
    }
}

impl fmt::Debug for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Executor").finish_non_exhaustive()
    }
}
