//! Nodes for the tests.
#![allow(dead_code, reason = "no test file uses all of it")]
use process_cluster::{Builder, Cluster, Engine, MemoryNetwork, NodeChange, NodeLoss};
use process_scheduler::{ExitReason, Inbox, Pid, Scheduler, Spawn};
use std::{
    sync::{Arc, Mutex, mpsc},
    thread,
    time::{Duration, Instant},
};

pub const LONG: Duration = Duration::from_secs(60);

/// Waits until something holds.
#[track_caller]
pub fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Returns the settings of a node for a test in which a lease ends.
pub fn quick(name: &str) -> Builder {
    Cluster::builder(name).lease(Duration::from_secs(1))
}

/// Returns the settings of a node for a test in which no lease must end, however busy the machine.
pub fn patient(name: &str) -> Builder {
    Cluster::builder(name).lease(Duration::from_secs(10))
}

pub struct TestNode {
    pub scheduler: Scheduler,
    pub cluster: Cluster,
    pub changes: Arc<Mutex<Vec<NodeChange>>>,
}

impl TestNode {
    pub fn join(scheduler: Scheduler, builder: Builder, engine: impl Engine) -> Self {
        let changes = Arc::new(Mutex::new(Vec::new()));
        let told = changes.clone();
        let builder = builder.on_change(move |change| told.lock().unwrap().push(change.clone()));
        Self {
            cluster: builder.join(&scheduler, engine).unwrap(),
            scheduler,
            changes,
        }
    }

    #[track_caller]
    pub fn reaches(&self, nodes: usize) {
        wait_for("the nodes are reached", || {
            self.cluster.nodes().len() == nodes
        });
    }

    /// Waits until the node is reached: the other node may have reached this one before.
    pub fn number_of(&self, name: &str) -> u32 {
        let number = || {
            let nodes = self.cluster.nodes();
            let node = nodes.iter().find(|node| node.name == name);
            node.map(|node| node.number)
        };
        wait_for("the node is reached", || number().is_some());
        number().unwrap()
    }

    /// The number here of a process of another node.
    pub fn sees(&self, pid: Pid, of: &str) -> Pid {
        pid.with_node(self.number_of(of))
    }

    pub fn losses(&self) -> Vec<NodeLoss> {
        let changes = self.changes.lock().unwrap();
        let loss = |change: &NodeChange| match change {
            NodeChange::Down { why, .. } => Some(*why),
            _ => None,
        };
        changes.iter().filter_map(loss).collect()
    }

    /// Spawns a process that tells of exits.
    pub fn guard(&self) -> (Pid, mpsc::Receiver<(Pid, ExitReason)>) {
        let (sender, exits) = mpsc::channel();
        let spawn = Spawn::new().trap_exits(true);
        let guard = process_scheduler::from_async(move |mut inbox: Inbox<()>| async move {
            while inbox.cancelled().is_none() {
                inbox.event().await;
                while let Some(exit) = inbox.next_exit() {
                    let _ = sender.send(exit);
                }
            }
        });
        let guard = self.scheduler.spawn_process(guard, spawn);
        (guard.unwrap().pid(), exits)
    }
}

/// Joins a node with one worker.
pub fn join(network: &MemoryNetwork, name: &str, builder: Builder) -> TestNode {
    let scheduler = Scheduler::builder().workers(1).build();
    TestNode::join(scheduler, builder, network.engine(name))
}
