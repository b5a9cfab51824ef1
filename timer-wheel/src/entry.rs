//! The contract between a wheel and its entries.
use core::{cell::UnsafeCell, fmt, marker::PhantomPinned, ptr::NonNull};

/// The links of an entry in a [`Wheel`](crate::Wheel).
///
/// A node has two pointers and a deadline: 24 bytes on a 64-bit target.
///
/// A node is not `Unpin`, so a pinned future may hold a node while the wheel uses it: see
/// [`Entry`](Entry#safety).
pub struct Node<T> {
    pub(crate) inner: UnsafeCell<Inner<T>>,
    _pinned: PhantomPinned,
}

/// The content of a [`Node`]. Only the owner of the wheel reads and writes it.
pub(crate) struct Inner<T> {
    /// The next entry in the circular list of the slot; `prev` is the entry before. An entry that
    /// is alone in the list links to itself. Both are `None` if the entry is in no wheel.
    pub(crate) next: Option<NonNull<T>>,
    pub(crate) prev: Option<NonNull<T>>,
    /// The tick at which the entry expires.
    pub(crate) when: u64,
}

// SAFETY: a shared node gives no access. A wheel uses the node for the owner of the entry's handle.
unsafe impl<T> Send for Node<T> {}

// SAFETY: as above.
unsafe impl<T> Sync for Node<T> {}

impl<T> Node<T> {
    /// Creates a node that is in no wheel.
    pub const fn new() -> Self {
        Self {
            inner: UnsafeCell::new(Inner {
                next: None,
                prev: None,
                when: 0,
            }),
            _pinned: PhantomPinned,
        }
    }
}

impl<T> Default for Node<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Node<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").finish_non_exhaustive()
    }
}

/// A type that can be an entry of a wheel: an entry has a [`Node`], and a handle that owns the
/// entry.
///
/// The wheel uses only the node of an entry, and never makes a reference to an entry. So other
/// threads may share the entry, to set a flag or to store a later deadline.
///
/// # Safety
///
/// - A handle is unique: `Handle` is not `Clone`, and safe code cannot make a second handle of an
///   entry before the first is gone. So an `Arc` is not a handle:
///   [`Wheel::insert`](crate::Wheel::insert) is safe, and would accept two clones. A newtype of an
///   `Arc` can be a handle, if its module makes only one handle of an entry at a time.
/// - `into_ptr` returns a pointer to a live, aligned `Self`. From then until `from_ptr` the entry
///   neither moves nor is freed. A pinned entry whose owner may drop it earlier must
///   [`remove`](crate::Wheel::remove) itself in its `Drop`.
/// - During that time no `&mut` that covers the node is made. One exception is allowed: a `&mut` to
///   an entry that is pinned and not `Unpin`, if it is not used to access the node. By this
///   exception a future that holds its node can be polled.
/// - `from_ptr(into_ptr(h))` is `h`.
/// - `node` returns the address of the same node of an entry each time. It makes the address from
///   its argument (`&raw mut (*entry.as_ptr()).node`), not from a reference to the whole entry.
///   Only wheels write that node while the entry is in a wheel.
/// - None of the functions panics or calls back into a wheel.
pub unsafe trait Entry: Sized {
    /// The owning pointer that users insert and get back.
    ///
    /// It is a `Box`, or a newtype of an `Arc` or of a pointer to a pinned entry. It is unique, so
    /// it is not `Clone`. It is `Send` if entries may change threads.
    type Handle;

    /// Converts a handle into the pointer to its entry.
    fn into_ptr(handle: Self::Handle) -> NonNull<Self>;

    /// Converts the pointer back into the handle.
    ///
    /// # Safety
    /// `entry` must come from [`into_ptr`](Self::into_ptr), and not have been converted back since.
    unsafe fn from_ptr(entry: NonNull<Self>) -> Self::Handle;

    /// Returns the node of an entry.
    ///
    /// # Safety
    /// `entry` must point to a live entry.
    unsafe fn node(entry: NonNull<Self>) -> NonNull<Node<Self>>;
}
