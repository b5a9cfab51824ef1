//! Sockets with tokio's names and semantics.
//!
//! A socket belongs to the driver that is current when the socket is made (see
//! [`Driver::scope`](crate::Driver::scope)). A stream that a listener accepts belongs to the driver
//! of the listener. Any thread may poll a socket's operations.
//!
//! ```
//! use futures_lite::{AsyncReadExt, AsyncWriteExt};
//! use net_driver::{Driver, net::{TcpListener, TcpStream}};
//!
//! // An executor of one task; a runtime sets the driver for all of its tasks.
//! Driver::new(1).park(0).block_on(async {
//!     let listener = TcpListener::bind("127.0.0.1:0").await?;
//!     let mut client = TcpStream::connect(listener.local_addr()?).await?;
//!     let (mut server, _) = listener.accept().await?;
//!     client.write_all(b"hello").await?;
//!     let mut message = [0; 5];
//!     server.read_exact(&mut message).await?;
//!     assert_eq!(&message, b"hello");
//!     std::io::Result::Ok(())
//! }).unwrap();
//! ```
//!
//! On Windows there are the sockets of TCP and UDP, and lookups. Unix sockets, pipes, named pipes
//! and `AsyncFd` are not there.
//!
//! # Panics
//! Making a socket panics on a thread without a current driver.
//!
//! # Errors
//! - Once the driver has shut down, each operation fails, and each wait ends, with an error of the
//!   kind `Other`.
//! - If no descriptor (`EMFILE`, `ENFILE`) or no memory is free, `accept` reports the error once.
//!   After that, `accept` on this listener tries again after longer and longer waits. It does not
//!   report such an error again until a try has succeeded.
//!
//! # Duplicates
//! A duplicate of a socket's descriptor, such as one for a child process (`try_clone_to_owned` of
//! `AsFd`), must not outlive the socket. If it should, call `into_std` first,
//! and duplicate the descriptor of the result. If no duplicate is open, the close of a socket takes
//! the socket out of the kernel's poller. Otherwise the kernel reports the socket's events until
//! the last duplicate is closed, and each of them wakes a worker for nothing. A duplicate of a
//! [`TcpSocket`] is also a duplicate of the stream or listener that the socket becomes.
//!
//! Sockets that come from std (`from_std`, `from_std_stream`) are exempt from this rule, as are
//! those of `UnixStream::pair`, each [`UnixDatagram`] and [`AsyncFd`], and the ends of pipes: a
//! system call takes them out when they are dropped.
//!
//! # Fork
//! A child made by `fork` shares the kernel's poller with its parent. The child must neither use
//! nor drop the sockets of the parent's runtime: it should call `exec`, or end by `_exit`, or leave
//! those sockets alone and make a driver of its own. All descriptors are close-on-exec. On macOS
//! a new descriptor, and on Windows an accepted socket, becomes so by a second call: a child that
//! another thread starts between the two calls inherits it.
//!
//! # Buffers
//! The methods that poll a receive, `poll_recv`, `poll_recv_from`, `poll_peek` and
//! `poll_peek_from`, take a `ReadBuf` of `task_io`, whose memory need not be initialised. Those
//! whose names end in `_slice` take a slice. `recv_buf`, `try_read_buf` and their like take a
//! `BufMut` of the crate `bytes`.
mod accept;
#[cfg(unix)]
mod async_fd;
pub mod batch;
mod bufs;
mod lookup;
mod options;
mod pause;
mod receive;
#[cfg(unix)]
mod receive_unix;
#[cfg(unix)]
mod send_to;
mod source;
#[cfg(target_os = "linux")]
mod splice;
mod split;
mod stream_io;
pub mod tcp;
mod tcp_listener;
mod tcp_socket;
mod tcp_stream;
mod udp;
#[cfg(unix)]
pub mod unix;
#[cfg(unix)]
mod unix_datagram;
#[cfg(unix)]
mod unix_listener;
#[cfg(unix)]
mod unix_socket;
#[cfg(unix)]
mod unix_stream;

#[cfg(unix)]
pub use async_fd::{
    AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
};
pub use lookup::{ToSocketAddrs, lookup_host};
pub use tcp_listener::TcpListener;
pub use tcp_socket::TcpSocket;
pub use tcp_stream::TcpStream;
pub use udp::UdpSocket;
#[cfg(unix)]
pub use unix_datagram::UnixDatagram;
#[cfg(unix)]
pub use unix_listener::UnixListener;
#[cfg(unix)]
pub use unix_socket::UnixSocket;
#[cfg(unix)]
pub use unix_stream::UnixStream;

/// Makes a socket that is non-blocking and close-on-exec.
fn socket(domain: socket2::Domain, kind: socket2::Type) -> std::io::Result<socket2::Socket> {
    cfg_if::cfg_if! {
        if #[cfg(any(target_vendor = "apple", windows))] {
            let socket = socket2::Socket::new(domain, kind, None)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        } else {
            socket2::Socket::new(domain, kind.nonblocking(), None)
        }
    }
}

/// Keeps a peer's urgent byte in the stream, on Windows. A byte outside of the stream makes the
/// system report the stream as readable for ever, as no read takes that byte. The sockets that a
/// listener accepts inherit the option.
fn keep_urgent<'a, S>(socket: &'a S) -> std::io::Result<()>
where
    socket2::SockRef<'a>: From<&'a S>,
{
    match cfg!(windows) {
        true => socket2::SockRef::from(socket).set_out_of_band_inline(true),
        false => Ok(()),
    }
}

/// Makes a new descriptor non-blocking and close-on-exec, on systems where the call that made it
/// cannot do so. A process that is started between that call and this one inherits the descriptor.
#[cfg(target_vendor = "apple")]
fn set_flags(fd: std::os::fd::RawFd) -> std::io::Result<()> {
    // SAFETY: the call takes no pointers.
    let done = unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    // SAFETY: as above. A new descriptor has no other flag, so this call clears none.
    if done == -1 || unsafe { libc::fcntl(fd, libc::F_SETFL, libc::O_NONBLOCK) } == -1 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(())
}
