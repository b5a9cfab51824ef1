//! How a read of a Unix stream learns that it has taken all bytes that were there.
//!
//! As on a TCP stream, a read that moves fewer bytes than it could has taken all of them, so the
//! next read can wait for an event. There are two exceptions, and bytes that are left there would
//! wait for an event that does not come:
//!
//! - A read ends behind bytes with which descriptors were passed. It also ends before bytes of
//!   another writer, if the socket asks for the credentials of writers. In both cases the kernel
//!   has a control message for which the read has no room, and says so by the flag `MSG_CTRUNC`.
//! - std's type may have a socket of packets (`SOCK_SEQPACKET`), of which a read takes one packet.
//!   The first short read asks the kernel for the type of the socket.
//!
//! Both hold on Linux. On other systems a short read says nothing (`Sys::REPORTS_CLOSE`).
use crate::registration::Moved;
use socket2::{SockRef, Type};
use std::{io, mem::MaybeUninit, os::fd::AsRawFd, os::unix::net::UnixStream, ptr};
use sync_shim::atomic::{AtomicU32, Ordering::Relaxed};

const UNKNOWN: u32 = 0;
const BYTES: u32 = 1;
const PACKETS: u32 = 2;

/// The type of a stream's socket, once a short read has asked for it.
#[derive(Debug)]
pub(crate) struct Receive(AtomicU32);

impl Receive {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(UNKNOWN))
    }

    /// Reads, and returns whether the stream may have more bytes.
    pub(crate) fn receive(
        &self,
        stream: &UnixStream,
        to: &mut [MaybeUninit<u8>],
    ) -> io::Result<Moved> {
        let (count, flags) = receive(stream, to)?;
        let is_short = count < to.len() && flags & libc::MSG_CTRUNC == 0;
        Ok(Moved {
            count,
            may_have_more: !(is_short && self.is_of_bytes(stream)),
        })
    }

    fn is_of_bytes(&self, stream: &UnixStream) -> bool {
        // Ordering: Relaxed, here and below: the state publishes nothing.
        match self.0.load(Relaxed) {
            UNKNOWN => {
                let of_bytes = SockRef::from(stream)
                    .r#type()
                    .is_ok_and(|found| found == Type::STREAM);
                // Ordering: Relaxed, as above.
                self.0
                    .store(if of_bytes { BYTES } else { PACKETS }, Relaxed);
                of_bytes
            }
            state => state == BYTES,
        }
    }
}

/// Reads. Returns the number of bytes, and the flags of the message.
fn receive(stream: &UnixStream, to: &mut [MaybeUninit<u8>]) -> io::Result<(usize, libc::c_int)> {
    let mut part = libc::iovec {
        iov_base: to.as_mut_ptr().cast(),
        iov_len: to.len(),
    };
    // SAFETY: all zeros are a valid value of this type: no name and no control message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = ptr::from_mut(&mut part);
    message.msg_iovlen = 1;
    // SAFETY: the header and its one part are valid, the part for a write of its length.
    let count = unsafe { libc::recvmsg(stream.as_raw_fd(), &raw mut message, 0) };
    match usize::try_from(count) {
        Ok(count) => Ok((count, message.msg_flags)),
        Err(_) => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(test, target_os = "linux", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
