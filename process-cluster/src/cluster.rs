//! A node's view of the cluster.
use crate::{
    counters::ClusterMetrics,
    directory::{MOST, RegisterError},
    frame::{ORDERED, PUBLISH},
    peer::Peers,
    wire::{Encoder, Message},
};
use process_scheduler::{Node, Pid};
use std::{
    collections::BTreeMap,
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};
use sync_shim::sim::thread;

/// How far a message to a group went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Published {
    /// The members of this node that have taken it.
    pub here: usize,
    /// The nodes to which it went.
    pub nodes: usize,
    /// The members of this node, and the nodes, that did not take it.
    pub refused: usize,
}

/// A node's membership of a cluster. It ends with this value.
///
/// ```
/// use process_cluster::{Cluster, MemoryNetwork};
/// use process_scheduler::{Reply, Scheduler};
/// use std::time::Duration;
/// # use process_cluster::{DecodeError, Decoder, Encoder, Message};
/// # struct Double(u64, Reply<u64>);
/// # impl Message for Double {
/// #     fn encode(self, out: &mut Encoder<'_>) { out.u64(self.0); out.reply(self.1); }
/// #     fn decode(input: &mut Decoder<'_>) -> Result<Self, DecodeError> {
/// #         Ok(Self(input.u64()?, input.reply()?))
/// #     }
/// # }
///
/// let network = MemoryNetwork::new();
/// let [here, there] = [(); 2].map(|()| Scheduler::new());
/// let join = |scheduler: &Scheduler, name| {
///     let builder = Cluster::builder(name).codec::<Double>("double/1");
///     builder.join(scheduler, network.engine(name)).unwrap()
/// };
/// let (a, b) = (join(&here, "a"), join(&there, "b"));
///
/// let doubler = there.spawn_fn(|Double(n, reply), _| drop(reply.send(2 * n))).unwrap();
/// b.register("doubler", doubler.pid()).unwrap();
/// let pid = loop {
///     if let Some(pid) = a.whereis("doubler") {
///         break pid;
///     }
///     std::thread::sleep(Duration::from_millis(1));
/// };
/// let address = here.address::<Double>(pid).unwrap();
/// let answer = address.call(|reply| Double(21, reply), Duration::from_secs(9)).wait();
/// assert_eq!(answer, Ok(42));
/// ```
#[must_use = "the node leaves when this is dropped"]
pub struct Cluster {
    peers: Arc<Peers>,
}

impl Cluster {
    pub(crate) fn new(peers: Arc<Peers>) -> Self {
        Self { peers }
    }

    pub(crate) fn peers(&self) -> &Arc<Peers> {
        &self.peers
    }

    /// Returns the nodes that are reached, without this one.
    pub fn nodes(&self) -> Vec<Node> {
        self.peers.handle.nodes()
    }

    /// Returns this node's name.
    pub fn name(&self) -> &str {
        &self.peers.settings.name
    }

    /// Gives a process of this node a name in the whole cluster, until the process ends.
    ///
    /// A node that another one does not reach may register the same name. When they reach each
    /// other, the node with the older incarnation keeps it, and the other one is told
    /// ([`NodeChange::NameLost`](crate::NodeChange::NameLost)).
    ///
    /// # Errors
    /// If a process is known that has the name, this node has no such process, or the name is too
    /// long.
    pub fn register(&self, name: &str, pid: Pid) -> Result<(), RegisterError> {
        self.check(name, pid)?;
        self.peers.directory.register(&*self.peers, name, pid)?;
        self.watch(pid)
    }

    fn check(&self, name: &str, pid: Pid) -> Result<(), RegisterError> {
        if name.len() > MOST {
            return Err(RegisterError::TooLong);
        }
        let is_own = pid.node() == self.peers.identities.own_number();
        match is_own && self.peers.handle.inspect(pid).is_some() {
            true => Ok(()),
            false => Err(RegisterError::NotHere),
        }
    }

    fn watch(&self, pid: Pid) -> Result<(), RegisterError> {
        match self.peers.watch(pid) {
            true => Ok(()),
            false => Err(RegisterError::NotHere),
        }
    }

    /// Takes a name away from a process of this node. Returns whether one had it.
    pub fn unregister(&self, name: &str) -> bool {
        self.peers.directory.unregister(&*self.peers, name)
    }

    /// Returns the process that has a name, as far as this node knows.
    pub fn whereis(&self, name: &str) -> Option<Pid> {
        self.peers.directory.whereis(name)
    }

    /// Puts a process of this node into a group, until it ends.
    ///
    /// # Errors
    /// If this node has no such process, or the name of the group is too long.
    pub fn join(&self, group: &str, pid: Pid) -> Result<(), RegisterError> {
        self.check(group, pid)?;
        self.peers.directory.join(&*self.peers, group, pid);
        self.watch(pid)
    }

    /// Takes a process of this node out of a group. Returns whether it was a member.
    pub fn leave_group(&self, group: &str, pid: Pid) -> bool {
        self.peers.directory.leave(&*self.peers, group, pid)
    }

    /// Returns the members of a group on all nodes, as far as this node knows, in the order of
    /// their pids.
    pub fn members(&self, group: &str) -> Vec<Pid> {
        self.peers.directory.members(group)
    }

    /// Sends a message to each member of a group. A node gets it once, for all of its members. A
    /// message that asks for an answer is not sent: it has one answer and many receivers.
    pub fn publish<M: Message + Clone>(&self, group: &str, message: &M) -> Published {
        let mut published = Published::default();
        let mut others = BTreeMap::new();
        for pid in self.members(group) {
            if pid.node() != self.peers.identities.own_number() {
                others.insert(pid.node(), ());
            } else if self.peers.handle.try_send(pid, message.clone()).is_ok() {
                published.here += 1;
            } else {
                published.refused += 1;
            }
        }
        for node in others.into_keys() {
            match self.publish_to(node, group, message) {
                true => published.nodes += 1,
                false => published.refused += 1,
            }
        }
        published
    }

    fn publish_to<M: Message + Clone>(&self, node: u32, group: &str, message: &M) -> bool {
        let Some(peer) = self.peers.node(node) else {
            return false;
        };
        let codecs = &self.peers.settings.codecs;
        let Some((tag, _)) = codecs.tag_of(message) else {
            return false;
        };
        let sent = peer.send_if_room(node, PUBLISH, |tags, limit| {
            let theirs = tags.get(usize::from(tag)).copied().flatten().ok_or(())?;
            let mut out = Encoder::new(&self.peers.identities);
            out.str(group);
            out.u16(theirs);
            message.clone().encode(&mut out);
            let is_short = out.bytes.len() + ORDERED <= limit;
            match is_short && out.pending.is_empty() {
                true => Ok((out.bytes, Vec::new())),
                false => Err(()),
            }
        });
        matches!(sent, Ok(Ok(())))
    }

    /// Returns the node to which a key belongs, among those that are reached and this one: its
    /// number. It is chosen by the names of the nodes, by rendezvous hashing, so a node that comes
    /// or goes moves its own keys alone.
    ///
    /// There is no consensus: nodes that reach different nodes place a key differently. So the two
    /// sides of a split may both hold the process of a key.
    pub fn place(&self, key: impl AsRef<[u8]>) -> u32 {
        self.peers.place(key.as_ref())
    }

    /// Returns the counters.
    pub fn metrics(&self) -> ClusterMetrics {
        self.peers.counters.snapshot()
    }

    /// Leaves the cluster. The other nodes learn so at once: they forget the names and groups of
    /// this one, place no keys here, and refuse new messages for it. Then this call waits until
    /// the calls that they have sent before are answered here, but at most for `limit`. Returns how
    /// many are not.
    pub fn leave(self, limit: Duration) -> usize {
        let begun = Instant::now();
        self.peers.begin_to_leave();
        loop {
            // In this order: a node sends no call after its note.
            let have_noted = self.peers.all_have_noted();
            let unanswered = self.peers.unanswered();
            if (have_noted && unanswered == 0) || begun.elapsed() >= limit {
                return unanswered;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.peers.end();
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cluster")
            .field("name", &self.name())
            .field("nodes", &self.nodes().len())
            .finish_non_exhaustive()
    }
}
