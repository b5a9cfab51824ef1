//! Two nodes of a cluster, over a network that brings frames again long after they were sent: in a
//! later session, too.
use crate::cluster::{Account, LEASE, Member};
use process_cluster::{Engine, MemoryEngine, MemoryNetwork, PeerId, Sink, Unsent};
use selvedge_sim::{Run, Sim, random_below, thread};
use std::{sync::Mutex, time::Duration};

const MS: Duration = Duration::from_millis(1);
/// How many frames the network has at most.
const KEPT: u64 = 32;

/// An engine that sends some frames again.
struct Late {
    engine: MemoryEngine,
    sent: Mutex<Vec<(PeerId, Vec<u8>)>>,
}

impl Late {
    fn new(network: &MemoryNetwork, name: &str) -> Self {
        Self {
            engine: network.engine(name),
            sent: Mutex::default(),
        }
    }

    /// Takes note of a frame in the place of another one. Returns one of them at times.
    fn pass(&self, to: &PeerId, frame: &[u8]) -> Option<(PeerId, Vec<u8>)> {
        let mut sent = self.sent.lock().unwrap();
        let at = random_below(KEPT) as usize;
        let new = (to.clone(), frame.to_vec());
        match sent.get_mut(at) {
            Some(kept) => Some(std::mem::replace(kept, new)),
            None => {
                sent.push(new);
                None
            }
        }
    }
}

impl Engine for Late {
    fn start(&self, sink: Sink) -> Result<(), String> {
        self.engine.start(sink)
    }

    fn send(&self, to: &PeerId, frame: &[u8]) -> Result<(), Unsent> {
        if let Some((to, frame)) = self.pass(to, frame) {
            self.engine.send(&to, &frame)?;
        }
        self.engine.send(to, frame)
    }

    fn stop(&self) {
        self.engine.stop();
    }
}

/// Deposits come in order and at most once, and the nodes meet again.
pub fn cluster_late(sim: Sim) -> Run {
    sim.run_main(|| {
        let network = MemoryNetwork::new();
        let [a, b] = ["a", "b"].map(|name| Member::join_by(Late::new(&network, name), name));
        let cuts = {
            let network = network.clone();
            thread::spawn(move || {
                for _ in 0..1 + random_below(3) {
                    thread::sleep(MS * random_below(60) as u32);
                    network.cut("a", "b");
                    network.cut("b", "a");
                    thread::sleep(2 * LEASE);
                    network.heal();
                }
            })
        };
        let mut last = 0;
        for number in 1..=60 {
            thread::sleep(MS * random_below(8) as u32);
            if let Some(pid) = a.cluster.whereis("b") {
                let account = a.scheduler.address::<Account>(pid).unwrap();
                if account.try_send(Account::Deposit(number)).is_ok() {
                    last = number;
                }
            }
        }
        cuts.join().unwrap();
        thread::sleep(5 * LEASE);
        assert_eq!((a.cluster.nodes().len(), b.cluster.nodes().len()), (1, 1));
        let pid = a.cluster.whereis("b").expect("the name is known");
        let account = a.scheduler.address::<Account>(pid).unwrap();
        let balance = account.call(Account::Balance, LEASE).wait().unwrap();
        assert!(balance <= last);
    })
}
