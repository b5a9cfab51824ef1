//! The open connections of a server: their number, and how a shutdown reaches them.
//!
//! The server has one [`Connections`]; each connection has a [`Guard`]. The server is *open* at
//! first. While it is *closing*, each connection finishes its requests and then ends. If the
//! connections take too long, the server is *aborted*: each connection ends at its next poll.
//!
//! 1. A guard counts as one open connection from its creation to its drop.
//! 2. The stage changes under the lock. The same locked section takes all wakers out.
//! 3. A connection leaves its waker under the lock, and reads the stage there. So either it sees
//!    the new stage, or the change finds its waker and wakes it (rule 2).
//! 4. A guard remembers the stage that it read under the lock, and the waker that it left there.
//!    While the stage is the same, that waker is still in the table. So a poll with the same waker
//!    needs no lock.
//! 5. The server waits until at most a given number of connections are open. Under one lock it
//!    reads the count, and leaves its waker and the number. The drop of a guard that lowers the
//!    count to that number takes the waker and wakes the server.
//! 6. Wakers are cloned, woken and dropped outside the lock, since a waker may run any code then.
use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    task::{Context, Poll, Waker},
};

/// The stage of a server on its way to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    Open,
    Closing,
    Aborted,
}

#[derive(Default)]
pub(crate) struct Connections {
    is_closing: OnceLock<()>,
    is_aborted: OnceLock<()>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: usize,
    next_id: u64,
    /// The wakers that guards have left since the last change of the stage, by the guards' ids.
    wakers: HashMap<u64, Waker>,
    /// The number and the waker of a server that waits until at most that number of connections are
    /// open.
    server: Option<(usize, Waker)>,
}

impl Connections {
    /// Adds a connection.
    pub(crate) fn open(self: &Arc<Self>) -> Guard {
        let mut state = self.lock();
        state.open += 1;
        state.next_id += 1;
        Guard {
            connections: self.clone(),
            id: state.next_id,
            registered: None,
        }
    }

    /// Waits, for the server, until at most `most` connections are open.
    pub(crate) fn poll_at_most(&self, most: usize, cx: &mut Context<'_>) -> Poll<()> {
        if self.count() <= most {
            return Poll::Ready(());
        }
        let waker = cx.waker().clone();
        let mut state = self.lock();
        if state.open <= most {
            return Poll::Ready(());
        }
        let replaced = state.server.replace((most, waker));
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    /// Returns the number of open connections.
    pub(crate) fn count(&self) -> usize {
        self.lock().open
    }

    /// Lets each connection finish its request and take no more.
    pub(crate) fn close(&self) {
        self.advance(&self.is_closing);
    }

    /// Lets each connection end at its next poll.
    pub(crate) fn abort(&self) {
        self.advance(&self.is_aborted);
    }

    fn advance(&self, to: &OnceLock<()>) {
        let mut state = self.lock();
        if to.set(()).is_err() {
            return;
        }
        let wakers = mem::take(&mut state.wakers);
        drop(state);
        wakers.into_values().for_each(Waker::wake);
    }

    fn stage(&self) -> Stage {
        if self.is_aborted.get().is_some() {
            Stage::Aborted
        } else if self.is_closing.get().is_some() {
            Stage::Closing
        } else {
            Stage::Open
        }
    }

    /// Locks the state. Nothing panics under the lock, so the state is whole even if the lock is
    /// poisoned.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open connection.
pub(crate) struct Guard {
    connections: Arc<Connections>,
    id: u64,
    /// The stage and the waker of the last registration.
    registered: Option<(Stage, Waker)>,
}

impl Guard {
    /// Returns the stage. The task is woken when the stage changes.
    pub(crate) fn poll_stage(&mut self, cx: &mut Context<'_>) -> Stage {
        let stage = self.connections.stage();
        match &self.registered {
            Some((at, waker)) if *at == stage && waker.will_wake(cx.waker()) => stage,
            _ => self.register(cx.waker()),
        }
    }

    #[cold]
    fn register(&mut self, waker: &Waker) -> Stage {
        let (kept, own) = (waker.clone(), waker.clone());
        let mut state = self.connections.lock();
        let stage = self.connections.stage();
        let replaced = state.wakers.insert(self.id, kept);
        drop(state);
        drop(replaced);
        self.registered = Some((stage, own));
        stage
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut state = self.connections.lock();
        state.open -= 1;
        let open = state.open;
        let waker = state.wakers.remove(&self.id);
        let server = state.server.take_if(|(most, _)| open <= *most);
        drop(state);
        drop(waker);
        if let Some((_, server)) = server {
            server.wake();
        }
    }
}

#[cfg(test)]
mod tests;
