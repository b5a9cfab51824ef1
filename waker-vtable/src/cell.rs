//! One registered waker, taken by whoever wakes.
//!
//! | field | who may touch it |
//! |---|---|
//! | `state` | anyone |
//! | `waker` | whoever set `BUSY`, or the one who set `WOKEN` on `FULL` alone: *the holder* |
//!
//! `FULL` says that `waker` holds a waker, `BUSY` that a registration holds the cell, `WOKEN` that somebody woke
//! since the last registration.
//!
//! 1. There is at most one holder. A registration becomes it by going from a state without `BUSY` and other than `FULL | WOKEN` to
//!    `BUSY`; a waker by setting `WOKEN` where the state was exactly `FULL`. Both are one read-modify-write that nobody else's
//!    can follow with the same success.
//! 2. While there is a holder, all that others do to `state` is to set `WOKEN`.
//! 3. A holder leaves with a read-modify-write: a registration to `FULL` if nobody set `WOKEN` meanwhile, else it takes the
//!    waker, leaves the cell empty, and wakes. A waker leaves the cell empty and has the waker.
//! 4. Whoever finds the cell held leaves the work to the holder: a waker because of rule 3; a registration wakes the waker that it came with, so
//!    that its task polls once more.
//!
//! No wake is lost. The task registers, then looks at its condition; the notifier changes the condition, then wakes. All steps on
//! `state` are in one order. If the notifier's `WOKEN` comes before the registration's first step, that step acquires it and the task
//! sees the condition. If it comes between the first and the last, the registration wakes (rule 3). If it comes after the last, it finds `FULL`, and takes and wakes,
//! or finds a holder who does: then the task's next registration, which the wake brings about, acquires it, since nothing but
//! read-modify-writes lies between the two.
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

/// A place for one waker: a task registers itself, others wake it.
///
/// [`register`](Self::register) first, then look at the condition; change the condition, then [`wake`](Self::wake).
/// Between the two no wake is lost.
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

// SAFETY: only the holder touches the waker, and there is one at most (rule 1); a `Waker` may go anywhere.
unsafe impl Send for WakerCell {}

// SAFETY: as above.
unsafe impl Sync for WakerCell {}

// A waker's code runs while nobody holds the cell, or under a guard that leaves it as it was.
impl UnwindSafe for WakerCell {}
impl RefUnwindSafe for WakerCell {}

impl WakerCell {
    sync_shim::const_fn! {
        /// An empty cell. `const`, except under a model.
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

    /// Puts `waker` in the place of the one that is there, if any. Look at the condition *afterwards*.
    ///
    /// Costs two read-modify-writes, and a clone and a drop if another waker was there: the same one
    /// ([`Waker::will_wake`]) stays. If somebody else holds the cell at this moment, `waker` is not registered but woken.
    ///
    /// # Panics
    /// If cloning, dropping or waking a waker does: a wake that came meanwhile is given on here. The cell then has the old waker, the new one, or none.
    pub fn register(&self, waker: &Waker) {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        loop {
            if state & BUSY != 0 || state == FULL | WOKEN {
                return waker.wake_by_ref();
            }
            // Ordering: Acquire on success, from the last holder's Release (`Registration::drop`, `take`), whose
            // waker is read here, and from a `WOKEN` that came before (`take`): its condition is visible to the
            // caller. Relaxed on failure: nothing but the guess is had from it.
            match self.state.compare_exchange(state, BUSY, Acquire, Relaxed) {
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        let registration = Registration(self);
        let same = self.waker.with(|slot| {
            // SAFETY: this is the holder.
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

    /// Takes the registered waker out; `None` if there is none, or if somebody else takes it right now.
    ///
    /// Whoever gets a waker is to wake it: others count on that. Two read-modify-writes, one if there is none.
    #[must_use = "others count on it that this waker is woken"]
    pub fn take(&self) -> Option<Waker> {
        // Ordering: Release, the condition that the caller changed goes to the registration that finds `WOKEN` or to the holder
        // that leaves after it; Acquire, from the registration that left `FULL`, whose waker is taken here.
        if self.state.fetch_or(WOKEN, AcqRel) != FULL {
            return None;
        }
        // SAFETY: this set `WOKEN` on `FULL`, so it is the holder.
        let waker = self.waker.with_mut(|slot| unsafe { (*slot).take() });
        // Ordering: Release, to the next registration's Acquire: the waker is out. A swap and not a store: it goes on with the
        // Releases of those who set `WOKEN` meanwhile, for whom the wake that follows stands too (rule 4).
        self.state.swap(EMPTY, Release);
        waker
    }

    /// Wakes the registered waker, if any, and leaves the cell empty. Change the condition *before*.
    ///
    /// Two read-modify-writes and a wake by value; one if no waker is registered.
    ///
    /// # Panics
    /// If the waker does.
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

/// The hold of a registration. Its drop leaves, by return or by a panic in a waker's clone.
struct Registration<'a>(&'a WakerCell);

impl Registration<'_> {
    fn replace(&self, waker: Option<Waker>) -> Option<Waker> {
        self.0.waker.with_mut(|slot| {
            // SAFETY: this is the holder.
            let slot = unsafe { &mut *slot };
            replace(slot, waker)
        })
    }
}

impl Drop for Registration<'_> {
    fn drop(&mut self) {
        let full = self.0.waker.with(|slot| {
            // SAFETY: this is the holder.
            let waker = unsafe { &*slot };
            waker.is_some()
        });
        let left = if full { FULL } else { EMPTY };
        // Ordering: Release on success, to the Acquire of the `take` or of the registration that finds `FULL`. Relaxed on
        // failure: the swap below acquires.
        if self
            .0
            .state
            .compare_exchange(BUSY, left, Release, Relaxed)
            .is_ok()
        {
            return;
        }
        let waker = self.replace(None);
        // Ordering: Release and a swap, as in `take`'s last step.
        self.0.state.swap(EMPTY, Release);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[cfg(all(test, feature = "std", not(selvedge_loom)))]
mod crowd {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
