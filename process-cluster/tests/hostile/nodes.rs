//! Nodes for the tests, and an engine whose links a test chooses.
use process_cluster::{
    Builder, Cluster, DecodeError, Decoder, Encoder, Engine, Message, PeerId, Sink, Unsent,
};
use process_scheduler::{CallError, Handle, Pid, Reply, Scheduler};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

pub use crate::common::{LONG, TestNode, wait_for};

/// The lease of tests in which a lease ends, or must not.
pub const LEASE: Duration = Duration::from_secs(1);

/// The sinks of the nodes, by their names.
#[derive(Clone, Default)]
pub struct Hub(Arc<Mutex<HashMap<String, Sink>>>);

impl Hub {
    pub fn sink(&self, name: &str) -> Sink {
        self.0.lock().unwrap()[name].clone()
    }

    /// Returns a wire of a node. A link is the id of a peer, its node, and the id that it has for
    /// this node.
    pub fn wire(&self, name: &str, links: &[[&str; 3]]) -> Wire {
        Wire {
            hub: self.clone(),
            name: name.to_owned(),
            links: links.iter().map(|link| link.map(str::to_owned)).collect(),
            is_mute: Arc::default(),
            gate: Arc::default(),
            hellos: Arc::default(),
            frames: Arc::default(),
        }
    }

    /// Returns a wire to one other node.
    pub fn to(&self, name: &str, other: &str) -> Wire {
        self.wire(name, &[[other, other, name]])
    }
}

#[derive(Clone)]
pub struct Wire {
    hub: Hub,
    name: String,
    links: Vec<[String; 3]>,
    is_mute: Arc<AtomicBool>,
    gate: Arc<Mutex<()>>,
    hellos: Arc<AtomicUsize>,
    frames: Arc<AtomicUsize>,
}

impl Wire {
    /// Loses all frames from now on.
    pub fn mute(&self) {
        self.is_mute.store(true, SeqCst);
    }

    /// Blocks all sends until the guard is dropped.
    pub fn block(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap()
    }

    pub fn hellos(&self) -> usize {
        self.hellos.load(SeqCst)
    }

    pub fn frames(&self) -> usize {
        self.frames.load(SeqCst)
    }
}

impl Engine for Wire {
    fn start(&self, sink: Sink) -> Result<(), String> {
        let sinks = &self.hub.0;
        sinks
            .lock()
            .unwrap()
            .insert(self.name.clone(), sink.clone());
        for [id, ..] in &self.links {
            sink.up(PeerId(id.clone()));
        }
        Ok(())
    }

    fn send(&self, to: &PeerId, frame: &[u8]) -> Result<(), Unsent> {
        drop(self.gate.lock().unwrap());
        if self.is_mute.load(SeqCst) {
            return Ok(());
        }
        // The kind comes behind the version, the incarnation, the session and the address.
        let is_hello = frame[17] == 0;
        self.hellos.fetch_add(usize::from(is_hello), SeqCst);
        let link = self.links.iter().find(|link| link[0] == to.0);
        let [_, node, id] = link.ok_or(Unsent)?;
        let sink = self.hub.0.lock().unwrap().get(node).cloned();
        sink.ok_or(Unsent)?.frame(&PeerId(id.clone()), frame);
        self.frames.fetch_add(1, SeqCst);
        Ok(())
    }

    fn stop(&self) {}
}

/// An encoder that begins, and waits for its end.
pub struct Pause {
    pub begun: mpsc::Sender<()>,
    pub end: mpsc::Receiver<()>,
}

/// A message to a worker.
pub enum Work {
    /// Asks how many tasks have come.
    Count(Reply<u64>),
    Task,
    /// A task whose encoder is slow.
    SlowTask(Option<Pause>),
    /// Asks for an answer that the test gives.
    Hold(Reply<u64>),
    /// Asks for as many bytes.
    Bytes(u32, Reply<Vec<u8>>),
    /// Asks for an answer that has no encoding.
    Unencodable(Reply<Unencodable>),
    /// A message whose length shows when it is encoded.
    Long(u32),
}

pub struct Unencodable;

impl Message for Unencodable {
    fn encode(self, _: &mut Encoder<'_>) {
        panic!("it has no encoding");
    }

    fn decode(_: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(Self)
    }
}

impl Message for Work {
    fn encode(self, out: &mut Encoder<'_>) {
        match self {
            Self::Count(reply) => {
                out.u8(0);
                out.reply(reply);
            }
            Self::Task => out.u8(1),
            Self::SlowTask(pause) => {
                if let Some(Pause { begun, end }) = pause {
                    begun.send(()).unwrap();
                    end.recv_timeout(LONG).unwrap();
                }
                out.u8(2);
            }
            Self::Hold(reply) => {
                out.u8(3);
                out.reply(reply);
            }
            Self::Bytes(length, reply) => {
                out.u8(4);
                out.u32(length);
                out.reply(reply);
            }
            Self::Unencodable(reply) => {
                out.u8(5);
                out.reply(reply);
            }
            Self::Long(length) => {
                out.u8(6);
                out.bytes(&vec![0; length as usize]);
            }
        }
    }

    fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Ok(match input.u8()? {
            0 => Self::Count(input.reply()?),
            1 => Self::Task,
            2 => Self::SlowTask(None),
            3 => Self::Hold(input.reply()?),
            4 => Self::Bytes(input.u32()?, input.reply()?),
            5 => Self::Unencodable(input.reply()?),
            6 => Self::Long(input.bytes()?.len() as u32),
            _ => return Err(DecodeError::Invalid),
        })
    }
}

/// Returns the settings of a node whose lease does not end in a test.
pub fn patient(name: &str) -> Builder {
    Cluster::builder(name).lease(LONG)
}

pub fn quick(name: &str) -> Builder {
    Cluster::builder(name).lease(LEASE)
}

pub fn join(builder: Builder, engine: impl Engine) -> TestNode {
    join_with(Scheduler::builder().workers(1).build(), builder, engine)
}

pub fn join_with(scheduler: Scheduler, builder: Builder, engine: impl Engine) -> TestNode {
    let builder = builder.codec::<Work>("work").codec::<Vec<u8>>("bytes");
    TestNode::join(scheduler, builder, engine)
}

impl TestNode {
    /// Spawns a worker. Returns the answers that it was asked to hold, too.
    pub fn worker(&self) -> (Pid, mpsc::Receiver<Reply<u64>>) {
        let (sender, held) = mpsc::channel();
        let mut tasks = 0;
        let worker = self.scheduler.spawn_fn(move |work, _| match work {
            Work::Count(reply) => drop(reply.send(tasks)),
            Work::Task | Work::SlowTask(_) | Work::Long(_) => tasks += 1,
            Work::Hold(reply) => sender.send(reply).unwrap(),
            Work::Bytes(length, reply) => drop(reply.send(vec![0; length as usize])),
            Work::Unencodable(reply) => drop(reply.send(Unencodable)),
        });
        (worker.unwrap().pid(), held)
    }

    /// Asks a worker how many tasks have come. Waits for room.
    pub fn counts(&self, worker: Pid) -> Result<u64, CallError> {
        counts(&self.scheduler, worker)
    }
}

pub fn counts(handle: &Handle, worker: Pid) -> Result<u64, CallError> {
    use process_scheduler::SendError::Full;
    let address = handle.address::<Work>(worker).unwrap();
    loop {
        match address.call(Work::Count, LONG).wait() {
            Err(CallError::Refused(Full(()))) => thread::yield_now(),
            counted => return counted,
        }
    }
}

/// Joins two nodes that reach each other.
pub fn two(hub: &Hub, builder: impl Fn(&str) -> Builder) -> ([TestNode; 2], [Wire; 2]) {
    let wires = [hub.to("a", "b"), hub.to("b", "a")];
    let [a, b] = wires.each_ref();
    let nodes = [join(builder("a"), a.clone()), join(builder("b"), b.clone())];
    nodes.iter().for_each(|node| node.reaches(1));
    (nodes, wires)
}
