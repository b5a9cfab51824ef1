//! How what a thread has gets to another while it blocks, and back.
//!
//! One word: null or what is lent, and beside it, in the lowest bit, whether somebody was asked to come for it.
//!
//! 1. Whoever has it offers it; whoever turns the word into another, by one exchange, has it, all of it: the offer releases it, the exchange acquires. The lender
//!    may be the one. While it is on offer nobody touches it.
//! 2. The bit is set by the first offer, whose lender asks a thread to come, and cleared by the thread that comes, in the exchange that takes what is there. So a lender
//!    that has taken it back, and offers it once more before that thread has come, asks for no second: it is found by the first.
//! 3. The word is an address, not a pointer. In a pointer `cancel_request` could clear the bit only by an
//!    exchange, which may put back the pointer of an earlier box at the same address. So an offer
//!    exposes its box's provenance, and the exchange that takes the box makes a pointer of the
//!    address.
use std::{fmt, marker::PhantomData, ptr};
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed},
    Retire,
};

const ASKED: usize = 1;

/// A place where a `T` is handed over: to another thread while this one blocks, or back to it if nobody took it.
///
/// ```
/// let lent = blocking_threads::Lent::new();
/// assert!(lent.offer(Box::new("a worker's queues")).request); // So another thread is to `accept` it.
/// // Here it blocks. Then:
/// assert!(lent.take().is_some(), "nobody has taken it over");
/// assert!(!lent.offer(Box::new("and again")).request, "the thread is still on its way");
/// assert_eq!(*lent.accept().unwrap(), "and again");
/// ```
///
/// A `T` is aligned to two bytes at least:
///
/// ```compile_fail,E0080
/// blocking_threads::Lent::<u8>::new();
/// ```
pub struct Lent<T: Send> {
    on_offer: AtomicUsize,
    /// Invariant: a shared `Lent` takes boxes in and gives them out.
    boxes: PhantomData<fn(Box<T>) -> Box<T>>,
}

/// What an offer has found.
#[must_use = "nobody comes unasked"]
pub struct Offered<T> {
    /// What was on offer before, if anything was.
    pub before: Option<Box<T>>,
    /// Whether somebody is to be asked to [`come`](Lent::accept), as nobody is on the way.
    pub request: bool,
}

impl<T: Send> Lent<T> {
    const FREE_BIT: () = assert!(align_of::<T>() > ASKED, "there is no bit beside a byte");

    /// With nothing on offer, and nobody asked.
    pub fn new() -> Self {
        let () = Self::FREE_BIT;
        Self {
            on_offer: AtomicUsize::new(0),
            boxes: PhantomData,
        }
    }

    /// Offers `value`. One read-modify-write.
    pub fn offer(&self, value: Box<T>) -> Offered<T> {
        let offered = Box::into_raw(value).expose_provenance() | ASKED;
        // Ordering: AcqRel pairs with `take` and `come`, and with another offer.
        let before = self.on_offer.swap(offered, AcqRel);
        Offered {
            before: Self::owned(before),
            request: before & ASKED == 0,
        }
    }

    /// Takes what is on offer, if anything is; who was asked still comes. One read-modify-write, or a load if nothing is there.
    pub fn take(&self) -> Option<Box<T>> {
        // Ordering: Acquire pairs with `offer`. Without one nothing is taken, and Relaxed does.
        let before = self.on_offer.fetch_update(Acquire, Relaxed, |now| {
            let asked = now & ASKED;
            (now != asked).then_some(asked)
        });
        before.ok().and_then(Self::owned)
    }

    /// Takes what is on offer, by who was asked: the next to offer asks again. One read-modify-write.
    pub fn accept(&self) -> Option<Box<T>> {
        // Ordering: Acquire pairs with `offer`.
        Self::owned(self.on_offer.swap(0, Acquire))
    }

    /// Nobody could be asked: the next to offer asks again. What is on offer stays.
    pub fn cancel_request(&self) {
        // Ordering: Relaxed, nothing is read or shown by it, and what an offer has released it passes on.
        self.on_offer.fetch_and(!ASKED, Relaxed);
    }

    fn owned(word: usize) -> Option<Box<T>> {
        let value: *mut T = ptr::with_exposed_provenance_mut(word & !ASKED);
        // SAFETY: `offer` exposed the box (rule 3), and one exchange alone took it.
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
mod crowd {
    mod models;
}
#[cfg(test)]
mod models;
