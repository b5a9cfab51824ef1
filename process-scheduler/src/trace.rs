//! A span for each process, if the feature `tracing` is on and a subscriber wants it.
//!
//! The span is `process`, at the level `TRACE` and without a parent. It is entered for `init`, each
//! step and `close`, and closed when the process ends for good. The span gets an event after each
//! step, with the result, and one at the end of each incarnation, with the reason. A subscriber is
//! user code. Its panic where the span is entered or left for `init` or a step counts as a panic of
//! `init` or of that step. Any other panic of the subscriber is caught and dropped. No panic of the
//! subscriber skips a `close`.
#[cfg(not(feature = "tracing"))]
pub(crate) use off::ProcessSpan;
#[cfg(feature = "tracing")]
pub(crate) use on::ProcessSpan;

#[cfg(feature = "tracing")]
mod on {
    use crate::{
        ExitReason, Pid,
        guard::{Guarded, guarded},
    };
    use std::panic::{Location, resume_unwind};
    use sync_shim::panics;
    use tracing::Span;

    pub(crate) struct ProcessSpan(Option<Box<Span>>);

    impl ProcessSpan {
        pub(crate) fn new(
            pid: Pid,
            name: Option<&str>,
            kind: &'static str,
            at: &'static Location<'static>,
        ) -> Self {
            let span = guarded(|| {
                tracing::trace_span!(
                    target: "process_scheduler",
                    parent: None,
                    "process",
                    process.pid = %pid,
                    process.name = name,
                    process.kind = kind,
                    loc.file = at.file(),
                    loc.line = at.line(),
                    loc.col = at.column(),
                )
            });
            let span = span.filter(|span| !span.is_disabled());
            Self(span.map(Box::new))
        }

        pub(crate) const fn none() -> Self {
            Self(None)
        }

        /// Closes the span, and leaves none.
        pub(crate) fn close(&mut self) {
            *self = Self::none();
        }

        /// Runs `f` in the span.
        #[inline]
        fn run<R>(&self, f: impl FnOnce() -> R) -> R {
            let Some(span) = &self.0 else {
                return f();
            };
            // A panic of `f` may not unwind through the exit of the span: a second panic there
            // would end the program. So would a panic of the result's drop, while the panic of the
            // exit unwinds.
            let mut result = None;
            let exited = panics::catch(|| {
                span.in_scope(|| result = Some(panics::catch(f).map(Guarded::new)));
            });
            match (exited, result) {
                (Ok(()), Some(Ok(result))) => result.into_inner(),
                (Ok(()), Some(Err(panic))) => resume_unwind(panic),
                (Err(panic), result) => {
                    match result {
                        Some(Err(own)) => panics::discard(own),
                        guarded => drop(guarded),
                    }
                    resume_unwind(panic)
                }
                (Ok(()), None) => unreachable!("the span runs the function"),
            }
        }

        /// Runs `f` in the span, and catches its panic, or that of the subscriber.
        #[inline]
        pub(crate) fn catch<R>(&self, f: impl FnOnce() -> R) -> Result<R, panics::Payload> {
            panics::catch(|| self.run(f))
        }

        /// Runs `f` once in the span, and drops its panic. If the subscriber panics before `f`,
        /// runs `f` outside of the span.
        pub(crate) fn run_guarded(&self, f: impl FnOnce()) {
            let mut f = Some(f);
            guarded(|| self.run(|| f.take().map(guarded)));
            f.map(guarded);
        }

        /// Records the result of a step.
        #[inline]
        pub(crate) fn stepped(&self, result: &'static str, messages: u32, incarnation: u32) {
            if let Some(span) = &self.0 {
                guarded(|| {
                    tracing::trace!(
                        target: "process_scheduler",
                        parent: &**span,
                        step = result,
                        messages,
                        incarnation,
                    );
                });
            }
        }

        /// Records the end of an incarnation.
        pub(crate) fn exited(&self, reason: &ExitReason) {
            if let Some(span) = &self.0 {
                guarded(|| {
                    tracing::trace!(
                        target: "process_scheduler",
                        parent: &**span,
                        exit = %reason,
                    );
                });
            }
        }
    }

    impl Drop for ProcessSpan {
        fn drop(&mut self) {
            if let Some(span) = self.0.take() {
                guarded(|| drop(span));
            }
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use crate::{ExitReason, Pid};
    use std::panic::{AssertUnwindSafe, Location, catch_unwind};
    use sync_shim::panics::Payload;

    pub(crate) struct ProcessSpan;

    impl ProcessSpan {
        #[inline(always)]
        pub(crate) fn new(
            _: Pid,
            _: Option<&str>,
            _: &'static str,
            _: &'static Location<'static>,
        ) -> Self {
            Self
        }

        pub(crate) const fn none() -> Self {
            Self
        }

        #[inline(always)]
        pub(crate) fn close(&mut self) {}

        #[inline(always)]
        pub(crate) fn catch<R>(&self, f: impl FnOnce() -> R) -> Result<R, Payload> {
            catch_unwind(AssertUnwindSafe(f))
        }

        pub(crate) fn run_guarded(&self, f: impl FnOnce()) {
            crate::guard::guarded(f);
        }

        #[inline(always)]
        pub(crate) fn stepped(&self, _: &'static str, _: u32, _: u32) {}

        #[inline(always)]
        pub(crate) fn exited(&self, _: &ExitReason) {}
    }
}
