//! Asserts which public types are covariant, and the auto traits of all generic public types.
//! `src/variance.rs` asserts which public types are invariant.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use adopt::{
    bare::{self, Core, Reader, Receiver, Sender},
    join_pool::Scope,
    tasks::Task,
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
    bare::Task<Long> => bare::Task<Short>,
    Core<Long> => Core<Short>,
    Task<Long> => Task<Short>,
}

assert_impl_all!(Task<NotSync>: Send, Sync, Unpin);
assert_not_impl_any!(Task<NotSend>: Send, Sync);
assert_impl_all!(Scope<'static>: Sync);
assert_not_impl_any!(Scope<'static>: Send);
assert_impl_all!(Core<u8>: Send, Sync);
assert_not_impl_any!(Core<NotSync>: Sync);
assert_not_impl_any!(Core<NotSend>: Send);
assert_impl_all!(bare::Task<u8>: Send, Sync, Copy);
assert_not_impl_any!(bare::Task<NotSync>: Send, Sync);
assert_impl_all!(Receiver<NotSync, 2>: Send, Sync);
assert_not_impl_any!(Receiver<NotSend, 2>: Send, Sync);
assert_impl_all!(Sender<NotSync>: Send);
assert_impl_all!(Reader<NotSync>: Send, Sync);
