//! Why a task has no output.
use crate::{Id, panics::Payload};
use alloc::{boxed::Box, string::String};
use core::{any::Any, fmt};

/// What the output slot holds in place of an output.
pub(crate) enum Failure {
    Cancelled,
    /// Boxed once more to be thin, so that a slot for a small output stays at 16 bytes.
    Panic(Box<Payload>),
}

/// A task ended without output: it was cancelled, or it panicked.
pub struct JoinError {
    id: Id,
    failure: Failure,
}

// SAFETY: shared, it gives out text and flags alone: the payload, which need not be `Sync`, is read
// as `str` or `String`, which are, and else only moved out.
unsafe impl Sync for JoinError {}

impl JoinError {
    pub(crate) fn new(id: Id, failure: Failure) -> Self {
        Self { id, failure }
    }

    /// The task's id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Whether the task was aborted, or dropped by its scheduler.
    pub fn is_cancelled(&self) -> bool {
        matches!(self.failure, Failure::Cancelled)
    }

    /// Whether the future panicked, in a poll or in its drop.
    pub fn is_panic(&self) -> bool {
        matches!(self.failure, Failure::Panic(_))
    }

    /// What the panic carried.
    ///
    /// # Errors
    /// Gives itself back when the task was cancelled.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        match self.failure {
            Failure::Panic(payload) => Ok(*payload),
            Failure::Cancelled => Err(self),
        }
    }

    /// What the panic carried, for `std::panic::resume_unwind`.
    ///
    /// # Panics
    /// When the task was cancelled.
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        self.try_into_panic()
            .expect("the task was cancelled, it did not panic")
    }

    fn message(&self) -> Option<&str> {
        let Failure::Panic(payload) = &self.failure else {
            return None;
        };
        payload
            .downcast_ref::<&'static str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.failure, self.message()) {
            (Failure::Cancelled, _) => write!(f, "task {} was cancelled", self.id),
            (Failure::Panic(_), Some(said)) => write!(f, "task {} panicked: {said}", self.id),
            (Failure::Panic(_), None) => write!(f, "task {} panicked", self.id),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinError({self})")
    }
}

impl core::error::Error for JoinError {}
