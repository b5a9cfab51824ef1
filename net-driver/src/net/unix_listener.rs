//! A socket that accepts connections of Unix sockets.
use super::{
    UnixStream,
    accept::{Accepted, Attempt, Backoff},
    source::{Source, current_driver},
    unix::{SocketAddr, address},
};
use crate::{Ready, registration::Removal};
use std::{
    fmt, io,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
        unix::net,
    },
    path::Path,
    task::{Context, Poll},
};
use sync_shim::sync::Mutex;

/// A socket that accepts connections of Unix sockets.
///
/// The drop of a listener does not remove the file at the listener's path. Any number of tasks may
/// [`accept`](Self::accept).
///
/// ```
/// use net_driver::{Driver, net::{UnixListener, UnixStream}};
/// use std::future::poll_fn;
///
/// # let path = std::env::temp_dir().join(format!("unix-listener-{}", std::process::id()));
/// # let at = path.clone();
/// Driver::new(1).park(0).block_on(async {
///     let listener = UnixListener::bind(&path)?;
///     assert_eq!(listener.local_addr()?.as_pathname(), Some(&*path));
///     let _client = UnixStream::connect(&path).await?;
///     let (_stream, from) = listener.accept().await?;
///     assert!(from.is_unnamed());
///     let _client = UnixStream::connect(&path).await?;
///     let (_stream, _) = poll_fn(|cx| listener.poll_accept(cx)).await?;
///     assert!(listener.take_error()?.is_none());
///     let listener = UnixListener::from_std(listener.into_std()?)?;
/// #   drop(listener);
///     std::io::Result::Ok(())
/// }).unwrap();
/// # std::fs::remove_file(at).unwrap();
/// ```
pub struct UnixListener {
    source: Source<net::UnixListener>,
    backoff: Backoff,
    /// The state of `poll_accept`.
    attempt: Mutex<Attempt>,
}

impl UnixListener {
    /// Listens at `path`, where no file may exist yet. On Linux, `path` may be an [abstract
    /// name](super::unix).
    ///
    /// # Errors
    /// If the path is taken, too long, or out of reach.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::bind_addr(&address::from_path(path.as_ref())?)
    }

    /// Listens at this address, as [`bind`](Self::bind) does at a path.
    ///
    /// ```
    /// use net_driver::{Driver, net::UnixListener};
    /// use std::os::unix::net::SocketAddr;
    ///
    /// # let path = std::env::temp_dir().join(format!("bind-addr-{}", std::process::id()));
    /// let driver = Driver::new(1);
    /// let _entered = driver.enter(None);
    /// let listener = UnixListener::bind_addr(&SocketAddr::from_pathname(&path)?.into())?;
    /// assert_eq!(listener.local_addr()?.as_pathname(), Some(&*path));
    /// # std::fs::remove_file(path)?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// As `bind`.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn bind_addr(address: &SocketAddr) -> io::Result<Self> {
        let listener = net::UnixListener::bind_addr(address.as_std())?;
        listener.set_nonblocking(true)?;
        Self::new(listener, Removal::ByClose)
    }

    /// Takes over a listener of std, which becomes non-blocking.
    ///
    /// # Errors
    /// If the kernel refuses the listener, or the driver has shut down.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn from_std(listener: net::UnixListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Self::new(listener, Removal::Deregister)
    }

    #[track_caller]
    pub(super) fn new(listener: net::UnixListener, removal: Removal) -> io::Result<Self> {
        let driver = current_driver();
        Ok(Self {
            source: Source::new_in(&driver, listener, Ready::EMPTY, removal)?,
            backoff: Backoff::new(&driver),
            attempt: Mutex::default(),
        })
    }

    /// Returns the listener of std. It is still non-blocking.
    ///
    /// # Errors
    /// None so far.
    pub fn into_std(self) -> io::Result<net::UnixListener> {
        Ok(self.source.into_inner())
    }

    /// Accepts a connection, which belongs to this listener's driver.
    ///
    /// The future may be dropped at any time: no connection is lost.
    ///
    /// # Errors
    /// If the driver has shut down, or if the system call fails. If there is no descriptor or
    /// memory for the connection, this fails only once: see the [module](super).
    pub async fn accept(&self) -> io::Result<(UnixStream, SocketAddr)> {
        let accepted = self.source.accept(&self.backoff);
        self.adopt(accepted.await?)
    }

    /// Polls for a connection. Only the last task that polled is woken.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(UnixStream, SocketAddr)>> {
        let accepted = self.source.poll_accept(&self.backoff, &self.attempt, cx);
        accepted.map(|accepted| self.adopt(accepted?))
    }

    fn adopt(&self, (socket, from): Accepted) -> io::Result<(UnixStream, SocketAddr)> {
        let stream = net::UnixStream::from(socket);
        let from = address::from_socket2(&from)?;
        let source = self.source.adopt(stream)?;
        Ok((UnixStream::accepted(source), from))
    }

    /// Returns the address at which this socket listens.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.io().local_addr().map(SocketAddr::from)
    }

    /// Takes the pending error of the socket (`SO_ERROR`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source.io().take_error()
    }
}

/// A duplicate of the descriptor must not outlive the socket, unless the socket is exempt: see
/// [duplicates](super#duplicates).
impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

/// A duplicate of the descriptor must not outlive the socket, unless the socket is exempt: see
/// [duplicates](super#duplicates).
impl AsRawFd for UnixListener {
    fn as_raw_fd(&self) -> RawFd {
        self.source.as_raw_fd()
    }
}

impl fmt::Debug for UnixListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}
