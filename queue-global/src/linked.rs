//! The contract between a list and its nodes.
use core::ptr::NonNull;

/// A node with room for one link.
///
/// A [`List`](crate::List) takes nodes that are aligned to 2 bytes at least, an
/// [`Injector`](crate::Injector) to 4: they keep marks in the low bits of a node's address. Another
/// node does not compile there.
///
/// # Safety
///
/// - `into_ptr` gives a pointer to a live, aligned `Self`. The handle owns that node: until `from_ptr` nobody else gets a handle of it, it
///   neither moves nor is freed, and no `&mut` to it is made but in these functions. So who has the pointer may make a shared reference of it.
/// - `from_ptr(into_ptr(h))` is `h`.
/// - `next` gives what `set_next` wrote last, bit for bit: a link isn't always the address of a node, it may hold a mark, or a mark alone. Nothing else writes
///   it while the node is in a list, and it is `None` whenever a handle is given to a list.
/// - None of the functions panics or calls back into a list, an injector, or another queue of such nodes.
pub unsafe trait Linked {
    /// What users push and pop: an owning pointer to a node. `Send` if nodes may change threads.
    type Handle;

    /// Takes a handle apart.
    fn into_ptr(handle: Self::Handle) -> NonNull<Self>;

    /// Puts a handle together again.
    ///
    /// # Safety
    /// `node` came from [`into_ptr`](Self::into_ptr), and its handle was not put together since.
    unsafe fn from_ptr(node: NonNull<Self>) -> Self::Handle;

    /// Reads the link.
    ///
    /// # Safety
    /// The caller owns the node: it holds what `into_ptr` gave.
    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>>;

    /// Writes the link.
    ///
    /// # Safety
    /// As for [`next`](Self::next).
    unsafe fn set_next(node: NonNull<Self>, next: Option<NonNull<Self>>);
}
