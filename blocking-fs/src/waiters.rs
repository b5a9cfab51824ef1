//! Waits for a state that is under a lock.
//!
//! The functions of a waker are user code, and may use the state. So wakers are cloned, woken and
//! dropped without the lock.
use crate::budget::note_wait;
use std::{
    collections::BTreeMap,
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};
use sync_shim::panics::contain;

/// The wakers of tasks that wait, each by a key.
#[derive(Default)]
pub(crate) struct Waiters {
    wakers: BTreeMap<u64, Option<Waker>>,
    last: u64,
}

impl Waiters {
    pub(crate) const fn new() -> Self {
        Self {
            wakers: BTreeMap::new(),
            last: 0,
        }
    }

    /// Returns a key that no other task has.
    pub(crate) fn new_key(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    pub(crate) fn slot(&mut self, key: u64) -> &mut Option<Waker> {
        self.wakers.entry(key).or_default()
    }

    /// Takes the task's waker, for the caller to drop without the lock.
    #[must_use = "drop it without the lock"]
    pub(crate) fn remove(&mut self, key: u64) -> Option<Waker> {
        self.wakers.remove(&key).flatten()
    }

    /// Takes all wakers, for the caller to wake without the lock.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Waker> + use<> {
        mem::take(&mut self.wakers).into_values().flatten()
    }
}

/// Locks the state. A panic under the lock is one of a waker's functions or of an allocation, and
/// leaves the state whole.
pub(crate) fn lock<S>(state: &Mutex<S>) -> MutexGuard<'_, S> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the state, if `is_ready` returns true for it. Otherwise keeps the task's waker in the slot
/// that `slot` returns. `what` is the event that the task then waits for, for a dump of tasks.
pub(crate) fn poll_lock<'a, S>(
    shared: &'a Mutex<S>,
    what: &'static str,
    cx: &Context<'_>,
    is_ready: impl Fn(&S) -> bool,
    slot: impl Fn(&mut S) -> &mut Option<Waker>,
) -> Poll<MutexGuard<'a, S>> {
    let mut cloned = None;
    loop {
        let mut state = lock(shared);
        if is_ready(&state) {
            let Some(unused) = cloned.take() else {
                return Poll::Ready(state);
            };
            drop(state);
            drop::<Waker>(unused);
            continue;
        }
        let kept = slot(&mut state);
        if kept.as_ref().is_some_and(|kept| kept.will_wake(cx.waker())) {
            drop(state);
            note_wait(what);
            return Poll::Pending;
        }
        let Some(waker) = cloned.take() else {
            drop(state);
            cloned = Some(cx.waker().clone());
            continue;
        };
        let replaced = kept.replace(waker);
        drop(state);
        drop(replaced);
        note_wait(what);
        return Poll::Pending;
    }
}

/// Wakes tasks. If a waker panics, the other tasks are woken all the same, and the caller goes on.
pub(crate) fn wake_all(wakers: impl Iterator<Item = Waker>) {
    for waker in wakers {
        contain(|| waker.wake());
    }
}
