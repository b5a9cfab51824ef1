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
///   these functions make a `&mut` to it. So the holder of the pointer may make a shared reference
///   from it.
/// - `from_ptr(into_ptr(h))` is `h`.
/// - `next` returns the value that `set_next` wrote last, bit for bit. A link isn't always the
///   address of a node: it may have a mark, or be a mark alone. While the node is in a list, no
///   code but `set_next` writes the link. Whenever a handle is given to a list, the link is `None`.
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
    /// The caller owns the node: it holds the pointer that `into_ptr` returned.
    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>>;

    /// Writes the link.
    ///
    /// # Safety
    /// As for [`next`](Self::next).
    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>);
}
