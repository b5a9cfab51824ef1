//! The lock under [`RwLock`](crate::RwLock): one word, and the queue of those that wait.
//!
//! # The story
//!
//! A task *enters* the lock as a reader or as the writer, by one exchange. The lock *admits* a
//! reader if no writer is in it and it has room for one more; it admits a writer if nobody is in
//! it. A task that is not admitted queues. Whoever is admitted enters, whether or not others wait:
//! it *overtakes* them.
//!
//! A task that *leaves* wakes the first waiter if the lock then admits that one, but does not let
//! it in: until the waiter runs, others may enter and leave many times. If the first waiter is a
//! reader, the readers behind it are woken with it, as one *group*. While a group is on its way
//! (its size is in `state`), nobody who leaves wakes others. So short sections run one after the
//! other without a change of tasks.
//!
//! A waiter is not overtaken for ever. One that was woken and is not admitted queues again, before
//! all others, and sets `HANDOFF`. For a writer that waits for readers, the first reader that
//! leaves others behind sets it. From then on nobody enters but the rest of the group. The task
//! whose leaving makes the lock admit the first waiter lets that waiter in: it *hands over*.
//!
//! # Fields
//!
//! | part of `state` | meaning | changed by |
//! |---|---|---|
//! | `WRITER` | a writer is in the lock | the task that enters or leaves; a hand-over sets it |
//! | readers | the number of readers in the lock | the same |
//! | woken | the waiters with `Turn::Try` that have not tried yet | see below |
//! | `QUEUED` | a waiter is queued | the holder of the queue's lock |
//! | `HANDOFF` | nobody may overtake the first waiter | the holder of the queue's lock |
//! | `NOTED` | the lock notes its holder: see `holder.rs` | its creation, or a dump, sets it; an entry clears it, if no holder is wanted |
//!
//! The holder of the queue's lock adds to the number of woken waiters when it releases them. The
//! owner of such a waiter subtracts one.
//!
//! # Rules
//!
//! 1. `QUEUED` is exact while the lock of the queue is free. `HANDOFF` is set only with `QUEUED`.
//! 2. A waiter is pushed only while the lock does not admit it, or, behind another waiter, while
//!    `HANDOFF` is set.
//! 3. A task that leaves *must notify*, if `QUEUED` is set and either no waiter is woken, or
//!    `HANDOFF` is set. A reader that leaves others behind does not do so while `HANDOFF` is set,
//!    unless it leaves a full lock: the first waiter is not admitted then.
//! 4. A notifier takes the lock of the queue and looks at the first waiter. If the lock admits that
//!    one, the notifier hands over if `HANDOFF` is set, and then goes on to the next waiter; else
//!    it wakes a group if no waiter is woken. If the lock does not admit the first waiter any more,
//!    but did when the notifier had left, the notifier wakes this one alone, in the same case.
//! 5. The owner of a waiter that is released with `Turn::Try` enters, or queues again, or is
//!    dropped. If it is the last of its group, and enters as a reader or is dropped, it notifies:
//!    more readers may be admitted.
//! 6. A woken writer is alone in its group. `HANDOFF` is not set while it is on its way: a notifier
//!    sets neither if it finds the other, and its own try sets `HANDOFF` as it subtracts itself.
//! 7. `state` changes before a waiter is released: its owner looks at `state` without the lock of
//!    the queue.
//! 8. A waiter that leaves the queue by its drop notifies: the next one may be admitted.
//!
//! # Why no wake is lost
//!
//! All changes of `state` are in one order. Suppose that a waiter is first in the queue, nobody is
//! woken, and the lock admits it. Look at the last change that made the lock admit it, made it
//! first, or ended a group. If a task left, it saw `QUEUED`, and notifies by rule 3: before that,
//! the lock had a writer, or one reader, or was full. (A waiter is pushed by an exchange on a state
//! that does not admit it, so the leaving comes after it.) If a group ended, by an entry of a
//! reader or by a drop, rule 5 notifies; if a group ended by the entry of a writer, that writer
//! leaves later; if it ended by a push, the one that pushed was not admitted. If another waiter was
//! taken out from before it, this was a notifier, which went on to look at this waiter, or a drop
//! (rule 8). So a notifier is on its way to the lock of the queue.
//!
//! If a waiter is woken, that waiter is on its way, and what it does is in the list above.
//!
//! # Why no waiter is overtaken for ever
//!
//! A first waiter that is not admitted waits for a writer to leave, or for readers. When the writer
//! leaves, or the last reader, or a reader leaves a full lock, the waiter is woken, or handed the
//! lock: it is woken also if another task enters before the notifier looks (rule 4). When another
//! reader leaves, and nobody is woken, a waiting writer gets `HANDOFF`. A woken waiter tries once,
//! and then has `HANDOFF`. With `HANDOFF` only a group that is on its way enters, once.
use crate::{
    coop::WaitsOn,
    holder::{self, Holder},
    wait::Request,
    waiters::{BATCH, Batch, Locked, Waiter, Waiters, drop_waker, wake_batch},
    waiting::Waiting,
};
use core::{
    marker::PhantomData,
    pin::Pin,
    task::{Poll, Waker, ready},
};
use sync_shim::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

const WRITER: u64 = 1;
const QUEUED: u64 = 2;
const HANDOFF: u64 = 4;
const NOTED: u64 = 8;
/// One woken waiter. A group is at most a batch.
const WOKEN: u64 = 16;
/// The bits of the number of woken waiters.
const ALL_WOKEN: u64 = READER - WOKEN;
/// A state in which the lock admits nobody.
const NONE_ADMITTED: u64 = WRITER;
/// One reader.
const READER: u64 = 1 << 32;

/// How a task enters the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
}

/// The right of a waiter that is released.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Try to enter.
    Try,
    /// It has entered.
    In,
}

/// The value of a waiter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    kind: Kind,
    turn: Turn,
}

pub(crate) struct RawRwLock {
    state: AtomicU64,
    waiters: Waiters<Claim>,
    holder: Holder,
    max_readers: u32,
}

impl Kind {
    /// Returns the part of the state that an entry adds.
    #[inline(always)]
    const fn unit(self) -> u64 {
        match self {
            Self::Read => READER,
            Self::Write => WRITER,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Read => "a reader's lock",
            Self::Write => "a writer's lock",
        }
    }
}

/// Returns the number of readers of a state.
#[inline(always)]
const fn readers(state: u64) -> u32 {
    (state >> 32) as u32
}

impl RawRwLock {
    sync_shim::const_fn! {
        /// Creates a lock for at least one reader.
        pub(crate) const fn new(max_readers: u32, notes_holder: bool) -> Self {
            Self {
                state: AtomicU64::new(if notes_holder { NOTED } else { 0 }),
                waiters: Waiters::new(()),
                holder: Holder::new(),
                max_readers,
            }
        }
    }

    /// Returns whether the lock admits one more of this kind.
    #[inline(always)]
    fn admits(&self, state: u64, kind: Kind) -> bool {
        match kind {
            Kind::Read => state & WRITER == 0 && readers(state) < self.max_readers,
            Kind::Write => state & WRITER == 0 && readers(state) == 0,
        }
    }

    /// Enters, if the lock admits it and `HANDOFF` is clear. One read-modify-write.
    #[inline]
    pub(crate) fn try_enter(&self, kind: Kind) -> bool {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        // The bit `NOTED` costs nothing here: it is tested with the others.
        while state & (HANDOFF | NOTED) == 0 && self.admits(state, kind) {
            let now = state + kind.unit();
            // Ordering: Acquire pairs with the Release of `leave`. Relaxed on failure: the value
            // is the next guess.
            match self
                .state
                .compare_exchange_weak(state, now, Acquire, Relaxed)
            {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        state & NOTED != 0 && self.try_enter_noted(kind)
    }

    /// Enters as `try_enter` does, and notes the holder.
    #[cold]
    fn try_enter_noted(&self, kind: Kind) -> bool {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        while state & HANDOFF == 0 && self.admits(state, kind) {
            let now = state + kind.unit();
            // Ordering: as in `try_enter`.
            match self
                .state
                .compare_exchange_weak(state, now, Acquire, Relaxed)
            {
                Ok(_) => {
                    self.note_holder(now);
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }

    /// Notes the holder, after an entry that led to this state, if the lock does so.
    #[inline]
    fn note_holder(&self, state: u64) {
        #[cold]
        fn note(lock: &RawRwLock) {
            if holder::is_wanted() {
                return lock.holder.set();
            }
            // Ordering: Relaxed. The bit orders nothing.
            lock.state.fetch_and(!NOTED, Relaxed);
        }

        if state & NOTED != 0 {
            note(self);
        }
    }

    /// Leaves the lock. One read-modify-write, unless others must be notified.
    ///
    /// # Safety
    /// The caller is in the lock, as one of this kind.
    #[inline]
    pub(crate) unsafe fn leave(&self, kind: Kind) {
        // Ordering: Relaxed. If this misses the bit, there is no note.
        if kind == Kind::Write && self.state.load(Relaxed) & NOTED != 0 {
            self.holder.clear();
        }
        // Ordering: Release pairs with the Acquire of those who enter later (`try_enter`,
        // `try_woken`, `enter_or_push`, `notify`).
        let before = self.state.fetch_sub(kind.unit(), Release);
        if before & (QUEUED | NOTED) != 0 {
            self.left(before, before - kind.unit());
        }
    }

    /// Makes the writer a reader.
    ///
    /// # Safety
    /// The caller is the writer in the lock.
    #[inline]
    pub(crate) unsafe fn downgrade(&self) {
        // Ordering: Release, as in `leave`: readers that enter see what the writer did.
        let before = self.state.fetch_add(READER - WRITER, Release);
        if before & QUEUED != 0 {
            self.left(before, before + (READER - WRITER));
        }
    }

    /// Notifies after a task has left or a writer has become a reader, if it must (rule 3).
    #[cold]
    fn left(&self, before: u64, after: u64) {
        // A reader has left.
        if before & NOTED != 0 && readers(after) < readers(before) {
            self.holder.clear_own();
        }
        if before & QUEUED == 0 {
            return;
        }
        let leaves_others = before & WRITER == 0 && readers(after) > 0;
        let must_notify = match before & HANDOFF == 0 {
            true => before & ALL_WOKEN == 0,
            false => !leaves_others || readers(before) == self.max_readers,
        };
        if must_notify {
            self.notify(self.waiters.lock(), after, leaves_others);
        }
    }

    /// Lets the first waiter in, or wakes a group, if the lock admits it (rule 4), or did in the
    /// state `after`. Otherwise, if the caller is a reader that `leaves_others`, a first waiter
    /// that is a writer is overtaken no more. Unlocks.
    fn notify<'a>(&'a self, mut locked: Locked<'a, Claim>, after: u64, leaves_others: bool) {
        let mut batch = Batch::new();
        // Ordering: Relaxed, a guess that the exchanges check. `QUEUED` and `HANDOFF` are exact.
        let mut state = self.state.load(Relaxed);
        while let Some(Claim { kind, .. }) = locked.front() {
            if batch.is_full() {
                drop(locked);
                wake_batch(&mut batch);
                locked = self.waiters.lock();
                // Ordering: Relaxed, as above.
                state = self.state.load(Relaxed);
                continue;
            }
            let hands_over = state & HANDOFF != 0;
            if !hands_over && state & ALL_WOKEN != 0 {
                break;
            }
            let is_admitted = self.admits(state, kind);
            let (count, now) = if is_admitted || (!hands_over && self.admits(after, kind)) {
                let most = match kind {
                    Kind::Read if is_admitted && !hands_over => {
                        let room = (self.max_readers - readers(state)) as usize;
                        room.min(BATCH - batch.len())
                    }
                    _ => 1,
                };
                let (count, is_all) = locked.count_first(most, |claim| claim.kind == kind);
                let now = match hands_over {
                    true => (state + kind.unit()) & !HANDOFF,
                    false => state + count as u64 * WOKEN,
                };
                (count, if is_all { now & !QUEUED } else { now })
            } else if leaves_others && kind == Kind::Write && !hands_over {
                (0, state | HANDOFF)
            } else {
                break;
            };
            // Rule 7: the state changes first.
            // Ordering: Acquire pairs with the Release of `leave`, for a waiter that is let in: the
            // mark on the waiter passes it on. Relaxed on failure: the value is the next guess.
            if let Err(now) = self.state.compare_exchange(state, now, Acquire, Relaxed) {
                state = now;
                continue;
            }
            let turn = if hands_over { Turn::In } else { Turn::Try };
            for _ in 0..count {
                // A queued waiter has a waker, and the batch has room.
                let waker = locked.pop_front(|claim| claim.turn = turn);
                waker.map(|waker| batch.push(waker));
            }
            // Behind a reader that was let in there may be others.
            if !hands_over || kind == Kind::Write {
                break;
            }
            state = now;
        }
        drop(locked);
        wake_batch(&mut batch);
    }

    /// Polls for an entry.
    ///
    /// # Safety
    /// As of [`Request::poll`]. The waiter is used for entries of this kind.
    #[inline]
    pub(crate) unsafe fn poll_enter(
        &self,
        waiter: Pin<&Waiter<Claim>>,
        kind: Kind,
        waker: &Waker,
    ) -> Poll<()> {
        if waiter.is_idle() {
            return match self.try_enter(kind) {
                true => Poll::Ready(()),
                // SAFETY: the caller's.
                false => unsafe { self.enter_or_push(waiter, kind, waker, false) },
            };
        }
        // SAFETY: the caller's. The waiter is not idle, so it was pushed.
        let claim = ready!(unsafe { self.waiters.poll(waiter, waker) });
        if claim.turn == Turn::In {
            waiter.reset();
            // Ordering: Relaxed. The bit orders nothing.
            self.note_holder(self.state.load(Relaxed));
            return Poll::Ready(());
        }
        if self.try_woken(waiter, kind) {
            return Poll::Ready(());
        }
        // SAFETY: the caller's.
        unsafe { self.enter_or_push(waiter, kind, waker, true) }
    }

    /// Enters for a waiter that was woken, if the lock admits it.
    fn try_woken(&self, waiter: Pin<&Waiter<Claim>>, kind: Kind) -> bool {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        while self.admits(state, kind) {
            let now = state + kind.unit() - WOKEN;
            // Ordering: as in `try_enter`.
            match self
                .state
                .compare_exchange_weak(state, now, Acquire, Relaxed)
            {
                Ok(_) => {
                    // Before a wake, which may unwind without `std`.
                    waiter.reset();
                    self.note_holder(now);
                    if self.ends_group(now, kind) {
                        self.notify(self.waiters.lock(), now, false);
                    }
                    return true;
                }
                Err(now) => state = now,
            }
        }
        false
    }

    /// Returns whether an entry that led to this state must notify (rule 5).
    fn ends_group(&self, now: u64, kind: Kind) -> bool {
        kind == Kind::Read && now & (QUEUED | ALL_WOKEN) == QUEUED
    }

    /// Takes the lock of the queue, and tries once more, or queues: behind the others, or, if the
    /// waiter was woken, before them.
    ///
    /// # Safety
    /// As of `poll_enter`. The waiter is idle, or released with `Turn::Try` if it was woken.
    #[cold]
    unsafe fn enter_or_push(
        &self,
        waiter: Pin<&Waiter<Claim>>,
        kind: Kind,
        waker: &Waker,
        was_woken: bool,
    ) -> Poll<()> {
        let waker = waker.clone();
        let mut locked = self.waiters.lock();
        let woken = if was_woken { WOKEN } else { 0 };
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        let (is_in, now) = loop {
            let is_in = (was_woken || state & HANDOFF == 0) && self.admits(state, kind);
            let now = match (is_in, was_woken) {
                (true, _) => state + kind.unit() - woken,
                (false, false) => state | QUEUED,
                (false, true) => (state - woken) | QUEUED | HANDOFF,
            };
            // Ordering: Acquire as in `try_enter`, for an entry. Relaxed on failure: the value is
            // the next guess.
            match self.state.compare_exchange(state, now, Acquire, Relaxed) {
                Ok(_) => break (is_in, now),
                Err(now) => state = now,
            }
        };
        if is_in {
            waiter.reset();
            self.note_holder(now);
            if was_woken && self.ends_group(now, kind) {
                self.notify(locked, now, false);
            } else {
                drop(locked);
            }
            // Its panic must not lose the entry.
            drop_waker(Some(waker));
            return Poll::Ready(());
        }
        let claim = Claim {
            kind,
            turn: Turn::Try,
        };
        match was_woken {
            // SAFETY: the caller's. `cancel` removes the waiter.
            true => unsafe { locked.push_front(waiter, waker, claim) },
            // SAFETY: as above.
            false => unsafe { locked.push_back(waiter, waker, claim) },
        }
        Poll::Pending
    }

    /// Ends a wait. Passes on an entry that the waiter was given, and a wake (rules 5 and 8).
    ///
    /// # Safety
    /// As of [`Request::cancel`].
    #[cold]
    unsafe fn cancel(&self, waiter: Pin<&Waiter<Claim>>, kind: Kind) {
        let mut locked = self.waiters.lock();
        // SAFETY: the caller's.
        let waker = unsafe { locked.remove(waiter) };
        if waker.is_some() {
            if locked.is_empty() {
                // Ordering: Relaxed. The lock of the queue orders its bits.
                self.state.fetch_and(!(QUEUED | HANDOFF), Relaxed);
            }
            self.notify(locked, NONE_ADMITTED, false);
            return drop_waker(waker);
        }
        drop(locked);
        match waiter.released().map(|claim| claim.turn) {
            None => {}
            // SAFETY: the waiter was let in.
            Some(Turn::In) => unsafe { self.leave(kind) },
            Some(Turn::Try) => {
                // Ordering: Relaxed. `notify` looks again under the lock of the queue.
                let before = self.state.fetch_sub(WOKEN, Relaxed);
                if before & QUEUED != 0 && before & ALL_WOKEN == WOKEN {
                    self.notify(self.waiters.lock(), before - WOKEN, false);
                }
            }
        }
    }

    /// Says to a dump of tasks that a task waits for an entry, and who is in the lock. From now on
    /// the lock notes its holder.
    #[cfg(feature = "coop-budget")]
    #[cold]
    fn waits_on(&self, kind: Kind) -> WaitsOn {
        // Ordering: Acquire pairs with the Release of `leave`: a note that a writer has cleared
        // before is not seen.
        let state = self.state.fetch_or(NOTED, Acquire);
        let is_noted = state & NOTED != 0 && (state & WRITER != 0 || readers(state) > 0);
        WaitsOn::Lock {
            kind: kind.name(),
            at: core::ptr::from_ref(self).addr(),
            holder: self.holder.get().filter(|_| is_noted),
        }
    }

    #[cfg(not(feature = "coop-budget"))]
    fn waits_on(&self, kind: Kind) -> WaitsOn {
        WaitsOn::event(kind.name(), self)
    }

    /// Calls `f` for each request that waits, in their order.
    pub(crate) fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        let mut locked = self.waiters.lock();
        // Ordering: Relaxed, the number is only shown.
        let readers = readers(self.state.load(Relaxed)) as usize;
        locked.for_each(|waker, claim| {
            let needed = match claim.kind {
                Kind::Read => 1,
                Kind::Write => readers.max(1),
            };
            f(&Waiting::new(waker, needed));
        });
    }
}

/// A handle by which a request reaches its lock.
pub(crate) trait AsRwLock {
    fn rwlock(&self) -> &RawRwLock;
}

/// How a request, or a guard, enters and leaves the lock.
pub(crate) trait Access {
    const KIND: Kind;
}

/// The access of a reader.
pub(crate) struct Shared;

/// The access of the writer.
pub(crate) struct Whole;

impl Access for Shared {
    const KIND: Kind = Kind::Read;
}

impl Access for Whole {
    const KIND: Kind = Kind::Write;
}

/// A request for an entry.
pub(crate) struct Entry<H, A> {
    pub(crate) of: H,
    access: PhantomData<A>,
}

impl<H, A> Entry<H, A> {
    pub(crate) fn new(of: H) -> Self {
        Self {
            of,
            access: PhantomData,
        }
    }
}

impl<H: AsRwLock, A: Access> Request for Entry<H, A> {
    type Value = Claim;
    const NEW: Claim = Claim {
        kind: A::KIND,
        turn: Turn::Try,
    };
    type Output = ();

    #[inline]
    unsafe fn poll(&mut self, waiter: Pin<&Waiter<Claim>>, waker: &Waker) -> Poll<()> {
        // SAFETY: the caller's.
        unsafe { self.of.rwlock().poll_enter(waiter, A::KIND, waker) }
    }

    unsafe fn cancel(&mut self, waiter: Pin<&Waiter<Claim>>) {
        // SAFETY: the caller's.
        unsafe { self.of.rwlock().cancel(waiter, A::KIND) };
    }

    fn waits_on(&self) -> WaitsOn {
        self.of.rwlock().waits_on(A::KIND)
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
