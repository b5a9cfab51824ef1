//! Many datagrams by one system call: the types that
//! [`UdpSocket::recv_many`](super::UdpSocket::recv_many) and
//! [`UdpSocket::send_many`](super::UdpSocket::send_many) take.
//!
//! A [`RecvBatch`] owns the memory of the datagrams that it receives, and is used again and again.
//! A send borrows its bytes, one [`Transmit`] for each datagram. So neither allocates or copies.
//!
//! An echo server sends from the batch into which it has received. A send takes as many datagrams
//! as the kernel has room for, so a loop sends the rest:
//!
//! ```
//! use net_driver::{Driver, net::{UdpSocket, batch::{RecvBatch, Transmit}}};
//!
//! async fn echo(socket: &UdpSocket, batch: &mut RecvBatch) -> std::io::Result<()> {
//!     let count = socket.recv_many(batch).await?;
//!     let mut answers = [Transmit::new(b""); 16];
//!     for (answer, each) in answers.iter_mut().zip(batch.iter()) {
//!         *answer = Transmit::new(each.bytes()).to(each.sender());
//!     }
//!     let mut sent = 0;
//!     while sent < count {
//!         sent += socket.send_many(&answers[sent..count]).await?;
//!     }
//!     Ok(())
//! }
//!
//! Driver::new(1).park(0).block_on(async {
//!     let server = UdpSocket::bind("127.0.0.1:0").await?;
//!     let client = UdpSocket::bind("127.0.0.1:0").await?;
//!     client.connect(server.local_addr()?).await?;
//!     let (one, other) = (Transmit::new(b"one"), Transmit::new(b"other"));
//!     assert_eq!(client.send_many(&[one, other]).await?, 2);
//!
//!     // Up to 16 datagrams at a time, of up to 2,048 bytes each.
//!     let mut batch = RecvBatch::new(16, 2_048);
//!     echo(&server, &mut batch).await?;
//!     assert_eq!(client.recv_many(&mut batch).await?, 2);
//!     let first = batch.get(0).unwrap();
//!     assert_eq!((first.bytes(), first.sender()), (&b"one"[..], server.local_addr()?));
//!     assert!(!first.is_truncated());
//!     std::io::Result::Ok(())
//! }).unwrap();
//! ```
//!
//! # Systems
//! On Linux one call of `recvmmsg` or `sendmmsg` moves up to 64 datagrams. On other Unix systems
//! each datagram is a call of its own. In both cases the first error ends the batch: the operation
//! returns how many datagrams went before, and the next operation reports the error.
//!
//! # Segments
//! On Linux several datagrams of one length can pass through the kernel as one buffer. A
//! [`Transmit`] with a `segment_size` is cut up below the socket (GSO). A socket with
//! [`set_gro`](super::UdpSocket::set_gro) receives datagrams of one peer that are joined (GRO), and
//! [`Datagram::segments`] cuts them up.
use std::{fmt, io, net::Ipv4Addr, net::SocketAddr, os::fd::BorrowedFd};

#[cfg(target_os = "linux")]
pub(super) mod linux;
#[cfg(any(test, not(target_os = "linux")))]
pub(super) mod portable;

/// The most datagrams of one operation. More would hold up the worker's other tasks, and save
/// little: the call is a small part of the time of so many datagrams.
pub(super) const MOST: usize = 64;

/// Room for datagrams, which [`recv_many`](super::UdpSocket::recv_many) fills.
///
/// A receive empties it first. It is empty after an error, and while a receive waits.
///
/// ```
/// use net_driver::net::batch::RecvBatch;
///
/// let mut batch = RecvBatch::new(8, 1_500);
/// assert_eq!((batch.slots(), batch.room(), batch.len()), (8, 1_500, 0));
/// assert!(batch.is_empty() && batch.get(0).is_none() && batch.iter().next().is_none());
/// batch.clear();
/// ```
pub struct RecvBatch {
    /// The memory of all slots, one behind the other.
    bytes: Vec<u8>,
    heads: Vec<Head>,
    #[cfg(target_os = "linux")]
    rooms: Vec<linux::Room>,
    room: usize,
    filled: usize,
}

/// A datagram without its bytes.
#[derive(Clone, Copy)]
pub(super) struct Head {
    pub(super) from: SocketAddr,
    pub(super) len: usize,
    /// The length of the datagrams that were joined, or 0 for a single one.
    pub(super) segment: usize,
    pub(super) is_truncated: bool,
}

impl RecvBatch {
    /// Creates a batch of `slots` datagrams of up to `room` bytes each. A longer one loses its end.
    ///
    /// An operation fills up to 64 slots. A datagram has up to 65,507 bytes of data over IPv4, and
    /// up to 65,527 over IPv6. With [`set_gro`](super::UdpSocket::set_gro) a slot should have room
    /// for 65,535 bytes. A batch without slots receives nothing, and the count is then 0.
    ///
    /// # Panics
    /// If so much memory cannot be addressed.
    pub fn new(slots: usize, room: usize) -> Self {
        let nobody = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
        let head = Head {
            from: nobody,
            len: 0,
            segment: 0,
            is_truncated: false,
        };
        let len = slots.checked_mul(room);
        Self {
            bytes: vec![0; len.expect("the memory of a batch can be addressed")],
            heads: vec![head; slots],
            #[cfg(target_os = "linux")]
            rooms: vec![linux::Room::default(); slots.min(MOST)],
            room,
            filled: 0,
        }
    }

    /// Returns the number of datagrams that the last receive has brought.
    pub fn len(&self) -> usize {
        self.filled
    }

    /// Returns whether there is no datagram.
    pub fn is_empty(&self) -> bool {
        self.filled == 0
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.heads.len()
    }

    /// Returns the most bytes of a datagram.
    pub fn room(&self) -> usize {
        self.room
    }

    /// Removes all datagrams.
    pub fn clear(&mut self) {
        self.filled = 0;
    }

    /// Returns a datagram, in the order in which they came.
    pub fn get(&self, at: usize) -> Option<Datagram<'_>> {
        let head = self.heads[..self.filled].get(at)?;
        let bytes = &self.bytes[at * self.room..][..head.len];
        Some(Datagram { bytes, head })
    }

    /// Returns the datagrams, in the order in which they came.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Datagram<'_>> + Clone {
        let heads = self.heads[..self.filled].iter().enumerate();
        heads.map(|(at, head)| Datagram {
            bytes: &self.bytes[at * self.room..][..head.len],
            head,
        })
    }

    /// Fills the slots with the datagrams that have come.
    #[cfg(target_os = "linux")]
    pub(super) fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        self.filled = 0;
        let slots = (&mut *self.bytes, self.room);
        self.filled = linux::receive(socket, slots, &mut self.rooms, &mut self.heads)?;
        Ok(self.filled)
    }

    /// Fills the slots with the datagrams that have come. `late` keeps the error that ends a batch.
    #[cfg(any(test, not(target_os = "linux")))]
    pub(super) fn receive_each(
        &mut self,
        socket: BorrowedFd<'_>,
        late: &portable::LateError,
    ) -> io::Result<usize> {
        self.filled = 0;
        let slots = (&mut *self.bytes, self.room);
        self.filled = portable::receive(socket, slots, &mut self.heads, late)?;
        Ok(self.filled)
    }
}

impl fmt::Debug for RecvBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// A datagram of a [`RecvBatch`]; with GRO, several that were joined.
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
    bytes: &'a [u8],
    head: &'a Head,
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

/// A datagram to send, for [`send_many`](super::UdpSocket::send_many).
///
/// ```
/// use net_driver::net::batch::Transmit;
///
/// let to_the_connected_address = Transmit::new(b"hello");
/// let to_another = to_the_connected_address.to(([127, 0, 0, 1], 9).into());
/// # let _ = to_another;
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Transmit<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) to: Option<SocketAddr>,
    #[cfg(target_os = "linux")]
    pub(super) segment: u16,
}

impl<'a> Transmit<'a> {
    /// Creates a datagram for the address to which the socket is connected.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            to: None,
            #[cfg(target_os = "linux")]
            segment: 0,
        }
    }

    /// Addresses the datagram.
    pub fn to(self, to: SocketAddr) -> Self {
        let to = Some(to);
        Self { to, ..self }
    }

    /// Has the kernel cut the bytes up into datagrams of this length. The last one may be shorter.
    /// 0 is no length: then the bytes are one datagram.
    ///
    /// The kernel takes at least 64 datagrams at a time, of 65,507 bytes together, and refuses more
    /// (`EINVAL`, `EMSGSIZE`). It also refuses datagrams that are too long for the route, and
    /// routes whose device does not take part (`EIO`). A Linux before 4.18 sends the bytes as one
    /// datagram; [`has_gso`](super::UdpSocket::has_gso) says so. Other systems cannot cut up.
    ///
    /// ```
    /// use net_driver::{Driver, net::{UdpSocket, batch::{RecvBatch, Transmit}}};
    ///
    /// Driver::new(1).park(0).block_on(async {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let datagrams = Transmit::new(b"aabbc").to(socket.local_addr()?).segment_size(2);
    ///     if socket.has_gso()? {
    ///         assert_eq!(socket.send_many(&[datagrams]).await?, 1);
    ///         let mut batch = RecvBatch::new(3, 8);
    ///         socket.recv_many(&mut batch).await?;
    ///         assert!(batch.iter().map(|each| each.bytes()).eq([&b"aa"[..], b"bb", b"c"]));
    ///     }
    ///     std::io::Result::Ok(())
    /// }).unwrap();
    /// ```
    #[cfg(target_os = "linux")]
    pub fn segment_size(self, segment: u16) -> Self {
        Self { segment, ..self }
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
