//! Many nodes: they join, the network is split in two, and heals.
use process_cluster::{Cluster, Engine, MemoryEngine, MemoryNetwork, PeerId, Sink, Unsent};
use process_scheduler::Scheduler;
use selvedge_sim::{Run, Sim, thread};
use std::{
    env,
    sync::{Arc, Mutex},
    time::Duration,
};

const LEASE: Duration = Duration::from_secs(1);

/// How many nodes there are: 30, or as many as the variable says.
fn size() -> usize {
    let given = env::var("SELVEDGE_NODES").ok();
    given.map_or(30, |given| {
        given.parse().expect("SELVEDGE_NODES is a number")
    })
}

/// An engine that counts frames and their bytes.
struct Counted(MemoryEngine, Arc<Mutex<(u64, u64)>>);

impl Engine for Counted {
    fn start(&self, sink: Sink) -> Result<(), String> {
        self.0.start(sink)
    }

    fn send(&self, to: &PeerId, frame: &[u8]) -> Result<(), Unsent> {
        {
            let mut counts = self.1.lock().unwrap();
            counts.0 += 1;
            counts.1 += frame.len() as u64;
        }
        self.0.send(to, frame)
    }

    fn stop(&self) {
        self.0.stop();
    }
}

/// Returns whether a node reaches those of `others`, and knows their names and members.
fn knows(cluster: &Cluster, others: &[String]) -> bool {
    let are_named = others.iter().all(|name| cluster.whereis(name).is_some());
    let size = others.len();
    are_named && cluster.nodes().len() == size - 1 && cluster.members("all").len() == size
}

/// Within five leases of a join, a split and a healing, all nodes know the nodes, names and members
/// that they reach. Prints the frames of a node if `SELVEDGE_NODES` is set.
pub fn cluster_size(sim: Sim) -> Run {
    let size = size();
    sim.steps(u64::MAX).run_main(move || {
        let network = MemoryNetwork::new();
        let counts = Arc::new(Mutex::new((0, 0)));
        let names: Vec<_> = (0..size).map(|number| format!("node-{number}")).collect();
        let join = |name: &String| {
            let scheduler = Scheduler::builder().workers(1).build();
            let engine = Counted(network.engine(name), counts.clone());
            let builder = Cluster::builder(name).lease(LEASE);
            let cluster = builder.join(&scheduler, engine).unwrap();
            let process = scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid();
            cluster.register(name, process).unwrap();
            cluster.join("all", process).unwrap();
            (scheduler, cluster)
        };
        let nodes: Vec<_> = names.iter().map(join).collect();
        let (left, right) = names.split_at(size / 2);
        let report = |what: &str, leases: u32| {
            let (frames, bytes) = std::mem::take(&mut *counts.lock().unwrap());
            let (frames, bytes) = (frames / size as u64, bytes / size as u64);
            if env::var("SELVEDGE_NODES").is_ok() {
                println!("{what}, {leases} leases: {frames} frames, {bytes} bytes a node");
            }
        };
        let converges = |what: &str, is_split: bool| {
            for lease in 1..=5 {
                thread::sleep(LEASE);
                let mut all = nodes.iter().enumerate();
                let known = |at: usize| match (is_split, at < size / 2) {
                    (false, _) => &*names,
                    (true, true) => left,
                    (true, false) => right,
                };
                if all.all(|(at, (_, cluster))| knows(cluster, known(at))) {
                    return report(what, lease);
                }
            }
            panic!("the nodes do not agree after five leases: {what}");
        };
        converges("join", false);
        for (from, to) in left.iter().flat_map(|l| right.iter().map(move |r| (l, r))) {
            network.cut(from, to);
            network.cut(to, from);
        }
        converges("split", true);
        network.heal();
        converges("heal", false);
        thread::sleep(LEASE);
        report("rest", 1);
    })
}
