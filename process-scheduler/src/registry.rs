//! The table of the live processes: slots with generations, in shards.
//!
//! A slot is *free*, *reserved* (it has a pid, and no cell yet), *used*, or *retired* (all its
//! generations are used up). The generation changes when a slot is freed, so a pid of an ended
//! process finds nothing. A slot is 24 bytes.
use crate::{Pid, cell::AnyCell};
use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use sync_shim::{CachePadded, sync::Mutex};

const SHARDS: u32 = 16;
const NIL: u32 = u32::MAX;

pub(crate) struct Registry {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    next: AtomicU32,
    node: u32,
}

struct Shard {
    slots: Vec<Slot>,
    free: u32,
    closed: bool,
}

struct Slot {
    cell: Option<Arc<dyn AnyCell>>,
    generation: NonZeroU32,
    next_free: u32,
}

impl Registry {
    pub(crate) fn new(node: u32) -> Self {
        let shard = |_| {
            CachePadded::new(Mutex::new(Shard {
                slots: Vec::new(),
                free: NIL,
                closed: false,
            }))
        };
        Self {
            shards: (0..SHARDS).map(shard).collect(),
            next: AtomicU32::new(0),
            node,
        }
    }

    pub(crate) fn node(&self) -> u32 {
        self.node
    }

    /// Reserves a slot. `None` if the registry is closed, or out of slots.
    pub(crate) fn reserve(&self) -> Option<Pid> {
        // Ordering: Relaxed, it only spreads the load.
        let index = self.next.fetch_add(1, Relaxed) % SHARDS;
        let mut shard = self.shards[index as usize].lock();
        if shard.closed {
            return None;
        }
        let at = match shard.free {
            NIL => {
                let at = u32::try_from(shard.slots.len()).ok()?;
                if at >= NIL / SHARDS {
                    return None;
                }
                shard.slots.push(Slot {
                    cell: None,
                    generation: NonZeroU32::MIN,
                    next_free: NIL,
                });
                at
            }
            at => {
                shard.free = shard.slots[at as usize].next_free;
                at
            }
        };
        Some(Pid {
            slot: at * SHARDS + index,
            generation: shard.slots[at as usize].generation,
            node: self.node,
        })
    }

    fn shard(&self, pid: Pid) -> (&Mutex<Shard>, usize) {
        let shard = &self.shards[(pid.slot % SHARDS) as usize];
        (shard, (pid.slot / SHARDS) as usize)
    }

    /// Fills a reserved slot. False if the registry was closed meanwhile: then the slot is free
    /// again.
    pub(crate) fn insert(&self, pid: Pid, cell: Arc<dyn AnyCell>) -> bool {
        let (shard, at) = self.shard(pid);
        let mut shard = shard.lock();
        if shard.closed {
            drop(shard);
            self.remove(pid);
            return false;
        }
        shard.slots[at].cell = Some(cell);
        true
    }

    /// Frees a slot.
    pub(crate) fn remove(&self, pid: Pid) {
        let (shard, at) = self.shard(pid);
        let mut shard = shard.lock();
        let free = shard.free;
        let slot = &mut shard.slots[at];
        debug_assert_eq!(slot.generation, pid.generation);
        let cell = slot.cell.take();
        if let Some(next) = slot.generation.checked_add(1) {
            slot.generation = next;
            slot.next_free = free;
            shard.free = at as u32;
        }
        drop(shard);
        drop(cell);
    }

    pub(crate) fn get(&self, pid: Pid) -> Option<Arc<dyn AnyCell>> {
        if pid.node != self.node {
            return None;
        }
        let (shard, at) = self.shard(pid);
        let shard = shard.lock();
        let slot = shard.slots.get(at)?;
        (slot.generation == pid.generation).then(|| slot.cell.clone())?
    }

    /// Returns all live processes. Each shard is read at a moment of its own.
    pub(crate) fn all(&self) -> Vec<Arc<dyn AnyCell>> {
        let mut all = Vec::new();
        for shard in &self.shards {
            all.extend(shard.lock().slots.iter().filter_map(|s| s.cell.clone()));
        }
        all
    }

    /// Refuses new processes from now on.
    pub(crate) fn close(&self) {
        for shard in &self.shards {
            shard.lock().closed = true;
        }
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn freed_slot_has_another_generation() {
        let registry = Registry::new(3);
        let pids: Vec<_> = (0..SHARDS).map(|_| registry.reserve().unwrap()).collect();
        registry.remove(pids[5]);
        let again = (0..SHARDS).map(|_| registry.reserve().unwrap());
        let again = again.filter(|pid| pid.slot == pids[5].slot);
        let generations: Vec<_> = again.map(|pid| pid.generation.get()).collect();
        assert_eq!(generations, [2]);
        assert!(registry.get(pids[5]).is_none());
    }

    #[test]
    fn slot_without_generations_left_is_retired() {
        let registry = Registry::new(0);
        let mut pid = registry.reserve().unwrap();
        let (shard, at) = registry.shard(pid);
        shard.lock().slots[at].generation = NonZeroU32::MAX;
        pid.generation = NonZeroU32::MAX;
        registry.remove(pid);
        let others = (0..2 * SHARDS).map(|_| registry.reserve().unwrap().slot);
        assert!(others.into_iter().all(|slot| slot != pid.slot));
    }

    #[test]
    fn closed_registry_reserves_nothing() {
        let registry = Registry::new(0);
        registry.close();
        assert!(registry.reserve().is_none());
    }
}
