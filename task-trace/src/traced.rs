//! Polls a future in a span, with a waker that records events.
//!
//! A task is a span at the level `TRACE`, without a parent. It is entered for each poll, and closed
//! when the future is dropped. Each use of the task's wakers is an event with the number of the
//! span. For these events the future is polled with a waker that wraps the task's own, which is one
//! allocation a task.
//!
//! A subscriber is user code. If it panics at the use of a waker the panic is caught, as the code
//! that uses the waker may not expect it.
use crate::TaskKind;
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

/// Returns whether any subscriber wants the level `TRACE`. A load.
#[inline]
pub fn enabled() -> bool {
    LevelFilter::current() >= LevelFilter::TRACE
}

/// The span of a task that has no id yet.
#[derive(Debug)]
#[must_use = "without `task.id`, nobody can relate the span to a task handle"]
pub struct TaskSpan(Span);

impl TaskSpan {
    /// Records `task.id`, the id that the executor's handles return.
    pub fn record_id(self, id: &impl Display) {
        self.0.record("task.id", display(id));
    }
}

/// Wraps a task's future in a span. The task was spawned at `at`.
///
/// Record the task's id in the returned span once the task has one.
pub fn trace<F: Future>(
    kind: TaskKind,
    name: Option<&str>,
    at: &Location<'_>,
    future: F,
) -> (TaskSpan, Traced<F>) {
    let span = span(kind, name, at, mem::size_of::<F>());
    let traced = Traced {
        future: future.instrument(span.clone()),
        target: None,
    };
    (TaskSpan(span), traced)
}

/// Makes the span of a task. Not generic, as its code is many times that of the rest of [`trace`].
fn span(kind: TaskKind, name: Option<&str>, at: &Location<'_>, size: usize) -> Span {
    macro_rules! span {
        ($target:literal, $kind:literal) => {
            tracing::trace_span!(
                target: $target,
                parent: None,
                "runtime.spawn",
                kind = %$kind,
                task.name = %name.unwrap_or_default(),
                task.id = Empty,
                size.bytes = size,
                loc.file = at.file(),
                loc.line = at.line(),
                loc.col = at.column(),
            )
        };
    }
    match kind {
        TaskKind::Task => span!("tokio::task", "task"),
        TaskKind::Local => span!("tokio::task", "local"),
        TaskKind::Blocking => span!("tokio::task::blocking", "blocking"),
    }
}

/// A future in its task's span; see [`trace`].
#[derive(Debug)]
pub struct Traced<F> {
    future: Instrumented<F>,
    /// The target of its wakers, from the first poll on.
    target: Option<Arc<Target>>,
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is not moved out of here.
        let this = unsafe { self.get_unchecked_mut() };
        let id = this.future.span().id();
        // SAFETY: structural pinning: the field is pinned with the whole.
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
        // SAFETY: `this` keeps the target alive until the poll is over.
        let waker = unsafe { WakerRef::new(target) };
        future.poll(&mut Context::from_waker(&waker))
    }
}

/// The target of a traced waker: the task's own waker, and the number of its span.
#[repr(C)]
#[derive(Debug)]
struct Target {
    header: WakeHeader,
    span: u64,
    waker: Waker,
}

impl Target {
    fn record(&self, op: &'static str) {
        let event = || tracing::trace!(target: "tokio::task::waker", op, task.id = self.span);
        let drop = |payload| catch_unwind(AssertUnwindSafe(|| drop(payload)));
        if let Err(payload) = catch_unwind(AssertUnwindSafe(event)).or_else(drop) {
            mem::forget(payload); // The drop of the first payload has panicked, and the drop of this one may, too.
        }
    }
}

// SAFETY: the header is the first field, and has this type's vtable. The references are those of
// the `Arc`, and a `Target` is `Send + Sync`.
unsafe impl WakeTarget for Target {
    unsafe fn ref_inc(this: NonNull<Self>) {
        // SAFETY: the caller's reference keeps it alive.
        unsafe { this.as_ref() }.record("waker.clone");
        // SAFETY: as above, and the reference is an `Arc`'s.
        unsafe { Arc::increment_strong_count(this.as_ptr()) };
    }

    unsafe fn ref_dec(this: NonNull<Self>) {
        // SAFETY: the caller gives up its reference, which is an `Arc`'s.
        let this = unsafe { Arc::from_raw(this.as_ptr()) };
        this.record("waker.drop");
    }

    unsafe fn wake_by_ref(this: NonNull<Self>) {
        // SAFETY: the caller's reference keeps it alive.
        let this = unsafe { this.as_ref() };
        this.record("waker.wake_by_ref");
        this.waker.wake_by_ref();
    }

    unsafe fn wake_by_val(this: NonNull<Self>) {
        // SAFETY: the caller gives up its reference, which is an `Arc`'s.
        let this = unsafe { Arc::from_raw(this.as_ptr()) };
        this.record("waker.wake");
        this.waker.wake_by_ref();
    }
}
