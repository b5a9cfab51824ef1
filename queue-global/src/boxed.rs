//! A ready-made node, for users who want no `unsafe`.
use crate::Linked;
use alloc::boxed::Box;
use core::ptr::NonNull;
use sync_shim::cell::UnsafeCell;

/// A value with a link, queued as a `Box<Boxed<T>>`: the user makes one allocation per value.
///
/// ```
/// use queue_global::{Boxed, Injector};
///
/// let injector: Injector<Boxed<&str>> = Injector::new();
/// injector.push(Box::new(Boxed::new("task"))).unwrap();
/// assert_eq!(injector.pop().unwrap().value, "task");
/// ```
#[derive(Debug)]
pub struct Boxed<T> {
    next: UnsafeCell<Option<NonNull<Boxed<T>>>>,
    /// The value.
    pub value: T,
}

// SAFETY: only the node's owner uses the link: the holder of its handle, or a list with the node.
unsafe impl<T: Send> Send for Boxed<T> {}

// SAFETY: a shared node gives access only to a shared value.
unsafe impl<T: Sync> Sync for Boxed<T> {}

impl<T> Boxed<T> {
    /// Makes a node that is in no list.
    pub fn new(value: T) -> Self {
        Self {
            next: UnsafeCell::new(None),
            value,
        }
    }
}

// SAFETY: a box owns its content, which doesn't move. The link is private, and it is `None` outside
// of lists, because a list unlinks each node that it returns.
unsafe impl<T> Linked for Boxed<T> {
    type Handle = Box<Self>;

    fn into_ptr(handle: Box<Self>) -> NonNull<Self> {
        // SAFETY: a box is not null.
        unsafe { NonNull::new_unchecked(Box::into_raw(handle)) }
    }

    unsafe fn from_ptr(node: NonNull<Self>) -> Box<Self> {
        // SAFETY: the pointer came from `into_raw`.
        unsafe { Box::from_raw(node.as_ptr()) }
    }

    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: the caller owns the node, so it is live.
        let node = unsafe { node.as_ref() };
        // SAFETY: the caller owns the node.
        node.next.with(|next| unsafe { *next })
    }

    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>) {
        // SAFETY: the caller owns the node, so it is live.
        let node = unsafe { node.as_ref() };
        // SAFETY: the caller owns the node.
        node.next.with_mut(|link| unsafe { *link = next });
    }
}
