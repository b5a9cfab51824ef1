//! The LIFO slot of a worker: a place for the one item that it runs next.
//!
//! The *owner* fills the slot; a *thief* takes from it. For a [`WorkerQueue`](crate::WorkerQueue),
//! the thief is the watcher.
//!
//! | the word is | the slot |
//! |---|---|
//! | null | is *empty* |
//! | a node's address | is *filled*, and holds that node |
//!
//! Rules:
//!
//! 1. Only the owner turns null into a node. So if the owner reads null, no other thread changes
//!    that, and a plain store fills the slot.
//! 2. The thread that replaces a node by a read-modify-write owns that node. Owner and thief both
//!    do so, so each node is taken once.
//! 3. A thief takes only a node whose address it has seen in the slot before. If that node was
//!    taken and put back meanwhile, it is in the slot again, and the thief may take it.
use core::{
    fmt,
    marker::PhantomData,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr,
    ptr::NonNull,
};
use queue_global::Linked;
use sync_shim::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
    Retire,
};

/// The content of a [`Slot`] as a thread has seen it: to be compared, not dereferenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotContent(usize);

/// A place for one item: the item that the slot's owner runs next. Another thread may take the item
/// away.
///
/// This is the LIFO slot of a [`WorkerQueue`](crate::WorkerQueue), for users who build their own
/// queue.
///
/// ```
/// use queue_global::Boxed;
/// use worker_queue::Slot;
///
/// let slot = Slot::<Boxed<u32>>::new();
/// // SAFETY: only this thread calls `put`.
/// let before = unsafe { slot.put(Box::new(Boxed::new(1))) };
/// assert!(before.is_none());
/// // SAFETY: as above.
/// let displaced = unsafe { slot.put(Box::new(Boxed::new(2))) };
/// assert_eq!(displaced.unwrap().value, 1);
///
/// let seen = slot.look().unwrap(); // A thief, which comes back after a while:
/// assert_eq!(slot.steal(seen).unwrap().value, 2);
/// assert!(slot.is_empty());
/// ```
///
/// Other threads may use a slot only if the handles are `Send`:
///
/// ```compile_fail,E0277
/// use queue_global::Boxed;
/// use std::rc::Rc;
/// use worker_queue::Slot;
///
/// let slot = Slot::<Boxed<Rc<u32>>>::new();
/// std::thread::scope(|s| { s.spawn(|| slot.take()); });
/// ```
pub struct Slot<T: Linked> {
    node: AtomicPtr<T>,
    handles: PhantomData<*mut T>,
}

// SAFETY: a handle goes in on one thread and may come out on another.
unsafe impl<T: Linked> Send for Slot<T> where T::Handle: Send {}

// SAFETY: as above.
unsafe impl<T: Linked> Sync for Slot<T> where T::Handle: Send {}

// Each operation changes the slot in one step, so a panic leaves it whole.
impl<T: Linked> UnwindSafe for Slot<T> {}
impl<T: Linked> RefUnwindSafe for Slot<T> {}

impl<T: Linked> Slot<T> {
    sync_shim::const_fn! {
        /// Makes an empty slot. `const`, except under a model.
        pub const fn new() -> Self {
            Self {
                node: AtomicPtr::new(ptr::null_mut()),
                handles: PhantomData,
            }
        }
    }

    /// Fills the slot, and returns the old item. No read-modify-write if the slot was empty, else
    /// one.
    ///
    /// # Safety
    /// Each `put` happens before the next: only the owner calls it. Two concurrent calls would lose
    /// one of the items.
    #[inline]
    pub unsafe fn put(&self, handle: T::Handle) -> Option<T::Handle> {
        let node = T::into_ptr(handle).as_ptr();
        // Ordering: Relaxed, by rule 1; a node that the owner gets back is one that it has put in
        // itself.
        if self.node.load(Relaxed).is_null() {
            // Ordering: Release pairs with `steal` and `take`.
            self.node.store(node, Release);
            return None;
        }
        // Ordering: Release pairs with `steal` and `take`. The owner has put in the returned node
        // itself.
        let before = NonNull::new(self.node.swap(node, Release))?;
        // SAFETY: rule 2.
        Some(unsafe { T::from_ptr(before) })
    }

    /// Empties the slot, and returns its item. No read-modify-write if the slot is empty, else one.
    #[inline]
    pub fn take(&self) -> Option<T::Handle> {
        if self.is_empty() {
            return None;
        }
        // Ordering: Acquire pairs with `put`, which may be on another thread.
        let node = NonNull::new(self.node.swap(ptr::null_mut(), Acquire))?;
        // SAFETY: rule 2.
        Some(unsafe { T::from_ptr(node) })
    }

    /// Returns whether the slot is empty. Exact for the owner, unless a thief takes the item; a
    /// hint for others.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Ordering: Relaxed, by rule 1.
        self.node.load(Relaxed).is_null()
    }

    /// Returns the item that is in the slot now.
    pub fn look(&self) -> Option<SlotContent> {
        // Ordering: Relaxed; the address is only compared.
        NonNull::new(self.node.load(Relaxed)).map(|node| SlotContent(node.addr().get()))
    }

    /// Takes the item that was seen, if it is still in the slot. If so, one read-modify-write.
    pub fn steal(&self, seen: SlotContent) -> Option<T::Handle> {
        // Ordering: Relaxed; the exchange confirms the value.
        let node = NonNull::new(self.node.load(Relaxed))?;
        if node.addr().get() != seen.0 {
            return None;
        }
        // Ordering: Acquire pairs with `put`: the thief runs the item.
        let node = self
            .node
            .compare_exchange(node.as_ptr(), ptr::null_mut(), Acquire, Relaxed)
            .ok()?;
        // The returned pointer is the one that `put` stored. The pointer of the load above may
        // belong to a freed node that was at the same address.
        let node = NonNull::new(node)?;
        // SAFETY: rule 2.
        Some(unsafe { T::from_ptr(node) })
    }
}

impl<T: Linked> Default for Slot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Linked> fmt::Debug for Slot<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot")
            .field("is_empty", &self.is_empty())
            .finish()
    }
}

impl<T: Linked> Drop for Slot<T> {
    fn drop(&mut self) {
        self.node.retire();
        drop(self.take());
    }
}

#[cfg(all(test, feature = "std", not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
