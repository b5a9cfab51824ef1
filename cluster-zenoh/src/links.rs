//! The peers of zenoh: the transports that are there, and a publisher for each.
//!
//! 1. Zenoh's callbacks for transports queue a notice. They call nothing of the cluster: they run
//!    on threads of zenoh that all transports share.
//! 2. One thread, the *teller*, takes the notices and tells the sink, in the order of zenoh's
//!    events: zenoh tells of the end of a transport before the next one with the same peer begins.
//! 3. A peer has a link from the first notice of its transport until the teller has the one
//!    of its end. Frames of a sender without a link are dropped, so a sender cannot make up peers.
//! 4. The frames of one peer, and the teller's calls for it, come one after the other: they hold
//!    the lock `turn` of the link.
use crate::{engine::ZenohMetrics, packet::Template};
use process_cluster::{PeerId, Sink, Unsent};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, mpsc},
};
use zenoh::{
    Session, Wait,
    pubsub::Publisher,
    qos::CongestionControl,
    sample::{Locality, Sample, SampleKind},
    session::TransportEvent,
};

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A notice for the teller.
pub(crate) enum Notice {
    /// A transport of this peer has come.
    Came(String),
    /// A transport of this peer has gone.
    Went(String),
    /// The peer has subscribed, so what was sent before is lost.
    Subscribed(String),
    /// There is another connection.
    Connected,
    Stop,
}

/// A peer with a transport.
pub(crate) struct Link {
    id: PeerId,
    /// The turn, with the template of what comes.
    turn: Mutex<Template>,
    /// The template of what goes.
    packs: Mutex<Template>,
    /// Set by the teller.
    publisher: OnceLock<Publisher<'static>>,
}

/// All links, and what the callbacks share.
pub(crate) struct Links {
    sink: Sink,
    /// The links, by the id of their peer.
    links: RwLock<HashMap<String, Arc<Link>>>,
    notices: Mutex<mpsc::Sender<Notice>>,
    counts: Mutex<ZenohMetrics>,
}

impl Links {
    pub(crate) fn new(sink: Sink, notices: mpsc::Sender<Notice>) -> Self {
        Self {
            sink,
            links: RwLock::default(),
            notices: Mutex::new(notices),
            counts: Mutex::default(),
        }
    }

    pub(crate) fn metrics(&self) -> ZenohMetrics {
        *lock(&self.counts)
    }

    fn link(&self, id: &str) -> Option<Arc<Link>> {
        let links = self.links.read().unwrap_or_else(PoisonError::into_inner);
        links.get(id).cloned()
    }

    fn get_or_insert(&self, id: &str) -> Arc<Link> {
        let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
        let link = links.entry(id.to_owned()).or_insert_with(|| {
            Arc::new(Link {
                id: PeerId(id.to_owned()),
                turn: Mutex::default(),
                packs: Mutex::default(),
                publisher: OnceLock::new(),
            })
        });
        link.clone()
    }

    pub(crate) fn notify(&self, notice: Notice) {
        // A teller that has ended does so with the engine.
        let _ = lock(&self.notices).send(notice);
    }

    /// Takes an event of zenoh.
    pub(crate) fn on_transport(&self, event: &TransportEvent) {
        let id = event.transport().zid().to_string();
        self.notify(match event.kind() {
            SampleKind::Put => {
                lock(&self.counts).transports += 1;
                self.get_or_insert(&id);
                Notice::Came(id)
            }
            SampleKind::Delete => Notice::Went(id),
        });
    }

    /// Takes a packet of zenoh.
    pub(crate) fn on_sample(&self, sample: &Sample) {
        let from = sample.key_expr().as_str().rsplit('/').next();
        let Some(link) = from.and_then(|from| self.link(from)) else {
            lock(&self.counts).strangers += 1;
            return;
        };
        let mut template = lock(&link.turn);
        let read = template.unpack(&sample.payload().to_bytes(), |frame| {
            self.sink.frame(&link.id, frame);
        });
        if read.is_err() {
            lock(&self.counts).malformed += 1;
        }
    }

    /// Sends frames to a peer. It may block for as long as the lease.
    pub(crate) fn send(&self, to: &PeerId, frames: &[Vec<u8>]) -> Result<(), Unsent> {
        self.put(to, |template| template.pack_all(frames))
    }

    /// Sends one frame to a peer, in the same way.
    pub(crate) fn send_one(&self, to: &PeerId, frame: &[u8]) -> Result<(), Unsent> {
        self.put(to, |template| (Some(template.pack(frame)), None))
    }

    fn put(
        &self,
        to: &PeerId,
        pack: impl FnOnce(&mut Template) -> (Option<Vec<u8>>, Option<Vec<u8>>),
    ) -> Result<(), Unsent> {
        let link = self.link(&to.0).ok_or(Unsent)?;
        let publisher = link.publisher.get().ok_or(Unsent)?;
        // The packets must go in the order of their templates.
        let mut template = lock(&link.packs);
        let (one, other) = pack(&mut template);
        for packet in one.into_iter().chain(other) {
            publisher.put(packet).wait().map_err(|_| Unsent)?;
        }
        Ok(())
    }

    /// Tells the sink of what the notices say, until the stop.
    pub(crate) fn tell_until_the_stop(
        self: Arc<Self>,
        session: &Session,
        keys: &Keys,
        notices: &mpsc::Receiver<Notice>,
    ) {
        for notice in notices {
            match notice {
                Notice::Came(id) => self.came(session, keys, &id),
                Notice::Went(id) => self.went(&id),
                Notice::Connected => turn_off_linger(session),
                Notice::Subscribed(id) => {
                    turn_off_linger(session);
                    if let Some(link) = self.link(&id) {
                        let _in_turn = lock(&link.turn);
                        self.sink.up(link.id.clone());
                    }
                }
                Notice::Stop => return,
            }
        }
    }

    fn came(self: &Arc<Self>, session: &Session, keys: &Keys, id: &str) {
        let link = self.get_or_insert(id);
        if link.publisher.get().is_none() {
            // An error says that the session is closed.
            let Ok(publisher) = self.publisher(session, keys, id) else {
                return;
            };
            let _ = link.publisher.set(publisher);
        }
        let _in_turn = lock(&link.turn);
        self.sink.up(link.id.clone());
    }

    fn publisher(
        self: &Arc<Self>,
        session: &Session,
        keys: &Keys,
        id: &str,
    ) -> zenoh::Result<Publisher<'static>> {
        let publisher = session
            .declare_publisher(keys.to(id))
            .congestion_control(CongestionControl::Block)
            .express(true)
            .allowed_destination(Locality::Remote)
            .wait()?;
        let (links, id) = (Arc::downgrade(self), id.to_owned());
        let listener = publisher.matching_listener().callback(move |status| {
            if let Some(links) = links.upgrade().filter(|_| status.matching()) {
                links.notify(Notice::Subscribed(id.clone()));
            }
        });
        listener.background().wait()?;
        Ok(publisher)
    }

    fn went(&self, id: &str) {
        let link = {
            let mut links = self.links.write().unwrap_or_else(PoisonError::into_inner);
            links.remove(id)
        };
        if let Some(link) = link {
            let _in_turn = lock(&link.turn);
            self.sink.down(&link.id);
        }
    }
}

fn turn_off_linger(session: &Session) {
    #[cfg(target_os = "linux")]
    crate::linger::turn_off(session);
    #[cfg(not(target_os = "linux"))]
    let _ = session;
}

/// The key expressions of a node: a frame's names its receiver, and then its sender.
pub(crate) struct Keys {
    pub(crate) cluster: String,
    pub(crate) own: String,
}

impl Keys {
    fn to(&self, id: &str) -> String {
        format!("{}/{id}/{}", self.cluster, self.own)
    }

    /// Returns the key of all frames to this node.
    pub(crate) fn of_all_to_own(&self) -> String {
        format!("{}/{}/*", self.cluster, self.own)
    }
}
