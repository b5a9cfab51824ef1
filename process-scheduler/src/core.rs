//! The shared part of a process's cell: its state, its two lanes, and the place of its token.
//!
//! A thread that has an event for the process pushes it into a lane, and then sets the event's bit
//! in the state. The worker that runs the process takes what the lanes have. While the process
//! waits, its token lies here. The thread that ends the wait takes the token out, and queues it.
//!
//! | field | who touches it |
//! |---|---|
//! | `state` | all threads, by read-modify-writes |
//! | `urgent`, `messages` | all threads push; the owner of the token takes |
//! | `token` | a worker that suspends or stops the process writes it; rule 1 says who takes it |
//!
//! # Rules
//!
//! 1. The token is in the cell while the phase is blocked, idle or stopped. The worker writes the
//!    token before its exchange that publishes such a phase. The one thread whose exchange leaves
//!    the phase takes the token out. If the worker could not publish such a phase, it takes the
//!    token out again.
//! 2. A sender notifies only if its push was the first into an empty lane. Another sender's event
//!    is behind the first one, and the worker takes all events of the lane. [`ProcessCore::signal`]
//!    does so for a signal. A message may push another one out of its lane, so the cell sends
//!    messages itself (`cell/notify.rs`).
//! 3. The end of the process closes both lanes. So each event is delivered, handed back to its
//!    sender, or returned by [`ProcessCore::end`].
//! 4. The token keeps the core live. The exchange that suspends or stops the process gives the
//!    token away, and another thread may free the core at once. So during the exchange this thread
//!    has only a reference to `state`, an atomic, and afterwards it uses no reference.
use crate::{
    Mailbox,
    lane::{Lane, Taken},
    pool::Kept,
    state::{FINAL, KILL, NotifierDuty, RunState, SuspenderDuty, URGENT, WAKE, Wait},
};
use queue_global::mpsc::{Batch, Pushed, Queue};
use sync_shim::cell::UnsafeCell;

pub(crate) struct ProcessCore<M, S, T> {
    pub(crate) state: RunState,
    urgent: Queue<S, Kept>,
    pub(crate) messages: Lane<M>,
    token: UnsafeCell<Option<T>>,
}

// SAFETY: messages, signals and the token go in on one thread and come out on another. By rule 1
// one thread at a time touches the token.
unsafe impl<M: Send, S: Send, T: Send> Sync for ProcessCore<M, S, T> {}

impl<M, S, T> ProcessCore<M, S, T> {
    /// Makes the core of a new process. The caller has the token, and submits it.
    pub(crate) fn new(mailbox: Mailbox) -> Self {
        Self {
            state: RunState::new(),
            urgent: Queue::with_nodes(),
            messages: Lane::new(mailbox),
            token: UnsafeCell::new(None),
        }
    }

    /// Pushes a signal, ahead of all messages. Hands it back if the process has ended.
    pub(crate) fn signal(&self, signal: S) -> Result<Option<T>, S> {
        match self.urgent.push(signal) {
            Ok(Pushed::First) => Ok(self.notify(URGENT)),
            Ok(Pushed::Behind) => Ok(None),
            Err(closed) => Err(closed.0),
        }
    }

    /// Makes the process run one more step.
    #[must_use]
    pub(crate) fn wake(&self) -> Option<T> {
        self.notify(WAKE)
    }

    /// Makes the process end before its next step, for good if `is_final`.
    #[must_use]
    pub(crate) fn kill(&self, is_final: bool) -> Option<T> {
        self.notify(if is_final { FINAL } else { KILL })
    }

    /// Sets the bit of an event. Returns the token if the caller must submit it.
    #[must_use]
    pub(crate) fn notify(&self, bit: u64) -> Option<T> {
        match self.state.notify(bit) {
            NotifierDuty::Submit => self.take_token(),
            NotifierDuty::DoNothing | NotifierDuty::Gone => None,
        }
    }

    /// Takes the token out (rule 1). The caller's exchange made the process ready, or the caller
    /// has put the token in and could not stop the process.
    fn take_token(&self) -> Option<T> {
        let token = self.token.with_mut(|token| {
            // SAFETY: rule 1.
            unsafe { &mut *token }.take()
        });
        debug_assert!(token.is_some(), "the token is in the cell");
        token
    }

    /// Puts the token into the cell (rule 1): the caller runs the process.
    fn put_token(&self, token: T) {
        self.token.with_mut(|place| {
            // SAFETY: rule 1.
            unsafe { *place = Some(token) }
        });
    }

    /// Suspends the process. Returns the token if an event came meanwhile; the caller then submits
    /// the token.
    ///
    /// # Safety
    /// The caller runs the process. The core is live as long as its token exists. After `None` the
    /// core may be gone.
    #[must_use]
    pub(crate) unsafe fn suspend(this: *const Self, token: T, wait: Wait) -> Option<T> {
        // SAFETY: rule 4: the token is the caller's, so the core is live.
        unsafe { &*this }.put_token(token);
        // SAFETY: rule 4: the core is live until the exchange.
        let state = unsafe { &(*this).state };
        match state.suspend(wait) {
            SuspenderDuty::Waits => None,
            // SAFETY: the exchange left the token to this thread, so the core is live.
            SuspenderDuty::Ready => unsafe { &*this }.take_token(),
        }
    }

    /// Stops the process until its supervisor restarts it or a final kill ends it. Returns the
    /// token if the process must end for good now.
    ///
    /// # Safety
    /// The contract of [`suspend`](Self::suspend).
    #[must_use]
    pub(crate) unsafe fn stop(this: *const Self, token: T) -> Option<T> {
        // SAFETY: rule 4: the token is the caller's, so the core is live.
        unsafe { &*this }.put_token(token);
        // SAFETY: rule 4: the core is live until the exchange.
        let state = unsafe { &(*this).state };
        if state.stop() {
            return None;
        }
        // SAFETY: there was no exchange, so the token is still this thread's.
        unsafe { &*this }.take_token()
    }

    /// Begins the next incarnation of a stopped process. `None` if it is not stopped.
    #[must_use]
    pub(crate) fn revive(&self) -> Option<T> {
        if !self.state.revive() {
            return None;
        }
        self.take_token()
    }

    /// Returns whether the urgent lane has a signal. Costs one load.
    pub(crate) fn has_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Takes all signals. The caller has the token.
    pub(crate) fn take_urgent(&self) -> Batch<S, Kept> {
        self.urgent.take()
    }

    /// Ends the process. Returns the signals and messages that were not delivered. The caller has
    /// the token.
    pub(crate) fn end(&self) -> (Batch<S, Kept>, Taken<M>) {
        self.state.end();
        (self.urgent.close(), self.messages.close())
    }
}

#[cfg(test)]
pub(crate) mod models;
