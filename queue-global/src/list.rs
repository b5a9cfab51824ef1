//! A singly linked list of nodes that others own, without a lock of its own.
//!
//! 1. `head` is the oldest node and `tail` the newest; both are `None` together, with `len` 0.
//! 2. The list owns its nodes: their links lead from `head` to `tail`, whose link is `None`.
//! 3. A node leaves with its link cleared, as it came.
use crate::Linked;
use core::{fmt, marker::PhantomData, ptr::NonNull};

/// A FIFO of nodes. Nothing is ever allocated; every operation but the drop is O(1), or O(n) in the
/// nodes it names.
pub struct List<T: Linked> {
    head: Option<NonNull<T>>,
    tail: Option<NonNull<T>>,
    len: usize,
    owns: PhantomData<T::Handle>,
}

// SAFETY: the list owns handles.
unsafe impl<T: Linked> Send for List<T> where T::Handle: Send {}

// SAFETY: a shared list gives out lengths alone.
unsafe impl<T: Linked> Sync for List<T> {}

impl<T: Linked> List<T> {
    /// An empty list.
    pub const fn new() -> Self {
        Self {
            head: None,
            tail: None,
            len: 0,
            owns: PhantomData,
        }
    }

    /// # Safety
    /// `head` leads over `len` links to `tail`, whose link is `None`, and the caller owns the nodes.
    pub(crate) unsafe fn from_parts(
        head: Option<NonNull<T>>,
        tail: Option<NonNull<T>>,
        len: usize,
    ) -> Self {
        Self {
            head,
            tail,
            len,
            owns: PhantomData,
        }
    }

    /// Nodes in the list.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts a node at the back.
    ///
    /// # Panics
    /// In debug builds, when the node's link is not clear: it is in a list already.
    pub fn push_back(&mut self, handle: T::Handle) {
        let node = T::into_ptr(handle);
        if cfg!(debug_assertions) {
            // SAFETY: the handle was the node's owner.
            let next = unsafe { T::next(node) };
            assert!(next.is_none(), "the node is in a list already");
        }
        match self.tail.replace(node) {
            // SAFETY: rule 2.
            Some(last) => unsafe { T::set_next(last, Some(node)) },
            None => self.head = Some(node),
        }
        self.len += 1;
    }

    /// Takes the oldest node.
    pub fn pop_front(&mut self) -> Option<T::Handle> {
        let node = self.head?;
        // SAFETY: rule 2.
        self.head = unsafe { T::next(node) };
        if self.head.is_none() {
            self.tail = None;
        }
        self.len -= 1;
        // SAFETY: rule 2; it is not in the list any more.
        unsafe { T::set_next(node, None) };
        // SAFETY: `push_back` took the handle apart.
        Some(unsafe { T::from_ptr(node) })
    }

    /// Moves all of `other` to the back.
    pub fn append(&mut self, other: &mut Self) {
        let other = core::mem::take(other);
        let Some(first) = other.head else { return };
        match self.tail {
            // SAFETY: rule 2.
            Some(last) => unsafe { T::set_next(last, Some(first)) },
            None => self.head = Some(first),
        }
        self.tail = other.tail;
        self.len += other.len;
        core::mem::forget(other);
    }

    /// Takes the `n` oldest nodes, or all if there are fewer. Walks them.
    pub fn split_off_front(&mut self, n: usize) -> Self {
        if n >= self.len {
            return core::mem::take(self);
        }
        let mut front = Self::new();
        let Some(head) = self.head else { return front };
        if n == 0 {
            return front;
        }
        let mut last = head;
        for _ in 1..n {
            // SAFETY: rule 2; there are more than `n` nodes.
            last = unsafe { T::next(last) }.unwrap_or(last);
        }
        // SAFETY: rule 2.
        self.head = unsafe { T::next(last) };
        self.len -= n;
        // SAFETY: rule 2.
        unsafe { T::set_next(last, None) };
        (front.head, front.tail, front.len) = (Some(head), Some(last), n);
        front
    }
}

impl<T: Linked> Default for List<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Linked> Drop for List<T> {
    fn drop(&mut self) {
        /// Goes on with the others when a handle's drop panics.
        struct GoOn<'a, T: Linked>(&'a mut List<T>);
        impl<T: Linked> Drop for GoOn<'_, T> {
            fn drop(&mut self) {
                while let Some(handle) = self.0.pop_front() {
                    drop(handle);
                }
            }
        }
        let rest = GoOn(self);
        while let Some(handle) = rest.0.pop_front() {
            drop(handle);
        }
    }
}

impl<T: Linked> Extend<T::Handle> for List<T> {
    fn extend<I: IntoIterator<Item = T::Handle>>(&mut self, handles: I) {
        handles
            .into_iter()
            .for_each(|handle| self.push_back(handle));
    }
}

impl<T: Linked> FromIterator<T::Handle> for List<T> {
    fn from_iter<I: IntoIterator<Item = T::Handle>>(handles: I) -> Self {
        let mut list = Self::new();
        list.extend(handles);
        list
    }
}

/// The oldest first.
#[derive(Debug)]
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
