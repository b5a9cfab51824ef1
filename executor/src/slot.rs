//! The LIFO slot of a worker: the task that it runs next.
//!
//! One word, null or a task.
//!
//! 1. The owner alone turns null into a task, so a null that it reads is not about to change, and a
//!    plain store fills the slot.
//! 2. Who turns a task into null by a read-modify-write has that task. Owner and thief both do so,
//!    so each task is taken once.
//! 3. A thief takes only what it has seen before, and compares: where that task was taken and came back
//!    meanwhile, it is in the slot all the same, and may be taken.
use queue_global::Linked;
use std::{marker::PhantomData, ptr, ptr::NonNull};
use sync_shim::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
    Retire,
};

/// What a thief has seen in a slot: to be compared, not followed.
pub(crate) type Seen = usize;

/// A slot.
pub(crate) struct Slot<T: Linked> {
    node: AtomicPtr<T>,
    handles: PhantomData<fn() -> T::Handle>,
}

impl<T: Linked> Slot<T> {
    pub(crate) fn new() -> Self {
        Self {
            node: AtomicPtr::new(ptr::null_mut()),
            handles: PhantomData,
        }
    }

    /// By the owner: fills the slot, and gives what was in it. No read-modify-write if that was nothing,
    /// else one.
    pub(crate) fn put(&self, handle: T::Handle) -> Option<T::Handle> {
        let node = T::into_ptr(handle).as_ptr();
        // Ordering: Relaxed, rule 1; what the owner gets back it has put in itself.
        if self.node.load(Relaxed).is_null() {
            // Ordering: Release pairs with `steal`.
            self.node.store(node, Release);
            return None;
        }
        // Ordering: Release pairs with `steal`. What comes back the owner has put in itself.
        let before = NonNull::new(self.node.swap(node, Release))?;
        // SAFETY: rule 2.
        Some(unsafe { T::from_ptr(before) })
    }

    /// By the owner: empties the slot. No read-modify-write if it is empty, else one.
    pub(crate) fn take(&self) -> Option<T::Handle> {
        if self.is_empty() {
            return None;
        }
        // Ordering: Relaxed, the owner has put it in itself.
        let node = NonNull::new(self.node.swap(ptr::null_mut(), Relaxed))?;
        // SAFETY: rule 2.
        Some(unsafe { T::from_ptr(node) })
    }

    /// Whether there is nothing in it: certain for the owner, unless a thief comes, a hint for others.
    pub(crate) fn is_empty(&self) -> bool {
        // Ordering: Relaxed, rule 1.
        self.node.load(Relaxed).is_null()
    }

    /// By a thief: what is in the slot now.
    pub(crate) fn look(&self) -> Option<Seen> {
        // Ordering: Relaxed, it is only compared.
        NonNull::new(self.node.load(Relaxed)).map(|node| node.addr().get())
    }

    /// By a thief: takes what it has seen, if that is there.
    pub(crate) fn steal(&self, seen: Seen) -> Option<T::Handle> {
        // Ordering: Relaxed, the exchange confirms it.
        let node = NonNull::new(self.node.load(Relaxed))?;
        if node.addr().get() != seen {
            return None;
        }
        // Ordering: Acquire pairs with `put`: the task is run on the strength of it.
        self.node
            .compare_exchange(node.as_ptr(), ptr::null_mut(), Acquire, Relaxed)
            .ok()?;
        // SAFETY: rule 2.
        Some(unsafe { T::from_ptr(node) })
    }
}

impl<T: Linked> Drop for Slot<T> {
    fn drop(&mut self) {
        self.node.retire();
        drop(self.take());
    }
}

#[cfg(test)]
mod models;
