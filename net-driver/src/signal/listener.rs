//! A listener waits for a signal, on any system.
//!
//! 1. A handler sets the signal's `pending` flag, and then calls the thread of the signals.
//! 2. The thread takes the flag of each pending signal. It adds 1 to the version of that signal,
//!    then takes the wakers of the signal's listeners, and wakes them.
//! 3. A listener that finds the version unchanged stores its waker under the lock, and after that
//!    looks at the version again. So either the listener sees the new version, or the thread finds
//!    the waker. The listener keeps the index of its waker, so it never searches for it.
//! 4. A signal publishes no memory, just as a signal from another process does not. So all
//!    orderings are Relaxed: the call of the thread orders a flag before the thread's look, and the
//!    lock orders the two sides of rule 3.
use crate::list::{self, List};
use coop_budget::WaitsOn;
use std::{
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker, ready},
};
use sync_shim::panics::contain;

/// The listeners of a signal.
pub(super) struct Slot {
    pending: AtomicBool,
    version: AtomicU64,
    /// An entry for each listener that has waited, until the listener is dropped. The entry is
    /// `None` once the waker was taken. The thread walks all entries for each signal, under the
    /// lock. Dropped listeners leave free entries, which stay until the last listener has left. So
    /// a single listener that lives long keeps the highest number of entries so far.
    wakers: Mutex<List<Option<Waker>>>,
    pub(super) has_handler: Mutex<bool>,
}

impl Slot {
    pub(super) const fn new() -> Self {
        Self {
            pending: AtomicBool::new(false),
            version: AtomicU64::new(0),
            wakers: Mutex::new(List::new()),
            has_handler: Mutex::new(false),
        }
    }

    /// Sets the flag, in a handler (rule 1). The caller then calls the thread.
    pub(super) fn set_pending(&self) {
        // Ordering: Relaxed (rule 4).
        self.pending.store(true, Relaxed);
    }

    /// Wakes the listeners if the signal is pending (rule 2).
    pub(super) fn deliver(&self) {
        // Ordering: Relaxed (rule 4): a cheap look before the swap.
        if self.pending.load(Relaxed) && self.pending.swap(false, Relaxed) {
            // Ordering: Relaxed (rule 4).
            self.version.fetch_add(1, Relaxed);
            for waker in self.take_wakers() {
                // A panic of a waker must not end the thread.
                contain(|| waker.wake());
            }
        }
    }

    /// Stores a listener's waker in the listener's entry, or in a new one. Returns the old waker,
    /// which the caller drops without the lock.
    fn store_waker(&self, entry: &mut Option<usize>, waker: Waker) -> Option<Waker> {
        let mut wakers = lock(&self.wakers);
        match entry {
            Some(at) => wakers[*at].replace(waker),
            None => {
                *entry = Some(wakers.insert(Some(waker)));
                None
            }
        }
    }

    /// Takes the wakers of all listeners that wait.
    fn take_wakers(&self) -> Vec<Waker> {
        let listeners = lock(&self.wakers).len();
        // The memory comes from the allocator without the lock, unless listeners have come since.
        let mut taken = Vec::with_capacity(listeners);
        let mut wakers = lock(&self.wakers);
        taken.extend(wakers.iter_mut().filter_map(|(_, waker)| waker.take()));
        taken
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Receives a signal.
pub(super) struct Listener {
    slot: &'static Slot,
    /// The name of the signal, for a dump of tasks: "signal", and its number.
    name: (&'static str, u32),
    /// The version that the listener has seen last.
    seen: u64,
    /// The index of this listener's entry in `wakers`, once it has waited.
    entry: Option<usize>,
}

impl Listener {
    /// Makes a listener of the signals that come in from now on.
    pub(super) fn new(slot: &'static Slot, name: (&'static str, u32)) -> Self {
        Self {
            slot,
            name,
            // Ordering: Relaxed (rule 4).
            seen: slot.version.load(Relaxed),
            entry: None,
        }
    }

    pub(super) fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Option<()>> {
        let progress = ready!(coop_budget::poll_proceed(cx));
        if !self.has_new() {
            let waker = cx.waker().clone();
            let old = self.slot.store_waker(&mut self.entry, waker);
            // The drop of a waker is user code, so it does not run under the lock.
            drop(old);
            // Rule 3.
            if !self.has_new() {
                let (kind, number) = self.name;
                progress.waits_for(|| WaitsOn::from(format!("{kind} {number}")));
                return Poll::Pending;
            }
        }
        progress.made_progress();
        Poll::Ready(Some(()))
    }

    /// Returns whether the signal has come in since the last call, or since the listener was made.
    fn has_new(&mut self) -> bool {
        // Ordering: Relaxed (rule 4).
        let version = self.slot.version.load(Relaxed);
        mem::replace(&mut self.seen, version) != version
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(at) = self.entry {
            let waker = list::remove(&mut lock(&self.slot.wakers), at);
            // The lock is free again: the drop of a waker is user code.
            drop(waker);
        }
    }
}
