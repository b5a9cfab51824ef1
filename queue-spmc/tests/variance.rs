//! Checks which public types are covariant, and the auto traits of all generic public types.
//! `src/variance.rs` checks the invariant types.
use queue_spmc::{
    Full, Steal,
    ring::{Borrowed, Inline, PopN, Shared, Stealer, Worker},
};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::panic::{RefUnwindSafe, UnwindSafe};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// `Send` and not `Sync`; `NotSend` is `Sync` and not `Send`.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    Full<Long> => Full<Short>,
    Steal<Long> => Steal<Short>,
    Borrowed<'static, u8> => Borrowed<'a, u8>,
    PopN<'static, u8> => PopN<'a, u8>,
    Stealer<u8, Borrowed<'static, u8>> => Stealer<u8, Borrowed<'a, u8>>,
    Worker<u8, Borrowed<'static, u8>> => Worker<u8, Borrowed<'a, u8>>,
}

assert_impl_all!(Full<u8>: Send, Sync);
assert_impl_all!(Steal<u8>: Send, Sync);

assert_impl_all!(Worker<NotSync>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Worker<NotSync, Borrowed<'static, NotSync>>: Send, Sync, UnwindSafe);
assert_not_impl_any!(Worker<u8>: Clone);
assert_not_impl_any!(Worker<NotSend>: Send, Sync);
assert_impl_all!(Stealer<NotSync>: Send, Sync, Clone, Unpin, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Stealer<NotSend>: Send, Sync);
assert_impl_all!(PopN<'static, NotSync>: Send, Sync, RefUnwindSafe);
assert_not_impl_any!(PopN<'static, u8>: Clone, UnwindSafe);

assert_impl_all!(Shared<NotSync>: Send, Sync);
assert_not_impl_any!(Shared<NotSend>: Send, Sync);
assert_impl_all!(Inline<NotSync, 2>: Send, Sync, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Inline<NotSend, 2>: Send, Sync);
assert_impl_all!(Borrowed<'static, NotSync>: Send, Sync);
assert_not_impl_any!(Borrowed<'static, NotSend>: Send, Sync);

#[cfg(feature = "deque")]
mod deque {
    use super::*;
    use queue_spmc::deque::{Stealer, Worker};

    assert_impl_all!(Worker<NotSync>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
    assert_not_impl_any!(Worker<u8>: Clone);
    assert_not_impl_any!(Worker<NotSend>: Send, Sync);
    assert_impl_all!(Stealer<NotSync>: Send, Sync, Clone, Unpin, UnwindSafe, RefUnwindSafe);
    assert_not_impl_any!(Stealer<NotSend>: Send, Sync);
}

#[cfg(feature = "deque")]
mod fifo {
    use super::*;
    use queue_spmc::fifo::{Stealer, Worker};

    assert_impl_all!(Worker<NotSync>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
    assert_not_impl_any!(Worker<u8>: Clone);
    assert_not_impl_any!(Worker<NotSend>: Send, Sync);
    assert_impl_all!(Stealer<NotSync>: Send, Sync, Clone, Unpin, UnwindSafe, RefUnwindSafe);
    assert_not_impl_any!(Stealer<NotSend>: Send, Sync);
}
