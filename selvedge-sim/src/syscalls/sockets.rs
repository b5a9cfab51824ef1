//! The calls of sockets.
use super::{
    Call, FIRST,
    addresses::{self, Name},
    buffers::{self, Sink},
    descriptor, segments,
};
use crate::net::{Done, Errno, Family, Type};
use libc::{c_int, c_void, iovec, msghdr, sockaddr, socklen_t};

pub(super) fn socket(domain: c_int, kind: c_int) -> Option<Done<i64>> {
    Call::begin(|call| {
        let family = match domain {
            libc::AF_INET => Family::Ipv4,
            libc::AF_INET6 => Family::Ipv6,
            libc::AF_UNIX => Family::Unix,
            _ => return Err(Errno::FamilyNotSupported),
        };
        let blocks = kind & libc::SOCK_NONBLOCK == 0;
        let kind = match kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC) {
            libc::SOCK_STREAM => Type::Stream,
            libc::SOCK_DGRAM => Type::Datagram,
            _ => return Err(Errno::NotSupported),
        };
        call.net(|net, host, _| net.make_socket(host, family, kind, blocks))
            .map(descriptor)
    })
}

/// The function `socketpair`. A pair of packets is the system's: std has one for children.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn pair(domain: c_int, kind: c_int, to: *mut c_int) -> Option<Done<i64>> {
    let blocks = kind & libc::SOCK_NONBLOCK == 0;
    let kind = kind & !(libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    if (domain, kind) != (libc::AF_UNIX, libc::SOCK_STREAM) {
        return None;
    }
    Call::begin(|call| {
        let (one, other) = call.net(|net, host, _| net.make_pair(host, blocks))?;
        let pair = [descriptor(one) as c_int, descriptor(other) as c_int];
        // SAFETY: the caller's.
        unsafe { to.cast::<[c_int; 2]>().write_unaligned(pair) };
        Ok(0)
    })
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn bind(
    fd: c_int,
    address: *const sockaddr,
    len: socklen_t,
) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        // SAFETY: the caller's.
        let address = unsafe { addresses::read(address, len) }?;
        let file = call.file(at)?;
        call.net(|net, host, _| match address {
            Name::Inet(address) => net.bind(host, file, address),
            Name::Unix(name) => net.bind_local(host, file, name),
        })?;
        Ok(0)
    })
}

pub(super) fn listen(fd: c_int, backlog: c_int) -> Option<Done<i64>> {
    let backlog = usize::try_from(backlog).unwrap_or(0);
    Call::of(fd, |call, at| {
        call.net(|net, host, _| net.listen(host, at, backlog))?;
        Ok(0)
    })
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn connect(
    fd: c_int,
    address: *const sockaddr,
    len: socklen_t,
) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        // SAFETY: the caller's.
        let address = unsafe { addresses::read(address, len) }?;
        let file = call.file(at)?;
        let done = match address {
            Name::Inet(to) => call.net(|net, host, moment| net.connect(host, file, to, moment)),
            Name::Unix(name) => call.net(|net, host, _| net.connect_local(host, file, &name)),
        };
        let waits = done == Err(Errno::InProgress) && call.net(|net, _, _| net.blocks(file));
        if !waits {
            return done.map(|()| 0);
        }
        while call.net(|net, _, _| net.is_connecting(file)) {
            call.wait(file, None);
        }
        if !call.net(|net, _, _| net.has_file(file)) {
            return Err(Errno::BadDescriptor);
        }
        match call.net(|net, _, _| net.take_error(file))? {
            Some(error) => Err(error),
            None => {
                call.net(|net, _, _| net.note_connected(file));
                Ok(0)
            }
        }
    })
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn accept(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    flags: c_int,
) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        let file = call.file(at)?;
        let blocks = flags & libc::SOCK_NONBLOCK == 0;
        if call.net(|net, _, _| net.local_name(file, false)).is_some() {
            let at = call.waiting(file, true, |net, host, _| {
                net.accept_local(host, file, blocks)
            })?;
            let new = call.file(at)?;
            let name = call.net(|net, _, _| net.local_name(new, true));
            // SAFETY: the caller's.
            unsafe { addresses::write_unix(&name.unwrap_or(Ok(Vec::new()))?, address, len) };
            return Ok(descriptor(at));
        }
        let (at, from) = call.waiting(file, true, |net, host, _| net.accept(host, file, blocks))?;
        // SAFETY: the caller's.
        unsafe { addresses::write(from, address, len) };
        Ok(descriptor(at))
    })
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn name(
    fd: c_int,
    address: *mut sockaddr,
    len: *mut socklen_t,
    is_remote: bool,
) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        let file = call.file(at)?;
        if let Some(name) = call.net(|net, _, _| net.local_name(file, is_remote)) {
            // SAFETY: the caller's.
            unsafe { addresses::write_unix(&name?, address, len) };
            return Ok(0);
        }
        let name = call.net(|net, _, _| match is_remote {
            true => net.remote(file),
            false => net.local_address(file),
        })?;
        // SAFETY: the caller's.
        unsafe { addresses::write(name, address, len) };
        Ok(0)
    })
}

pub(super) fn shutdown(fd: c_int, how: c_int) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        let halves = match how {
            libc::SHUT_RD => (true, false),
            libc::SHUT_WR => (false, true),
            libc::SHUT_RDWR => (true, true),
            _ => return Err(Errno::Invalid),
        };
        let file = call.file(at)?;
        call.net(|net, _, moment| net.shut_down(file, halves, moment))?;
        Ok(0)
    })
}

pub(super) fn close(fd: c_int) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        call.net(|net, host, moment| net.close(host, at, moment))?;
        Ok(0)
    })
}

/// Writes from the parts, or sends them as a datagram.
///
/// # Safety
/// Each part is valid for reads. The address is null, or valid for reads of its length.
pub(super) unsafe fn send(
    fd: c_int,
    parts: &[iovec],
    flags: c_int,
    (address, len): (*const sockaddr, socklen_t),
) -> Option<Done<i64>> {
    Call::of(fd, |call, at| {
        let to = match address.is_null() {
            true => None,
            // SAFETY: the caller's.
            false => Some(unsafe { addresses::read(address, len) }?.inet()?),
        };
        // SAFETY: the caller's.
        let bytes = unsafe { buffers::bytes(parts) };
        let file = call.file(at)?;
        if call.net(|net, _, _| net.is_counter(file)) {
            let number = bytes.concat().try_into().map_err(|_| Errno::Invalid)?;
            call.net(|net, _, _| net.add_to_counter(file, u64::from_ne_bytes(number)))?;
            return Ok(8);
        }
        let may_wait = flags & libc::MSG_DONTWAIT == 0;
        let count = call.waiting(file, may_wait, |net, host, moment| {
            net.write(host, file, &bytes, to, moment)
        })?;
        Ok(count as i64)
    })
}

/// # Safety
/// As for the function of libc.
pub(super) unsafe fn send_message(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> Option<Done<i64>> {
    if fd < FIRST {
        return None;
    }
    // SAFETY: the caller's.
    let message = unsafe { &*message };
    // SAFETY: the caller's.
    let parts = unsafe { buffers::parts(message.msg_iov, message.msg_iovlen) };
    let to = (
        message.msg_name.cast::<sockaddr>().cast_const(),
        message.msg_namelen,
    );
    // SAFETY: the caller's.
    if let Some(segment) = unsafe { segments::len(message) } {
        // SAFETY: the caller's.
        return unsafe { segments::send(fd, parts, segment, flags, to) };
    }
    // SAFETY: the caller's.
    unsafe { send(fd, parts, flags, to) }
}

/// The result of a receive.
pub(super) struct Received {
    pub(super) count: i64,
    pub(super) is_truncated: bool,
    /// The bytes that are left.
    pub(super) left: usize,
}

/// Reads into the parts, or receives a datagram.
///
/// # Safety
/// Each part is valid for writes. The length of the address is null, or valid for reads and writes,
/// and the address is null or valid for writes of that length.
pub(super) unsafe fn receive(
    fd: c_int,
    parts: &[iovec],
    flags: c_int,
    (address, len): (*mut sockaddr, *mut socklen_t),
) -> Option<Done<Received>> {
    Call::of(fd, |call, at| {
        let file = call.file(at)?;
        // SAFETY: the caller's.
        let mut sink = unsafe { Sink::new(parts) };
        if call.net(|net, _, _| net.is_counter(file)) {
            let number = call.waiting(file, true, |net, _, _| net.take_counter(file))?;
            sink.take(&number.to_ne_bytes());
            return Ok(Received {
                count: 8,
                is_truncated: false,
                left: 0,
            });
        }
        let (most, peeks) = (buffers::len(parts), flags & libc::MSG_PEEK != 0);
        let may_wait = flags & libc::MSG_DONTWAIT == 0;
        let reading = call.waiting(file, may_wait, |net, host, moment| {
            net.read(host, file, (most, peeks), |bytes| sink.take(bytes), moment)
        })?;
        if let Some(from) = reading.from {
            // SAFETY: the caller's.
            unsafe { addresses::write(from, address, len) };
        }
        let given = reading.len.min(most);
        let counts_all = flags & libc::MSG_TRUNC != 0;
        Ok(Received {
            count: if counts_all { reading.len } else { given } as i64,
            is_truncated: given < reading.len,
            left: reading.left,
        })
    })
}

/// The length of a control message with a number.
const CONTROL: usize = size_of::<libc::cmsghdr>() + size_of::<c_int>();

/// Receives with a header, which gets the sender's address, the flags, and a hint of the bytes that
/// are left, if the socket asks for hints.
///
/// # Safety
/// As for the function of libc.
pub(super) unsafe fn receive_message(
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
) -> Option<Done<i64>> {
    let wants_hints = Call::of(fd, |call, at| {
        let file = call.file(at)?;
        Ok(call.net(|net, _, _| net.option(file, (libc::IPPROTO_TCP, libc::TCP_INQ))))
    })?;
    // SAFETY: the caller's.
    let message = unsafe { &mut *message };
    // SAFETY: the caller's.
    let parts = unsafe { buffers::parts(message.msg_iov, message.msg_iovlen) };
    let name = message.msg_name.cast::<sockaddr>();
    let len = &raw mut message.msg_namelen;
    // SAFETY: the caller's.
    let received = unsafe { receive(fd, parts, flags, (name, len)) }?;
    Some(received.map(|received| {
        message.msg_flags = if received.is_truncated {
            libc::MSG_TRUNC
        } else {
            0
        };
        let wants_hint = matches!(wants_hints, Ok(Some(on)) if on != 0);
        if wants_hint && message.msg_controllen >= CONTROL {
            let left = c_int::try_from(received.left).unwrap_or(c_int::MAX);
            // SAFETY: the caller's, and the length was checked.
            unsafe { write_hint(message.msg_control, left) };
            message.msg_controllen = CONTROL;
        } else {
            message.msg_controllen = 0;
        }
        received.count
    }))
}

/// # Safety
/// The pointer is valid for writes of [`CONTROL`] bytes.
unsafe fn write_hint(to: *mut c_void, left: c_int) {
    let header = libc::cmsghdr {
        cmsg_len: CONTROL,
        cmsg_level: libc::IPPROTO_TCP,
        cmsg_type: libc::TCP_CM_INQ,
    };
    // SAFETY: the caller's.
    unsafe { to.cast::<libc::cmsghdr>().write_unaligned(header) };
    // SAFETY: the number is behind the header, in the same room.
    let number = unsafe { to.cast::<u8>().add(size_of::<libc::cmsghdr>()) };
    // SAFETY: as above.
    unsafe { number.cast::<c_int>().write_unaligned(left) };
}
