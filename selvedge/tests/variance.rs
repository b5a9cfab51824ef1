//! Checks which public types are covariant, and which auto traits the public types have.
//! `src/variance.rs` has the invariant ones.
use selvedge::{
    EnterGuard, Handle, JoinSet, LocalRuntime, LocalSet, Runtime, TaskMeta, Worker,
    park::{Park, ThreadPark},
    task::{LocalEnterGuard, LocalKey, futures::TaskLocalFuture},
};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::{marker::PhantomData, task::Waker, time::Duration};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// `NotSync` is `Send` but not `Sync`, and `NotSend` is `Sync` but not `Send`.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

/// Parker with a type parameter.
struct Parks<T>(ThreadPark, PhantomData<T>);

impl<T> Park for Parks<T> {
    fn park(&mut self) {
        self.0.park();
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.0.park_timeout(limit);
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }
}

covariant! {
    JoinSet<Long> => JoinSet<Short>,
    EnterGuard<'static> => EnterGuard<'a>,
    Worker<Parks<Long>> => Worker<Parks<Short>>,
    TaskMeta<'static> => TaskMeta<'a>,
    TaskLocalFuture<(), Long> => TaskLocalFuture<(), Short>,
}

assert_impl_all!(JoinSet<NotSync>: Send, Sync, Unpin);
assert_not_impl_any!(JoinSet<NotSend>: Send, Sync);
assert_impl_all!(EnterGuard<'static>: Sync);
assert_not_impl_any!(EnterGuard<'static>: Send);
assert_impl_all!(Worker<ThreadPark>: Send);
assert_not_impl_any!(Worker<ThreadPark>: Sync);
assert_impl_all!(Runtime: Send, Sync, Unpin);
assert_impl_all!(Handle: Send, Sync, Clone, Unpin);
assert_not_impl_any!(LocalSet: Send, Sync);
assert_not_impl_any!(LocalRuntime: Send, Sync);
assert_not_impl_any!(LocalEnterGuard: Send, Sync);
assert_impl_all!(LocalKey<NotSync>: Send, Sync);
assert_impl_all!(LocalKey<NotSend>: Send, Sync);
assert_impl_all!(TaskLocalFuture<NotSync, ()>: Send);
assert_not_impl_any!(TaskLocalFuture<NotSync, ()>: Sync);
assert_not_impl_any!(TaskLocalFuture<NotSend, ()>: Send);
assert_not_impl_any!(TaskLocalFuture<(), NotSend>: Send);
assert_not_impl_any!(TaskLocalFuture<(), ()>: Unpin);

#[cfg(feature = "groups")]
mod groups {
    use super::{Long, NotSend, NotSync, Short};
    use selvedge::{GroupGone, GroupLocal, InGroup, SchedulingGroup};
    use static_assertions::{assert_impl_all, assert_not_impl_any};
    use std::future::Ready;

    covariant! {
        GroupGone<Long> => GroupGone<Short>,
    }

    assert_impl_all!(GroupLocal<NotSync>: Send, Sync);
    assert_impl_all!(InGroup<Ready<NotSync>>: Send);
    assert_not_impl_any!(InGroup<Ready<NotSend>>: Send);
    assert_not_impl_any!(GroupGone<NotSend>: Send);
    assert_impl_all!(SchedulingGroup: Send, Sync);
}

/// Fails to compile if one of these may not be used in a closure that catches panics.
mod unwind {
    use super::*;
    use selvedge::task::{AbortHandle, JoinHandle};
    use std::panic::{RefUnwindSafe, UnwindSafe};

    assert_impl_all!(Runtime: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(LocalRuntime: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(Handle: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(JoinHandle<NotSync>: UnwindSafe, RefUnwindSafe);
    assert_impl_all!(AbortHandle: UnwindSafe, RefUnwindSafe);
    #[cfg(all(feature = "process", target_os = "linux"))]
    assert_impl_all!(selvedge::process::Child: UnwindSafe, RefUnwindSafe);
    #[cfg(all(feature = "fs", unix))]
    assert_impl_all!(selvedge::fs::File: UnwindSafe, RefUnwindSafe);
    #[cfg(all(feature = "net", unix))]
    assert_impl_all!(selvedge::signal::unix::Signal: UnwindSafe, RefUnwindSafe);
}
