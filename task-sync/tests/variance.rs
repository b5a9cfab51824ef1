//! Checks which of the semaphore's, the locks' and the cell's types are covariant, and the auto
//! traits of all of them. `src/variance.rs` checks the invariant types.
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::panic::{RefUnwindSafe, UnwindSafe};
use task_sync::{
    AcquireError, MappedMutexGuard, Mutex, MutexGuard, OnceCell, OwnedMappedMutexGuard,
    OwnedMutexGuard, OwnedRwLockMappedWriteGuard, OwnedRwLockReadGuard, OwnedRwLockWriteGuard,
    OwnedSemaphorePermit, RwLock, RwLockMappedWriteGuard, RwLockReadGuard, RwLockWriteGuard,
    Semaphore, SemaphorePermit, SetError, TryAcquireError, TryLockError, Waiting,
};

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
    SemaphorePermit<'static> => SemaphorePermit<'a>,
    Waiting<'static> => Waiting<'a>,
    MutexGuard<'static, u8> => MutexGuard<'a, u8>,
    MappedMutexGuard<'static, u8> => MappedMutexGuard<'a, u8>,
    RwLockReadGuard<'static, Long> => RwLockReadGuard<'a, Short>,
    RwLockWriteGuard<'static, u8> => RwLockWriteGuard<'a, u8>,
    RwLockMappedWriteGuard<'static, u8> => RwLockMappedWriteGuard<'a, u8>,
    OwnedRwLockReadGuard<u8, Long> => OwnedRwLockReadGuard<u8, Short>,
    SetError<Long> => SetError<Short>,
}

assert_impl_all!(Semaphore: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(SemaphorePermit<'static>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(OwnedSemaphorePermit: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(AcquireError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(TryAcquireError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(TryLockError: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);
assert_impl_all!(SetError<u8>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);

assert_not_impl_any!(SetError<NotSync>: Sync, RefUnwindSafe);
assert_not_impl_any!(SetError<NotSend>: Send);
assert_impl_all!(Waiting<'static>: Send, Sync, Unpin, UnwindSafe, RefUnwindSafe);

// A mutex needs `Send` alone.
assert_impl_all!(Mutex<NotSync>: Send, Sync, Unpin, UnwindSafe);
assert_not_impl_any!(Mutex<NotSend>: Send, Sync);
// A panic may leave the value half changed, and there is no poison.
assert_not_impl_any!(Mutex<u8>: RefUnwindSafe);
assert_impl_all!(MutexGuard<'static, u8>: Send, Sync, Unpin);
assert_not_impl_any!(MutexGuard<'static, NotSync>: Sync);
assert_not_impl_any!(MutexGuard<'static, NotSend>: Send);
assert_impl_all!(MappedMutexGuard<'static, u8>: Send, Sync, Unpin);
assert_not_impl_any!(MappedMutexGuard<'static, NotSync>: Sync);
assert_not_impl_any!(MappedMutexGuard<'static, NotSend>: Send);
assert_impl_all!(OwnedMutexGuard<NotSync>: Send, Unpin);
assert_not_impl_any!(OwnedMutexGuard<NotSync>: Sync);
assert_not_impl_any!(OwnedMutexGuard<NotSend>: Send, Sync);
assert_impl_all!(OwnedMappedMutexGuard<u8, u8>: Send, Sync, Unpin);
assert_not_impl_any!(OwnedMappedMutexGuard<NotSync, u8>: Sync);
assert_not_impl_any!(OwnedMappedMutexGuard<u8, NotSync>: Sync);
assert_not_impl_any!(OwnedMappedMutexGuard<NotSend, u8>: Send, Sync);
assert_not_impl_any!(OwnedMappedMutexGuard<u8, NotSend>: Send, Sync);

// Readers share the value.
assert_impl_all!(RwLock<u8>: Send, Sync, Unpin, UnwindSafe);
assert_impl_all!(RwLock<NotSync>: Send);
assert_not_impl_any!(RwLock<NotSync>: Sync);
assert_not_impl_any!(RwLock<NotSend>: Send, Sync);
assert_not_impl_any!(RwLock<u8>: RefUnwindSafe);
assert_impl_all!(RwLockReadGuard<'static, NotSend>: Send, Unpin);
assert_not_impl_any!(RwLockReadGuard<'static, NotSync>: Send, Sync);
assert_not_impl_any!(RwLockReadGuard<'static, NotSend>: Sync);
// A writer's guard may be downgraded on another thread.
assert_impl_all!(RwLockWriteGuard<'static, u8>: Send, Sync, Unpin);
assert_not_impl_any!(RwLockWriteGuard<'static, NotSync>: Send, Sync);
assert_not_impl_any!(RwLockWriteGuard<'static, NotSend>: Send, Sync);
assert_impl_all!(RwLockMappedWriteGuard<'static, u8>: Send, Sync, Unpin);
assert_not_impl_any!(RwLockMappedWriteGuard<'static, NotSync>: Send, Sync);
assert_not_impl_any!(RwLockMappedWriteGuard<'static, NotSend>: Send, Sync);
assert_impl_all!(OwnedRwLockReadGuard<u8, u8>: Send, Sync, Unpin);
assert_not_impl_any!(OwnedRwLockReadGuard<NotSync, u8>: Send, Sync);
assert_not_impl_any!(OwnedRwLockReadGuard<NotSend, u8>: Send, Sync);
assert_not_impl_any!(OwnedRwLockReadGuard<u8, NotSync>: Send, Sync);
assert_impl_all!(OwnedRwLockWriteGuard<u8>: Send, Sync, Unpin);
assert_not_impl_any!(OwnedRwLockWriteGuard<NotSync>: Send, Sync);
assert_not_impl_any!(OwnedRwLockWriteGuard<NotSend>: Send, Sync);
assert_impl_all!(OwnedRwLockMappedWriteGuard<u8, u8>: Send, Sync, Unpin);
assert_not_impl_any!(OwnedRwLockMappedWriteGuard<NotSync, u8>: Send, Sync);
assert_not_impl_any!(OwnedRwLockMappedWriteGuard<NotSend, u8>: Send, Sync);
assert_not_impl_any!(OwnedRwLockMappedWriteGuard<u8, NotSync>: Send, Sync);
assert_not_impl_any!(OwnedRwLockMappedWriteGuard<u8, NotSend>: Send, Sync);

// A cell takes a value in on one thread and shares it with others.
assert_impl_all!(OnceCell<u8>: Send, Sync, Unpin, UnwindSafe);
assert_impl_all!(OnceCell<NotSync>: Send);
assert_not_impl_any!(OnceCell<NotSync>: Sync);
assert_not_impl_any!(OnceCell<NotSend>: Send, Sync);

#[test]
fn futures_of_values_that_are_send_are_send() {
    fn send<T: Send>(future: T) -> T {
        future
    }
    let (semaphore, mutex, lock) = (Semaphore::new(1), Mutex::new(1), RwLock::new(1));
    let cell = OnceCell::new();
    drop(send(semaphore.acquire()));
    drop(send(mutex.lock()));
    drop((send(lock.read()), send(lock.write())));
    drop(send(cell.get_or_init(|| async { 1 })));
}
