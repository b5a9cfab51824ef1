//! Processes of `process-scheduler` on two hosts, whose relay is a connection of TCP.
//!
//! A frame has its length, the pid to which it goes, a tag and the rest of the parcel. A frame of
//! no length says that the node is alive. A node that says nothing for a while is down.
use crate::{
    mistakes::is_planted,
    network::{Disk, MS, lossy, ms, serve, until_done},
};
use net_driver::{
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    time::timeout,
};
use process_scheduler::{
    Context, Event, EventsOf, ExitReason, Handle, InitError, Input, NoCommand, OutputOf, Parcel,
    Pid, Process, Relay, Scheduler, SendError, Signal, Step, StepOf,
};
use selvedge_executor::spawn;
use selvedge_sim::{Run, Sim};
use std::{
    collections::HashMap,
    io::{self, ErrorKind},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use task_io::{AsyncReadExt, AsyncWriteExt};
use task_sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The message of all processes: a number, and where the answer goes.
struct Note {
    from: Pid,
    number: u64,
}

/// The connections of a node.
#[derive(Default)]
struct Wires {
    /// By the other node: the number of the connection, and the way to it.
    by_node: HashMap<u32, (u64, UnboundedSender<Vec<u8>>)>,
    made: u64,
}

/// The relay of a node.
#[derive(Clone, Default)]
struct ByTcp(Arc<Mutex<Wires>>);

impl ByTcp {
    fn with<R>(&self, f: impl FnOnce(&mut Wires) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Relay for ByTcp {
    fn deliver(&self, to: Pid, parcel: Parcel) -> Result<(), SendError<Parcel>> {
        let wire = self.with(|wires| wires.by_node.get(&to.node()).cloned());
        let sent = wire.zip(encode(to, &parcel));
        match sent.map(|((_, wire), frame)| wire.send(frame)) {
            Some(Ok(())) => Ok(()),
            _ => Err(SendError::NotFound(parcel)),
        }
    }
}

/// The signals that this program sends. The others have no bytes.
fn encode(to: Pid, parcel: &Parcel) -> Option<Vec<u8>> {
    let mut frame = to.to_bits().to_le_bytes().to_vec();
    let mut add = |tag: u8, pid: &Pid, number: u64| {
        frame.push(tag);
        frame.extend(pid.to_bits().to_le_bytes());
        frame.extend(number.to_be_bytes());
    };
    match parcel {
        Parcel::Message(message) => {
            let Note { from, number } = message.downcast_ref()?;
            add(0, from, *number);
        }
        Parcel::Signal(Signal::Monitor { by }) => add(1, by, 0),
        Parcel::Signal(Signal::Link { with }) => add(2, with, 0),
        Parcel::Signal(Signal::Kill) => add(3, &to, 0),
        Parcel::Signal(Signal::Exit {
            pid,
            reason,
            linked,
        }) => {
            let is_killed = *reason == ExitReason::Killed;
            add(4, pid, u64::from(*linked) << 1 | u64::from(is_killed));
        }
        Parcel::Signal(_) => return None,
        _ => return None,
    }
    Some(frame)
}

fn decode(frame: &[u8]) -> Option<(Pid, Parcel)> {
    let (to, rest) = frame.split_first_chunk()?;
    let (tag, rest) = rest.split_first()?;
    let (pid, number) = rest.split_first_chunk()?;
    let pid_of = |bytes: &[u8; 16]| Pid::from_bits(u128::from_le_bytes(*bytes));
    let (to, pid) = (pid_of(to)?, pid_of(pid)?);
    let number = u64::from_be_bytes(number.try_into().ok()?);
    let signal = match tag {
        0 => return Some((to, Parcel::Message(Box::new(Note { from: pid, number })))),
        1 => Signal::Monitor { by: pid },
        2 => Signal::Link { with: pid },
        3 => Signal::Kill,
        _ => Signal::Exit {
            pid,
            reason: match number & 1 {
                1 => ExitReason::Killed,
                _ => ExitReason::NoProcess,
            },
            linked: number & 2 > 0,
        },
    };
    Some((to, Parcel::Signal(signal)))
}

/// Writes the frames of a node, and a sign of life while there are none.
async fn write(mut stream: OwnedWriteHalf, mut frames: UnboundedReceiver<Vec<u8>>) {
    loop {
        let frame = match timeout(50 * MS, frames.recv()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(_) => Vec::new(),
        };
        let done = async {
            stream.write_u16(frame.len() as u16).await?;
            stream.write_all(&frame).await
        };
        if done.await.is_err() {
            return;
        }
    }
}

/// Passes the frames of another node on, until it is down.
async fn read(mut stream: OwnedReadHalf, node: u32, number: u64, handle: Handle, relay: ByTcp) {
    loop {
        let frame = async {
            let mut frame = vec![0; stream.read_u16().await?.into()];
            stream.read_exact(&mut frame).await?;
            io::Result::Ok(frame)
        };
        let Ok(Ok(frame)) = timeout(300 * MS, frame).await else {
            break;
        };
        let Some((to, parcel)) = decode(&frame) else {
            continue;
        };
        // The other node has no answer from here otherwise.
        if let Err(refused) = handle.deliver(to, parcel) {
            let (by, linked) = match refused.into_inner() {
                Parcel::Signal(Signal::Monitor { by }) => (by, false),
                Parcel::Signal(Signal::Link { with }) => (with, true),
                _ => continue,
            };
            let exit = Signal::Exit {
                pid: to,
                reason: ExitReason::NoProcess,
                linked,
            };
            let _ = relay.deliver(by, Parcel::Signal(exit));
        }
    }
    let own = relay.with(|wires| {
        let is_own = wires
            .by_node
            .get(&node)
            .is_some_and(|(own, _)| *own == number);
        is_own.then(|| wires.by_node.remove(&node))
    });
    if own.is_some() {
        handle.node_down(node);
    }
}

/// Connects this node with the one at the other side of a stream. Each side sends a pid. Returns
/// that of the other side. An earlier connection of the two is over.
async fn connect(mut stream: TcpStream, pid: Pid, handle: Handle, relay: ByTcp) -> io::Result<Pid> {
    stream.write_all(&pid.to_bits().to_le_bytes()).await?;
    let mut bytes = [0; 16];
    stream.read_exact(&mut bytes).await?;
    let other = Pid::from_bits(u128::from_le_bytes(bytes)).ok_or(ErrorKind::InvalidData)?;
    let (sender, frames) = unbounded_channel();
    let node = other.node();
    let earlier = relay.with(|wires| wires.by_node.remove(&node));
    if earlier.is_some() {
        handle.node_down(node);
    }
    let number = relay.with(|wires| {
        wires.made += 1;
        wires.by_node.insert(node, (wires.made, sender));
        wires.made
    });
    handle.node_up(node, "other");
    let (from, to) = stream.into_split();
    spawn(write(to, frames));
    spawn(read(from, node, number, handle, relay));
    Ok(other)
}

fn scheduler(node: u32, relay: &ByTcp) -> Scheduler {
    let builder = Scheduler::builder().workers(1).node(node);
    builder.relay(relay.clone()).build()
}

/// A host with a teller for each connection, which adds one to each number. Its node has another
/// number after a restart, so a pid of a teller never names a later one.
async fn bank(starts: Disk<u32>) {
    let start = starts.with(|starts| {
        *starts += 1;
        *starts
    });
    let node = match is_planted("restarted node keeps its number") {
        true => 2,
        false => 1 + start,
    };
    let relay = ByTcp::default();
    let scheduler = scheduler(node, &relay);
    let handle = scheduler.handle();
    let answer = move |stream| {
        let (handle, relay) = (handle.clone(), relay.clone());
        async move {
            let teller = handle.spawn_fn(|note: Note, cx| {
                let number = note.number + 1;
                let from = cx.pid();
                let _ = cx.handle().try_send(note.from, Note { from, number });
            });
            let teller = teller.map_err(io::Error::other)?.pid();
            connect(stream, teller, handle, relay).await.map(drop)
        }
    };
    serve(1, answer).await;
}

/// Asks the teller ten times, and kills it then. Reports how often the teller has answered, and
/// the reason of its end.
struct Customer {
    handle: Handle,
    pid: Pid,
    teller: Pid,
    answers: u64,
    end: UnboundedSender<(u64, ExitReason)>,
}

impl Customer {
    fn ask(&self) {
        let note = Note {
            from: self.pid,
            number: self.answers,
        };
        // If the node is down, the exit says so.
        let _ = self.handle.try_send(self.teller, note);
    }
}

impl Process for Customer {
    type Message = Note;
    type Cmd = NoCommand;
    type Output = ();
    type Error = ();

    fn init(&mut self, cx: &Context<'_, Note>, _: &str, _: Input) -> Result<(), InitError> {
        self.pid = cx.pid();
        self.handle.monitor(self.pid, self.teller);
        self.ask();
        Ok(())
    }

    fn step(&mut self, events: &mut EventsOf<Self>, _: &mut OutputOf<Self>) -> StepOf<Self> {
        for event in events {
            match event {
                Event::Message(note) => {
                    assert_eq!((note.from, note.number), (self.teller, self.answers + 1));
                    self.answers += 1;
                    match self.answers {
                        10 => drop(self.handle.kill(self.teller)),
                        _ => self.ask(),
                    }
                }
                Event::Exit { reason, .. } => {
                    let _ = self.end.send((self.answers, reason));
                    return Step::Done;
                }
                Event::Cancel(_) => return Step::Done,
                _ => {}
            }
        }
        Step::Idle
    }
}

/// A host with three customers, one after the other. Each hears of the end of its teller, and so
/// does a process that is linked to that.
async fn shop() {
    const LIMIT: Duration = Duration::from_secs(5);
    let relay = ByTcp::default();
    let scheduler = scheduler(1, &relay);
    let mut lost = None;
    for _ in 0..3 {
        let guard = scheduler.spawn_fn(|_: Note, _| ()).unwrap().pid();
        let teller = until_done(300 * MS, |_| async {
            let stream = TcpStream::connect("bank:1").await?;
            connect(stream, guard, scheduler.handle(), relay.clone()).await
        });
        let teller = teller.await;
        let guard_ends = scheduler.exit_of(guard);
        scheduler.link(guard, teller);
        let (end, mut ends) = unbounded_channel();
        let customer = Customer {
            handle: scheduler.handle(),
            pid: guard,
            teller,
            answers: 0,
            end,
        };
        scheduler.spawn(customer).unwrap();
        // The kill of the last teller may not have come before its node was lost.
        lost.map(|lost| scheduler.kill(lost));
        let end = timeout(LIMIT, ends.recv()).await;
        let (answers, reason) = end.expect("the customer waits").expect("it has a result");
        let is_own = reason != ExitReason::Killed || answers == 10;
        assert!(is_own, "the teller was killed after {answers} answers");
        lost = (reason == ExitReason::NodeDown).then_some(teller);
        let end = timeout(LIMIT, guard_ends).await;
        end.expect("the link is lost");
    }
}

/// Processes of two hosts talk, and monitor and link each other, while a host restarts.
pub fn actors(sim: Sim) -> Run {
    let starts = Disk::default();
    sim.hosts()
        .server("bank", 1, move || bank(starts.clone()))
        .client("shop", 2, shop)
        .net(lossy())
        .crash("bank", ms(20..800), Some(100 * MS))
        .run()
}
