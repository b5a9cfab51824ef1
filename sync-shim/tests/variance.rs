//! Asserts which public types are covariant, and the auto traits of all generic public types.
//! `src/variance.rs` asserts which public types are invariant.
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::marker::PhantomPinned;
use sync_shim::{CachePadded, atomic::AtomicPtr, cell::UnsafeCell};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// A type that is `Send` and not `Sync`, and one that is `Sync` and not `Send`.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    CachePadded<Long> => CachePadded<Short>,
}

assert_impl_all!(CachePadded<u8>: Send, Sync, Unpin);
assert_not_impl_any!(CachePadded<NotSync>: Sync);
assert_not_impl_any!(CachePadded<NotSend>: Send);
assert_not_impl_any!(CachePadded<PhantomPinned>: Unpin);
// An atomic pointer owns no `T`, so it needs nothing of it.
assert_impl_all!(AtomicPtr<NotSend>: Send, Sync, Unpin);
assert_impl_all!(AtomicPtr<NotSync>: Send, Sync, Unpin);
assert_impl_all!(AtomicPtr<PhantomPinned>: Send, Sync, Unpin);
assert_impl_all!(UnsafeCell<u8>: Send, Unpin);
assert_not_impl_any!(UnsafeCell<u8>: Sync);
assert_not_impl_any!(UnsafeCell<NotSend>: Send);

#[cfg(feature = "std")]
mod sync {
    use super::*;
    use sync_shim::sync::Mutex;

    assert_impl_all!(Mutex<NotSync>: Send, Sync, Unpin);
    assert_not_impl_any!(Mutex<NotSend>: Send, Sync);
}

#[cfg(feature = "conformance")]
mod conformance {
    use super::*;
    use sync_shim::conformance::Unseen;

    assert_impl_all!(Unseen<NotSync>: Send, Sync);
    assert_not_impl_any!(Unseen<NotSend>: Send, Sync);
}

#[cfg(feature = "history")]
mod history {
    use super::*;
    use sync_shim::history::{Event, Log, NotLinearizable, Sequential};

    #[derive(Clone, PartialEq, Eq, Hash)]
    struct Object;

    impl Sequential for Object {
        type Call = u8;
        type Answer = u8;

        fn allows(&mut self, _: &u8, _: &u8) -> bool {
            true
        }
    }

    assert_impl_all!(Event<Object>: Send, Sync, Unpin);
    assert_impl_all!(Log<Object>: Send, Sync, Unpin);
    assert_impl_all!(NotLinearizable<Object>: Send, Sync, Unpin);
}
