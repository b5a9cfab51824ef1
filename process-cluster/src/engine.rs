//! The seam to a transport, which carries the frames.
use std::{fmt, sync::Weak};

/// Names a peer to its engine, such as the id of a transport's session.
///
/// A peer that comes back may have the same id, or another one: the cluster tells its nodes apart
/// by what they say of themselves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub String);

impl fmt::Display for PeerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A transport between nodes. The cluster gives it whole frames, and gets whole frames.
///
/// The cluster relies on nothing else: a frame may be lost, come twice, come late, or come before
/// [`Sink::up`]. The cluster then counts the node as lost, and begins a new session.
pub trait Engine: Send + Sync + 'static {
    /// Starts to connect peers, and to tell the sink of them.
    ///
    /// # Errors
    /// If the transport cannot be started. The text says why.
    fn start(&self, sink: Sink) -> Result<(), String>;

    /// Sends a frame. It may block: each peer has a thread that does nothing else. An error counts
    /// as a lost frame.
    ///
    /// # Errors
    /// If the peer is not there.
    fn send(&self, to: &PeerId, frame: &[u8]) -> Result<(), Unsent>;

    /// Sends frames that wait for the same peer, in their order. By default it sends one after the
    /// other. An engine whose packets cost much puts them together.
    ///
    /// # Errors
    /// If the peer is not there: some of the frames were not sent.
    fn send_all(&self, to: &PeerId, frames: &[Vec<u8>]) -> Result<(), Unsent> {
        frames.iter().try_for_each(|frame| self.send(to, frame))
    }

    /// Disconnects all peers, and tells the sink nothing more.
    fn stop(&self);
}

/// The error of a frame that an engine has not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent;

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the frame was not sent")
    }
}

impl std::error::Error for Unsent {}

/// The cluster, as an engine's sink knows it.
pub(crate) trait Receives: Send + Sync {
    fn up(&self, peer: PeerId);
    fn down(&self, peer: &PeerId);
    fn frame(&self, from: &PeerId, frame: &[u8]);
}

/// Takes what an engine has for the cluster.
///
/// The calls for one peer must come one after the other. After the end of the cluster they do
/// nothing.
#[derive(Clone)]
pub struct Sink(pub(crate) Weak<dyn Receives>);

impl Sink {
    /// A peer is there: from now on frames reach it.
    pub fn up(&self, peer: PeerId) {
        if let Some(peers) = self.0.upgrade() {
            peers.up(peer);
        }
    }

    /// A peer is gone.
    pub fn down(&self, peer: &PeerId) {
        if let Some(peers) = self.0.upgrade() {
            peers.down(peer);
        }
    }

    /// A frame has come.
    pub fn frame(&self, from: &PeerId, frame: &[u8]) {
        if let Some(peers) = self.0.upgrade() {
            peers.frame(from, frame);
        }
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sink")
    }
}
