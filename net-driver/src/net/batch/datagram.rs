//! A datagram that was received.
use std::{fmt, net::SocketAddr};

/// A datagram without its bytes.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) from: SocketAddr,
    pub(super) len: usize,
    /// The length of the datagrams that were joined, or 0 for a single one.
    pub(super) segment: usize,
    pub(super) is_truncated: bool,
}

/// A datagram of a [`RecvBatch`](super::RecvBatch); with GRO, several that were joined.
///
/// ```
/// use net_driver::{Driver, net::{UdpSocket, batch::{RecvBatch, Transmit}}};
///
/// Driver::new(1).park(0).block_on(async {
///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
///     let at = socket.local_addr()?;
///     socket.send_many(&[Transmit::new(b"long").to(at)]).await?;
///     let mut batch = RecvBatch::new(1, 2);
///     socket.recv_many(&mut batch).await?;
///     let datagram = batch.get(0).unwrap();
///     assert_eq!((datagram.bytes(), datagram.is_truncated()), (&b"lo"[..], true));
///     assert_eq!((datagram.sender(), datagram.segment_size()), (at, None));
///     assert!(datagram.segments().eq([&b"lo"[..]]));
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
#[derive(Clone, Copy)]
pub struct Datagram<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) head: &'a Head,
}

impl<'a> Datagram<'a> {
    /// Returns the bytes that had room.
    pub fn bytes(self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the address of the sender.
    pub fn sender(self) -> SocketAddr {
        self.head.from
    }

    /// Returns whether the end of the datagram had no room, and is lost.
    pub fn is_truncated(self) -> bool {
        self.head.is_truncated
    }

    /// Returns the length of the datagrams that the kernel has joined. The last one may be shorter.
    /// `None` if this is a single datagram.
    pub fn segment_size(self) -> Option<usize> {
        (self.head.segment > 0).then_some(self.head.segment)
    }

    /// Returns the bytes of each of the datagrams that the kernel has joined, or of the single one.
    pub fn segments(self) -> impl ExactSizeIterator<Item = &'a [u8]> + Clone {
        let bytes = self.bytes;
        let size = self.segment_size().unwrap_or(bytes.len()).max(1);
        // A datagram without bytes is one segment.
        let count = bytes.len().div_ceil(size).max(1);
        (0..count).map(move |at| &bytes[at * size..bytes.len().min((at + 1) * size)])
    }
}

impl fmt::Debug for Datagram<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Datagram");
        out.field("len", &self.bytes.len())
            .field("sender", &self.head.from)
            .field("is_truncated", &self.head.is_truncated);
        if let Some(size) = self.segment_size() {
            out.field("segment_size", &size);
        }
        out.finish()
    }
}
