//! The table of the nodes that are up.
use std::collections::BTreeMap;
use sync_shim::sync::Mutex;

/// Another node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Node {
    /// Its number in pids on this node.
    pub number: u32,
    /// The name that the relay has given.
    pub name: String,
}

/// The nodes that are up, by their number.
pub(crate) struct NodeTable(Mutex<BTreeMap<u32, String>>);

impl NodeTable {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(BTreeMap::new()))
    }

    pub(crate) fn insert(&self, number: u32, name: String) {
        self.0.lock().insert(number, name);
    }

    pub(crate) fn all(&self) -> Vec<Node> {
        let node = |(number, name): (&u32, &String)| Node {
            number: *number,
            name: name.clone(),
        };
        self.0.lock().iter().map(node).collect()
    }

    pub(crate) fn remove(&self, number: u32) {
        self.0.lock().remove(&number);
    }

    pub(crate) fn has(&self, number: u32) -> bool {
        self.0.lock().contains_key(&number)
    }
}
