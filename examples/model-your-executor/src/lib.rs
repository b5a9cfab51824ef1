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
    /// The spawned and woken tasks, and the overflow of the rings.
    injector: Injector<Node<Scheduler>>,
    stealers: Box<[Stealer<Task>]>,
    sleep: Sleep,
}

impl Shared {
    fn has_work(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|ring| !ring.is_empty())
    }
}

/// The scheduler of a task: a counted reference to the shared state. So a late wake still finds
/// that state.
#[derive(Clone)]
struct Scheduler(Arc<Shared>);

impl Schedule for Scheduler {
    fn schedule(task: Task, _: WakeKind) {
        // The clone keeps the shared state: once the task is queued, another thread may free the
        // task together with its scheduler.
        let Self(shared) = task.scheduler().clone();
        shared.injector.requeue(task);
        shared.sleep.notify();
    }
}

/// An executor with a thread for each worker. The executor's drop cancels the tasks that are not
/// done, and waits for the threads.
pub struct Executor {
    scheduler: Scheduler,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Executor {
    /// Starts an executor with `workers` workers.
    ///
    /// # Panics
    /// When `workers` is 0 or more than 64, and when the system refuses a thread.
    pub fn new(workers: usize) -> Self {
        let (scheduler, workers) = assemble(workers, 64);
        let start = |worker: Worker| thread::spawn(|| worker.run());
        Self {
            scheduler,
            threads: workers.into_iter().map(start).collect(),
        }
    }

    /// Spawns a future as a task.
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
            Err(closed) => drop(closed), // Cancels the task: `join` then returns an error.
        }
        join
    }

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

/// Polls a future on this thread until it completes.
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
