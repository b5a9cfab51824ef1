//! `SocketAddr`: the address of a Unix socket.
use std::{fmt, os::unix::net, path::Path};

/// The address of a Unix socket: a path, an abstract name of Linux, or nothing.
///
/// It converts from and to the type of std with [`From`].
///
/// ```
/// use net_driver::net::unix::SocketAddr;
/// use std::{os::unix::net, path::Path};
///
/// let address = SocketAddr::from(net::SocketAddr::from_pathname("/tmp/socket")?);
/// assert_eq!(address.as_pathname(), Some(Path::new("/tmp/socket")));
/// assert!(!address.is_unnamed() && address.as_abstract_name().is_none());
/// let _: net::SocketAddr = address.into();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct SocketAddr(net::SocketAddr);

impl SocketAddr {
    /// Returns the address as std's type.
    pub(crate) fn as_std(&self) -> &net::SocketAddr {
        &self.0
    }

    /// Returns whether the socket has no address.
    pub fn is_unnamed(&self) -> bool {
        self.0.is_unnamed()
    }

    /// Returns the path of the socket's file, if the address is a path.
    pub fn as_pathname(&self) -> Option<&Path> {
        self.0.as_pathname()
    }

    /// Returns the abstract name, without the zero byte before it. There is one on Linux and
    /// Android only.
    pub fn as_abstract_name(&self) -> Option<&[u8]> {
        #[cfg(target_os = "android")]
        use std::os::android::net::SocketAddrExt;
        #[cfg(target_os = "linux")]
        use std::os::linux::net::SocketAddrExt;

        #[cfg(any(target_os = "linux", target_os = "android"))]
        return self.0.as_abstract_name();
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        None
    }
}

impl fmt::Debug for SocketAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<net::SocketAddr> for SocketAddr {
    fn from(address: net::SocketAddr) -> Self {
        Self(address)
    }
}

impl From<SocketAddr> for net::SocketAddr {
    fn from(address: SocketAddr) -> Self {
        address.0
    }
}
