//! A ring in place: the user has its memory, and lends it to the handles.
use super::{
    AtomicU32, Header, MaybeUninit, Relaxed, Retire, Slot, Stealer, Storage, UnsafeCell, Worker,
    storage::{StorageParts, drop_remaining},
};
use core::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
};

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

// SAFETY: as for the `Owned` of `Shared`.
unsafe impl<T: Send, const N: usize> Sync for Inline<T, N> {}

// SAFETY: as above.
unsafe impl<T: Send, const N: usize> Send for Inline<T, N> {}

// As for `Shared`.
impl<T, const N: usize> UnwindSafe for Inline<T, N> {}
impl<T, const N: usize> RefUnwindSafe for Inline<T, N> {}
impl<T> UnwindSafe for Borrowed<'_, T> {}
impl<T> RefUnwindSafe for Borrowed<'_, T> {}

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
        impl<T: Send, const N: usize> Inline<T, N> {
            new! {}
        }
    } else {
        macro_rules! slots {
            () => { [const { UnsafeCell::new(MaybeUninit::uninit()) }; N] };
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
    pub fn split(&mut self) -> (Worker<T, Borrowed<'_, T>>, Stealer<T, Borrowed<'_, T>>) {
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

// SAFETY: as above.
unsafe impl<T: Send> Sync for Borrowed<'_, T> {}

// SAFETY: as above.
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
