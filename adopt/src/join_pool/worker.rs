//! A worker: how it finds jobs, and how it waits. The rules are those of `join_pool.rs`.
use super::{
    job::{Header, Job},
    shared::{Remote, Shared},
};
use queue_global::List;
use queue_spmc::{Steal, StealLimit, deque, fifo};
use std::{
    cell::{Cell, RefCell, UnsafeCell},
    mem, process, ptr,
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Relaxed},
        },
    },
    thread,
};
use worker_idle::park::{Park, ThreadPark};

/// The most jobs that a worker takes from the injector at once.
const BATCH: usize = 32;

/// A worker, on the stack of its thread. Only that thread uses the two `UnsafeCell`s, and no call
/// that borrows the content of one uses the worker again.
pub(super) struct Worker {
    pub(super) index: usize,
    pub(super) shared: Arc<Shared>,
    pub(super) deque: UnsafeCell<deque::Worker<Job>>,
    pub(super) fifo: UnsafeCell<fifo::Worker<Job>>,
    pub(super) park: RefCell<ThreadPark>,
}

thread_local! {
    static CURRENT: Cell<*const Worker> = const { Cell::new(ptr::null()) };
}

/// A condition that a worker waits for.
pub(super) trait Awaited {
    fn is_done(&self) -> bool;
    /// Announces that the worker may park. From then on, the thread that makes the condition true
    /// unparks the worker.
    fn will_sleep(&self) {}
}

impl Awaited for AtomicBool {
    fn is_done(&self) -> bool {
        // Ordering: Acquire pairs with the store in the pool's drop.
        self.load(Acquire)
    }
}

impl Worker {
    /// Calls `f` with this thread's worker, or with `None` if the thread is no worker.
    #[inline]
    pub(super) fn with_current_or_none<R>(f: impl FnOnce(Option<&Worker>) -> R) -> R {
        let current = CURRENT.get();
        // SAFETY: `main` sets the pointer on this thread, for as long as the worker lives.
        f(unsafe { current.as_ref() })
    }

    /// Calls `f` with this thread's worker. Only jobs call this, and jobs run on workers.
    pub(super) fn with_current<R>(f: impl FnOnce(&Worker) -> R) -> R {
        Self::with_current_or_none(|worker| f(worker.expect("a job runs on a worker")))
    }

    /// Runs the worker on its thread, until the pool closes and no job is left.
    pub(super) fn main(self) {
        CURRENT.set(&self);
        self.run_until(&self.shared.closing);
        let mut searching = false;
        while let Some(job) = self.find(&mut searching) {
            job.run();
        }
        if searching {
            self.stop_searching();
        }
        CURRENT.set(ptr::null());
    }

    /// Pushes a forked job (rule 2).
    #[inline]
    pub(super) fn push(&self, job: Job) {
        // SAFETY: only this thread uses the cell, and the call does not use the worker again.
        unsafe { &mut *self.deque.get() }.push(job);
        self.notify_if_all_sleep();
    }

    pub(super) fn push_fifo(&self, job: Job) {
        // SAFETY: as in `push`.
        unsafe { &mut *self.fifo.get() }.push(job);
        self.notify_if_all_sleep();
    }

    #[inline]
    fn notify_if_all_sleep(&self) {
        if let (0, 1..) = self.shared.idle.counts() {
            self.shared.notify();
        }
    }

    #[inline]
    pub(super) fn pop(&self) -> Option<Job> {
        // SAFETY: as in `push`.
        unsafe { &mut *self.deque.get() }.pop()
    }

    /// Runs jobs until the condition holds (rule 4).
    pub(super) fn run_until(&self, awaited: &impl Awaited) {
        let abort = AbortOnUnwind;
        let mut searching = false;
        while !awaited.is_done() {
            match self.find(&mut searching) {
                Some(job) => job.run(),
                None => {
                    awaited.will_sleep();
                    self.sleep(awaited, searching);
                    searching = true;
                }
            }
        }
        if searching {
            self.stop_searching();
        }
        mem::forget(abort);
    }

    /// Finds a job in the order of rule 1. A worker that finds one no longer counts as searching.
    fn find(&self, searching: &mut bool) -> Option<Job> {
        // SAFETY: as in `push`.
        let pop_fifo = || unsafe { &mut *self.fifo.get() }.pop();
        let shared = &*self.shared;
        let job = self
            .pop()
            .or_else(pop_fifo)
            .or_else(|| self.take_injected())
            .or_else(|| {
                *searching = *searching || shared.idle.try_search();
                searching.then(|| self.steal()).flatten()
            });
        if job.is_some() && mem::take(searching) {
            self.stop_searching();
        }
        job
    }

    fn stop_searching(&self) {
        if self.shared.idle.stop_searching() && self.shared.has_work() {
            self.shared.notify();
        }
    }

    fn take_injected(&self) -> Option<Job> {
        let mut batch: List<Header> = self.shared.injector.pop_n(BATCH);
        let first = batch.pop_front()?;
        if !batch.is_empty() {
            // SAFETY: as in `push`.
            unsafe { &mut *self.fifo.get() }.extend(batch);
            // Rule 3: while the batch was in neither queue, a worker may have found both empty and
            // gone to sleep.
            self.shared.notify();
        }
        Some(first)
    }

    fn steal(&self) -> Option<Job> {
        let (before, rest) = self.shared.workers.split_at(self.index);
        let steal = |other: &Remote| match other.deque.steal() {
            // SAFETY: as in `push`.
            Steal::Empty => other
                .fifo
                .steal_into_and_pop(unsafe { &mut *self.fifo.get() }, StealLimit::Half),
            stolen => stolen,
        };
        loop {
            let mut must_retry = false;
            for other in rest[1..].iter().chain(before) {
                match steal(other) {
                    Steal::Success { first, moved } => {
                        // Ordering: Relaxed. It is only a count.
                        self.shared.stolen.fetch_add(moved + 1, Relaxed);
                        return Some(first);
                    }
                    Steal::Retry => must_retry = true,
                    Steal::Empty => {}
                }
            }
            if !must_retry {
                return None;
            }
            // The thief that is in the way may need this processor to end its steal.
            thread::yield_now();
        }
    }

    /// Sleeps until the worker is notified or the condition holds. Does not park if a queue has
    /// work. Afterwards the worker counts as searching.
    fn sleep(&self, awaited: &impl Awaited, searching: bool) {
        let Shared { idle, .. } = &*self.shared;
        idle.sleep(self.index, searching);
        let mut park = self.park.borrow_mut();
        if !self.shared.has_work() {
            while !idle.was_notified(self.index) && !awaited.is_done() {
                park.park();
            }
        }
        idle.wake_self(self.index); // Does nothing if the worker was notified.
    }
}

/// Aborts the process if a wait unwinds (rule 5).
pub(super) struct AbortOnUnwind;

impl Drop for AbortOnUnwind {
    fn drop(&mut self) {
        process::abort();
    }
}
