//! A node for those who want no `unsafe`.
use crate::Linked;
use alloc::boxed::Box;
use core::ptr::NonNull;
use sync_shim::cell::UnsafeCell;

/// A value with a link, queued as a `Box<Boxed<T>>`: one allocation a value, by the user.
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

// SAFETY: the link is only used by the holder of the handle.
unsafe impl<T: Send> Send for Boxed<T> {}

// SAFETY: a shared node gives out no more than a shared value.
unsafe impl<T: Sync> Sync for Boxed<T> {}

impl<T> Boxed<T> {
    /// A node that is in no list.
    pub fn new(value: T) -> Self {
        Self {
            next: UnsafeCell::new(None),
            value,
        }
    }
}

// SAFETY: a box owns its content, which stays in place; the link is private and `None` outside of
// lists, which unlink what they give back.
unsafe impl<T> Linked for Boxed<T> {
    type Handle = Box<Self>;

    fn into_ptr(handle: Box<Self>) -> NonNull<Self> {
        // SAFETY: a box is not null.
        unsafe { NonNull::new_unchecked(Box::into_raw(handle)) }
    }

    unsafe fn from_ptr(node: NonNull<Self>) -> Box<Self> {
        // SAFETY: it came from `into_raw`.
        unsafe { Box::from_raw(node.as_ptr()) }
    }

    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>> {
        // SAFETY: owned by the caller, so live.
        let node = unsafe { node.as_ref() };
        // SAFETY: owned by the caller.
        node.next.with(|next| unsafe { *next })
    }

    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>) {
        // SAFETY: owned by the caller, so live.
        let node = unsafe { node.as_ref() };
        // SAFETY: owned by the caller.
        node.next.with_mut(|link| unsafe { *link = next });
    }
}
