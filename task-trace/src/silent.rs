//! Without the feature `tracing`: the same names, which do nothing and cost nothing.
use crate::TaskKind;
use std::{fmt::Display, panic::Location};

/// Returns whether any subscriber wants the level `TRACE`: without the feature `tracing` none does.
#[inline(always)]
pub const fn enabled() -> bool {
    false
}

/// Stands for the span of a task.
#[derive(Debug)]
pub struct TaskSpan(());

impl TaskSpan {
    /// Does nothing.
    #[inline(always)]
    pub fn record_id(self, _: &impl Display) {}
}

/// Returns the future unchanged.
#[inline(always)]
pub fn trace<F: Future>(
    _: TaskKind,
    _: Option<&str>,
    _: &Location<'_>,
    future: F,
) -> (TaskSpan, Traced<F>) {
    (TaskSpan(()), future)
}

/// The future itself; see [`trace`].
pub type Traced<F> = F;
