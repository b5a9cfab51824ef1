//! A singly linked list of nodes, without a lock of its own.
//!
//! 1. `ends` are the oldest and the newest node, or `None` if `len` is 0.
//! 2. The list owns its nodes: their links lead from the oldest to the newest, whose link is [an
//!    end](crate::link).
//! 3. When a handle goes into the list or comes out of it, the link of its node is `None`.
use crate::{Linked, link};
use core::{
    fmt,
    iter::FusedIterator,
    marker::PhantomData,
    mem,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
};

/// A FIFO of intrusive nodes. It allocates nothing. Every operation is O(1), or O(n) in the number
/// of handles that it adds or nodes that it takes; the drop is O(n) in the length of the list.
///
/// A node is aligned to 2 bytes at least. This does not compile, because the list marks links in
/// their lowest bit, and such a node's address may use that bit:
///
/// ```compile_fail,E0080
/// # use queue_global::{Linked, List};
/// # use core::ptr::NonNull;
/// #[repr(packed)]
/// struct Node(Option<NonNull<Node>>);
/// # struct Handle(NonNull<Node>);
/// # unsafe impl Linked for Node {
/// #     type Handle = Handle;
/// #     fn into_ptr(handle: Handle) -> NonNull<Node> { handle.0 }
/// #     unsafe fn from_ptr(node: NonNull<Node>) -> Handle { Handle(node) }
/// #     unsafe fn next(node: NonNull<Node>) -> Option<NonNull<Node>> {
/// #         unsafe { (*node.as_ptr()).0 }
/// #     }
/// #     unsafe fn set_next(node: NonNull<Node>, next: Option<NonNull<Node>>) {
/// #         unsafe { (*node.as_ptr()).0 = next }
/// #     }
/// # }
/// let list = List::<Node>::new();
/// ```
pub struct List<T: Linked> {
    ends: Option<(NonNull<T>, NonNull<T>)>,
    len: usize,
    owns: PhantomData<T::Handle>,
}

// SAFETY: the list owns its handles.
unsafe impl<T: Linked> Send for List<T> where T::Handle: Send {}

// SAFETY: a shared list returns only lengths and shared nodes.
unsafe impl<T: Linked + Sync> Sync for List<T> {}

// Only a handle's drop can panic, and such a panic leaves the list whole.
impl<T: Linked> UnwindSafe for List<T> {}
impl<T: Linked> RefUnwindSafe for List<T> {}

impl<T: Linked> List<T> {
    const ALIGNED: () = assert!(
        align_of::<T>() >= link::ALIGN,
        "a list keeps a mark in a node's address: align the node to 2"
    );

    /// Makes an empty list.
    pub const fn new() -> Self {
        const { Self::ALIGNED };
        Self {
            ends: None,
            len: 0,
            owns: PhantomData,
        }
    }

    /// # Safety
    /// The links lead from the first of `len` nodes to the last, whose link is an end. The caller
    /// owns all these nodes.
    pub(crate) unsafe fn from_parts(ends: (NonNull<T>, NonNull<T>), len: usize) -> Self {
        Self {
            ends: Some(ends),
            len,
            owns: PhantomData,
        }
    }

    /// Takes all nodes out, and returns the oldest and the newest. The caller then owns all of the
    /// nodes.
    pub(crate) fn into_ends(self) -> Option<(NonNull<T>, NonNull<T>)> {
        mem::ManuallyDrop::new(self).ends
    }

    /// Returns the number of nodes in the list.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Pushes a node at the back.
    ///
    /// # Panics
    /// In debug builds, if the node is in a list already.
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push_back(&mut self, handle: T::Handle) {
        let node = link::enter::<T>(handle);
        // SAFETY: the handle owned the node.
        unsafe { link::end(node, 0) };
        // SAFETY: the node is a list of one, and its link was just made an end.
        self.append(&mut unsafe { Self::from_parts((node, node), 1) });
    }

    /// Takes the oldest node.
    pub fn pop_front(&mut self) -> Option<T::Handle> {
        // SAFETY: the node is out of the list, and `enter` put it in.
        self.pop_node().map(|node| unsafe { link::leave(node) })
    }

    /// Takes the oldest node, and leaves its link as it is.
    pub(crate) fn pop_node(&mut self) -> Option<NonNull<T>> {
        let (node, last) = self.ends?;
        self.len -= 1;
        // SAFETY: rule 2.
        self.ends = match unsafe { link::read(node) } {
            link::Link::Node(next) => Some((next, last)),
            link::Link::End(_) => None,
        };
        Some(node)
    }

    /// Moves all nodes of `other` to the back of this list.
    pub fn append(&mut self, other: &mut Self) {
        let other = mem::ManuallyDrop::new(mem::take(other));
        let Some((first, last)) = other.ends else {
            return;
        };
        let head = match self.ends {
            Some((head, tail)) => {
                // SAFETY: rule 2.
                unsafe { T::set_next(tail, Some(first)) };
                head
            }
            None => first,
        };
        self.ends = Some((head, last));
        self.len += other.len;
    }

    /// Takes the `n` oldest nodes, or all if there are fewer. O(n).
    pub fn split_off_front(&mut self, n: usize) -> Self {
        if n >= self.len {
            return mem::take(self);
        }
        let (Some((head, tail)), 1..) = (self.ends, n) else {
            return Self::new();
        };
        let mut walk = self.iter();
        let mut at = head;
        for _ in 0..n {
            at = walk.next_node().unwrap_or(at);
        }
        let next = walk.at.unwrap_or(tail);
        // SAFETY: rule 2.
        unsafe { link::end(at, 0) };
        self.ends = Some((next, tail));
        self.len -= n;
        // SAFETY: the first `n` nodes no longer belong to this list.
        unsafe { Self::from_parts((head, at), n) }
    }

    /// Iterates over the nodes, oldest first.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            at: self.ends.map(|(head, _)| head),
            left: self.len,
            list: PhantomData,
        }
    }
}

impl<T: Linked> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Linked> Drop for List<T> {
    fn drop(&mut self) {
        /// Drops the other handles if the drop of one panics.
        struct DropRest<'a, T: Linked>(&'a mut List<T>);
        impl<T: Linked> Drop for DropRest<'_, T> {
            fn drop(&mut self) {
                while let Some(handle) = self.0.pop_front() {
                    drop(handle);
                }
            }
        }
        let rest = DropRest(self);
        while let Some(handle) = rest.0.pop_front() {
            drop(handle);
        }
    }
}

impl<T: Linked> Extend<T::Handle> for List<T> {
    /// Calls [`push_back`](List::push_back) for each handle, and panics if `push_back` does.
    fn extend<I: IntoIterator<Item = T::Handle>>(&mut self, handles: I) {
        handles
            .into_iter()
            .for_each(|handle| self.push_back(handle));
    }
}

impl<T: Linked> FromIterator<T::Handle> for List<T> {
    /// Calls [`push_back`](List::push_back) for each handle, and panics if `push_back` does.
    fn from_iter<I: IntoIterator<Item = T::Handle>>(handles: I) -> Self {
        let mut list = Self::new();
        list.extend(handles);
        list
    }
}

/// Borrows the nodes of a [`List`], oldest first.
pub struct Iter<'a, T: Linked> {
    at: Option<NonNull<T>>,
    left: usize,
    list: PhantomData<&'a List<T>>,
}

// SAFETY: the iterator returns only lengths and shared nodes, as a shared list does.
unsafe impl<T: Linked + Sync> Send for Iter<'_, T> {}

// SAFETY: as above.
unsafe impl<T: Linked + Sync> Sync for Iter<'_, T> {}

impl<T: Linked> Iter<'_, T> {
    fn next_node(&mut self) -> Option<NonNull<T>> {
        let node = self.at?;
        self.left -= 1;
        // SAFETY: rule 2. The iterator borrows the list, so the list writes no link meanwhile.
        self.at = match unsafe { link::read(node) } {
            link::Link::Node(next) => Some(next),
            link::Link::End(_) => None,
        };
        Some(node)
    }
}

impl<'a, T: Linked> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        // SAFETY: the list owns the node, and is borrowed. By the contract of `Linked`, an owner
        // may make shared references to its node.
        self.next_node().map(|node| unsafe { node.as_ref() })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<T: Linked> ExactSizeIterator for Iter<'_, T> {}

impl<T: Linked> FusedIterator for Iter<'_, T> {}

impl<T: Linked> Clone for Iter<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<T: Linked> fmt::Debug for Iter<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("len", &self.left)
            .finish_non_exhaustive()
    }
}

impl<'a, T: Linked> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// The handles of a [`List`], oldest first.
pub struct IntoIter<T: Linked>(List<T>);

impl<T: Linked> Iterator for IntoIter<T> {
    type Item = T::Handle;

    fn next(&mut self) -> Option<T::Handle> {
        self.0.pop_front()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.0.len, Some(self.0.len))
    }
}

impl<T: Linked> ExactSizeIterator for IntoIter<T> {}

impl<T: Linked> FusedIterator for IntoIter<T> {}

impl<T: Linked> fmt::Debug for IntoIter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IntoIter")
            .field("len", &self.0.len)
            .finish_non_exhaustive()
    }
}

impl<T: Linked> IntoIterator for List<T> {
    type Item = T::Handle;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self)
    }
}

impl<T: Linked> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}
