//! The state that a pool's threads share.
use super::job::{Header, Job};
use queue_global::Injector;
use queue_spmc::{deque, fifo};
use std::{
    sync::atomic::{AtomicBool, AtomicUsize},
    task::Waker,
};
use worker_idle::Idle;

pub(super) struct Shared {
    pub(super) injector: Injector<Header>,
    pub(super) idle: Idle,
    pub(super) workers: Box<[Remote]>,
    pub(super) closing: AtomicBool,
    pub(super) stolen: AtomicUsize,
}

/// The handles by which other threads reach a worker.
pub(super) struct Remote {
    pub(super) deque: deque::Stealer<Job>,
    pub(super) fifo: fifo::Stealer<Job>,
    pub(super) waker: Waker,
}

impl Shared {
    pub(super) fn inject(&self, job: Job) {
        self.injector.requeue(job);
        self.notify();
    }

    pub(super) fn notify(&self) {
        if let Some(worker) = self.idle.notify() {
            self.workers[worker].waker.wake_by_ref();
        }
    }

    pub(super) fn has_work(&self) -> bool {
        let has_job = |worker: &Remote| !worker.deque.is_empty() || !worker.fifo.is_empty();
        !self.injector.is_empty() || self.workers.iter().any(has_job)
    }
}
