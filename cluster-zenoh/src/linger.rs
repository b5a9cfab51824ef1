//! Sockets of zenoh that close at once.
//!
//! Zenoh lets its sockets linger for ten seconds: a `close` of one with unsent bytes blocks its
//! thread for as long. That thread reads for all peers. So a peer that was cut off would end the
//! sessions with all others. Linux alone shows a program its own sockets, so this is for Linux.
use std::{
    net::{SocketAddr, TcpStream},
    os::fd::{FromRawFd, OwnedFd, RawFd},
};
use zenoh::{Session, Wait};

/// Lets no connection of zenoh linger.
pub(crate) fn turn_off(session: &Session) {
    let ends: Vec<_> = session
        .info()
        .links()
        .wait()
        .filter_map(|link| ends_of(&link))
        .collect();
    for socket in own_sockets().into_iter().filter_map(duplicate) {
        let socket = TcpStream::from(socket);
        // Both fail for all that is no TCP connection.
        if let (Ok(local), Ok(peer)) = (socket.local_addr(), socket.peer_addr()) {
            if ends.contains(&(local, peer)) {
                // Without it, a close may block as before.
                let _ = socket2::SockRef::from(&socket).set_linger(None);
            }
        }
    }
}

fn ends_of(link: &zenoh::session::Link) -> Option<(SocketAddr, SocketAddr)> {
    let address = |text: &str| text.parse().ok();
    let source = address(link.src().address().as_str())?;
    Some((source, address(link.dst().address().as_str())?))
}

/// Returns the descriptors of sockets. Files are left alone: to close a copy of a file's descriptor
/// ends the process's locks of the file.
fn own_sockets() -> Vec<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let sockets = entries.filter(|entry| {
        let target = std::fs::read_link(entry.path());
        target.is_ok_and(|target| {
            target
                .as_os_str()
                .as_encoded_bytes()
                .starts_with(b"socket:")
        })
    });
    sockets
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Makes another descriptor of the same file, so that it stays what it is.
fn duplicate(descriptor: RawFd) -> Option<OwnedFd> {
    // SAFETY: this command takes any number. It fails for one that is no descriptor.
    let copy = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
    if copy < 0 {
        return None;
    }
    // SAFETY: the system has just made the descriptor, and nothing else knows it.
    Some(unsafe { OwnedFd::from_raw_fd(copy) })
}
