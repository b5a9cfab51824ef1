//! Asserts that these public types are covariant, and the auto traits of all generic ones. No
//! public type here is invariant.
use static_assertions::{assert_impl_all, assert_not_impl_any};
use worker_idle::{Idle, Watch, WatchState};

/// Asserts that each `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    Watch<'static> => Watch<'a>,
}

assert_impl_all!(Idle: Send, Sync, Unpin, std::panic::UnwindSafe, std::panic::RefUnwindSafe);
assert_impl_all!(WatchState: Send, Sync, Unpin);
assert_not_impl_any!(Watch<'static>: Send, Sync);

#[cfg(feature = "std")]
mod with_std {
    use super::*;
    use worker_idle::{Spin, announce::Registry, park::ThreadPark};

    assert_impl_all!(Registry: Send, Sync);
    assert_impl_all!(ThreadPark: Send);
    assert_impl_all!(Spin: Send);
}
