//! How a read of a Unix stream learns that it has taken all bytes that were there.
//!
//! As on a TCP stream, a read that fills only a part of its buffer has taken all bytes, so the next
//! read can wait for an event. There are two exceptions. Such a read may leave bytes, and no event
//! announces these:
//!
//! - A read ends behind bytes with which descriptors were passed. It also ends before bytes of
//!   another writer, if the socket asks for the credentials of writers. In both cases the kernel
//!   has a control message, for which the read has no room. The flag `MSG_CTRUNC` says so.
//! - std's `UnixStream` may have a socket of packets (`SOCK_SEQPACKET`), and a read takes one
//!   packet. So the first short read asks the kernel for the type of the socket.
//!
//! All this holds on Linux. On other systems a short read does not mean that all bytes are taken
//! (`Sys::REPORTS_CLOSE`).
use crate::registration::Moved;
use socket2::{SockRef, Type};
use std::{io, mem::MaybeUninit, os::fd::AsRawFd, os::unix::net::UnixStream, ptr};
use sync_shim::atomic::{AtomicU32, Ordering::Relaxed};

/// The type of the socket: no read has asked for it, a stream of bytes, or packets.
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
        let (count, flags) = recvmsg(stream, to)?;
        let is_short = count < to.len() && flags & libc::MSG_CTRUNC == 0;
        Ok(Moved {
            count,
            may_have_more: !(is_short && self.is_byte_stream(stream)),
        })
    }

    fn is_byte_stream(&self, stream: &UnixStream) -> bool {
        // Ordering: Relaxed, here and below: the state publishes nothing.
        match self.0.load(Relaxed) {
            UNKNOWN => {
                let is_byte_stream = SockRef::from(stream)
                    .r#type()
                    .is_ok_and(|found| found == Type::STREAM);
                // Ordering: Relaxed, as above.
                self.0
                    .store(if is_byte_stream { BYTES } else { PACKETS }, Relaxed);
                is_byte_stream
            }
            state => state == BYTES,
        }
    }
}

/// Reads. Returns the number of bytes, and the flags of the message.
fn recvmsg(stream: &UnixStream, to: &mut [MaybeUninit<u8>]) -> io::Result<(usize, libc::c_int)> {
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
