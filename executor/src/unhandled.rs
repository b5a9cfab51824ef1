//! Panics that somebody wants to hear of. Only in runtimes with such a builder do tasks and closures know theirs.
//!
//! A panic that shuts its runtime down ends each `block_on` there that waits. One lock guards whether
//! there was such a panic, and the wakers of those that wait:
//!
//! 1. A `block_on` enters its waker at its first `Pending`, unless it finds the panic: then it panics.
//! 2. The panic is noted, the runtime closed, and then all those are woken. Each looks before it
//!    polls its future again. So none sleeps on, and none sees what the shutdown has done to tasks.
use crate::{Handle, UnhandledPanic, scope, shared::Shared};
use blocking_threads::OnPanic;
use std::{
    any::Any,
    collections::BTreeMap,
    future::{Future, poll_fn},
    mem::take,
    pin::Pin,
    task::Waker,
};
use sync_shim::sync::{Arc, Mutex};

/// What a task or a closure holds, where its panics are heard of: its runtime. Also when that has ended, as an output may be dropped later.
pub(crate) struct Overheard(Handle);

impl Overheard {
    /// If this runtime's builder has somebody who wants to hear.
    pub(crate) fn by(handle: &Handle) -> Option<Self> {
        let observed = handle.shared().hooks.observe_panics();
        observed.then(|| Self(handle.clone()))
    }
}

impl OnPanic for Overheard {
    /// Somebody's code has panicked, in a runtime's task or closure or where its handle is dropped: that may be another runtime's thread, or nobody's.
    fn panicked(&self, payload: &(dyn Any + Send)) {
        let Self(handle) = self;
        let shared = handle.shared();
        let at_home = scope::current().is_some_and(|here| Arc::ptr_eq(here.shared(), shared));
        let entered = (!at_home).then(|| handle.enter());
        shared.hooks.panicked(payload);
        drop(entered);
        if shared.hooks.policy == UnhandledPanic::Shutdown {
            let waiting = shared.unhandled.note();
            shared.close();
            waiting.into_values().for_each(Waker::wake);
        }
    }
}

/// Whether a panic has shut the runtime down, and who is to be woken by one.
pub(crate) struct Unhandled(Mutex<State>);

struct State {
    happened: bool,
    waiting: BTreeMap<u64, Waker>,
    /// Of all that have waited so far.
    number: u64,
}

impl Unhandled {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            happened: false,
            waiting: BTreeMap::new(),
            number: 0,
        }))
    }

    /// Notes a panic, and gives those that wait.
    fn note(&self) -> BTreeMap<u64, Waker> {
        let mut state = self.0.lock();
        state.happened = true;
        take(&mut state.waiting)
    }

    /// Enters a waker, unless a panic was noted.
    fn enter(&self, waker: &Waker) -> Option<u64> {
        let mut state = self.0.lock();
        if state.happened {
            return None;
        }
        let number = state.number;
        state.number += 1;
        state.waiting.insert(number, waker.clone());
        Some(number)
    }
}

/// A `block_on` that waits.
struct Waits<'a> {
    at: &'a Unhandled,
    number: u64,
}

impl Waits<'_> {
    fn is_over(&self) -> bool {
        self.at.0.lock().happened
    }
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.at.0.lock().waiting.remove(&self.number);
    }
}

/// `future`, of a `block_on`: once it has waited, or is to wait, it panics if the runtime was shut down by a panic. Without that policy a wait costs a look at it.
pub(crate) fn or_panic<'a, F: Future>(
    shared: &'a Shared,
    mut future: Pin<&'a mut F>,
) -> impl Future<Output = F::Output> {
    let mut waits = None::<Waits<'_>>;
    poll_fn(move |cx| {
        if waits.as_ref().is_some_and(Waits::is_over) {
            shut_down();
        }
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() && waits.is_none() && shared.hooks.policy == UnhandledPanic::Shutdown
        {
            let at = &shared.unhandled;
            let number = at.enter(cx.waker()).unwrap_or_else(|| shut_down());
            waits = Some(Waits { at, number });
        }
        polled
    })
}

#[cold]
fn shut_down() -> ! {
    panic!(
        "block_on waits in a runtime that was shut down by an unhandled panic of a task or closure"
    );
}

#[cfg(test)]
mod models;
