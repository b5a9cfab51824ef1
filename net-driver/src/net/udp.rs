//! A UDP socket.
use super::{ToSocketAddrs, bufs, lookup, options, source::Source, stream_io};
use crate::{Interest, Ready, registration::Removal};
use socket2::{Domain, SockAddr, SockRef, Type};
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::{
    io, net,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    task::{Context, Poll},
};
use task_io::ReadBuf;

/// A UDP socket.
///
/// Any number of tasks may send and receive at a time. To send or receive a datagram is one system
/// call; [`send_many`](Self::send_many) and [`recv_many`](Self::recv_many) move up to 64 by one.
///
/// ```
/// use net_driver::{Driver, net::UdpSocket};
/// use std::future::poll_fn;
///
/// Driver::new(1).park(0).block_on(async {
///     let one = UdpSocket::bind("127.0.0.1:0").await?;
///     let other = UdpSocket::bind("127.0.0.1:0").await?;
///     let (at, mut to) = (other.local_addr()?, [0; 8]);
///     one.send_to(b"a", at).await?;
///     assert_eq!(other.peek_from(&mut to).await?.0, 1);
///     let (count, from) = other.recv_from(&mut to).await?;
///     assert_eq!((count, from), (1, one.local_addr()?));
///     one.try_send_to(b"b", at)?;
///     other.readable().await?;
///     assert_eq!(other.try_recv_from(&mut to)?.0, 1);
///
///     one.connect(at).await?;
///     other.connect(from).await?;
///     assert_eq!(one.peer_addr()?, at);
///     one.send(b"c").await?;
///     assert_eq!(other.peek(&mut to).await?, 1);
///     assert_eq!(other.recv(&mut to).await?, 1);
///     one.try_send(b"d")?;
///     other.readable().await?;
///     assert_eq!(other.try_recv(&mut to)?, 1);
///
///     poll_fn(|cx| one.poll_send_to(cx, b"e", at)).await?;
///     assert_eq!(poll_fn(|cx| other.poll_recv_from_slice(cx, &mut to)).await?.0, 1);
///     poll_fn(|cx| one.poll_send(cx, b"f")).await?;
///     assert_eq!(poll_fn(|cx| other.poll_recv_slice(cx, &mut to)).await?, 1);
///     let one = UdpSocket::from_std(one.into_std()?)?;
/// #   drop(one);
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
pub struct UdpSocket {
    source: Source<net::UdpSocket>,
    /// Whether the kernel may have joined datagrams (GRO).
    #[cfg(target_os = "linux")]
    is_joined: AtomicBool,
    #[cfg(not(target_os = "linux"))]
    late: super::batch::portable::LateError,
}

impl UdpSocket {
    /// Binds a socket to the first of the addresses that can be bound.
    ///
    /// # Errors
    /// The error for the last address, or the error of the lookup.
    ///
    /// # Panics
    /// Without a current driver.
    pub async fn bind(to: impl ToSocketAddrs) -> io::Result<Self> {
        let bind = |at: SocketAddr| async move {
            let socket = super::socket(Domain::for_address(at), Type::DGRAM)?;
            socket.bind(&at.into())?;
            Self::new(socket.into(), Removal::ByClose)
        };
        lookup::first_of(to, bind).await
    }

    #[track_caller]
    fn new(socket: net::UdpSocket, removal: Removal) -> io::Result<Self> {
        let source = Source::new(socket, Ready::READABLE | Ready::WRITABLE, removal)?;
        Ok(Self {
            source,
            #[cfg(target_os = "linux")]
            is_joined: AtomicBool::new(false),
            #[cfg(not(target_os = "linux"))]
            late: Default::default(),
        })
    }

    /// Takes over a socket of std, which becomes non-blocking.
    ///
    /// # Errors
    /// If the kernel refuses the socket, or the driver has shut down.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn from_std(socket: net::UdpSocket) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let socket = Self::new(socket, Removal::Deregister)?;
        #[cfg(target_os = "linux")]
        if socket.gro().unwrap_or(false) {
            // Ordering: Relaxed, as no other thread has the socket yet.
            socket.is_joined.store(true, Relaxed);
        }
        Ok(socket)
    }

    /// Returns the socket of std. It is still non-blocking.
    ///
    /// # Errors
    /// None so far.
    pub fn into_std(self) -> io::Result<net::UdpSocket> {
        Ok(self.source.into_inner())
    }

    /// Returns the address of this side.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.io().local_addr()
    }

    /// Returns the address to which the socket is connected.
    ///
    /// # Errors
    /// If the socket is not connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.io().peer_addr()
    }

    /// Connects the socket to the first of the addresses that can be connected. From then on `send`
    /// sends to that address, and the socket receives only from there.
    ///
    /// # Errors
    /// The error for the last address, or the error of the lookup.
    pub async fn connect(&self, to: impl ToSocketAddrs) -> io::Result<()> {
        lookup::first_of(to, |at| async move { self.source.io().connect(at) }).await
    }

    /// Sends a datagram to the connected address.
    ///
    /// # Errors
    /// If the socket is not connected, or the datagram is too long.
    pub async fn send(&self, from: &[u8]) -> io::Result<usize> {
        self.source.writing(|| self.source.io().send(from)).await
    }

    /// Polls for a [`send`](Self::send). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `send`.
    pub fn poll_send(&self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.source.poll_writing(cx, || self.source.io().send(from))
    }

    /// Sends without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else as [`send`](Self::send).
    pub fn try_send(&self, from: &[u8]) -> io::Result<usize> {
        self.source
            .try_io(Interest::WRITABLE, || self.source.io().send(from))
    }

    /// Sends a datagram to the first of the addresses.
    ///
    /// # Errors
    /// If there is no address, or the datagram is too long.
    pub async fn send_to(&self, from: &[u8], to: impl ToSocketAddrs) -> io::Result<usize> {
        let to = lookup::first(to).await?;
        self.source
            .writing(|| self.source.io().send_to(from, to))
            .await
    }

    /// Polls for a [`send_to`](Self::send_to). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `send_to`.
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        from: &[u8],
        to: SocketAddr,
    ) -> Poll<io::Result<usize>> {
        self.source
            .poll_writing(cx, || self.source.io().send_to(from, to))
    }

    /// Sends without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else as [`send_to`](Self::send_to).
    pub fn try_send_to(&self, from: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.source
            .try_io(Interest::WRITABLE, || self.source.io().send_to(from, to))
    }

    /// Receives a datagram from the connected address. The part that does not fit into `to` is
    /// lost. On Windows that is an error.
    ///
    /// # Errors
    /// If the other side has refused an earlier datagram.
    pub async fn recv(&self, to: &mut [u8]) -> io::Result<usize> {
        self.source.reading(|| self.source.io().recv(to)).await
    }

    /// Polls for a [`recv`](Self::recv). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `recv`.
    pub fn poll_recv_slice(&self, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        self.source.poll_reading(cx, || self.source.io().recv(to))
    }

    /// Receives without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no datagram; else as [`recv`](Self::recv).
    pub fn try_recv(&self, to: &mut [u8]) -> io::Result<usize> {
        self.source
            .try_io(Interest::READABLE, || self.source.io().recv(to))
    }

    /// Receives a datagram. Returns its length, and the address of its sender.
    ///
    /// # Errors
    /// If the other side has refused an earlier datagram.
    pub async fn recv_from(&self, to: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source.reading(|| self.source.io().recv_from(to)).await
    }

    /// Polls for a [`recv_from`](Self::recv_from). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `recv_from`.
    pub fn poll_recv_from_slice(
        &self,
        cx: &mut Context<'_>,
        to: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.source
            .poll_reading(cx, || self.source.io().recv_from(to))
    }

    /// Receives without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no datagram; else as [`recv_from`](Self::recv_from).
    pub fn try_recv_from(&self, to: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source
            .try_io(Interest::READABLE, || self.source.io().recv_from(to))
    }

    /// Reads the next datagram of the connected address. The datagram stays in the queue.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub async fn peek(&self, to: &mut [u8]) -> io::Result<usize> {
        self.source.reading(|| self.source.io().peek(to)).await
    }

    /// Reads the next datagram. The datagram stays in the queue.
    ///
    /// # Errors
    /// As [`recv_from`](Self::recv_from).
    pub async fn peek_from(&self, to: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source.reading(|| self.source.io().peek_from(to)).await
    }
}

/// Methods that peek: a datagram that they read stays in the queue.
///
/// ```
/// use net_driver::{Driver, net::UdpSocket};
/// use std::future::poll_fn;
/// use task_io::ReadBuf;
///
/// Driver::new(1).park(0).block_on(async {
///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
///     let (at, mut to) = (socket.local_addr()?, [0; 8]);
///     socket.connect(at).await?;
///     socket.send(b"ab").await?;
///     assert_eq!(socket.peek_sender().await?, at);
///     assert_eq!(poll_fn(|cx| socket.poll_peek_sender(cx)).await?, at);
///     assert_eq!(socket.try_peek_sender()?, at);
///     assert_eq!(socket.try_peek(&mut to)?, 2);
///     assert_eq!(socket.try_peek_from(&mut to)?, (2, at));
///     assert_eq!(poll_fn(|cx| socket.poll_peek_slice(cx, &mut to)).await?, 2);
///     assert_eq!(poll_fn(|cx| socket.poll_peek_from_slice(cx, &mut to)).await?, (2, at));
///     let mut buf = ReadBuf::new(&mut to);
///     poll_fn(|cx| socket.poll_peek(cx, &mut buf)).await?;
///     assert_eq!(poll_fn(|cx| socket.poll_peek_from(cx, &mut buf)).await?, at);
///     assert_eq!(buf.filled(), b"abab");
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
impl UdpSocket {
    /// Polls for a [`peek`](Self::peek). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `peek`.
    pub fn poll_peek_slice(&self, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        self.source.poll_reading(cx, || self.source.io().peek(to))
    }

    /// Polls for a [`peek`](Self::peek) into a buffer that need not be initialised. Only the last
    /// task that polled is woken.
    ///
    /// # Errors
    /// As `peek`.
    pub fn poll_peek(&self, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let peek = || bufs::peek(to, self.source.io().into());
        self.source.poll_reading(cx, peek).map_ok(drop)
    }

    /// Peeks without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no datagram; else as [`peek`](Self::peek).
    pub fn try_peek(&self, to: &mut [u8]) -> io::Result<usize> {
        self.source
            .try_io(Interest::READABLE, || self.source.io().peek(to))
    }

    /// Polls for a [`peek_from`](Self::peek_from). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `peek_from`.
    pub fn poll_peek_from_slice(
        &self,
        cx: &mut Context<'_>,
        to: &mut [u8],
    ) -> Poll<io::Result<(usize, SocketAddr)>> {
        self.source
            .poll_reading(cx, || self.source.io().peek_from(to))
    }

    /// Polls for a [`peek_from`](Self::peek_from) into a buffer that need not be initialised.
    /// Returns the address of the sender. Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `peek_from`.
    pub fn poll_peek_from(
        &self,
        cx: &mut Context<'_>,
        to: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<SocketAddr>> {
        let peek = || bufs::peek_from(to, self.source.io().into());
        self.source
            .poll_reading(cx, peek)?
            .map(|(_, from)| address(&from))
    }

    /// Peeks without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no datagram; else as [`peek_from`](Self::peek_from).
    pub fn try_peek_from(&self, to: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source
            .try_io(Interest::READABLE, || self.source.io().peek_from(to))
    }

    /// Returns the sender of the next datagram.
    ///
    /// # Errors
    /// As [`peek_from`](Self::peek_from).
    pub async fn peek_sender(&self) -> io::Result<SocketAddr> {
        self.source.reading(|| self.sender()).await
    }

    /// Polls for a [`peek_sender`](Self::peek_sender). Only the last task that polled is woken.
    ///
    /// # Errors
    /// As `peek_sender`.
    pub fn poll_peek_sender(&self, cx: &mut Context<'_>) -> Poll<io::Result<SocketAddr>> {
        self.source.poll_reading(cx, || self.sender())
    }

    /// Returns the sender of the next datagram without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no datagram; else as [`peek_sender`](Self::peek_sender).
    pub fn try_peek_sender(&self) -> io::Result<SocketAddr> {
        self.source.try_io(Interest::READABLE, || self.sender())
    }

    fn sender(&self) -> io::Result<SocketAddr> {
        address(&SockRef::from(self.source.io()).peek_sender()?)
    }
}

/// Returns std's address for one of socket2.
fn address(of: &SockAddr) -> io::Result<SocketAddr> {
    of.as_socket().ok_or(io::ErrorKind::InvalidData.into())
}

bufs::datagram_methods!(
    UdpSocket,
    SocketAddr,
    address,
    /// Receives into buffers that need not be initialised.
    ///
    /// ```
    /// use net_driver::{Driver, net::UdpSocket};
    /// use std::future::poll_fn;
    /// use task_io::ReadBuf;
    ///
    /// Driver::new(1).park(0).block_on(async {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     let (at, mut to) = (socket.local_addr()?, [0; 8]);
    ///     socket.connect(at).await?;
    ///     for byte in b"abcdef" {
    ///         socket.send(&[*byte]).await?;
    ///     }
    ///     let mut buf = ReadBuf::new(&mut to);
    ///     poll_fn(|cx| socket.poll_recv(cx, &mut buf)).await?;
    ///     assert_eq!(poll_fn(|cx| socket.poll_recv_from(cx, &mut buf)).await?, at);
    ///     assert_eq!(buf.filled(), b"ab");
    ///
    ///     let mut bytes = Vec::with_capacity(8);
    ///     assert_eq!(socket.recv_buf(&mut bytes).await?, 1);
    ///     assert_eq!(socket.recv_buf_from(&mut bytes).await?, (1, at));
    ///     assert_eq!(socket.try_recv_buf(&mut bytes)?, 1);
    ///     assert_eq!(socket.try_recv_buf_from(&mut bytes)?, (1, at));
    ///     assert_eq!(bytes, b"cdef");
    ///     std::io::Result::Ok(())
    /// }).unwrap();
    /// ```
);

/// Options of the socket.
///
/// ```
/// use net_driver::{Driver, net::UdpSocket};
///
/// Driver::new(1).park(0).block_on(async {
///     let socket = UdpSocket::bind("0.0.0.0:0").await?;
///     socket.set_broadcast(true)?;
///     assert!(socket.broadcast()?);
///     socket.set_ttl(9)?;
///     assert_eq!(socket.ttl()?, 9);
///     socket.set_multicast_loop_v4(true)?;
///     assert!(socket.multicast_loop_v4()?);
///     socket.set_multicast_ttl_v4(3)?;
///     assert_eq!(socket.multicast_ttl_v4()?, 3);
///     let (group, any) = ([239, 1, 1, 1].into(), [0, 0, 0, 0].into());
///     if socket.join_multicast_v4(group, any).is_ok() {
///         socket.leave_multicast_v4(group, any)?;
///     }
///     let group = "ff02::114".parse().unwrap();
///     assert!(socket.join_multicast_v6(&group, 0).is_err(), "it is a socket of IPv4");
///     assert!(socket.leave_multicast_v6(&group, 0).is_err());
///     if let Ok(socket) = UdpSocket::bind("[::1]:0").await {
///         socket.set_multicast_loop_v6(false)?;
///         assert!(!socket.multicast_loop_v6()?);
///     }
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
impl UdpSocket {
    /// Returns whether the socket may send to broadcast addresses.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn broadcast(&self) -> io::Result<bool> {
        self.source.io().broadcast()
    }

    /// Sets whether the socket may send to broadcast addresses.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_broadcast(&self, broadcast: bool) -> io::Result<()> {
        self.source.io().set_broadcast(broadcast)
    }

    /// Returns the time to live of packets (`IP_TTL`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn ttl(&self) -> io::Result<u32> {
        self.source.io().ttl()
    }

    /// Sets the time to live of packets (`IP_TTL`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_ttl(&self, ttl: u32) -> io::Result<()> {
        self.source.io().set_ttl(ttl)
    }

    /// Returns whether this host gets its own multicast packets.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn multicast_loop_v4(&self) -> io::Result<bool> {
        self.source.io().multicast_loop_v4()
    }

    /// Sets whether this host gets its own multicast packets.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_multicast_loop_v4(&self, on: bool) -> io::Result<()> {
        self.source.io().set_multicast_loop_v4(on)
    }

    /// Returns whether this host gets its own multicast packets, of IPv6.
    ///
    /// # Errors
    /// If the system call fails, as on a socket of IPv4.
    pub fn multicast_loop_v6(&self) -> io::Result<bool> {
        self.source.io().multicast_loop_v6()
    }

    /// Sets whether this host gets its own multicast packets, of IPv6.
    ///
    /// # Errors
    /// If the system call fails, as on a socket of IPv4.
    pub fn set_multicast_loop_v6(&self, on: bool) -> io::Result<()> {
        self.source.io().set_multicast_loop_v6(on)
    }

    /// Returns the time to live of multicast packets.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn multicast_ttl_v4(&self) -> io::Result<u32> {
        self.source.io().multicast_ttl_v4()
    }

    /// Sets the time to live of multicast packets.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_multicast_ttl_v4(&self, ttl: u32) -> io::Result<()> {
        self.source.io().set_multicast_ttl_v4(ttl)
    }

    /// Joins a multicast group on the interface whose address is `interface`.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.source.io().join_multicast_v4(&group, &interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.source.io().leave_multicast_v4(&group, &interface)
    }

    /// Joins a multicast group on the interface whose index is `interface`.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn join_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.source.io().join_multicast_v6(group, interface)
    }

    /// Leaves a multicast group.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn leave_multicast_v6(&self, group: &Ipv6Addr, interface: u32) -> io::Result<()> {
        self.source.io().leave_multicast_v6(group, interface)
    }
}

options::ip_options!(
    UdpSocket,
    |this| SockRef::from(this.source.io()),
    /// Options of IP.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")]
    /// # net_driver::Driver::new(1).park(0).block_on(async {
    /// use net_driver::net::UdpSocket;
    ///
    /// let socket = UdpSocket::bind("127.0.0.1:0").await?;
    /// socket.set_tos_v4(0x10)?;
    /// assert_eq!(socket.tos_v4()?, 0x10);
    /// assert_eq!(socket.device()?, None);
    /// socket.bind_device(None)?;
    /// if let Ok(socket) = UdpSocket::bind("[::1]:0").await {
    ///     socket.set_tclass_v6(0x10)?;
    ///     assert_eq!(socket.tclass_v6()?, 0x10);
    /// }
    /// # std::io::Result::Ok(())
    /// # }).unwrap();
    /// ```
);

stream_io::readiness_methods!(
    UdpSocket,
    poll_recv_ready,
    poll_send_ready,
    /// Readiness.
    ///
    /// ```
    /// use net_driver::{Driver, Interest, net::UdpSocket};
    /// use std::future::poll_fn;
    ///
    /// Driver::new(1).park(0).block_on(async {
    ///     let socket = UdpSocket::bind("127.0.0.1:0").await?;
    ///     socket.writable().await?;
    ///     assert!(socket.ready(Interest::WRITABLE).await?.is_writable());
    ///     poll_fn(|cx| socket.poll_send_ready(cx)).await?;
    ///     let at = socket.local_addr()?;
    ///     socket.try_io(Interest::WRITABLE, || socket.try_send_to(b"a", at))?;
    ///     socket.readable().await?;
    ///     poll_fn(|cx| socket.poll_recv_ready(cx)).await?;
    ///     let mut to = [0; 1];
    ///     socket.async_io(Interest::READABLE, || socket.try_recv_from(&mut to)).await?;
    ///     assert!(socket.take_error()?.is_none());
    ///     std::io::Result::Ok(())
    /// }).unwrap();
    /// ```
);

mod batches;

impl TryFrom<net::UdpSocket> for UdpSocket {
    type Error = io::Error;

    fn try_from(socket: net::UdpSocket) -> io::Result<Self> {
        Self::from_std(socket)
    }
}
