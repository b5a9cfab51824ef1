//! The covariant public types of `mpsc` and `oneshot`, and the auto traits of all.
//! `src/one_receiver_variance.rs` has the invariant types.
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::{
    marker::PhantomPinned,
    panic::{RefUnwindSafe, UnwindSafe},
};
use task_sync::{
    mpsc::{
        self, OwnedPermit, Permit, PermitIterator, Receiver, Sender, UnboundedReceiver,
        UnboundedSender, WeakSender, WeakUnboundedSender,
    },
    oneshot,
};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// `Send` and not `Sync`; `NotSend` is `Sync` and not `Send`.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    mpsc::error::SendError<Long> => mpsc::error::SendError<Short>,
    mpsc::error::TrySendError<Long> => mpsc::error::TrySendError<Short>,
    mpsc::error::SendTimeoutError<Long> => mpsc::error::SendTimeoutError<Short>,
    Permit<'static, u8> => Permit<'a, u8>,
    PermitIterator<'static, u8> => PermitIterator<'a, u8>,
}

/// Asserts the auto traits of types with one parameter.
macro_rules! auto_traits {
    ($($name:ident),* $(,)?) => {$(const _: () = {
        assert_impl_all!($name<NotSync>: Send, Sync);
        assert_impl_all!($name<PhantomPinned>: Unpin);
        assert_impl_all!($name<&'static mut NotSync>: UnwindSafe, RefUnwindSafe);
        assert_not_impl_any!($name<NotSend>: Send, Sync);
    };)*};
}

type OneshotSender<T> = oneshot::Sender<T>;
type OneshotReceiver<T> = oneshot::Receiver<T>;
type StaticPermit<T> = Permit<'static, T>;
type StaticPermitIterator<T> = PermitIterator<'static, T>;

auto_traits! {
    OneshotReceiver, OneshotSender, OwnedPermit, Receiver, Sender, StaticPermit,
    StaticPermitIterator, UnboundedReceiver, UnboundedSender, WeakSender, WeakUnboundedSender,
}

/// Asserts the auto traits of errors with what was refused.
macro_rules! errors {
    ($($name:ident),* $(,)?) => {$(const _: () = {
        assert_impl_all!(mpsc::error::$name<u8>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
        assert_not_impl_any!(mpsc::error::$name<NotSync>: Sync, RefUnwindSafe);
        assert_not_impl_any!(mpsc::error::$name<NotSend>: Send);
    };)*};
}

errors! { SendError, SendTimeoutError, TrySendError }
assert_impl_all!(mpsc::error::TryRecvError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(oneshot::error::RecvError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(oneshot::error::TryRecvError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);

/// The futures go to other threads, and the compiler must know it.
#[test]
fn futures_are_send() {
    fn is_send<T: Send>(_: &T) {}
    let (tx, mut rx) = mpsc::channel::<NotSync>(1);
    is_send(&tx.send(NotSync::new(1)));
    is_send(&tx.reserve());
    is_send(&tx.reserve_many(1));
    is_send(&tx.clone().reserve_owned());
    is_send(&tx.closed());
    is_send(&tx.send_until(NotSync::new(1), async {}));
    is_send(&rx.recv());
    is_send(&rx.recv_many(&mut Vec::new(), 1));
    is_send(&oneshot::channel::<NotSync>().0.closed());
}
