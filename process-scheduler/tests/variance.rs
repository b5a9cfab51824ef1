//! The covariant public types, the contravariant parameter, and the auto traits.
//! `src/variance.rs` has the invariant types.
use process_scheduler::{
    Address, AsyncProcess, Builder, Call, CommandError, Completer, Context, Cx, Event, Events,
    Exit, FnProcess, Handle, Inbox, Input, Metrics, Pid, Receiving, Reply, Scheduler, SendError,
    Sending, Sleep, Spawn, Stale, StepOutput, Supervisor,
};
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::panic::{RefUnwindSafe, UnwindSafe};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// A type that is `Send` alone, and one that is `Sync` alone.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;

/// Asserts that a `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    SendError<Long> => SendError<Short>,
    Stale<Long> => Stale<Short>,
    CommandError<Long> => CommandError<Short>,
    Event<Long, Long, Long> => Event<Short, Short, Short>,
    StepOutput<'static, Long> => StepOutput<'a, Short>,
    Cx<'static> => Cx<'a>,
    Context<'static, u8> => Context<'a, u8>,
    Events<'static, u8, u8, u8> => Events<'a, u8, u8, u8>,
    Sending<'static, u8> => Sending<'a, u8>,
    Receiving<'static, u8> => Receiving<'a, u8>,
    AsyncProcess<u8, Long, Long> => AsyncProcess<u8, Short, Short>,
    // A closure that takes any message takes a narrower one.
    FnProcess<Short, Long, Long> => FnProcess<Long, Short, Short>,
}

assert_impl_all!(Scheduler: Send, Sync, Unpin);
assert_impl_all!(Handle: Send, Sync, Unpin, Clone);
assert_impl_all!(Builder: Send, Unpin);
assert_impl_all!(Spawn: Send, Sync, Unpin, Clone);
assert_impl_all!(Supervisor: Send, Unpin);
assert_impl_all!(Pid: Send, Sync, Unpin, Copy);
assert_impl_all!(Metrics: Send, Sync, Unpin, Copy);
assert_impl_all!(Exit: Send, Sync, UnwindSafe, RefUnwindSafe, Unpin, Future);
assert_impl_all!(Sleep: Send, Unpin, Future);
assert_impl_all!(Input: Send, Unpin);

assert_impl_all!(Address<NotSync>: Send, Sync, Unpin, Clone);
assert_impl_all!(Sending<'static, NotSync>: Send, Unpin, Future);
assert_impl_all!(Inbox<NotSync>: Send, Unpin);
assert_impl_all!(Receiving<'static, NotSync>: Send, Unpin, Future);
assert_impl_all!(Reply<NotSync>: Send, Sync, UnwindSafe, RefUnwindSafe, Unpin);
assert_impl_all!(Call<NotSync>: Send, UnwindSafe, RefUnwindSafe, Unpin, Future);
assert_impl_all!(Completer<NotSync, NotSync>: Send, Unpin);
assert_not_impl_any!(Inbox<NotSend>: Send, Sync);
assert_not_impl_any!(Reply<NotSend>: Send, Sync);
assert_not_impl_any!(Call<NotSend>: Send, Sync);
assert_not_impl_any!(Events<'static, NotSend, u8, u8>: Send);
assert_not_impl_any!(StepOutput<'static, NotSend>: Send);
