//! The covariant public types, and the auto traits of all generic ones. No public type of this
//! crate is invariant.
use static_assertions::{assert_impl_all, assert_not_impl_any};
use waker_vtable::{WakeList, WakerCell, WakerRef};

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    WakerRef<'static> => WakerRef<'a>,
}

assert_impl_all!(WakerRef<'static>: Send, Sync, Unpin);
assert_not_impl_any!(WakerRef<'static>: Clone);
assert_impl_all!(WakeList<2>: Send, Sync, Unpin);
assert_impl_all!(WakeList: Send, Sync);
assert_impl_all!(WakerCell: Send, Sync, std::panic::RefUnwindSafe);
