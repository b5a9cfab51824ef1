//! Asserts that these public types are covariant, and the auto traits of all generic ones.
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::marker::PhantomPinned;
use task_trace::{TaskSpan, Traced};

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
    Traced<Long> => Traced<Short>,
}

assert_impl_all!(Traced<u8>: Send, Sync, Unpin);
assert_not_impl_any!(Traced<NotSync>: Sync);
assert_not_impl_any!(Traced<NotSend>: Send);
assert_not_impl_any!(Traced<PhantomPinned>: Unpin);
assert_impl_all!(TaskSpan: Send, Sync);

#[cfg(feature = "recorder")]
mod recorder {
    use static_assertions::assert_impl_all;
    use task_trace::recorder::{Capture, Lane, Recorder, Ring, RingCopy};

    assert_impl_all!(Ring<4>: Send, Sync, Unpin);
    assert_impl_all!(RingCopy<4>: Send, Sync, Unpin);
    assert_impl_all!(Recorder: Send, Sync);
    assert_impl_all!(Lane: Send, Sync);
    assert_impl_all!(Capture: Send, Sync);
}
