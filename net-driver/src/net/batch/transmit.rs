//! A datagram to send.
use std::net::SocketAddr;

/// The most datagrams of one operation, counted after the kernel has cut them up. More would hold
/// up the worker's other tasks, and save little: the call is a small part of the time of so many
/// datagrams.
pub(super) const MOST: usize = 64;

/// A datagram to send, for [`send_many`](crate::net::UdpSocket::send_many).
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
    /// The kernel takes at least 64 datagrams of one buffer, of 65,507 bytes together, and refuses
    /// more (`EINVAL`, `EMSGSIZE`). It also refuses datagrams that are too long for the route, and
    /// routes whose device does not take part (`EIO`). A Linux before 4.18 sends the bytes as one
    /// datagram; [`has_gso`](crate::net::UdpSocket::has_gso) says so. Other systems cannot cut up.
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

    /// Returns the number of datagrams into which the kernel cuts the bytes up, and 1 without a
    /// segment size.
    pub(in crate::net) fn datagrams(&self) -> usize {
        #[cfg(target_os = "linux")]
        if self.segment > 0 {
            return self.bytes.len().div_ceil(self.segment.into()).max(1);
        }
        1
    }
}
