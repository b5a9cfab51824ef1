//! The handle of a socket, which has other names on Windows than on Unix.
use super::Fd;

cfg_if::cfg_if! {
    if #[cfg(unix)] {
        pub(crate) use std::os::fd::{
            AsFd as AsHandle, AsRawFd as AsRawHandle, BorrowedFd as BorrowedHandle,
            OwnedFd as OwnedHandle,
        };

        /// Returns the number of a handle.
        pub(crate) fn number(of: &impl AsRawHandle) -> Fd {
            of.as_raw_fd()
        }

        /// Borrows the handle of a socket.
        pub(crate) fn borrow(of: &impl AsHandle) -> BorrowedHandle<'_> {
            of.as_fd()
        }

        /// Implements the traits by which std borrows a handle, for a type that has one in `$io`.
        macro_rules! impl_as_handle {
            ($(#[$doc:meta])* [$($generic:ident)?] $type:ty, $io:ident) => {
                $(#[$doc])*
                impl$(<$generic: std::os::fd::AsFd>)? std::os::fd::AsFd for $type {
                    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                        std::os::fd::AsFd::as_fd(&self.$io)
                    }
                }

                $(#[$doc])*
                impl$(<$generic: std::os::fd::AsRawFd>)? std::os::fd::AsRawFd for $type {
                    fn as_raw_fd(&self) -> std::os::fd::RawFd {
                        std::os::fd::AsRawFd::as_raw_fd(&self.$io)
                    }
                }
            };
        }
    } else {
        pub(crate) use std::os::windows::io::{
            AsRawSocket as AsRawHandle, AsSocket as AsHandle, BorrowedSocket as BorrowedHandle,
            OwnedSocket as OwnedHandle,
        };

        /// Returns the number of a handle.
        pub(crate) fn number(of: &impl AsRawHandle) -> Fd {
            of.as_raw_socket()
        }

        /// Borrows the handle of a socket.
        pub(crate) fn borrow(of: &impl AsHandle) -> BorrowedHandle<'_> {
            of.as_socket()
        }

        /// Implements the traits by which std borrows a handle, for a type that has one in `$io`.
        macro_rules! impl_as_handle {
            ($(#[$doc:meta])* [$($generic:ident)?] $type:ty, $io:ident) => {
                $(#[$doc])*
                impl$(<$generic: std::os::windows::io::AsSocket>)?
                    std::os::windows::io::AsSocket for $type
                {
                    fn as_socket(&self) -> std::os::windows::io::BorrowedSocket<'_> {
                        std::os::windows::io::AsSocket::as_socket(&self.$io)
                    }
                }

                $(#[$doc])*
                impl$(<$generic: std::os::windows::io::AsRawSocket>)?
                    std::os::windows::io::AsRawSocket for $type
                {
                    fn as_raw_socket(&self) -> std::os::windows::io::RawSocket {
                        std::os::windows::io::AsRawSocket::as_raw_socket(&self.$io)
                    }
                }
            };
        }
    }
}

pub(crate) use impl_as_handle;
