//! The contract between a wheel and its entries.
use core::{cell::UnsafeCell, fmt, marker::PhantomPinned, ptr::NonNull};

/// Links an entry into a [`Wheel`](crate::Wheel): two links and a deadline, 24 bytes on a 64-bit
/// target.
///
/// It is not `Unpin`, so a pinned future may hold one while the wheel uses it: see
/// [`Entry`](Entry#safety).
pub struct Node<T> {
    inner: UnsafeCell<Inner<T>>,
    _pinned: PhantomPinned,
}

/// The content of a [`Node`], which the wheel's owner alone reads and writes.
pub(crate) struct Inner<T> {
    /// The neighbours in the slot's ring; an entry that is alone there is its own. `None` if the
    /// entry is in no wheel.
    pub(crate) next: Option<NonNull<T>>,
    pub(crate) prev: Option<NonNull<T>>,
    /// The tick at which the entry expires.
    pub(crate) when: u64,
}

// SAFETY: a node gives nothing out. A wheel touches it for the holder of the entry's handle.
unsafe impl<T> Send for Node<T> {}

// SAFETY: as above.
unsafe impl<T> Sync for Node<T> {}

impl<T> Node<T> {
    /// Makes a node that is in no wheel.
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

/// Connects a type that expires with its [`Node`], and with the handle that owns it.
///
/// The wheel reads and writes the node and nothing else of an entry; it never makes a reference of
/// an entry. Other threads may share the entry meanwhile, to set a flag or to store a later
/// deadline.
///
/// # Safety
///
/// - A handle is unique: `Handle` is not `Clone`, and safe code can't make a second one of an entry
///   before the first is gone. So an `Arc` is not a handle:
///   [`Wheel::insert`](crate::Wheel::insert) is safe, and would take two clones. A newtype of an
///   `Arc` is one, if its module makes one of an entry at a time.
/// - `into_ptr` gives a pointer to a live, aligned `Self`. From then until `from_ptr` the entry
///   neither moves nor is freed. A pinned entry whose owner may drop it earlier must
///   [`remove`](crate::Wheel::remove) itself in its `Drop`.
/// - Meanwhile no `&mut` is made that covers the node, except to an entry that is pinned and not
///   `Unpin`, through which the node is not used. A future that holds its node is polled so.
/// - `from_ptr(into_ptr(h))` is `h`.
/// - `node` gives the address of the same node of an entry each time, and makes it from the pointer
///   that it gets (`&raw mut (*entry.as_ptr()).node`), not from a reference to the whole entry.
///   Nothing but wheels writes that node while the entry is in one.
/// - None of the functions panics or calls back into a wheel.
pub unsafe trait Entry: Sized {
    /// The owning pointer to an entry that users insert and get back: a `Box`, a newtype of an
    /// `Arc`, or of a pointer to an entry that its owner pins. Unique, so not `Clone`. `Send` if
    /// entries may change threads.
    type Handle;

    /// Takes a handle apart.
    fn into_ptr(handle: Self::Handle) -> NonNull<Self>;

    /// Puts a handle together again.
    ///
    /// # Safety
    /// `entry` came from [`into_ptr`](Self::into_ptr), and its handle was not put together since.
    unsafe fn from_ptr(entry: NonNull<Self>) -> Self::Handle;

    /// Gives the node of an entry.
    ///
    /// # Safety
    /// `entry` points to a live entry.
    unsafe fn node(entry: NonNull<Self>) -> NonNull<Node<Self>>;
}

/// Gives the content of an entry's node.
///
/// # Safety
/// The entry is live.
#[inline(always)]
pub(crate) unsafe fn inner<T: Entry>(entry: NonNull<T>) -> *mut Inner<T> {
    // SAFETY: the caller's promise.
    let node = unsafe { T::node(entry) };
    // SAFETY: the node is in a live entry. No reference is made.
    let cell = unsafe { &raw const (*node.as_ptr()).inner };
    UnsafeCell::raw_get(cell)
}
