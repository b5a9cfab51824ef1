//! The addresses of sockets, as C has them.
use crate::net::{Done, Errno, LocalName};
use libc::{c_int, sa_family_t, sockaddr, sockaddr_in, sockaddr_in6, sockaddr_un, socklen_t};
use std::{
    mem,
    net::{SocketAddr, SocketAddrV4, SocketAddrV6},
    ptr, slice,
};

/// The address of a socket.
pub(super) enum Name {
    Inet(SocketAddr),
    Unix(LocalName),
}

impl Name {
    /// Returns the address, which is one of IP.
    pub(super) fn inet(self) -> Done<SocketAddr> {
        match self {
            Self::Inet(address) => Ok(address),
            Self::Unix(_) => Err(Errno::FamilyNotSupported),
        }
    }
}

/// Reads an address.
///
/// # Safety
/// The pointer is valid for a read of `len` bytes.
pub(super) unsafe fn read(from: *const sockaddr, len: socklen_t) -> Done<Name> {
    let len = len as usize;
    if len < size_of::<sa_family_t>() {
        return Err(Errno::Invalid);
    }
    // SAFETY: the family comes first in each address.
    let family = unsafe { from.cast::<sa_family_t>().read_unaligned() };
    match c_int::from(family) {
        libc::AF_INET if len >= size_of::<sockaddr_in>() => {
            // SAFETY: the length was checked, and any bytes are a value of this type.
            let at = unsafe { from.cast::<sockaddr_in>().read_unaligned() };
            let ip = u32::from_be(at.sin_addr.s_addr).into();
            let at = SocketAddrV4::new(ip, u16::from_be(at.sin_port));
            Ok(Name::Inet(at.into()))
        }
        libc::AF_INET6 if len >= size_of::<sockaddr_in6>() => {
            // SAFETY: as above.
            let at = unsafe { from.cast::<sockaddr_in6>().read_unaligned() };
            let (ip, port) = (at.sin6_addr.s6_addr.into(), u16::from_be(at.sin6_port));
            let at = SocketAddrV6::new(ip, port, 0, at.sin6_scope_id);
            Ok(Name::Inet(at.into()))
        }
        libc::AF_UNIX => {
            let path = size_of::<sa_family_t>();
            let len = len.min(size_of::<sockaddr_un>()) - path;
            // SAFETY: the path is behind the family, within the length.
            let path = unsafe { from.cast::<u8>().add(path) };
            // SAFETY: as above.
            let path = unsafe { slice::from_raw_parts(path, len) };
            // An abstract name has its length, and begins with a zero. A path ends before one.
            let is_abstract = path.first() == Some(&0);
            let end = path.iter().position(|byte| *byte == 0);
            let end = end.filter(|_| !is_abstract).unwrap_or(len);
            Ok(Name::Unix(path[..end].to_vec()))
        }
        libc::AF_INET | libc::AF_INET6 => Err(Errno::Invalid),
        _ => Err(Errno::FamilyNotSupported),
    }
}

/// Writes the bytes of `value` that have room, and its length.
///
/// # Safety
/// `len` is null, or valid for reads and writes. `to` is null, or valid for a write of the bytes
/// that `len` says.
unsafe fn write_value<T>(value: &T, to: *mut sockaddr, len: *mut socklen_t) {
    if to.is_null() || len.is_null() {
        return;
    }
    // SAFETY: the caller's.
    let room = unsafe { len.read() } as usize;
    let (from, count) = (ptr::from_ref(value).cast::<u8>(), size_of::<T>().min(room));
    // SAFETY: both are valid for `count` bytes, and `value` is a local variable.
    unsafe { ptr::copy_nonoverlapping(from, to.cast::<u8>(), count) };
    // SAFETY: the caller's.
    unsafe { len.write(size_of::<T>() as socklen_t) };
}

/// Returns an address of IPv4 as C has it.
pub(super) fn ipv4(address: SocketAddrV4) -> sockaddr_in {
    sockaddr_in {
        sin_family: libc::AF_INET as sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(*address.ip()).to_be(),
        },
        sin_zero: [0; 8],
    }
}

/// Writes an address, and its length.
///
/// # Safety
/// `len` is null, or valid for reads and writes. `to` is null, or valid for a write of the bytes
/// that `len` says.
pub(super) unsafe fn write(address: SocketAddr, to: *mut sockaddr, len: *mut socklen_t) {
    match address {
        SocketAddr::V4(address) => {
            // SAFETY: the caller's.
            unsafe { write_value(&ipv4(address), to, len) };
        }
        SocketAddr::V6(address) => {
            // SAFETY: all zeros are a value of this type.
            let mut value: sockaddr_in6 = unsafe { mem::zeroed() };
            value.sin6_family = libc::AF_INET6 as sa_family_t;
            value.sin6_port = address.port().to_be();
            value.sin6_addr.s6_addr = address.ip().octets();
            value.sin6_scope_id = address.scope_id();
            // SAFETY: the caller's.
            unsafe { write_value(&value, to, len) };
        }
    }
}

/// Writes the name of a Unix socket, and its length.
///
/// # Safety
/// As for [`write`].
pub(super) unsafe fn write_unix(name: &[u8], to: *mut sockaddr, len: *mut socklen_t) {
    if to.is_null() || len.is_null() {
        return;
    }
    let mut bytes = (libc::AF_UNIX as sa_family_t).to_ne_bytes().to_vec();
    bytes.extend(name);
    if !name.is_empty() && name[0] != 0 {
        bytes.push(0);
    }
    // SAFETY: the caller's.
    let room = unsafe { len.read() } as usize;
    let count = bytes.len().min(room);
    // SAFETY: both are valid for `count` bytes, and `bytes` is a local variable.
    unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), to.cast::<u8>(), count) };
    // SAFETY: the caller's.
    unsafe { len.write(bytes.len() as socklen_t) };
}
