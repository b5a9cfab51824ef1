//! Polls a future in a span, with a waker that records events.
//!
//! A task is a span at the level `TRACE`, without a parent. The span is entered for each poll, and
//! closed when the future is dropped. Each use of the task's wakers is an event with the number of
//! the span. For these events the future is polled with a waker that wraps the task's own. The
//! wrapper costs one allocation a task.
//!
//! A subscriber is user code. If a subscriber panics at the use of a waker, the panic is caught:
//! the code that uses the waker may not expect one.
use crate::TaskKind;
use pin_project_lite::pin_project;
use std::{
    fmt::Display,
    future::Future,
    mem,
    panic::Location,
    pin::Pin,
    ptr::NonNull,
    sync::Arc,
    task::{Context, Poll, RawWakerVTable, Waker},
};
use sync_shim::panics::contain;
use tracing::{
    Instrument, Span,
    field::{Empty, display},
    instrument::Instrumented,
    level_filters::LevelFilter,
};
use waker_vtable::{WakeTarget, WakerRef, vtable_of};

/// Returns whether any subscriber wants the level `TRACE`. Costs a load.
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

/// Makes the span of a task. The function is not generic, as its code is many times as long as the
/// rest of [`trace`].
fn span(kind: TaskKind, name: Option<&str>, at: &Location<'_>, size: usize) -> Span {
    macro_rules! span_of_kind {
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
        TaskKind::Task => span_of_kind!("tokio::task", "task"),
        TaskKind::Local => span_of_kind!("tokio::task", "local"),
        TaskKind::Blocking => span_of_kind!("tokio::task::blocking", "blocking"),
    }
}

pin_project! {
    /// A future in its task's span; see [`trace`].
    #[derive(Debug)]
    pub struct Traced<F> {
        #[pin]
        future: Instrumented<F>,
        // The target of the future's wakers, from the first poll on.
        target: Option<Arc<Target>>,
    }
}

impl<F: Future> Future for Traced<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let Some(id) = this.future.span().id() else {
            return this.future.poll(cx);
        };
        let target = match this.target {
            Some(target) if target.waker.will_wake(cx.waker()) => target,
            target => target.insert(Arc::new(Target {
                span: id.into_u64(),
                waker: cx.waker().clone(),
            })),
        };
        let target = Arc::as_ptr(target).cast_mut();
        // SAFETY: an `Arc`'s pointer is not null.
        let target = unsafe { NonNull::new_unchecked(target) };
        // SAFETY: `this` keeps the target alive until the poll is over.
        let waker = unsafe { WakerRef::new(target) };
        this.future.poll(&mut Context::from_waker(&waker))
    }
}

/// The target of a traced waker: the task's own waker, and the number of the task's span.
#[derive(Debug)]
struct Target {
    span: u64,
    waker: Waker,
}

impl Target {
    fn record(&self, op: &'static str) {
        contain(|| tracing::trace!(target: "tokio::task::waker", op, task.id = self.span));
    }
}

static VTABLE: RawWakerVTable = vtable_of::<Target>();

// SAFETY: the table is that of `Target`. The references are those of the `Arc`, and a `Target` is
// `Send + Sync`.
unsafe impl WakeTarget for Target {
    fn vtable() -> &'static RawWakerVTable {
        &VTABLE
    }

    unsafe fn ref_inc(this: NonNull<Self>) {
        // SAFETY: the caller's reference keeps the target alive.
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
        // SAFETY: the caller's reference keeps the target alive.
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
