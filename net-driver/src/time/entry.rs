//! A timer: the entry of a wheel, the waker of its task, and the protocol between them.
//!
//! The *owner* of a timer is the future that holds it. Only the owner has a `&mut` to the timer. A
//! *firer* is a thread that has the lock of the wheel: a worker that looks at its own timers, a
//! thief, or a thread that shuts the driver down.
//!
//! | `state` | the timer | the waker cell |
//! |---|---|---|
//! | `IDLE` | is in no wheel | has no waker |
//! | a tick | is *armed*: in the wheel of `cell`, at this tick or an earlier one | has a waker |
//! | `FIRED` | is in no wheel, and its deadline has passed | has no waker |
//!
//! 1. The owner alone leaves `IDLE` and `FIRED`. It arms the timer under the wheel's lock, with the
//!    waker already in the cell.
//! 2. A firer leaves the armed state, in one compare-and-swap under the lock, after it has taken
//!    the entry out of the wheel. (A shutdown uses one swap, which cannot fail.) This is the
//!    firer's last access to the timer: from then on the owner may free the timer.
//! 3. The firer copies the waker out before its compare-and-swap, without a write to the cell. If
//!    the compare-and-swap fails, the owner has reset the timer to a later tick meanwhile. The
//!    firer then forgets the copy, and puts the entry back for the later tick. If the
//!    compare-and-swap succeeds, the copy is the waker, and from then on the cell counts as empty.
//! 4. The owner resets an armed timer to a later tick in one compare-and-swap, without the lock.
//!    For an earlier tick, the owner takes the lock, and puts the entry into another slot of the
//!    wheel. If the new deadline has passed, the owner takes the entry out instead, and fires it:
//!    the next poll then finds the timer fired, as a poll of an idle timer would.
//! 5. The owner replaces the waker under the lock only, after it has seen under the lock that the
//!    timer is armed. So the cell is written only while no firer reads it. The owner may read the
//!    cell without the lock while the timer is armed: a firer also only reads it. A firer may just
//!    have moved the waker out whose pointers the owner then compares. The firer wakes that waker.
//! 6. The owner drops an armed timer under the lock, after it has seen under the lock that the
//!    timer is still armed. So an entry leaves its wheel before its memory is freed, on whatever
//!    thread.
use super::{clock::LAST_TICK, wheels::WheelCell};
use std::{
    mem::{self, ManuallyDrop, MaybeUninit},
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    ptr::NonNull,
    sync::Arc,
    task::Waker,
};
use sync_shim::{
    atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
        Retire,
    },
    cell::UnsafeCell,
};
use timer_wheel::{Entry, Node};

/// The deadline has passed.
const FIRED: u64 = u64::MAX;
/// The timer is in no wheel.
const IDLE: u64 = u64::MAX - 1;

/// A timer, pinned in the future that waits for it.
pub(crate) struct Timer {
    node: Node<Timer>,
    state: AtomicU64,
    waker: UnsafeCell<MaybeUninit<Waker>>,
    /// The wheel in which the timer was armed last. The owner alone uses it.
    cell: Option<Arc<WheelCell>>,
}

// SAFETY: a shared reference to a timer only loads the state. The other fields are the owner's, or
// the firer's under the lock, by the rules above.
unsafe impl Sync for Timer {}

// SAFETY: the wheel of an armed timer may be used from any thread, and wakers are `Send`.
unsafe impl Send for Timer {}

// A timer is whole after a panic: user code is a waker, and no function calls one amid a change.
impl UnwindSafe for Timer {}
impl RefUnwindSafe for Timer {}

/// The result of [`Timer::poll`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an idle timer wakes nobody"]
pub(crate) enum TimerState {
    /// The caller must check its deadline, and arm the timer.
    Idle,
    /// The waker will be woken.
    Armed,
    Fired,
}

/// The result of [`Timer::reset`]: the duty of the caller.
#[must_use = "a worker must look in time, or the task must be woken"]
pub(crate) enum Reset<'a> {
    Done,
    /// The deadline is the next one of this wheel: ensure that a worker looks in time.
    IsNext(&'a Arc<WheelCell>),
    /// The timer has fired: wake its task.
    Fired(Waker),
}

/// The driver has shut down. Hands the waker back.
#[derive(Debug)]
pub(crate) struct Closed(pub(crate) Waker);

impl Timer {
    pub(crate) fn new() -> Self {
        Self {
            node: Node::new(),
            state: AtomicU64::new(IDLE),
            waker: UnsafeCell::new(MaybeUninit::uninit()),
            cell: None,
        }
    }

    pub(crate) fn is_fired(&self) -> bool {
        // Ordering: Relaxed: the caller learns a state, and uses nothing of the timer.
        self.state.load(Relaxed) == FIRED
    }

    /// Returns the state, and leaves this waker in an armed timer.
    pub(crate) fn poll(self: Pin<&mut Self>, waker: &Waker) -> TimerState {
        // Ordering: Acquire pairs with the Release of `fire` and `close`: their use of the timer
        // comes before this.
        match self.state.load(Acquire) {
            FIRED => TimerState::Fired,
            IDLE => TimerState::Idle,
            _ => {
                let same = self.waker.with(|at| {
                    // SAFETY: the owner reads the cell, and this owner has armed the timer: rule 5.
                    let at = unsafe { &*at };
                    // SAFETY: a waker was written when the timer was armed. If the waker was moved
                    // out since, only the two pointers of this copy are read.
                    unsafe { at.assume_init_ref() }.will_wake(waker)
                });
                if same {
                    TimerState::Armed
                } else {
                    self.replace_waker(waker.clone())
                }
            }
        }
    }

    /// Replaces the waker of a timer that was armed (rule 5).
    #[cold]
    fn replace_waker(&self, waker: Waker) -> TimerState {
        let Some(cell) = &self.cell else {
            return TimerState::Idle; // The timer has never been armed.
        };
        let locked = cell.lock();
        // Ordering: Relaxed under the lock, which orders the changes of earlier firers before this.
        match self.state.load(Relaxed) {
            FIRED => TimerState::Fired,
            IDLE => TimerState::Idle,
            _ => {
                let old = self.waker.with_mut(|at| {
                    // SAFETY: rule 5: the timer is armed, and its owner, which calls this, has the
                    // lock.
                    mem::replace(unsafe { &mut *at }, MaybeUninit::new(waker))
                });
                drop(locked);
                // SAFETY: an armed timer has a waker.
                drop(unsafe { old.assume_init() });
                TimerState::Armed
            }
        }
    }

    /// Arms an idle timer, and returns whether the wheel's next deadline is now this one: then the
    /// caller must ensure that a worker looks in time.
    ///
    /// # Errors
    /// If the driver has shut down.
    ///
    /// # Panics
    /// If the timer is armed, or the tick is beyond the last.
    pub(crate) fn arm(
        self: Pin<&mut Self>,
        cell: &Arc<WheelCell>,
        tick: u64,
        waker: Waker,
    ) -> Result<bool, Closed> {
        assert!(tick <= LAST_TICK, "a tick beyond the last one");
        // Ordering: Relaxed. The owner made the timer idle, or a `poll` found it idle by an Acquire
        // load.
        assert_eq!(self.state.load(Relaxed), IDLE, "armed twice");
        // This does not use `pin-project-lite`: no field is pinned, and the wheel needs the whole
        // timer.
        // SAFETY: the timer is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        if !this.cell.as_ref().is_some_and(|old| Arc::ptr_eq(old, cell)) {
            this.cell = Some(cell.clone());
        }
        let mut locked = cell.lock();
        if !locked.is_open() {
            return Err(Closed(waker));
        }
        this.waker.with_mut(|at| {
            // SAFETY: the timer is idle, so the cell is the owner's (rule 1).
            unsafe { &mut *at }.write(waker);
        });
        // Ordering: Relaxed under the lock, which publishes it to firers.
        this.state.store(tick, Relaxed);
        // SAFETY: the timer was idle, so there is no other handle. The timer is pinned, and its
        // drop takes it out of the wheel.
        let handle = unsafe { ArmedTimer::new(NonNull::from(&*this)) };
        Ok(locked.insert(handle, tick))
    }

    /// Gives the timer another deadline. A timer that is not armed becomes idle. An armed timer for
    /// whose new deadline `has_passed` returns true fires.
    ///
    /// Costs a compare-and-swap if the deadline is later than the one before (rule 4).
    pub(crate) fn reset(
        self: Pin<&mut Self>,
        tick: u64,
        has_passed: impl FnOnce(&WheelCell) -> bool,
    ) -> Reset<'_> {
        let tick = tick.min(LAST_TICK);
        // Ordering: Acquire, as in `poll`.
        let mut state = self.state.load(Acquire);
        if state <= tick {
            // Ordering: Relaxed: the firer takes the tick as a number. Acquire on failure, as in
            // `poll`.
            match self.state.compare_exchange(state, tick, Relaxed, Acquire) {
                Ok(_) => return Reset::Done,
                Err(now) => state = now,
            }
        }
        // As in `arm`.
        // SAFETY: the timer is not moved.
        let this = unsafe { self.get_unchecked_mut() };
        if let (true, Some(cell)) = (state <= LAST_TICK, &this.cell) {
            let has_passed = has_passed(cell);
            let mut locked = cell.lock();
            // Ordering: Relaxed under the lock, as in `replace_waker`.
            if this.state.load(Relaxed) <= LAST_TICK {
                // SAFETY: the timer is armed, so it is in this wheel.
                let handle = unsafe { locked.remove(NonNull::from(&*this)) };
                let handle = handle.expect("an armed timer is in its wheel");
                if has_passed {
                    drop(locked);
                    // Ordering: Relaxed: no firer has the timer.
                    this.state.store(FIRED, Relaxed);
                    return Reset::Fired(this.take_waker());
                }
                // Ordering: Relaxed under the lock.
                this.state.store(tick, Relaxed);
                let is_next = locked.insert(handle, tick);
                return if is_next {
                    Reset::IsNext(cell)
                } else {
                    Reset::Done
                };
            }
        }
        // Ordering: Relaxed: no firer has the timer. An insertion publishes the next state.
        this.state.store(IDLE, Relaxed);
        Reset::Done
    }

    /// Marks an idle timer as fired: its deadline has passed before it was armed.
    pub(crate) fn set_fired(self: Pin<&mut Self>) {
        // Ordering: Relaxed, as in `arm`.
        debug_assert_eq!(
            self.state.load(Relaxed),
            IDLE,
            "only the owner fires an idle timer"
        );
        // Ordering: Relaxed: no firer has the timer.
        self.state.store(FIRED, Relaxed);
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // Ordering: Acquire, as in `poll`.
        if self.state.load(Acquire) <= LAST_TICK {
            self.disarm();
        }
        // This access makes a model fail if a firer uses the timer after it.
        self.waker.with_mut(|_| ());
        self.state.retire();
    }
}

impl Timer {
    /// Takes an armed timer out of its wheel, and drops its waker (rule 6).
    fn disarm(&self) {
        let Some(cell) = &self.cell else {
            return; // The timer has never been armed.
        };
        let mut locked = cell.lock();
        // Ordering: Relaxed under the lock, as in `replace_waker`.
        if self.state.load(Relaxed) > LAST_TICK {
            return;
        }
        // SAFETY: the timer is armed, so it is in this wheel.
        let removed = unsafe { locked.remove(NonNull::from(self)) };
        debug_assert!(removed.is_some(), "an armed timer is in its wheel");
        drop(locked);
        drop(self.take_waker());
    }

    /// Takes the waker of a timer that was armed until the owner took its entry out of the wheel.
    fn take_waker(&self) -> Waker {
        let waker = self.waker.with_mut(|at| {
            // SAFETY: the entry has left the wheel, so the cell is the owner's (rules 4 and 6).
            mem::replace(unsafe { &mut *at }, MaybeUninit::uninit())
        });
        // SAFETY: an armed timer has a waker.
        unsafe { waker.assume_init() }
    }
}

#[cfg(test)]
impl Timer {
    /// Touches the cell of the waker, as the owner of an idle timer may: a model fails if a firer
    /// still reads it.
    pub(super) fn touch(&self) {
        self.waker.with_mut(|_| ());
    }
}

/// The right to put a timer into a wheel, or to fire it: the timer is armed.
pub(crate) struct ArmedTimer(NonNull<Timer>);

// SAFETY: the timer is `Sync`, and the handle is used under the lock of its wheel.
unsafe impl Send for ArmedTimer {}

impl ArmedTimer {
    /// # Safety
    /// The timer is pinned, armed and in no wheel, and there is no other handle of it. The timer
    /// takes itself out of the wheel before it is freed.
    unsafe fn new(timer: NonNull<Timer>) -> Self {
        Self(timer)
    }

    fn timer(&self) -> &Timer {
        // SAFETY: the timer is armed, so it is not freed: its drop needs the lock, and the thread
        // that uses the handle has the lock.
        unsafe { self.0.as_ref() }
    }

    /// Fires a timer that has expired, under the lock of its wheel. Returns its waker. If the owner
    /// has reset the timer to a later tick meanwhile, returns the handle and that tick: then the
    /// caller must insert it again (rules 2 and 3). `now` is not before the wheel's tick.
    pub(crate) fn fire(self, now: u64) -> Result<Waker, (Self, u64)> {
        let timer = self.timer();
        // Ordering: Relaxed: a number. The lock orders the arming before.
        let tick = timer.state.load(Relaxed);
        if tick > now {
            return Err((self, tick));
        }
        let waker = self.copy_waker();
        // Ordering: Release pairs with the owner's Acquire loads: the copy comes before the owner's
        // next use of the timer. A failure only reads a number: Relaxed.
        match timer.state.compare_exchange(tick, FIRED, Release, Relaxed) {
            Ok(_) => Ok(ManuallyDrop::into_inner(waker)),
            Err(later) => Err((self, later)),
        }
    }

    /// Takes a timer out of service, under the lock of its wheel, as the driver shuts down. Returns
    /// its waker.
    pub(crate) fn close(self) -> Waker {
        let waker = self.copy_waker();
        // Ordering: Release, as in `fire`.
        self.timer().state.swap(IDLE, Release);
        ManuallyDrop::into_inner(waker)
    }

    /// Copies the waker, which stays the timer's until its state is changed (rule 3).
    fn copy_waker(&self) -> ManuallyDrop<Waker> {
        self.timer().waker.with(|at| {
            // SAFETY: rule 5: only the owner writes the cell, under the lock, which this thread
            // has.
            let at = unsafe { &*at };
            // SAFETY: an armed timer has a waker. The copy is dropped only if the change of the
            // state has made it the waker.
            ManuallyDrop::new(unsafe { at.assume_init_read() })
        })
    }
}

// SAFETY: `arm` makes the one handle of an idle timer. The timer is pinned, and its drop takes it
// out of the wheel. An armed timer is used through shared references, and through the owner's
// pinned `&mut`; the timer is not `Unpin`. Neither kind of reference accesses the node.
unsafe impl Entry for Timer {
    type Handle = ArmedTimer;

    fn into_ptr(handle: ArmedTimer) -> NonNull<Self> {
        handle.0
    }

    unsafe fn from_ptr(entry: NonNull<Self>) -> ArmedTimer {
        ArmedTimer(entry)
    }

    unsafe fn node(entry: NonNull<Self>) -> NonNull<Node<Self>> {
        // SAFETY: the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: a field of a non-null pointee is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}
