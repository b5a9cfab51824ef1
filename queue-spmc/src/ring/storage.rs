//! Where a ring lives: on the heap, counted; or in a place of the user's, borrowed. The protocol is the same for all.
use super::{
    AtomicU32, AtomicU64, Box, CachePadded, Core, Head, MaybeUninit, Retire, Slot, UnsafeCell, Vec,
    Worker, arc::Arc, assert_capacity, taken::Taken,
};
use core::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
};
use sealed::Parts;
use sync_shim::atomic::Ordering::Relaxed;

/// A handle on a ring's memory. Sealed: [`Shared`] and [`Borrowed`] are all there are.
pub trait Storage<T>: Parts<T> {}

mod sealed {
    use super::{Core, Slot};

    #[expect(
        private_interfaces,
        reason = "sealed: nobody outside can name the trait"
    )]
    pub trait Parts<T>: Clone {
        fn core(&self) -> &Core;
        fn slots(&self) -> &[Slot<T>];
    }
}

pub(super) use sealed::Parts as StorageParts;

macro_rules! new_core {
    ($($constness:ident)?) => {
        pub(super) $($constness)? fn new(at: u32) -> Self {
            Self {
                head: CachePadded::new(AtomicU64::new(Head::both(at).0)),
                tail: CachePadded::new(AtomicU32::new(at)),
                wanted: CachePadded::new(AtomicU32::new(0)),
            }
        }
    };
}

/// A ring on the heap, freed with its last handle. The only allocations that it ever makes are at its birth.
pub struct Shared<T> {
    owned: Arc<Owned<T>>,
    /// Those of `owned`, at hand.
    slots: *const [Slot<T>],
}

struct Owned<T> {
    core: Core,
    slots: Box<[Slot<T>]>,
}

// SAFETY: an item is reached by the one thread that took it (rule 1), so it only moves between threads.
unsafe impl<T: Send> Sync for Owned<T> {}

// SAFETY: as above.
unsafe impl<T: Send> Send for Owned<T> {}

// SAFETY: an `Arc` of the above, and a pointer into it.
unsafe impl<T: Send> Sync for Shared<T> {}

// SAFETY: as above.
unsafe impl<T: Send> Send for Shared<T> {}

// A panic, which only an item's drop or an overflow makes, leaves the ring whole.
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
            core: Core::new(at),
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
    fn core(&self) -> &Core {
        &self.owned.core
    }

    #[inline(always)]
    fn slots(&self) -> &[Slot<T>] {
        // SAFETY: `owned` keeps its box, which nobody moves or takes mutably before the last handle goes.
        unsafe { &*self.slots }
    }
}

impl<T> Storage<T> for Shared<T> {}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        drop_rest(&mut self.core, &mut self.slots);
    }
}

/// Drops what is left in the ring: the items of a worker that was forgotten.
fn drop_rest<T>(core: &mut Core, slots: &mut [Slot<T>]) {
    let (next, left) = core.rest();
    for slot in &mut *slots {
        slot.retire();
    }
    // SAFETY: there is no handle any more, so what is left is ours.
    drop(unsafe { Taken::new(slots, next, left) });
}

/// A ring in place, which never allocates: on the stack, in a struct, in a static.
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
/// The handles borrow it:
///
/// ```compile_fail
/// let mut ring = queue_spmc::ring::Inline::<u32, 8>::new();
/// let (worker, _) = ring.split();
/// let again = ring.split();
/// drop(worker);
/// ```
pub struct Inline<T, const N: usize> {
    core: Core,
    given: AtomicU32,
    slots: [Slot<T>; N],
}

// SAFETY: as for `Owned`.
unsafe impl<T: Send, const N: usize> Sync for Inline<T, N> {}

// SAFETY: as for `Owned`.
unsafe impl<T: Send, const N: usize> Send for Inline<T, N> {}

macro_rules! new {
    ($($constness:ident)?) => {
        /// An empty ring. A capacity `N` that is no power of two, below 2 or above 2³¹ doesn't compile.
        ///
        /// A `const fn`, but under a model.
        #[expect(
            clippy::new_without_default,
            reason = "it comes with `split`, not alone"
        )]
        pub $($constness)? fn new() -> Self {
            const { Self::CAPACITY };
            Self {
                core: Core::new(0),
                given: AtomicU32::new(0),
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
        impl Core {
            new_core! {}
        }
        impl<T: Send, const N: usize> Inline<T, N> {
            new! {}
        }
    } else {
        macro_rules! slots {
            () => { [const { UnsafeCell::new(MaybeUninit::uninit()) }; N] };
        }
        impl Core {
            new_core! { const }
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

    /// The two ends, for as long as the ring is borrowed. What an earlier worker left behind, when it was forgotten, is still there.
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

    /// The owner's end, to the first who asks: for a ring in a static. `None` to all others, for ever. One read-modify-write.
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
        // Ordering: Relaxed, one caller is the first; how it came by the reference orders it after `new`.
        if self.given.swap(1, Relaxed) != 0 {
            return None;
        }
        Some(Worker::on(self.borrow()))
    }

    fn borrow(&self) -> Borrowed<'_, T> {
        Borrowed {
            core: &self.core,
            slots: &self.slots,
        }
    }
}

impl<T, const N: usize> Drop for Inline<T, N> {
    fn drop(&mut self) {
        self.given.retire();
        drop_rest(&mut self.core, &mut self.slots);
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
    core: &'a Core,
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
    fn core(&self) -> &Core {
        self.core
    }

    #[inline(always)]
    fn slots(&self) -> &[Slot<T>] {
        self.slots
    }
}

impl<T> Storage<T> for Borrowed<'_, T> {}
