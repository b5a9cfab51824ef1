//! The halves of a [`UnixStream`](super::UnixStream), addresses and credentials of Unix sockets, and
//! [`pipe`]s.
//!
//! On Linux, a path that begins with a zero byte (`"\0name"`) is an *abstract* name: there is no
//! file, and the name is free as soon as its socket is closed.
//!
//! ```
//! use futures_lite::{AsyncReadExt, AsyncWriteExt};
//! use net_driver::{Driver, net::{UnixStream, unix::SocketAddr}};
//!
//! Driver::new(1).park(0).block_on(async {
//!     let (one, mut other) = UnixStream::pair()?;
//!     let (mut read, mut write) = one.into_split();
//!     write.write_all(b"ping").await?;
//!     let mut message = [0; 4];
//!     other.read_exact(&mut message).await?;
//!     other.write_all(&message).await?;
//!     read.read_exact(&mut message).await?;
//!     assert_eq!(&message, b"ping");
//!
//!     let one: UnixStream = read.reunite(write).unwrap();
//!     let address: SocketAddr = one.local_addr()?;
//!     assert!(address.is_unnamed());
//!     std::io::Result::Ok(())
//! }).unwrap();
//! ```
use socket2::SockAddr;
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
    path::Path,
};

mod halves;
pub mod pipe;

pub use halves::{OwnedReadHalf, OwnedWriteHalf, ReadHalf, ReuniteError, WriteHalf};
pub use std::os::unix::net::SocketAddr;

/// The ids of [`UCred`], under tokio's names.
///
/// ```
/// # net_driver::Driver::new(1).park(0).block_on(async {
/// use net_driver::net::unix::{gid_t, pid_t, uid_t};
///
/// let peer = net_driver::net::UnixStream::pair()?.0.peer_cred()?;
/// let _: (uid_t, gid_t, Option<pid_t>) = (peer.uid(), peer.gid(), peer.pid());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
pub use libc::{gid_t, pid_t, uid_t};

/// Returns the address that a path names. On Linux, a path that begins with a zero byte is an
/// abstract name, for which there is no file.
pub(super) fn address(path: &Path) -> io::Result<SocketAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;

        if let Some(name) = path.as_os_str().as_bytes().strip_prefix(b"\0") {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(path)
}

/// Returns socket2's address for one of std.
pub(super) fn to_socket2(address: &SocketAddr) -> io::Result<SockAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

        if let Some(name) = address.as_abstract_name() {
            return SockAddr::unix(OsStr::from_bytes(&[b"\0", name].concat()));
        }
    }
    match address.as_pathname() {
        Some(path) => SockAddr::unix(path),
        None => {
            let why = "an address without a name";
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
    }
}

/// Returns std's address for one of socket2.
#[cfg(feature = "tokio")]
pub(super) fn from_socket2(address: &SockAddr) -> io::Result<SocketAddr> {
    // `as_unix` returns `None` for an address without a name. The empty path makes such an address.
    address
        .as_unix()
        .map_or_else(|| SocketAddr::from_pathname(""), Ok)
}

/// The credentials of the process at the other side: see
/// [`UnixStream::peer_cred`](super::UnixStream::peer_cred). They are those that the process had when
/// it called `connect`, `listen` or `socketpair`.
///
/// ```
/// # net_driver::Driver::new(1).park(0).block_on(async {
/// let (one, _other) = net_driver::net::UnixStream::pair()?;
/// let peer: net_driver::net::unix::UCred = one.peer_cred()?;
/// assert_eq!(peer.pid(), Some(std::process::id() as i32));
/// println!("user {}, group {}", peer.uid(), peer.gid());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UCred {
    uid: libc::uid_t,
    gid: libc::gid_t,
    pid: libc::pid_t,
}

impl UCred {
    /// Returns the user's id.
    pub fn uid(&self) -> libc::uid_t {
        self.uid
    }

    /// Returns the group's id.
    pub fn gid(&self) -> libc::gid_t {
        self.gid
    }

    /// Returns the process's id. `None` if that process is in a namespace that this process cannot
    /// see, and on systems other than Linux and Android.
    pub fn pid(&self) -> Option<libc::pid_t> {
        Some(self.pid).filter(|pid| *pid != 0)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(super) fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut cred = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut len = size_of_val(&cred) as libc::socklen_t;
        let (fd, at) = (socket.as_raw_fd(), (&raw mut cred).cast());
        // SAFETY: the pointers are valid, the first one for a write of `len` bytes.
        let failed =
            unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_PEERCRED, at, &mut len) };
        if failed != 0 {
            return Err(io::Error::last_os_error());
        }
        let libc::ucred { pid, uid, gid } = cred;
        Ok(Self { uid, gid, pid })
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(super) fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let (mut uid, mut gid) = (0, 0);
        // SAFETY: the pointers are valid for a write.
        if unsafe { libc::getpeereid(socket.as_raw_fd(), &mut uid, &mut gid) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { uid, gid, pid: 0 })
    }
}
