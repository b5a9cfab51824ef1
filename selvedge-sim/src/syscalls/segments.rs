//! Datagrams that the system cuts up (`UDP_SEGMENT`).
//!
//! The simulated network joins none (`UDP_GRO`), as the system need not.
use super::{
    batches,
    buffers::{self, part},
    sockets,
};
use crate::net::{Done, Errno};
use libc::{c_int, cmsghdr, iovec, msghdr, sockaddr, socklen_t};
use std::slice;

/// The most datagrams of one call.
const MOST: usize = 128;

/// The most bytes of one call.
const LONGEST: usize = 65_507;

/// Returns the length of the datagrams into which a message is to be cut up, if it says so.
///
/// # Safety
/// The message's control messages are valid for reads of their length.
pub(super) unsafe fn len(message: &msghdr) -> Option<usize> {
    if message.msg_control.is_null() {
        return None;
    }
    let (at, len) = (message.msg_control.cast::<u8>(), message.msg_controllen);
    // SAFETY: the caller's.
    let mut rest = unsafe { slice::from_raw_parts(at, len) };
    // The kernel's layout: the length, the level, the type, and the data.
    while let Some((header, data)) = rest.split_at_checked(size_of::<cmsghdr>()) {
        let len = usize::from_ne_bytes(header[..8].try_into().ok()?);
        let number = |at: usize| {
            header[at..]
                .first_chunk()
                .copied()
                .map(c_int::from_ne_bytes)
        };
        if (number(8), number(12)) == (Some(libc::SOL_UDP), Some(libc::UDP_SEGMENT)) {
            let len = usize::from(u16::from_ne_bytes(*data.first_chunk()?));
            return (len > 0).then_some(len);
        }
        let next = len.max(size_of::<cmsghdr>()).checked_next_multiple_of(8)?;
        rest = rest.get(next..)?;
    }
    None
}

/// Sends the bytes of the parts as datagrams of this length.
///
/// # Safety
/// As for [`sockets::send`].
pub(super) unsafe fn send(
    fd: c_int,
    parts: &[iovec],
    len: usize,
    flags: c_int,
    to: (*const sockaddr, socklen_t),
) -> Option<Done<i64>> {
    // SAFETY: the caller's.
    let bytes = unsafe { buffers::bytes(parts) }.concat();
    if bytes.len() > LONGEST {
        return Some(Err(Errno::MessageSize));
    }
    if bytes.len() > len * MOST {
        return Some(Err(Errno::Invalid));
    }
    let mut rest = &bytes[..];
    loop {
        let (first, others) = rest.split_at(len.min(rest.len()));
        let first = part(first.as_ptr().cast(), first.len());
        // SAFETY: the part is local, and the address is the caller's.
        let done = unsafe { sockets::send(fd, &[first], flags, to) }?;
        // The system has one buffer, which goes or not. So if a later datagram meets an error, the
        // rest is lost, and the next call fails.
        match done {
            Err(error) if rest.len() == bytes.len() => return Some(Err(error)),
            Err(error) => {
                batches::keep(fd, error);
                return Some(Ok(bytes.len() as i64));
            }
            Ok(_) if others.is_empty() => return Some(Ok(bytes.len() as i64)),
            Ok(_) => {}
        }
        rest = others;
    }
}
