//! The allocation that the two ends of a oneshot channel share.
//!
//! | field | may be touched by |
//! |---|---|
//! | `state` | both ends |
//! | `value` | the sender, until it sets `VALUE`; then the receiver |
//! | `rx_waker`, `tx_waker` | stored by the receiver, or by the sender; see `waker_words.rs` |
//!
//! | bit | set by | meaning |
//! |---|---|---|
//! | `RX_WAKER`, `TX_WAKER` | the receiver, the sender | the slot of that end holds a waker |
//! | `VALUE` | the sender, with `TX_GONE` | `value` holds a value |
//! | `TX_GONE` | the sender | the sender does not touch the allocation any more |
//! | `CLOSED` | the receiver | the channel takes no value any more |
//! | `RX_GONE` | the receiver, with or after `CLOSED` | as `TX_GONE`, of the receiver |
//!
//! The bits above these count the changes of wakers ([`VERSION`]).
//!
//! 1. `VALUE`, `TX_GONE`, `CLOSED` and `RX_GONE` are never cleared. `VALUE` is not set after
//!    `CLOSED`. So a value is received or handed back, and not both.
//! 2. An end leaves by one exchange that sets its `GONE` bit and clears both waker bits. So it
//!    takes the waker of the other end, which it wakes, and its own, which it drops. It does not
//!    touch the allocation afterwards.
//! 3. An end that finds the other one gone owns the allocation. It leaves without an exchange, and
//!    frees the allocation. At most one end can find that, as the other does not look any more.
//!    There are no wakers then, by rule 2.
//! 4. An end registers its waker by an exchange that fails if the state has changed. An end leaves,
//!    or closes, by an exchange too. So one of the two comes first: either the registration fails
//!    and sees the change, or the other end finds the waker. No wake is lost.
use crate::waiters::wake;
use crate::waker_words::WakerWords;
use alloc::boxed::Box;
use core::{
    mem::MaybeUninit,
    ptr::NonNull,
    task::{Poll, Waker},
};
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
        Retire,
    },
    cell::UnsafeCell,
    panics::contain,
};

const RX_WAKER: usize = 1;
const TX_WAKER: usize = 2;
pub(super) const VALUE: usize = 4;
pub(super) const TX_GONE: usize = 8;
pub(super) const CLOSED: usize = 16;
pub(super) const RX_GONE: usize = 32;
/// The lowest bit of the count of changed wakers.
const VERSION: usize = 64;
/// A state of at least this much has no more versions. A task whose waker changes then polls in a
/// loop. On a 32-bit target that takes 2^26 changes; a model has few, so that it gets there.
const LAST_VERSION: usize = if cfg!(selvedge_loom) {
    2 * VERSION
} else {
    usize::MAX - VERSION
};

pub(super) struct Inner<T> {
    state: AtomicUsize,
    rx_waker: WakerWords,
    tx_waker: WakerWords,
    value: UnsafeCell<MaybeUninit<T>>,
}

/// One end of the channel.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Sender,
    Receiver,
}

/// The wakers that an exchange took.
#[must_use = "the waker of the other end must be woken"]
pub(super) struct Taken {
    other: Option<Waker>,
    own: Option<Waker>,
}

impl Taken {
    /// Wakes the other end, and drops the own waker. Drops their panics.
    pub(super) fn wake(self) {
        if let Some(other) = self.other {
            wake(other);
        }
        if let Some(own) = self.own {
            contain(|| drop(own));
        }
    }
}

impl End {
    fn waker_bit(self) -> usize {
        match self {
            Self::Sender => TX_WAKER,
            Self::Receiver => RX_WAKER,
        }
    }

    fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }

    /// Returns the bits for which this end waits.
    fn awaited(self) -> usize {
        match self {
            Self::Sender => CLOSED,
            Self::Receiver => TX_GONE | CLOSED,
        }
    }

    /// Returns the bit of an end that has left.
    fn gone(self) -> usize {
        match self {
            Self::Sender => TX_GONE,
            Self::Receiver => RX_GONE,
        }
    }
}

impl<T> Inner<T> {
    pub(super) fn new() -> NonNull<Self> {
        NonNull::from(Box::leak(Box::new(Self {
            state: AtomicUsize::new(0),
            rx_waker: WakerWords::new(),
            tx_waker: WakerWords::new(),
            value: UnsafeCell::new(MaybeUninit::uninit()),
        })))
    }

    /// Returns the state. A bit in it orders the caller after the change that set the bit.
    pub(super) fn state(&self) -> usize {
        // Ordering: Acquire pairs with the Release of `change`, by the other end: the value, and
        // its last use of the allocation.
        self.state.load(Acquire)
    }

    /// Writes the value, for the sender.
    ///
    /// # Safety
    /// The caller is the sender, and `VALUE` is not set.
    pub(super) unsafe fn write(&self, value: T) {
        self.value.with_mut(|slot| {
            // SAFETY: the slot is the sender's until it sets `VALUE`.
            unsafe { slot.cast::<T>().write(value) };
        });
    }

    /// Takes the value out.
    ///
    /// # Safety
    /// The slot holds a value that is the caller's: the sender's before it sets `VALUE`, the
    /// receiver's after it has acquired `VALUE`. It is taken once.
    pub(super) unsafe fn read(&self) -> T {
        self.value.with(|slot| {
            // SAFETY: the caller's.
            unsafe { slot.cast::<T>().read() }
        })
    }

    /// Sets `bits` for one end and takes both wakers, unless a bit of `refused` is set. Then
    /// returns the state.
    pub(super) fn change(&self, end: End, bits: usize, refused: usize) -> Result<Taken, usize> {
        let mut state = self.state();
        loop {
            if state & refused != 0 {
                return Err(state);
            }
            let rx = (state & RX_WAKER != 0).then(|| self.rx_waker.load());
            let tx = (state & TX_WAKER != 0).then(|| self.tx_waker.load());
            let changed = (state | bits) & !(RX_WAKER | TX_WAKER);
            // Ordering: Release pairs with the Acquire of `state` and of the exchanges here and in
            // `poll_register`, by the other end: it sees the value, or owns the allocation. Acquire
            // on failure, as in `state`. A success needs no Acquire: the state that it replaces was
            // acquired, with the wakers.
            let exchanged = self
                .state
                .compare_exchange_weak(state, changed, Release, Acquire);
            let Err(now) = exchanged else {
                // SAFETY: the exchange cleared the bits of these slots (rule 2 there).
                let rx = rx.map(|words| unsafe { words.into_waker() });
                // SAFETY: as above.
                let tx = tx.map(|words| unsafe { words.into_waker() });
                let (other, own) = match end {
                    End::Sender => (rx, tx),
                    End::Receiver => (tx, rx),
                };
                return Ok(Taken { other, own });
            };
            state = now;
        }
    }

    /// Returns the state if `end` waits for a bit in it. Else registers the waker.
    ///
    /// Costs one read-modify-write and a clone of the waker. If the same waker is registered, costs
    /// none. A waker in the place of another costs one more, and the drop of the other.
    ///
    /// # Panics
    /// If a waker panics: its clone, or its drop, or its wake if there is no version left.
    pub(super) fn poll_register(&self, end: End, waker: &Waker) -> Poll<usize> {
        let slot = match end {
            End::Sender => &self.tx_waker,
            End::Receiver => &self.rx_waker,
        };
        let mut state = self.state();
        if state & end.awaited() != 0 {
            return Poll::Ready(state);
        }
        if state & end.waker_bit() != 0 && slot.will_wake(waker) {
            return Poll::Pending;
        }
        let mut new = waker.clone();
        // Dropped last, when the channel is in order.
        let mut _old = None;
        loop {
            if state & end.awaited() != 0 {
                return Poll::Ready(state);
            }
            if state & end.waker_bit() != 0 {
                if state >= LAST_VERSION {
                    waker.wake_by_ref();
                    return Poll::Pending;
                }
                let words = slot.load();
                let without = (state & !end.waker_bit()) + VERSION;
                // Ordering: Relaxed on success: the waker is this end's own. Acquire on failure, as
                // in `state`.
                let exchanged = self
                    .state
                    .compare_exchange(state, without, Relaxed, Acquire);
                if let Err(now) = exchanged {
                    state = now;
                    continue;
                }
                state = without;
                // SAFETY: the exchange cleared the bit of this slot (rule 3 there).
                _old = Some(unsafe { words.into_waker() });
            }
            slot.store(new);
            let with = state | end.waker_bit();
            // Ordering: Release pairs with the Acquire of the load or exchange by which the other
            // end finds the waker. Acquire on failure, as in `state`.
            match self.state.compare_exchange(state, with, Release, Acquire) {
                Ok(_) => return Poll::Pending,
                Err(now) => state = now,
            }
            // SAFETY: the bit is clear, so the waker that this call has stored is its own.
            new = unsafe { slot.load().into_waker() };
        }
    }

    /// Leaves the channel as `end`. Returns the value if it is there, for the receiver.
    ///
    /// # Safety
    /// `inner` is live. The caller is that end, and does not use the allocation again. The sender's
    /// value is not written, or it is taken back.
    pub(super) unsafe fn leave(inner: NonNull<Self>, end: End) -> Option<T> {
        // SAFETY: the allocation is live while this end has not left.
        let this = unsafe { inner.as_ref() };
        let closed = if end == End::Receiver { CLOSED } else { 0 };
        match this.change(end, end.gone() | closed, end.other().gone()) {
            Ok(taken) => {
                taken.wake();
                None
            }
            Err(state) => {
                // SAFETY: the other end is gone and its `GONE` bit is acquired. A receiver that
                // finds `VALUE` has not taken the value, as it leaves when it does.
                let value =
                    (end == End::Receiver && state & VALUE != 0).then(|| unsafe { this.read() });
                // SAFETY: this end owns the allocation (rule 3).
                unsafe { Self::free(inner) };
                value
            }
        }
    }

    /// Frees the allocation, but drops no value in it.
    ///
    /// # Safety
    /// The caller owns the allocation: the other end is gone.
    unsafe fn free(inner: NonNull<Self>) {
        // SAFETY: `new` leaked this box, and the caller owns it.
        let mut inner = unsafe { Box::from_raw(inner.as_ptr()) };
        inner.state.retire();
        inner.rx_waker.retire();
        inner.tx_waker.retire();
        inner.value.retire();
    }
}
