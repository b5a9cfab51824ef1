//! A future in a span, and a waker whose use is told.
//!
//! A task is a span at the level `TRACE`, without a parent: entered for each poll, closed when the future is gone. Each
//! use of its wakers is an event that names the span by its number. For those the future is polled with a waker that wraps the task's own: one
//! allocation a task.
//!
//! A subscriber is code of users: a panic of it at a waker goes no further, as who uses a waker may be in the midst of anything.
use crate::Kind;
use std::{
    fmt::Display,
    future::Future,
    mem,
    panic::{AssertUnwindSafe, Location, catch_unwind},
    pin::Pin,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll, Waker},
};
use tracing::{
    Instrument, Span,
    field::{Empty, display},
    instrument::Instrumented,
    level_filters::LevelFilter,
};
use waker_vtable::{TargetVtable, WakeHeader, WakeTarget, WakerRef};

/// Whether any subscriber wants the level `TRACE`. A load.
#[inline]
pub fn enabled() -> bool {
    LevelFilter::current() >= LevelFilter::TRACE
}

/// A task's span, before the task has an id.
#[derive(Debug)]
#[must_use = "a span without `task.id` is one that handles don't lead to"]
pub struct Unnamed(Span);

impl Unnamed {
    /// Tells the id, by which the executor's handles know the task.
    pub fn name(self, id: &impl Display) {
        self.0.record("task.id", display(id));
    }
}

/// Puts a task's future into a span, which is that of a task spawned at `at`.
pub fn trace<F: Future>(
    kind: Kind,
    name: Option<&str>,
    at: &Location<'_>,
    future: F,
) -> (Unnamed, Traced<F>) {
    macro_rules! span {
        ($target:literal, $kind:literal) => {
            tracing::trace_span!(
                target: $target,
                parent: None,
                "runtime.spawn",
                kind = %$kind,
                task.name = %name.unwrap_or_default(),
                task.id = Empty,
                size.bytes = mem::size_of::<F>(),
                loc.file = at.file(),
                loc.line = at.line(),
                loc.col = at.column(),
            )
        };
    }
    let span = match kind {
        Kind::Task => span!("tokio::task", "task"),
        Kind::Local => span!("tokio::task", "local"),
        Kind::Blocking => span!("tokio::task::blocking", "blocking"),
    };
    let traced = Traced {
        future: future.instrument(span.clone()),
        target: None,
    };
    (Unnamed(span), traced)
}

/// A future in its task's span; see [`trace`].
#[derive(Debug)]
pub struct Traced<F> {
    future: Instrumented<F>,
    /// What its wakers point to, from the first poll on.
    target: Option<Arc<Target>>,
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is not moved out of here.
        let this = unsafe { self.get_unchecked_mut() };
        let id = this.future.span().id();
        // SAFETY: it is pinned as this is.
        let future = unsafe { Pin::new_unchecked(&mut this.future) };
        let Some(id) = id else {
            return future.poll(cx);
        };
        let target = match &mut this.target {
            Some(target) if target.waker.will_wake(cx.waker()) => target,
            target => target.insert(Arc::new(Target {
                header: WakeHeader::new(const { &TargetVtable::of::<Target>() }),
                span: id.into_u64(),
                waker: cx.waker().clone(),
            })),
        };
        let target = Arc::as_ptr(target).cast_mut();
        // SAFETY: an `Arc`'s pointer is not null.
        let target = unsafe { NonNull::new_unchecked(target) };
        // SAFETY: `this` keeps the target until the poll is over.
        let waker = unsafe { WakerRef::new(target) };
        future.poll(&mut Context::from_waker(&waker))
    }
}

/// A task's own waker, and the span that hears of its use.
#[repr(C)]
#[derive(Debug)]
struct Target {
    header: WakeHeader,
    span: u64,
    waker: Waker,
}

impl Target {
    fn tell(&self, op: &'static str) {
        let event = || tracing::trace!(target: "tokio::task::waker", op, task.id = self.span);
        if let Err(payload) = catch_unwind(AssertUnwindSafe(event)) {
            mem::forget(payload); // Its drop may panic, too.
        }
    }
}

// SAFETY: the header is first and names this type's table. The references are the `Arc`'s, and a `Target` is `Send + Sync`.
unsafe impl WakeTarget for Target {
    unsafe fn ref_inc(this: NonNull<Self>) {
        // SAFETY: the caller's reference keeps it alive.
        unsafe { this.as_ref() }.tell("waker.clone");
        // SAFETY: as above, and it is an `Arc`'s.
        unsafe { Arc::increment_strong_count(this.as_ptr()) };
    }

    unsafe fn ref_dec(this: NonNull<Self>) {
        // SAFETY: the caller gives up a reference, which is an `Arc`'s.
        let this = unsafe { Arc::from_raw(this.as_ptr()) };
        this.tell("waker.drop");
    }

    unsafe fn wake_by_ref(this: NonNull<Self>) {
        // SAFETY: the caller's reference keeps it alive.
        let this = unsafe { this.as_ref() };
        this.tell("waker.wake_by_ref");
        this.waker.wake_by_ref();
    }

    unsafe fn wake_by_val(this: NonNull<Self>) {
        // SAFETY: the caller gives up a reference, which is an `Arc`'s.
        let this = unsafe { Arc::from_raw(this.as_ptr()) };
        this.tell("waker.wake");
        this.waker.wake_by_ref();
    }
}
