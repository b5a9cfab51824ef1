//! The covariant public types, and the auto traits of all.
//! `src/variance.rs` has the invariant types.
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::marker::PhantomPinned;
use task_set::{JoinSet, LocalSet, Scope};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// `Send` alone, and `Sync` alone.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

const _: fn(JoinSet<Long>) -> JoinSet<Short> = |set| set;

assert_impl_all!(JoinSet<NotSync>: Send, Sync);
assert_impl_all!(JoinSet<PhantomPinned>: Unpin);
assert_not_impl_any!(JoinSet<NotSend>: Send, Sync);
assert_not_impl_any!(LocalSet: Send, Sync);
assert_not_impl_any!(Scope<'static, 'static>: Send, Sync);
