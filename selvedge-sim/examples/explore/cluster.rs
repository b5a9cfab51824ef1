//! Three nodes of a cluster, over a network that loses, repeats and delays frames, is cut, and
//! whose nodes are killed and started again.
use process_cluster::{Cluster, DecodeError, Decoder, Encoder, Engine, MemoryNetwork, Message};
use process_scheduler::{
    CallError, Event, EventsOf, NoCommand, OutputOf, Pid, Process, Reply, Scheduler, Step, StepOf,
};
use selvedge_sim::{Run, Sim, random_below, thread};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};

pub(super) const LEASE: Duration = Duration::from_millis(40);
const MS: Duration = Duration::from_millis(1);
const NAMES: [&str; 3] = ["a", "b", "c"];

pub(super) enum Account {
    /// The number of a deposit by a client.
    Deposit(u64),
    Balance(Reply<u64>),
}

impl Message for Account {
    fn encode(self, out: &mut Encoder<'_>) {
        match self {
            Self::Deposit(number) => {
                out.u8(0);
                out.u64(number);
            }
            Self::Balance(reply) => {
                out.u8(1);
                out.reply(reply);
            }
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match input.u8()? {
            0 => Self::Deposit(input.u64()?),
            1 => Self::Balance(input.reply()?),
            _ => return Err(DecodeError::Invalid),
        })
    }
}

pub(super) struct Member {
    pub(super) scheduler: Scheduler,
    pub(super) cluster: Cluster,
}

impl Member {
    fn join(network: &MemoryNetwork, name: &str) -> Self {
        Self::join_by(network.engine(name), name)
    }

    pub(super) fn join_by(engine: impl Engine, name: &str) -> Self {
        let scheduler = Scheduler::builder().workers(1).build();
        let builder = Cluster::builder(name).lease(LEASE).queue(8);
        let builder = builder.codec::<Account>("account/1");
        let cluster = builder.join(&scheduler, engine).unwrap();
        // Deposits come at most once and in their order.
        let mut last = 0;
        let account = scheduler.spawn_fn(move |message, _| match message {
            Account::Deposit(number) => {
                assert!(number > last, "deposit {number} comes after {last}");
                last = number;
            }
            Account::Balance(reply) => drop(reply.send(last)),
        });
        let account = account.unwrap().pid();
        cluster.register(name, account).unwrap();
        cluster.join("all", account).unwrap();
        Self { scheduler, cluster }
    }
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

/// Sends deposits to the accounts of the other nodes, and asks for balances.
fn client(node: &Member) {
    let exits = Guard::default();
    let guard = node.scheduler.spawn(exits.clone()).unwrap().pid();
    let mut monitors: HashMap<Pid, u32> = HashMap::new();
    for number in 1..=30 {
        let name = NAMES[1 + random_below(2) as usize];
        thread::sleep(MS * random_below(8) as u32);
        let Some(pid) = node.cluster.whereis(name) else {
            continue;
        };
        let account = node.scheduler.address::<Account>(pid).unwrap();
        let _ = account.try_send(Account::Deposit(number));
        if random_below(3) == 0 {
            node.scheduler.monitor(guard, pid);
            *monitors.entry(pid).or_default() += 1;
        }
        match account.call(Account::Balance, 3 * LEASE).wait() {
            // A deposit may be lost with its session, and the call be of the next one.
            Ok(balance) => assert!(balance <= number),
            // A silent way: the lease ends it.
            Err(CallError::Timeout) => panic!("a call outlives the lease of its node"),
            Err(_) => {}
        }
    }
    thread::sleep(4 * LEASE);
    for (pid, exits) in exits.0.lock().unwrap().iter() {
        let monitors = monitors.get(pid).copied().unwrap_or(0);
        assert!(*exits <= monitors, "{exits} exits of {monitors} monitors");
    }
}

/// Calls end, deposits come in order, and nodes agree soon after the last fault.
pub fn cluster(sim: Sim) -> Run {
    sim.run_main(|| {
        let network = MemoryNetwork::new();
        let [a, b, c] = NAMES.map(|name| Member::join(&network, name));
        let chaos = {
            let network = network.clone();
            thread::spawn(move || {
                let mut others = [Some(b), Some(c)];
                for _ in 0..random_below(5) {
                    thread::sleep(MS * random_below(60) as u32);
                    let [from, to] = [(); 2].map(|()| NAMES[random_below(3) as usize]);
                    match random_below(6) {
                        0 => network.cut(from, to),
                        1 => network.lose_next(1 + random_below(3) as u32),
                        2 => network.repeat(1 + random_below(5) as u32),
                        3 => network.set_latency(MS * random_below(4) as u32),
                        4 => network.heal(),
                        _ => {
                            let at = random_below(2) as usize;
                            let name = NAMES[1 + at];
                            if random_below(2) == 0 {
                                network.kill(name);
                            }
                            drop(others[at].take());
                            thread::sleep(MS * random_below(60) as u32);
                            others[at] = Some(Member::join(&network, name));
                        }
                    }
                }
                network.heal();
                network.set_latency(Duration::ZERO);
                others.map(Option::unwrap)
            })
        };
        client(&a);
        let [b, c] = chaos.join().unwrap();
        thread::sleep(5 * LEASE);
        for node in [&a, &b, &c] {
            assert_eq!(
                node.cluster.nodes().len(),
                2,
                "{node:?}",
                node = node.cluster
            );
            assert_eq!(node.cluster.members("all").len(), 3);
            for name in NAMES {
                let pid = node.cluster.whereis(name).expect("the name is known");
                let nodes = node.cluster.nodes();
                let of = nodes.iter().find(|other| other.number == pid.node());
                let of = of.map_or(node.cluster.name(), |other| &*other.name);
                assert_eq!(of, name);
            }
        }
    })
}
