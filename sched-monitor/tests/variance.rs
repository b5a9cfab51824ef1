//! Asserts which public types are covariant, and the auto traits of the public types.
//! `src/variance.rs` asserts which public type is invariant.
use sched_monitor::{
    Cause, Doorbell, EndSlices, Handoff, Monitor, Observed, Pause, Remote, Retake, Round, Sample,
    Stall, Stalls, Subject, Times,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::{
    marker::PhantomPinned,
    panic::{RefUnwindSafe, UnwindSafe},
};

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
    Monitor<Long> => Monitor<Short>,
    EndSlices<Long> => EndSlices<Short>,
    Remote<Long, u8> => Remote<Short, u8>,
    Remote<u8, Long> => Remote<u8, Short>,
    Retake<Long, u8> => Retake<Short, u8>,
    Retake<u8, Long> => Retake<u8, Short>,
    Stalls<Long, u8> => Stalls<Short, u8>,
    Stalls<u8, Long> => Stalls<u8, Short>,
    Round<'static> => Round<'a>,
}

// The bounds of `Handoff` ask for a `Send` value. A cell only passes its boxes on.
assert_impl_all!(Handoff<NotSync>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(Handoff<PhantomPinned>: Unpin);

// A monitor has its duties in boxes that are `Send` alone.
assert_impl_all!(Monitor<NotSync>: Send, Unpin);
assert_not_impl_any!(Monitor<u8>: Sync, Clone);
assert_not_impl_any!(Monitor<NotSend>: Send);

assert_impl_all!(EndSlices<NotSync>: Send, Unpin);
assert_not_impl_any!(EndSlices<NotSync>: Sync);
assert_not_impl_any!(EndSlices<NotSend>: Send);
assert_impl_all!(Remote<NotSync, NotSync>: Send, Unpin);
assert_not_impl_any!(Remote<NotSend, u8>: Send);
assert_not_impl_any!(Remote<u8, NotSend>: Send);
assert_not_impl_any!(Remote<NotSync, u8>: Sync);
assert_not_impl_any!(Remote<u8, NotSync>: Sync);
assert_impl_all!(Retake<NotSync, NotSync>: Send, Unpin);
assert_not_impl_any!(Retake<NotSend, u8>: Send);
assert_not_impl_any!(Retake<u8, NotSend>: Send);
assert_not_impl_any!(Retake<NotSync, u8>: Sync);
assert_not_impl_any!(Retake<u8, NotSync>: Sync);
assert_impl_all!(Stalls<NotSync, NotSync>: Send, Unpin);
assert_not_impl_any!(Stalls<NotSend, u8>: Send);
assert_not_impl_any!(Stalls<u8, NotSend>: Send);
assert_not_impl_any!(Stalls<NotSync, u8>: Sync);
assert_not_impl_any!(Stalls<u8, NotSync>: Sync);

assert_impl_all!(Round<'static>: Send, Sync, Copy);
assert_impl_all!(Observed: Send, Sync, Copy);
assert_impl_all!(Sample: Send, Sync, Copy);
assert_impl_all!(Subject: Send, Sync, Copy);
assert_impl_all!(Times: Send, Sync, Copy);
assert_impl_all!(Pause: Send, Sync, Copy);
assert_impl_all!(Doorbell: Send, Sync);
assert_impl_all!(Cause: Send, Sync);
assert_impl_all!(Stall: Send, Sync, Clone);
