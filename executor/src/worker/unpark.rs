//! A worker's unparker. It unparks the worker's thread, or starts it.
//!
//! An *unstarted* worker is a sleeping worker whose unparker starts its thread. Only the thread
//! that closes the runtime treats it differently from the other sleepers.
//!
//! 1. The builder gives the core of such a worker to the unparker, and then announces the worker's
//!    sleep. So a notifier that chooses the worker finds the core.
//! 2. A core is taken out by one atomic exchange, so only one thread gets it. A notifier takes the
//!    core to start the worker's thread. The thread that closes the runtime takes the core to drop
//!    it. Two notifiers never take the same core: each has chosen a different worker, as a worker
//!    is chosen once for each sleep.
//! 3. A notifier counts a worker as searching when it chooses the worker. The new thread begins as
//!    a searcher, and does not count itself. So only the notifier may start the thread. For wakes
//!    by any thread, at any time, there is [`waker`](Unparker::waker), which starts no thread.
//! 4. If the thread cannot be started, the core is dropped, and the notifier chooses another
//!    worker. The refused worker then neither searches nor sleeps, so no notifier chooses it again.
//! 5. A notifier may choose an unstarted worker whose core the closing thread has taken. Then the
//!    unpark has no effect. So the closing thread no longer counts this worker as searching, and
//!    unparks all other workers. They find the task that the notifier pushed.
use blocking_threads::Lent;
use std::task::Waker;

/// A worker without a thread.
pub(crate) trait Unstarted: Send {
    /// Starts the worker's thread. If the thread cannot be started, drops the worker and returns
    /// false.
    fn start(self: Box<Self>) -> bool;
}

/// Unparks a worker, whose core is a `C`.
pub(crate) struct Unparker<C: Unstarted> {
    waker: Waker,
    /// The core of an unstarted worker.
    unstarted: Lent<C>,
}

impl<C: Unstarted> Unparker<C> {
    /// Makes a worker's unparker. The waker unparks the worker's parker.
    pub(crate) fn new(waker: Waker) -> Self {
        Self {
            waker,
            unstarted: Lent::new(),
        }
    }

    /// Makes the worker an unstarted one (rule 1).
    pub(crate) fn start_later(&self, core: Box<C>) {
        drop(self.unstarted.offer(core));
    }

    /// Unparks a worker that this thread has chosen, or starts the worker's thread. Returns false
    /// if the worker's thread cannot be started (rule 4).
    pub(crate) fn unpark(&self) -> bool {
        match self.unstarted.take() {
            Some(core) => core.start(),
            None => {
                self.waker.wake_by_ref();
                true
            }
        }
    }

    /// Takes the core of an unstarted worker out, for the close.
    pub(crate) fn take_unstarted(&self) -> Option<Box<C>> {
        self.unstarted.take()
    }

    /// The waker that unparks the worker's thread, and starts none (rule 3).
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }
}
