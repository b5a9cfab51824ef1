//! A fork-join pool in the shape of rayon-core: `join`, `scope`, `spawn`.
//!
//! Each worker has a [`deque`] of forked jobs, which it runs newest first, and a [`fifo`] of jobs
//! that it runs in the order of their spawns. Outside threads push to one [`Injector`], whose nodes
//! are the jobs. After a push [`Idle`] chooses the worker to wake.
//!
//! 1. A worker runs the jobs of its deque, then of its FIFO, then of the injector. Then it steals
//!    the oldest jobs of other workers.
//! 2. A worker runs the jobs that it pushes, unless a thief takes them. So the worker needs no
//!    fence between its push and its read of the count of sleepers. If the worker misses a sleeper,
//!    fewer workers run until the next push, but no job is lost. A job that waits for the jobs that
//!    it pushes must do so by `join` or a scope. If it blocks its thread instead, the pushed jobs
//!    may never run.
//! 3. An outside thread that has pushed calls [`Idle::notify`], which begins with a fence. So does
//!    a worker that has moved a batch from the injector to its FIFO.
//! 4. A worker that waits for a job (a latch) or for jobs (a scope) runs other jobs meanwhile. If
//!    there are none, the worker sleeps as any idle worker does. The thread that sets the latch, or
//!    ends the scope's last job, unparks the worker. A worker waits in the same way for a job of
//!    another pool, so pools may wait for each other.
//! 5. A thread leaves a stack frame only when no job that lies in the frame, or borrows from it, is
//!    queued or running. So a worker that unwinds out of its wait aborts the process.
//!
//! The state that a pool's threads share is in `shared.rs`, and the loop of a worker is in
//! `worker.rs`. The ways to wait for a job are in `join.rs`, `scope.rs` and `latch.rs`.
use queue_global::Injector;
use queue_spmc::{deque, fifo};
use std::{
    cell::{RefCell, UnsafeCell},
    io, mem,
    panic::resume_unwind,
    ptr,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{Relaxed, Release},
        },
    },
    task::Waker,
    thread,
};
use worker_idle::{
    Idle,
    park::{Park, ThreadPark},
};

mod job;
mod join;
mod latch;
mod pending;
mod scope;
mod shared;
mod worker;

use job::StackJob;
pub use join::join;
use latch::OutsideLatch;
pub use scope::Scope;
use shared::{Remote, Shared};
use worker::{AbortOnUnwind, Awaited, Worker};

/// A pool of threads that run jobs. After its drop the threads run the queued jobs, and then end.
pub struct Pool {
    shared: Arc<Shared>,
}

impl Pool {
    /// Starts a pool of `workers` threads.
    ///
    /// # Errors
    /// When a thread cannot be started. The threads that were started end.
    ///
    /// # Panics
    /// When `workers` is 0.
    pub fn new(workers: usize) -> io::Result<Self> {
        let new = |_| (deque::Worker::new(), fifo::Worker::new(), ThreadPark::new());
        let parts: Vec<_> = (0..workers).map(new).collect();
        let remote =
            |(deque, fifo, park): &(deque::Worker<_>, fifo::Worker<_>, ThreadPark)| Remote {
                deque: deque.stealer(),
                fifo: fifo.stealer(),
                waker: park.waker(),
            };
        let shared = Arc::new(Shared {
            injector: Injector::new(),
            idle: Idle::new(workers),
            workers: parts.iter().map(remote).collect(),
            closing: AtomicBool::new(false),
            stolen: AtomicUsize::new(0),
        });
        let pool = Self { shared };
        for (index, (deque, fifo, park)) in parts.into_iter().enumerate() {
            let worker = Worker {
                index,
                shared: pool.shared.clone(),
                deque: UnsafeCell::new(deque),
                fifo: UnsafeCell::new(fifo),
                park: RefCell::new(park),
            };
            let builder = thread::Builder::new().name(format!("join-{index}"));
            builder.spawn(move || worker.main())?;
        }
        Ok(pool)
    }

    /// Runs `f` on a worker, waits until `f` has ended, and returns its result or resumes its
    /// panic.
    ///
    /// If the caller is a worker of another pool, it runs that pool's jobs while it waits.
    pub fn install<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        self.on_worker(|_| f())
    }

    /// Runs `f` on a worker, and waits for `f` and for all jobs of the scope.
    ///
    /// ```
    /// let pool = adopt::join_pool::Pool::new(2)?;
    /// let mut squares = [1, 2, 3];
    /// pool.scope(|scope| squares.iter_mut().for_each(|n| scope.spawn(move |_| *n *= *n)));
    /// assert_eq!(squares, [1, 4, 9]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn scope<'scope, R: Send>(&self, f: impl FnOnce(&Scope<'scope>) -> R + Send) -> R {
        self.on_worker(|worker| Scope::run(worker, f))
    }

    /// Queues `f`, and returns at once. If `f` panics, the panic hook prints the panic, and no
    /// other code gets it.
    pub fn spawn(&self, f: impl FnOnce() + Send + 'static) {
        // SAFETY: `f` is `'static`, so it borrows nothing that ends.
        let job = unsafe { job::boxed(f) };
        Worker::with_current_or_none(|worker| match worker {
            Some(worker) if ptr::eq(&*worker.shared, &*self.shared) => worker.push(job),
            _ => self.shared.inject(job),
        });
    }

    /// Returns the number of jobs that workers have stolen so far.
    pub fn stolen(&self) -> usize {
        // Ordering: Relaxed. It is only a count.
        self.shared.stolen.load(Relaxed)
    }

    /// Runs `f` on this thread if it is a worker of the pool, and otherwise waits for a worker to
    /// run `f`. A worker of another pool runs that pool's jobs meanwhile; any other thread parks.
    fn on_worker<R: Send>(&self, f: impl FnOnce(&Worker) -> R + Send) -> R {
        Worker::with_current_or_none(|worker| match worker {
            Some(worker) if ptr::eq(&*worker.shared, &*self.shared) => f(worker),
            Some(worker) => {
                let waker = worker.shared.workers[worker.index].waker.clone();
                self.wait_for(f, waker, |latch| worker.run_until(latch))
            }
            None => {
                let mut park = ThreadPark::new();
                self.wait_for(f, park.waker(), |latch| {
                    while !latch.is_done() {
                        park.park();
                    }
                })
            }
        })
    }

    /// Runs `f` on a worker. `wait` must return only after the latch is set. The worker that sets
    /// the latch also wakes the caller, by `waker`.
    fn wait_for<R: Send>(
        &self,
        f: impl FnOnce(&Worker) -> R + Send,
        waker: Waker,
        wait: impl FnOnce(&OutsideLatch),
    ) -> R {
        let job = StackJob::new(|| Worker::with_current(f), OutsideLatch::new(waker));
        let abort = AbortOnUnwind;
        // SAFETY: `as_job` is called once. Until the job's latch is set, the job stays in this
        // frame, and this thread uses only the latch.
        self.shared.inject(unsafe { job.as_job() });
        wait(&job.latch);
        mem::forget(abort);
        job.into_result()
            .unwrap_or_else(|panic| resume_unwind(panic))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Ordering: Release pairs with the load in `AtomicBool`'s `is_done`.
        self.shared.closing.store(true, Release);
        self.shared
            .workers
            .iter()
            .for_each(|worker| worker.waker.wake_by_ref());
    }
}
