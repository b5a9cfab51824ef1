//! The covariant public types, and the auto traits of all generic ones.
//! `src/variance.rs` has the invariant types.
use queue_global::Boxed;
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::panic::{RefUnwindSafe, UnwindSafe};
use worker_queue::{Batch, Next, Slot, Stealer, WorkerQueue};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// `Send` alone, and `Sync` alone.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    Batch<Long> => Batch<Short>,
    Next<Long> => Next<Short>,
}

assert_impl_all!(Batch<u8>: Send, Sync);
assert_impl_all!(Next<u8>: Send, Sync);
assert_impl_all!(Slot<Boxed<NotSync>>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Slot<Boxed<NotSend>>: Send, Sync);
assert_impl_all!(WorkerQueue<Boxed<NotSync>>: Send);
assert_not_impl_any!(WorkerQueue<Boxed<u8>>: Sync, Clone);
assert_not_impl_any!(WorkerQueue<Boxed<NotSend>>: Send);
assert_impl_all!(Stealer<Boxed<NotSync>>: Send, Sync, Clone);
assert_not_impl_any!(Stealer<Boxed<NotSend>>: Send, Sync);
