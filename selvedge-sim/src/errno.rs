//! The errors of system calls.

/// An error of a system call, by the name that the system gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Errno {
    Again,
    Already,
    AddressInUse,
    AddressNotAvailable,
    BadDescriptor,
    Busy,
    ConnectionRefused,
    ConnectionReset,
    CrossDevice,
    DestinationRequired,
    DirectoryNotEmpty,
    Exists,
    FamilyNotSupported,
    FileTooLarge,
    InProgress,
    Invalid,
    Io,
    IsDirectory,
    IsConnected,
    Loop,
    MessageSize,
    NameTooLong,
    NetworkUnreachable,
    NoDevice,
    NoEntry,
    NoProtocolOption,
    NoSeek,
    NoSpace,
    NotConnected,
    NotDirectory,
    NotPermitted,
    NotSocket,
    NotSupported,
    Pipe,
    TimedOut,
    TooManyFiles,
}

pub(crate) type Done<T> = Result<T, Errno>;
