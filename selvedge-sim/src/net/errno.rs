//! The errors of system calls.

/// An error of a system call, by the name that the system gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errno {
    Again,
    Already,
    AddressInUse,
    AddressNotAvailable,
    BadDescriptor,
    ConnectionRefused,
    ConnectionReset,
    DestinationRequired,
    Exists,
    FamilyNotSupported,
    InProgress,
    Invalid,
    IsConnected,
    MessageSize,
    NetworkUnreachable,
    NoEntry,
    NoProtocolOption,
    NotConnected,
    NotPermitted,
    NotSocket,
    NotSupported,
    Pipe,
    TimedOut,
    TooManyFiles,
}

pub(crate) type Done<T> = Result<T, Errno>;
