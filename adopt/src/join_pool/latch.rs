//! Latches. A job that lies in the stack frame of a waiting thread has a latch, and sets that latch
//! when the job is done.
//!
//! The frame may end as soon as the latch is set. So the thread that sets a latch first copies
//! everything that it still needs out of the latch. Afterwards it uses nothing of the frame.
use super::{
    job::Latch,
    worker::{Awaited, Worker},
};
use std::task::Waker;
use sync_shim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Release},
};

#[cfg(all(test, selvedge_loom))]
mod models;

/// A latch for a waiting worker, which runs other jobs meanwhile.
pub(super) struct WorkerLatch {
    /// 1 once the latch is set. It is no `AtomicBool`, as the models could not retire one: they
    /// would not notice its use after the end of the frame.
    done: AtomicU32,
    worker: usize,
}

impl WorkerLatch {
    pub(super) fn new(worker: usize) -> Self {
        let done = AtomicU32::new(0);
        Self { done, worker }
    }
}

impl Awaited for WorkerLatch {
    #[inline]
    fn is_done(&self) -> bool {
        // Ordering: Acquire pairs with the store in `set`: the job's result is written.
        self.done.load(Acquire) == 1
    }
}

impl Latch for WorkerLatch {
    unsafe fn set(this: *const Self) {
        // SAFETY: the latch is live until the store below.
        let latch = unsafe { &*this };
        let worker = latch.worker;
        // Ordering: Release pairs with the load in `is_done`.
        latch.done.store(1, Release);
        // From here on the latch may be gone. The pool is not gone, as this thread is its worker.
        Worker::with_current(|current| current.shared.workers[worker].waker.wake_by_ref());
    }
}

/// A latch for a waiting thread that is no worker of the pool.
pub(super) struct OutsideLatch {
    /// 1 once the latch is set.
    done: AtomicU32,
    waker: Waker,
}

impl OutsideLatch {
    pub(super) fn new(waker: Waker) -> Self {
        let done = AtomicU32::new(0);
        Self { done, waker }
    }
}

impl Awaited for OutsideLatch {
    fn is_done(&self) -> bool {
        // Ordering: Acquire pairs with the store in `set`: the job's result is written.
        self.done.load(Acquire) == 1
    }
}

impl Latch for OutsideLatch {
    unsafe fn set(this: *const Self) {
        // SAFETY: the latch is live until the store below.
        let latch = unsafe { &*this };
        let waker = latch.waker.clone();
        // Ordering: Release pairs with the load in `is_done`.
        latch.done.store(1, Release);
        waker.wake();
    }
}
