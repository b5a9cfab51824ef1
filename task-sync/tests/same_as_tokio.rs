//! Each stable public item of tokio's `sync` is here, under the same name. The items come from
//! `cargo xtask tokio-items --list`, with the module `sync` among its modules.
//!
//! Every item compiles against both crates, so that none is in the list by mistake. Not in the list
//! is `mpsc::Sender::send_timeout`, which takes something else here.
#![allow(unused_imports, reason = "the imports are the test")]

macro_rules! names {
    ($name:ident, $sync:path) => {
        mod $name {
            use $sync as sync;

            /// The types.
            mod types {
                use super::sync::{
                    AcquireError as _, Barrier as _, BarrierWaitResult as _, MappedMutexGuard as _,
                    Mutex as _, MutexGuard as _, Notify as _, OnceCell as _,
                    OwnedMappedMutexGuard as _, OwnedMutexGuard as _,
                    OwnedRwLockMappedWriteGuard as _, OwnedRwLockReadGuard as _,
                    OwnedRwLockWriteGuard as _, OwnedSemaphorePermit as _, RwLock as _,
                    RwLockMappedWriteGuard as _, RwLockReadGuard as _, RwLockWriteGuard as _,
                    Semaphore as _, SemaphorePermit as _, SetError as _, SetOnce as _,
                    SetOnceError as _, TryAcquireError as _, TryLockError as _,
                    broadcast::Receiver as _, broadcast::Sender as _, broadcast::WeakSender as _,
                    broadcast::error::RecvError as _, broadcast::error::SendError as _,
                    broadcast::error::TryRecvError as _, futures::Notified as _,
                    futures::OwnedNotified as _, mpsc::OwnedPermit as _, mpsc::Permit as _,
                    mpsc::PermitIterator as _, mpsc::Receiver as _, mpsc::Sender as _,
                    mpsc::UnboundedReceiver as _, mpsc::UnboundedSender as _,
                    mpsc::WeakSender as _, mpsc::WeakUnboundedSender as _,
                    mpsc::error::SendError as _, mpsc::error::SendTimeoutError as _,
                    mpsc::error::TryRecvError as _, mpsc::error::TrySendError as _,
                    oneshot::Receiver as _, oneshot::Sender as _, oneshot::error::RecvError as _,
                    oneshot::error::TryRecvError as _, watch::Receiver as _, watch::Ref as _,
                    watch::Sender as _, watch::error::RecvError as _, watch::error::SendError as _,
                };
            }

            /// The functions, variants and constants that need no type of a closure.
            #[test]
            fn functions_are_here() {
                let _ = sync::Barrier::new;
                let _ = sync::Barrier::wait;
                let _ = sync::BarrierWaitResult::is_leader;
                let _ = sync::Mutex::<u8>::blocking_lock;
                let _ = sync::Mutex::<u8>::blocking_lock_owned;
                let _ = sync::Mutex::<u8>::const_new;
                let _ = sync::Mutex::<u8>::get_mut;
                let _ = sync::Mutex::<u8>::into_inner;
                let _ = sync::Mutex::<u8>::lock;
                let _ = sync::Mutex::<u8>::lock_owned;
                let _ = sync::Mutex::<u8>::new;
                let _ = sync::Mutex::<u8>::try_lock;
                let _ = sync::Mutex::<u8>::try_lock_owned;
                let _ = sync::MutexGuard::<u8>::mutex;
                let _ = sync::Notify::const_new;
                let _ = sync::Notify::new;
                let _ = sync::Notify::notified;
                let _ = sync::Notify::notified_owned;
                let _ = sync::Notify::notify_last;
                let _ = sync::Notify::notify_one;
                let _ = sync::Notify::notify_waiters;
                let _ = sync::OnceCell::<u8>::const_new;
                let _ = sync::OnceCell::<u8>::const_new_with;
                let _ = sync::OnceCell::<u8>::get;
                let _ = sync::OnceCell::<u8>::get_mut;
                let _ = sync::OnceCell::<u8>::initialized;
                let _ = sync::OnceCell::<u8>::into_inner;
                let _ = sync::OnceCell::<u8>::new;
                let _ = sync::OnceCell::<u8>::new_with;
                let _ = sync::OnceCell::<u8>::set;
                let _ = sync::OnceCell::<u8>::take;
                let _ = sync::OwnedMutexGuard::<u8>::mutex;
                let _ = sync::OwnedRwLockMappedWriteGuard::<u8, u8>::rwlock;
                let _ = sync::OwnedRwLockReadGuard::<u8, u8>::rwlock;
                let _ = sync::OwnedRwLockWriteGuard::<u8>::downgrade;
                let _ = sync::OwnedRwLockWriteGuard::<u8>::into_mapped;
                let _ = sync::OwnedRwLockWriteGuard::<u8>::rwlock;
                let _ = sync::OwnedSemaphorePermit::forget;
                let _ = sync::OwnedSemaphorePermit::merge;
                let _ = sync::OwnedSemaphorePermit::num_permits;
                let _ = sync::OwnedSemaphorePermit::semaphore;
                let _ = sync::OwnedSemaphorePermit::split;
                let _ = sync::RwLock::<u8>::blocking_read;
                let _ = sync::RwLock::<u8>::blocking_write;
                let _ = sync::RwLock::<u8>::const_new;
                let _ = sync::RwLock::<u8>::const_with_max_readers;
                let _ = sync::RwLock::<u8>::get_mut;
                let _ = sync::RwLock::<u8>::into_inner;
                let _ = sync::RwLock::<u8>::new;
                let _ = sync::RwLock::<u8>::read;
                let _ = sync::RwLock::<u8>::read_owned;
                let _ = sync::RwLock::<u8>::try_read;
                let _ = sync::RwLock::<u8>::try_read_owned;
                let _ = sync::RwLock::<u8>::try_write;
                let _ = sync::RwLock::<u8>::try_write_owned;
                let _ = sync::RwLock::<u8>::with_max_readers;
                let _ = sync::RwLock::<u8>::write;
                let _ = sync::RwLock::<u8>::write_owned;
                let _ = sync::RwLockWriteGuard::<u8>::downgrade;
                let _ = sync::RwLockWriteGuard::<u8>::into_mapped;
                let _ = sync::Semaphore::MAX_PERMITS;
                let _ = sync::Semaphore::acquire;
                let _ = sync::Semaphore::acquire_many;
                let _ = sync::Semaphore::acquire_many_owned;
                let _ = sync::Semaphore::acquire_owned;
                let _ = sync::Semaphore::add_permits;
                let _ = sync::Semaphore::available_permits;
                let _ = sync::Semaphore::blocking_acquire;
                let _ = sync::Semaphore::blocking_acquire_many;
                let _ = sync::Semaphore::blocking_acquire_many_owned;
                let _ = sync::Semaphore::blocking_acquire_owned;
                let _ = sync::Semaphore::close;
                let _ = sync::Semaphore::const_new;
                let _ = sync::Semaphore::forget_permits;
                let _ = sync::Semaphore::is_closed;
                let _ = sync::Semaphore::new;
                let _ = sync::Semaphore::try_acquire;
                let _ = sync::Semaphore::try_acquire_many;
                let _ = sync::Semaphore::try_acquire_many_owned;
                let _ = sync::Semaphore::try_acquire_owned;
                let _ = sync::SemaphorePermit::forget;
                let _ = sync::SemaphorePermit::merge;
                let _ = sync::SemaphorePermit::num_permits;
                let _ = sync::SemaphorePermit::semaphore;
                let _ = sync::SemaphorePermit::split;
                let _ = sync::SetError::<u8>::AlreadyInitializedError;
                let _ = sync::SetError::<u8>::InitializingError;
                let _ = sync::SetError::<u8>::is_already_init_err;
                let _ = sync::SetError::<u8>::is_initializing_err;
                let _ = sync::SetOnce::<u8>::const_new;
                let _ = sync::SetOnce::<u8>::const_new_with;
                let _ = sync::SetOnce::<u8>::get;
                let _ = sync::SetOnce::<u8>::initialized;
                let _ = sync::SetOnce::<u8>::into_inner;
                let _ = sync::SetOnce::<u8>::new;
                let _ = sync::SetOnce::<u8>::new_with;
                let _ = sync::SetOnce::<u8>::set;
                let _ = sync::SetOnce::<u8>::wait;
                let _ = sync::TryAcquireError::Closed;
                let _ = sync::TryAcquireError::NoPermits;
                let _ = sync::broadcast::Receiver::<u8>::blocking_recv;
                let _ = sync::broadcast::Receiver::<u8>::is_closed;
                let _ = sync::broadcast::Receiver::<u8>::is_empty;
                let _ = sync::broadcast::Receiver::<u8>::len;
                let _ = sync::broadcast::Receiver::<u8>::recv;
                let _ = sync::broadcast::Receiver::<u8>::resubscribe;
                let _ = sync::broadcast::Receiver::<u8>::same_channel;
                let _ = sync::broadcast::Receiver::<u8>::sender_strong_count;
                let _ = sync::broadcast::Receiver::<u8>::sender_weak_count;
                let _ = sync::broadcast::Receiver::<u8>::try_recv;
                let _ = sync::broadcast::Sender::<u8>::closed;
                let _ = sync::broadcast::Sender::<u8>::downgrade;
                let _ = sync::broadcast::Sender::<u8>::is_empty;
                let _ = sync::broadcast::Sender::<u8>::len;
                let _ = sync::broadcast::Sender::<u8>::new;
                let _ = sync::broadcast::Sender::<u8>::receiver_count;
                let _ = sync::broadcast::Sender::<u8>::same_channel;
                let _ = sync::broadcast::Sender::<u8>::send;
                let _ = sync::broadcast::Sender::<u8>::strong_count;
                let _ = sync::broadcast::Sender::<u8>::subscribe;
                let _ = sync::broadcast::Sender::<u8>::weak_count;
                let _ = sync::broadcast::WeakSender::<u8>::strong_count;
                let _ = sync::broadcast::WeakSender::<u8>::upgrade;
                let _ = sync::broadcast::WeakSender::<u8>::weak_count;
                let _ = sync::broadcast::channel::<u8>;
                let _ = sync::broadcast::error::RecvError::Closed;
                let _ = sync::broadcast::error::RecvError::Lagged;
                let _ = sync::broadcast::error::TryRecvError::Closed;
                let _ = sync::broadcast::error::TryRecvError::Empty;
                let _ = sync::broadcast::error::TryRecvError::Lagged;
                let _ = sync::futures::Notified::enable;
                let _ = sync::futures::OwnedNotified::enable;
                let _ = sync::mpsc::OwnedPermit::<u8>::release;
                let _ = sync::mpsc::OwnedPermit::<u8>::same_channel;
                let _ = sync::mpsc::OwnedPermit::<u8>::same_channel_as_sender;
                let _ = sync::mpsc::OwnedPermit::<u8>::send;
                let _ = sync::mpsc::Permit::<u8>::send;
                let _ = sync::mpsc::Receiver::<u8>::blocking_recv;
                let _ = sync::mpsc::Receiver::<u8>::blocking_recv_many;
                let _ = sync::mpsc::Receiver::<u8>::capacity;
                let _ = sync::mpsc::Receiver::<u8>::close;
                let _ = sync::mpsc::Receiver::<u8>::is_closed;
                let _ = sync::mpsc::Receiver::<u8>::is_empty;
                let _ = sync::mpsc::Receiver::<u8>::len;
                let _ = sync::mpsc::Receiver::<u8>::max_capacity;
                let _ = sync::mpsc::Receiver::<u8>::poll_recv;
                let _ = sync::mpsc::Receiver::<u8>::poll_recv_many;
                let _ = sync::mpsc::Receiver::<u8>::recv;
                let _ = sync::mpsc::Receiver::<u8>::recv_many;
                let _ = sync::mpsc::Receiver::<u8>::sender_strong_count;
                let _ = sync::mpsc::Receiver::<u8>::sender_weak_count;
                let _ = sync::mpsc::Receiver::<u8>::try_recv;
                let _ = sync::mpsc::Sender::<u8>::blocking_send;
                let _ = sync::mpsc::Sender::<u8>::capacity;
                let _ = sync::mpsc::Sender::<u8>::closed;
                let _ = sync::mpsc::Sender::<u8>::downgrade;
                let _ = sync::mpsc::Sender::<u8>::is_closed;
                let _ = sync::mpsc::Sender::<u8>::max_capacity;
                let _ = sync::mpsc::Sender::<u8>::reserve;
                let _ = sync::mpsc::Sender::<u8>::reserve_many;
                let _ = sync::mpsc::Sender::<u8>::reserve_owned;
                let _ = sync::mpsc::Sender::<u8>::same_channel;
                let _ = sync::mpsc::Sender::<u8>::send;
                let _ = sync::mpsc::Sender::<u8>::strong_count;
                let _ = sync::mpsc::Sender::<u8>::try_reserve;
                let _ = sync::mpsc::Sender::<u8>::try_reserve_many;
                let _ = sync::mpsc::Sender::<u8>::try_reserve_owned;
                let _ = sync::mpsc::Sender::<u8>::try_send;
                let _ = sync::mpsc::Sender::<u8>::weak_count;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::blocking_recv;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::blocking_recv_many;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::close;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::is_closed;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::is_empty;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::len;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::poll_recv;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::poll_recv_many;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::recv;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::recv_many;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::sender_strong_count;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::sender_weak_count;
                let _ = sync::mpsc::UnboundedReceiver::<u8>::try_recv;
                let _ = sync::mpsc::UnboundedSender::<u8>::closed;
                let _ = sync::mpsc::UnboundedSender::<u8>::downgrade;
                let _ = sync::mpsc::UnboundedSender::<u8>::is_closed;
                let _ = sync::mpsc::UnboundedSender::<u8>::same_channel;
                let _ = sync::mpsc::UnboundedSender::<u8>::send;
                let _ = sync::mpsc::UnboundedSender::<u8>::strong_count;
                let _ = sync::mpsc::UnboundedSender::<u8>::weak_count;
                let _ = sync::mpsc::WeakSender::<u8>::strong_count;
                let _ = sync::mpsc::WeakSender::<u8>::upgrade;
                let _ = sync::mpsc::WeakSender::<u8>::weak_count;
                let _ = sync::mpsc::WeakUnboundedSender::<u8>::strong_count;
                let _ = sync::mpsc::WeakUnboundedSender::<u8>::upgrade;
                let _ = sync::mpsc::WeakUnboundedSender::<u8>::weak_count;
                let _ = sync::mpsc::channel::<u8>;
                let _ = sync::mpsc::error::SendTimeoutError::<u8>::Closed;
                let _ = sync::mpsc::error::SendTimeoutError::<u8>::Timeout;
                let _ = sync::mpsc::error::SendTimeoutError::<u8>::into_inner;
                let _ = sync::mpsc::error::TryRecvError::Disconnected;
                let _ = sync::mpsc::error::TryRecvError::Empty;
                let _ = sync::mpsc::error::TrySendError::<u8>::Closed;
                let _ = sync::mpsc::error::TrySendError::<u8>::Full;
                let _ = sync::mpsc::error::TrySendError::<u8>::into_inner;
                let _ = sync::mpsc::unbounded_channel::<u8>;
                let _ = sync::oneshot::Receiver::<u8>::blocking_recv;
                let _ = sync::oneshot::Receiver::<u8>::close;
                let _ = sync::oneshot::Receiver::<u8>::is_empty;
                let _ = sync::oneshot::Receiver::<u8>::is_terminated;
                let _ = sync::oneshot::Receiver::<u8>::try_recv;
                let _ = sync::oneshot::Sender::<u8>::closed;
                let _ = sync::oneshot::Sender::<u8>::is_closed;
                let _ = sync::oneshot::Sender::<u8>::poll_closed;
                let _ = sync::oneshot::Sender::<u8>::send;
                let _ = sync::oneshot::channel::<u8>;
                let _ = sync::oneshot::error::TryRecvError::Closed;
                let _ = sync::oneshot::error::TryRecvError::Empty;
                let _ = sync::watch::Receiver::<u8>::borrow;
                let _ = sync::watch::Receiver::<u8>::borrow_and_update;
                let _ = sync::watch::Receiver::<u8>::changed;
                let _ = sync::watch::Receiver::<u8>::has_changed;
                let _ = sync::watch::Receiver::<u8>::is_closed;
                let _ = sync::watch::Receiver::<u8>::mark_changed;
                let _ = sync::watch::Receiver::<u8>::mark_unchanged;
                let _ = sync::watch::Receiver::<u8>::same_channel;
                let _ = sync::watch::Ref::<u8>::has_changed;
                let _ = sync::watch::Sender::<u8>::borrow;
                let _ = sync::watch::Sender::<u8>::closed;
                let _ = sync::watch::Sender::<u8>::is_closed;
                let _ = sync::watch::Sender::<u8>::new;
                let _ = sync::watch::Sender::<u8>::receiver_count;
                let _ = sync::watch::Sender::<u8>::same_channel;
                let _ = sync::watch::Sender::<u8>::send;
                let _ = sync::watch::Sender::<u8>::send_replace;
                let _ = sync::watch::Sender::<u8>::sender_count;
                let _ = sync::watch::Sender::<u8>::subscribe;
                let _ = sync::watch::channel::<u8>;
            }

            #[test]
            fn functions_with_closures_are_here() {
                use sync::*;
                let _ = |guard: MutexGuard<'static, u8>| MutexGuard::map(guard, |x| x);
                let _ = |guard: MutexGuard<'static, u8>| MutexGuard::try_map(guard, |x| Some(x));
                let _ = |guard: MappedMutexGuard<'static, u8>| {
                    let guard = MappedMutexGuard::map(guard, |x| x);
                    MappedMutexGuard::try_map(guard, |x| Some(x))
                };
                let _ = |guard: OwnedMutexGuard<u8>| OwnedMutexGuard::map(guard, |x| x);
                let _ = |guard: OwnedMutexGuard<u8>| OwnedMutexGuard::try_map(guard, |x| Some(x));
                let _ = |guard: OwnedMappedMutexGuard<u8, u8>| {
                    let guard = OwnedMappedMutexGuard::map(guard, |x| x);
                    OwnedMappedMutexGuard::try_map(guard, |x| Some(x))
                };
                let _ = |guard: RwLockReadGuard<'static, u8>| {
                    let guard = RwLockReadGuard::map(guard, |x| x);
                    RwLockReadGuard::try_map(guard, |x| Some(x))
                };
                type Write = RwLockWriteGuard<'static, u8>;
                let _ = |guard: Write| RwLockWriteGuard::map(guard, |x| x);
                let _ = |guard: Write| RwLockWriteGuard::try_map(guard, |x| Some(x));
                let _ = |guard: Write| RwLockWriteGuard::downgrade_map(guard, |x| x);
                let _ = |guard: Write| RwLockWriteGuard::try_downgrade_map(guard, |x| Some(x));
                let _ = |guard: RwLockMappedWriteGuard<'static, u8>| {
                    let guard = RwLockMappedWriteGuard::map(guard, |x| x);
                    RwLockMappedWriteGuard::try_map(guard, |x| Some(x))
                };
                let _ = |guard: OwnedRwLockReadGuard<u8, u8>| {
                    let guard = OwnedRwLockReadGuard::map(guard, |x| x);
                    OwnedRwLockReadGuard::try_map(guard, |x| Some(x))
                };
                type Owned = OwnedRwLockWriteGuard<u8>;
                let _ = |guard: Owned| OwnedRwLockWriteGuard::map(guard, |x| x);
                let _ = |guard: Owned| OwnedRwLockWriteGuard::try_map(guard, |x| Some(x));
                let _ = |guard: Owned| OwnedRwLockWriteGuard::downgrade_map(guard, |x| x);
                let _ = |guard: Owned| OwnedRwLockWriteGuard::try_downgrade_map(guard, |x| Some(x));
                let _ = |guard: OwnedRwLockMappedWriteGuard<u8, u8>| {
                    let guard = OwnedRwLockMappedWriteGuard::map(guard, |x| x);
                    OwnedRwLockMappedWriteGuard::try_map(guard, |x| Some(x))
                };
                let _ = |cell: &'static OnceCell<u8>| drop(cell.get_or_init(|| async { 1 }));
                let _ = |cell: &'static OnceCell<u8>| {
                    drop(cell.get_or_try_init(|| async { Err::<u8, u8>(1) }));
                };
                let _ = |rx: &'static mut watch::Receiver<u8>| drop(rx.wait_for(|_| true));
                let _ = |tx: watch::Sender<u8>| {
                    tx.send_modify(|_| ());
                    tx.send_if_modified(|_| true)
                };
            }
        }
    };
}
names! { theirs, tokio::sync }
names! { ours, task_sync }
