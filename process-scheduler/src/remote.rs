//! The table of remote relations: the links and monitors between a process here and a process on
//! another node. `links.rs` fills the table.
//!
//! A pair of a remote process and a local one has one entry. It says which relations the two have,
//! so that the end of one relation leaves the others.
use crate::Pid;
use std::collections::HashMap;
use sync_shim::sync::Mutex;

/// A relation of a process to one on another node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Relation {
    /// The two are linked.
    Link,
    /// It monitors the remote one.
    Monitor,
    /// The remote one monitors it.
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

/// Keys are a remote process and a process here that is related to it.
pub(crate) struct RemoteTable(Mutex<HashMap<(Pid, Pid), Relations>>);

impl RemoteTable {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(HashMap::new()))
    }

    /// Adds a relation. Only monitors are counted.
    pub(crate) fn note(&self, remote: Pid, by: Pid, relation: Relation) {
        let mut table = self.0.lock();
        let relations = table.entry((remote, by)).or_default();
        match relation {
            Relation::Link => relations.is_linked = true,
            Relation::Monitor => relations.monitors += 1,
            Relation::Watcher => relations.is_watched = true,
        }
    }

    pub(crate) fn has(&self, remote: Pid, by: Pid, relation: Relation) -> bool {
        let relations = self.0.lock().get(&(remote, by)).copied();
        let relations = relations.unwrap_or_default();
        match relation {
            Relation::Link => relations.is_linked,
            Relation::Monitor => relations.monitors > 0,
            Relation::Watcher => relations.is_watched,
        }
    }

    /// Removes one kind of relation of the pair.
    pub(crate) fn forget(&self, remote: Pid, by: Pid, relation: Relation) {
        let mut table = self.0.lock();
        let Some(relations) = table.get_mut(&(remote, by)) else {
            return;
        };
        match relation {
            Relation::Link => relations.is_linked = false,
            Relation::Monitor => relations.monitors = 0,
            Relation::Watcher => relations.is_watched = false,
        }
        if *relations == Relations::default() {
            table.remove(&(remote, by));
        }
    }

    /// Removes all relations of the pair.
    pub(crate) fn forget_all(&self, remote: Pid, by: Pid) {
        self.0.lock().remove(&(remote, by));
    }

    /// Takes out all relations to processes of a node. Returns the remote process, the one here,
    /// and their relations.
    pub(crate) fn take_node(&self, node: u32) -> Vec<(Pid, Pid, Relations)> {
        let mut table = self.0.lock();
        let mut taken = Vec::new();
        table.retain(|&(remote, by), relations| {
            if remote.node == node {
                taken.push((remote, by, *relations));
            }
            remote.node != node
        });
        taken
    }

    #[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}
