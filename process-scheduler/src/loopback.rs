//! A relay between schedulers of one program.
use crate::{Handle, Parcel, Pid, Relay, SendError};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// A relay between schedulers of one program, for tests.
///
/// ```
/// use process_scheduler::{Loopback, Scheduler};
///
/// let loopback = Loopback::new();
/// let here = Scheduler::builder().node(1).relay(loopback.clone()).build();
/// let there = Scheduler::builder().node(2).relay(loopback.clone()).build();
/// loopback.connect(&here);
/// loopback.connect(&there);
///
/// let (sender, seen) = std::sync::mpsc::channel();
/// let far = there.spawn_fn(move |n: u32, _| sender.send(n).unwrap()).unwrap();
/// here.try_send(far.pid(), 7_u32).unwrap();
/// assert_eq!(seen.recv(), Ok(7));
///
/// loopback.disconnect(2);
/// assert!(here.try_send(far.pid(), 8_u32).is_err());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Loopback {
    nodes: Arc<Mutex<HashMap<u32, Handle>>>,
}

impl Loopback {
    /// Creates a relay without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a scheduler under its node's number. The relay keeps the handle until
    /// [`disconnect`](Self::disconnect), and the scheduler keeps the relay: without a `disconnect`
    /// neither is freed.
    pub fn connect(&self, handle: &Handle) {
        let node = handle.node();
        let mut nodes = self.nodes();
        let others = nodes.values().filter(|other| other.node() != node);
        let others: Vec<_> = others.cloned().collect();
        let old = nodes.insert(node, handle.clone());
        drop(nodes);
        drop(old);
        for other in others {
            other.node_up(node, format!("node {node}"));
            handle.node_up(other.node(), format!("node {}", other.node()));
        }
    }

    /// Removes a node, and calls [`Handle::node_down`] on all others, and on this one for each of
    /// them.
    pub fn disconnect(&self, node: u32) {
        let mut nodes = self.nodes();
        let old = nodes.remove(&node);
        let others: Vec<_> = nodes.values().cloned().collect();
        drop(nodes);
        for other in others {
            other.node_down(node);
            if let Some(old) = &old {
                old.node_down(other.node());
            }
        }
    }

    fn nodes(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Handle>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Relay for Loopback {
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        let node = self.nodes().get(&to.node()).cloned();
        match node {
            Some(node) => node.deliver(to, parcel),
            None => Err(SendError::NodeDown(parcel)),
        }
    }
}
