//! A node whose peer sends what no node sends.
use super::*;
use crate::{
    behaviours::Behaviours,
    builder::Builder,
    cluster::Cluster,
    codec::Codecs,
    decode_error::DecodeError,
    engine::{Sink, Unsent},
    frame::{MESSAGE, PUBLISH, SIGNAL, SPAWN},
    signals,
    wire::{Decoder, Encoder},
};
use process_scheduler::{Call, CallError, ExitReason, Inbox, Reply, Scheduler, Signal, Spawn};
use proptest::{collection::vec, prelude::*, sample::Index};
use std::sync::{
    OnceLock,
    atomic::{AtomicUsize, Ordering::SeqCst},
    mpsc,
};

const LONG: Duration = Duration::from_secs(60);

/// The incarnation of the hostile node: no node is younger, so it takes no name away.
const HOSTILE: Incarnation = Incarnation(u64::MAX);

/// An engine whose only peer is the test.
struct Line {
    sink: Arc<OnceLock<Sink>>,
    sent: Mutex<mpsc::Sender<Vec<u8>>>,
}

impl Engine for Line {
    fn start(&self, sink: Sink) -> Result<(), String> {
        let _ = self.sink.set(sink);
        Ok(())
    }

    fn send(&self, _: &PeerId, frame: &[u8]) -> Result<(), Unsent> {
        lock(&self.sent).send(frame.to_vec()).map_err(|_| Unsent)
    }

    fn stop(&self) {}
}

/// A node that allows no signals, and a hostile node that has a session with it.
struct Victim {
    scheduler: Scheduler,
    cluster: Cluster,
    sink: Sink,
    sent: mpsc::Receiver<Vec<u8>>,
    /// The header of the hostile node's frames, and the number of the next one.
    header: Header,
    next: u64,
    /// The incarnation of the victim.
    own: Incarnation,
    /// A process with a name, a member of a group, a pair that is linked, and one that traps exits.
    processes: [Pid; 5],
    messages: mpsc::Receiver<Vec<u8>>,
    exits: mpsc::Receiver<Pid>,
}

/// Asks a process for bytes.
struct Ask(Reply<Vec<u8>>);

impl crate::Message for Ask {
    fn encode(self, out: &mut Encoder<'_>) {
        out.reply(self.0);
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self(input.reply()?))
    }
}

fn builder() -> Builder {
    Cluster::builder("victim")
        .codec::<Vec<u8>>("bytes")
        .codec::<Ask>("ask")
        .allow(|_, _| false)
}

/// Makes a hello with this header, which answers another one.
fn hello(header: Header, heard: (Incarnation, u32)) -> Vec<u8> {
    let hello = Hello {
        name: "hostile".to_owned(),
        heard: Some(heard),
        window: 1_000,
        limit: 1 << 20,
        codecs: vec!["bytes".to_owned(), "ask".to_owned()],
    };
    let mut frame = Vec::new();
    header.write(&mut frame);
    hello.write(&mut frame);
    frame
}

impl Victim {
    fn new() -> Self {
        let scheduler = Scheduler::builder().workers(1).build();
        let (sender, sent) = mpsc::channel();
        let slot = Arc::new(OnceLock::new());
        let line = Line {
            sink: slot.clone(),
            sent: Mutex::new(sender),
        };
        let cluster = builder().lease(LONG).join(&scheduler, line).unwrap();
        let (sender, messages) = mpsc::channel();
        let spawn = || {
            let sender = sender.clone();
            let taker = scheduler.spawn_fn(move |bytes: Vec<u8>, _| sender.send(bytes).unwrap());
            taker.unwrap().pid()
        };
        let [named, member, one, two] = [(); 4].map(|()| spawn());
        cluster.register("name", named).unwrap();
        cluster.join("group", member).unwrap();
        scheduler.link(one, two);
        let (sender, exits) = mpsc::channel();
        let guard = process_scheduler::from_async(move |mut inbox: Inbox<()>| async move {
            while inbox.cancelled().is_none() {
                inbox.event().await;
                while let Some((pid, _)) = inbox.next_exit() {
                    let _ = sender.send(pid);
                }
            }
        });
        let guard = scheduler.spawn_process(guard, Spawn::new().trap_exits(true));
        let guard = guard.unwrap().pid();
        scheduler.monitor(guard, one);
        let mut victim = Self {
            sink: slot.get().unwrap().clone(),
            own: Incarnation(0),
            scheduler,
            cluster,
            sent,
            header: Header {
                incarnation: HOSTILE,
                session: 1,
                to: 0,
                kind: HELLO,
            },
            next: 0,
            processes: [named, member, one, two, guard],
            messages,
            exits,
        };
        victim.shake_hands();
        victim
    }

    fn shake_hands(&mut self) {
        self.header = self.meets(id(), self.header);
        assert_eq!(self.cluster.nodes().len(), 1);
    }

    /// Begins a session of another node with this header. Returns the header of its next frames.
    fn meets(&mut self, id: PeerId, header: Header) -> Header {
        self.sink.up(id.clone());
        let theirs = loop {
            let frame = self.sent.recv_timeout(LONG).unwrap();
            let (theirs, _) = Header::read(&frame).unwrap();
            if theirs.kind == HELLO {
                break theirs;
            }
        };
        self.own = theirs.incarnation;
        let heard = (theirs.incarnation, theirs.session);
        self.sink.frame(&id, &hello(header, heard));
        let to = crate::frame::address(theirs.incarnation, theirs.session);
        Header { to, ..header }
    }

    /// Brings a frame with the next number, which is taken when this returns. Returns whether it
    /// was counted as invalid.
    fn brings(&mut self, kind: u8, body: &[u8]) -> bool {
        let before = self.cluster.metrics().invalid;
        let mut frame = Vec::new();
        Header {
            kind,
            ..self.header
        }
        .write(&mut frame);
        frame.extend_from_slice(&self.next.to_le_bytes());
        frame.extend_from_slice(body);
        self.next += 1;
        self.sink.frame(&id(), &frame);
        self.cluster.metrics().invalid > before
    }

    /// Calls a process of the hostile node. Returns the number of the message's frame.
    fn calls(&self) -> (u64, Call<Vec<u8>>) {
        let number = self.cluster.nodes()[0].number;
        let far = Pid::from_bits(1 << 32).unwrap().with_node(number);
        let call = self.scheduler.address::<Ask>(far).unwrap().call(Ask, LONG);
        loop {
            let frame = self.sent.recv_timeout(LONG).unwrap();
            let (header, rest) = Header::read(&frame).unwrap();
            if header.kind == MESSAGE {
                let (sequence, _) = rest.split_first_chunk().unwrap();
                return (u64::from_le_bytes(*sequence), call);
            }
        }
    }

    /// Checks that nothing has ended and that the session works.
    fn is_unharmed(&mut self) {
        for pid in self.processes {
            assert!(self.scheduler.inspect(pid).is_some(), "{pid} has ended");
        }
        let [named, member, one, two, _] = self.processes;
        assert_eq!(self.cluster.whereis("name"), Some(named));
        assert!(self.cluster.members("group").contains(&member));
        assert_eq!(self.scheduler.inspect(one).unwrap().links, [two]);
        let (sequence, call) = self.calls();
        assert!(!self.brings(ANSWER, &answer(sequence, b"answer")));
        assert_eq!(call.wait(), Ok(b"answer".to_vec()));
        assert!(!self.brings(MESSAGE, &message(one, b"the last")));
        while self.messages.recv_timeout(LONG).unwrap() != b"the last" {}
        // The one worker has run the guard before.
        assert!(self.exits.try_recv().is_err());
    }
}

fn id() -> PeerId {
    PeerId("hostile".to_owned())
}

/// Returns what an encoder writes on the hostile node, whose number for the victim is 7.
fn body(own: Incarnation, write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let identities = Identities::new(HOSTILE, 6);
    assert_eq!(identities.number_of(own), 7);
    assert_eq!(identities.number_of(Incarnation(5)), 8);
    let mut out = Encoder::new(&identities);
    write(&mut out);
    out.bytes
}

fn slot_of(pid: Pid) -> u64 {
    pid.with_node(0).to_bits() as u64
}

fn message(to: Pid, content: &[u8]) -> Vec<u8> {
    body(Incarnation(1), |out| {
        out.u64(slot_of(to));
        out.u16(0);
        out.bytes(content);
    })
}

fn answer(sequence: u64, content: &[u8]) -> Vec<u8> {
    body(Incarnation(1), |out| {
        out.u64(sequence);
        out.u8(0);
        out.bool(true);
        out.bytes(content);
    })
}

fn signal(own: Incarnation, to: Pid, signal: &Signal) -> Vec<u8> {
    body(own, |out| {
        out.u64(slot_of(to));
        assert!(signals::write(signal, out));
    })
}

/// Bodies that are valid, of the kinds that bytes alone make so.
fn valid(victim: &Victim, which: u8) -> (u8, Vec<u8>) {
    let [named, member, ..] = victim.processes;
    match which {
        0 => (MESSAGE, message(named, b"content")),
        1 => {
            let with = member.with_node(6);
            (SIGNAL, signal(victim.own, named, &Signal::Link { with }))
        }
        2 => {
            let name = |out: &mut Encoder<'_>| {
                out.u8(0);
                out.str("another");
                out.u64(slot_of(named));
            };
            (NAME, body(victim.own, name))
        }
        _ => {
            let publish = |out: &mut Encoder<'_>| {
                out.str("group");
                out.u16(0);
                out.bytes(b"content");
            };
            (PUBLISH, body(victim.own, publish))
        }
    }
}

#[derive(Clone, Debug)]
enum Attack {
    /// Bytes behind the slot of a process, or behind nothing.
    Random(u8, Option<Index>, Vec<u8>),
    Cut(u8, Index),
    Long(u8, u8),
    /// An exit to a process, of a process of the victim, of the hostile node or of a third one.
    Exit(Index, Index, u32, bool, bool),
    /// An answer to a call that waits, which is cut.
    Answer(Index),
}

fn attack() -> impl Strategy<Value = Attack> {
    let index = any::<Index>;
    let bytes = || vec(any::<u8>(), 0..48);
    prop_oneof![
        (MESSAGE..=9, any::<Option<Index>>(), bytes()).prop_map(|(kind, to, bytes)| {
            // A node that says that it leaves is believed. No kind has the number 10.
            let kind = if kind > SPAWN { 10 } else { kind };
            Attack::Random(kind, to, bytes)
        }),
        (0..4_u8, index()).prop_map(|(which, at)| Attack::Cut(which, at)),
        (0..4_u8, any::<u8>()).prop_map(|(which, byte)| Attack::Long(which, byte)),
        (index(), index(), 6..9_u32, any::<bool>(), any::<bool>())
            .prop_map(|(to, of, node, linked, fails)| Attack::Exit(to, of, node, linked, fails)),
        index().prop_map(Attack::Answer),
    ]
}

impl Victim {
    fn suffers(&mut self, attack: Attack) {
        match attack {
            Attack::Random(kind, to, bytes) => {
                let slot = to.map(|to| slot_of(*to.get(&self.processes)));
                let mut body = slot.map_or(Vec::new(), |slot| slot.to_le_bytes().to_vec());
                body.extend(bytes);
                let is_invalid = self.brings(kind, &body);
                assert!(is_invalid || kind <= SPAWN);
            }
            Attack::Cut(which, at) => {
                let (kind, body) = valid(self, which);
                assert!(self.brings(kind, &body[..at.index(body.len())]));
            }
            Attack::Long(which, byte) => {
                let (kind, mut body) = valid(self, which);
                body.push(byte);
                assert!(self.brings(kind, &body));
            }
            Attack::Exit(to, of, node, linked, fails) => {
                let exit = Signal::Exit {
                    pid: of.get(&self.processes).with_node(node),
                    reason: match fails {
                        true => ExitReason::failed("hostile"),
                        false => ExitReason::Normal,
                    },
                    linked,
                };
                let body = signal(self.own, *to.get(&self.processes), &exit);
                // The third node alone knows of its processes' monitors.
                let is_invalid = node == 7 || (node == 8 && !linked);
                assert_eq!(self.brings(SIGNAL, &body), is_invalid);
            }
            Attack::Answer(at) => {
                let (sequence, call) = self.calls();
                let body = answer(sequence, b"answer");
                let at = 9 + at.index(body.len() - 9);
                assert!(self.brings(ANSWER, &body[..at]));
                assert_eq!(call.wait(), Err(CallError::Dropped));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Fails if a body makes the node panic or end its session, ends a process, is delivered as an
    /// exit, takes a name away, or is cut or too long and not counted.
    #[test]
    fn hostile_bodies_do_no_harm(attacks in vec(attack(), 0..40)) {
        let mut victim = Victim::new();
        attacks.into_iter().for_each(|attack| victim.suffers(attack));
        victim.is_unharmed();
    }
}

/// Fails if a node believes another one that a process of its own has ended.
#[test]
fn exit_of_an_own_process_by_another_node_is_invalid() {
    let mut victim = Victim::new();
    let [_, _, one, two, guard] = victim.processes;
    for (to, of, linked) in [(one, two, true), (guard, one, false), (one, guard, true)] {
        let exit = Signal::Exit {
            pid: of.with_node(7),
            reason: ExitReason::Killed,
            linked,
        };
        let body = signal(victim.own, to, &exit);
        assert!(victim.brings(SIGNAL, &body));
    }
    victim.is_unharmed();
}

/// Fails if a node believes another one that a process of a third node has ended, or does not ask
/// the third one.
#[test]
fn exit_of_a_third_nodes_process_is_asked_for() {
    let mut victim = Victim::new();
    let [.., one, two, guard] = victim.processes;
    let third = PeerId("third".to_owned());
    let header = victim.meets(
        third.clone(),
        Header {
            incarnation: Incarnation(5),
            ..victim.header
        },
    );
    let nodes = victim.cluster.nodes();
    assert_eq!(nodes.len(), 2);
    let far = one.with_node(nodes[1].number);
    victim.scheduler.link(guard, far);
    victim.scheduler.monitor(guard, far);
    let exit = |linked| Signal::Exit {
        pid: one.with_node(8),
        reason: ExitReason::Killed,
        linked,
    };
    assert!(victim.brings(SIGNAL, &signal(victim.own, guard, &exit(false))));
    assert!(!victim.brings(SIGNAL, &signal(victim.own, guard, &exit(true))));
    // A process that is not linked to it asks nobody.
    assert!(!victim.brings(SIGNAL, &signal(victim.own, two, &exit(true))));
    assert_eq!(victim.exits.try_recv(), Err(mpsc::TryRecvError::Empty));
    let mut frame = Vec::new();
    Header {
        kind: SIGNAL,
        ..header
    }
    .write(&mut frame);
    frame.extend_from_slice(&0_u64.to_le_bytes());
    let of_third = Identities::new(Incarnation(5), 8);
    assert_eq!(of_third.number_of(victim.own), 9);
    let mut out = Encoder::new(&of_third);
    out.u64(slot_of(guard));
    assert!(signals::write(&exit(true), &mut out));
    frame.extend(out.bytes);
    victim.sink.frame(&third, &frame);
    assert_eq!(victim.exits.recv_timeout(LONG), Ok(far));
    let links = |frame: &Vec<u8>| {
        let (header, rest) = Header::read(frame).unwrap();
        // Behind the number of the frame and the slot, a link has this kind.
        header.kind == SIGNAL && rest[16] == 7
    };
    drop(victim.cluster);
    assert_eq!(victim.sent.iter().filter(links).count(), 2);
}

/// Fails if the exit goes to the process of the hostile node that has the same slot.
#[test]
fn refused_link_of_a_third_node_is_not_answered() {
    let mut victim = Victim::new();
    let [named, member, ..] = victim.processes;
    let ended = Pid::from_bits(9 << 32 | 1_000).unwrap();
    for to in [named, ended] {
        let with = member.with_node(8);
        let body = signal(victim.own, to, &Signal::Link { with });
        assert!(!victim.brings(SIGNAL, &body));
    }
    let with = member.with_node(6);
    let body = signal(victim.own, named, &Signal::Link { with });
    assert!(!victim.brings(SIGNAL, &body));
    let signals = std::iter::from_fn(|| victim.sent.recv_timeout(LONG).ok()).filter_map(|frame| {
        let (header, rest) = Header::read(&frame).unwrap();
        (header.kind == SIGNAL).then(|| rest[8..16].to_vec())
    });
    let [first] = signals.take(1).collect::<Vec<_>>().try_into().unwrap();
    assert_eq!(first, slot_of(member).to_le_bytes());
    // A later frame of the victim comes behind all signals.
    let (sequence, call) = victim.calls();
    assert_eq!(sequence, 3, "the name, the member and one exit come before");
    drop(call);
}

/// Makes the peers of a node that has no thread and no end. Its engine sends nothing.
fn peers(own: Incarnation) -> Arc<Peers> {
    let scheduler = Scheduler::builder().workers(1).build();
    let settings = Settings {
        name: "a".to_owned(),
        codecs: Codecs::default(),
        behaviours: Behaviours::default(),
        queue: 100,
        lease: LONG,
        frame_limit: 4_096,
        admit: Box::new(|_| true),
        allow: Box::new(|_, _| true),
        allow_spawn: Box::new(|_, _| false),
        on_change: Box::new(|_| ()),
    };
    let line = Arc::new(Line {
        sink: Arc::default(),
        sent: Mutex::new(mpsc::channel().0),
    });
    let identities = Arc::new(Identities::new(own, 0));
    Peers::new(scheduler.handle(), settings, line, identities)
}

/// Fails if a late frame makes a peer, or the thread of a peer that is gone stays.
#[test]
fn late_frames_start_no_peer() {
    let peers = peers(Incarnation(1));
    let mut late = Vec::new();
    let header = Header {
        incarnation: HOSTILE,
        session: 1,
        to: 0,
        kind: MESSAGE,
    };
    header.write(&mut late);
    late.extend_from_slice(&[0; 40]);
    let mut gone = Vec::new();
    for number in 0..50 {
        let id = PeerId(number.to_string());
        peers.up(id.clone());
        gone.extend(peers.peer(&id).as_ref().map(Arc::downgrade));
        peers.down(&id);
        peers.frame(&id, &late);
        peers.frame(&id, b"late");
    }
    assert!(lock(&peers.peers).is_empty());
    assert_eq!(gone.len(), 50);
    let begun = Instant::now();
    while gone.iter().any(|peer| peer.strong_count() > 0) {
        assert!(begun.elapsed() < LONG, "a writer has not ended");
        thread::yield_now();
    }
}

/// Two peers that are one node.
fn twins() -> [PeerId; 2] {
    ["b1", "b2"].map(|id| PeerId(id.to_owned()))
}

/// Makes a hello of the node of the twins, which answers the peer of this id.
fn twin_hello(peers: &Peers, id: &PeerId, session: u32) -> Option<Vec<u8>> {
    let number = lock(&peers.peer(id)?.state).session.number();
    let header = Header {
        incarnation: Incarnation(5),
        session,
        to: 0,
        kind: HELLO,
    };
    Some(hello(header, (peers.identities.own(), number)))
}

/// Checks that the node came and went by turns, and is gone. Returns how often it came and went.
#[track_caller]
fn came_and_went(peers: &Peers) -> usize {
    assert_eq!((peers.nodes().len(), peers.handle.nodes().len()), (0, 0));
    let changes = std::mem::take(&mut *lock(&peers.changes));
    let is_up = |change: &NodeChange| matches!(change, NodeChange::Up { .. });
    let by_turns = changes
        .iter()
        .map(is_up)
        .eq((0..changes.len()).map(|n| n % 2 == 0));
    assert!(by_turns && changes.len() % 2 == 0, "{changes:?}");
    changes.len()
}

/// Fails if two peers that rise at the same time both make the node come.
#[test]
fn node_of_two_peers_comes_once() {
    const ROUNDS: u32 = 500;
    for own in [1, 9] {
        let (peers, twins) = (peers(Incarnation(own)), twins());
        for round in 1..=ROUNDS {
            let ready = AtomicUsize::new(0);
            std::thread::scope(|scope| {
                for id in &twins {
                    peers.up(id.clone());
                    let hello = twin_hello(&peers, id, round).unwrap();
                    let (peers, ready) = (&*peers, &ready);
                    scope.spawn(move || {
                        ready.fetch_add(1, SeqCst);
                        while ready.load(SeqCst) < 2 {
                            std::thread::yield_now();
                        }
                        peers.frame(id, &hello);
                    });
                }
            });
            assert_eq!((peers.nodes().len(), peers.handle.nodes().len()), (1, 1));
            twins.iter().for_each(|id| peers.down(id));
            came_and_went(&peers);
        }
    }
}

/// Fails if the node with the older incarnation lets the second peer have the node, the other one
/// does not, or that one takes it from a peer that takes a frame.
#[test]
fn node_of_two_peers_has_the_one_that_both_choose() {
    for (own, is_busy, changes) in [(1, false, 2), (9, false, 4), (9, true, 2)] {
        let (peers, twins) = (peers(Incarnation(own)), twins());
        twins.iter().for_each(|id| peers.up(id.clone()));
        peers.frame(&twins[0], &twin_hello(&peers, &twins[0], 1).unwrap());
        let first = peers.peer(&twins[0]).unwrap();
        let busy = is_busy.then(|| lock(&first.order));
        peers.frame(&twins[1], &twin_hello(&peers, &twins[1], 1).unwrap());
        drop(busy);
        assert_eq!((peers.nodes().len(), peers.handle.nodes().len()), (1, 1));
        assert_eq!(ptr::eq(&*peers.nodes()[0].1, &*first), changes == 2);
        twins.iter().for_each(|id| peers.down(id));
        assert_eq!(came_and_went(&peers), changes);
    }
}

/// Fails if a peer's loss beside the rise of the node's other peer, or the end of the cluster,
/// leaves a node that is gone, or tells the hook of a change that did not follow the last one.
#[test]
fn node_of_two_peers_goes_at_any_time() {
    let twins = twins();
    for own in [1, 9].repeat(50) {
        let peers = peers(Incarnation(own));
        std::thread::scope(|scope| {
            let rise_and_fall = |id: &PeerId| {
                for session in 1.. {
                    peers.up(id.clone());
                    let Some(hello) = twin_hello(&peers, id, session) else {
                        return;
                    };
                    peers.frame(id, &hello);
                    if session % 3 > 0 {
                        peers.down(id);
                    }
                }
            };
            twins
                .iter()
                .for_each(|id| drop(scope.spawn(move || rise_and_fall(id))));
            let begun = Instant::now();
            while lock(&peers.changes).len() < 100 && begun.elapsed() < LONG {
                std::thread::yield_now();
            }
            peers.end();
        });
        assert!(came_and_went(&peers) >= 100);
    }
}
