//! A connection of Unix sockets.
use super::{
    receive_unix::Receive,
    source::Source,
    stream_io,
    unix::{SocketAddr, UCred, address},
};
use crate::{Interest, Ready, registration::Removal, slot::Direction};
use socket2::{Domain, SockAddr, Socket, Type};
use std::{
    io,
    mem::MaybeUninit,
    os::{fd::AsFd, unix::net},
    path::Path,
    task::{Context, Poll},
};

/// A connection of Unix sockets.
///
/// It works as a [`TcpStream`](super::TcpStream) does. A read into several buffers does not learn
/// whether bytes are left, so the next read does not wait for an event.
///
/// ```
/// use futures_lite::{AsyncReadExt, AsyncWriteExt};
/// use net_driver::{Driver, net::{UnixListener, UnixStream}};
///
/// # let path = std::env::temp_dir().join(format!("unix-stream-{}", std::process::id()));
/// # let at = path.clone();
/// Driver::new(1).park(0).block_on(async {
///     let (mut one, mut other) = UnixStream::pair()?;
///     one.write_all(b"hello").await?;
///     other.read_exact(&mut [0; 5]).await?;
///     assert!(one.local_addr()?.is_unnamed() && other.peer_addr()?.is_unnamed());
///     drop(one.split());
///     let (read, write) = one.into_split();
///     let one = UnixStream::from_std(read.reunite(write).unwrap().into_std()?)?;
///
///     let listener = UnixListener::bind(&path)?;
///     let stream = UnixStream::connect(&path).await?;
/// #   drop((one, listener, stream));
///     std::io::Result::Ok(())
/// }).unwrap();
/// # std::fs::remove_file(at).unwrap();
/// ```
pub struct UnixStream {
    pub(super) source: Source<net::UnixStream>,
    receive: Receive,
}

impl UnixStream {
    /// Connects to the listener at `path`. On Linux, `path` may be an [abstract name](super::unix).
    ///
    /// # Errors
    /// If no socket listens at `path`, or too many connections wait there to be accepted
    /// (`WouldBlock`).
    ///
    /// # Panics
    /// Without a current driver.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::connect_addr(&address::from_path(path.as_ref())?).await
    }

    /// Connects to the listener at this address.
    ///
    /// ```
    /// use net_driver::{Driver, net::{UnixListener, UnixStream, unix::SocketAddr}};
    ///
    /// # let path = std::env::temp_dir().join(format!("unix-address-{}", std::process::id()));
    /// Driver::new(1).park(0).block_on(async {
    ///     let address = std::os::unix::net::SocketAddr::from_pathname(&path)?;
    ///     let address = SocketAddr::from(address);
    ///     let _listener = UnixListener::bind_addr(&address)?;
    ///     let stream = UnixStream::connect_addr(&address).await?;
    ///     assert_eq!(stream.peer_addr()?.as_pathname(), address.as_pathname());
    ///     std::io::Result::Ok(())
    /// })?;
    /// # std::fs::remove_file(path)?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// As [`connect`](Self::connect), and if the address has no name.
    ///
    /// # Panics
    /// Without a current driver.
    pub async fn connect_addr(address: &SocketAddr) -> io::Result<Self> {
        let socket = super::socket(Domain::UNIX, Type::STREAM)?;
        Self::connect_by(socket, &address::to_socket2(address)?).await
    }

    /// Connects a socket that this crate has made.
    pub(super) async fn connect_by(socket: Socket, address: &SockAddr) -> io::Result<Self> {
        socket.connect(address)?;
        let ready = Ready::READABLE | Ready::WRITABLE;
        let source = Source::new(socket.into(), ready, Removal::ByClose)?;
        source.ready(Interest::WRITABLE).await?;
        Ok(Self::accepted(source))
    }

    /// Makes two connected streams.
    ///
    /// # Errors
    /// If the system call fails.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn pair() -> io::Result<(Self, Self)> {
        let (one, other) = net::UnixStream::pair()?;
        Ok((Self::from_std(one)?, Self::from_std(other)?))
    }

    /// Takes over a stream of std, which becomes non-blocking.
    ///
    /// # Errors
    /// If the kernel refuses the stream, or the driver has shut down.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn from_std(stream: net::UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let ready = Ready::READABLE | Ready::WRITABLE;
        let source = Source::new(stream, ready, Removal::Deregister)?;
        Ok(Self::accepted(source))
    }

    /// Returns the credentials of the process at the other side, as of the time that [`UCred`]
    /// names.
    ///
    /// ```
    /// use net_driver::{Driver, net::UnixStream};
    ///
    /// let driver = Driver::new(1);
    /// let _entered = driver.enter(None);
    /// let (one, _other) = UnixStream::pair()?;
    /// # #[cfg(target_os = "linux")]
    /// assert_eq!(one.peer_cred()?.pid(), i32::try_from(std::process::id()).ok());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the system call fails.
    pub fn peer_cred(&self) -> io::Result<UCred> {
        UCred::of(self.source.as_fd())
    }

    /// Returns the stream of std. It is still non-blocking.
    ///
    /// # Errors
    /// None so far.
    pub fn into_std(self) -> io::Result<net::UnixStream> {
        Ok(self.source.into_inner())
    }

    pub(crate) fn accepted(source: Source<net::UnixStream>) -> Self {
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
        self.source.io().local_addr().map(SocketAddr::from)
    }

    /// Returns the address of the other side.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        self.source.io().peer_addr().map(SocketAddr::from)
    }
}

stream_io::readiness_methods!(
    UnixStream,
    poll_read_ready,
    poll_write_ready,
    /// Readiness, and operations without a wait.
    ///
    /// ```
    /// use net_driver::{Driver, Interest, net::UnixStream};
    /// use std::{future::poll_fn, io::{ErrorKind, IoSlice, IoSliceMut}, mem::MaybeUninit};
    ///
    /// Driver::new(1).park(0).block_on(async {
    ///     let (stream, peer) = UnixStream::pair()?;
    ///     stream.writable().await?;
    ///     poll_fn(|cx| stream.poll_write_ready(cx)).await?;
    ///     assert!(stream.ready(Interest::WRITABLE).await?.is_writable());
    ///     assert_eq!(stream.try_write(b"abd")?, 3);
    ///     assert_eq!(stream.try_write_vectored(&[IoSlice::new(b"c")])?, 1);
    ///
    ///     let mut to = [0; 1];
    ///     peer.readable().await?;
    ///     poll_fn(|cx| peer.poll_read_ready(cx)).await?;
    ///     assert_eq!(peer.try_io(Interest::READABLE, || Ok(1))?, 1);
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
stream_io::duplex_methods!(UnixStream, |registration, cx, direction, len, op| {
    match direction {
        Direction::Read => registration.poll_io(cx, direction, op),
        Direction::Write => registration.poll_transfer(cx, direction, len, op),
    }
});

impl UnixStream {
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

stream_io::impl_read!(UnixStream);
stream_io::impl_write!(UnixStream);

impl TryFrom<net::UnixStream> for UnixStream {
    type Error = io::Error;

    fn try_from(stream: net::UnixStream) -> io::Result<Self> {
        Self::from_std(stream)
    }
}
