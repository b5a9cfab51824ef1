//! Hands a thread's value to a monitor if a call of that thread takes long, and only then.
//!
//! # Actors and states
//!
//! The *caller* owns a value, such as a worker's queues. It puts the value into the cell, makes a
//! call that is usually short, and takes the value back. A *monitor* finds that the call takes
//! long, and retakes the value for another thread.
//!
//! All state is one word:
//!
//! | word | state | owner of the value |
//! |---|---|---|
//! | 0 | *outside*: no call is in progress, or the monitor has retaken the value | the caller, or the thread to which the monitor gave the value |
//! | the value's address | *inside* | the cell: the thread that takes the address out of the word owns the value |
//!
//! # Rules
//!
//! 1. *The value has one owner at a time.* `exit` and `retake` both replace the address by 0 in one
//!    exchange. Of all exchanges after an `enter` only one replaces the address. `retake` writes
//!    nothing if the caller is outside, so it cannot overwrite the address of the next call. (An
//!    exchange of 0 for 0 could not overwrite that address either. But loom also explores
//!    executions in which the exchange's 0 comes after the store of the next `enter`.)
//! 2. *`enter` is a store, not an exchange.* A caller owns the value when it enters, so the value
//!    is not in the word. If other code puts two values into one cell, the first one is leaked, and
//!    still no value gets two owners.
//! 3. *The monitor's decision may be late.* The monitor may have observed one call, and retake the
//!    value in the next call. That costs a hand-over and breaks nothing.
//! 4. *A nested call enters nothing.* The caller has no value during a call: the value is in the
//!    word.
use std::{fmt, marker::PhantomData, ptr};
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    Retire,
};

/// A cell that holds a thread's value while the thread is in a call that may block.
///
/// ```
/// use sched_monitor::Handoff;
///
/// let cell = Handoff::new();
/// // A short call: the thread enters, and takes its value back.
/// cell.enter(Box::new("a worker's queues"));
/// let value = cell.exit().expect("nobody took it");
/// // A long call: a monitor retakes the value, and another thread continues with it.
/// cell.enter(value);
/// let other = std::thread::scope(|s| s.spawn(|| cell.retake()).join().unwrap());
/// assert_eq!(*other.unwrap(), "a worker's queues");
/// assert!(cell.exit().is_none());
/// ```
pub struct Handoff<T: Send> {
    inside: AtomicUsize,
    /// Invariant in `T`: a shared cell takes boxes in and gives them out.
    boxes: PhantomData<fn(Box<T>) -> Box<T>>,
}

impl<T: Send> Handoff<T> {
    /// Creates an empty cell.
    pub fn new() -> Self {
        const { assert!(size_of::<T>() > 0, "a value without a size has no address") };
        Self {
            inside: AtomicUsize::new(0),
            boxes: PhantomData,
        }
    }

    /// Puts the caller's value into the cell, before the call. Costs a store.
    ///
    /// The cell must be empty: a value that is still in it is leaked. A cell that is used for only
    /// one value is empty here, as the caller has that value.
    #[inline]
    pub fn enter(&self, value: Box<T>) {
        let address = Box::into_raw(value).expose_provenance();
        // Ordering: Release pairs with the exchanges of `exit` and `retake`.
        self.inside.store(address, Release);
    }

    /// Takes the value back after the call, unless a monitor has retaken it. Costs one exchange.
    #[inline]
    pub fn exit(&self) -> Option<Box<T>> {
        // Ordering: Acquire pairs with the store of `enter`, which another thread may have made.
        let value: *mut T = ptr::with_exposed_provenance_mut(self.inside.swap(0, Acquire));
        // SAFETY: `enter` exposed the box's provenance. Only one exchange replaces the box's
        // address, and this thread has made that exchange, so it owns the box (rule 1).
        (!value.is_null()).then(|| unsafe { Box::from_raw(value) })
    }

    /// Takes the value for another thread, if the caller is inside. Costs a load, and one exchange
    /// if the load finds a value.
    pub fn retake(&self) -> Option<Box<T>> {
        // Ordering: Relaxed, a hint. The exchange decides.
        let address = self.inside.load(Relaxed);
        if address == 0 {
            return None;
        }
        // Ordering: Acquire pairs with the store of `enter`. Relaxed on failure, as another thread
        // has taken the value then.
        let replaced = self.inside.compare_exchange(address, 0, Acquire, Relaxed);
        let value = ptr::with_exposed_provenance_mut(replaced.ok()?);
        // SAFETY: as in `exit`.
        Some(unsafe { Box::from_raw(value) })
    }

    /// Returns whether a caller is inside a call with its value in the cell. Costs a load.
    #[inline]
    pub fn is_inside(&self) -> bool {
        // Ordering: Relaxed, a hint. The exchange decides.
        self.inside.load(Relaxed) != 0
    }
}

impl<T: Send> Default for Handoff<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Send> fmt::Debug for Handoff<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handoff")
            .field("is_inside", &self.is_inside())
            .finish()
    }
}

impl<T: Send> Drop for Handoff<T> {
    fn drop(&mut self) {
        self.inside.retire();
        drop(self.exit());
    }
}
