//! The slots of all registrations of a driver.
//!
//! Slots live in chunks of doubling size, and a chunk lives as long as the slab. So an index is
//! valid forever: an event that comes late finds its slot, and the slot's generation says that the
//! event is stale.
//!
//! 1. The lock guards the list of free slots, and the growth. A slot is occupied and released under
//!    the lock. So a shutdown finds every registered slot, and a later registration is refused.
//! 2. A lookup by index takes no lock.
use crate::{Ready, slot::Slot};
use std::{collections::VecDeque, sync::OnceLock, task::Waker};
use sync_shim::sync::Mutex;

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

    /// Occupies a free slot.
    pub(crate) fn insert(&self, ready: Ready) -> Result<SourceId, Refused> {
        let mut state = self.state.lock();
        if state.is_closed {
            return Err(Refused::Closed);
        }
        let index = match state.free.pop() {
            Some(index) => index,
            None => self.grow(&mut state).ok_or(Refused::Full)?,
        };
        state.registered += 1;
        let generation = self.get(index).occupy(ready);
        Ok(SourceId { index, generation })
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

    /// Releases the slot of `id`. Each registration does this once.
    pub(crate) fn remove(&self, id: SourceId) {
        let slot = self.get(id.index);
        let mut state = self.state.lock();
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
