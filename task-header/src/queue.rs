//! Tasks as nodes of `queue-global`'s lists and injectors.
use crate::{
    cell::{Header, TaskPtr, header},
    notified::{Notified, Schedule},
};
use core::{marker::PhantomData, ptr::NonNull};
use queue_global::Linked;

/// The node type for lists and injectors of tasks with scheduler `S`: `List<Node<S>>`,
/// `Injector<Node<S>>`.
#[repr(transparent)]
pub struct Node<S> {
    _header: Header,
    scheduler: PhantomData<S>,
}

// SAFETY: a handle is the one `Notified` of its task. So a pointer made from it is unique while the
// task is queued, and keeps the task alive. Only the holder of that pointer uses the link.
unsafe impl<S: Schedule> Linked for Node<S> {
    type Handle = Notified<S>;

    fn into_ptr(handle: Notified<S>) -> NonNull<Self> {
        handle.into_task().cast()
    }

    unsafe fn from_ptr(node: NonNull<Self>) -> Notified<S> {
        // SAFETY: the caller promises that `into_ptr` returned this pointer.
        unsafe { Notified::from_task(node.cast()) }
    }

    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>> {
        let task: TaskPtr = node.cast();
        // SAFETY: a queued task is live.
        let header = unsafe { header(task) };
        // SAFETY: the caller owns the queued node.
        let next = header.queue_next.with(|next| unsafe { *next });
        next.map(NonNull::cast)
    }

    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>) {
        let task: TaskPtr = node.cast();
        // SAFETY: a queued task is live.
        let header = unsafe { header(task) };
        let next = next.map(NonNull::cast);
        // SAFETY: the caller owns the queued node.
        header.queue_next.with_mut(|link| unsafe { *link = next });
    }
}

#[cfg(all(test, feature = "conformance"))]
mod models;
