//! The handover of the one worker among the threads in `block_on`.
//!
//! The worker is *driven* by one thread, or is *there*, or is *taken for good* by the end of the
//! runtime, when no thread waits any more. A thread that waits for the worker is *polling*, *idle*
//! or *chosen*:
//!
//! | the thread is | its waker | it becomes |
//! |---|---|---|
//! | polling: it polls its own future, or is about to | is not in the list | idle, if the worker is not there after the poll |
//! | idle: `block_on` polls it when its waker was called | is in the list | polling, if its own future wakes it; chosen, if another thread takes its waker out |
//! | chosen: it has yet to be polled since its waker was taken out and called | is not in the list | polling |
//!
//! All fields are behind one lock. No thread calls a waker, or its future, under the lock.
//!
//! 1. A thread looks for the worker when it enters, and before and after each poll of its future.
//!    If the worker is there, the thread drives.
//! 2. A thread becomes idle only under the lock under which it has found no worker.
//! 3. A driving thread that leaves puts the worker back. Under the same lock it chooses one idle
//!    thread, the one that entered first. Each leave wakes one thread, however many wait.
//! 4. A chosen thread that leaves before it has looked for the worker chooses another idle thread,
//!    if the worker is there. A polling thread may leave without that: it was not chosen.
//! 5. So while the worker is there and a thread is idle, some thread is chosen. By rule 2 no thread
//!    becomes idle while the worker is there, and by rule 3 the thread that puts the worker back
//!    chooses one. A chosen thread drives when it is polled, or another thread drives by then; or
//!    rule 4 chooses the next.
//! 6. A chosen thread is soon polled: it runs no future meanwhile. A polling thread is never
//!    chosen, because the poll of its future may block, even until a task of this runtime has run
//!    (`block_in_place`).
use std::{
    collections::BTreeMap,
    task::{Poll, Waker},
};
use sync_shim::{
    sync::{Mutex, MutexGuard},
    thread::{self, Thread},
};

/// The worker, and the threads that wait for it.
pub(super) struct Handover<W>(Mutex<State<W>>);

struct State<W> {
    /// The worker, unless a thread drives it.
    worker: Option<W>,
    /// The thread that drives.
    driver: Option<Thread>,
    /// The wakers of the idle threads, by the threads' keys.
    idle: BTreeMap<u64, Waker>,
    /// The key of the next thread that waits.
    next_key: u64,
}

impl<W> State<W> {
    /// Takes the worker for this thread, if no thread has it.
    fn take(&mut self) -> Option<W> {
        let worker = self.worker.take()?;
        self.driver = Some(thread::current());
        Some(worker)
    }

    /// Chooses an idle thread if the worker is there. The caller calls the waker without the lock.
    #[must_use]
    fn choose(&mut self) -> Option<Waker> {
        self.worker.as_ref()?;
        self.idle.pop_first().map(|(_, waker)| waker)
    }
}

/// The result of [`Handover::enter`].
pub(super) enum Entered<'a, W> {
    /// The thread drives.
    Drives(W),
    /// The thread waits.
    Waits(Waiting<'a, W>),
    /// The thread drives already, so it would wait for itself.
    Nested,
}

impl<W> Handover<W> {
    pub(super) fn new(worker: W) -> Self {
        Self(Mutex::new(State {
            worker: Some(worker),
            driver: None,
            idle: BTreeMap::new(),
            next_key: 0,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State<W>> {
        self.0.lock()
    }

    /// Takes the worker for this thread, or makes this thread one that waits.
    pub(super) fn enter(&self) -> Entered<'_, W> {
        let mut state = self.lock();
        if let Some(worker) = state.take() {
            return Entered::Drives(worker);
        }
        let driver = state.driver.as_ref().map(Thread::id);
        if driver == Some(thread::current().id()) {
            return Entered::Nested;
        }
        state.next_key += 1;
        Entered::Waits(Waiting {
            of: self,
            key: state.next_key,
            is_idle: false,
        })
    }

    /// Takes the worker for this thread, if no thread has it.
    pub(super) fn take(&self) -> Option<W> {
        self.lock().take()
    }

    /// Takes the worker, if no thread has it. No thread drives from then on.
    pub(super) fn take_for_good(&self) -> Option<W> {
        self.lock().worker.take()
    }

    /// Puts the worker back, and wakes an idle thread (rule 3).
    pub(super) fn put_back(&self, worker: W) {
        let mut state = self.lock();
        state.worker = Some(worker);
        state.driver = None;
        let chosen = state.choose();
        drop(state);
        wake(chosen);
    }
}

fn wake(chosen: Option<Waker>) {
    if let Some(waker) = chosen {
        waker.wake();
    }
}

/// A thread that waits for the worker.
pub(super) struct Waiting<'a, W> {
    of: &'a Handover<W>,
    key: u64,
    /// Whether the thread is idle or chosen.
    is_idle: bool,
}

impl<W> Waiting<'_, W> {
    /// Polls the thread's future. Returns the worker as an error if it is there.
    pub(super) fn poll<R>(
        &mut self,
        waker: &Waker,
        future: impl FnOnce() -> Poll<R>,
    ) -> Poll<Result<R, W>> {
        if let Some(worker) = self.begin_poll() {
            return Poll::Ready(Err(worker));
        }
        if let Poll::Ready(output) = future() {
            return Poll::Ready(Ok(output));
        }
        match self.end_poll(waker) {
            Some(worker) => Poll::Ready(Err(worker)),
            None => Poll::Pending,
        }
    }

    /// Makes the thread a polling one, or takes the worker.
    fn begin_poll(&mut self) -> Option<W> {
        let mut state = self.of.lock();
        self.is_idle = false;
        let own = state.idle.remove(&self.key);
        let worker = state.take();
        drop(state);
        drop(own);
        worker
    }

    /// Makes the thread an idle one, or takes the worker.
    fn end_poll(&mut self, waker: &Waker) -> Option<W> {
        let waker = waker.clone();
        let mut state = self.of.lock();
        let worker = state.take();
        if worker.is_none() {
            self.is_idle = true;
            state.idle.insert(self.key, waker);
        }
        worker
    }
}

impl<W> Drop for Waiting<'_, W> {
    /// The thread leaves. It is idle or chosen only if `block_on` has panicked between two polls.
    fn drop(&mut self) {
        if !self.is_idle {
            return;
        }
        let mut state = self.of.lock();
        let own = state.idle.remove(&self.key);
        let chosen = if own.is_none() { state.choose() } else { None };
        drop(state);
        drop(own);
        wake(chosen); // Rule 4.
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;

#[cfg(all(test, not(selvedge_count)))]
mod models;
