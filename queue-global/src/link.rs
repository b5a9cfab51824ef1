//! What a node's link says.
//!
//! | link | the node |
//! |---|---|
//! | `None` | is in no list and no queue |
//! | an address | has that node behind it |
//! | an address and the bit END | is the last of its chain; in a stack that is the address of the first of an older chain or 0, in a list it says nothing |
//!
//! 1. So whoever is given a node whose link is not `None` is given one that is queued.
//! 2. An address with END comes from the word that says what a stack holds, in which it may have been free and taken again since. So nobody's pointer goes with
//!    it: who pushes a node exposes its provenance, and who has taken a stack makes pointers from addresses.
use crate::Linked;
use core::ptr::{self, NonNull};

const END: usize = 1;

/// What a node's address is a multiple of, so that END is no bit of it.
pub(crate) const ALIGN: usize = END + 1;

pub(crate) enum Link<T> {
    Node(NonNull<T>),
    End(usize),
}

/// # Safety
/// The caller owns the node, which is in a list or a chain.
#[inline]
pub(crate) unsafe fn read<T: Linked>(node: NonNull<T>) -> Link<T> {
    // SAFETY: the caller's promise.
    match unsafe { T::next(node) } {
        Some(next) if next.addr().get() & END == 0 => Link::Node(next),
        Some(end) => Link::End(end.addr().get() & !END),
        None => Link::End(0),
    }
}

/// Makes a node the last of its chain, above the chain that starts at the address `below`.
///
/// # Safety
/// The caller owns the node.
#[inline]
pub(crate) unsafe fn end<T: Linked>(node: NonNull<T>, below: usize) {
    let end = NonNull::new(ptr::without_provenance_mut(below | END));
    // SAFETY: the caller's promise.
    unsafe { T::set_next(node, end) };
}

/// A node's address, from which [`pushed`] makes a pointer again.
#[inline]
pub(crate) fn expose<T>(node: NonNull<T>) -> usize {
    node.as_ptr().expose_provenance()
}

/// The node that was exposed.
///
/// # Safety
/// `address` came from [`expose`].
#[inline]
pub(crate) unsafe fn pushed<T>(address: usize) -> NonNull<T> {
    // SAFETY: a node's address is not 0.
    unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(address)) }
}

/// Takes a handle apart, for a list or a queue.
///
/// # Panics
/// In debug builds, when the node is in a list or a queue already.
#[inline]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn enter<T: Linked>(handle: T::Handle) -> NonNull<T> {
    let node = T::into_ptr(handle);
    if cfg!(debug_assertions) {
        // SAFETY: the handle was the node's owner.
        let next = unsafe { T::next(node) };
        assert!(next.is_none(), "the node is in a list already");
    }
    node
}

/// Clears the link of a node that leaves, and puts its handle together.
///
/// # Safety
/// The caller owns the node, which [`enter`] gave.
#[inline]
pub(crate) unsafe fn leave<T: Linked>(node: NonNull<T>) -> T::Handle {
    // SAFETY: the caller's promise.
    unsafe { T::set_next(node, None) };
    // SAFETY: `enter` took the handle apart, once.
    unsafe { T::from_ptr(node) }
}
