//! A place for one: the LIFO slot of a worker, with the task that it runs next.
//!
//! One word, null or a task.
//!
//! 1. The owner alone turns null into a task, so a null that it reads is not about to change, and a
//!    plain store fills the slot.
//! 2. The thread that replaces a task by a read-modify-write has that task. Owner and thief both do
//!    so, so each task is taken once.
//! 3. A thief takes only what it has seen before, and compares: where that task was taken and came
//!    back meanwhile, it is in the slot all the same, and may be taken.
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

/// What a thread has seen in a [`Slot`]: to be compared, not followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen(usize);

/// A place for one item: what its owner runs next. Another thread may take it away.
///
/// It is the LIFO slot of a [`WorkerQueue`](crate::WorkerQueue), for those who put a queue together
/// themselves.
///
/// ```
/// use queue_global::Boxed;
/// use worker_queue::Slot;
///
/// let slot = Slot::<Boxed<u32>>::new();
/// // SAFETY: by one thread.
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
/// Others get at it only where its handles may change threads:
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

// SAFETY: a handle goes in at one thread and may come out at another.
unsafe impl<T: Linked> Send for Slot<T> where T::Handle: Send {}

// SAFETY: as above.
unsafe impl<T: Linked> Sync for Slot<T> where T::Handle: Send {}

// Each operation is one step, which panics or not as a whole.
impl<T: Linked> UnwindSafe for Slot<T> {}
impl<T: Linked> RefUnwindSafe for Slot<T> {}

impl<T: Linked> Slot<T> {
    sync_shim::const_fn! {
        /// An empty slot. `const`, except under a model.
        pub const fn new() -> Self {
            Self {
                node: AtomicPtr::new(ptr::null_mut()),
                handles: PhantomData,
            }
        }
    }

    /// Fills the slot, and gives what was in it. No read-modify-write if that was nothing,
    /// else one.
    ///
    /// # Safety
    /// Each `put` happens before the next: they are one owner's. Of two at a time one would be
    /// lost.
    #[inline]
    pub unsafe fn put(&self, handle: T::Handle) -> Option<T::Handle> {
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

    /// Empties the slot. No read-modify-write if it is empty, else one.
    #[inline]
    pub fn take(&self) -> Option<T::Handle> {
        if self.is_empty() {
            return None;
        }
        // Ordering: Acquire pairs with `put`, which may be another thread's.
        let node = NonNull::new(self.node.swap(ptr::null_mut(), Acquire))?;
        // SAFETY: rule 2.
        Some(unsafe { T::from_ptr(node) })
    }

    /// Whether there is nothing in it: certain for the owner, unless a thief comes, a hint for
    /// others.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Ordering: Relaxed, rule 1.
        self.node.load(Relaxed).is_null()
    }

    /// What is in the slot now.
    pub fn look(&self) -> Option<Seen> {
        // Ordering: Relaxed, it is only compared.
        NonNull::new(self.node.load(Relaxed)).map(|node| Seen(node.addr().get()))
    }

    /// Takes what was seen, if that is there. One read-modify-write then.
    pub fn steal(&self, seen: Seen) -> Option<T::Handle> {
        // Ordering: Relaxed, the exchange confirms it.
        let node = NonNull::new(self.node.load(Relaxed))?;
        if node.addr().get() != seen.0 {
            return None;
        }
        // Ordering: Acquire pairs with `put`: the task is run on the strength of it.
        let node = self
            .node
            .compare_exchange(node.as_ptr(), ptr::null_mut(), Acquire, Relaxed)
            .ok()?;
        // What was there, by the pointer of who put it in: the look's may be of a node that is gone
        // and was at the same address.
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
mod crowd {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
