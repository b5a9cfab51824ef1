//! An engine between schedulers of one program, with faults, for tests and simulations.
use crate::engine::{Engine, PeerId, Sink, Unsent};
use crate::peer::lock;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};
use sync_shim::sim::thread;

/// A network between nodes of one program.
///
/// ```
/// let network = process_cluster::MemoryNetwork::new();
/// network.cut("a", "b"); // Frames from `a` to `b` are lost, and nobody is told.
/// network.heal();
/// ```
#[derive(Clone, Default)]
pub struct MemoryNetwork(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    nodes: BTreeMap<String, Sink>,
    cuts: BTreeSet<(String, String)>,
    latency: Duration,
    losses: u32,
    repeats: u32,
}

impl MemoryNetwork {
    /// Makes a network without nodes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an engine for a node of this name.
    pub fn engine(&self, name: &str) -> MemoryEngine {
        MemoryEngine {
            network: self.clone(),
            name: name.to_owned(),
        }
    }

    /// Loses all frames from one node to another from now on, and tells nobody.
    pub fn cut(&self, from: &str, to: &str) {
        lock(&self.0).cuts.insert((from.to_owned(), to.to_owned()));
    }

    /// Ends all cuts.
    pub fn heal(&self) {
        lock(&self.0).cuts.clear();
    }

    /// Sets how long each frame is on its way.
    pub fn set_latency(&self, latency: Duration) {
        lock(&self.0).latency = latency;
    }

    /// Loses the next frames, of any node.
    pub fn lose_next(&self, frames: u32) {
        let mut state = lock(&self.0);
        state.losses = state.losses.saturating_add(frames);
    }

    /// Delivers the next frames twice, of any node.
    pub fn repeat(&self, frames: u32) {
        let mut state = lock(&self.0);
        state.repeats = state.repeats.saturating_add(frames);
    }

    /// Ends the transport of a node, as if its process were killed: the others are told, and the
    /// node is not.
    pub fn kill(&self, name: &str) {
        let others: Vec<_> = {
            let mut state = lock(&self.0);
            state.nodes.remove(name);
            state.nodes.values().cloned().collect()
        };
        let id = PeerId(name.to_owned());
        others.iter().for_each(|other| other.down(&id));
    }
}

impl fmt::Debug for MemoryNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(lock(&self.0).nodes.keys()).finish()
    }
}

/// A node's end of a [`MemoryNetwork`].
#[derive(Clone, Debug)]
pub struct MemoryEngine {
    network: MemoryNetwork,
    name: String,
}

impl Engine for MemoryEngine {
    fn start(&self, sink: Sink) -> Result<(), String> {
        let others: Vec<_> = {
            let mut state = lock(&self.network.0);
            if state.nodes.contains_key(&self.name) {
                return Err(format!("there is another node {:?}", self.name));
            }
            state.nodes.insert(self.name.clone(), sink.clone());
            let others = state.nodes.iter().filter(|(name, _)| **name != self.name);
            others
                .map(|(name, sink)| (name.clone(), sink.clone()))
                .collect()
        };
        for (name, other) in others {
            sink.up(PeerId(name));
            other.up(PeerId(self.name.clone()));
        }
        Ok(())
    }

    fn send(&self, to: &PeerId, frame: &[u8]) -> Result<(), Unsent> {
        let latency = lock(&self.network.0).latency;
        if !latency.is_zero() {
            thread::sleep(latency);
        }
        let (sink, times) = {
            let mut state = lock(&self.network.0);
            if !state.nodes.contains_key(&self.name) {
                return Err(Unsent);
            }
            let is_cut = state.cuts.contains(&(self.name.clone(), to.0.clone()));
            if is_cut || state.losses > 0 {
                state.losses = state.losses.saturating_sub(u32::from(!is_cut));
                return Ok(());
            }
            let times = 1 + u32::from(state.repeats > 0);
            state.repeats = state.repeats.saturating_sub(1);
            (state.nodes.get(&to.0).cloned().ok_or(Unsent)?, times)
        };
        let from = PeerId(self.name.clone());
        for _ in 0..times {
            sink.frame(&from, frame);
        }
        Ok(())
    }

    fn stop(&self) {
        self.network.kill(&self.name);
    }
}
