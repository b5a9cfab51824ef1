//! The covariant types and the auto traits of the channels to many receivers, of `Notify`,
//! `Barrier` and `SetOnce`. They are tokio's, except that `SetOnce` is also `RefUnwindSafe`.
//! `src/many_receivers_variance.rs` has the invariant types.
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::{
    marker::PhantomPinned,
    panic::{RefUnwindSafe, UnwindSafe},
};
use task_sync::{
    Barrier, BarrierWaitResult, Notify, SetOnce, SetOnceError, broadcast,
    futures::{Notified, OwnedNotified},
    watch,
};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// `Send` alone, `Sync` alone, and not unwind-safe.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;
type NotUnwindSafe = &'static mut u8;

const _: for<'a> fn(&'a Notify, Notified<'static>) -> Notified<'a> = |_, notified| notified;
const _: fn(SetOnceError<Long>) -> SetOnceError<Short> = |error| error;
const _: fn(watch::error::SendError<Long>) -> watch::error::SendError<Short> = |error| error;
const _: fn(broadcast::error::SendError<Long>) -> broadcast::error::SendError<Short> =
    |error| error;

assert_impl_all!(Notify: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Notified<'static>: Send, Sync);
assert_not_impl_any!(Notified<'static>: Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(OwnedNotified: Send, Sync);
assert_not_impl_any!(OwnedNotified: Unpin, UnwindSafe, RefUnwindSafe);

assert_impl_all!(Barrier: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(BarrierWaitResult: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);

assert_impl_all!(SetOnce<u8>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(SetOnce<NotSync>: Send);
assert_not_impl_any!(SetOnce<NotSync>: Sync);
assert_not_impl_any!(SetOnce<NotSend>: Send, Sync);
assert_not_impl_any!(SetOnce<PhantomPinned>: Unpin);
assert_not_impl_any!(SetOnce<NotUnwindSafe>: UnwindSafe, RefUnwindSafe);

// A value is never shared: the clones of one value run one at a time.
assert_impl_all!(broadcast::Sender<NotSync>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_impl_all!(broadcast::Receiver<NotSync>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_impl_all!(broadcast::WeakSender<NotSync>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_impl_all!(broadcast::Sender<PhantomPinned>: Unpin);
assert_impl_all!(broadcast::Receiver<PhantomPinned>: Unpin);
assert_impl_all!(broadcast::WeakSender<PhantomPinned>: Unpin);
assert_not_impl_any!(broadcast::Sender<NotSend>: Send, Sync);
assert_not_impl_any!(broadcast::Receiver<NotSend>: Send, Sync);
assert_not_impl_any!(broadcast::WeakSender<NotSend>: Send, Sync);

// A value is shared by references.
assert_impl_all!(watch::Sender<u8>: Send, Sync);
assert_impl_all!(watch::Receiver<u8>: Send, Sync);
assert_impl_all!(watch::Sender<NotUnwindSafe>: UnwindSafe, RefUnwindSafe);
assert_impl_all!(watch::Receiver<NotUnwindSafe>: UnwindSafe, RefUnwindSafe);
assert_impl_all!(watch::Sender<PhantomPinned>: Unpin);
assert_impl_all!(watch::Receiver<PhantomPinned>: Unpin);
assert_not_impl_any!(watch::Sender<NotSync>: Send, Sync);
assert_not_impl_any!(watch::Receiver<NotSync>: Send, Sync);
assert_not_impl_any!(watch::Sender<NotSend>: Send, Sync);
assert_not_impl_any!(watch::Receiver<NotSend>: Send, Sync);

// A reference stays on its thread.
assert_impl_all!(watch::Ref<'static, u8>: Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(watch::Ref<'static, u8>: Send);
assert_not_impl_any!(watch::Ref<'static, NotSync>: Sync, UnwindSafe, RefUnwindSafe);

// Errors are as what was refused.
assert_impl_all!(broadcast::error::RecvError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(broadcast::error::TryRecvError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(broadcast::error::SendError<u8>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(broadcast::error::SendError<NotSync>: Sync, RefUnwindSafe);
assert_not_impl_any!(broadcast::error::SendError<NotSend>: Send);
assert_impl_all!(watch::error::RecvError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(watch::error::SendError<u8>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(watch::error::SendError<NotSync>: Sync, RefUnwindSafe);
assert_not_impl_any!(watch::error::SendError<NotSend>: Send);
assert_impl_all!(SetOnceError<u8>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(SetOnceError<NotSync>: Sync, RefUnwindSafe);
assert_not_impl_any!(SetOnceError<NotSend>: Send);

/// The futures without a name go to other threads with their tasks.
#[test]
fn futures_without_a_name_are_send() {
    fn sends<F: Future + Send>(_: F) {}

    let (tx, mut rx) = broadcast::channel::<NotSync>(1);
    sends(rx.recv());
    sends(tx.closed());
    let (tx, mut rx) = watch::channel(1);
    sends(rx.changed());
    sends(rx.wait_for(|_| true));
    sends(tx.closed());
    sends(Barrier::new(1).wait());
    sends(SetOnce::<u8>::new().wait());
}
