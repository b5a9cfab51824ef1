//! The token of a thread that waits in a driver: by it the thread is unparked.
//!
//! A worker has a token, as a [`ThreadPark`](worker_idle::park::ThreadPark) has. One state says
//! whether there is a token, and whether the worker waits:
//!
//! | state | token | the worker |
//! |---|---|---|
//! | `EMPTY` | no | runs |
//! | `NOTIFIED` | yes | runs or waits |
//! | `IN_THREAD` | no | waits on its thread, or looks at the role once more before it does |
//! | `IN_REACTOR` | no | waits in the reactor, or is about to |
//!
//! 1. `unpark` swaps in `NOTIFIED`. If the swap finds a waiting state, `unpark` ends that wait.
//!    Otherwise the worker will find the token.
//! 2. The worker enters a waiting state only from `EMPTY`, and leaves it by one atomic change to
//!    `EMPTY`. So a token is taken once, and ends one park.
//! 3. The worker writes its thread's handle before `IN_THREAD`. An unparker reads the handle only
//!    after it found that state.
//! 4. The worker enters `IN_REACTOR` only after it has seen the reactor. An unparker that finds
//!    that state wakes the reactor. Another unpark, before the worker leaves the state, finds
//!    `NOTIFIED` and costs no system call. The wake of the reactor may come after the worker has
//!    left: then the wake ends a later wait in vain.
use crate::poller::Poller;
use std::{sync::Arc, task::Wake, time::Duration};
use sync_shim::{
    atomic::{
        AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    sync::Mutex,
    thread::{self, Thread},
};

const EMPTY: u32 = 0;
const NOTIFIED: u32 = 1;
const IN_THREAD: u32 = 2;
const IN_REACTOR: u32 = 3;

/// The end of a wait on a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    /// The thread has taken a token.
    Unparked,
    /// The limit has passed, or the thread woke up without a reason.
    TimedOut,
    /// The thread was not allowed to wait, and there was no token.
    Refused,
}

/// The token of a worker, or of another thread that waits in the driver.
pub(crate) struct Token {
    state: AtomicU32,
    thread: Mutex<Option<Thread>>,
    poller: Arc<Poller>,
}

impl Token {
    pub(crate) fn new(poller: Arc<Poller>) -> Self {
        Self {
            state: AtomicU32::new(EMPTY),
            thread: Mutex::new(None),
            poller,
        }
    }

    /// Ends the present or the next park (rule 1).
    pub(crate) fn unpark(&self) {
        // Ordering: Release publishes earlier writes to the park, also the writes before an earlier
        // unpark (by the release sequence). Acquire pairs with the Release of `wait_in_reactor`:
        // this thread then finds the reactor (rule 4).
        match self.state.swap(NOTIFIED, AcqRel) {
            IN_THREAD => {
                let thread = self.thread.lock().clone();
                if let Some(thread) = thread {
                    thread.unpark();
                }
            }
            IN_REACTOR => {
                if let Some(reactor) = self.poller.reactor() {
                    reactor.wake();
                }
            }
            _ => {}
        }
    }

    /// Returns whether the worker's thread waits, and was not unparked.
    #[cfg(feature = "test-util")]
    pub(crate) fn is_waiting(&self) -> bool {
        // Ordering: Relaxed; the fences of the test clock order this load.
        matches!(self.state.load(Relaxed), IN_THREAD | IN_REACTOR)
    }

    /// Marks the thread of a worker that parks in a parker of its own as waiting. Returns false if
    /// the worker was unparked before.
    #[cfg(feature = "test-util")]
    pub(crate) fn begin_wait(&self) -> bool {
        // Ordering: Relaxed, as in `is_waiting`. `end_wait` acquires a token.
        self.state
            .compare_exchange(EMPTY, IN_THREAD, Relaxed, Relaxed)
            .is_ok()
    }

    /// Marks the thread of a worker that parks in a parker of its own as running. Takes the token.
    #[cfg(feature = "test-util")]
    pub(crate) fn end_wait(&self) {
        // Ordering: Acquire pairs with `unpark`. The parker's own token may come later than this
        // one, but the worker looks for tasks right after this.
        self.state.swap(EMPTY, Acquire);
    }

    /// Returns whether the next park ends at once. A hint for all but the test clock.
    pub(crate) fn is_notified(&self) -> bool {
        // Ordering: Relaxed. The thread that takes the token acquires the writes that the unpark
        // publishes. The test clock reads its count `waits` before and after this load.
        self.state.load(Relaxed) == NOTIFIED
    }

    /// Returns whether the thread waits outside of the reactor, or is about to.
    pub(crate) fn is_in_thread(&self) -> bool {
        // Ordering: Relaxed. A worker that this load misses does not wait: it sees that the role is
        // vacant. The fences of `Role::is_still_held` and of `recruit_standby` order this load
        // (rule 4 of `role.rs`, rule 4 of `standby.rs`).
        self.state.load(Relaxed) == IN_THREAD
    }

    pub(crate) fn take(&self) -> bool {
        // Ordering: Acquire pairs with `unpark`. Without a token the caller learns nothing.
        self.state
            .compare_exchange(NOTIFIED, EMPTY, Acquire, Relaxed)
            .is_ok()
    }

    /// Waits on this thread for a token, at most for `limit`.
    pub(crate) fn wait_in_thread(&self, limit: Option<Duration>) {
        self.wait_in_thread_if(limit, || true);
    }

    /// Waits on this thread for a token, at most for `limit`. Calls `may_wait` in the state
    /// `IN_THREAD`, before it waits. If `may_wait` returns false, this thread does not wait.
    pub(crate) fn wait_in_thread_if(
        &self,
        limit: Option<Duration>,
        may_wait: impl FnOnce() -> bool,
    ) -> Waited {
        if self.take() {
            return Waited::Unparked;
        }
        *self.thread.lock() = Some(thread::current());
        // Ordering: Relaxed. The lock publishes the handle to an unparker that finds IN_THREAD. If
        // there is a token, the swap below acquires it.
        let entered = self
            .state
            .compare_exchange(EMPTY, IN_THREAD, Relaxed, Relaxed)
            .is_ok();
        let waits = !entered || may_wait();
        if entered && waits {
            match limit {
                Some(limit) => thread::park_timeout(limit),
                None => loop {
                    thread::park();
                    if self.take() {
                        return Waited::Unparked;
                    }
                },
            }
        }
        // There is a token, or the time is up, or this thread may not wait.
        // Ordering: Acquire pairs with `unpark`.
        match self.state.swap(EMPTY, Acquire) {
            NOTIFIED => Waited::Unparked,
            _ if waits => Waited::TimedOut,
            _ => Waited::Refused,
        }
    }

    /// Calls `wait`, which waits in the reactor, unless there is a token. Returns whether it called
    /// `wait`. The caller must have seen the reactor.
    pub(crate) fn wait_in_reactor(&self, wait: impl FnOnce()) -> bool {
        // Ordering: Release pairs with the Acquire of `unpark`: an unparker that sees this state
        // finds the reactor (rule 4). If there is a token, the swap below acquires it.
        let entered = self
            .state
            .compare_exchange(EMPTY, IN_REACTOR, Release, Relaxed)
            .is_ok();
        if entered {
            wait();
        }
        // Ordering: Acquire pairs with `unpark`.
        self.state.swap(EMPTY, Acquire);
        entered
    }
}

impl Wake for Token {
    fn wake(self: Arc<Self>) {
        self.unpark();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.unpark();
    }
}

#[cfg(test)]
impl Token {
    /// Sets the state of a worker that waits on its thread.
    pub(crate) fn pretend_to_wait(&self) {
        // Ordering: Relaxed, as one thread alone uses the token in these tests.
        self.state.store(IN_THREAD, Relaxed);
    }
}

/// In the models, a kernel made for models stands for the system's.
#[cfg(all(test, selvedge_loom))]
mod models;
