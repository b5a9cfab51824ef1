//! The contract between a list and its nodes.
use core::ptr::NonNull;

/// A node with room for one link.
///
/// A [`List`](crate::List) takes nodes that are aligned to 2 bytes at least, and an
/// [`Injector`](crate::Injector) nodes that are aligned to 4: both keep marks in the low bits of a
/// node's address. A list or an injector of other nodes doesn't compile.
///
/// # Safety
///
/// - `into_ptr` returns a pointer to a live, aligned `Self`, which the handle owns. Until
///   `from_ptr`, no other handle of that node exists, the node neither moves nor is freed, and only
///   `set_next` makes a `&mut` to it. So the holder of the pointer may make shared references from
///   it, which end before it calls `set_next` or `from_ptr`.
/// - `from_ptr(into_ptr(h))` is `h`.
/// - `next` returns the value that `set_next` wrote last, bit for bit. A link isn't always the
///   address of a node: it may have a mark, or be a mark alone. While the node is in a list, no
///   code but `set_next` writes the link. Whenever a handle is given to a list, the link is `None`.
/// - `next` writes nothing and makes no `&mut` to the node. Shared references to the node may live
///   during a call, and if nodes are `Sync`, several threads may call `next` of one node at once
///   ([`List::iter`](crate::List::iter)).
/// - None of the functions panics, or calls a list, an injector, or another queue of such nodes.
pub unsafe trait Linked {
    /// The owning pointer to a node, which users push and pop. It is `Send` if nodes may change
    /// threads.
    type Handle;

    /// Takes a handle apart.
    fn into_ptr(handle: Self::Handle) -> NonNull<Self>;

    /// Makes a handle again.
    ///
    /// # Safety
    /// `node` came from [`into_ptr`](Self::into_ptr), and no handle was made from it since.
    unsafe fn from_ptr(node: NonNull<Self>) -> Self::Handle;

    /// Reads the link.
    ///
    /// # Safety
    /// The caller owns the node, that is, it holds the pointer that `into_ptr` returned; or it
    /// borrows the node from the owner, who does not write the link meanwhile.
    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>>;

    /// Writes the link.
    ///
    /// # Safety
    /// The caller owns the node, and holds no reference to it.
    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>);
}
