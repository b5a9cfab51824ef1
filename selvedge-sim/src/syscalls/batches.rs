//! Many messages by one call.
use super::{Call, FIRST, sockets};
use crate::net::{Done, Errno};
use libc::{c_int, c_uint, mmsghdr, timespec};

/// The most messages of a call. The system ignores the others.
const MOST: c_uint = 1_024;

/// The function `recvmmsg`, without a limit of time.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn receive(
    fd: c_int,
    list: *mut mmsghdr,
    count: c_uint,
    mut flags: c_int,
    limit: *mut timespec,
) -> Option<Done<i64>> {
    if fd < FIRST {
        return None;
    }
    if !limit.is_null() {
        return Some(Err(Errno::NotSupported));
    }
    let first_waits = flags & libc::MSG_WAITFORONE != 0;
    flags &= !libc::MSG_WAITFORONE;
    for done in 0..count.min(MOST) {
        // SAFETY: the caller's.
        let message = unsafe { list.add(done as usize) };
        // SAFETY: the caller's.
        let header = unsafe { &raw mut (*message).msg_hdr };
        // SAFETY: the caller's.
        match unsafe { sockets::receive_message(fd, header, flags) }? {
            Ok(len) => {
                // SAFETY: the caller's.
                unsafe { (*message).msg_len = len as c_uint };
            }
            Err(error) if done == 0 => return Some(Err(error)),
            Err(error) => {
                keep(fd, error);
                return Some(Ok(done.into()));
            }
        }
        if first_waits {
            flags |= libc::MSG_DONTWAIT;
        }
    }
    Some(Ok(count.min(MOST).into()))
}

/// Keeps an error that follows a message for the next call. No edge announces it.
pub(super) fn keep(fd: c_int, error: Errno) {
    if error != Errno::Again {
        Call::of(fd, |call, at| {
            let file = call.file(at)?;
            call.net(|net, _, _| net.keep_error(file, error));
            Ok(())
        });
    }
}

/// The function `sendmmsg`.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn send(
    fd: c_int,
    list: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> Option<Done<i64>> {
    if fd < FIRST {
        return None;
    }
    for done in 0..count.min(MOST) {
        // SAFETY: the caller's.
        let message = unsafe { list.add(done as usize) };
        // SAFETY: the caller's.
        let header = unsafe { &raw const (*message).msg_hdr };
        // SAFETY: the caller's.
        match unsafe { sockets::send_message(fd, header, flags) }? {
            Ok(len) => {
                // SAFETY: the caller's.
                unsafe { (*message).msg_len = len as c_uint };
            }
            Err(error) if done == 0 => return Some(Err(error)),
            Err(_) => return Some(Ok(done.into())),
        }
    }
    Some(Ok(count.min(MOST).into()))
}
