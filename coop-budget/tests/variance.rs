//! Asserts that the public types in the list below are covariant, and which auto traits the public
//! types have. No public type of this crate is invariant.
use coop_budget::{
    Cooperative, Preempt, Progress, Scope, Scoped, Slices, SubBudget, Turns, Unconstrained,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::marker::PhantomPinned;

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
    Cooperative<Long> => Cooperative<Short>,
    Scoped<Long> => Scoped<Short>,
    SubBudget<Long> => SubBudget<Short>,
    Unconstrained<Long> => Unconstrained<Short>,
    Scope<'static> => Scope<'a>,
    Turns<'static> => Turns<'a>,
}

assert_not_impl_any!(Scope<'static>: Send, Sync);
assert_not_impl_any!(Turns<'static>: Send, Sync);
assert_not_impl_any!(Progress: Send, Sync, Clone);
assert_impl_all!(Preempt: Send, Sync);
assert_impl_all!(Slices: Send, Sync);

/// Asserts that a wrapper has the auto traits of the future in it.
macro_rules! as_inside {
    ($($wrapper:ident,)*) => {$(
        assert_impl_all!($wrapper<u8>: Send, Sync, Unpin);
        assert_not_impl_any!($wrapper<NotSync>: Sync);
        assert_not_impl_any!($wrapper<NotSend>: Send);
        assert_not_impl_any!($wrapper<PhantomPinned>: Unpin);
    )*};
}
as_inside! { Cooperative, Scoped, SubBudget, Unconstrained, }
