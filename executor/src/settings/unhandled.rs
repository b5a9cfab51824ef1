//! Panics that tasks and closures report to their runtime, and the shutdown that these may cause.
//!
//! Tasks and closures report panics only if the builder has a panic hook or a policy other than
//! `Ignore`, or if a panic leads to a saved recording. Only then does each have a `PanicReporter`,
//! a counted reference to the runtime.
//!
//! With [`UnhandledPanic::Shutdown`] a panic ends each `block_on` that waits in the runtime. One
//! lock guards whether there was such a panic, and the wakers of the waiting `block_on`s:
//!
//! 1. At its first `Pending` a `block_on` adds its waker. If there was a panic already, the
//!    `block_on` panics instead.
//! 2. The thread that records a panic takes all wakers out. It then closes the runtime, and after
//!    that wakes the wakers.
//! 3. A `block_on` that has waited checks for a panic before it polls its future again.
//! 4. So no `block_on` sleeps on after a panic. The lock orders the addition of a waker and the
//!    record of the panic: a waker that was added before the panic is taken out and woken, and a
//!    `block_on` that comes later finds the panic.
//! 5. The future of a waiting `block_on` does not see that the shutdown cancels tasks. They are
//!    cancelled after the panic was recorded, so the check of rule 3 finds the panic first.
use crate::{
    scope,
    settings::hooks::UnhandledPanic,
    worker::{
        context::Entered,
        shared::{PanicReporter, Shared},
    },
};
use blocking_threads::OnPanic;
use std::{
    any::Any,
    future::{Future, poll_fn},
    pin::Pin,
    task::Waker,
};
use sync_shim::sync::Arc;

mod lock;

pub(crate) use lock::Unhandled;
use lock::Waiting;

impl PanicReporter {
    /// Returns a reporter if panics are reported in this runtime.
    pub(crate) fn by(shared: &Arc<Shared>) -> Option<Self> {
        let observed = shared.hooks.observe_panics() || shared.trace.saves_on_panic();
        observed.then(|| Self(shared.clone()))
    }
}

impl OnPanic for PanicReporter {
    /// Reports a panic of user code: of a task, of a closure, or of an output's drop.
    ///
    /// A handle with the output may be dropped anywhere, so this thread may be in another runtime,
    /// or in none.
    fn panicked(&self, payload: &(dyn Any + Send)) {
        let Self(shared) = self;
        shared.trace.note_panic();
        let is_current = scope::current().is_some_and(|here| Arc::ptr_eq(&here, shared));
        let entered = (!is_current).then(|| Entered::enter(shared.clone()));
        shared.hooks.panicked(payload);
        drop(entered);
        if shared.hooks.policy == UnhandledPanic::Shutdown {
            let waiting = shared.unhandled.record();
            shared.close();
            waiting.into_values().for_each(Waker::wake);
        }
    }
}

/// Wraps the future of a `block_on`. The wrapper panics if the future has to wait and a panic has
/// shut the runtime down.
///
/// With a policy other than `Shutdown`, a wait costs only a look at the policy.
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
