//! A cell for one waker: a task registers its waker, and notifiers take and wake it.
//!
//! # Actors
//!
//! | actor | calls | does |
//! |---|---|---|
//! | *registration* | `register` | a task puts its waker into the cell |
//! | *notifier* | `take`, `wake` | takes the waker out and wakes it |
//! | *holder* | | the one registration or notifier that may touch `waker` |
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | `state` | anyone |
//! | `waker` | the holder |
//!
//! # States
//!
//! | `state` | name | meaning |
//! |---|---|---|
//! | `EMPTY` | *empty* | no waker is registered |
//! | `WOKEN` | *empty* | as above, and a notifier came since the last registration |
//! | `FULL` | *registered* | `waker` holds a waker |
//! | `BUSY` | *registering* | a registration holds the cell |
//! | `BUSY \| WOKEN` | *registering* | as above, and a notifier came meanwhile |
//! | `FULL \| WOKEN` | *taking* | a notifier holds the cell |
//!
//! # Rules
//!
//! 1. There is at most one holder. A registration becomes the holder by a change of an empty or
//!    registered cell to `BUSY`. A notifier becomes the holder if it sets `WOKEN` on a cell that is
//!    exactly `FULL`. Each of these changes is one read-modify-write. After it, no other thread can
//!    become the holder until this one leaves.
//! 2. While there is a holder, other threads change `state` only by setting `WOKEN`.
//! 3. A holder leaves with a read-modify-write. A registration leaves the cell registered if no
//!    notifier set `WOKEN` meanwhile; else it takes the waker out, leaves the cell empty, and wakes
//!    the waker. A notifier leaves the cell empty and keeps the waker.
//! 4. A thread that finds the cell held leaves the work to the holder. A notifier can do so by rule
//!    3. A registration also wakes the waker that it was to register, so that the task polls once
//!    more.
//!
//! # Why no wake is lost
//!
//! The task registers and then checks its condition; the notifier changes the condition and then
//! wakes. All steps on `state` are in one order. So the notifier's `WOKEN` comes at one of three
//! times:
//!
//! 1. *Before the registration's first step.* That step acquires `WOKEN`, and the task sees the
//!    condition.
//! 2. *Between the registration's first and last step.* The registration wakes the task (rule 3),
//!    which registers again and acquires `WOKEN`, as in the next case.
//! 3. *After the registration's last step.* If the notifier finds `FULL`, it takes the waker and
//!    wakes it. Else it finds a holder that wakes the waker. That wake makes the task register
//!    again, and the new registration acquires the notifier's `WOKEN`, since only
//!    read-modify-writes change `state` between the notifier's step and that registration.
use core::{
    fmt,
    mem::replace,
    panic::{RefUnwindSafe, UnwindSafe},
    task::Waker,
};
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    cell::UnsafeCell,
};

const EMPTY: usize = 0;
const FULL: usize = 1;
const BUSY: usize = 2;
const WOKEN: usize = 4;

/// A cell for one waker: a task registers its waker, and others wake it.
///
/// The task calls [`register`](Self::register) first and then checks its condition. The notifier
/// changes the condition first and then calls [`wake`](Self::wake). In that order no wake is lost.
///
/// ```
/// use std::{
///     sync::atomic::{AtomicBool, Ordering},
///     task::{Context, Poll},
/// };
/// use waker_vtable::WakerCell;
///
/// #[derive(Default)]
/// struct Event {
///     set: AtomicBool,
///     waiter: WakerCell,
/// }
///
/// impl Event {
///     fn set(&self) {
///         self.set.store(true, Ordering::Release);
///         self.waiter.wake();
///     }
///
///     fn poll_wait(&self, cx: &mut Context<'_>) -> Poll<()> {
///         if self.set.load(Ordering::Acquire) {
///             return Poll::Ready(());
///         }
///         self.waiter.register(cx.waker());
///         if self.set.load(Ordering::Acquire) {
///             return Poll::Ready(());
///         }
///         Poll::Pending
///     }
/// }
///
/// let event = Event::default();
/// let mut cx = Context::from_waker(std::task::Waker::noop());
/// assert!(event.poll_wait(&mut cx).is_pending());
/// event.set();
/// assert!(event.poll_wait(&mut cx).is_ready());
/// ```
pub struct WakerCell {
    state: AtomicUsize,
    waker: UnsafeCell<Option<Waker>>,
}

// SAFETY: only the holder touches the waker, and there is at most one (rule 1). A `Waker` may be
// used on any thread.
unsafe impl Send for WakerCell {}

// SAFETY: as above.
unsafe impl Sync for WakerCell {}

// The code of a waker runs while no thread holds the cell, or under a guard that leaves the cell as
// it was.
impl UnwindSafe for WakerCell {}
impl RefUnwindSafe for WakerCell {}

impl WakerCell {
    sync_shim::const_fn! {
        /// Creates an empty cell. `const`, except under a model.
        ///
        /// ```
        /// static CELL: waker_vtable::WakerCell = waker_vtable::WakerCell::new();
        /// assert!(CELL.take().is_none());
        /// ```
        pub const fn new() -> Self {
            Self {
                state: AtomicUsize::new(EMPTY),
                waker: UnsafeCell::new(None),
            }
        }
    }

    /// Registers `waker`, in place of any earlier one. Check the condition *afterwards*.
    ///
    /// Costs two read-modify-writes, a clone of `waker`, and the drop of an earlier waker. If the
    /// earlier waker is the same ([`Waker::will_wake`]), it stays, and there is no clone and no
    /// drop. If another thread holds the cell at this moment, `waker` is not registered but woken.
    ///
    /// # Panics
    /// If a waker panics when it is cloned, dropped or woken. This call wakes the registered waker
    /// if a notifier came meanwhile; a panic of that wake is dropped if the clone has panicked.
    /// After a panic the cell has the old waker, the new waker, or none.
    pub fn register(&self, waker: &Waker) {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        loop {
            if state & BUSY != 0 || state == FULL | WOKEN {
                return waker.wake_by_ref();
            }
            // Ordering: Acquire on success pairs with the last holder's Release
            // (`Registration::drop`, `take`), whose waker is read here. It also pairs with an
            // earlier `WOKEN` (`take`), whose condition the caller must see. Relaxed on failure:
            // the value is only the next guess.
            match self.state.compare_exchange(state, BUSY, Acquire, Relaxed) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        let registration = Registration(self);
        let same = self.waker.with(|slot| {
            // SAFETY: this registration is the holder.
            let old = unsafe { &*slot };
            old.as_ref().is_some_and(|old| old.will_wake(waker))
        });
        if same {
            return;
        }
        let new = waker.clone();
        let old = registration.replace(Some(new));
        drop(registration);
        drop(old);
    }

    /// Takes the registered waker out. Returns `None` if no waker is registered, or if another
    /// thread holds the cell at this moment. In the second case that other thread wakes the waker.
    ///
    /// The caller must wake the waker that it gets: other notifiers rely on that. Costs two
    /// read-modify-writes, or one if there is no waker.
    #[must_use = "other notifiers rely on this waker being woken"]
    pub fn take(&self) -> Option<Waker> {
        // Ordering: Release pairs with the registration that finds `WOKEN`, or with the holder that
        // leaves after this: they see the condition that the caller changed. Acquire pairs with the
        // registration that left `FULL`, whose waker is taken here.
        if self.state.fetch_or(WOKEN, AcqRel) != FULL {
            return None;
        }
        // SAFETY: this notifier set `WOKEN` on `FULL`, so it is the holder.
        let waker = self.waker.with_mut(|slot| unsafe { (*slot).take() });
        // Ordering: Release pairs with the next registration's Acquire: the waker is out. It is a
        // swap and not a store, so that it continues the Releases of the notifiers that set `WOKEN`
        // meanwhile: the wake that follows stands for theirs, too (rule 4).
        self.state.swap(EMPTY, Release);
        waker
    }

    /// Wakes the registered waker, if any, and leaves the cell empty. Change the condition
    /// *before*.
    ///
    /// Costs two read-modify-writes and a wake by value; one read-modify-write if no waker is
    /// registered.
    ///
    /// # Panics
    /// If the waker panics.
    pub fn wake(&self) {
        if let Some(waker) = self.take() {
            waker.wake();
        }
    }
}

impl Default for WakerCell {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for WakerCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WakerCell").finish_non_exhaustive()
    }
}

/// A registration that holds the cell. Its drop leaves the cell (rule 3), also after a panic in a
/// waker's clone.
struct Registration<'a>(&'a WakerCell);

impl Registration<'_> {
    fn replace(&self, waker: Option<Waker>) -> Option<Waker> {
        self.0.waker.with_mut(|slot| {
            // SAFETY: this registration is the holder.
            let slot = unsafe { &mut *slot };
            replace(slot, waker)
        })
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let full = self.0.waker.with(|slot| {
            // SAFETY: this registration is the holder.
            let waker = unsafe { &*slot };
            waker.is_some()
        });
        let left = if full { FULL } else { EMPTY };
        // Ordering: Release on success pairs with the Acquire of the `take` or of the registration
        // that finds `FULL`. Relaxed on failure: the swap below continues the notifiers' Releases,
        // and the task's next registration acquires them.
        if self
            .0
            .state
            .compare_exchange(BUSY, left, Release, Relaxed)
            .is_ok()
        {
            return;
        }
        let waker = self.replace(None);
        // Ordering: Release and a swap, as in the last step of `take`.
        self.0.state.swap(EMPTY, Release);
        let Some(waker) = waker else { return };
        #[cfg(feature = "std")]
        if std::thread::panicking() {
            // The waker's clone has panicked, or the caller. A second panic that left this drop
            // would end the process.
            return sync_shim::panics::contain(|| waker.wake());
        }
        waker.wake();
    }
}

#[cfg(all(test, feature = "std", not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
