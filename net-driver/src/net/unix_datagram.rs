//! A Unix socket for datagrams.
use super::{
    bufs,
    send_to::SendPauses,
    source::{Source, current_driver},
    stream_io,
    unix::{SocketAddr, address},
};
use crate::{Interest, Ready, driver::WeakDriver, registration::Removal};
use std::{
    io,
    net::Shutdown,
    os::unix::net,
    path::Path,
    task::{Context, Poll},
};
use sync_shim::sync::Mutex;

/// A Unix socket for datagrams.
///
/// Any number of tasks may send and receive at a time.
///
/// A datagram waits in the queue of its receiver. While the queue of the connected socket is full,
/// [`send`](Self::send) waits for an event. On the BSDs it may fail with `ENOBUFS` instead. No
/// event reliably says that the queue of another socket has room, so [`send_to`](Self::send_to)
/// tries again after pauses.
///
/// ```
/// use net_driver::{Driver, net::UnixDatagram};
/// use std::{future::poll_fn, net::Shutdown};
///
/// # let path = std::env::temp_dir().join(format!("unix-datagram-{}", std::process::id()));
/// # let at = path.clone();
/// Driver::new(1).park(0).block_on(async {
///     let (one, other) = UnixDatagram::pair()?;
///     let mut to = [0; 8];
///     one.send(b"ab").await?;
///     assert_eq!(other.recv(&mut to).await?, 2);
///     one.try_send(b"c")?;
///     other.readable().await?;
///     assert_eq!(other.try_recv(&mut to)?, 1);
///     poll_fn(|cx| one.poll_send(cx, b"d")).await?;
///     assert_eq!(poll_fn(|cx| other.poll_recv_slice(cx, &mut to)).await?, 1);
///     one.shutdown(Shutdown::Both)?;
///
///     let bound = UnixDatagram::bind(&path)?;
///     let unbound = UnixDatagram::unbound()?;
///     unbound.send_to(b"e", &path).await?;
///     let (count, from) = bound.recv_from(&mut to).await?;
///     assert!(count == 1 && from.is_unnamed());
///     unbound.try_send_to(b"f", &path)?;
///     bound.readable().await?;
///     assert_eq!(bound.try_recv_from(&mut to)?.0, 1);
///     poll_fn(|cx| unbound.poll_send_to(cx, b"g", &path)).await?;
///     assert_eq!(poll_fn(|cx| bound.poll_recv_from_slice(cx, &mut to)).await?.0, 1);
///     unbound.connect(&path)?;
///     assert_eq!(unbound.peer_addr()?.as_pathname(), bound.local_addr()?.as_pathname());
///     let bound = UnixDatagram::from_std(bound.into_std()?)?;
/// #   drop(bound);
///     std::io::Result::Ok(())
/// }).unwrap();
/// # std::fs::remove_file(at).unwrap();
/// ```
pub struct UnixDatagram {
    source: Source<net::UnixDatagram>,
    /// The driver whose timers `send_to` uses.
    driver: WeakDriver,
    /// The state of `poll_send_to`.
    pauses: Mutex<SendPauses>,
}

impl UnixDatagram {
    /// Binds a socket to `path`, at which no file may exist. On Linux it may be an
    /// [abstract name](super::unix), also in the other methods.
    ///
    /// # Errors
    /// If the path is taken, too long, or out of reach.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let address = address::from_path(path.as_ref())?;
        Self::from_std(net::UnixDatagram::bind_addr(address.as_std())?)
    }

    /// Makes a socket without an address.
    ///
    /// # Errors
    /// If the system call fails.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn unbound() -> io::Result<Self> {
        Self::from_std(net::UnixDatagram::unbound()?)
    }

    /// Makes two connected sockets.
    ///
    /// # Errors
    /// If the system call fails.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = net::UnixDatagram::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(other)?))
    }

    /// Takes over a socket of std, which becomes non-blocking.
    ///
    /// # Errors
    /// If the kernel refuses the socket, or the driver has shut down.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn from_std(socket: net::UnixDatagram) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        let ready = Ready::READABLE | Ready::WRITABLE;
        let driver = current_driver();
        Ok(Self {
            source: Source::new_in(&driver, socket, ready, Removal::Deregister)?,
            driver: driver.downgrade(),
            pauses: Mutex::default(),
        })
    }

    /// Returns the socket of std. It is still non-blocking.
    ///
    /// # Errors
    /// None so far.
    pub fn into_std(self) -> io::Result<net::UnixDatagram> {
        Ok(self.source.into_inner())
    }

    /// Connects the socket to the socket at `path`. From then on `send` sends to that socket, and
    /// this socket receives only from there.
    ///
    /// # Errors
    /// If no socket is at `path`.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let address = address::from_path(path.as_ref())?;
        self.source.io().connect_addr(address.as_std())
    }

    /// Returns the address of this side.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.io().local_addr().map(SocketAddr::from)
    }

    /// Returns the address to which the socket is connected.
    ///
    /// # Errors
    /// If the socket is not connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.io().peer_addr().map(SocketAddr::from)
    }

    /// Ends one direction, or both.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        self.source.io().shutdown(how)
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

    /// Sends a datagram to the socket at `path`.
    ///
    /// While the queue of that socket is full, Linux returns "would block", and this tries again
    /// after pauses, of 100 µs at first. They double up to 50 ms. An event of this socket may end a
    /// pause early. Another system may return another error instead, such as `ENOBUFS` on the BSDs:
    /// then this call fails with that error.
    ///
    /// # Errors
    /// If no socket is at `path`, the datagram is too long, or the driver has shut down.
    pub async fn send_to(&self, from: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        let address = address::from_path(path.as_ref())?;
        let send = || self.source.io().send_to_addr(from, address.as_std());
        self.source.send_to(&self.driver, send).await
    }

    /// Polls for a [`send_to`](Self::send_to). Only the last task that polled is woken. If the last
    /// poll was pending, the next one continues that poll's pause, even if it sends something else.
    ///
    /// # Errors
    /// As `send_to`.
    pub fn poll_send_to(
        &self,
        cx: &mut Context<'_>,
        from: &[u8],
        path: impl AsRef<Path>,
    ) -> Poll<io::Result<usize>> {
        let address = address::from_path(path.as_ref())?;
        let send = || self.source.io().send_to_addr(from, address.as_std());
        self.source
            .poll_send_to(&self.driver, &self.pauses, cx, send)
    }

    /// Sends without a wait.
    ///
    /// Do not repeat this in a loop with [`writable`](Self::writable) or another wait for
    /// readiness, nor in [`async_io`](Self::async_io). On Linux, a call that fails because the
    /// queue of the receiver is full makes this socket writable again at once, so such a loop spins
    /// until the receiver has room. It may also happen that no event comes at all.
    /// [`send_to`](Self::send_to) pauses between its calls.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room; else as [`send_to`](Self::send_to).
    pub fn try_send_to(&self, from: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        let address = address::from_path(path.as_ref())?;
        let send = || self.source.io().send_to_addr(from, address.as_std());
        self.source.try_io(Interest::WRITABLE, send)
    }

    /// Receives a datagram. The part that does not fit into `to` is lost.
    ///
    /// # Errors
    /// If the system call fails.
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
    /// If the system call fails.
    pub async fn recv_from(&self, to: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source.reading(|| self.receive_from(to)).await
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
        self.source.poll_reading(cx, || self.receive_from(to))
    }

    /// Receives without a wait.
    ///
    /// # Errors
    /// `WouldBlock` if there is no datagram; else as [`recv_from`](Self::recv_from).
    pub fn try_recv_from(&self, to: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.source
            .try_io(Interest::READABLE, || self.receive_from(to))
    }

    fn receive_from(&self, to: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (count, from) = self.source.io().recv_from(to)?;
        Ok((count, from.into()))
    }
}

bufs::datagram_methods!(
    UnixDatagram,
    SocketAddr,
    address::from_socket2,
    /// Receives into buffers that need not be initialised.
    ///
    /// ```
    /// use net_driver::{Driver, net::UnixDatagram};
    /// use std::future::poll_fn;
    /// use task_io::ReadBuf;
    ///
    /// Driver::new(1).park(0).block_on(async {
    ///     let ((one, other), mut to) = (UnixDatagram::pair()?, [0; 8]);
    ///     for byte in b"abcdef" {
    ///         one.send(&[*byte]).await?;
    ///     }
    ///     let mut buf = ReadBuf::new(&mut to);
    ///     poll_fn(|cx| other.poll_recv(cx, &mut buf)).await?;
    ///     assert!(poll_fn(|cx| other.poll_recv_from(cx, &mut buf)).await?.is_unnamed());
    ///     assert_eq!(buf.filled(), b"ab");
    ///
    ///     let mut bytes = Vec::with_capacity(8);
    ///     assert_eq!(other.recv_buf(&mut bytes).await?, 1);
    ///     assert!(other.recv_buf_from(&mut bytes).await?.1.is_unnamed());
    ///     assert_eq!(other.try_recv_buf(&mut bytes)?, 1);
    ///     assert!(other.try_recv_buf_from(&mut bytes)?.1.is_unnamed());
    ///     assert_eq!(bytes, b"cdef");
    ///     std::io::Result::Ok(())
    /// }).unwrap();
    /// ```
);

stream_io::readiness_methods!(
    UnixDatagram,
    poll_recv_ready,
    poll_send_ready,
    /// Readiness.
    ///
    /// ```
    /// use net_driver::{Driver, Interest, net::UnixDatagram};
    /// use std::future::poll_fn;
    ///
    /// Driver::new(1).park(0).block_on(async {
    ///     let (one, other) = UnixDatagram::pair()?;
    ///     one.writable().await?;
    ///     assert!(one.ready(Interest::WRITABLE).await?.is_writable());
    ///     poll_fn(|cx| one.poll_send_ready(cx)).await?;
    ///     one.try_io(Interest::WRITABLE, || one.try_send(b"a"))?;
    ///     other.readable().await?;
    ///     poll_fn(|cx| other.poll_recv_ready(cx)).await?;
    ///     let mut to = [0; 1];
    ///     other.async_io(Interest::READABLE, || other.try_recv(&mut to)).await?;
    ///     assert!(one.take_error()?.is_none());
    ///     std::io::Result::Ok(())
    /// }).unwrap();
    /// ```
);
