//! The other threads' end of a worker's queue.
use crate::{Slot, SlotContent, arc::Arc};
use core::fmt;
use queue_global::Linked;
use queue_spmc::ring;
use sync_shim::CachePadded;

/// The view that other threads have of a worker's queue: a thief
/// [steals](crate::WorkerQueue::steal) from the ring, a watcher takes from the slot. Neither sees
/// the requeued item.
///
/// The slot is for its worker, so that a chain of tasks that wake each other stays on one
/// processor, and in its cache. But the slot's item waits for the current item, which may run for
/// long. So a watcher may look at slots from time to time, and steal an item that it has seen in
/// the slot before, if the worker ran no item meanwhile. To be sure of that, the watcher also
/// compares a count of the items that the worker has run, because the same item may be back.
///
/// ```
/// # use queue_global::{Boxed, Injector};
/// # let item = |n| Box::new(Boxed::new(n));
/// # let injector = Injector::<Boxed<u32>>::new();
/// let queue = worker_queue::WorkerQueue::new(256);
/// let stealer = queue.stealer();
/// queue.push_next(item(1), &injector);
/// let seen = stealer.look().unwrap();
/// // Some milliseconds later:
/// assert_eq!(stealer.look(), Some(seen));
/// assert_eq!(stealer.steal_slot(seen).unwrap().value, 1);
/// assert!(queue.is_empty());
/// ```
pub struct Stealer<T: Linked> {
    pub(crate) ring: ring::Stealer<T::Handle>,
    pub(crate) slot: Arc<CachePadded<Slot<T>>>,
}

impl<T: Linked<Handle: Send>> Stealer<T> {
    /// Returns the number of items in the ring, as far as this thread sees: see
    /// [`ring::Stealer::len`].
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// let queue = worker_queue::WorkerQueue::new(256);
    /// queue.push_back(item(1), &injector);
    /// assert_eq!(queue.stealer().len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Returns whether the ring is empty. This is for the last look before a sleep. A hint, unless
    /// fenced: if a `SeqCst` fence follows a push, and a later `SeqCst` fence of this thread
    /// precedes this call, the call sees the item, unless the item has been taken.
    ///
    /// ```
    /// # use queue_global::Boxed;
    /// let queue = worker_queue::WorkerQueue::<Boxed<u32>>::new(256);
    /// assert!(queue.stealer().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// Returns whether the slot is empty. A hint.
    ///
    /// ```
    /// # use queue_global::Boxed;
    /// let queue = worker_queue::WorkerQueue::<Boxed<u32>>::new(256);
    /// assert!(queue.stealer().slot_is_empty());
    /// ```
    pub fn slot_is_empty(&self) -> bool {
        self.slot.is_empty()
    }

    /// Returns the slot's item, to be compared at the next look.
    pub fn look(&self) -> Option<SlotContent> {
        self.slot.look()
    }

    /// Takes the slot's item, if it is still the one that was seen. If so, one read-modify-write.
    pub fn steal_slot(&self, seen: SlotContent) -> Option<T::Handle> {
        self.slot.steal(seen)
    }
}

impl<T: Linked> Clone for Stealer<T> {
    fn clone(&self) -> Self {
        Self {
            ring: self.ring.clone(),
            slot: self.slot.clone(),
        }
    }
}

impl<T: Linked> fmt::Debug for Stealer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer")
            .field("ring", &self.ring)
            .field("slot", &self.slot)
            .finish()
    }
}
