//! Addresses of Unix sockets: from a path, and between the types of std and of socket2.
use socket2::SockAddr;
use std::{io, os::unix::net::SocketAddr, path::Path};

/// Returns the address that a path names. On Linux, a path that begins with a zero byte is an
/// abstract name, for which there is no file.
pub(crate) fn from_path(path: &Path) -> io::Result<SocketAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;

        if let Some(name) = path.as_os_str().as_bytes().strip_prefix(b"\0") {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(path)
}

/// Converts an address of std to one of socket2.
pub(crate) fn to_socket2(address: &SocketAddr) -> io::Result<SockAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;
        use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

        if let Some(name) = address.as_abstract_name() {
            return SockAddr::unix(OsStr::from_bytes(&[b"\0", name].concat()));
        }
    }
    match address.as_pathname() {
        Some(path) => SockAddr::unix(path),
        None => {
            let message = "an address without a name";
            Err(io::Error::new(io::ErrorKind::InvalidInput, message))
        }
    }
}

/// Converts an address of socket2 to one of std.
pub(crate) fn from_socket2(address: &SockAddr) -> io::Result<SocketAddr> {
    // `as_unix` returns `None` for an address without a name. The empty path makes such an address.
    address
        .as_unix()
        .map_or_else(|| SocketAddr::from_pathname(""), Ok)
}
