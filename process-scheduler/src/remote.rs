//! The table of remote relations: the links and monitors between a process here and a process on
//! another node. `links.rs` fills the table.
//!
//! A pair of a remote process and a local one has one entry. It says which relations the two have,
//! so that the end of one relation leaves the others. A relation that the entry has is *noted*.
use crate::Pid;
use std::{collections::HashMap, mem};
use sync_shim::sync::Mutex;

/// A relation of a process to one on another node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relation {
    /// The two are linked.
    Link,
    /// The process here monitors the remote one.
    Monitor,
    /// The remote process monitors the one here.
    Watcher,
}

/// All relations of a process to one on another node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Relations {
    pub(crate) is_linked: bool,
    /// How often the process monitors the remote one. It gets as many exits.
    pub(crate) monitors: usize,
    pub(crate) is_watched: bool,
}

pub(crate) struct RemoteTable(Mutex<PairTable>);

#[derive(Default)]
struct PairTable {
    /// Keys are a remote process and a process here that is related to it.
    pairs: HashMap<(Pid, Pid), Relations>,
    /// How often a node was lost.
    losses: u64,
}

impl RemoteTable {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(PairTable::default()))
    }

    /// Adds a relation. Only monitors are counted. Returns how often a node was lost.
    pub(crate) fn note(&self, remote: Pid, local: Pid, relation: Relation) -> u64 {
        let mut table = self.0.lock();
        let relations = table.pairs.entry((remote, local)).or_default();
        match relation {
            Relation::Link => relations.is_linked = true,
            Relation::Monitor => relations.monitors += 1,
            Relation::Watcher => relations.is_watched = true,
        }
        table.losses
    }

    /// Returns how often a node was lost.
    pub(crate) fn losses(&self) -> u64 {
        self.0.lock().losses
    }

    pub(crate) fn has(&self, remote: Pid, local: Pid, relation: Relation) -> bool {
        let relations = self.0.lock().pairs.get(&(remote, local)).copied();
        let relations = relations.unwrap_or_default();
        match relation {
            Relation::Link => relations.is_linked,
            Relation::Monitor => relations.monitors > 0,
            Relation::Watcher => relations.is_watched,
        }
    }

    /// Removes a relation of the pair: of several monitors, one. Returns whether it was noted.
    pub(crate) fn forget(&self, remote: Pid, local: Pid, relation: Relation) -> bool {
        let pairs = &mut self.0.lock().pairs;
        let Some(relations) = pairs.get_mut(&(remote, local)) else {
            return false;
        };
        let was_noted = match relation {
            Relation::Link => mem::take(&mut relations.is_linked),
            Relation::Watcher => mem::take(&mut relations.is_watched),
            Relation::Monitor => {
                let left = relations.monitors.checked_sub(1);
                relations.monitors = left.unwrap_or(0);
                left.is_some()
            }
        };
        if *relations == Relations::default() {
            pairs.remove(&(remote, local));
        }
        was_noted
    }

    /// Removes all relations of the pair.
    pub(crate) fn forget_all(&self, remote: Pid, local: Pid) {
        self.0.lock().pairs.remove(&(remote, local));
    }

    /// Takes out all relations to processes of a node that is lost. Returns the remote process, the
    /// one here, and their relations.
    pub(crate) fn take_node(&self, node: u32) -> Vec<(Pid, Pid, Relations)> {
        let mut table = self.0.lock();
        table.losses += 1;
        let mut taken = Vec::new();
        table.pairs.retain(|&(remote, local), relations| {
            if remote.node == node {
                taken.push((remote, local, *relations));
            }
            remote.node != node
        });
        taken
    }

    #[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().pairs.len()
    }
}
