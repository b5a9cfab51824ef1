//! The lock under [`Mutex`](crate::Mutex): one word, and the queue of those that wait.
//!
//! # The story
//!
//! A task *owns* the lock while `LOCKED` is set on its behalf. It takes a free lock by one
//! exchange, whether or not others wait: it *overtakes* them. A task that finds the lock owned
//! queues. An unlock clears `LOCKED`, and then wakes the first waiter, but does not give it the
//! lock: until that task runs, others may take the lock and release it many times. While the woken
//! task is on its way (`WOKEN`), an unlock wakes nobody else and takes no lock of the queue. So
//! short critical sections run one after the other without a change of tasks.
//!
//! A woken task that finds the lock owned has been overtaken. It queues again, before all others,
//! and sets `HANDOFF`. The next unlock then keeps `LOCKED` set and makes that task the owner. So a
//! waiter is overtaken only until it has been woken and polled once.
//!
//! Where tasks hold the lock while they wait for something, each woken task is overtaken, and each
//! lock takes two wakes. So `HANDOFF` may stay set for a *run* of hand-overs. A waiter on whose way
//! the lock was taken once begins a run about twice as long as the last one, up to [`LONGEST_RUN`].
//! The first run is of one more hand-over. A woken task that was not overtaken halves the next run.
//!
//! If the lock was taken more than once, its holders probably keep it for a shorter time than a
//! switch of tasks takes. Then a run would cost a switch for each lock. So the waiter alone is
//! handed the lock.
//!
//! # Fields
//!
//! | bit of `state` | meaning | set by | cleared by |
//! |---|---|---|---|
//! | `LOCKED` | a task owns the lock | its owner-to-be, if it is clear | the owner |
//! | `QUEUED` | a waiter is queued | the holder of the queue's lock | the same |
//! | `WOKEN` | a waiter was released with `Turn::Try`, and has not tried yet | the holder of the queue's lock | the owner of that waiter |
//! | `OVERTAKEN` | a task has taken the lock while `WOKEN` was set | that task | as `WOKEN`, and with it |
//! | `OFTEN` | the lock was taken more than once then | the later tasks | as `WOKEN`, and with it |
//! | `HANDOFF` | the first waiter was overtaken, or a run of hand-overs lasts | the holder of the queue's lock | the same |
//! | `NOTED` | the lock notes its holder: see `holder.rs` | its creation, or a dump | an owner, if no holder is wanted |
//!
//! [`Run`] is under the lock of the queue.
//!
//! # Rules
//!
//! 1. `QUEUED` is exact while the lock of the queue is free.
//! 2. `WOKEN` and `HANDOFF` exclude each other: the waiter that was woken clears the first one as
//!    it sets the second, and no unlock sets `WOKEN` while `HANDOFF` is set.
//! 3. A waiter is pushed only while `LOCKED` is set, or, behind another waiter, while `HANDOFF` is.
//! 4. If `HANDOFF` is set and `LOCKED` is not, the unlock that cleared `LOCKED` is on its way to
//!    the lock of the queue. Meanwhile no other task takes the lock.
//! 5. An unlock that finds `QUEUED` without `WOKEN` takes the lock of the queue. There it wakes the
//!    first waiter, unless the lock is owned again: that owner's unlock will do so.
//! 6. The owner of a waiter that is released with `Turn::Try` either takes the lock, or queues
//!    again, or is dropped. If it is dropped, its drop wakes the next waiter, if the lock is free.
//!
//! 7. `state` changes before the waiter is released: its owner looks at `state` without the lock of
//!    the queue.
//!
//! # Why no wake is lost
//!
//! Suppose that a waiter is queued. When it was pushed, the lock was owned (rule 3; the second case
//! of the rule reduces to the waiter before it). All changes of `state` are in one order, so the
//! owner's unlock comes after the exchange that found it owned, and sees `QUEUED`. By rule 5 it
//! wakes the first waiter; or it leaves that to an owner that came later, or to the waiter that
//! `WOKEN` stands for. The later owner unlocks in its turn. The waiter that was woken takes the
//! lock, and unlocks in its turn with `WOKEN` clear; or it queues again, while the lock is owned;
//! or its drop does what rule 6 says.
use crate::{
    coop::WaitsOn,
    holder::{self, Holder},
    wait::Request,
    waiters::{Waiter, Waiters, drop_waker, wake},
    waiting::Waiting,
};
use core::{
    pin::Pin,
    task::{Poll, Waker, ready},
};
use sync_shim::atomic::{
    AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

const LOCKED: u32 = 1;
const QUEUED: u32 = 2;
const WOKEN: u32 = 4;
const HANDOFF: u32 = 8;
const OVERTAKEN: u32 = 16;
const OFTEN: u32 = 32;
const NOTED: u32 = 64;
/// The bits that the owner of a woken waiter clears.
const ON_THE_WAY: u32 = WOKEN | OVERTAKEN | OFTEN;

/// Returns the state after a task that was not woken has taken the free lock.
const fn taken(state: u32) -> u32 {
    let passes = match state & ON_THE_WAY {
        0 => 0,
        WOKEN => OVERTAKEN,
        _ => OFTEN,
    };
    state | LOCKED | passes
}

/// The most hand-overs after the one to the waiter that was overtaken.
const LONGEST_RUN: u16 = 1_023;

/// How the lock is handed over: see the front page.
pub(crate) struct Run {
    /// The length of the last run.
    length: u16,
    /// How many hand-overs of this run are left, after the next one.
    left: u16,
    /// A waiter was woken with `Turn::Try`, and no waiter was overtaken since.
    was_tried: bool,
}

impl Run {
    const NEW: Self = Self {
        length: 0,
        left: 0,
        was_tried: false,
    };

    /// A waiter is woken with `Turn::Try`.
    fn tries(&mut self) {
        if self.was_tried {
            self.length /= 2;
        }
        self.was_tried = true;
    }

    /// A waiter was overtaken. `is_often` says whether the lock was taken more than once.
    fn begin(&mut self, is_often: bool) {
        self.length = match is_often {
            true => 0,
            false => (2 * self.length + 1).min(LONGEST_RUN),
        };
        self.left = self.length;
        self.was_tried = false;
    }

    /// Returns whether the run goes on after a hand-over that leaves waiters.
    fn goes_on(&mut self) -> bool {
        let goes_on = self.left > 0;
        self.left = self.left.saturating_sub(1);
        goes_on
    }
}

/// The right of a waiter that is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Try to take the lock.
    Try,
    /// It owns the lock.
    Own,
}

pub(crate) struct RawMutex {
    state: AtomicU32,
    waiters: Waiters<Turn, Run>,
    holder: Holder,
}

impl RawMutex {
    sync_shim::const_fn! {
        pub(crate) const fn new(notes_holder: bool) -> Self {
            Self {
                state: AtomicU32::new(if notes_holder { NOTED } else { 0 }),
                waiters: Waiters::new(Run::NEW),
                holder: Holder::new(),
            }
        }
    }

    /// Takes the lock, if it is free. One read-modify-write.
    #[inline]
    pub(crate) fn try_lock(&self) -> bool {
        // Ordering: Acquire pairs with the Release of `unlock`. Relaxed on failure: the value is
        // the next guess.
        match self.state.compare_exchange(0, LOCKED, Acquire, Relaxed) {
            Ok(_) => true,
            Err(state) => self.overtake(state),
        }
    }

    /// Takes the lock although tasks wait, if it is free.
    fn overtake(&self, mut state: u32) -> bool {
        while state & (LOCKED | HANDOFF) == 0 {
            // Ordering: as in `try_lock`.
            match self
                .state
                .compare_exchange_weak(state, taken(state), Acquire, Relaxed)
            {
                Ok(_) => {
                    self.note_holder(state);
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }

    /// Notes the holder, after an acquisition in this state, if the lock does so.
    #[inline]
    fn note_holder(&self, state: u32) {
        #[cold]
        fn note(mutex: &RawMutex) {
            if holder::is_wanted() {
                return mutex.holder.set();
            }
            // Ordering: Relaxed. The bit orders nothing.
            mutex.state.fetch_and(!NOTED, Relaxed);
        }

        if state & NOTED != 0 {
            note(self);
        }
    }

    /// Releases the lock. One read-modify-write, unless a waiter must be woken.
    ///
    /// # Safety
    /// The caller owns the lock.
    #[inline]
    pub(crate) unsafe fn unlock(&self) {
        // Ordering: Relaxed. If this misses that `HANDOFF` is set, the lock is handed over all the
        // same, by `wake_first` (rule 4). If it misses `NOTED`, there is no note.
        let state = self.state.load(Relaxed);
        if state & (HANDOFF | NOTED) != 0 {
            return self.unlock_noted(state);
        }
        self.release();
    }

    /// Unlocks in this state: the note goes first.
    #[cold]
    fn unlock_noted(&self, state: u32) {
        self.holder.clear();
        match state & HANDOFF {
            0 => self.release(),
            _ => self.hand_over(),
        }
    }

    /// Clears `LOCKED`, for the owner, and wakes a waiter if it must.
    #[inline]
    fn release(&self) {
        // Ordering: Release pairs with the Acquire of the next owner (`try_lock`, `overtake`,
        // `try_woken`, `lock_or_push`, `wake_first`).
        let before = self.state.fetch_sub(LOCKED, Release);
        if before & (QUEUED | WOKEN) == QUEUED {
            self.wake_first();
        }
    }

    /// Makes the first waiter the owner of the lock, which the caller owns.
    fn hand_over(&self) {
        let mut locked = self.waiters.lock();
        let clear = match locked.len_up_to_two() {
            // The waiters have been dropped meanwhile.
            0 => LOCKED,
            1 => HANDOFF | QUEUED,
            _ if locked.goes_on() => 0,
            _ => HANDOFF,
        };
        // A waiter that owns the lock now gets what this owner did by the mark on it.
        if clear != 0 {
            // Ordering: Release, as in `unlock`.
            self.state.fetch_and(!clear, Release);
        }
        let waker = locked.pop_front(|turn| *turn = Turn::Own);
        drop(locked);
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    /// Wakes the first waiter, after the lock was released (rule 5).
    #[cold]
    fn wake_first(&self) {
        let mut locked = self.waiters.lock();
        // Ordering: Relaxed. `QUEUED` and `HANDOFF` are exact, as the lock of the queue is held. If
        // `LOCKED` or `WOKEN` is set, what clears it comes later in the order of the changes, and
        // looks at `QUEUED`. If it is clear, the operations below find out whether it still is, or
        // it does not matter.
        let state = self.state.load(Relaxed);
        if state & QUEUED == 0 || state & (LOCKED | WOKEN) != 0 {
            return;
        }
        let last = match locked.len_up_to_two() {
            1 => QUEUED,
            _ => 0,
        };
        // Rule 7: the bits change first.
        let turn = if state & HANDOFF == 0 {
            locked.tries();
            // Sets `WOKEN`, which is clear, and clears `QUEUED` if it must be.
            // Ordering: Relaxed. The bits order nothing; the waiter that is released acquires the
            // lock's data by its own exchange.
            self.state.fetch_add(WOKEN.wrapping_sub(last), Relaxed);
            Turn::Try
        } else {
            let end = match last == 0 && locked.goes_on() {
                true => 0,
                false => HANDOFF,
            };
            // Nobody but this thread takes the lock now (rule 4). Sets `LOCKED`, which is clear;
            // clears `HANDOFF` at the end of a run, and `QUEUED` if it must be.
            // Ordering: Acquire pairs with the Release of the last owner's `unlock`, which may be
            // another thread's. The mark on the waiter passes it on.
            self.state.fetch_xor(LOCKED | end | last, Acquire);
            Turn::Own
        };
        let waker = locked.pop_front(|value| *value = turn);
        drop(locked);
        if let Some(waker) = waker {
            wake(waker);
        }
    }

    /// Polls for the lock.
    ///
    /// # Safety
    /// As of [`Request::poll`].
    #[inline]
    pub(crate) unsafe fn poll_lock(&self, waiter: Pin<&Waiter<Turn>>, waker: &Waker) -> Poll<()> {
        if waiter.is_idle() {
            return match self.try_lock() {
                true => Poll::Ready(()),
                // SAFETY: the caller's.
                false => unsafe { self.lock_or_push(waiter, waker, false) },
            };
        }
        // SAFETY: the caller's. The waiter is not idle, so it was pushed.
        let turn = ready!(unsafe { self.waiters.poll(waiter, waker) });
        if turn == Turn::Own || self.try_woken() {
            waiter.reset();
            // Ordering: Relaxed. The bit orders nothing.
            self.note_holder(self.state.load(Relaxed));
            return Poll::Ready(());
        }
        // SAFETY: the caller's.
        unsafe { self.lock_or_push(waiter, waker, true) }
    }

    /// Takes the lock for the waiter that was woken, if it is free.
    fn try_woken(&self) -> bool {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        while state & LOCKED == 0 {
            let owned = (state | LOCKED) & !ON_THE_WAY;
            // Ordering: as in `try_lock`.
            match self
                .state
                .compare_exchange_weak(state, owned, Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Takes the lock of the queue, and tries once more, or queues: behind the others, or, if the
    /// waiter was woken, before them.
    ///
    /// # Safety
    /// As of `poll_lock`. The waiter is idle, or released with `Turn::Try` if it was woken.
    #[cold]
    unsafe fn lock_or_push(
        &self,
        waiter: Pin<&Waiter<Turn>>,
        waker: &Waker,
        was_woken: bool,
    ) -> Poll<()> {
        let waker = waker.clone();
        let mut locked = self.waiters.lock();
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        loop {
            let is_free = state & (LOCKED | HANDOFF) == 0;
            let now = match (is_free, was_woken) {
                (true, false) => taken(state),
                (true, true) => (state | LOCKED) & !ON_THE_WAY,
                (false, false) => state | QUEUED,
                (false, true) => (state | QUEUED | HANDOFF) & !ON_THE_WAY,
            };
            // Ordering: Acquire as in `try_lock`, if the lock is free. Relaxed on failure: the
            // value is the next guess.
            match self.state.compare_exchange(state, now, Acquire, Relaxed) {
                Ok(_) if is_free => {
                    drop(locked);
                    waiter.reset();
                    self.note_holder(state);
                    // Its panic must not lose the lock.
                    drop_waker(Some(waker));
                    return Poll::Ready(());
                }
                Ok(_) => break,
                Err(now) => state = now,
            }
        }
        match was_woken {
            true => {
                locked.begin(state & OFTEN != 0);
                // SAFETY: the caller's. `cancel` removes the waiter.
                unsafe { locked.push_front(waiter, waker, Turn::Try) };
            }
            // SAFETY: as above.
            false => unsafe { locked.push_back(waiter, waker, Turn::Try) },
        }
        Poll::Pending
    }

    /// Ends a wait. Passes on a lock that the waiter was given, and a wake (rule 6).
    ///
    /// # Safety
    /// As of [`Request::cancel`].
    #[cold]
    pub(crate) unsafe fn cancel(&self, waiter: Pin<&Waiter<Turn>>) {
        let mut locked = self.waiters.lock();
        // SAFETY: the caller's.
        let waker = unsafe { locked.remove(waiter) };
        if waker.is_some() && locked.is_empty() {
            // Ordering: Relaxed. The lock of the queue orders its bits.
            self.state.fetch_and(!(QUEUED | HANDOFF), Relaxed);
        }
        drop(locked);
        drop_waker(waker);
        match waiter.released() {
            None => {}
            // SAFETY: the lock was handed over to the waiter.
            Some(Turn::Own) => unsafe { self.unlock() },
            Some(Turn::Try) => {
                // Ordering: Relaxed. `wake_first` looks again under the lock of the queue.
                let before = self.state.fetch_and(!ON_THE_WAY, Relaxed);
                if before & (LOCKED | QUEUED) == QUEUED {
                    self.wake_first();
                }
            }
        }
    }

    /// Says to a dump of tasks that a task waits for the lock, and who holds it. From now on the
    /// lock notes its holder.
    #[cfg(feature = "coop-budget")]
    #[cold]
    fn waits_on(&self) -> WaitsOn {
        // Ordering: Acquire pairs with the Release of `release` and `hand_over`: a note that was
        // cleared before is not seen.
        self.state.fetch_or(NOTED, Acquire);
        WaitsOn::Lock {
            kind: "a mutex",
            at: core::ptr::from_ref(self).addr(),
            holder: self.holder.get(),
        }
    }

    #[cfg(not(feature = "coop-budget"))]
    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event("a mutex", self)
    }

    /// Calls `f` for each request that waits, in their order.
    pub(crate) fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        let mut locked = self.waiters.lock();
        locked.for_each(|waker, _| f(&Waiting::new(waker, 1)));
    }
}

/// A handle by which a request reaches its lock.
pub(crate) trait AsMutex {
    fn mutex(&self) -> &RawMutex;
}

/// A request for the lock.
pub(crate) struct Lock<H>(pub(crate) H);

impl<H: AsMutex> Request for Lock<H> {
    type Value = Turn;
    const NEW: Turn = Turn::Try;
    type Output = ();

    #[inline]
    unsafe fn poll(&mut self, waiter: Pin<&Waiter<Turn>>, waker: &Waker) -> Poll<()> {
        // SAFETY: the caller's.
        unsafe { self.0.mutex().poll_lock(waiter, waker) }
    }

    unsafe fn cancel(&mut self, waiter: Pin<&Waiter<Turn>>) {
        // SAFETY: the caller's.
        unsafe { self.0.mutex().cancel(waiter) };
    }

    fn waits_on(&self) -> WaitsOn {
        self.0.mutex().waits_on()
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
