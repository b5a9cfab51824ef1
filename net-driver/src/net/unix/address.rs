//! Addresses of Unix sockets: from a path, and from and to the type of socket2.
use super::SocketAddr;
use socket2::SockAddr;
use std::{io, os::unix::net, path::Path};

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
            return net::SocketAddr::from_abstract_name(name).map(SocketAddr::from);
        }
    }
    net::SocketAddr::from_pathname(path).map(SocketAddr::from)
}

/// Converts an address to one of socket2.
pub(crate) fn to_socket2(address: &SocketAddr) -> io::Result<SockAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
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

/// Converts an address of socket2.
pub(crate) fn from_socket2(address: &SockAddr) -> io::Result<SocketAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;

        if let Some(name) = address.as_abstract_namespace() {
            return net::SocketAddr::from_abstract_name(name).map(SocketAddr::from);
        }
    }
    // `as_unix` returns `None` for an address without a name. The empty path makes such an address.
    let address = address.as_unix();
    let address = address.map_or_else(|| net::SocketAddr::from_pathname(""), Ok);
    address.map(SocketAddr::from)
}
