//! The credentials of the process at the other side of a connection.
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd},
};

/// The credentials of the process at the other side: see
/// [`UnixStream::peer_cred`](crate::net::UnixStream::peer_cred). They are those that the process
/// had when it called `connect`, `listen` or `socketpair`.
///
/// ```
/// # net_driver::Driver::new(1).park(0).block_on(async {
/// let (one, _other) = net_driver::net::UnixStream::pair()?;
/// let peer: net_driver::net::unix::UCred = one.peer_cred()?;
/// # #[cfg(target_os = "linux")]
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
    pub(crate) fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
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
    pub(crate) fn of(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let (mut uid, mut gid) = (0, 0);
        // SAFETY: the pointers are valid for a write.
        if unsafe { libc::getpeereid(socket.as_raw_fd(), &mut uid, &mut gid) } != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { uid, gid, pid: 0 })
    }
}
