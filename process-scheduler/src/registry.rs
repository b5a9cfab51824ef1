//! The table of the live processes: slots with generations, in shards.
//!
//! A slot is *free*, *used*, or *retired* (all its generations are used up). The generation changes
//! when a slot is freed, so a pid of an ended process finds nothing. A slot is 24 bytes.
//!
//! A new cell gets its pid and its slot under one lock.
use crate::{Pid, SpawnError, any_cell::AnyCell};
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
    next: CachePadded<AtomicU32>,
    node: u32,
}

struct Shard {
    slots: Vec<PidSlot>,
    free: u32,
    closed: bool,
}

struct PidSlot {
    cell: Option<Arc<dyn AnyCell>>,
    generation: NonZeroU32,
    next_free: u32,
}

impl Shard {
    /// Takes a free slot, or adds a new one. `None` if the shard is full.
    fn take_slot(&mut self, index: u32, node: u32) -> Option<Pid> {
        let at = match self.free {
            NIL => {
                let at = u32::try_from(self.slots.len()).ok()?;
                if at >= NIL / SHARDS {
                    return None;
                }
                self.slots.push(PidSlot {
                    cell: None,
                    generation: NonZeroU32::MIN,
                    next_free: NIL,
                });
                at
            }
            at => {
                self.free = self.slots[at as usize].next_free;
                at
            }
        };
        Some(Pid {
            slot: at * SHARDS + index,
            generation: self.slots[at as usize].generation,
            node,
        })
    }
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
            next: CachePadded::new(AtomicU32::new(0)),
            node,
        }
    }

    pub(crate) fn node(&self) -> u32 {
        self.node
    }

    /// Puts a cell that nobody shares into a slot, after `set_pid` has written the pid into the
    /// cell. One lock.
    ///
    /// # Errors
    /// If the registry is closed, or the chosen shard has no slot left. Hands the cell back: its
    /// drop runs user code.
    pub(crate) fn insert<C: AnyCell + 'static>(
        &self,
        mut cell: Arc<C>,
        set_pid: impl FnOnce(&mut C, Pid),
    ) -> Result<Arc<C>, (Arc<C>, SpawnError)> {
        // Ordering: Relaxed, since the number only spreads the load.
        let index = self.next.fetch_add(1, Relaxed) % SHARDS;
        let unshared = Arc::get_mut(&mut cell).expect("nobody shares a new cell");
        let mut shard = self.shards[index as usize].lock();
        if shard.closed {
            drop(shard);
            return Err((cell, SpawnError::Closed));
        }
        let Some(pid) = shard.take_slot(index, self.node) else {
            drop(shard);
            return Err((cell, SpawnError::Full));
        };
        set_pid(unshared, pid);
        shard.slots[(pid.slot / SHARDS) as usize].cell = Some(cell.clone());
        drop(shard);
        Ok(cell)
    }

    fn shard(&self, pid: Pid) -> (&Mutex<Shard>, usize) {
        let shard = &self.shards[(pid.slot % SHARDS) as usize];
        (shard, (pid.slot / SHARDS) as usize)
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

    /// Returns all live processes. The shards are read one after the other, so the answer is of no
    /// single moment.
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

    /// Takes a slot of the next shard, without a cell.
    fn take(registry: &Registry) -> Pid {
        // Ordering: Relaxed, a count.
        let index = registry.next.fetch_add(1, Relaxed) % SHARDS;
        let mut shard = registry.shards[index as usize].lock();
        shard.take_slot(index, registry.node).unwrap()
    }

    #[test]
    fn freed_slot_has_another_generation() {
        let registry = Registry::new(3);
        let pids: Vec<_> = (0..SHARDS).map(|_| take(&registry)).collect();
        registry.remove(pids[5]);
        let again = (0..SHARDS).map(|_| take(&registry));
        let again = again.filter(|pid| pid.slot == pids[5].slot);
        let generations: Vec<_> = again.map(|pid| pid.generation.get()).collect();
        assert_eq!(generations, [2]);
        assert!(registry.get(pids[5]).is_none());
    }

    #[test]
    fn slot_without_generations_left_is_retired() {
        let registry = Registry::new(0);
        let mut pid = take(&registry);
        let (shard, at) = registry.shard(pid);
        shard.lock().slots[at].generation = NonZeroU32::MAX;
        pid.generation = NonZeroU32::MAX;
        registry.remove(pid);
        let others = (0..2 * SHARDS).map(|_| take(&registry).slot);
        assert!(others.into_iter().all(|slot| slot != pid.slot));
    }

    #[test]
    fn spawn_after_shutdown_is_refused() {
        let scheduler = crate::Scheduler::builder().workers(1).build();
        let handle = scheduler.handle();
        scheduler.shutdown();
        let spawned = handle.spawn_fn(|_: u8, _| ());
        assert!(matches!(spawned, Err(SpawnError::Closed)));
    }
}
