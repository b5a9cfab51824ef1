//! Processes that one node spawns on another one.
mod common;

use common::{LONG, TestNode, join, patient, quick, wait_for};
use process_cluster::{
    Builder, Cluster, DecodeError, Decoder, Encoder, MemoryNetwork, Message, SpawnOnError,
};
use process_scheduler::{
    Context, EventsOf, ExitReason, Inbox, InitError, Input, NoCommand, OutputOf, Pid, Process,
    Reply, Scheduler, Spawn, Step, StepOf, from_async, from_fn,
};
use std::{
    future::{Future, IntoFuture},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

/// The processes of a node's own: the registrar.
const OWN: usize = 1;

/// Starts with the number of an account, and answers with it.
fn account(number: u64) -> (impl Process<Message = Reply<u64>>, Spawn) {
    let process = from_fn(move |reply: Reply<u64>, _| {
        let _ = reply.send(number);
    });
    (process, Spawn::new())
}

/// Ends in its first step.
fn brief(why: String) -> (impl Process, Spawn) {
    let process = from_async(|_: Inbox<()>| async move {
        match &*why {
            "normal" => Ok(()),
            _ => Err(why),
        }
    });
    (process, Spawn::new())
}

/// Refuses its start.
struct Refuses;

impl Process for Refuses {
    type Message = ();
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn init(&mut self, _: &Context<'_, ()>, _: &str, _: Input) -> Result<(), InitError> {
        Err(InitError::Failed("not today".to_owned()))
    }

    fn step(&mut self, _: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        Step::Done
    }
}

/// Arguments that have no decoding, or a long encoding, or a place for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Odd {
    Garbage,
    Long(u32),
}

impl Message for Odd {
    fn encode(self, out: &mut Encoder<'_>) {
        match self {
            Self::Garbage => out.u8(9),
            Self::Long(length) => out.bytes(&vec![0; length as usize]),
        }
    }

    fn decode(_: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Err(DecodeError::Invalid)
    }
}

fn bank(builder: Builder) -> Builder {
    builder
        .behaviour("account/1", account)
        .behaviour("brief/1", brief)
        .behaviour("refuses/1", |()| (Refuses, Spawn::new()))
        .behaviour("panics/1", |n: u8| -> (Refuses, Spawn) { panic!("{n}") })
        .behaviour("odd/1", |_: Odd| (Refuses, Spawn::new()))
        .behaviour("secret/1", account)
        .allow_spawn(|node, tag| node == "a" && tag != "secret/1")
}

fn two(settings: fn(&str) -> Builder) -> (MemoryNetwork, [TestNode; 2]) {
    let network = MemoryNetwork::new();
    let nodes = ["a", "b"].map(|name| join(&network, name, bank(settings(name))));
    nodes.iter().for_each(|node| node.reaches(1));
    (network, nodes)
}

impl TestNode {
    fn spawns<A>(&self, on: &str, tag: &str, arguments: A) -> Result<Pid, SpawnOnError<A>>
    where
        A: Message + Clone,
    {
        let node = self.number_of(on);
        self.cluster.spawn_on(node, tag, arguments).wait()
    }

    fn asks(&self, account: Pid) -> Option<u64> {
        let address = self.scheduler.address::<Reply<u64>>(account)?;
        address.call(|reply| reply, LONG).wait().ok()
    }
}

#[test]
fn process_is_spawned_on_another_node_and_here() {
    let (_network, [a, b]) = two(patient);
    let far = a.spawns("b", "account/1", 7_u64).unwrap();
    assert!(b.scheduler.inspect(far.with_node(0)).is_some());
    let own = a.cluster.spawn_on(a.scheduler.node(), "secret/1", 8_u64);
    assert_eq!(a.asks(own.wait().unwrap()), Some(8));
    let (sender, seen) = std::sync::mpsc::channel();
    let spawning = a.cluster.spawn_on(far.node(), "account/1", 9_u64);
    let awaits = a.scheduler.spawn_async(|_: Inbox<()>| async move {
        sender.send(spawning.await).unwrap();
    });
    assert!(awaits.is_ok());
    let spawned = seen.recv_timeout(LONG).unwrap().unwrap();
    assert_ne!(spawned, far);
    assert_eq!(spawned.node(), far.node());
}

/// Fails if a refusal is another one, or keeps the arguments, or is not counted.
#[test]
fn refused_spawn_gives_its_arguments_back() {
    let (network, [a, b]) = two(patient);
    let unknown = a.spawns("b", "account/2", 7_u64);
    assert_eq!(unknown, Err(SpawnOnError::UnknownTag(7)));
    assert_eq!(
        a.spawns("b", "secret/1", 7_u64),
        Err(SpawnOnError::NotAuthorized(7))
    );
    assert_eq!(
        b.spawns("a", "account/1", 7_u64),
        Err(SpawnOnError::NotAuthorized(7))
    );
    assert_eq!(
        (a.cluster.metrics().refused, b.cluster.metrics().refused),
        (1, 1)
    );
    let text = "no number".to_owned();
    let bad = a.spawns("b", "account/1", text.clone());
    assert_eq!(bad, Err(SpawnOnError::BadArguments(text.clone())));
    assert_eq!(
        a.spawns("b", "odd/1", Odd::Garbage),
        Err(SpawnOnError::BadArguments(Odd::Garbage))
    );
    let long = Odd::Long(2 << 20);
    assert_eq!(
        a.spawns("b", "odd/1", long.clone()),
        Err(SpawnOnError::NotCarried(long))
    );
    let refused = a.spawns("b", "refuses/1", ()).unwrap_err();
    assert!(refused.to_string().contains("not today"), "{refused}");
    let panicked = a.spawns("b", "panics/1", 7_u8).unwrap_err();
    assert!(panicked.to_string().contains("panicked"), "{panicked}");
    assert_eq!(panicked.into_arguments(), 7);
    let far = a.spawns("b", "account/1", 7_u64).unwrap();
    let by_far = a
        .cluster
        .spawn_on(far.node(), "account/1", 7_u64)
        .monitored_by(far);
    assert_eq!(by_far.wait(), Err(SpawnOnError::NotHere(7)));
    // Nothing that was refused is left.
    assert_eq!(b.scheduler.list().len(), OWN + 1);
    network.kill("b");
    wait_for("the node is lost", || a.cluster.nodes().is_empty());
    let down = a.cluster.spawn_on(far.node(), "account/1", 7_u64).wait();
    assert_eq!(down, Err(SpawnOnError::NodeDown(7)));
}

#[test]
fn node_spawns_for_nobody_by_default() {
    let network = MemoryNetwork::new();
    let nodes = ["a", "b"].map(|name| {
        let builder = patient(name).behaviour("account/1", account);
        join(&network, name, builder)
    });
    nodes.iter().for_each(|node| node.reaches(1));
    let [a, b] = &nodes;
    assert_eq!(
        a.spawns("b", "account/1", 1_u64),
        Err(SpawnOnError::NotAuthorized(1))
    );
    assert_eq!(b.cluster.metrics().refused, 1);
    let own = a.cluster.spawn_on(a.scheduler.node(), "account/1", 1_u64);
    assert!(own.wait().is_ok());
    let taken = Cluster::builder("c")
        .behaviour("n", account)
        .behaviour("n", brief);
    let error = taken
        .join(&Scheduler::new(), network.engine("c"))
        .unwrap_err();
    assert!(
        error.to_string().contains("another behaviour \"n\""),
        "{error}"
    );
}

/// Fails if a process that ends in its first step ends unseen, or is seen twice.
#[test]
fn exit_of_a_brief_process_reaches_monitor_and_link() {
    let (_network, [a, b]) = two(patient);
    let _ = &b;
    let (guard, exits) = a.guard();
    for round in 0..200 {
        let why = ["normal", "in a hurry"][round % 2];
        let reason = match why {
            "normal" => ExitReason::Normal,
            why => ExitReason::failed(why),
        };
        for node in [a.number_of("b"), a.scheduler.node()] {
            let spawn = a.cluster.spawn_on(node, "brief/1", why.to_owned());
            let (spawn, exits_due) = match round % 3 {
                0 => (spawn.linked_to(guard), 1),
                1 => (spawn.monitored_by(guard), 1),
                _ => (spawn.linked_to(guard).monitored_by(guard), 2),
            };
            let pid = spawn.wait().unwrap();
            for _ in 0..exits_due {
                assert_eq!(exits.recv_timeout(LONG), Ok((pid, reason.clone())));
            }
        }
    }
    assert_eq!(exits.try_recv().ok(), None);
}

#[test]
fn spawned_process_ends_with_its_link_and_its_node() {
    let (network, [a, b]) = two(quick);
    let (guard, exits) = a.guard();
    let brief = a.scheduler.spawn_fn(|_: u8, _| ()).unwrap().pid();
    let node = a.number_of("b");
    let spawn = |to| a.cluster.spawn_on(node, "account/1", 1_u64).linked_to(to);
    let (one, two) = (spawn(brief).wait().unwrap(), spawn(guard).wait().unwrap());
    let ends = [one, two].map(|pid| b.scheduler.exit_of(pid.with_node(0)));
    let [end_of_one, end_of_two] = ends;
    a.scheduler.kill(brief);
    assert_eq!(end_of_one.wait(), ExitReason::Killed);
    network.cut("a", "b");
    network.cut("b", "a");
    assert_eq!(exits.recv_timeout(LONG), Ok((two, ExitReason::NodeDown)));
    assert_eq!(end_of_two.wait(), ExitReason::NodeDown);
    // One that has ended before the spawn.
    network.heal();
    a.reaches(1);
    let late = a.cluster.spawn_on(a.number_of("b"), "account/1", 1_u64);
    assert!(late.linked_to(brief).wait().is_ok());
    wait_for("it ends", || b.scheduler.list().len() == OWN);
}

/// Fails if a spawn ends twice or not at all, or a process without a link is left.
#[test]
fn spawn_on_a_node_that_is_lost_ends_once() {
    let network = MemoryNetwork::new();
    let starts = Arc::new(AtomicUsize::new(0));
    let counted = starts.clone();
    let b = quick("b").queue(8).allow_spawn(|_, _| true);
    let b = b.behaviour("account/1", move |n| {
        counted.fetch_add(1, SeqCst);
        account(n)
    });
    let (a, b) = (join(&network, "a", quick("a")), join(&network, "b", b));
    [&a, &b].iter().for_each(|node| node.reaches(1));
    let (guard, exits) = a.guard();
    let mut node = a.number_of("b");
    let (mut spawned, mut in_doubt, mut refused) = (0, 0, 0);
    for round in 0..60_u64 {
        if round % 6 == 5 {
            network.lose_next(1 + round as u32 % 3);
        }
        let spawns: Vec<_> = (0..12)
            .map(|n| {
                let spawn = a.cluster.spawn_on(node, "account/1", n);
                spawn.linked_to(guard).into_future()
            })
            .collect();
        for (n, spawning) in spawns.into_iter().enumerate() {
            let ended = in_a_process(&a.scheduler, spawning);
            match ended {
                Ok(_) => spawned += 1,
                Err(SpawnOnError::InDoubt(back)) if back == n as u64 => in_doubt += 1,
                Err(SpawnOnError::Full(back) | SpawnOnError::NodeDown(back))
                    if back == n as u64 =>
                {
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
        a.reaches(1);
        node = a.number_of("b");
    }
    assert!(spawned > 0 && refused > 0, "{spawned} {in_doubt} {refused}");
    assert!((spawned..=spawned + in_doubt).contains(&starts.load(SeqCst)));
    // Each that was spawned gives one exit, and none is left without its link.
    network.kill("b");
    for _ in 0..spawned {
        let (_, reason) = exits.recv_timeout(LONG).unwrap();
        assert_eq!(reason, ExitReason::NodeDown);
    }
    drop(b.cluster);
    wait_for("none is left", || b.scheduler.list().is_empty());
    thread::sleep(Duration::from_millis(5));
    assert_eq!(exits.try_recv().ok(), None);
}

/// Waits for a future in a process.
fn in_a_process<T: Send + 'static>(
    scheduler: &Scheduler,
    future: impl Future<Output = T> + Send + 'static,
) -> T {
    let (sender, seen) = std::sync::mpsc::channel();
    let waits = scheduler.spawn_async(|_: Inbox<()>| async move {
        let _ = sender.send(future.await);
    });
    drop(waits);
    seen.recv_timeout(LONG).expect("the future ends")
}
