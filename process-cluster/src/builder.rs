//! The settings of a cluster, and the join.
use crate::{
    behaviours::Behaviours,
    change::NodeChange,
    cluster::Cluster,
    codec::Codecs,
    directory::MOST,
    engine::{Engine, Sink},
    identity::{Identities, Incarnation},
    peer::Peers,
    registrar,
    relay::ClusterRelay,
    settings::Settings,
    wire::Message,
};
use process_scheduler::{Handle, Process, Signal, Spawn};
use std::{
    fmt,
    hash::{BuildHasher, RandomState},
    io,
    sync::Arc,
    time::Duration,
};
use sync_shim::sim::thread;

/// The longest lease.
const MOST_LEASE: Duration = Duration::from_secs(24 * 60 * 60);

/// Settings of a [`Cluster`]. See [`Cluster::builder`].
#[must_use = "a builder does nothing until it joins"]
pub struct Builder {
    settings: Settings,
    error: Option<JoinError>,
}

/// Why a node has not joined.
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError {
    /// The name of the node, of a codec or of a behaviour is empty, or has more than 1,000 bytes.
    BadName(String),
    /// Two behaviours have this tag.
    BehaviourTaken(String),
    /// Two codecs have this name, or there are more than 65,536.
    CodecTaken(String),
    /// The scheduler has a relay already.
    HasRelay,
    /// The scheduler has ended.
    Closed,
    /// The engine has not started, for this reason.
    Engine(String),
    /// The names of the codecs take more bytes than a frame may have.
    TooManyCodecs,
    /// A thread has not started.
    Thread(io::Error),
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadName(name) => write!(
                f,
                "a name of a node, codec or behaviour must have 1 to {MOST} bytes: {name:?}"
            ),
            Self::CodecTaken(name) => {
                write!(f, "there is another codec {name:?}, or there are too many")
            }
            Self::BehaviourTaken(tag) => write!(f, "there is another behaviour {tag:?}"),
            Self::HasRelay => f.write_str("the scheduler has a relay already"),
            Self::Closed => f.write_str("the scheduler has ended"),
            Self::Engine(why) => write!(f, "the engine has not started: {why}"),
            Self::TooManyCodecs => {
                f.write_str("the names of the codecs exceed the limit of a frame")
            }
            Self::Thread(error) => write!(f, "a thread has not started: {error}"),
        }
    }
}

impl std::error::Error for JoinError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Thread(error) => Some(error),
            _ => None,
        }
    }
}

impl Cluster {
    /// Returns a builder for a node of this name. The names of the nodes should differ.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(name.into())
    }
}

impl Builder {
    pub(crate) fn new(name: String) -> Self {
        Self {
            error: bad_name(&name),
            settings: Settings {
                name,
                codecs: Codecs::default(),
                behaviours: Behaviours::default(),
                queue: 10_000,
                lease: Duration::from_secs(2),
                frame_limit: 1 << 20,
                admit: Box::new(|_| true),
                allow: Box::new(|_, _| true),
                allow_spawn: Box::new(|_, _| false),
                on_change: Box::new(|_| ()),
            },
        }
    }

    /// Lets messages of this type travel, under this name. Nodes that know the same name exchange
    /// such messages.
    ///
    /// Put a version into the name. A node may know several names of one type: the first one is
    /// what it sends. A new version of a message is another type under another name, and a node
    /// that knows both understands old nodes and new ones during a rolling upgrade. A message whose
    /// name the other node does not know is handed back.
    pub fn codec<M: Message>(mut self, name: &str) -> Self {
        let refused = bad_name(name).or_else(|| {
            let added = self.settings.codecs.add::<M>(name);
            (!added).then(|| JoinError::CodecTaken(name.to_owned()))
        });
        self.error = self.error.or(refused);
        self
    }

    /// Lets this node spawn processes by a tag, for itself and for the nodes that
    /// [`allow_spawn`](Self::allow_spawn) names. `make` makes the process of the arguments, and
    /// the settings with which it is spawned: see [`Cluster::spawn_on`].
    ///
    /// For another node, `make` and the process's `init` run while further frames of that node
    /// wait. So they must not block.
    pub fn behaviour<A, P>(
        mut self,
        tag: &str,
        make: impl Fn(A) -> (P, Spawn) + Send + Sync + 'static,
    ) -> Self
    where
        A: Message,
        P: Process,
    {
        let refused = bad_name(tag).or_else(|| {
            let added = self.settings.behaviours.add(tag, make);
            (!added).then(|| JoinError::BehaviourTaken(tag.to_owned()))
        });
        self.error = self.error.or(refused);
        self
    }

    /// Sets which nodes may spawn processes here, by the name of the node and the tag of the
    /// behaviour: none by default. A refusal is counted.
    pub fn allow_spawn(
        mut self,
        allow: impl Fn(&str, &str) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.settings.allow_spawn = Box::new(allow);
        self
    }

    /// Sets how many messages another node may have on their way to this one: 10,000 by default, at
    /// least 4. A sender that finds no room gets its message back, or awaits room.
    pub fn queue(mut self, messages: u32) -> Self {
        self.settings.queue = messages.max(4);
        self
    }

    /// Sets after which time of silence a node counts as lost: 2 seconds by default, at least 10
    /// milliseconds, and at most a day. A node gives a sign of life four times in that time.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease.clamp(Duration::from_millis(10), MOST_LEASE);
        self
    }

    /// Sets the most bytes of a frame, which is a message and 36 bytes: a mebibyte by default, at
    /// least 4 KiB, and at most a gibibyte. Two nodes exchange what both take. Longer ones are not
    /// sent, and are not taken.
    pub fn frame_limit(mut self, bytes: usize) -> Self {
        self.settings.frame_limit = bytes.clamp(4 << 10, 1 << 30);
        self
    }

    /// Sets which nodes are admitted, by their names: all by default. A node that is not admitted
    /// gets nothing but hellos, which have the names of this node and of its codecs, and is
    /// counted. A name proves nothing by itself: let the engine check who a peer is.
    pub fn admit(mut self, admit: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        self.settings.admit = Box::new(admit);
        self
    }

    /// Sets which signals other nodes may send to processes here, by the name of the node: all by
    /// default. Exits are always taken.
    pub fn allow(mut self, allow: impl Fn(&str, &Signal) -> bool + Send + Sync + 'static) -> Self {
        self.settings.allow = Box::new(allow);
        self
    }

    /// Sets a hook for nodes that come and go, and for names that are lost. It runs on a thread of
    /// its own, in the order of the changes. A hook that keeps the cluster itself keeps it for
    /// ever. A panic of the hook is dropped.
    pub fn on_change(mut self, hook: impl Fn(&NodeChange) + Send + Sync + 'static) -> Self {
        self.settings.on_change = Box::new(hook);
        self
    }

    /// Joins the other nodes of the engine. The scheduler's pids of other nodes are the cluster's
    /// from now on.
    ///
    /// # Errors
    /// If a name is bad, the scheduler has a relay or has ended, or the engine or a thread has not
    /// started.
    pub fn join(self, scheduler: &Handle, engine: impl Engine) -> Result<Cluster, JoinError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let handle = scheduler.handle();
        let salt = RandomState::new().hash_one(&self.settings.name);
        let identities = Identities::new(Incarnation::now(salt), handle.node());
        let engine: Arc<dyn Engine> = Arc::new(engine);
        let identities = Arc::new(identities);
        let peers = Peers::new(handle.clone(), self.settings, engine.clone(), identities);
        let weak = Arc::downgrade(&peers);
        if peers.hello_length() > peers.settings.frame_limit {
            return Err(JoinError::TooManyCodecs);
        }
        let relay = handle.set_relay(ClusterRelay(weak.clone()));
        relay.map_err(|_| JoinError::HasRelay)?;
        // From here on its drop undoes all.
        let cluster = Cluster::new(peers.clone());
        registrar::start(&handle, &peers).map_err(|_| JoinError::Closed)?;
        let (ticks, tells) = (peers.clone(), peers.clone());
        let thread = |name: &str| thread::Builder::new().name(name.to_owned());
        let ticker = thread("cluster").spawn(move || ticks.tick_until_the_end());
        let teller = thread("cluster changes").spawn(move || tells.tell_until_the_end());
        // They end by themselves, soon after the cluster.
        drop((
            ticker.map_err(JoinError::Thread)?,
            teller.map_err(JoinError::Thread)?,
        ));
        engine.start(Sink(weak as _)).map_err(JoinError::Engine)?;
        peers.engine_has_started();
        Ok(cluster)
    }
}

fn bad_name(name: &str) -> Option<JoinError> {
    let is_bad = name.is_empty() || name.len() > MOST;
    is_bad.then(|| JoinError::BadName(name.to_owned()))
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.settings.name)
            .field("codecs", &self.settings.codecs)
            .finish_non_exhaustive()
    }
}
