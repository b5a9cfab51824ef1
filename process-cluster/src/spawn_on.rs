//! Spawns on other nodes: the request, its errors, and its future.
//!
//! A request is a frame in the order of the messages, with a place for an answer, as a call has.
//!
//! 1. The node of the new process makes its half of a link or a monitor, and queues the answer,
//!    before the first step of the process. So each exit of the process comes behind the answer.
//! 2. This node makes the other half on the thread that takes the answer, before that thread takes
//!    a later frame. So no exit finds the half missing.
//! 3. If the future was dropped before its end, the process is to end: its relations are ended, and
//!    it is killed.
//! 4. If the node is lost before its answer has come, the process may run or have run. Then there
//!    is no half here, and the node of the process ends the relations there.
use crate::{
    behaviours::{Arguments, Outcome},
    cluster::Cluster,
    frame::{ORDERED, SPAWN},
    peer::{Peers, lock},
    relay::signal_to,
    wire::{Encoder, Message},
};
use process_scheduler::{CallError, ExitReason, Parcel, Pid, Reply, SendError, Signal};
use std::{
    fmt,
    future::{Future, IntoFuture},
    pin::Pin,
    sync::{Arc, Condvar, Mutex, PoisonError, Weak},
    task::{Context, Poll, Waker},
};

/// Why a process was not spawned. Each error has the arguments of the spawn.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpawnOnError<A> {
    /// The node has no behaviour of this tag.
    UnknownTag(A),
    /// The node lets this one spawn no such process.
    NotAuthorized(A),
    /// The behaviour takes other arguments.
    BadArguments(A),
    /// The process was not spawned there, for this reason.
    Refused(A, String),
    /// The node is not reached, or this one has left. The request was not sent.
    NodeDown(A),
    /// The node was lost before it answered: the process may run or have run there. If it was to be
    /// linked to a process of this node, the loss of this node ends it.
    InDoubt(A),
    /// Too much is on its way to the node.
    Full(A),
    /// The arguments are too large, or ask for an answer.
    NotCarried(A),
    /// The process that is to be linked, or to monitor, is not one of this node.
    NotHere(A),
}

impl<A> SpawnOnError<A> {
    /// Returns the arguments of the spawn.
    pub fn into_arguments(self) -> A {
        match self {
            Self::UnknownTag(arguments)
            | Self::NotAuthorized(arguments)
            | Self::BadArguments(arguments)
            | Self::Refused(arguments, _)
            | Self::NodeDown(arguments)
            | Self::InDoubt(arguments)
            | Self::Full(arguments)
            | Self::NotCarried(arguments)
            | Self::NotHere(arguments) => arguments,
        }
    }
}

impl<A> fmt::Display for SpawnOnError<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownTag(_) => "the node has no behaviour of this tag",
            Self::NotAuthorized(_) => "the node does not let this one spawn such a process",
            Self::BadArguments(_) => "the behaviour takes other arguments",
            Self::Refused(_, why) => return write!(f, "the process was not spawned: {why}"),
            Self::NodeDown(_) => "the node is not reached",
            Self::InDoubt(_) => "the node was lost before it answered",
            Self::Full(_) => "too much is on its way to the node",
            Self::NotCarried(_) => "the arguments are too large, or ask for an answer",
            Self::NotHere(_) => "the process to be linked, or to monitor, is not of this node",
        })
    }
}

impl<A: fmt::Debug> std::error::Error for SpawnOnError<A> {}

/// A spawn on a node: see [`Cluster::spawn_on`]. It begins when it is awaited.
#[must_use = "the process is spawned when this is awaited"]
pub struct SpawnOn<A> {
    peers: Arc<Peers>,
    request: Request,
    arguments: A,
}

struct Request {
    node: u32,
    tag: String,
    linked_to: Option<Pid>,
    monitored_by: Option<Pid>,
}

impl Cluster {
    /// Spawns a process on a node, which may be this one: by the behaviour that
    /// [`Builder::behaviour`](crate::Builder::behaviour) has given this tag there. The node must
    /// let this one do so: see [`Builder::allow_spawn`](crate::Builder::allow_spawn).
    ///
    /// A version of a behaviour is another tag, as it is for messages: during a rolling upgrade a
    /// node has both.
    ///
    /// ```
    /// # use process_cluster::{Cluster, MemoryNetwork, SpawnOnError};
    /// # use process_scheduler::{ExitReason, Scheduler, Spawn, from_fn};
    /// let network = MemoryNetwork::new();
    /// let [here, there] = [(); 2].map(|()| Scheduler::new());
    /// let a = Cluster::builder("a").join(&here, network.engine("a")).unwrap();
    /// let b = Cluster::builder("b")
    ///     .behaviour("adder/1", |mut sum: u64| {
    ///         let adder = from_fn(move |n: u64, _| sum += n);
    ///         (adder, Spawn::new())
    ///     })
    ///     .allow_spawn(|node, tag| node == "a" && tag == "adder/1")
    ///     .join(&there, network.engine("b"))
    ///     .unwrap();
    /// while a.nodes().is_empty() {
    ///     std::thread::sleep(std::time::Duration::from_millis(1));
    /// }
    /// let node = a.nodes()[0].number;
    ///
    /// let guard = here.spawn_fn(|_: u8, _| ()).unwrap().pid();
    /// let adder = a.spawn_on(node, "adder/1", 7_u64).linked_to(guard).wait().unwrap();
    /// assert_eq!(adder.node(), node);
    /// here.kill(adder);
    /// assert_eq!(here.wait(guard), ExitReason::Killed);
    ///
    /// let refused = a.spawn_on(node, "adder/2", 7_u64).wait();
    /// assert_eq!(refused, Err(SpawnOnError::NotAuthorized(7)));
    /// ```
    pub fn spawn_on<A>(&self, node: u32, tag: impl Into<String>, arguments: A) -> SpawnOn<A>
    where
        A: Message + Clone,
    {
        SpawnOn::new(self.peers().clone(), node, tag.into(), arguments)
    }
}

impl<A: Message + Clone> SpawnOn<A> {
    pub(crate) fn new(peers: Arc<Peers>, node: u32, tag: String, arguments: A) -> Self {
        Self {
            peers,
            request: Request {
                node,
                tag,
                linked_to: None,
                monitored_by: None,
            },
            arguments,
        }
    }

    /// Links the process to one of this node before its first step.
    pub fn linked_to(mut self, pid: Pid) -> Self {
        self.request.linked_to = Some(pid);
        self
    }

    /// Lets a process of this node monitor the new one from before its first step on.
    pub fn monitored_by(mut self, pid: Pid) -> Self {
        self.request.monitored_by = Some(pid);
        self
    }

    /// Spawns the process, and blocks the thread until the node has answered or is lost. A process
    /// must not wait here.
    ///
    /// # Errors
    /// If the process was not spawned, or the node was lost before it answered.
    pub fn wait(self) -> Result<Pid, SpawnOnError<A>> {
        self.into_future().wait()
    }

    /// Sends the request, or spawns the process here. What has not been sent ends at once.
    fn begin(peers: &Arc<Peers>, slot: &Arc<Slot>, arguments: A) {
        let request = &slot.request;
        let own = peers.identities.own_number();
        let related = [request.linked_to, request.monitored_by];
        if related.iter().flatten().any(|pid| pid.node() != own) {
            return slot.end(End::NotHere);
        }
        if request.node == own {
            let spawned = request.spawn_here(peers, Box::new(arguments));
            return slot.end(End::Answered(spawned));
        }
        let Some(peer) = peers.node(request.node) else {
            return slot.end(End::NodeDown);
        };
        let sent = peer.send_if_room(request.node, SPAWN, |_, limit| {
            let mut out = Encoder::new(&peers.identities);
            out.str(&request.tag);
            out.reply(slot.clone().reply());
            for pid in related {
                out.bool(pid.is_some());
                pid.into_iter().for_each(|pid| out.pid(pid));
            }
            arguments.encode(&mut out);
            let is_short = out.bytes.len() + ORDERED <= limit;
            match is_short && out.pending.len() == 1 {
                true => Ok((out.bytes, out.pending)),
                false => {
                    // Before the drop of the place for the answer.
                    slot.end(End::NotCarried);
                    Err(())
                }
            }
        });
        match sent {
            Ok(_) => {}
            Err(SendError::NoRoom(())) => slot.end(End::Full),
            Err(_) => slot.end(End::NodeDown),
        }
    }
}

impl Request {
    fn spawn_here(&self, peers: &Peers, arguments: Box<dyn std::any::Any + Send>) -> Outcome {
        let handle = &peers.handle;
        let (behaviours, arguments) = (&peers.settings.behaviours, Arguments::Value(arguments));
        behaviours.spawn(handle, &self.tag, arguments, &mut |pid| {
            self.linked_to
                .into_iter()
                .for_each(|to| handle.link(to, pid));
            self.monitored_by
                .into_iter()
                .for_each(|by| handle.monitor(by, pid));
        })
    }
}

/// Makes the halves of a process here, which another node has spawned (rule 1).
pub(crate) fn relate(peers: &Peers, pid: Pid, linked_to: Option<Pid>, monitored_by: Option<Pid>) {
    let link = linked_to.map(|with| Signal::Link { with });
    let monitor = monitored_by.map(|by| Signal::Monitor { by });
    for signal in link.into_iter().chain(monitor) {
        // The process has not ended: it has not run.
        let _ = peers.handle.deliver(pid, Parcel::Signal(signal));
    }
}

/// How a request ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Answered(Outcome),
    NodeDown,
    InDoubt,
    Full,
    NotCarried,
    NotHere,
    /// The node has answered what no node answers.
    Invalid,
}

/// Ends a process that this node has spawned: its relations to processes here, and itself. It ends
/// by its link if its node takes no kill from this one.
pub(crate) fn dispose(peers: &Peers, pid: Pid, linked_to: Option<Pid>, monitored_by: Option<Pid>) {
    let handle = &peers.handle;
    if let Some(pid_of_link) = linked_to {
        let exit = Signal::Exit {
            pid: pid_of_link,
            reason: ExitReason::Killed,
            linked: true,
        };
        match pid.node() == peers.identities.own_number() {
            true => drop(handle.deliver(pid, Parcel::Signal(exit))),
            false => drop(signal_to(peers, pid, &exit)),
        }
        handle.unlink(pid_of_link, pid);
    }
    if let Some(by) = monitored_by {
        handle.demonitor(by, pid);
    }
    handle.kill(pid);
}

/// The place of a request's end.
struct Slot {
    peers: Weak<Peers>,
    request: Request,
    state: Mutex<SlotState>,
    has_ended: Condvar,
}

#[derive(Default)]
struct SlotState {
    end: Option<End>,
    waker: Option<Waker>,
    /// The future was dropped, or has taken the end.
    is_over: bool,
}

impl Slot {
    /// Ends the request. Only the first end counts.
    fn end(&self, end: End) {
        let mut state = lock(&self.state);
        if state.is_over {
            drop(state);
            return self.dispose(&end);
        }
        state.end.get_or_insert(end);
        let waker = state.waker.take();
        drop(state);
        self.has_ended.notify_all();
        waker.into_iter().for_each(Waker::wake);
    }

    /// Returns the place for the answer, whose taker makes the halves of this node (rule 2).
    fn reply(self: Arc<Self>) -> Reply<Outcome> {
        Reply::from_fn(move |answer| {
            let request = &self.request;
            let end = match answer {
                Ok(Outcome::Spawned(pid)) if pid.node() != request.node => End::Invalid,
                Ok(outcome) => End::Answered(outcome),
                Err(CallError::NodeDown) => End::InDoubt,
                Err(_) => End::Invalid,
            };
            let peers = self.peers.upgrade();
            if let (End::Answered(Outcome::Spawned(pid)), Some(peers)) = (&end, peers) {
                if let Some(to) = request.linked_to {
                    peers.handle.complete_link(to, *pid);
                }
                if let Some(by) = request.monitored_by {
                    peers.handle.complete_monitor(by, *pid);
                }
            }
            self.end(end);
        })
    }

    /// Ends the process of an end that nobody takes (rule 3).
    fn dispose(&self, end: &End) {
        if let (End::Answered(Outcome::Spawned(pid)), Some(peers)) = (end, self.peers.upgrade()) {
            let Request {
                linked_to,
                monitored_by,
                ..
            } = self.request;
            dispose(&peers, *pid, linked_to, monitored_by);
        }
    }
}

/// The future of a [`SpawnOn`]. If it is dropped before its end, the process is killed once it is
/// there.
#[must_use = "the pid is in the future"]
pub struct Spawning<A> {
    slot: Arc<Slot>,
    arguments: Option<A>,
}

impl<A> Spawning<A> {
    fn finish(&mut self, end: End) -> Result<Pid, SpawnOnError<A>> {
        let arguments = self.arguments.take().expect("it has not ended before");
        Err(match end {
            End::Answered(Outcome::Spawned(pid)) => return Ok(pid),
            End::Answered(Outcome::UnknownTag) => SpawnOnError::UnknownTag(arguments),
            End::Answered(Outcome::NotAuthorized) => SpawnOnError::NotAuthorized(arguments),
            End::Answered(Outcome::BadArguments) => SpawnOnError::BadArguments(arguments),
            End::Answered(Outcome::Refused(why)) => SpawnOnError::Refused(arguments, why),
            End::NodeDown => SpawnOnError::NodeDown(arguments),
            End::InDoubt | End::Invalid => SpawnOnError::InDoubt(arguments),
            End::Full => SpawnOnError::Full(arguments),
            End::NotCarried => SpawnOnError::NotCarried(arguments),
            End::NotHere => SpawnOnError::NotHere(arguments),
        })
    }

    fn wait(mut self) -> Result<Pid, SpawnOnError<A>> {
        let end = {
            let mut state = lock(&self.slot.state);
            loop {
                if let Some(end) = state.take() {
                    break end;
                }
                let waited = self.slot.has_ended.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
            }
        };
        self.finish(end)
    }
}

impl SlotState {
    fn take(&mut self) -> Option<End> {
        let end = self.end.take()?;
        self.is_over = true;
        Some(end)
    }
}

impl<A: Message + Clone> IntoFuture for SpawnOn<A> {
    type Output = Result<Pid, SpawnOnError<A>>;
    type IntoFuture = Spawning<A>;

    fn into_future(self) -> Spawning<A> {
        let slot = Arc::new(Slot {
            peers: Arc::downgrade(&self.peers),
            request: self.request,
            state: Mutex::default(),
            has_ended: Condvar::new(),
        });
        Self::begin(&self.peers, &slot, self.arguments.clone());
        Spawning {
            slot,
            arguments: Some(self.arguments),
        }
    }
}

impl<A> Unpin for Spawning<A> {}

impl<A> Future for Spawning<A> {
    type Output = Result<Pid, SpawnOnError<A>>;

    /// # Panics
    /// If the future has ended.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let waker = cx.waker().clone();
        let mut state = lock(&self.slot.state);
        let Some(end) = state.take() else {
            let before = state.waker.replace(waker);
            drop(state);
            drop(before);
            return Poll::Pending;
        };
        drop(state);
        Poll::Ready(self.finish(end))
    }
}

impl<A> Drop for Spawning<A> {
    fn drop(&mut self) {
        let end = {
            let mut state = lock(&self.slot.state);
            let is_over = std::mem::replace(&mut state.is_over, true);
            state.end.take().filter(|_| !is_over)
        };
        if let Some(end) = end {
            self.slot.dispose(&end);
        }
    }
}

impl<A> fmt::Debug for SpawnOn<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpawnOn")
            .field("node", &self.request.node)
            .field("tag", &self.request.tag)
            .finish_non_exhaustive()
    }
}

impl<A> fmt::Debug for Spawning<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spawning")
    }
}
