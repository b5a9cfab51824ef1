//! The reason why a task has no output.
use crate::{id::Id, panics::Payload};
use alloc::{boxed::Box, string::String};
use core::{any::Any, fmt, mem, num::NonZeroUsize, ptr, ptr::NonNull};

/// A task ended without output: it was cancelled, or it panicked.
///
/// The error takes one word, so that a poll returns a small output or this error in registers. (A
/// value that is written to memory in pieces and read as a whole makes the read wait for the
/// writes.)
///
/// ```
/// use std::{future::Future, pin::Pin, task::{Context, Poll, Waker}};
/// use task_header::{JoinError, JoinHandle};
///
/// fn error_of(mut join: JoinHandle<()>) -> JoinError {
///     match Pin::new(&mut join).poll(&mut Context::from_waker(Waker::noop())) {
///         Poll::Ready(Err(error)) => error,
///         other => panic!("{other:?}"),
///     }
/// }
///
/// let builder = task_header::Builder::new();
/// let (task, join) = builder.spawn_with(async { panic!("oh no") }, drop);
/// let id = task.id();
/// task.run();
/// let error = error_of(join);
/// assert!(error.is_panic() && error.id() == id);
/// assert_eq!(error.into_panic().downcast_ref(), Some(&"oh no"));
///
/// let (task, join) = builder.spawn_with(async {}, drop);
/// drop(task);
/// let error = error_of(join);
/// assert!(error.is_cancelled());
/// assert!(error.try_into_panic().is_err());
/// ```
pub struct JoinError(
    /// If the task was cancelled, its id with the lowest bit set; otherwise the address of a box.
    NonNull<Panicked>,
);

struct Panicked {
    id: Id,
    payload: Payload,
}

const CANCELLED: usize = 1;

// The address of a cell, and so an id, is even: a cell begins with a pointer.
const _: () = assert!(align_of::<Panicked>() > CANCELLED && align_of::<usize>() > CANCELLED);

// SAFETY: the error owns the box, whose payload is `Send`.
unsafe impl Send for JoinError {}

// SAFETY: a shared error returns only text and flags. Its payload, which need not be `Sync`, is
// read only as a `str` or a `String`, which are `Sync`; otherwise it is moved out.
unsafe impl Sync for JoinError {}

impl JoinError {
    pub(crate) fn cancelled(id: Id) -> Self {
        let word = ptr::without_provenance_mut(id.0.get() | CANCELLED);
        // SAFETY: an id is not zero, so the word is not null.
        Self(unsafe { NonNull::new_unchecked(word) })
    }

    #[cold]
    pub(crate) fn panicked(id: Id, payload: Payload) -> Self {
        let panicked = Box::into_raw(Box::new(Panicked { id, payload }));
        // SAFETY: the address of a box is not null.
        Self(unsafe { NonNull::new_unchecked(panicked) })
    }

    fn panic(&self) -> Option<&Panicked> {
        if self.is_cancelled() {
            return None;
        }
        // SAFETY: the word is not an id, so it is the address of the box that this error owns.
        Some(unsafe { self.0.as_ref() })
    }

    /// Returns the task's id.
    pub fn id(&self) -> Id {
        if let Some(panicked) = self.panic() {
            return panicked.id;
        }
        let address = self.0.addr().get() & !CANCELLED;
        // SAFETY: an id is even and not zero.
        Id(unsafe { NonZeroUsize::new_unchecked(address) })
    }

    /// Returns whether the task was aborted, or dropped by its scheduler.
    pub fn is_cancelled(&self) -> bool {
        self.0.addr().get() & CANCELLED != 0
    }

    /// Returns whether the future panicked, in a poll or in its drop.
    pub fn is_panic(&self) -> bool {
        !self.is_cancelled()
    }

    /// Takes the payload of the panic.
    ///
    /// # Errors
    /// Returns the error itself if the task was cancelled.
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send + 'static>, Self> {
        if self.is_cancelled() {
            return Err(self);
        }
        let panicked = self.0.as_ptr();
        mem::forget(self);
        // SAFETY: this error owned the box, and is forgotten.
        let panicked = unsafe { Box::from_raw(panicked) };
        Ok(panicked.payload)
    }

    /// Takes the payload of the panic, for `std::panic::resume_unwind`.
    ///
    /// # Panics
    /// If the task was cancelled.
    #[track_caller]
    pub fn into_panic(self) -> Box<dyn Any + Send + 'static> {
        match self.try_into_panic() {
            Ok(payload) => payload,
            Err(cancelled) => panic!("{cancelled}: there is no panic to take out of its error"),
        }
    }

    fn message(&self) -> Option<&str> {
        let payload = &self.panic()?.payload;
        payload
            .downcast_ref::<&'static str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
    }
}

impl Drop for JoinError {
    #[inline]
    fn drop(&mut self) {
        if self.is_panic() {
            // SAFETY: this error owns the box, and is being dropped.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let id = self.id();
        match self.message() {
            _ if self.is_cancelled() => write!(f, "task {id} was cancelled"),
            Some(said) => write!(f, "task {id} panicked: {said}"),
            None => write!(f, "task {id} panicked"),
        }
    }
}

impl fmt::Debug for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JoinError({self})")
    }
}

impl core::error::Error for JoinError {}

/// Wraps the error in an I/O error of the kind [`Other`](std::io::ErrorKind::Other), so that `?`
/// works in functions that return an [`std::io::Result`].
///
/// ```
/// use task_header::{Builder, JoinError, JoinHandle};
///
/// fn output(mut join: JoinHandle<()>) -> std::io::Result<()> {
///     Ok(join.try_join().unwrap()?)
/// }
///
/// let (task, join) = Builder::new().spawn_with(async {}, drop);
/// drop(task);
/// let error = output(join).unwrap_err();
/// let inner = error.get_ref().unwrap().downcast_ref::<JoinError>();
/// assert!(inner.unwrap().is_cancelled());
/// ```
#[cfg(feature = "std")]
impl From<JoinError> for std::io::Error {
    fn from(error: JoinError) -> Self {
        Self::other(error)
    }
}
