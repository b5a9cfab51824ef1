//! The id of a task.
use core::{fmt, num::NonZeroUsize};

/// Identifies a task while it lives. The id is the task's address, so no shared counter is needed.
/// An id is unique among tasks that are not freed yet.
///
/// ```
/// use std::{future::{Future, poll_fn}, pin::Pin, task::{Context, Poll, Waker}};
/// use task_header::{Builder, Id};
///
/// // A task that gives its own waker.
/// let waker = poll_fn(|cx| Poll::Ready(cx.waker().clone()));
/// let (task, mut join) = Builder::new().spawn_with(waker, drop);
/// let id: Id = task.id();
/// task.run();
/// let mut cx = Context::from_waker(Waker::noop());
/// let Poll::Ready(Ok(waker)) = Pin::new(&mut join).poll(&mut cx) else { panic!() };
/// assert!(id.is_woken_by(&waker));
/// assert!(!id.is_woken_by(Waker::noop()));
/// println!("task {id}");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub(crate) NonZeroUsize);

impl Id {
    /// Returns the address of the task's cell, by which a simulation knows the task. A task that
    /// comes later may have the same address.
    #[doc(hidden)]
    pub fn address(self) -> usize {
        self.0.get()
    }

    /// Returns an id by which an executor shows a value that is no task: its address. No task has
    /// the same one while the value is in memory.
    #[doc(hidden)]
    pub fn of_address<T>(value: &T) -> Self {
        const {
            assert!(
                size_of::<T>() > 0,
                "a value without bytes has no address of its own"
            )
        };
        Self(core::ptr::NonNull::from(value).addr())
    }
}

/// Returns the id as a number, by which a tool can tell tasks apart.
impl From<Id> for u64 {
    fn from(id: Id) -> Self {
        sync_shim::sim::name_of(id.0.get())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", sync_shim::sim::name_of(self.0.get()))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}
