//! Three nodes of a cluster and the faults of networks and hosts: a node is killed, stopped,
//! started again or stops reading, a way drops all frames, the network is split in two.
//!
//! 1. Of the messages that a node took, all are delivered, or the loss of their node is told.
//! 2. A call ends before its time is over.
//! 3. A monitor fires once.
//! 4. The pid of a process reaches no other process.
//! 5. A node takes few messages for one that takes none, and takes more afterwards.
//! 6. Within five leases after the last fault the nodes agree on the nodes, the names and groups.
use crate::cluster::Account;
use process_cluster::{
    Cluster, Engine, MemoryEngine, MemoryNetwork, NodeChange, PeerId, Sink, Unsent,
};
use process_scheduler::{
    CallError, Event, EventsOf, NoCommand, OutputOf, Pid, Process, Scheduler, Step, StepOf,
};
use selvedge_sim::{Run, Sim, random_below, thread};
use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex},
    time::Duration,
};

const LEASE: Duration = Duration::from_millis(40);
const MS: Duration = Duration::from_millis(1);
const NAMES: [&str; 3] = ["a", "b", "c"];
const WINDOW: u32 = 8;

/// The state that all nodes of a run share.
#[derive(Clone, Default)]
struct World {
    network: MemoryNetwork,
    /// The nodes that are stopped, and those that read nothing.
    stopped: Arc<Mutex<BTreeSet<&'static str>>>,
    deaf: Arc<Mutex<BTreeSet<&'static str>>>,
    /// The deposits that came to each account, by its number.
    deposits: Arc<Mutex<BTreeMap<u64, u64>>>,
    /// The deposits that came to another account.
    astray: Arc<Mutex<u64>>,
}

/// An engine whose sends wait for nodes that are stopped or read nothing.
struct Gate(MemoryEngine, &'static str, World);

impl Engine for Gate {
    fn start(&self, sink: Sink) -> Result<(), String> {
        self.0.start(sink)
    }

    fn send(&self, to: &PeerId, frame: &[u8]) -> Result<(), Unsent> {
        while self.2.blocks(self.1, &to.0) {
            thread::sleep(MS);
        }
        self.0.send(to, frame)
    }

    fn stop(&self) {
        self.0.stop();
    }
}

impl World {
    fn blocks(&self, from: &str, to: &str) -> bool {
        let stopped = self.stopped.lock().unwrap();
        stopped.contains(from) || stopped.contains(to) || self.deaf.lock().unwrap().contains(to)
    }

    fn join(&self, name: &'static str) -> Member {
        let scheduler = Scheduler::builder().workers(1).build();
        let lost = Arc::new(Mutex::new(BTreeSet::new()));
        let losses = lost.clone();
        let engine = Gate(self.network.engine(name), name, self.clone());
        let cluster = Cluster::builder(name)
            .lease(LEASE)
            .queue(WINDOW)
            .codec::<Account>("account/1")
            .on_change(move |change| {
                if let NodeChange::Down { node, .. } = change {
                    losses.lock().unwrap().insert(*node);
                }
            })
            .join(&scheduler, engine)
            .unwrap();
        let own = {
            let mut deposits = self.deposits.lock().unwrap();
            let own = deposits.len() as u64;
            deposits.insert(own, 0);
            own
        };
        let world = self.clone();
        let account = scheduler.spawn_fn(move |message, _| match message {
            Account::Deposit(to) if to == own => {
                *world.deposits.lock().unwrap().entry(own).or_default() += 1;
            }
            Account::Deposit(_) => *world.astray.lock().unwrap() += 1,
            Account::Balance(reply) => drop(reply.send(own)),
        });
        let account = account.unwrap().pid();
        cluster.register(name, account).unwrap();
        cluster.join("all", account).unwrap();
        Member {
            scheduler,
            cluster,
            lost,
        }
    }

    /// Makes a fault, and undoes it.
    fn fail(&self, others: &mut [Option<Member>; 2]) {
        let at = random_below(2) as usize;
        let name = NAMES[1 + at];
        let while_it_lasts = || thread::sleep(MS * random_below(130) as u32);
        match random_below(7) {
            0 | 1 => {
                let kills = random_below(2) == 0;
                if kills {
                    self.network.kill(name);
                }
                drop(others[at].take());
                while_it_lasts();
                others[at] = Some(self.join(name));
            }
            2 => {
                self.stopped.lock().unwrap().insert(name);
                while_it_lasts();
                self.stopped.lock().unwrap().clear();
            }
            3 => {
                self.deaf.lock().unwrap().insert(name);
                while_it_lasts();
                self.deaf.lock().unwrap().clear();
            }
            4 => {
                let [from, to] = match random_below(2) {
                    0 => ["a", name],
                    _ => [name, "a"],
                };
                self.network.cut(from, to);
                while_it_lasts();
                self.network.heal();
            }
            5 => {
                let alone = NAMES[random_below(3) as usize];
                for other in NAMES.into_iter().filter(|other| *other != alone) {
                    self.network.cut(alone, other);
                    self.network.cut(other, alone);
                }
                while_it_lasts();
                self.network.heal();
            }
            _ => {
                self.network.repeat(1 + random_below(8) as u32);
                self.network.lose_next(random_below(3) as u32);
            }
        }
    }
}

struct Member {
    scheduler: Scheduler,
    cluster: Cluster,
    /// The nodes that this one has lost.
    lost: Arc<Mutex<BTreeSet<u32>>>,
}

/// Counts the exits of each process.
#[derive(Clone, Default)]
struct Guard(Arc<Mutex<HashMap<Pid, u32>>>);

impl Process for Guard {
    type Message = ();
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        for event in events {
            match event {
                Event::Exit { pid, .. } => *self.0.lock().unwrap().entry(pid).or_default() += 1,
                Event::Cancel(_) => return Step::Done,
                _ => {}
            }
        }
        Step::Idle
    }
}

/// The deposits and monitors of one process.
#[derive(Default)]
struct Record {
    /// The node's name.
    node: &'static str,
    number: Option<u64>,
    taken: u64,
    monitors: u32,
}

/// Sends deposits to the accounts of the other nodes, asks for their numbers, and monitors them.
fn client(world: &World, node: &Member, guard: Pid) -> BTreeMap<Pid, Record> {
    let mut records: BTreeMap<Pid, Record> = BTreeMap::new();
    for _ in 0..40 {
        thread::sleep(MS * random_below(8) as u32);
        let name = NAMES[1 + random_below(2) as usize];
        if let Some(pid) = node.cluster.whereis(name) {
            records.entry(pid).or_default().node = name;
        }
        // Also one of a node that is lost or was started again.
        if records.is_empty() {
            continue;
        }
        let at = random_below(records.len() as u64) as usize;
        let (&pid, record) = records.iter_mut().nth(at).unwrap();
        let account = node.scheduler.address::<Account>(pid).unwrap();
        let Some(number) = record.number else {
            match account.call(Account::Balance, 3 * LEASE).wait() {
                Ok(number) => record.number = Some(number),
                Err(CallError::Timeout) => panic!("a call outlives the lease of its node"),
                Err(_) => {}
            }
            continue;
        };
        let is_blocked = || world.blocks("a", record.node);
        let was_blocked = is_blocked();
        let deposits = if random_below(4) == 0 { 40 } else { 1 };
        let sent = (0..deposits).filter(|_| account.try_send(Account::Deposit(number)).is_ok());
        let sent = sent.count() as u64;
        // Messages that were on their way before may be acknowledged meanwhile.
        let most = 2 * u64::from(WINDOW) + 1;
        assert!(
            !was_blocked || !is_blocked() || sent <= most,
            "{sent} are taken"
        );
        record.taken += sent;
        if random_below(3) == 0 {
            node.scheduler.monitor(guard, pid);
            record.monitors += 1;
        }
    }
    records
}

/// Rule 6.
fn agree(nodes: &[&Member]) {
    for node in nodes {
        let reached = node.cluster.nodes();
        assert_eq!(reached.len(), 2, "{:?}", node.cluster);
        assert_eq!(node.cluster.members("all").len(), 3);
        for name in NAMES {
            let pid = node.cluster.whereis(name).expect("the name is known");
            let of = reached.iter().find(|other| other.number == pid.node());
            let of = of.map_or(node.cluster.name(), |other| &*other.name);
            assert_eq!(of, name);
        }
    }
}

/// The promises hold whichever faults there are.
pub fn cluster_faults(sim: Sim) -> Run {
    sim.run_main(|| {
        let world = World::default();
        let [a, b, c] = NAMES.map(|name| world.join(name));
        let exits = Guard::default();
        let guard = a.scheduler.spawn(exits.clone()).unwrap().pid();
        let chaos = {
            let world = world.clone();
            thread::spawn(move || {
                let mut others = [Some(b), Some(c)];
                for _ in 0..1 + random_below(3) {
                    thread::sleep(MS * random_below(60) as u32);
                    world.fail(&mut others);
                }
                world.network.lose_next(0);
                others.map(Option::unwrap)
            })
        };
        let records = client(&world, &a, guard);
        let [b, c] = chaos.join().unwrap();
        thread::sleep(5 * LEASE);
        agree(&[&a, &b, &c]);
        assert_eq!(
            *world.astray.lock().unwrap(),
            0,
            "deposits reach other accounts"
        );
        for (pid, record) in &records {
            let is_lost = a.lost.lock().unwrap().contains(&pid.node());
            let came = record
                .number
                .map_or(0, |number| world.deposits.lock().unwrap()[&number]);
            assert!(
                came <= record.taken,
                "{came} of {} deposits came",
                record.taken
            );
            assert!(
                is_lost || came == record.taken,
                "{came} of {}",
                record.taken
            );
        }
        for name in &NAMES[1..] {
            let pid = a.cluster.whereis(name).unwrap();
            let account = a.scheduler.address::<Account>(pid).unwrap();
            let number = account.call(Account::Balance, LEASE).wait().unwrap();
            account.try_send(Account::Deposit(number)).unwrap();
        }
        drop((b, c));
        thread::sleep(3 * LEASE);
        let exits = exits.0.lock().unwrap();
        for (pid, record) in &records {
            let exits = exits.get(pid).copied().unwrap_or(0);
            assert_eq!(exits, record.monitors, "the exits of {pid}");
        }
    })
}
