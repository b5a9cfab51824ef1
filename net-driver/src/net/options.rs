//! Options that sockets of several types have.

/// Implements the options of a socket of IP that is not a connection. `$socket` is the socket of
/// socket2.
macro_rules! ip_options {
    ($type:ty, |$this:ident| $socket:expr, $(#[$doc:meta])*) => {
        $(#[$doc])*
        impl $type {
            /// Returns the type of service of the socket's IPv4 packets (`IP_TOS`).
            ///
            /// # Errors
            /// If the system call fails.
            #[cfg(not(any(target_os = "illumos", target_os = "solaris")))]
            pub fn tos_v4(&self) -> std::io::Result<u32> {
                let $this = self;
                $socket.tos_v4()
            }

            /// Sets the type of service of the socket's IPv4 packets (`IP_TOS`).
            ///
            /// # Errors
            /// If the system call fails.
            #[cfg(not(any(target_os = "illumos", target_os = "solaris")))]
            pub fn set_tos_v4(&self, tos: u32) -> std::io::Result<()> {
                let $this = self;
                $socket.set_tos_v4(tos)
            }

            /// Returns the traffic class of the socket's IPv6 packets (`IPV6_TCLASS`).
            ///
            /// # Errors
            /// If the system call fails, as on a socket of IPv4.
            #[cfg(any(
                target_os = "android",
                target_os = "dragonfly",
                target_os = "freebsd",
                target_os = "linux",
                target_os = "macos",
                target_os = "netbsd",
                target_os = "openbsd"
            ))]
            pub fn tclass_v6(&self) -> std::io::Result<u32> {
                let $this = self;
                $socket.tclass_v6()
            }

            /// Sets the traffic class of the socket's IPv6 packets (`IPV6_TCLASS`).
            ///
            /// # Errors
            /// If the system call fails, as on a socket of IPv4.
            #[cfg(any(
                target_os = "android",
                target_os = "dragonfly",
                target_os = "freebsd",
                target_os = "linux",
                target_os = "macos",
                target_os = "netbsd",
                target_os = "openbsd"
            ))]
            pub fn set_tclass_v6(&self, class: u32) -> std::io::Result<()> {
                let $this = self;
                $socket.set_tclass_v6(class)
            }

            /// Returns the network interface to which the socket is bound (`SO_BINDTODEVICE`).
            ///
            /// # Errors
            /// If the system call fails.
            #[cfg(any(target_os = "android", target_os = "linux"))]
            pub fn device(&self) -> std::io::Result<Option<Vec<u8>>> {
                let $this = self;
                $socket.device()
            }

            /// Binds the socket to the network interface of this name (`SO_BINDTODEVICE`), or to
            /// none. Then the socket only receives packets of that interface.
            ///
            /// # Errors
            /// If there is no such interface, or the process has not the privilege to bind to it.
            #[cfg(any(target_os = "android", target_os = "linux"))]
            pub fn bind_device(&self, interface: Option<&[u8]>) -> std::io::Result<()> {
                let $this = self;
                $socket.bind_device(interface)
            }
        }
    };
}

pub(crate) use ip_options;
