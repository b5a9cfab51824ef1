//! Asserts that the public types in the list below are covariant, and which auto traits the public
//! types have. No public type of this crate is invariant.
use sched_group::{Cap, FairQueue, GroupKey, Metrics, Pick, Shares, Stale};
use static_assertions::{assert_impl_all, assert_not_impl_any};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);
type Now = fn() -> u64;

/// A type that is `Send` and not `Sync`, and one that is `Sync` and not `Send`.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// Asserts that each `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    FairQueue<Long, Now> => FairQueue<Short, Now>,
    FairQueue<u8, Long> => FairQueue<u8, Short>,
    Stale<Long> => Stale<Short>,
}

assert_impl_all!(FairQueue<u8, Now>: Send, Sync, Unpin);
assert_impl_all!(FairQueue<NotSync, Now>: Send);
assert_impl_all!(FairQueue<NotSend, Now>: Sync);
assert_not_impl_any!(FairQueue<NotSync, Now>: Sync);
assert_not_impl_any!(FairQueue<NotSend, Now>: Send);
assert_not_impl_any!(FairQueue<u8, NotSync>: Sync);
assert_not_impl_any!(FairQueue<u8, NotSend>: Send);
assert_not_impl_any!(FairQueue<u8, Now>: Clone);
assert_impl_all!(Stale<NotSync>: Send);
assert_not_impl_any!(Stale<NotSend>: Send);
assert_impl_all!(GroupKey: Send, Sync, Copy);
assert_impl_all!(Pick: Send, Sync, Copy);
assert_impl_all!(Shares: Send, Sync, Copy);
assert_impl_all!(Cap: Send, Sync, Copy);
assert_impl_all!(Metrics: Send, Sync, Copy);

/// A key takes one 64-bit word, and a pick takes two at most: on 32-bit machines it can be smaller.
#[test]
fn key_takes_one_word() {
    assert_eq!(size_of::<GroupKey>(), 8);
    assert!(size_of::<Pick>() <= 16);
}
