//! Panics that tasks and closures report to their runtime, and the shutdown that these may cause.
//!
//! Tasks and closures report panics only if the builder has a panic hook or a policy other than
//! `Ignore`. Only then does each have a `PanicReporter`, a counted reference to the runtime.
//!
//! With [`UnhandledPanic::Shutdown`] a panic ends each `block_on` that waits in the runtime. One
//! lock guards whether there was such a panic, and the wakers of the waiting `block_on`s:
//!
//! 1. At its first `Pending` a `block_on` adds its waker. If there was a panic already, it panics
//!    instead.
//! 2. A panic is recorded, which takes all wakers. Then the runtime is closed. Then the wakers are
//!    woken.
//! 3. A `block_on` that has waited checks for a panic before it polls its future again.
//! 4. So no `block_on` sleeps on: by the lock, its waker was added before the panic, which takes
//!    and wakes it, or it finds the panic.
//! 5. And the future of a waiting `block_on` does not see the tasks that the shutdown cancels: they
//!    are cancelled after the panic was recorded, so the next check finds it.
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

/// Runtime to which a task or a closure reports its panics.
///
/// It holds the runtime's memory beyond the runtime's end, as an output may be dropped later.
pub(crate) struct PanicReporter(Handle);

impl PanicReporter {
    /// Returns it if panics are reported in this runtime.
    pub(crate) fn by(handle: &Handle) -> Option<Self> {
        let observed = handle.shared().hooks.observe_panics();
        observed.then(|| Self(handle.clone()))
    }
}

impl OnPanic for PanicReporter {
    /// Reports a panic of user code: of a task, of a closure, or of an output's drop.
    ///
    /// A handle with the output may be dropped anywhere, so this thread may be in another runtime,
    /// or in none.
    fn panicked(&self, payload: &(dyn Any + Send)) {
        let Self(handle) = self;
        let shared = handle.shared();
        let is_current = scope::current().is_some_and(|here| Arc::ptr_eq(here.shared(), shared));
        let entered = (!is_current).then(|| handle.enter());
        shared.hooks.panicked(payload);
        drop(entered);
        if shared.hooks.policy == UnhandledPanic::Shutdown {
            let waiting = shared.unhandled.record();
            shared.close();
            waiting.into_values().for_each(Waker::wake);
        }
    }
}

/// Whether a panic has shut the runtime down, and the wakers that such a panic wakes.
pub(crate) struct Unhandled(Mutex<State>);

struct State {
    /// Whether there was a panic.
    panicked: bool,
    /// Wakers of the `block_on`s that wait, by their keys.
    waiting: BTreeMap<u64, Waker>,
    next_key: u64,
}

impl Unhandled {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(State {
            panicked: false,
            waiting: BTreeMap::new(),
            next_key: 0,
        }))
    }

    /// Records a panic, and returns the wakers.
    fn record(&self) -> BTreeMap<u64, Waker> {
        let mut state = self.0.lock();
        state.panicked = true;
        take(&mut state.waiting)
    }

    /// Adds a waker and returns its key, unless a panic was recorded.
    fn add(&self, waker: &Waker) -> Option<u64> {
        let mut state = self.0.lock();
        if state.panicked {
            return None;
        }
        let key = state.next_key;
        state.next_key += 1;
        state.waiting.insert(key, waker.clone());
        Some(key)
    }
}

/// A `block_on` that has waited: its waker is removed when this is dropped.
struct Waiting<'a> {
    unhandled: &'a Unhandled,
    key: u64,
}

impl Waiting<'_> {
    fn has_panicked(&self) -> bool {
        self.unhandled.0.lock().panicked
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.unhandled.0.lock().waiting.remove(&self.key);
    }
}

/// Wraps the future of a `block_on`: it panics if it has to wait and a panic shut the runtime down.
///
/// Without that policy a wait costs one look at the policy.
pub(crate) fn or_panic<'a, F: Future>(
    shared: &'a Shared,
    mut future: Pin<&'a mut F>,
) -> impl Future<Output = F::Output> {
    let mut waiting = None::<Waiting<'_>>;
    poll_fn(move |cx| {
        if waiting.as_ref().is_some_and(Waiting::has_panicked) {
            panic_in_block_on();
        }
        let polled = future.as_mut().poll(cx);
        if polled.is_pending()
            && waiting.is_none()
            && shared.hooks.policy == UnhandledPanic::Shutdown
        {
            let unhandled = &shared.unhandled;
            let key = unhandled
                .add(cx.waker())
                .unwrap_or_else(|| panic_in_block_on());
            waiting = Some(Waiting { unhandled, key });
        }
        polled
    })
}

#[cold]
fn panic_in_block_on() -> ! {
    panic!(
        "block_on waits in a runtime that was shut down by an unhandled panic of a task or closure"
    );
}

#[cfg(test)]
mod models;
