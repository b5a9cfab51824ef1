//! A TCP connection.
use super::{
    ToSocketAddrs, lookup, receive::Receive, source::Source, stream_io, tcp_socket::TcpSocket,
};
use crate::{Interest, Ready, registration::Removal, slot::Direction};
use socket2::SockRef;
use std::{
    io,
    mem::MaybeUninit,
    net,
    net::SocketAddr,
    task::{Context, Poll},
    time::Duration,
};

/// A TCP connection.
///
/// Reading and writing are in the traits `AsyncRead` and `AsyncWrite` of `futures_io`, of `task_io`
/// and, with the feature `tokio`, of tokio. A read is one system call, and so is a write. If a read
/// moves fewer bytes than it could, the next read waits for an event first. Writes do the same. If
/// a read fills a buffer of up to 4 KiB, and the kernel says that no byte is left, the next read
/// waits for an event too. A stream begins to ask the kernel for the number of bytes left
/// (`TCP_INQ`) when one read has filled its buffer and the next was in vain.
///
/// One task may read and another one write, through [`split`](Self::split) or
/// [`into_split`](Self::into_split). Methods with `&self` may be used by any number of tasks.
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use net_driver::{Driver, net::{TcpListener, TcpStream}};
/// use std::future::poll_fn;
/// use task_io::ReadBuf;
///
/// Driver::new(1).park(0).block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let mut stream = TcpStream::connect(listener.local_addr()?).await?;
///     let (mut peer, _) = listener.accept().await?;
///     stream.set_nodelay(true)?;
///     assert!(stream.nodelay()?);
///     stream.write_all(b"hello").await?;
///
///     let mut to = [0; 5];
///     assert_eq!(peer.peek(&mut to).await?, 5);
///     assert_eq!(poll_fn(|cx| peer.poll_peek_slice(cx, &mut to)).await?, 5);
///     let mut buf = ReadBuf::new(&mut to);
///     assert_eq!(poll_fn(|cx| peer.poll_peek(cx, &mut buf)).await?, 5);
///     peer.read_exact(&mut to).await?;
///     assert_eq!(&to, b"hello");
///     assert_eq!(peer.peer_addr()?, stream.local_addr()?);
///
///     let (read, write) = stream.split();
///     drop((read, write));
///     let (read, write) = stream.into_split();
///     let stream = read.reunite(write).unwrap();
///     let stream: std::net::TcpStream = stream.into_std()?;
///     let stream = TcpStream::from_std(stream)?;
/// #   drop(stream);
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
pub struct TcpStream {
    pub(super) source: Source<net::TcpStream>,
    receive: Receive,
}

impl TcpSocket {
    /// Connects the socket.
    ///
    /// # Errors
    /// If the other side refuses, or the driver has shut down.
    ///
    /// # Panics
    /// Without a current driver.
    pub async fn connect(self, to: SocketAddr) -> io::Result<TcpStream> {
        self.socket.set_nonblocking(true)?;
        match self.socket.connect(&to.into()) {
            Err(error) if !is_in_progress(&error) => return Err(error),
            _ => {}
        }
        TcpStream::connected(self.socket.into(), self.removal).await
    }
}

/// Returns whether the error of a connect says that the connection is being made.
fn is_in_progress(error: &io::Error) -> bool {
    cfg_if::cfg_if! {
        if #[cfg(unix)] {
            error.raw_os_error() == Some(libc::EINPROGRESS)
        } else {
            error.kind() == io::ErrorKind::WouldBlock
        }
    }
}

impl TcpStream {
    /// Connects to the first of the addresses that takes the connection.
    ///
    /// # Errors
    /// The error for the last address, or the error of the lookup.
    ///
    /// # Panics
    /// Without a current driver.
    pub async fn connect(to: impl ToSocketAddrs) -> io::Result<Self> {
        let connect = |at: SocketAddr| async move { TcpSocket::new_for(at)?.connect(at).await };
        lookup::first_of(to, connect).await
    }

    /// Takes over a connection of std, which becomes non-blocking. On Windows it gets the option
    /// `SO_OOBINLINE`.
    ///
    /// # Errors
    /// If the kernel refuses the connection's descriptor, or the driver has shut down.
    /// `AlreadyExists` if an [`AsyncFd`](crate::net::AsyncFd) has registered the same descriptor.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn from_std(stream: net::TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        super::keep_urgent(&stream)?;
        let ready = Ready::READABLE | Ready::WRITABLE;
        let source = Source::new(stream, ready, Removal::Deregister)?;
        Ok(Self::accepted(source))
    }

    /// Returns the connection of std. It is still non-blocking.
    ///
    /// # Errors
    /// None so far.
    pub fn into_std(self) -> io::Result<net::TcpStream> {
        Ok(self.source.into_inner())
    }

    /// Waits until `stream`, which has begun to connect, is connected.
    pub(crate) async fn connected(stream: net::TcpStream, removal: Removal) -> io::Result<Self> {
        let source = Source::new(stream, Ready::EMPTY, removal)?;
        loop {
            let seen = source.registration().ready(Interest::WRITABLE).await?;
            if let Some(error) = source.io().take_error()? {
                return Err(error);
            }
            // On Windows an event may come for nothing while the socket still connects. Elsewhere a
            // peer that is gone again is `NotConnected` too.
            let is_early = |error: io::Error| error.kind() == io::ErrorKind::NotConnected;
            if !cfg!(windows) || !source.io().peer_addr().is_err_and(is_early) {
                return Ok(Self::accepted(source));
            }
            if seen.is_closed_for(Interest::WRITABLE) {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            let registration = source.registration();
            registration.clear_for_user(seen, Interest::WRITABLE)?;
        }
    }

    pub(crate) fn accepted(source: Source<net::TcpStream>) -> Self {
        Self {
            source,
            receive: Receive::new(),
        }
    }

    /// Returns the address of this side.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.io().local_addr()
    }

    /// Returns the address of the other side.
    ///
    /// # Errors
    /// If the connection is gone.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.io().peer_addr()
    }

    /// Reads without taking the bytes from the stream. Any number of tasks may wait.
    ///
    /// # Errors
    /// As a read.
    pub async fn peek(&self, to: &mut [u8]) -> io::Result<usize> {
        let peek = || self.source.io().peek(to);
        self.source
            .registration()
            .io(Interest::READABLE, peek)
            .await
    }
}

/// Options of the socket.
///
/// ```
/// use net_driver::{Driver, net::{TcpListener, TcpStream}};
/// use std::time::Duration;
///
/// Driver::new(1).park(0).block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let stream = TcpStream::connect(listener.local_addr()?).await?;
///     stream.set_nodelay(true)?;
///     assert!(stream.nodelay()?);
///     stream.set_linger(Some(Duration::from_secs(1)))?;
///     assert_eq!(stream.linger()?, Some(Duration::from_secs(1)));
///     stream.set_zero_linger()?;
///     assert_eq!(stream.linger()?, Some(Duration::ZERO));
///     stream.set_ttl(9)?;
///     assert_eq!(stream.ttl()?, 9);
/// #   #[cfg(target_os = "linux")] {
///     stream.set_quickack(true)?;
///     assert!(stream.quickack()?);
/// #   }
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
impl TcpStream {
    /// Returns whether small writes leave at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.source.io().nodelay()
    }

    /// Sets whether small writes leave at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.source.io().set_nodelay(nodelay)
    }

    /// Returns whether the system acknowledges packets at once (`TCP_QUICKACK`).
    ///
    /// # Errors
    /// If the system call fails.
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub fn quickack(&self) -> io::Result<bool> {
        SockRef::from(self.source.io()).tcp_quickack()
    }

    /// Sets whether the system acknowledges packets at once (`TCP_QUICKACK`). The system may change
    /// this again by itself.
    ///
    /// # Errors
    /// If the system call fails.
    #[cfg(any(target_os = "android", target_os = "linux"))]
    pub fn set_quickack(&self, quickack: bool) -> io::Result<()> {
        SockRef::from(self.source.io()).set_tcp_quickack(quickack)
    }

    /// Returns how long a close waits for unsent bytes (`SO_LINGER`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        SockRef::from(self.source.io()).linger()
    }

    /// Sets how long a close waits for unsent bytes (`SO_LINGER`). If a limit is set, the drop of
    /// the stream blocks its thread for up to that time. With a limit of zero the drop blocks
    /// nothing, and resets the connection.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_linger(&self, limit: Option<Duration>) -> io::Result<()> {
        SockRef::from(self.source.io()).set_linger(limit)
    }

    /// Sets a linger of zero: the drop of the stream then resets the connection.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
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
}

stream_io::readiness_methods!(
    TcpStream,
    poll_read_ready,
    poll_write_ready,
    /// Readiness, and operations without a wait.
    ///
    /// ```
    /// use net_driver::{Driver, Interest, net::{TcpListener, TcpStream}};
    /// use std::{future::poll_fn, io::{ErrorKind, IoSlice, IoSliceMut}, mem::MaybeUninit};
    ///
    /// Driver::new(1).park(0).block_on(async {
    ///     let listener = TcpListener::bind("127.0.0.1:0").await?;
    ///     let stream = TcpStream::connect(listener.local_addr()?).await?;
    ///     let (peer, _) = listener.accept().await?;
    ///     stream.writable().await?;
    ///     poll_fn(|cx| stream.poll_write_ready(cx)).await?;
    ///     assert!(stream.ready(Interest::WRITABLE).await?.is_writable());
    ///     assert_eq!(stream.try_write(b"abd")?, 3);
    ///     assert_eq!(stream.try_write_vectored(&[IoSlice::new(b"c")])?, 1);
    ///
    ///     let mut to = [0; 1];
    ///     peer.readable().await?;
    ///     poll_fn(|cx| peer.poll_read_ready(cx)).await?;
    ///     let peek = |mut to: [u8; 1]| peer.try_io(Interest::READABLE, move || Ok(to.len()));
    ///     assert_eq!(peek(to)?, 1);
    ///     peer.async_io(Interest::READABLE, || peer.try_read(&mut to)).await?;
    ///     assert_eq!(peer.try_read_vectored(&mut [IoSliceMut::new(&mut to)])?, 1);
    ///     let mut uninit = [MaybeUninit::uninit(); 1];
    ///     assert_eq!(poll_fn(|cx| peer.poll_read_uninit(cx, &mut uninit)).await?, 1);
    ///     assert_eq!(peer.try_read(&mut to)?, 1);
    ///     assert_eq!(peer.try_read(&mut to).unwrap_err().kind(), ErrorKind::WouldBlock);
    ///     assert!(peer.try_read_buf(&mut vec![]).is_err());
    ///     assert!(peer.take_error()?.is_none());
    ///     std::io::Result::Ok(())
    /// }).unwrap();
    /// ```
);
stream_io::duplex_methods!(TcpStream, |registration, cx, direction, len, op| {
    registration.poll_transfer(cx, direction, len, op)
});

impl TcpStream {
    fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        to: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        let receive = || self.receive.receive(self.source.io(), to);
        self.source
            .registration()
            .poll_moved(cx, Direction::Read, receive)
    }
}

stream_io::impl_read!(TcpStream);
stream_io::impl_write!(TcpStream);

impl TryFrom<net::TcpStream> for TcpStream {
    type Error = io::Error;

    fn try_from(stream: net::TcpStream) -> io::Result<Self> {
        Self::from_std(stream)
    }
}
