#![doc = include_str!("../README.md")]

mod gate;
mod sleep;
mod worker;

use gate::Gate;
use queue_global::Injector;
use queue_spmc::ring::{self, Stealer};
use sleep::Sleep;
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll},
};
use sync_shim::{sync::Arc, thread};
use task_header::{JoinHandle, Node, Notified, Schedule, WakeKind};
use worker::Worker;

type Task = Notified<Scheduler>;

/// The state that all workers share.
struct Shared {
    /// The queue of the tasks that were spawned, or woken outside of their own poll. A full ring
    /// also moves tasks to it.
    injector: Injector<Node<Scheduler>>,
    /// For each worker's ring, the handle by which the other workers steal from that ring.
    stealers: Box<[Stealer<Task>]>,
    /// Records which workers sleep, and wakes them.
    sleep: Sleep,
}

impl Shared {
    /// Returns whether a task is in the injector or in a ring.
    fn has_work(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|ring| !ring.is_empty())
    }
}

/// The scheduler of a task: a counted reference to the shared state. Each task owns such a
/// reference. So a wake finds the shared state even if the executor's drop returns during the wake.
#[derive(Clone)]
struct Scheduler(Arc<Shared>);

impl Schedule for Scheduler {
    fn schedule(task: Task, _: WakeKind) {
        // The clone keeps the shared state alive. Once the task is queued, another thread may free
        // the task, and with it the task's own scheduler.
        let Self(shared) = task.scheduler().clone();
        shared.injector.requeue(task);
        shared.sleep.notify();
    }
}

/// An executor with one thread for each worker. The executor's drop cancels the tasks that are not
/// complete, and waits until the threads have ended.
pub struct Executor {
    scheduler: Scheduler,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Executor {
    /// Starts an executor with `workers` workers.
    ///
    /// # Panics
    /// If `workers` is 0 or more than 64, or if the system refuses to start a thread.
    pub fn new(workers: usize) -> Self {
        let (scheduler, workers) = assemble(workers, 64);
        let start = |worker: Worker| thread::spawn(|| worker.run());
        Self {
            scheduler,
            threads: workers.into_iter().map(start).collect(),
        }
    }

    /// Spawns a future as a task, and returns the handle that waits for the future's output.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.scheduler.spawn(future)
    }
}

impl Scheduler {
    fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (task, join) = task_header::new(future, self.clone());
        match self.0.injector.push(task) {
            Ok(()) => self.0.sleep.notify(),
            // The drop cancels the task, so `join` returns an error.
            Err(closed) => drop(closed),
        }
        join
    }

    /// Makes each worker end: closes the injector, and wakes all workers.
    fn close(&self) {
        self.0.injector.close();
        self.0.sleep.wake_all();
    }
}

impl Drop for Executor {
    fn drop(&mut self) {
        self.scheduler.close();
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Makes the shared state, and `workers` workers whose rings have room for `capacity` tasks each.
/// Starts no thread.
fn assemble(workers: usize, capacity: usize) -> (Scheduler, Vec<Worker>) {
    let rings: Vec<_> = (0..workers).map(|_| ring::Worker::new(capacity)).collect();
    let shared = Arc::new(Shared {
        injector: Injector::new(),
        stealers: rings.iter().map(ring::Worker::stealer).collect(),
        sleep: Sleep::new(workers),
    });
    let workers = rings.into_iter().enumerate();
    let workers = workers.map(|(index, ring)| Worker::new(shared.clone(), index, ring));
    (Scheduler(shared.clone()), workers.collect())
}

/// Polls a future on this thread until it completes, and returns its output. Between two polls the
/// thread waits until the future's waker is woken.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let gate = Arc::new(Gate::new());
    let waker = waker_vtable::from_arc(gate.clone());
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        gate.pass();
    }
}

#[cfg(test)]
mod models;
