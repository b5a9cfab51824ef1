//! The packets that hosts send each other.
use std::net::SocketAddr;

#[derive(Clone, Debug)]
pub(crate) enum Packet {
    Tcp(Segment),
    Udp(Datagram),
    /// The host of `to` has no socket for a datagram: `from` is told.
    Unreachable {
        from: SocketAddr,
        to: SocketAddr,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Datagram {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) data: Vec<u8>,
}

/// A segment of a connection. Bytes are numbered from 0 in each direction; the end of the stream
/// counts as one more byte.
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    /// The number of the connection: another one of the same addresses has another number.
    pub(crate) number: u64,
    pub(crate) kind: Kind,
    /// The number of the first byte.
    pub(crate) at: u64,
    pub(crate) data: Vec<u8>,
    /// Whether the stream ends behind `data`.
    pub(crate) ends: bool,
    /// The sender has all bytes before this one.
    pub(crate) has: u64,
    /// The sender has room for the bytes before this one.
    pub(crate) room: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The first segment of a client.
    Syn,
    /// The answer of a listener.
    SynAck,
    /// Bytes, the end, or only what its sender has.
    Data,
    /// Asks for an answer, as the receiver had no room.
    Probe,
    Reset,
}

impl Packet {
    /// Returns the length on the wire.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Tcp(segment) => 40 + segment.data.len(),
            Self::Udp(datagram) => 28 + datagram.data.len(),
            Self::Unreachable { .. } => 56,
        }
    }
}
