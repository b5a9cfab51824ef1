//! Threads for closures that block.
//!
//! One lock guards the queue and the counts. A closure is queued and an idle thread notified, or a thread
//! started if there is none and the cap allows. A thread that has waited for the keep-alive ends.
//! Closing drops what has not begun, and lets the threads end after the closure in hand.
use std::{
    cell::Cell,
    collections::VecDeque,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};
use sync_shim::{
    sync::{Arc, Condvar, Mutex},
    thread,
};
use task_header::{JoinHandle, Notified, Ran, Schedule, WakeKind};

/// The pool of one runtime.
pub(crate) struct Pool {
    state: Mutex<State>,
    /// Idle threads wait here for work.
    work: Condvar,
    /// The runtime's drop waits here for the last thread.
    ended: Condvar,
    name: String,
    cap: usize,
    keep_alive: Duration,
}

struct State {
    queue: VecDeque<Notified<Blocking>>,
    threads: usize,
    idle: usize,
    closed: bool,
}

/// The scheduler of closures: they are queued once, and never woken.
pub(crate) struct Blocking;

impl Schedule for Blocking {
    fn schedule(task: Notified<Self>, _why: WakeKind) {
        // Only an abort gets here, and only after the closure's one run has begun or ended.
        drop(task);
    }
}

/// A closure as a future of one poll.
struct Once<F>(Option<F>);

impl<F> Unpin for Once<F> {}

impl<F: FnOnce() -> R, R> Future for Once<F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        let f = self.0.take().expect("a closure runs once");
        Poll::Ready(f())
    }
}

sync_shim::thread_local! {
    /// Whose thread this is: the pool's address.
    static POOL: Cell<usize> = Cell::new(0);
}

impl Pool {
    pub(crate) fn new(name: &str, cap: usize, keep_alive: Duration) -> Self {
        let state = State {
            queue: VecDeque::new(),
            threads: 0,
            idle: 0,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            ended: Condvar::new(),
            name: format!("{name}-blocking"),
            cap,
            keep_alive,
        }
    }

    /// Queues a closure. Refused (closed, or not a single thread to be had) it is dropped here,
    /// which its handle sees as cancelled.
    pub(crate) fn spawn<F, R>(pool: &Arc<Self>, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let (task, join) = task_header::new(Once(Some(f)), Blocking);
        let refused = Self::queue(pool, task);
        drop(refused); // User code, outside of the lock.
        join
    }

    fn queue(this: &Arc<Self>, task: Notified<Blocking>) -> Option<Notified<Blocking>> {
        let mut state = this.state.lock();
        if state.closed {
            return Some(task);
        }
        state.queue.push_back(task);
        if state.idle >= state.queue.len() {
            this.work.notify_one();
            return None;
        }
        if state.threads == this.cap {
            return None;
        }
        state.threads += 1;
        let pool = this.clone();
        let started = thread::Builder::new()
            .name(this.name.clone())
            .spawn(move || Self::run(pool));
        if started.is_ok() {
            return None;
        }
        state.threads -= 1;
        // The others will come to it; without any, nobody would.
        if state.threads == 0 {
            state.queue.pop_back()
        } else {
            None
        }
    }

    fn run(this: Arc<Self>) {
        POOL.with(|pool| pool.set(Arc::as_ptr(&this).addr()));
        let mut state = this.state.lock();
        loop {
            if let Some(task) = state.queue.pop_front() {
                drop(state);
                // The future is done in one poll, and its panic caught there.
                let (Ran::Complete | Ran::Pending | Ran::Notified(_)) = task.run();
                state = this.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let (now, timed_out) = this.work.wait_timeout(state, this.keep_alive);
            state = now;
            state.idle -= 1;
            if timed_out && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        if state.threads == 0 {
            this.ended.notify_all();
        }
    }

    /// Refuses closures from now on and drops those that have not begun.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let dropped = std::mem::take(&mut state.queue);
        self.work.notify_all();
        drop(state);
        drop(dropped); // User code, outside of the lock.
    }

    /// Waits for the closures that have begun.
    pub(crate) fn wait(&self) {
        let mut state = self.state.lock();
        while state.threads != 0 {
            state = self.ended.wait(state);
        }
    }

    /// Whether this thread is the pool's.
    pub(crate) fn is_current(&self) -> bool {
        POOL.try_with(Cell::get)
            .is_ok_and(|pool| pool == std::ptr::from_ref(self).addr())
    }
}
