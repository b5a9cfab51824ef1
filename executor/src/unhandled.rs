//! Futures whose panics somebody wants to hear of. Only runtimes with such a builder wrap them.
use crate::{
    hooks::{Hooks, UnhandledPanic},
    scope,
};
use std::{
    any::Any,
    future::Future,
    mem::ManuallyDrop,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    pin::Pin,
    task::{Context, Poll},
};
use sync_shim::sync::Arc;

/// A future, and who hears of its panics.
pub(crate) struct Overheard<F> {
    hooks: Arc<Hooks>,
    future: ManuallyDrop<F>,
}

impl<F> Overheard<F> {
    pub(crate) fn new(hooks: Arc<Hooks>, future: F) -> Self {
        Self {
            hooks,
            future: ManuallyDrop::new(future),
        }
    }
}

impl<F: Future> Future for Overheard<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is not moved out of here, but dropped in place.
        let this = unsafe { self.get_unchecked_mut() };
        // SAFETY: it is pinned as this is.
        let future = unsafe { Pin::new_unchecked(&mut *this.future) };
        overhear(&this.hooks, || future.poll(cx))
    }
}

impl<F> Drop for Overheard<F> {
    fn drop(&mut self) {
        overhear(&self.hooks, || {
            // SAFETY: this is its only drop.
            unsafe { ManuallyDrop::drop(&mut self.future) }
        });
    }
}

/// Runs user code whose panic goes on, but not unheard.
pub(crate) fn overhear<R>(hooks: &Arc<Hooks>, f: impl FnOnce() -> R) -> R {
    if !hooks.observe_panics() {
        return f();
    }
    catch_unwind(AssertUnwindSafe(f)).unwrap_or_else(|payload: Box<dyn Any + Send>| {
        hooks.panicked(&*payload);
        if hooks.policy == UnhandledPanic::Shutdown
            && let Some(handle) = scope::runtime_of(hooks)
        {
            handle.shared().close();
        }
        resume_unwind(payload)
    })
}
