//! A TCP socket before it connects or listens.
use super::options;
use crate::{registration::Removal, sys::handle};
use socket2::{Domain, SockRef, Socket, Type};
use std::{fmt, io, net, net::SocketAddr, time::Duration};

/// A TCP socket before it connects or listens. Some options can only be set in this state.
///
/// ```
/// use net_driver::{Driver, net::TcpSocket};
///
/// Driver::new(1).park(0).block_on(async {
///     let socket = TcpSocket::new_v4()?;
///     socket.set_reuseaddr(true)?;
///     socket.bind("127.0.0.1:0".parse().unwrap())?;
///     let listener = socket.listen(16)?;
///
///     let socket = TcpSocket::new_v4()?;
///     socket.set_nodelay(true)?;
///     let stream = socket.connect(listener.local_addr()?).await?;
///     assert!(stream.nodelay()?);
///     assert!(TcpSocket::new_v6().is_err() || TcpSocket::new_v6()?.local_addr().is_ok());
///     let _socket = TcpSocket::from_std_stream(stream.into_std()?);
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
pub struct TcpSocket {
    pub(super) socket: Socket,
    pub(super) removal: Removal,
}

impl TcpSocket {
    /// Makes a socket for IPv4.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn new_v4() -> io::Result<Self> {
        Self::new(Domain::IPV4)
    }

    /// Makes a socket for IPv6.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn new_v6() -> io::Result<Self> {
        Self::new(Domain::IPV6)
    }

    pub(crate) fn new_for(address: SocketAddr) -> io::Result<Self> {
        Self::new(Domain::for_address(address))
    }

    fn new(domain: Domain) -> io::Result<Self> {
        let socket = super::socket(domain, Type::STREAM)?;
        super::keep_urgent(&socket)?;
        Ok(Self {
            socket,
            removal: Removal::ByClose,
        })
    }

    /// Takes over a socket of std. The socket may have begun to connect. On Windows it gets the
    /// option `SO_OOBINLINE`.
    pub fn from_std_stream(stream: net::TcpStream) -> Self {
        // An error is one of the connection, which reports it.
        let _ = super::keep_urgent(&stream);
        Self {
            socket: stream.into(),
            // The caller may have a clone of the stream. Then the close of this descriptor would
            // not take the socket out of the kernel's poll.
            removal: Removal::Deregister,
        }
    }

    /// Binds the socket to a local address.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn bind(&self, to: SocketAddr) -> io::Result<()> {
        self.socket.bind(&to.into())
    }

    /// Returns the address of this side.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        let address = self.socket.local_addr()?;
        address.as_socket().ok_or(io::ErrorKind::InvalidData.into())
    }

    /// Takes the pending error of the socket (`SO_ERROR`).
    ///
    /// ```
    /// let socket = net_driver::net::TcpSocket::new_v4()?;
    /// assert!(socket.take_error()?.is_none());
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// If the system call fails.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }
}

/// Options of the socket.
///
/// ```
/// use net_driver::net::TcpSocket;
/// use std::time::Duration;
///
/// let socket = TcpSocket::new_v4()?;
/// socket.set_reuseaddr(true)?;
/// assert!(socket.reuseaddr()?);
/// socket.set_reuseport(true)?;
/// assert!(socket.reuseport()?);
/// socket.set_keepalive(true)?;
/// assert!(socket.keepalive()?);
/// socket.set_nodelay(true)?;
/// assert!(socket.nodelay()?);
/// socket.set_linger(Some(Duration::from_secs(1)))?;
/// assert_eq!(socket.linger()?, Some(Duration::from_secs(1)));
/// socket.set_zero_linger()?;
/// assert_eq!(socket.linger()?, Some(Duration::ZERO));
/// socket.set_send_buffer_size(8_192)?;
/// assert!(socket.send_buffer_size()? >= 8_192);
/// socket.set_recv_buffer_size(8_192)?;
/// assert!(socket.recv_buffer_size()? >= 8_192);
/// assert!(socket.take_error()?.is_none());
/// # std::io::Result::Ok(())
/// ```
impl TcpSocket {
    /// Returns whether an address in use may be bound (`SO_REUSEADDR`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn reuseaddr(&self) -> io::Result<bool> {
        self.socket.reuse_address()
    }

    /// Sets whether an address in use may be bound (`SO_REUSEADDR`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_reuseaddr(&self, reuse: bool) -> io::Result<()> {
        self.socket.set_reuse_address(reuse)
    }

    /// Returns whether several sockets may share an address (`SO_REUSEPORT`).
    ///
    /// # Errors
    /// If the system call fails.
    #[cfg(unix)]
    pub fn reuseport(&self) -> io::Result<bool> {
        self.socket.reuse_port()
    }

    /// Sets whether several sockets may share an address (`SO_REUSEPORT`).
    ///
    /// # Errors
    /// If the system call fails.
    #[cfg(unix)]
    pub fn set_reuseport(&self, reuse: bool) -> io::Result<()> {
        self.socket.set_reuse_port(reuse)
    }

    /// Returns whether the system probes an idle connection (`SO_KEEPALIVE`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn keepalive(&self) -> io::Result<bool> {
        self.socket.keepalive()
    }

    /// Sets whether the system probes an idle connection (`SO_KEEPALIVE`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_keepalive(&self, keep: bool) -> io::Result<()> {
        self.socket.set_keepalive(keep)
    }

    /// Returns whether small writes leave at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn nodelay(&self) -> io::Result<bool> {
        self.socket.tcp_nodelay()
    }

    /// Sets whether small writes leave at once (`TCP_NODELAY`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_nodelay(&self, nodelay: bool) -> io::Result<()> {
        self.socket.set_tcp_nodelay(nodelay)
    }

    /// Returns how long a close waits for unsent bytes (`SO_LINGER`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn linger(&self) -> io::Result<Option<Duration>> {
        self.socket.linger()
    }

    /// Sets how long a close waits for unsent bytes (`SO_LINGER`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_linger(&self, limit: Option<Duration>) -> io::Result<()> {
        self.socket.set_linger(limit)
    }

    /// Sets a linger of zero: the drop of the connection then resets it.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_zero_linger(&self) -> io::Result<()> {
        self.set_linger(Some(Duration::ZERO))
    }

    /// Returns the size of the send buffer (`SO_SNDBUF`). Linux reports twice the size that was
    /// set.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn send_buffer_size(&self) -> io::Result<u32> {
        self.socket.send_buffer_size().map(|size| size as u32)
    }

    /// Sets the size of the send buffer (`SO_SNDBUF`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_send_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_send_buffer_size(size as usize)
    }

    /// Returns the size of the receive buffer (`SO_RCVBUF`). Linux reports twice the size that was
    /// set.
    ///
    /// # Errors
    /// If the system call fails.
    pub fn recv_buffer_size(&self) -> io::Result<u32> {
        self.socket.recv_buffer_size().map(|size| size as u32)
    }

    /// Sets the size of the receive buffer (`SO_RCVBUF`).
    ///
    /// # Errors
    /// If the system call fails.
    pub fn set_recv_buffer_size(&self, size: u32) -> io::Result<()> {
        self.socket.set_recv_buffer_size(size as usize)
    }
}

options::ip_options!(
    TcpSocket,
    |this| this.socket,
    /// Options of IP.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use net_driver::net::TcpSocket;
    ///
    /// let socket = TcpSocket::new_v4()?;
    /// socket.set_tos_v4(0x10)?;
    /// assert_eq!(socket.tos_v4()?, 0x10);
    /// assert_eq!(socket.device()?, None);
    /// socket.bind_device(None)?;
    /// if let Ok(socket) = TcpSocket::new_v6() {
    ///     socket.set_tclass_v6(0x10)?;
    ///     assert_eq!(socket.tclass_v6()?, 0x10);
    /// }
    /// # }
    /// # std::io::Result::Ok(())
    /// ```
);

handle::impl_as_handle!(
    /// A duplicate of the descriptor must not outlive the stream or listener that the socket
    /// becomes, unless the socket is exempt: see [duplicates](super#duplicates).
    [] TcpSocket, socket
);

impl fmt::Debug for TcpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        SockRef::from(&self.socket).fmt(f)
    }
}
