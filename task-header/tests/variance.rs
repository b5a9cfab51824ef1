//! Checks which public types are covariant, and the auto traits of all generic public types.
//! `src/variance.rs` checks the invariant types.
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::{
    marker::PhantomPinned,
    panic::{RefUnwindSafe, UnwindSafe},
};
use task_header::{
    AbortHandle, AfterPoll, Builder, JoinError, JoinHandle, LocalNotified, LocalOwned, LocalRan,
    Located, Named, Notified, Owned, Ran, Schedule, ScheduleLocal, TaskRef, WakeKind, With,
};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// `Send` and not `Sync`; `NotSend` is `Sync` and not `Send`.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// A scheduler with a parameter.
struct Queue<T>(std::marker::PhantomData<T>);

impl<T: Send + Sync + 'static> Schedule for Queue<T> {
    fn schedule(_: Notified<Self>, _: WakeKind) {}
}

impl<T: Send + Sync + 'static> ScheduleLocal for Queue<T> {
    fn schedule(_: LocalNotified<Self>, _: WakeKind) {}
}

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    JoinHandle<Long> => JoinHandle<Short>,
    // These types hold only a shared reference to a scheduler.
    Notified<Queue<Long>> => Notified<Queue<Short>>,
    Ran<Queue<Long>> => Ran<Queue<Short>>,
    LocalNotified<Queue<Long>> => LocalNotified<Queue<Short>>,
    LocalRan<Queue<Long>> => LocalRan<Queue<Short>>,
    TaskRef<'static, Queue<Long>> => TaskRef<'a, Queue<Short>>,
    // An `Owned` takes tasks in, and returns none.
    Owned<Queue<Long>> => Owned<Queue<Short>>,
    AfterPoll<'static, Queue<u8>> => AfterPoll<'a, Queue<u8>>,
    Builder<Long> => Builder<Short>,
    Named<Long> => Named<Short>,
    Located<Long> => Located<Short>,
    With<Long, Long> => With<Short, Short>,
}

// A `Notified` has the auto traits of async-task's `Runnable`.
assert_impl_all!(Notified<Queue<u8>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(Notified<Queue<u8>>: Clone);
assert_impl_all!(Ran<Queue<u8>>: Send, Sync, Unpin);
assert_impl_all!(Owned<Queue<u8>>: Send, Unpin);
assert_not_impl_any!(Owned<Queue<u8>>: Sync, Clone);
assert_impl_all!(AfterPoll<'static, Queue<u8>>: Send);
assert_not_impl_any!(AfterPoll<'static, Queue<u8>>: Sync);
assert_not_impl_any!(TaskRef<'static, Queue<u8>>: Send, Sync);

assert_impl_all!(LocalNotified<Queue<u8>>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_not_impl_any!(LocalNotified<Queue<u8>>: Clone);
assert_impl_all!(LocalRan<Queue<u8>>: Send, Sync, Unpin);
assert_not_impl_any!(LocalOwned<Queue<u8>>: Send, Sync);

// Unwind safe for any output, as the handles of other runtimes are.
assert_impl_all!(JoinHandle<NotSync>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(JoinHandle<PhantomPinned>: Unpin);
assert_not_impl_any!(JoinHandle<u8>: Clone);
assert_not_impl_any!(JoinHandle<NotSend>: Send, Sync);
assert_impl_all!(AbortHandle: Send, Sync, Clone, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(JoinError: Send, Sync, Unpin);

assert_impl_all!(Builder<With<u8, Named<Located<()>>>>: Send, Sync, Unpin);
assert_not_impl_any!(Builder<With<NotSend, ()>>: Send);
assert_not_impl_any!(Builder<With<NotSync, ()>>: Sync);

#[cfg(feature = "queue-global")]
mod node {
    use super::*;
    use task_header::Node;

    covariant! {
        Node<Long> => Node<Short>,
    }

    assert_not_impl_any!(Node<Queue<u8>>: Send, Sync);
}
