//! The covariant public types, and the auto traits.
//!
//! `Serve` is invariant in its listener, because it names the listener's type of I/O. Its makers of
//! services are covariant.
use selvedge::net::{TcpListener, TcpStream};
use selvedge_hyper::{
    SelvedgeExecutor, SelvedgeIo, SelvedgeTimer, Serve, WriteLimit, WriteTimedOut,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// A type that is `Send` alone, and one that is `Sync` alone.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    SelvedgeIo<Long> => SelvedgeIo<Short>,
    Serve<TcpListener, Long> => Serve<TcpListener, Short>,
}

assert_impl_all!(SelvedgeIo<NotSync>: Send, Unpin);
assert_impl_all!(SelvedgeIo<NotSend>: Sync);
assert_not_impl_any!(SelvedgeIo<NotSync>: Sync);
assert_not_impl_any!(SelvedgeIo<NotSend>: Send);
assert_not_impl_any!(SelvedgeIo<u8>: Clone);
assert_impl_all!(SelvedgeIo<TcpStream>: Send, Sync, Unpin);

// It has the future of the shutdown, which is `Send` alone.
assert_impl_all!(Serve<TcpListener, NotSync>: Send, Unpin);
assert_not_impl_any!(Serve<TcpListener, u8>: Sync, Clone);
assert_not_impl_any!(Serve<TcpListener, NotSend>: Send);

assert_impl_all!(SelvedgeExecutor: Send, Sync, Copy);
assert_impl_all!(SelvedgeTimer: Send, Sync, Copy);
assert_impl_all!(WriteLimit: Send, Sync, Unpin);
assert_impl_all!(WriteTimedOut: Send, Sync, Copy);

#[cfg(feature = "client")]
mod client {
    use super::*;
    use selvedge_hyper::{Attempts, ConnectError, Connecting, Connector};

    assert_impl_all!(Connector: Send, Sync, Unpin, Clone);
    assert_impl_all!(Connecting: Send, Unpin);
    assert_impl_all!(ConnectError: Send, Sync);
    assert_impl_all!(Attempts: Send, Sync);
}
