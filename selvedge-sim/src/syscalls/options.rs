//! The options of sockets and of descriptors.
use super::{Call, FIRST, descriptor, files, number_of};
use crate::net::{Done, Errno, Family, FileId, Type};
use libc::{c_int, c_void, linger, socklen_t};
use std::ptr;

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn get(
    fd: c_int,
    name: (c_int, c_int),
    to: *mut c_void,
    len: *mut socklen_t,
) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        let file = call.file(at)?;
        if name == (libc::SOL_SOCKET, libc::SO_LINGER) {
            let value = call.net(|net, _, _| net.option(file, name));
            let value = linger {
                l_onoff: c_int::from(value.is_some()),
                l_linger: value.unwrap_or(0),
            };
            // SAFETY: the caller's.
            unsafe { write(value, to, len) };
        } else {
            let value = value_of(call, file, name)?;
            // SAFETY: the caller's.
            unsafe { write(value, to, len) };
        }
        Ok(0)
    })
}

fn value_of(call: &Call<'_>, file: FileId, name: (c_int, c_int)) -> Done<c_int> {
    let (family, kind, listens) = call.net(|net, _, _| net.describe(file))?;
    let sizes = call.net(|net, _, _| net.sizes(file));
    Ok(match name {
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            let error = call.net(|net, _, _| net.take_error(file))?;
            error.map_or(0, number_of)
        }
        (libc::SOL_SOCKET, libc::SO_TYPE) => match kind {
            Type::Stream => libc::SOCK_STREAM,
            Type::Datagram => libc::SOCK_DGRAM,
        },
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => match family {
            Family::Ipv4 => libc::AF_INET,
            Family::Ipv6 => libc::AF_INET6,
            Family::Unix => libc::AF_UNIX,
        },
        (libc::SOL_SOCKET, libc::SO_ACCEPTCONN) => c_int::from(listens),
        (libc::SOL_SOCKET, libc::SO_SNDBUF) => sizes.map_or(0, |sizes| sizes.0 as c_int),
        (libc::SOL_SOCKET, libc::SO_RCVBUF) => sizes.map_or(0, |sizes| sizes.1 as c_int),
        (libc::IPPROTO_IP, libc::IP_TTL) => {
            call.net(|net, _, _| net.option(file, name)).unwrap_or(64)
        }
        _ => call.net(|net, _, _| net.option(file, name)).unwrap_or(0),
    })
}

/// Writes the bytes of `value` that have room, and their count.
///
/// # Safety
/// `len` is valid for reads and writes, and `to` for writes of the bytes that `len` says.
unsafe fn write<T: Copy>(value: T, to: *mut c_void, len: *mut socklen_t) {
    // SAFETY: the caller's.
    let room = unsafe { len.read() } as usize;
    let count = size_of::<T>().min(room);
    // SAFETY: both are valid for `count` bytes, and `value` is a local variable.
    unsafe { ptr::copy_nonoverlapping((&raw const value).cast::<u8>(), to.cast::<u8>(), count) };
    // SAFETY: the caller's.
    unsafe { len.write(count as socklen_t) };
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn set(
    fd: c_int,
    name: (c_int, c_int),
    from: *const c_void,
    len: socklen_t,
) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        let file = call.file(at)?;
        call.net(|net, _, _| net.describe(file))?;
        let len = len as usize;
        if name == (libc::SOL_SOCKET, libc::SO_LINGER) && len >= size_of::<linger>() {
            // SAFETY: the caller's.
            let value = unsafe { from.cast::<linger>().read_unaligned() };
            let time = (value.l_onoff != 0).then_some(value.l_linger);
            call.net(|net, _, _| {
                net.set_resets_at_close(file, time == Some(0));
                net.set_option(file, name, time);
            });
            return Ok(0);
        }
        let value = match len {
            1 => {
                // SAFETY: the caller's.
                c_int::from(unsafe { from.cast::<u8>().read() })
            }
            4 => {
                // SAFETY: the caller's.
                unsafe { from.cast::<c_int>().read_unaligned() }
            }
            // Such as the time limits of a read, which nothing here would keep.
            _ => return Err(Errno::NoProtocolOption),
        };
        let sizes = call.net(|net, _, _| net.sizes(file));
        // Linux gives twice the size that was set, and not less than these.
        let size = |least: usize| (2 * value.clamp(0, 1 << 28) as usize).max(least);
        match (name, sizes) {
            ((libc::SOL_SOCKET, libc::SO_SNDBUF), Some((_, inbox))) => {
                call.net(|net, _, _| net.set_sizes(file, (size(4_608), inbox)));
            }
            ((libc::SOL_SOCKET, libc::SO_RCVBUF), Some((out, _))) => {
                call.net(|net, _, _| net.set_sizes(file, (out, size(2_304))));
            }
            _ => call.net(|net, _, _| net.set_option(file, name, Some(value))),
        }
        Ok(0)
    })
}

/// The function `fcntl`.
pub(super) fn control(fd: c_int, command: c_int, value: usize) -> Option<Done<i64>> {
    // With debug assertions, std asks this at the drop of a descriptor, and aborts the process if
    // it is not open. But a drop that comes late does nothing (rule 3). The answer takes no time,
    // so a drop lasts as long without debug assertions.
    if command == libc::F_GETFD && fd >= FIRST {
        return Some(Ok(i64::from(libc::FD_CLOEXEC)));
    }
    Call::of(fd, |call, at| {
        let file = call.file(at)?;
        match command {
            libc::F_SETFD => Ok(0),
            libc::F_GETFL | libc::F_SETFL | libc::F_GETLK | libc::F_SETLK | libc::F_SETLKW
                if call.net(|net, _, _| net.is_on_disk(file)) =>
            {
                files::control(call, file, command, value)
            }
            libc::F_GETFL => {
                let blocks = call.net(|net, _, _| net.blocks(file));
                let flags = if blocks { 0 } else { libc::O_NONBLOCK };
                Ok(i64::from(libc::O_RDWR | flags))
            }
            libc::F_SETFL => {
                let blocks = value & libc::O_NONBLOCK as usize == 0;
                call.net(|net, host, _| net.set_blocks(host, at, blocks))?;
                Ok(0)
            }
            libc::F_DUPFD | libc::F_DUPFD_CLOEXEC => call
                .net(|net, host, _| net.duplicate(host, at))
                .map(descriptor),
            _ => Err(Errno::Invalid),
        }
    })
}

/// The function `ioctl`.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn ioctl(fd: c_int, request: u64, value: *const c_int) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        if request != libc::FIONBIO {
            return Err(Errno::Invalid);
        }
        // SAFETY: this request has a pointer to a number.
        let blocks = unsafe { value.read() } == 0;
        call.net(|net, host, _| net.set_blocks(host, at, blocks))?;
        Ok(0)
    })
}
