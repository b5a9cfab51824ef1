//! Sessions under transports and hooks that do what they may.
use crate::nodes::{
    Hub, LEASE, LONG, TestNode, Work, counts, join, join_with, patient, quick, two, wait_for,
};
use process_cluster::{
    Cluster, DecodeError, Decoder, Encoder, MemoryNetwork, Message, NodeChange, PeerId,
};
use process_scheduler::{Pid, Scheduler};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    time::{Duration, Instant},
};

/// Fails if the loss of one transport leaves the node unreached, or it is up twice.
#[test]
fn two_transports_to_one_node_give_one_session() {
    let hub = Hub::default();
    let a = join(
        quick("a"),
        hub.wire("a", &[["b1", "b", "a1"], ["b2", "b", "a2"]]),
    );
    let b = join(
        quick("b"),
        hub.wire("b", &[["a1", "a", "b1"], ["a2", "a", "b2"]]),
    );
    let (worker, _held) = b.worker();
    b.cluster.register("worker", worker).unwrap();
    let works = || {
        let far = a.cluster.whereis("worker");
        far.is_some_and(|far| a.counts(far) == Ok(0))
    };
    wait_for("the worker answers", works);
    // The session has one of them.
    for (at_a, at_b) in
        [("b1", "a1"), ("b2", "a2")].map(|(b, a)| (PeerId(b.into()), PeerId(a.into())))
    {
        hub.sink("a").down(&at_a);
        hub.sink("b").down(&at_b);
        wait_for("the worker answers", works);
        hub.sink("a").up(at_a);
        hub.sink("b").up(at_b);
        wait_for("the worker answers", works);
    }
    a.reaches(1);
    let changes = a.changes.lock().unwrap();
    let is_up = |change: &NodeChange| matches!(change, NodeChange::Up { .. });
    assert!(
        changes
            .iter()
            .map(is_up)
            .eq((0..changes.len()).map(|n| n % 2 == 0)),
        "{changes:?}"
    );
}

#[test]
fn slow_on_change_hook_loses_no_node() {
    let network = MemoryNetwork::new();
    let a = join(quick("a"), network.engine("a"));
    let scheduler = Scheduler::builder().workers(1).build();
    let (release, is_over) = mpsc::channel::<()>();
    let (sender, has_begun) = mpsc::channel();
    let is_over = Mutex::new(is_over);
    let slow = quick("b").on_change(move |_| {
        let _ = sender.send(());
        let _ = is_over.lock().unwrap().recv();
    });
    let slow = slow.codec::<Work>("work");
    let b = slow.join(&scheduler, network.engine("b")).unwrap();
    wait_for("the node is reached", || b.nodes().len() == 1);
    has_begun.recv_timeout(LONG).unwrap();
    let (worker, _held) = a.worker();
    let begun = Instant::now();
    while begun.elapsed() < LEASE * 2 {
        let node = b.nodes()[0].number;
        assert_eq!(counts(&scheduler, worker.with_node(node)), Ok(0));
    }
    assert_eq!(a.losses(), []);
    drop(release);
}

/// Fails if `admit` runs under a lock that a send takes.
#[test]
fn admit_may_use_the_cluster() {
    let hub = Hub::default();
    let scheduler = Scheduler::builder().workers(1).build();
    let handle = scheduler.handle();
    let to = Arc::new(Mutex::new(None::<Pid>));
    let (far, (sender, admitted)) = (to.clone(), mpsc::channel());
    let admits = patient("a").admit(move |_| {
        let far = *far.lock().unwrap();
        if let Some(far) = far {
            sender.send(handle.try_send(far, vec![1_u8])).unwrap();
        }
        true
    });
    let a = join_with(scheduler, admits, hub.to("a", "b"));
    let b = join(patient("b"), hub.to("b", "a"));
    [&a, &b].iter().for_each(|node| node.reaches(1));
    let (sender, bytes) = mpsc::channel();
    let process = b
        .scheduler
        .spawn_fn(move |sent: Vec<u8>, _| sender.send(sent).unwrap());
    let far = process.unwrap().pid().with_node(a.number_of("b"));
    *to.lock().unwrap() = Some(far);
    // The node begins another session, while this one's is up.
    hub.sink("b").down(&PeerId("a".to_owned()));
    hub.sink("b").up(PeerId("a".to_owned()));
    assert!(admitted.recv_timeout(LONG).is_ok());
    // A message of the old session is lost.
    wait_for("the nodes meet again", || {
        let _ = a.scheduler.try_send(far, vec![2_u8]);
        bytes.try_iter().any(|bytes| bytes == [2])
    });
}

#[test]
fn node_that_dials_itself_is_ignored() {
    let hub = Hub::default();
    let a = join(patient("a"), hub.wire("a", &[["self", "a", "self"]]));
    let (worker, _held) = a.worker();
    a.cluster.register("worker", worker).unwrap();
    a.cluster.join("group", worker).unwrap();
    wait_for("its hello has come", || a.cluster.metrics().invalid > 0);
    assert_eq!(a.cluster.nodes(), []);
    hub.sink("a").down(&PeerId("self".to_owned()));
    assert_eq!(a.cluster.whereis("worker"), Some(worker));
    assert_eq!(a.cluster.members("group"), [worker]);
    assert_eq!(*a.changes.lock().unwrap(), []);
}

#[test]
fn longest_lease_and_shortest_lease_are_taken() {
    let network = MemoryNetwork::new();
    let leases = [
        ("a", Duration::MAX),
        ("b", Duration::MAX),
        ("c", Duration::ZERO),
    ];
    let [a, b, c] =
        leases.map(|(name, lease)| join(Cluster::builder(name).lease(lease), network.engine(name)));
    wait_for("the node is reached", || {
        a.cluster.nodes().iter().any(|node| node.name == "b")
    });
    let (worker, _held) = b.worker();
    assert_eq!(a.counts(worker.with_node(a.number_of("b"))), Ok(0));
    drop((a.cluster, c.cluster, b.cluster));
}

/// Fails if the second one takes the first one's place in the network.
#[test]
fn second_node_of_a_name_is_refused_and_may_retry() {
    let network = MemoryNetwork::new();
    let [a, b] = ["a", "b"].map(|name| join(patient(name), network.engine(name)));
    [&a, &b].iter().for_each(|node| node.reaches(1));
    let scheduler = Scheduler::builder().workers(1).build();
    let second = patient("a").join(&scheduler, network.engine("a"));
    assert!(second.unwrap_err().to_string().contains("another node"));
    let c = join_with(scheduler, patient("c"), network.engine("c"));
    [&a, &b, &c].iter().for_each(|node| node.reaches(2));
    let (worker, _held) = a.worker();
    for other in [&b, &c] {
        assert_eq!(other.counts(worker.with_node(other.number_of("a"))), Ok(0));
        assert_eq!(other.losses(), []);
    }
}

/// Fails if the drop waits for the hook, or panics.
#[test]
fn cluster_may_be_dropped_in_its_own_hook() {
    let network = MemoryNetwork::new();
    let scheduler = Scheduler::builder().workers(1).build();
    let slot = Arc::new(Mutex::new(None::<Cluster>));
    let (taken, (sender, dropped)) = (slot.clone(), mpsc::channel());
    let hook = patient("a").on_change(move |_| {
        let cluster = taken.lock().unwrap().take();
        let had = cluster.is_some();
        drop(cluster);
        sender.send(had).unwrap();
    });
    let cluster = hook.join(&scheduler, network.engine("a")).unwrap();
    *slot.lock().unwrap() = Some(cluster);
    let b = join(patient("b"), network.engine("b"));
    assert_eq!(dropped.recv_timeout(LONG), Ok(true));
    wait_for("the node has left", || b.losses().len() == 1);
}

/// Held by a test while a decoder is to wait.
static DECODER: Mutex<()> = Mutex::new(());
static DECODERS: AtomicUsize = AtomicUsize::new(0);

struct SlowDecode;

impl Message for SlowDecode {
    fn encode(self, _: &mut Encoder<'_>) {}

    fn decode(_: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        DECODERS.fetch_add(1, SeqCst);
        drop(DECODER.lock());
        Ok(Self)
    }
}

/// Fails if a node takes the frames of its peers one after the other, or counts the peer whose
/// frame it decodes as silent.
#[test]
fn slow_decoder_of_one_peer_keeps_the_others() {
    let network = MemoryNetwork::new();
    let slow = |name| quick(name).codec::<SlowDecode>("slow");
    let [a, b, c] = ["a", "b", "c"].map(|name| join(slow(name), network.engine(name)));
    [&a, &b, &c].iter().for_each(|node| node.reaches(2));
    let (worker, _held) = a.worker();
    let far = |node: &TestNode| worker.with_node(node.number_of("a"));
    let waits = DECODER.lock().unwrap();
    assert!(b.scheduler.try_send(far(&b), SlowDecode).is_ok());
    wait_for("the decoder has begun", || DECODERS.load(SeqCst) == 1);
    let begun = Instant::now();
    while begun.elapsed() < LEASE * 2 {
        assert_eq!(c.counts(far(&c)), Ok(0));
    }
    assert_eq!((a.losses(), c.losses()), (vec![], vec![]));
    drop(waits);
}

/// Fails if each old frame that comes makes a hello.
#[test]
fn frames_of_an_old_session_cause_few_hellos() {
    const FRAMES: usize = 5_000;
    let hub = Hub::default();
    let ([a, b], [at_a, at_b]) = two(&hub, patient);
    let (worker, _held) = b.worker();
    let far = worker.with_node(a.number_of("b"));
    assert_eq!(a.counts(far), Ok(0));
    let before = at_a.frames();
    let a_waits = at_a.block();
    for _ in 0..FRAMES {
        a.scheduler.try_send(far, Work::Task).unwrap();
    }
    let b_waits = at_b.block();
    hub.sink("b").down(&PeerId("a".to_owned()));
    hub.sink("b").up(PeerId("a".to_owned()));
    drop(a_waits);
    wait_for("the frames have come", || at_a.frames() >= before + FRAMES);
    drop(b_waits);
    wait_for("the nodes meet again", || a.counts(far).is_ok());
    let hellos = at_a.hellos() + at_b.hellos();
    assert!(hellos <= 20, "{hellos}");
}
