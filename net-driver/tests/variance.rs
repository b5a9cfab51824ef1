//! Asserts which public types are covariant, and the auto traits of the public types.
//! `src/variance.rs` asserts which public types are invariant.
use net_driver::{
    Driver, Entered, Interest, OverPark, Polling, Ready, WorkerPark, WorkerTimers,
    time::{Elapsed, Instant, Interval, MissedTickBehavior, Sleep, Timeout},
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// A type that is `Send` and not `Sync`, and one that is `Sync` and not `Send`.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// Asserts that each `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    Timeout<Long> => Timeout<Short>,
    OverPark<'static, u8> => OverPark<'a, u8>,
}

assert_impl_all!(Driver: Send, Sync, Clone, Unpin);
// The guard's frame is in the list of the thread that made the guard.
assert_not_impl_any!(Entered: Send, Sync, Clone);
// One worker has a park. Any thread may unpark that worker.
assert_impl_all!(WorkerPark: Send, Unpin);
assert_impl_all!(WorkerTimers: Send, Unpin);
assert_not_impl_any!(WorkerPark: Clone);
assert_not_impl_any!(WorkerTimers: Clone);
assert_impl_all!(OverPark<'static, NotSync>: Send);
assert_not_impl_any!(OverPark<'static, NotSync>: Sync);
assert_not_impl_any!(OverPark<'static, NotSend>: Send);
assert_not_impl_any!(OverPark<'static, u8>: Clone);

// A wheel links to the timer in each of these, until its drop.
assert_impl_all!(Sleep: Send, Sync);
assert_not_impl_any!(Sleep: Unpin);
assert_not_impl_any!(Timeout<u8>: Unpin);
assert_impl_all!(Timeout<NotSync>: Send);
assert_impl_all!(Timeout<NotSend>: Sync);
assert_not_impl_any!(Timeout<NotSync>: Sync);
assert_not_impl_any!(Timeout<NotSend>: Send);
// An interval has its sleep in a box.
assert_impl_all!(Interval: Send, Sync, Unpin);
assert_impl_all!(Instant: Send, Sync, Copy);
assert_impl_all!(Elapsed: Send, Sync);
assert_impl_all!(MissedTickBehavior: Send, Sync, Copy);
assert_impl_all!(Interest: Send, Sync, Copy);
assert_impl_all!(Ready: Send, Sync, Copy);
assert_impl_all!(Polling: Send, Sync, Copy);

#[cfg(feature = "test-util")]
assert_impl_all!(net_driver::time::ClockHold: Send, Sync);

#[cfg(all(feature = "signal", unix, not(selvedge_loom)))]
assert_impl_all!(net_driver::signal::unix::Signal: Send, Sync, Unpin);

#[cfg(all(unix, not(selvedge_loom)))]
mod sockets {
    use super::*;
    use net_driver::net::{
        AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TcpListener,
        TcpSocket, TcpStream, TryIoError, UdpSocket, UnixDatagram, UnixListener, UnixStream, batch,
        tcp, unix,
    };
    use std::marker::PhantomPinned;

    covariant! {
        AsyncFd<Long> => AsyncFd<Short>,
        AsyncFdRegisterError<Long> => AsyncFdRegisterError<Short>,
        AsyncFdReadyGuard<'static, Long> => AsyncFdReadyGuard<'a, Short>,
        AsyncFdReadyMutGuard<'static, u8> => AsyncFdReadyMutGuard<'a, u8>,
        batch::Datagram<'static> => batch::Datagram<'a>,
        batch::Transmit<'static> => batch::Transmit<'a>,
        tcp::ReadHalf<'static> => tcp::ReadHalf<'a>,
        tcp::WriteHalf<'static> => tcp::WriteHalf<'a>,
        unix::ReadHalf<'static> => unix::ReadHalf<'a>,
        unix::WriteHalf<'static> => unix::WriteHalf<'a>,
    }

    assert_impl_all!(AsyncFd<NotSync>: Send, Unpin);
    assert_impl_all!(AsyncFd<NotSend>: Sync);
    assert_not_impl_any!(AsyncFd<NotSync>: Sync);
    assert_not_impl_any!(AsyncFd<NotSend>: Send);
    assert_not_impl_any!(AsyncFd<PhantomPinned>: Unpin);
    assert_not_impl_any!(AsyncFd<u8>: Clone);

    assert_impl_all!(AsyncFdRegisterError<NotSync>: Send, Unpin);
    assert_impl_all!(AsyncFdRegisterError<NotSend>: Sync);
    assert_not_impl_any!(AsyncFdRegisterError<NotSync>: Sync);
    assert_not_impl_any!(AsyncFdRegisterError<NotSend>: Send);
    assert_not_impl_any!(AsyncFdRegisterError<PhantomPinned>: Unpin);
    assert_not_impl_any!(AsyncFdRegisterError<u8>: Clone);

    // The one guard has a shared reference, and the other a `&mut`.
    assert_impl_all!(AsyncFdReadyGuard<'static, u8>: Send, Sync, Unpin);
    assert_not_impl_any!(AsyncFdReadyGuard<'static, NotSync>: Send, Sync);
    assert_impl_all!(AsyncFdReadyMutGuard<'static, NotSync>: Send, Unpin);
    assert_impl_all!(AsyncFdReadyMutGuard<'static, NotSend>: Sync);
    assert_not_impl_any!(AsyncFdReadyMutGuard<'static, NotSync>: Sync);
    assert_not_impl_any!(AsyncFdReadyMutGuard<'static, NotSend>: Send);
    assert_not_impl_any!(AsyncFdReadyMutGuard<'static, u8>: Clone);

    // One task uses a half: it has the cell of its direction.
    assert_impl_all!(tcp::ReadHalf<'static>: Send, Sync, Unpin);
    assert_impl_all!(tcp::WriteHalf<'static>: Send, Sync, Unpin);
    assert_impl_all!(tcp::OwnedReadHalf: Send, Sync, Unpin);
    assert_impl_all!(tcp::OwnedWriteHalf: Send, Sync, Unpin);
    assert_not_impl_any!(tcp::ReadHalf<'static>: Clone);
    assert_not_impl_any!(tcp::WriteHalf<'static>: Clone);
    assert_not_impl_any!(tcp::OwnedReadHalf: Clone);
    assert_not_impl_any!(tcp::OwnedWriteHalf: Clone);
    assert_impl_all!(unix::ReadHalf<'static>: Send, Sync, Unpin);
    assert_impl_all!(unix::WriteHalf<'static>: Send, Sync, Unpin);
    assert_impl_all!(unix::OwnedReadHalf: Send, Sync, Unpin);
    assert_impl_all!(unix::OwnedWriteHalf: Send, Sync, Unpin);
    assert_not_impl_any!(unix::ReadHalf<'static>: Clone);
    assert_not_impl_any!(unix::WriteHalf<'static>: Clone);
    assert_not_impl_any!(unix::OwnedReadHalf: Clone);
    assert_not_impl_any!(unix::OwnedWriteHalf: Clone);

    assert_impl_all!(TcpListener: Send, Sync, Unpin);
    assert_impl_all!(TcpSocket: Send, Sync, Unpin);
    assert_impl_all!(TcpStream: Send, Sync, Unpin);
    assert_impl_all!(UdpSocket: Send, Sync, Unpin);
    assert_impl_all!(batch::RecvBatch: Send, Sync, Unpin);
    assert_impl_all!(batch::Datagram<'static>: Send, Sync, Copy);
    assert_impl_all!(batch::Transmit<'static>: Send, Sync, Copy);
    assert_impl_all!(UnixDatagram: Send, Sync, Unpin);
    assert_impl_all!(UnixListener: Send, Sync, Unpin);
    assert_impl_all!(UnixStream: Send, Sync, Unpin);
    assert_impl_all!(unix::pipe::Sender: Send, Sync, Unpin);
    assert_impl_all!(unix::pipe::Receiver: Send, Sync, Unpin);
    assert_impl_all!(unix::UCred: Send, Sync, Copy);
    assert_impl_all!(TryIoError: Send, Sync);
}

/// Fails to compile if a socket may not be used in a closure that catches panics. Each is whole
/// after a panic: an operation changes its state only under a lock, in which no user code runs.
#[cfg(unix)]
mod unwind {
    use net_driver::net::{unix, *};
    use net_driver::{Driver, time};
    use static_assertions::assert_impl_all;
    use std::{
        os::fd::OwnedFd,
        panic::{RefUnwindSafe, UnwindSafe},
    };

    assert_impl_all!(TcpListener: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(TcpSocket: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(TcpStream: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(UdpSocket: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(UnixDatagram: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(UnixListener: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(UnixStream: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(tcp::OwnedReadHalf: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(tcp::OwnedWriteHalf: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(unix::OwnedReadHalf: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(unix::OwnedWriteHalf: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(unix::pipe::Sender: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(unix::pipe::Receiver: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(AsyncFd<OwnedFd>: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(Driver: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(time::Sleep: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(time::Interval: UnwindSafe, RefUnwindSafe);
}
