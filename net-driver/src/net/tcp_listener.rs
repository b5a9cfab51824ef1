//! A socket that accepts TCP connections.
use super::{
    TcpStream, ToSocketAddrs,
    accept::{Accepted, Attempt, Backoff},
    lookup,
    source::{Source, current_driver},
    tcp_socket::TcpSocket,
};
use crate::{Ready, registration::Removal, sys::handle};
use std::{
    fmt, io, net,
    net::SocketAddr,
    task::{Context, Poll},
};
use sync_shim::sync::Mutex;

/// The largest number of connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// A socket that accepts TCP connections.
///
/// Any number of tasks may [`accept`](Self::accept).
///
/// ```
/// use net_driver::{Driver, Interest, net::{TcpListener, TcpStream}};
/// use std::{future::poll_fn, io::ErrorKind};
///
/// Driver::new(1).park(0).block_on(async {
///     let listener = TcpListener::bind("127.0.0.1:0").await?;
///     let at = listener.local_addr()?;
///     let client = TcpStream::connect(at).await?;
///     let (stream, from) = listener.accept().await?;
///     assert_eq!(from, client.local_addr()?);
///     assert_eq!(stream.local_addr()?, at);
///
///     let _client = TcpStream::connect(at).await?;
///     let (_stream, _) = poll_fn(|cx| listener.poll_accept(cx)).await?;
///     listener.set_ttl(9)?;
///     assert_eq!(listener.ttl()?, 9);
///     assert!(listener.take_error()?.is_none());
///     let listener = TcpListener::from_std(listener.into_std()?)?;
/// #   drop(listener);
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
pub struct TcpListener {
    source: Source<net::TcpListener>,
    backoff: Backoff,
    /// The state of `poll_accept`.
    attempt: Mutex<Attempt>,
}

impl TcpSocket {
    /// Listens, with room for `backlog` connections that wait to be accepted.
    ///
    /// # Errors
    /// If the system call fails.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn listen(self, backlog: u32) -> io::Result<TcpListener> {
        self.socket.set_nonblocking(true)?;
        self.socket
            .listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
        TcpListener::new(self.socket.into(), self.removal)
    }
}

impl TcpListener {
    /// Listens at the first of the addresses that can be bound, with `SO_REUSEADDR` on
    /// Unix.
    ///
    /// # Errors
    /// The error for the last address, or the error of the lookup.
    ///
    /// # Panics
    /// Without a current driver.
    pub async fn bind(to: impl ToSocketAddrs) -> io::Result<Self> {
        let bind = |at: SocketAddr| async move {
            let socket = TcpSocket::new_for(at)?;
            // On Windows the option would let another process bind the same address.
            #[cfg(unix)]
            socket.set_reuseaddr(true)?;
            socket.bind(at)?;
            socket.listen(BACKLOG)
        };
        lookup::first_of(to, bind).await
    }

    /// Takes over a listener of std, which becomes non-blocking. On Windows its connections get the
    /// option `SO_OOBINLINE`.
    ///
    /// # Errors
    /// If the kernel refuses the listener, or the driver has shut down.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn from_std(listener: net::TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        super::keep_urgent(&listener)?;
        Self::new(listener, Removal::Deregister)
    }

    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub(crate) fn new(listener: net::TcpListener, removal: Removal) -> io::Result<Self> {
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
    pub fn into_std(self) -> io::Result<net::TcpListener> {
        Ok(self.source.into_inner())
    }

    /// Accepts a connection, which belongs to this listener's driver. A connection that ended in
    /// the queue is skipped.
    ///
    /// The future may be dropped at any time: no connection is lost.
    ///
    /// # Errors
    /// If the driver has shut down, or if the system call fails. If there is no descriptor or
    /// memory for the connection, this fails only once: see the [module](super).
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        let accepted = self.source.accept(&self.backoff);
        self.adopt(accepted.await?)
    }

    /// Polls for a connection. Only the last task that polled is woken.
    ///
    /// # Errors
    /// As [`accept`](Self::accept).
    pub fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<io::Result<(TcpStream, SocketAddr)>> {
        let accepted = self.source.poll_accept(&self.backoff, &self.attempt, cx);
        accepted.map(|accepted| self.adopt(accepted?))
    }

    fn adopt(&self, (socket, from): Accepted) -> io::Result<(TcpStream, SocketAddr)> {
        let from = from.as_socket().ok_or(io::ErrorKind::InvalidData)?;
        let source = self.source.adopt(net::TcpStream::from(socket))?;
        Ok((TcpStream::accepted(source), from))
    }

    /// Returns the address at which this socket listens.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.source.io().local_addr()
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

    /// Takes the pending error of the socket (`SO_ERROR`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.source.io().take_error()
    }
}

handle::impl_as_handle!(
    /// A duplicate of the descriptor must not outlive the socket, unless the socket is exempt: see
    /// [duplicates](super#duplicates).
    [] TcpListener, source
);

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

impl TryFrom<net::TcpListener> for TcpListener {
    type Error = io::Error;

    fn try_from(listener: net::TcpListener) -> io::Result<Self> {
        Self::from_std(listener)
    }
}
