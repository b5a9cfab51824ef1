//! A node's link, and what its value means.
//!
//! | link | the node |
//! |---|---|
//! | `None` | is in no list and no queue |
//! | an address | has that node behind it |
//! | an address and the bit END | is the last of its chain; in a stack, the address is that of the first node of the next older chain, or 0; in a list, the address means nothing |
//!
//! Rules:
//!
//! 1. If the link of a handle's node is not `None`, the node is queued already.
//! 2. An address with END comes from a stack's `top`. The node at that address may since have been
//!    freed and allocated again, so the link keeps no provenance. A pusher exposes its node's
//!    provenance, and a consumer that has taken a stack makes pointers from the addresses.
use crate::Linked;
use core::ptr::{self, NonNull};

const END: usize = 1;

/// The alignment of nodes, so that END is no bit of an address.
pub(crate) const ALIGN: usize = END + 1;

pub(crate) enum Link<T> {
    Node(NonNull<T>),
    End(usize),
}

/// # Safety
/// The caller owns the node, or borrows it from the owner. The node is in a list or a chain.
#[inline]
pub(crate) unsafe fn read<T: Linked>(node: NonNull<T>) -> Link<T> {
    // SAFETY: the caller promises this.
    match unsafe { T::next(node) } {
        Some(next) if next.addr().get() & END == 0 => Link::Node(next),
        Some(end) => Link::End(end.addr().get() & !END),
        None => Link::End(0),
    }
}

/// Makes a node the last of its chain. The chain below it in the stack starts at the address
/// `below`.
///
/// # Safety
/// The caller owns the node.
#[inline]
pub(crate) unsafe fn end<T: Linked>(node: NonNull<T>, below: usize) {
    let end = NonNull::new(ptr::without_provenance_mut(below | END));
    // SAFETY: the caller promises this.
    unsafe { T::set_next(node, end) };
}

/// Exposes the provenance of a pointer to a node, and returns the node's address. [`pushed`] makes
/// a pointer of that address again.
#[inline]
pub(crate) fn expose<T>(node: NonNull<T>) -> usize {
    node.as_ptr().expose_provenance()
}

/// Returns the exposed node at an address.
///
/// # Safety
/// `address` came from [`expose`].
#[inline]
pub(crate) unsafe fn pushed<T>(address: usize) -> NonNull<T> {
    // SAFETY: the address of a node is not 0.
    unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(address)) }
}

/// Takes a handle apart, to put its node into a list or a queue.
///
/// # Panics
/// In debug builds, if the node is in a list or a queue already.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn enter<T: Linked>(handle: T::Handle) -> NonNull<T> {
    let node = T::into_ptr(handle);
    if cfg!(debug_assertions) {
        // SAFETY: the handle owned the node.
        let next = unsafe { T::next(node) };
        assert!(next.is_none(), "the node is in a list already");
    }
    node
}

/// Clears the link of a node that leaves a list or a queue, and returns the node's handle.
///
/// # Safety
/// The caller owns the node, which [`enter`] returned.
#[inline]
pub(crate) unsafe fn leave<T: Linked>(node: NonNull<T>) -> T::Handle {
    // SAFETY: the caller promises this.
    unsafe { T::set_next(node, None) };
    // SAFETY: `enter` took the handle apart, once.
    unsafe { T::from_ptr(node) }
}
