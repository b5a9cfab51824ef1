//! Hands a value from a thread that is about to block to another thread, or back.
//!
//! # Actors and states
//!
//! A *lender* has a value and offers it before it blocks. It requests a *helper*, a thread that
//! takes the value over while the lender blocks. Afterwards the lender takes the value back, unless
//! the helper was faster.
//!
//! All state is one word: the address of the value or null, and the bit `REQUESTED` beside it.
//!
//! | address | `REQUESTED` | state |
//! |---|---|---|
//! | null | 0 | nothing is on offer, and no helper is on its way |
//! | null | 1 | the lender took the value back, and the helper is still on its way |
//! | set | 1 | the value is on offer, and a helper is on its way |
//! | set | 0 | the value is on offer, and no helper could be requested |
//!
//! # Why it is sound
//!
//! 1. *The value has one owner at a time.* While the value is on offer no thread touches it. A
//!    thread owns the value once the thread's exchange has replaced the address in the word. For
//!    each offer only one exchange does so. The offer releases the value, and the exchange acquires
//!    it.
//! 2. *At most one helper is on its way.* An offer sets the bit, and asks its lender to request a
//!    helper only if the bit was clear. The helper clears the bit in the same exchange that takes
//!    the value. A lender that took its value back, and offers it again before the helper has come,
//!    requests no other helper: the first helper finds the second offer.
//! 3. *The word is an address, not a pointer.* With a pointer, `cancel_request` could clear the bit
//!    only by a compare-exchange. If a new box has the address of an earlier one, that exchange may
//!    store the pointer of the earlier box. So an offer exposes its box's provenance, and the
//!    thread that takes the box makes a pointer of the address.
use std::{fmt, marker::PhantomData, ptr};
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
    Retire,
};

const REQUESTED: usize = 1;

/// A slot through which a thread lends a `T` while it blocks.
///
/// Another thread accepts the value, or the lender takes it back.
///
/// ```
/// let lent = blocking_threads::Lent::new();
/// assert!(lent.offer(Box::new("a worker's queues")).request); // Another thread is to `accept` it.
/// // The lender blocks here. Then:
/// assert!(lent.take().is_some(), "the other thread has not come yet");
/// assert!(!lent.offer(Box::new("and again")).request, "the helper is still on its way");
/// assert_eq!(*lent.accept().unwrap(), "and again");
/// ```
///
/// `T` must be aligned to two bytes at least:
///
/// ```compile_fail,E0080
/// blocking_threads::Lent::<u8>::new();
/// ```
pub struct Lent<T: Send> {
    on_offer: AtomicUsize,
    /// Invariant in `T`: a shared `Lent` takes boxes in and gives them out.
    boxes: PhantomData<fn(Box<T>) -> Box<T>>,
}

/// The result of an [`offer`](Lent::offer).
#[must_use = "a helper may have to be requested"]
pub struct Offered<T> {
    /// The value that was on offer before, if any.
    pub before: Option<Box<T>>,
    /// Whether the caller must request a helper, a thread that calls [`accept`](Lent::accept).
    /// False if a helper is on its way already.
    pub request: bool,
}

impl<T: Send> Lent<T> {
    const FREE_BIT: () = assert!(
        align_of::<T>() > REQUESTED,
        "the address of a byte leaves no bit free"
    );

    /// Creates a slot with nothing on offer, and no helper requested.
    pub fn new() -> Self {
        let () = Self::FREE_BIT;
        Self {
            on_offer: AtomicUsize::new(0),
            boxes: PhantomData,
        }
    }

    /// Offers `value`. One read-modify-write.
    pub fn offer(&self, value: Box<T>) -> Offered<T> {
        let offered = Box::into_raw(value).expose_provenance() | REQUESTED;
        // Ordering: AcqRel pairs with `take`, with `accept`, and with another offer.
        let before = self.on_offer.swap(offered, AcqRel);
        Offered {
            before: Self::owned(before),
            request: before & REQUESTED == 0,
        }
    }

    /// Takes the value that is on offer, if any. A helper that was requested still comes.
    ///
    /// One read-modify-write, or a load if nothing is on offer.
    pub fn take(&self) -> Option<Box<T>> {
        // Ordering: Acquire pairs with `offer`. If nothing is on offer nothing is taken, and
        // Relaxed is enough.
        let before = self.on_offer.fetch_update(Acquire, Relaxed, |now| {
            let requested = now & REQUESTED;
            (now != requested).then_some(requested)
        });
        before.ok().and_then(Self::owned)
    }

    /// Takes the value that is on offer, as the helper. The next offer requests a helper again.
    ///
    /// One read-modify-write.
    pub fn accept(&self) -> Option<Box<T>> {
        // Ordering: Acquire pairs with `offer`.
        Self::owned(self.on_offer.swap(0, Acquire))
    }

    /// Withdraws the request for a helper, if none could be started. The next offer requests one
    /// again.
    ///
    /// A value that is on offer stays there. One read-modify-write.
    pub fn cancel_request(&self) {
        // Ordering: Relaxed, as no value moves here. A read-modify-write continues the release
        // sequence of the offer, so a later `take` still acquires the value.
        self.on_offer.fetch_and(!REQUESTED, Relaxed);
    }

    /// Returns whether a value is on offer, and a helper was requested for it. A hint, for the
    /// checks of a simulation.
    #[cfg(selvedge_sim)]
    #[doc(hidden)]
    pub fn awaits_helper(&self) -> bool {
        // Ordering: Relaxed, as no value is taken.
        let word = self.on_offer.load(Relaxed);
        word & REQUESTED != 0 && word != REQUESTED
    }

    fn owned(word: usize) -> Option<Box<T>> {
        let value: *mut T = ptr::with_exposed_provenance_mut(word & !REQUESTED);
        // SAFETY: `offer` exposed the box's provenance (rule 3). One exchange alone replaced the
        // address, so this thread owns the box (rule 1).
        (!value.is_null()).then(|| unsafe { Box::from_raw(value) })
    }
}

impl<T> fmt::Debug for Offered<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offered")
            .field("request", &self.request)
            .finish_non_exhaustive()
    }
}

impl<T: Send> Default for Lent<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> fmt::Debug for Lent<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lent")
    }
}

impl<T: Send> Drop for Lent<T> {
    fn drop(&mut self) {
        self.on_offer.retire();
        drop(self.accept());
    }
}

#[cfg(all(test, not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(test)]
mod models;
