//! A task's name.
use core::{fmt, num::NonZeroUsize, task::Waker};

/// A task's name while it lives: its address, so no counter is shared to make one. It is unique
/// among tasks that are not freed yet.
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
pub struct Id(NonZeroUsize);

impl Id {
    pub(crate) fn at(address: NonZeroUsize) -> Self {
        Self(address)
    }

    pub(crate) fn address(self) -> NonZeroUsize {
        self.0
    }

    /// Whether `waker` wakes this task, which is not freed. Compares two addresses.
    ///
    /// A poll tells its own waker by it from that of a part of its future, which may poll other
    /// parts with wakers of its own.
    #[inline]
    pub fn is_woken_by(self, waker: &Waker) -> bool {
        // A task's header is its waker's target, and nobody else's target is in its place.
        waker_vtable::target_header(waker).is_some_and(|target| target.addr() == self.0)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Id({self})")
    }
}
