//! The slots of all registrations of a driver.
//!
//! Slots live in chunks of doubling size, and a chunk lives as long as the slab. So an index is
//! valid forever: an event that comes late finds its slot, and the slot's generation says that the
//! event is stale.
//!
//! 1. The lock guards the list of free slots, and the growth. A slot is occupied and released under
//!    the lock. So a shutdown finds every registered slot, and a later registration is refused.
//! 2. A lookup by index takes no lock.
//! 3. The lock guards the owners of numbers.
//! 4. The lock of the entries, which a thread takes before the lock of rule 1, is for numbers that
//!    may pass on. A *checked* registration does not own its descriptor, so it may lose its number
//!    (see `owners.rs`). A registration that is checked, or that finds an owner, makes its entry in
//!    the kernel and then becomes the owner, in one hold. A checked registration, at its end, looks
//!    whether it is the owner, and deletes the entry, in one hold. Two things follow:
//!    - Say that B registers the number that A has lost, while A ends. Either A deletes an entry
//!      before B makes its own, or A finds that it is no longer the owner. So A never deletes B's.
//!      If the kernel refuses B, A stays the owner, as it must if it has not lost the number.
//!    - Say that A and B register one open number. One makes its entry first and is the owner. The
//!      other one finds an entry and an owner, and is refused.
//! 5. Any other registration A becomes the owner first, and then makes its entry without a lock. In
//!    between, a checked registration B of the same open number may make its entry and become the
//!    owner. So if A finds an entry, it takes the lock of the entries, and replaces the entry only
//!    if it is still the owner.
//! 6. The kernel's calls for entries may sleep, as they ask the file. So none runs under the slab's
//!    lock, for which each socket waits when it is made and dropped. Under the lock of the entries
//!    only the registrations of rule 4 wait for each other.
use crate::{Ready, owners::Owners, slot::Slot, sys::Fd};
use std::{collections::VecDeque, sync::OnceLock, task::Waker};
use sync_shim::sync::{Mutex, MutexGuard};

/// The number of slots in the first chunk. Each further chunk has twice as many as the one before.
#[cfg(not(selvedge_loom))]
const FIRST: u32 = 64;
#[cfg(selvedge_loom)]
const FIRST: u32 = 1;

/// The number of chunks: enough for more than 2³¹ slots.
const CHUNKS: usize = 26;

/// Names one registration: the index of its slot, and the slot's generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SourceId {
    pub(crate) index: u32,
    pub(crate) generation: u32,
}

impl SourceId {
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        Self {
            index: bits as u32,
            generation: (bits >> 32) as u32,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Slab {
    chunks: [OnceLock<Box<[Slot]>>; CHUNKS],
    /// The lock of the entries (rule 4).
    entries: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    free: Vec<u32>,
    /// The number of slots that were ever used.
    len: u32,
    registered: usize,
    is_closed: bool,
    owners: Owners,
}

/// A hold of the lock.
pub(crate) struct Locked<'a> {
    slab: &'a Slab,
    state: MutexGuard<'a, State>,
}

/// The reason for which a registration gets no slot.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    Closed,
    Full,
}

impl Slab {
    pub(crate) fn new() -> Self {
        Self {
            chunks: [const { OnceLock::new() }; CHUNKS],
            entries: Mutex::new(()),
            state: Mutex::new(State::default()),
        }
    }

    /// Takes the lock of the entries (rule 4). The caller does not hold the slab's lock.
    pub(crate) fn lock_entries(&self) -> MutexGuard<'_, ()> {
        self.entries.lock()
    }

    pub(crate) fn lock(&self) -> Locked<'_> {
        let state = self.state.lock();
        Locked { slab: self, state }
    }

    /// Returns the index of a slot that was never used, and makes the slot's chunk if necessary.
    fn grow(&self, state: &mut State) -> Option<u32> {
        let index = state.len;
        let (chunk, _) = place(index);
        self.chunks.get(chunk)?.get_or_init(|| {
            let len = (FIRST as usize) << chunk;
            (0..len).map(|_| Slot::new()).collect()
        });
        state.len = index.checked_add(1)?;
        Some(index)
    }

    /// Releases the slot of `id`, whose registration was made with the number `fd`. Each
    /// registration does this once.
    pub(crate) fn remove(&self, id: SourceId, fd: Fd) {
        drop(self.release(id, fd));
    }

    /// Does the same as [`remove`](Self::remove), for a checked registration. First calls `delete`
    /// if the registration still owns its number (rule 4).
    pub(crate) fn remove_checked(&self, id: SourceId, fd: Fd, delete: impl FnOnce()) {
        let entries = self.lock_entries();
        let is_owner = self.lock().is_owner(fd, id);
        if is_owner {
            delete();
        }
        let wakers = self.release(id, fd);
        drop(entries);
        drop(wakers);
    }

    /// Releases a slot. Returns the wakers that are left, for the caller to drop outside of every
    /// lock (rule 4 of `slot.rs`).
    #[must_use = "drop it outside of every lock"]
    fn release(&self, id: SourceId, fd: Fd) -> impl Sized + use<> {
        let slot = self.get(id.index);
        let mut state = self.state.lock();
        state.owners.remove(fd, id.index);
        let wakers = slot.release();
        state.registered -= 1;
        state.free.push(id.index);
        wakers
    }

    /// Returns the slot with an index that [`insert`](Self::insert) returned.
    pub(crate) fn get(&self, index: u32) -> &Slot {
        let (chunk, at) = place(index);
        let chunk = self.chunks[chunk].get();
        &chunk.expect("`insert` has made the chunk of this slot")[at]
    }

    /// Refuses registrations from now on, and ends the waits of the existing ones.
    pub(crate) fn shut_down(&self, out: &mut VecDeque<Waker>) {
        let mut state = self.state.lock();
        state.is_closed = true;
        for index in 0..state.len {
            self.get(index).shut_down(out);
        }
    }

    /// Returns the number of registrations.
    pub(crate) fn registered(&self) -> usize {
        self.state.lock().registered
    }
}

impl Locked<'_> {
    /// Occupies a free slot.
    pub(crate) fn insert(&mut self, ready: Ready) -> Result<SourceId, Refused> {
        let (slab, state) = (self.slab, &mut *self.state);
        if state.is_closed {
            return Err(Refused::Closed);
        }
        let index = match state.free.pop() {
            Some(index) => index,
            None => slab.grow(state).ok_or(Refused::Full)?,
        };
        state.registered += 1;
        let generation = slab.get(index).occupy(ready);
        Ok(SourceId { index, generation })
    }

    /// Returns whether a live registration owns the number.
    pub(crate) fn has_owner(&self, fd: Fd) -> bool {
        self.state.owners.has(fd)
    }

    /// Returns whether the live registration of `id` owns the number.
    pub(crate) fn is_owner(&self, fd: Fd, id: SourceId) -> bool {
        self.state.owners.is(fd, id.index)
    }

    /// Makes the registration of `id` the owner of the number.
    pub(crate) fn set_owner(&mut self, fd: Fd, id: SourceId) {
        self.state.owners.set(fd, id.index);
    }
}

/// Returns the chunk of an index, and the place within it.
fn place(index: u32) -> (usize, usize) {
    let from_first = u64::from(index) + u64::from(FIRST);
    let chunk = from_first.ilog2() - FIRST.ilog2();
    (
        chunk as usize,
        (from_first - (u64::from(FIRST) << chunk)) as usize,
    )
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
