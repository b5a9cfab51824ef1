//! Asserts which public types are covariant, and the auto traits of all generic public types.
//! `src/variance.rs` asserts which public types are invariant.
use blocking_threads::{CurrentPool, Lent, Offered, Pool, Refused, Running, StaticPool};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::panic::{RefUnwindSafe, UnwindSafe};

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
    Offered<Long> => Offered<Short>,
    Refused<Long> => Refused<Short>,
}

// The bounds of `Lent` ask for a `Send` value.
assert_impl_all!(Lent<NotSync>: Send, Sync, Unpin);
assert_impl_all!(Offered<u8>: Send, Sync);
assert_not_impl_any!(Offered<NotSend>: Send);
assert_not_impl_any!(Offered<NotSync>: Sync);
assert_impl_all!(Refused<u8>: Send, Sync);
assert_impl_all!(Pool<NotSync>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Pool<NotSend>: Send, Sync);
assert_impl_all!(Running<NotSync>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Running<NotSend>: Send, Sync);
assert_impl_all!(CurrentPool: Send, Sync, Unpin, Clone);
assert_impl_all!(StaticPool<NotSync>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(StaticPool<NotSend>: Send, Sync);

#[cfg(feature = "task-header")]
mod closure {
    use super::*;
    use blocking_threads::{Closure, OnPanic, Once};
    use std::marker::PhantomPinned;

    struct Nobody<T>(std::marker::PhantomData<T>);

    impl<T: Send + Sync + 'static> OnPanic for Nobody<T> {
        fn panicked(&self, _: &(dyn std::any::Any + Send)) {}
    }

    covariant! {
        Once<Long> => Once<Short>,
        Closure<Nobody<Long>> => Closure<Nobody<Short>>,
    }

    // `Once` never pins the closure that it holds.
    assert_impl_all!(Once<PhantomPinned>: Unpin);
    assert_not_impl_any!(Once<NotSend>: Send);
    assert_not_impl_any!(Once<NotSync>: Sync);
    assert_impl_all!(Closure<Nobody<u8>>: Send, Sync);
}
