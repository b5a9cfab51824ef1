//! The sources of a server's connections.
use crate::SelvedgeIo;
use hyper::rt::{Read, Write};
use selvedge::net::{TcpListener, TcpStream};
#[cfg(unix)]
use selvedge::net::{UnixListener, UnixStream};
use std::{
    io,
    task::{Context, Poll, ready},
};

/// A source of connections for [`serve`](crate::serve).
///
/// Implement this trait to set options of each socket, or to hand out streams of another kind.
///
/// ```
/// use selvedge::net::{TcpListener, TcpStream};
/// use selvedge_hyper::{Listener, SelvedgeIo};
/// use std::{io, task::{Context, Poll}, time::Duration};
///
/// /// Resets connections that the server drops.
/// struct Resetting(TcpListener);
///
/// impl Listener for Resetting {
///     type Io = SelvedgeIo<TcpStream>;
///
///     fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>> {
///         let accepted = Listener::poll_accept(&mut self.0, cx);
///         if let Poll::Ready(Ok(io)) = &accepted {
///             io.inner().set_zero_linger()?;
///         }
///         accepted
///     }
/// }
/// ```
pub trait Listener {
    /// A connection.
    type Io: Read + Write + Unpin + Send + 'static;

    /// Polls for a connection. The task that polled last is woken when there may be a connection.
    ///
    /// # Errors
    /// The server ends if the listener itself is broken, which it concludes from the OS error
    /// numbers `EBADF`, `EINVAL` and `ENOTSOCK`. The server also ends if the error has no
    /// [`raw_os_error`](io::Error::raw_os_error). After any other error, the server polls again
    /// 10 ms later.
    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>>;
}

/// Accepts connections, and sets `TCP_NODELAY` on each.
impl Listener for TcpListener {
    type Io = SelvedgeIo<TcpStream>;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>> {
        let (stream, _) = ready!(TcpListener::poll_accept(self, cx))?;
        // If the option can't be set, the connection has ended, and its first read reports that.
        let _ = stream.set_nodelay(true);
        Poll::Ready(Ok(SelvedgeIo::new(stream)))
    }
}

#[cfg(unix)]
impl Listener for UnixListener {
    type Io = SelvedgeIo<UnixStream>;

    fn poll_accept(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Self::Io>> {
        let (stream, _) = ready!(UnixListener::poll_accept(self, cx))?;
        Poll::Ready(Ok(SelvedgeIo::new(stream)))
    }
}
