//! The memory of a ring: what the two kinds have in common, and the kind on the heap, which has a
//! reference count. The other kind is in [`inline`](super::inline). The protocol is the same for
//! both.
use super::{
    Box, Header, MaybeUninit, Retire, Slot, UnsafeCell, Vec, arc::Arc, assert_capacity,
    taken::Taken,
};
use core::panic::{RefUnwindSafe, UnwindSafe};
use sealed::Parts;

/// A handle on a ring's memory. The trait is sealed: only [`Shared`] and
/// [`Borrowed`](super::Borrowed) implement it.
pub trait Storage<T>: Parts<T> {}

mod sealed {
    use super::{Header, Slot};

    #[expect(
        private_interfaces,
        reason = "sealed: nobody outside can name the trait"
    )]
    pub trait Parts<T>: Clone {
        fn header(&self) -> &Header;
        fn slots(&self) -> &[Slot<T>];
    }
}

pub(super) use sealed::Parts as StorageParts;

/// A ring on the heap, freed with its last handle. It allocates only when it is created.
pub struct Shared<T> {
    owned: Arc<Owned<T>>,
    /// The slots of `owned`, without the indirection.
    slots: *const [Slot<T>],
}

struct Owned<T> {
    header: Header,
    slots: Box<[Slot<T>]>,
}

// SAFETY: only the one thread that took an item reaches it (rule 1), so items only move between
// threads.
unsafe impl<T: Send> Sync for Owned<T> {}

// SAFETY: as above.
unsafe impl<T: Send> Send for Owned<T> {}

// SAFETY: a `Shared` is an `Arc` of an `Owned`, and a pointer to the slots of that `Owned`.
unsafe impl<T: Send> Sync for Shared<T> {}

// SAFETY: as above.
unsafe impl<T: Send> Send for Shared<T> {}

// Only an item's drop or an overflow can panic, and either leaves the ring whole.
impl<T> UnwindSafe for Shared<T> {}
impl<T> RefUnwindSafe for Shared<T> {}

impl<T> Shared<T> {
    #[track_caller]
    pub(super) fn new(capacity: usize, at: u32) -> Self {
        assert_capacity(capacity);
        let slots: Vec<_> = (0..capacity)
            .map(|_| UnsafeCell::new(MaybeUninit::uninit()))
            .collect();
        let owned = Arc::new(Owned {
            header: Header::new(at),
            slots: slots.into_boxed_slice(),
        });
        Self {
            slots: &raw const *owned.slots,
            owned,
        }
    }
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self {
            owned: self.owned.clone(),
            slots: self.slots,
        }
    }
}

#[expect(private_interfaces, reason = "sealed")]
impl<T> StorageParts<T> for Shared<T> {
    #[inline(always)]
    fn header(&self) -> &Header {
        &self.owned.header
    }

    #[inline(always)]
    fn slots(&self) -> &[Slot<T>] {
        // SAFETY: `owned` keeps its box, and no code moves the box or borrows it mutably before the
        // last handle is dropped.
        unsafe { &*self.slots }
    }
}

impl<T> Storage<T> for Shared<T> {}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        drop_remaining(&mut self.header, &mut self.slots);
    }
}

/// Drops the items that are left in the ring: those of a worker that was leaked.
pub(super) fn drop_remaining<T>(header: &mut Header, slots: &mut [Slot<T>]) {
    let (next, left) = header.remaining();
    for slot in &mut *slots {
        slot.retire();
    }
    // SAFETY: no handle is left, so this thread has the remaining items to itself.
    drop(unsafe { Taken::new(slots, next, left) });
}
