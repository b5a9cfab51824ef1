//! Checks which public types are covariant, and the auto traits of all generic public types.
//! `src/variance.rs` checks the invariant types.
use queue_global::{
    Batch, Boxed, Closed, Injector, IntoIter, Iter, List, Lock, ValueInjector, mpsc,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::{
    marker::PhantomData,
    panic::{RefUnwindSafe, UnwindSafe},
};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// `Send` and not `Sync`; `NotSend` is `Sync` and not `Send`.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

type Queue<T> = Injector<T>;
type Values<T> = ValueInjector<T>;

/// A lock that is never taken, with the variance and the auto traits of `T`.
struct Of<T>(PhantomData<T>);

// SAFETY: no guard exists, as a call of `lock` panics.
unsafe impl<T> Lock for Of<T> {
    type Guard<'a>
        = ()
    where
        T: 'a;

    fn try_lock(&self) -> Option<()> {
        None
    }

    fn lock(&self) {
        unimplemented!()
    }
}

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    Closed<Long> => Closed<Short>,
    Batch<Long> => Batch<Short>,
    mpsc::Batch<Long> => mpsc::Batch<Short>,
    Iter<'static, Boxed<u8>> => Iter<'a, Boxed<u8>>,
    Injector<Boxed<u8>, Of<Long>> => Injector<Boxed<u8>, Of<Short>>,
    ValueInjector<u8, Of<Long>> => ValueInjector<u8, Of<Short>>,
}

assert_impl_all!(Closed<u8>: Send, Sync);
assert_impl_all!(Boxed<NotSync>: Send);
assert_impl_all!(Boxed<NotSend>: Sync);
assert_not_impl_any!(Boxed<NotSync>: Sync);
assert_not_impl_any!(Boxed<NotSend>: Send);

assert_impl_all!(Queue<Boxed<NotSync>>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Queue<Boxed<NotSend>>: Send, Sync);
assert_impl_all!(Values<NotSync>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Values<NotSend>: Send, Sync);
// A shared queue shares its lock, and a moved queue moves it.
assert_impl_all!(Injector<Boxed<u8>, Of<NotSync>>: Send, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Injector<Boxed<u8>, Of<NotSend>>: Sync);
assert_not_impl_any!(Injector<Boxed<u8>, Of<NotSync>>: Sync);
assert_not_impl_any!(Injector<Boxed<u8>, Of<NotSend>>: Send);
assert_impl_all!(ValueInjector<u8, Of<NotSync>>: Send, UnwindSafe, RefUnwindSafe);
assert_impl_all!(ValueInjector<u8, Of<NotSend>>: Sync);
assert_not_impl_any!(ValueInjector<u8, Of<NotSync>>: Sync);
assert_not_impl_any!(ValueInjector<u8, Of<NotSend>>: Send);
assert_impl_all!(mpsc::Queue<NotSync>: Send, Sync, UnwindSafe, RefUnwindSafe, Unpin);
assert_not_impl_any!(mpsc::Queue<NotSend>: Send, Sync);
// A shared `mpsc::Batch` gives access to no value.
assert_impl_all!(mpsc::Batch<NotSync>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(mpsc::Batch<NotSend>: Send, Sync);
assert_impl_all!(Batch<NotSync>: Send, ExactSizeIterator);
assert_impl_all!(Batch<NotSend>: Sync);
assert_not_impl_any!(Batch<NotSync>: Sync);
assert_not_impl_any!(Batch<NotSend>: Send);

assert_impl_all!(List<Boxed<NotSync>>: Send, UnwindSafe, RefUnwindSafe);
assert_impl_all!(List<Boxed<NotSend>>: Sync);
assert_not_impl_any!(List<Boxed<NotSync>>: Sync);
assert_not_impl_any!(List<Boxed<NotSend>>: Send);
assert_impl_all!(IntoIter<Boxed<NotSync>>: Send, ExactSizeIterator);
assert_not_impl_any!(IntoIter<Boxed<NotSync>>: Sync);
assert_not_impl_any!(IntoIter<Boxed<NotSend>>: Send);
// An `Iter` lends nodes, as a shared reference does.
assert_impl_all!(Iter<'static, Boxed<NotSend>>: Send, Sync, Clone);
assert_not_impl_any!(Iter<'static, Boxed<NotSync>>: Send, Sync);
