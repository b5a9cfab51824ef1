//! The state that the handles of a watch channel share: the value, its version, and the tasks that
//! wait.
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | `lock` | a lock (`parking.rs`) with `LOCKED` for a writer; above its two bits the number of readers |
//! | `value` | readers and the writer, as the lock allows |
//! | `version` | read by anyone; written by the writer, and by the drop of the last sender |
//! | `receivers`, `senders` | anyone |
//! | `changed` | see the front page of `lists.rs`; its event is a change of `version` |
//!
//! `version` is a count of changes and one bit, `CLOSED`: there is no sender.
//!
//! # Rules
//!
//! 1. A change of the value raises the version under the same lock. So a reader sees the value and
//!    its version together.
//! 2. The drop of the last sender sets `CLOSED`. No writer is left then, so a writer may raise the
//!    version by a load and a store.
//! 3. A thread that changed `version` then wakes all tasks in `changed`. A drop of the last
//!    receiver does so with `closing`.
//! 4. A reader does not enter while a thread sleeps for the lock. So readers do not shut out a
//!    writer.
use crate::{
    coop::WaitsOn,
    lists::{LISTS, Lists},
    parking::{LOCKED, PARKED, Parking, UNIT},
    wait::Condition,
    waiters::Waiters,
};
use alloc::sync::Arc;
use core::ops::{Deref, DerefMut};
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    cell::UnsafeCell,
};

/// The bit of a version, and the unit of the count above it.
const CLOSED: usize = 1;
const STEP: usize = 2;

/// A version: the count of changes, without the bit.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Version(usize);

impl Version {
    /// Returns a version that no value has after this one, in any time that counts.
    pub(super) fn before(self) -> Self {
        Self(self.0.wrapping_sub(STEP))
    }
}

/// The list of a receiver's waits. A model numbers its receivers in turn, so that each run of it
/// uses the same lists. Else the address of a wait chooses.
#[derive(Clone, Copy)]
pub(super) struct List {
    #[cfg(any(selvedge_loom, selvedge_shuttle))]
    index: usize,
}

#[cfg(any(selvedge_loom, selvedge_shuttle))]
impl List {
    /// `number` is the number of receivers that there were before this one.
    fn new(number: usize) -> Self {
        let index = number % LISTS;
        Self { index }
    }

    /// Returns the number of the list.
    fn index(self, _: &Version) -> usize {
        self.index
    }
}

#[cfg(not(any(selvedge_loom, selvedge_shuttle)))]
impl List {
    fn new(_: usize) -> Self {
        Self {}
    }

    /// Returns the number of the list of a task that waits with this `seen`. The wait borrows it,
    /// so it does not move.
    #[cfg_attr(
        selvedge_sim,
        allow(clippy::modulo_one, reason = "a simulation has one list")
    )]
    fn index(self, seen: &Version) -> usize {
        // The versions seen are in receivers, or in futures. Each is far from the next one, at a
        // distance that may be a power of two.
        let address = core::ptr::from_ref(seen).addr();
        let folded = (address >> 6) ^ (address >> 9) ^ (address >> 12);
        folded % LISTS
    }
}

pub(super) struct Shared<T> {
    lock: AtomicUsize,
    version: AtomicUsize,
    receivers: AtomicUsize,
    senders: AtomicUsize,
    parking: Parking,
    pub(super) changed: Lists,
    pub(super) closing: Waiters<()>,
    value: UnsafeCell<T>,
}

// SAFETY: the lock lends the value to many readers, or to one writer, which may move it out.
unsafe impl<T: Send + Sync> Sync for Shared<T> {}
// SAFETY: the value moves with the state.
unsafe impl<T: Send> Send for Shared<T> {}

impl<T> Shared<T> {
    /// Creates the state of a channel with one sender and no receiver.
    pub(super) fn new(value: T) -> Arc<Self> {
        Arc::new(Self {
            lock: AtomicUsize::new(0),
            version: AtomicUsize::new(0),
            receivers: AtomicUsize::new(0),
            senders: AtomicUsize::new(1),
            parking: Parking::new(),
            changed: Lists::new(),
            closing: Waiters::new(()),
            value: UnsafeCell::new(value),
        })
    }

    /// Returns the version, and whether there is no sender.
    #[inline]
    pub(super) fn version(&self) -> (Version, bool) {
        // Ordering: Acquire pairs with the Release of a change, and of the last sender's drop: the
        // receiver sees what the sender did before.
        let version = self.version.load(Acquire);
        (Version(version & !CLOSED), version & CLOSED != 0)
    }

    #[inline]
    pub(super) fn read(&self) -> Reading<'_, T> {
        // A sleeper has `PARKED` set.
        self.parking.lock(&self.lock, LOCKED | PARKED, UNIT);
        Reading(self)
    }

    /// Changes the value under the lock. If `change` returns `Some`, raises the version and wakes
    /// the receivers.
    #[inline]
    pub(super) fn modify<R>(&self, change: impl FnOnce(&mut T) -> Option<R>) -> Option<R> {
        self.parking.lock(&self.lock, !PARKED, LOCKED);
        let mut writing = Writing(self);
        let changed = change(&mut writing)?;
        // Ordering: Relaxed. The last change was made under the lock, too (rule 2).
        let version = self.version.load(Relaxed);
        // Ordering: Release pairs with the Acquire of `version`.
        self.version.store(version.wrapping_add(STEP), Release);
        drop(writing);
        self.changed.wake_all();
        Some(changed)
    }

    pub(super) fn add_receiver(&self) -> List {
        // Ordering: Relaxed, nothing is published.
        List::new(self.receivers.fetch_add(1, Relaxed))
    }

    pub(super) fn drop_receiver(&self) {
        // Ordering: Release pairs with the Acquire of `receivers`: a task in `closed` sees what the
        // receivers did. It continues the Releases of the others.
        if self.receivers.fetch_sub(1, Release) == 1 {
            self.closing.lock().wake_all(|()| ());
        }
    }

    pub(super) fn receivers(&self) -> usize {
        // Ordering: Acquire pairs with the Release of `drop_receiver`.
        self.receivers.load(Acquire)
    }

    pub(super) fn add_sender(&self) {
        // Ordering: Relaxed, nothing is published.
        self.senders.fetch_add(1, Relaxed);
    }

    pub(super) fn drop_sender(&self) {
        // Ordering: AcqRel. The last sender's drop sees the versions of the others and orders them
        // before its own change.
        if self.senders.fetch_sub(1, AcqRel) == 1 {
            // Ordering: Release pairs with the Acquire of `version`.
            self.version.fetch_or(CLOSED, Release);
            self.changed.wake_all();
        }
    }

    pub(super) fn senders(&self) -> usize {
        // Ordering: Relaxed, the number is only reported.
        self.senders.load(Relaxed)
    }
}

/// The value, locked for reading.
pub(super) struct Reading<'a, T>(&'a Shared<T>);

impl<T> Reading<'_, T> {
    /// Returns the version of the value.
    #[inline]
    pub(super) fn version(&self) -> Version {
        self.0.version().0
    }
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let value = self.0.value.with(|value| value);
        // SAFETY: there is no writer while this guard lives.
        unsafe { &*value }
    }
}

impl<T> Drop for Reading<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.parking.unlock(&self.0.lock, UNIT, !PARKED);
    }
}

/// The value, locked for writing.
struct Writing<'a, T>(&'a Shared<T>);

impl<T> Deref for Writing<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        let value = self.0.value.with(|value| value);
        // SAFETY: there is no other access while this guard lives.
        unsafe { &*value }
    }
}

impl<T> DerefMut for Writing<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        let value = self.0.value.with_mut(|value| value);
        // SAFETY: there is no other access while this guard lives.
        unsafe { &mut *value }
    }
}

impl<T> Drop for Writing<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.0.parking.unlock(&self.0.lock, LOCKED, !PARKED);
    }
}

/// The condition that a channel has no receiver.
pub(super) struct Closed<'a, T>(pub(super) &'a Shared<T>);

impl<T> Condition for Closed<'_, T> {
    type Shared = ();
    type Output = ();

    fn queue(&self) -> &Waiters<()> {
        &self.0.closing
    }

    fn output(&mut self) -> Option<()> {
        self.may_be_met(&()).then_some(())
    }

    fn may_be_met(&self, &(): &()) -> bool {
        self.0.receivers() == 0
    }

    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event("the end of the receivers of a watch channel", self.0)
    }
}

/// The condition that a channel has another version than the one seen, or is closed. A poll that
/// finds another version also counts it as seen.
pub(super) struct Changed<'a, T> {
    pub(super) shared: &'a Shared<T>,
    pub(super) seen: &'a mut Version,
    pub(super) list: List,
}

impl<T> Condition for Changed<'_, T> {
    type Shared = ();
    type Output = Result<(), super::error::RecvError>;

    fn queue(&self) -> &Waiters<()> {
        self.shared.changed.list(self.list.index(self.seen))
    }

    #[inline]
    fn output(&mut self) -> Option<Self::Output> {
        let (version, is_closed) = self.shared.version();
        if version != *self.seen {
            *self.seen = version;
            return Some(Ok(()));
        }
        is_closed.then_some(Err(super::error::RecvError(())))
    }

    fn may_be_met(&self, &(): &()) -> bool {
        self.shared.changed.mark_used(self.list.index(self.seen));
        let (version, is_closed) = self.shared.version();
        version != *self.seen || is_closed
    }

    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event("a value of a watch channel", self.shared)
    }
}
