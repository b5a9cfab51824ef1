//! Linux: `recvmmsg` and `sendmmsg`, with the control messages of GSO and GRO.
//!
//! The headers of a call are on the stack, as they have pointers. The memory that the kernel fills
//! is a [`Room`] of the batch; it is always initialised, so what the kernel writes is read as plain
//! bytes.
use super::{
    datagram::Head,
    transmit::{MOST, Transmit},
};
use libc::{c_int, cmsghdr, iovec, mmsghdr, sockaddr_in, sockaddr_in6};
use std::{
    io, mem,
    mem::{MaybeUninit, offset_of},
    net::{Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6},
    os::fd::{AsRawFd, BorrowedFd},
    ptr,
};

/// The bytes of the longest address, one of IPv6.
const NAME: usize = size_of::<sockaddr_in6>();

/// The bytes of control messages in a receive: the one of GRO, and those that the kernel writes
/// before it if the socket has such options (the time, those of `SO_TIMESTAMPING`, the drops, the
/// mark, the priority).
const CONTROL: usize = 256;

/// The bytes of the control message in a send: its header, and the length of a segment.
const SEGMENT: usize = size_of::<cmsghdr>() + size_of::<u16>();

/// The same up to the place of a next message.
const ALIGNED_SEGMENT: usize = SEGMENT.next_multiple_of(size_of::<usize>());

/// Room for the address and the control messages of one datagram.
#[derive(Clone)]
#[repr(C, align(8))]
pub(crate) struct Room {
    control: [u8; CONTROL],
    name: [u8; NAME],
}

impl Default for Room {
    fn default() -> Self {
        Self {
            control: [0; CONTROL],
            name: [0; NAME],
        }
    }
}

/// Room for the address and the control message of a datagram that is sent.
#[repr(C, align(8))]
struct Names {
    control: [u8; ALIGNED_SEGMENT],
    name: [u8; NAME],
}

/// Receives up to [`MOST`] datagrams, as many as there are heads. The datagram of each goes to a
/// slot of the bytes, whose length is the second part of `slots`.
///
/// Without `is_joined` the kernel has no room for control messages. So it also passes on no
/// descriptors, which a peer could send if the socket is one of Unix after all.
pub(super) fn receive(
    socket: BorrowedFd<'_>,
    (mut bytes, len): (&mut [u8], usize),
    rooms: &mut [Room],
    heads: &mut [Head],
    is_joined: bool,
) -> io::Result<usize> {
    let mut headers = [const { MaybeUninit::<mmsghdr>::uninit() }; MOST];
    let mut vectors = [const { MaybeUninit::<iovec>::uninit() }; MOST];
    let mut count = 0;
    for ((header, vector), room) in headers.iter_mut().zip(&mut vectors).zip(&mut *rooms) {
        let (slot, rest) = mem::take(&mut bytes).split_at_mut(len);
        bytes = rest;
        let vector = vector.write(iovec {
            iov_base: slot.as_mut_ptr().cast(),
            iov_len: len,
        });
        let header = &mut header.write(empty()).msg_hdr;
        header.msg_iov = vector;
        header.msg_iovlen = 1;
        header.msg_name = room.name.as_mut_ptr().cast();
        header.msg_namelen = NAME as _;
        if is_joined {
            header.msg_control = room.control.as_mut_ptr().cast();
            header.msg_controllen = CONTROL as _;
        }
        count += 1;
    }
    let (fd, list) = (socket.as_raw_fd(), headers.as_mut_ptr().cast());
    let flags = (libc::MSG_DONTWAIT | libc::MSG_CMSG_CLOEXEC) as _;
    // SAFETY: the first `count` headers are initialised. Their pointers are to slots, rooms and
    // vectors that are borrowed or local, are not used otherwise during the call, and have the
    // lengths that the headers say.
    let received = unsafe { libc::recvmmsg(fd, list, count, flags, ptr::null_mut()) };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    for ((header, room), head) in headers.iter().zip(rooms).zip(heads).take(received) {
        // SAFETY: the kernel has received no more datagrams than there are initialised headers.
        let message = unsafe { header.assume_init_ref() };
        let (header, len) = (&message.msg_hdr, (message.msg_len as usize).min(len));
        let name = &room.name[..(header.msg_namelen as usize).min(NAME)];
        #[allow(clippy::unnecessary_cast, reason = "musl has a smaller type")]
        let control = &room.control[..(header.msg_controllen as usize).min(CONTROL)];
        let segment = segment_in(control);
        // If the segment size may be among the messages that had no room, the bytes are of no use.
        let is_cut = is_joined && segment == 0 && header.msg_flags & libc::MSG_CTRUNC != 0;
        *head = Head {
            from: address(name).ok_or(io::ErrorKind::InvalidData)?,
            len,
            segment,
            is_truncated: is_cut || header.msg_flags & libc::MSG_TRUNC != 0,
        };
    }
    Ok(received)
}

/// Sends the first message, and others while the datagrams of all are at most [`MOST`]. Returns how
/// many messages went.
pub(crate) fn send(socket: BorrowedFd<'_>, messages: &[Transmit<'_>]) -> io::Result<usize> {
    let mut headers = [const { MaybeUninit::<mmsghdr>::uninit() }; MOST];
    let mut vectors = [const { MaybeUninit::<iovec>::uninit() }; MOST];
    let mut names = [const { MaybeUninit::<Names>::uninit() }; MOST];
    let (mut count, mut datagrams) = (0, 0);
    let rooms = headers.iter_mut().zip(&mut vectors).zip(&mut names);
    for (((header, vector), names), message) in rooms.zip(messages) {
        datagrams += message.datagrams();
        if count > 0 && datagrams > MOST {
            break;
        }
        let vector = vector.write(iovec {
            iov_base: message.bytes.as_ptr().cast_mut().cast(),
            iov_len: message.bytes.len(),
        });
        let names = names.write(Names {
            control: [0; ALIGNED_SEGMENT],
            name: [0; NAME],
        });
        let header = &mut header.write(empty()).msg_hdr;
        header.msg_iov = vector;
        header.msg_iovlen = 1;
        if let Some(to) = message.to {
            header.msg_namelen = write_address(to, &mut names.name) as _;
            header.msg_name = names.name.as_mut_ptr().cast();
        }
        if message.segment > 0 {
            write_segment(message.segment, &mut names.control);
            header.msg_control = names.control.as_mut_ptr().cast();
            header.msg_controllen = names.control.len() as _;
        }
        count += 1;
    }
    if count == 0 {
        return Ok(0);
    }
    let (fd, list) = (socket.as_raw_fd(), headers.as_mut_ptr().cast());
    let flags = (libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) as _;
    // SAFETY: the first `count` headers are initialised. Their pointers are to vectors, names and
    // bytes that are local or borrowed, and have the lengths that the headers say. The kernel
    // writes only to the headers.
    let sent = unsafe { libc::sendmmsg(fd, list, count, flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Returns a header without parts.
fn empty() -> mmsghdr {
    // SAFETY: all zeros are a value of this type: null pointers and lengths of 0.
    unsafe { mem::zeroed() }
}

/// Reads the bytes at a place, if there are so many.
fn read<const N: usize>(from: &[u8], at: usize) -> Option<[u8; N]> {
    from.get(at..)?.first_chunk().copied()
}

/// Reads the address of a sender.
fn address(name: &[u8]) -> Option<SocketAddr> {
    let family = u16::from_ne_bytes(read(name, offset_of!(sockaddr_in, sin_family))?);
    match c_int::from(family) {
        libc::AF_INET => {
            let port = u16::from_be_bytes(read(name, offset_of!(sockaddr_in, sin_port))?);
            let ip: [u8; 4] = read(name, offset_of!(sockaddr_in, sin_addr))?;
            Some(SocketAddrV4::new(ip.into(), port).into())
        }
        libc::AF_INET6 => {
            let port = u16::from_be_bytes(read(name, offset_of!(sockaddr_in6, sin6_port))?);
            let flow = u32::from_ne_bytes(read(name, offset_of!(sockaddr_in6, sin6_flowinfo))?);
            let ip: [u8; 16] = read(name, offset_of!(sockaddr_in6, sin6_addr))?;
            let scope = u32::from_ne_bytes(read(name, offset_of!(sockaddr_in6, sin6_scope_id))?);
            Some(SocketAddrV6::new(Ipv6Addr::from(ip), port, flow, scope).into())
        }
        _ => None,
    }
}

/// Writes an address, and returns its length.
fn write_address(to: SocketAddr, name: &mut [u8; NAME]) -> usize {
    let mut write = |at: usize, bytes: &[u8]| name[at..][..bytes.len()].copy_from_slice(bytes);
    let family = match to {
        SocketAddr::V4(_) => libc::AF_INET,
        SocketAddr::V6(_) => libc::AF_INET6,
    };
    write(
        offset_of!(sockaddr_in, sin_family),
        &(family as u16).to_ne_bytes(),
    );
    write(offset_of!(sockaddr_in, sin_port), &to.port().to_be_bytes());
    match to {
        SocketAddr::V4(to) => {
            write(offset_of!(sockaddr_in, sin_addr), &to.ip().octets());
            size_of::<sockaddr_in>()
        }
        SocketAddr::V6(to) => {
            let (flow, scope) = (to.flowinfo().to_ne_bytes(), to.scope_id().to_ne_bytes());
            write(offset_of!(sockaddr_in6, sin6_flowinfo), &flow);
            write(offset_of!(sockaddr_in6, sin6_addr), &to.ip().octets());
            write(offset_of!(sockaddr_in6, sin6_scope_id), &scope);
            size_of::<sockaddr_in6>()
        }
    }
}

/// The place of a control message's level. Its length, of the size of a pointer, comes first, and
/// its type behind the level: this is the kernel's layout, also where the C library declares the
/// length as a smaller number and a gap.
const LEVEL: usize = size_of::<usize>();
const TYPE: usize = LEVEL + size_of::<c_int>();
const DATA: usize = size_of::<cmsghdr>();

/// Writes the control message that asks the kernel to cut the bytes up.
fn write_segment(segment: u16, control: &mut [u8]) {
    let mut write = |at: usize, bytes: &[u8]| control[at..][..bytes.len()].copy_from_slice(bytes);
    write(0, &SEGMENT.to_ne_bytes());
    write(LEVEL, &libc::SOL_UDP.to_ne_bytes());
    write(TYPE, &libc::UDP_SEGMENT.to_ne_bytes());
    write(DATA, &segment.to_ne_bytes());
}

/// Returns the length of the datagrams that the kernel has joined, or 0.
fn segment_in(mut control: &[u8]) -> usize {
    while let Some(len) = read(control, 0).map(usize::from_ne_bytes) {
        let number = |at| read(control, at).map(c_int::from_ne_bytes);
        if (number(LEVEL), number(TYPE)) == (Some(libc::SOL_UDP), Some(libc::UDP_GRO)) {
            let segment = number(DATA).and_then(|segment| usize::try_from(segment).ok());
            return segment.unwrap_or(0);
        }
        let next = len.max(DATA).checked_next_multiple_of(size_of::<usize>());
        control = next.and_then(|next| control.get(next..)).unwrap_or(&[]);
    }
    0
}

/// Sets an option of UDP, a number.
pub(crate) fn set_option(socket: BorrowedFd<'_>, name: c_int, value: c_int) -> io::Result<()> {
    let (fd, len) = (socket.as_raw_fd(), size_of_val(&value) as libc::socklen_t);
    let value = (&raw const value).cast();
    // SAFETY: the pointer is valid for a read of `len` bytes.
    match unsafe { libc::setsockopt(fd, libc::SOL_UDP, name, value, len) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Returns an option of UDP, a number.
pub(crate) fn option(socket: BorrowedFd<'_>, name: c_int) -> io::Result<c_int> {
    let mut value: c_int = 0;
    let mut len = size_of_val(&value) as libc::socklen_t;
    let (fd, to) = (socket.as_raw_fd(), (&raw mut value).cast());
    // SAFETY: the pointers are valid, and the first one for a write of `len` bytes.
    match unsafe { libc::getsockopt(fd, libc::SOL_UDP, name, to, &raw mut len) } {
        0 => Ok(value),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
