//! The engine: a session of zenoh.
use crate::{
    builder::ZenohBuilder,
    links::{Keys, Links, Notice, lock},
};
use process_cluster::{Engine, PeerId, Sink, Unsent};
use std::{
    fmt,
    sync::{Arc, Mutex, OnceLock, mpsc},
    thread::{self, JoinHandle},
};
use zenoh::{Session, Wait, sample::Locality};

/// An engine over [zenoh](https://zenoh.io), for one cluster.
///
/// A clone is the same engine, for its counters.
///
/// ```
/// use process_cluster::Cluster;
/// use process_cluster_zenoh::Zenoh;
/// use process_scheduler::Scheduler;
///
/// let scheduler = Scheduler::new();
/// let zenoh = Zenoh::builder().listen("tcp/127.0.0.1:0").insecure_loopback().build()?;
/// let cluster = Cluster::builder("bank-1").join(&scheduler, zenoh.clone())?;
/// assert_eq!(cluster.nodes(), []);
/// assert_eq!(zenoh.metrics().transports, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Zenoh {
    shared: Arc<Shared>,
}

struct Shared {
    config: zenoh::Config,
    cluster: String,
    links: OnceLock<Arc<Links>>,
    running: Mutex<Option<Running>>,
}

/// The session, and the thread that tells the sink of peers.
struct Running {
    session: Session,
    teller: JoinHandle<()>,
}

/// The counters of an engine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ZenohMetrics {
    /// Transports that came: with TLS, each is one of a peer whose certificate was accepted.
    pub transports: u64,
    /// Packets of peers that were cut, or were of another version.
    pub malformed: u64,
    /// Packets that named a sender without a transport.
    pub strangers: u64,
}

impl Zenoh {
    /// Returns a builder.
    pub fn builder() -> ZenohBuilder {
        ZenohBuilder::new()
    }

    pub(crate) fn new(config: zenoh::Config, cluster: String) -> Self {
        Self {
            shared: Arc::new(Shared {
                config,
                cluster,
                links: OnceLock::new(),
                running: Mutex::new(None),
            }),
        }
    }

    /// Returns the counters.
    pub fn metrics(&self) -> ZenohMetrics {
        let links = self.shared.links.get();
        links.map_or_else(ZenohMetrics::default, |links| links.metrics())
    }

    /// Returns the addresses at which this node takes connections, such as `tls/10.0.0.1:7447`:
    /// none before it has joined.
    pub fn locators(&self) -> Vec<String> {
        let running = lock(&self.shared.running);
        let Some(running) = &*running else {
            return Vec::new();
        };
        let locators = running.session.info().locators().wait();
        locators.iter().map(ToString::to_string).collect()
    }
}

impl Engine for Zenoh {
    fn start(&self, sink: Sink) -> Result<(), String> {
        let (sender, notices) = mpsc::channel();
        let links = Arc::new(Links::new(sink, sender));
        if self.shared.links.set(links.clone()).is_err() {
            return Err("an engine is for one cluster, and starts once".to_owned());
        }
        let text = |error: zenoh::Error| error.to_string();
        let session = zenoh::open(self.shared.config.clone())
            .wait()
            .map_err(text)?;
        let keys = Keys {
            cluster: self.shared.cluster.clone(),
            own: session.zid().to_string(),
        };
        let (takes, told) = (links.clone(), links.clone());
        let subscriber = session
            .declare_subscriber(keys.of_all_to_own())
            .callback(move |sample| takes.on_sample(&sample))
            .allowed_origin(Locality::Remote);
        subscriber.background().wait().map_err(text)?;
        let info = session.info();
        let listener = info.transport_events_listener().history(true);
        let listener = listener.callback(move |event| told.on_transport(&event));
        listener.background().wait().map_err(text)?;
        let told = links.clone();
        let listener = info.link_events_listener().history(true);
        let listener = listener.callback(move |_| told.notify(Notice::Connected));
        listener.background().wait().map_err(text)?;
        let of_teller = session.clone();
        let teller = thread::Builder::new().name("cluster zenoh".to_owned());
        let teller = teller.spawn(move || links.tell_until_the_stop(&of_teller, &keys, &notices));
        let teller = teller.map_err(|error| format!("a thread has not started: {error}"))?;
        *lock(&self.shared.running) = Some(Running { session, teller });
        Ok(())
    }

    fn send(&self, to: &PeerId, frame: &[u8]) -> Result<(), Unsent> {
        let links = self.shared.links.get().ok_or(Unsent)?;
        links.send_one(to, frame)
    }

    fn send_all(&self, to: &PeerId, frames: &[Vec<u8>]) -> Result<(), Unsent> {
        let links = self.shared.links.get().ok_or(Unsent)?;
        links.send(to, frames)
    }

    fn stop(&self) {
        let Some(Running { session, teller }) = lock(&self.shared.running).take() else {
            return;
        };
        if let Some(links) = self.shared.links.get() {
            links.notify(Notice::Stop);
        }
        // Errors say that it is closed, and that the teller has panicked.
        let _ = session.close().wait();
        let _ = teller.join();
    }
}

impl fmt::Debug for Zenoh {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Zenoh")
            .field("cluster", &self.shared.cluster)
            .field("metrics", &self.metrics())
            .finish_non_exhaustive()
    }
}
