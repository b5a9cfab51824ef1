//! The two kinds of memory for a ring. One is on the heap and has a reference count. The other is
//! in place, and the user lends it. The protocol is the same for both.
use super::{
    AtomicU32, AtomicU64, Box, CachePadded, Head, Header, MaybeUninit, Retire, Slot, UnsafeCell,
    Vec, Worker, arc::Arc, assert_capacity, taken::Taken,
};
use core::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
};
use sealed::Parts;
use sync_shim::atomic::Ordering::Relaxed;

/// A handle on a ring's memory. The trait is sealed: only [`Shared`] and [`Borrowed`] implement it.
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

macro_rules! new_header {
    ($($constness:ident)?) => {
        pub(super) $($constness)? fn new(at: u32) -> Self {
            Self {
                head: CachePadded::new(AtomicU64::new(Head::both(at).0)),
                tail: CachePadded::new(AtomicU32::new(at)),
                request: CachePadded::new(AtomicU32::new(0)),
            }
        }
    };
}

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
impl<T, const N: usize> UnwindSafe for Inline<T, N> {}
impl<T, const N: usize> RefUnwindSafe for Inline<T, N> {}
impl<T> UnwindSafe for Borrowed<'_, T> {}
impl<T> RefUnwindSafe for Borrowed<'_, T> {}

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
fn drop_remaining<T>(header: &mut Header, slots: &mut [Slot<T>]) {
    let (next, left) = header.remaining();
    for slot in &mut *slots {
        slot.retire();
    }
    // SAFETY: no handle is left, so this thread has the remaining items to itself.
    drop(unsafe { Taken::new(slots, next, left) });
}

/// A ring in place, which never allocates: on the stack, in a struct or in a `static`.
///
/// ```
/// use queue_spmc::ring::{Inline, Steal};
///
/// let mut ring = Inline::<u32, 8>::new();
/// let (mut worker, stealer) = ring.split();
/// worker.push(1)?;
/// std::thread::scope(|scope| {
///     scope.spawn(|| assert_eq!(stealer.steal(), Steal::Success { first: 1, moved: 0 }));
/// });
/// # Ok::<(), queue_spmc::ring::Full<u32>>(())
/// ```
///
/// The handles borrow the ring:
///
/// ```compile_fail
/// let mut ring = queue_spmc::ring::Inline::<u32, 8>::new();
/// let (worker, _) = ring.split();
/// let again = ring.split();
/// drop(worker);
/// ```
pub struct Inline<T, const N: usize> {
    header: Header,
    owner_taken: AtomicU32,
    slots: [Slot<T>; N],
}

// SAFETY: as for `Owned`.
unsafe impl<T: Send, const N: usize> Sync for Inline<T, N> {}

// SAFETY: as for `Owned`.
unsafe impl<T: Send, const N: usize> Send for Inline<T, N> {}

macro_rules! new {
    ($($constness:ident)?) => {
        /// Creates an empty ring. A call does not compile if the capacity `N` is not a power of
        /// two, is below 2, or is above 2³¹.
        ///
        /// This is a `const fn`, except in a build for a model checker.
        #[expect(
            clippy::new_without_default,
            reason = "it comes with `split`, not alone"
        )]
        pub $($constness)? fn new() -> Self {
            const { Self::CAPACITY };
            Self {
                header: Header::new(0),
                owner_taken: AtomicU32::new(0),
                slots: slots!(),
            }
        }
    };
}

cfg_if::cfg_if! {
    if #[cfg(any(selvedge_loom, selvedge_shuttle))] {
        macro_rules! slots {
            () => { core::array::from_fn(|_| UnsafeCell::new(MaybeUninit::uninit())) };
        }
        impl Header {
            new_header! {}
        }
        impl<T: Send, const N: usize> Inline<T, N> {
            new! {}
        }
    } else {
        macro_rules! slots {
            () => { [const { UnsafeCell::new(MaybeUninit::uninit()) }; N] };
        }
        impl Header {
            new_header! { const }
        }
        impl<T: Send, const N: usize> Inline<T, N> {
            new! { const }
        }
    }
}

impl<T: Send, const N: usize> Inline<T, N> {
    const CAPACITY: () = assert!(
        N.is_power_of_two() && N >= 2 && N as u64 <= 1 << 31,
        "a ring's capacity is a power of two from 2 to 2^31"
    );

    /// Returns the owner's end and a thief's end, which borrow the ring. Items that an earlier,
    /// leaked worker left in the ring are still there.
    pub fn split(
        &mut self,
    ) -> (
        Worker<T, Borrowed<'_, T>>,
        super::Stealer<T, Borrowed<'_, T>>,
    ) {
        let worker = Worker::on(self.borrow());
        let stealer = worker.stealer();
        (worker, stealer)
    }

    /// Returns the owner's end to the first caller, and `None` to every later caller. This is for a
    /// ring in a `static`. Costs one read-modify-write.
    ///
    /// ```
    /// use queue_spmc::ring::Inline;
    ///
    /// static RING: Inline<u32, 8> = Inline::new();
    /// let mut worker = RING.take().unwrap();
    /// worker.push(1)?;
    /// assert!(RING.take().is_none());
    /// # Ok::<(), queue_spmc::ring::Full<u32>>(())
    /// ```
    pub fn take(&'static self) -> Option<Worker<T, Borrowed<'static, T>>> {
        // Ordering: Relaxed, exactly one caller reads 0. The way in which the caller got the
        // reference orders `new` before this call.
        if self.owner_taken.swap(1, Relaxed) != 0 {
            return None;
        }
        Some(Worker::on(self.borrow()))
    }

    fn borrow(&self) -> Borrowed<'_, T> {
        Borrowed {
            header: &self.header,
            slots: &self.slots,
        }
    }
}

impl<T, const N: usize> Drop for Inline<T, N> {
    fn drop(&mut self) {
        self.owner_taken.retire();
        drop_remaining(&mut self.header, &mut self.slots);
    }
}

impl<T, const N: usize> fmt::Debug for Inline<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inline")
            .field("capacity", &N)
            .finish_non_exhaustive()
    }
}

/// A handle on an [`Inline`] ring.
pub struct Borrowed<'a, T> {
    header: &'a Header,
    slots: &'a [Slot<T>],
}

// SAFETY: as for `Owned`.
unsafe impl<T: Send> Sync for Borrowed<'_, T> {}

// SAFETY: as for `Owned`.
unsafe impl<T: Send> Send for Borrowed<'_, T> {}

impl<T> Clone for Borrowed<'_, T> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

#[expect(private_interfaces, reason = "sealed")]
impl<T> StorageParts<T> for Borrowed<'_, T> {
    #[inline(always)]
    fn header(&self) -> &Header {
        self.header
    }

    #[inline(always)]
    fn slots(&self) -> &[Slot<T>] {
        self.slots
    }
}

impl<T> Storage<T> for Borrowed<'_, T> {}
