//! One value from one thread to one future: the answer of a call, and the end of a process.
//!
//! The sender and the receiver share a *slot*: a word of bits, a place for the value and one for a
//! waker.
//!
//! | bit | set by | means |
//! |---|---|---|
//! | DONE | the sender | it sends nothing any more |
//! | VALUE | the sender, with DONE | the value is there |
//! | WAKER | the receiver, which may clear it | the waker is there |
//! | NO_SENDER | the sender, after DONE | it does not touch the slot any more |
//! | NO_RECEIVER | the receiver | it does not touch the slot any more |
//! | TAKEN | the receiver, with NO_RECEIVER | it has moved the value out |
//! | LOST | the sender, with DONE | there is no value, as the sender's node is down |
//!
//! # Rules
//!
//! 1. The value is the sender's until the exchange that sets VALUE, and the receiver's afterwards.
//!    If that exchange finds NO_RECEIVER, the value stays the sender's.
//! 2. The waker is the receiver's while WAKER is not set. The receiver's exchange that sets WAKER
//!    gives the waker away, and an exchange that clears WAKER takes the waker back. Both exchanges
//!    fail after DONE. The sender whose exchange sets DONE and finds WAKER has the waker.
//! 3. So a receiver that is about to wait either fails in its exchange and then sees DONE, or is
//!    woken by the sender.
//! 4. An end *leaves* the slot when it sets NO_SENDER or NO_RECEIVER. The end that leaves second
//!    frees the slot, and drops a value that was not taken. An end that has seen the bit of the
//!    other end need not set its own.
//! 5. A waker and a value run user code, whose panic must not lose a wake-up or the slot. So an end
//!    wakes before it drops a value, and leaves the slot before it drops a waker. Where an end may
//!    drop a waker and a value, it guards the drop of the waker.
use crate::{
    guard::{Guarded, WakerId, wake},
    pool::Kept,
};
use queue_global::mpsc::Nodes;
use std::{
    alloc::Layout,
    mem::{self, MaybeUninit},
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
    task::{Context, Poll, Waker},
};
use sync_shim::{
    atomic::{
        AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        Retire,
    },
    cell::UnsafeCell,
};

const DONE: u32 = 1;
const VALUE: u32 = 1 << 1;
const WAKER: u32 = 1 << 2;
const NO_SENDER: u32 = 1 << 3;
const NO_RECEIVER: u32 = 1 << 4;
const TAKEN: u32 = 1 << 5;
const LOST: u32 = 1 << 6;

/// Why there is no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// The sender was dropped, or the value was taken before.
    Dropped,
    /// The sender has said that its node is down.
    NodeDown,
}

struct ValueSlot<R> {
    bits: AtomicU32,
    value: UnsafeCell<MaybeUninit<R>>,
    waker: UnsafeCell<MaybeUninit<Waker>>,
}

pub(crate) struct Sender<R>(NonNull<ValueSlot<R>>);

pub(crate) struct Receiver<R> {
    slot: NonNull<ValueSlot<R>>,
    /// Names the waker that this end has put into the slot. The sender may have taken that waker
    /// since. The waker is a clone, and may differ from the waker that it was cloned from.
    registered: Option<WakerId>,
    is_taken: bool,
}

// SAFETY: the value and the waker go from one thread to another. The bits say which end has each.
unsafe impl<R: Send> Send for Sender<R> {}
// SAFETY: a shared sender only loads the bits.
unsafe impl<R: Send> Sync for Sender<R> {}
// SAFETY: as for the sender.
unsafe impl<R: Send> Send for Receiver<R> {}
// SAFETY: a shared receiver gives access to nothing.
unsafe impl<R: Send> Sync for Receiver<R> {}

// A panic caught around a use of an end leaves the slot whole (rule 5), and nobody gets a reference
// to the value.
impl<R> UnwindSafe for Sender<R> {}
impl<R> RefUnwindSafe for Sender<R> {}
impl<R> UnwindSafe for Receiver<R> {}
impl<R> RefUnwindSafe for Receiver<R> {}

/// Makes both ends. The slot is a block that was kept for reuse, if there is one.
pub(crate) fn channel<R>() -> (Sender<R>, Receiver<R>) {
    let slot: NonNull<ValueSlot<R>> = Kept::allocate(Layout::new::<ValueSlot<R>>()).cast();
    let new = ValueSlot {
        bits: AtomicU32::new(0),
        value: UnsafeCell::new(MaybeUninit::uninit()),
        waker: UnsafeCell::new(MaybeUninit::uninit()),
    };
    // SAFETY: the block is new, and fits a slot.
    unsafe { slot.write(new) };
    let receiver = Receiver {
        slot,
        registered: None,
        is_taken: false,
    };
    (Sender(slot), receiver)
}

impl<R> ValueSlot<R> {
    fn put_value(&self, value: R) {
        self.value.with_mut(|place| {
            // SAFETY: rule 1: the caller is the sender, before its exchange.
            unsafe { *place = MaybeUninit::new(value) }
        });
    }

    /// # Safety
    /// The value is the caller's (rules 1 and 4), is there, and is taken once.
    unsafe fn take_value(&self) -> R {
        self.value.with_mut(|place| {
            // SAFETY: the caller promises that nobody else has the place.
            let place = unsafe { &*place };
            // SAFETY: the caller promises that it has a value.
            unsafe { place.assume_init_read() }
        })
    }

    fn put_waker(&self, waker: Waker) {
        self.waker.with_mut(|place| {
            // SAFETY: rule 2: the caller is the receiver, and WAKER is not set.
            unsafe { *place = MaybeUninit::new(waker) }
        });
    }

    /// # Safety
    /// The waker is the caller's (rule 2), is there, and is taken once.
    unsafe fn take_waker(&self) -> Waker {
        self.waker.with_mut(|place| {
            // SAFETY: the caller promises that nobody else has the place.
            let place = unsafe { &*place };
            // SAFETY: the caller promises that it has a waker.
            unsafe { place.assume_init_read() }
        })
    }
}

/// Frees the slot (rule 4), and drops the value if `bits` has VALUE without TAKEN.
///
/// # Safety
/// Both ends have left the slot. `bits` has VALUE without TAKEN only if the value is there.
unsafe fn free<R>(slot: NonNull<ValueSlot<R>>, bits: u32) {
    let value = {
        // SAFETY: the caller promises that this thread alone has the slot.
        let mut own = unsafe { slot.read() };
        // SAFETY: as above, and the value is there.
        let value = (bits & (VALUE | TAKEN) == VALUE).then(|| unsafe { own.take_value() });
        own.bits.retire();
        own.value.retire();
        own.waker.retire();
        value
    };
    // SAFETY: the block is from `channel`, and its content was moved out.
    unsafe { Kept::free(slot.cast(), Layout::new::<ValueSlot<R>>()) };
    drop(value);
}

impl<R> Sender<R> {
    fn slot(&self) -> &ValueSlot<R> {
        // SAFETY: rule 4: this end has not left the slot.
        unsafe { self.0.as_ref() }
    }

    /// Returns whether the receiver was dropped.
    pub(crate) fn is_abandoned(&self) -> bool {
        // Ordering: Relaxed, a hint.
        self.slot().bits.load(Relaxed) & NO_RECEIVER != 0
    }

    /// Sends the value, or hands it back if the receiver was dropped. Two read-modify-writes.
    pub(crate) fn send(self, value: R) -> Result<(), R> {
        self.slot().put_value(value);
        let slot = self.0;
        mem::forget(self);
        // SAFETY: this end has not left the slot, and is forgotten.
        match unsafe { Self::finish(slot, DONE | VALUE) } {
            None => Ok(()),
            Some(value) => Err(value),
        }
    }

    /// Ends without a value, as the node is down that would have sent it.
    pub(crate) fn end_by_loss(self) {
        let slot = self.0;
        mem::forget(self);
        // SAFETY: this end has not left the slot, and is forgotten.
        let value = unsafe { Self::finish(slot, DONE | LOST) };
        debug_assert!(value.is_none());
    }

    /// Leaves the slot, after it has set `bits`. Returns the value if the receiver had left before.
    ///
    /// # Safety
    /// This end has not left the slot, and does not use it any more.
    unsafe fn finish(slot: NonNull<ValueSlot<R>>, bits: u32) -> Option<R> {
        // SAFETY: the caller promises that the slot is live, until this end leaves it.
        let shared = unsafe { slot.as_ref() };
        // Ordering: Release pairs with the loads of `poll` and of the receiver's drop: the value is
        // written. Acquire pairs with the receiver's exchanges: the waker is written, and the
        // receiver that has left is done with the slot.
        let before = shared.bits.fetch_or(bits, AcqRel);
        if before & NO_RECEIVER != 0 {
            // SAFETY: rule 1: the receiver left before, and so never had the value.
            let value = (bits & VALUE != 0).then(|| unsafe { shared.take_value() });
            // SAFETY: rule 4: the receiver has left, and this end leaves here.
            unsafe { free(slot, TAKEN) };
            return value;
        }
        // SAFETY: rule 2: the exchange has set DONE.
        let waker = (before & WAKER != 0).then(|| unsafe { shared.take_waker() });
        // Ordering: Release pairs with the receiver, which frees the slot after it sees this bit.
        // Acquire pairs with the exchange of a receiver that has left.
        let before = shared.bits.fetch_or(NO_SENDER, AcqRel);
        // Rule 5: the wake comes before the value is dropped. The wake does not use the slot, so
        // the receiver may free the slot meanwhile.
        waker.into_iter().for_each(wake);
        if before & NO_RECEIVER != 0 {
            // SAFETY: rule 4.
            unsafe { free(slot, before) };
        }
        None
    }
}

impl<R> Drop for Sender<R> {
    fn drop(&mut self) {
        // SAFETY: this end has not left the slot, and ends.
        drop(unsafe { Self::finish(self.0, DONE) });
    }
}

impl<R> Receiver<R> {
    fn slot(&self) -> &ValueSlot<R> {
        // SAFETY: rule 4: this end has not left the slot.
        unsafe { self.slot.as_ref() }
    }

    /// Polls for the value. A poll that registers a waker costs one read-modify-write, and one more
    /// if it replaces a waker.
    pub(crate) fn poll(&mut self, cx: &Context<'_>) -> Poll<Result<R, NoValue>> {
        let id = WakerId::of(cx.waker());
        let mut clone: Option<Guarded<Waker>> = None;
        loop {
            // Ordering: Acquire pairs with the sender's first exchange: the value is written.
            let bits = self.slot().bits.load(Acquire);
            if bits & DONE != 0 {
                if bits & VALUE == 0 || self.is_taken {
                    return Poll::Ready(Err(match bits & LOST {
                        0 => NoValue::Dropped,
                        _ => NoValue::NodeDown,
                    }));
                }
                self.is_taken = true;
                // SAFETY: rule 1: VALUE is set, and this is the first take.
                return Poll::Ready(Ok(unsafe { self.slot().take_value() }));
            }
            if self.registered == Some(id) {
                return Poll::Pending;
            }
            drop(self.unregister());
            let Some(waker) = clone.take() else {
                // To clone a waker runs user code, which may even use or drop the sender. So the
                // bits are loaded again.
                clone = Some(Guarded::new(cx.waker().clone()));
                continue;
            };
            let stored = WakerId::of(&waker);
            self.slot().put_waker(waker.into_inner());
            // Ordering: Release pairs with the sender's first exchange, which takes the waker.
            // A failed exchange is followed by the load above.
            let set = self
                .slot()
                .bits
                .compare_exchange(0, WAKER, Release, Relaxed);
            if set.is_ok() {
                self.registered = Some(stored);
                return Poll::Pending;
            }
            // SAFETY: rule 2: the exchange failed, so the waker is still this end's.
            drop(unsafe { self.slot().take_waker() });
        }
    }

    /// Takes the waker back (rule 2). `None` if there is none, or if the sender has it.
    fn unregister(&mut self) -> Option<Waker> {
        self.registered.take()?;
        // Ordering: Relaxed. This end wrote the waker; a later exchange that sets WAKER again has
        // Release. A failed exchange is followed by a load or an exchange with Acquire.
        let cleared = self
            .slot()
            .bits
            .compare_exchange(WAKER, 0, Relaxed, Relaxed);
        // SAFETY: rule 2: the exchange took the waker back.
        cleared.is_ok().then(|| unsafe { self.slot().take_waker() })
    }
}

impl<R> Drop for Receiver<R> {
    fn drop(&mut self) {
        let waker = self.unregister().map(Guarded::new);
        let own_bits = NO_RECEIVER | if self.is_taken { TAKEN } else { 0 };
        // Ordering: Acquire pairs with the sender's second exchange: it has left the slot.
        let mut bits = self.slot().bits.load(Acquire);
        if bits & NO_SENDER == 0 {
            // Ordering: Release pairs with the sender's exchanges: this end is done with the slot.
            // Acquire as above.
            bits = self.slot().bits.fetch_or(own_bits, AcqRel);
        }
        if bits & NO_SENDER != 0 {
            // SAFETY: rule 4: both have left.
            unsafe { free(self.slot, bits | own_bits) };
        }
        // Rule 5: this end has left the slot.
        drop(waker);
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
