//! The slots of all registrations of a driver.
//!
//! Slots live in chunks of doubling size, and a chunk lives as long as the slab. So an index is
//! valid forever: an event that comes late finds its slot, and the slot's generation says that the
//! event is stale.
//!
//! 1. The lock guards the list of free slots, and the growth. A slot is occupied and released under
//!    the lock. So a shutdown finds every registered slot, and a later registration is refused.
//! 2. A lookup by index takes no lock.
//! 3. The lock guards the owners of numbers. A registration may lose its number (see `owners.rs`).
//!    The next registration of that number makes its entry in the kernel, and becomes the owner, in
//!    one hold of the lock. The first one, at its end, looks whether it is still the owner, and
//!    deletes the entry, in one hold. So it never deletes the next one's: either that entry is not
//!    made yet, or the first one is no longer the owner. Where a number has no owner, nobody can
//!    have lost it. Then the entry is made without the lock.
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
            state: Mutex::new(State::default()),
        }
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
    /// registration does this once. First calls `delete`, under the lock, if the registration still
    /// owns its number (rule 3).
    pub(crate) fn remove(&self, id: SourceId, fd: Fd, delete: impl FnOnce()) {
        let slot = self.get(id.index);
        let mut state = self.state.lock();
        if state.owners.remove(fd, id.index) {
            delete();
        }
        let wakers = slot.release();
        state.registered -= 1;
        state.free.push(id.index);
        drop(state);
        drop(wakers);
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
