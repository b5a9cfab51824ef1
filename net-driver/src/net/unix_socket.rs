//! A Unix socket before it connects, listens or becomes a socket for datagrams.
use super::{UnixDatagram, UnixListener, UnixStream, unix::address};
use crate::registration::Removal;
use socket2::{Domain, SockAddr, SockRef, Socket, Type};
use std::{
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    path::Path,
};

/// A Unix socket before it connects, listens or becomes a socket for datagrams. It can be bound in
/// this state.
///
/// ```
/// use net_driver::{Driver, net::UnixSocket};
///
/// # let path = std::env::temp_dir().join(format!("unix-socket-{}", std::process::id()));
/// # let at = path.clone();
/// Driver::new(1).park(0).block_on(async {
///     let socket = UnixSocket::new_stream()?;
///     socket.bind(&path)?;
///     let listener = socket.listen(16)?;
///     let _client = UnixSocket::new_stream()?.connect(&path).await?;
///     let (_server, _) = listener.accept().await?;
///
///     let datagram = UnixSocket::new_datagram()?.datagram()?;
///     assert!(datagram.local_addr()?.is_unnamed());
///     assert!(UnixSocket::new_datagram()?.listen(16).is_err());
///     std::io::Result::Ok(())
/// }).unwrap();
/// # std::fs::remove_file(at).unwrap();
/// ```
pub struct UnixSocket {
    socket: Socket,
    is_datagram: bool,
}

impl UnixSocket {
    /// Makes a socket for streams.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn new_stream() -> io::Result<Self> {
        Self::new(Type::STREAM)
    }

    /// Makes a socket for datagrams.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn new_datagram() -> io::Result<Self> {
        Self::new(Type::DGRAM)
    }

    fn new(kind: Type) -> io::Result<Self> {
        Ok(Self {
            socket: super::socket(Domain::UNIX, kind)?,
            is_datagram: kind == Type::DGRAM,
        })
    }

    /// Binds the socket to `path`, at which no file may exist yet. On Linux, `path` may be an
    /// [abstract name](super::unix), also in [`connect`](Self::connect).
    ///
    /// # Errors
    /// If the path is taken, too long, or out of reach.
    pub fn bind(&self, path: impl AsRef<Path>) -> io::Result<()> {
        self.socket.bind(&to_socket2(path.as_ref())?)
    }

    /// Connects the socket to the listener at `path`.
    ///
    /// # Errors
    /// As [`UnixStream::connect`], and if this is a socket for datagrams.
    ///
    /// # Panics
    /// Without a current driver.
    pub async fn connect(self, path: impl AsRef<Path>) -> io::Result<UnixStream> {
        self.assert_is(false, "connect")?;
        UnixStream::connect_by(self.socket, &to_socket2(path.as_ref())?).await
    }

    /// Listens, with room for `backlog` connections that wait to be accepted.
    ///
    /// # Errors
    /// If the system call fails, or this is a socket for datagrams.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<UnixListener> {
        self.assert_is(false, "listen")?;
        self.socket
            .listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        UnixListener::new(self.socket.into(), Removal::ByClose)
    }

    /// Turns this into a socket for datagrams.
    ///
    /// # Errors
    /// If this is a socket for streams, or the driver has shut down.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn datagram(self) -> io::Result<UnixDatagram> {
        self.assert_is(true, "datagram")?;
        UnixDatagram::from_std(self.socket.into())
    }

    fn assert_is(&self, datagram: bool, method: &str) -> io::Result<()> {
        if self.is_datagram == datagram {
            return Ok(());
        }
        let kind = if self.is_datagram {
            "datagrams"
        } else {
            "streams"
        };
        Err(io::Error::other(format!(
            "{method} was called on a socket for {kind}"
        )))
    }
}

/// Returns socket2's address of a path. socket2 takes any path, and the kernel would cut it off at
/// a zero byte.
fn to_socket2(path: &Path) -> io::Result<SockAddr> {
    address::to_socket2(&address::from_path(path)?)
}

/// A duplicate of the descriptor must not outlive the stream or listener that the socket becomes:
/// see [duplicates](super#duplicates).
impl AsFd for UnixSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A duplicate of the descriptor must not outlive the stream or listener that the socket becomes:
/// see [duplicates](super#duplicates).
impl AsRawFd for UnixSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl fmt::Debug for UnixSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SockRef::from(&self.socket).fmt(f)
    }
}
