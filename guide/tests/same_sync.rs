//! The items of `sync` that the table `docs/from-tokio.md` calls the same. The code that uses them
//! is compiled against tokio and against selvedge, and never runs.
//!
//! `cargo xtask tokio-items` checks that each of these items is here.
#![allow(
    unused_imports,
    clippy::let_underscore_future,
    clippy::let_underscore_lock,
    clippy::let_underscore_must_use,
    clippy::let_unit_value,
    clippy::unnecessary_lazy_evaluations
)]

use std::{future::ready, pin::Pin, sync::Arc};

/// Stands for a value of any type, in code that never runs.
fn any<T>() -> T {
    unreachable!("it is only compiled")
}

macro_rules! same {
    ($module:ident, $rt:ident) => {
        mod $module {
            use super::*;

            mod names {
                use $rt::sync::AcquireError as _;
                use $rt::sync::Barrier as _;
                use $rt::sync::BarrierWaitResult as _;
                use $rt::sync::MappedMutexGuard as _;
                use $rt::sync::Mutex as _;
                use $rt::sync::MutexGuard as _;
                use $rt::sync::Notify as _;
                use $rt::sync::OnceCell as _;
                use $rt::sync::OwnedMappedMutexGuard as _;
                use $rt::sync::OwnedMutexGuard as _;
                use $rt::sync::OwnedRwLockMappedWriteGuard as _;
                use $rt::sync::OwnedRwLockReadGuard as _;
                use $rt::sync::OwnedRwLockWriteGuard as _;
                use $rt::sync::OwnedSemaphorePermit as _;
                use $rt::sync::RwLock as _;
                use $rt::sync::RwLockMappedWriteGuard as _;
                use $rt::sync::RwLockReadGuard as _;
                use $rt::sync::RwLockWriteGuard as _;
                use $rt::sync::Semaphore as _;
                use $rt::sync::SemaphorePermit as _;
                use $rt::sync::SetError as _;
                use $rt::sync::SetError::AlreadyInitializedError as _;
                use $rt::sync::SetError::InitializingError as _;
                use $rt::sync::SetOnce as _;
                use $rt::sync::SetOnceError as _;
                use $rt::sync::TryAcquireError as _;
                use $rt::sync::TryAcquireError::Closed as _;
                use $rt::sync::TryAcquireError::NoPermits as _;
                use $rt::sync::TryLockError as _;
                use $rt::sync::broadcast::Receiver as _;
                use $rt::sync::broadcast::Sender as _;
                use $rt::sync::broadcast::WeakSender as _;
                use $rt::sync::broadcast::error::RecvError as _;
                use $rt::sync::broadcast::error::RecvError::Closed as _;
                use $rt::sync::broadcast::error::RecvError::Lagged as _;
                use $rt::sync::broadcast::error::SendError as _;
                use $rt::sync::broadcast::error::TryRecvError as _;
                use $rt::sync::broadcast::error::TryRecvError::Closed as _;
                use $rt::sync::broadcast::error::TryRecvError::Empty as _;
                use $rt::sync::broadcast::error::TryRecvError::Lagged as _;
                use $rt::sync::futures::Notified as _;
                use $rt::sync::futures::OwnedNotified as _;
                use $rt::sync::mpsc::OwnedPermit as _;
                use $rt::sync::mpsc::Permit as _;
                use $rt::sync::mpsc::PermitIterator as _;
                use $rt::sync::mpsc::Receiver as _;
                use $rt::sync::mpsc::Sender as _;
                use $rt::sync::mpsc::UnboundedReceiver as _;
                use $rt::sync::mpsc::UnboundedSender as _;
                use $rt::sync::mpsc::WeakSender as _;
                use $rt::sync::mpsc::WeakUnboundedSender as _;
                use $rt::sync::mpsc::error::SendError as _;
                use $rt::sync::mpsc::error::SendTimeoutError as _;
                use $rt::sync::mpsc::error::SendTimeoutError::Closed as _;
                use $rt::sync::mpsc::error::SendTimeoutError::Timeout as _;
                use $rt::sync::mpsc::error::TryRecvError as _;
                use $rt::sync::mpsc::error::TryRecvError::Disconnected as _;
                use $rt::sync::mpsc::error::TryRecvError::Empty as _;
                use $rt::sync::mpsc::error::TrySendError as _;
                use $rt::sync::mpsc::error::TrySendError::Closed as _;
                use $rt::sync::mpsc::error::TrySendError::Full as _;
                use $rt::sync::oneshot::Receiver as _;
                use $rt::sync::oneshot::Sender as _;
                use $rt::sync::oneshot::error::RecvError as _;
                use $rt::sync::oneshot::error::TryRecvError as _;
                use $rt::sync::oneshot::error::TryRecvError::Closed as _;
                use $rt::sync::oneshot::error::TryRecvError::Empty as _;
                use $rt::sync::watch::Receiver as _;
                use $rt::sync::watch::Ref as _;
                use $rt::sync::watch::Sender as _;
                use $rt::sync::watch::error::RecvError as _;
                use $rt::sync::watch::error::SendError as _;
            }

            pub(super) fn calls() {
                let _ = $rt::sync::Barrier::new(1);
                let _ =
                    $rt::sync::BarrierWaitResult::is_leader(any::<&$rt::sync::BarrierWaitResult>());
                let _ = $rt::sync::MappedMutexGuard::map(
                    any::<$rt::sync::MappedMutexGuard<'static, u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::MappedMutexGuard::try_map(
                    any::<$rt::sync::MappedMutexGuard<'static, u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::Mutex::const_new(1_u8);
                let _ = $rt::sync::Mutex::get_mut(any::<&mut $rt::sync::Mutex<u8>>());
                let _ = $rt::sync::Mutex::into_inner(any::<$rt::sync::Mutex<u8>>());
                let _ = $rt::sync::Mutex::new(1_u8);
                let _ = $rt::sync::MutexGuard::map(
                    any::<$rt::sync::MutexGuard<'static, u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::MutexGuard::mutex(any::<&$rt::sync::MutexGuard<'static, u8>>());
                let _ = $rt::sync::MutexGuard::try_map(
                    any::<$rt::sync::MutexGuard<'static, u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::Notify::const_new();
                let _ = $rt::sync::Notify::new();
                let _ = $rt::sync::Notify::notified(any::<&$rt::sync::Notify>());
                let _ = $rt::sync::Notify::notified_owned(any::<Arc<$rt::sync::Notify>>());
                let _ = $rt::sync::Notify::notify_last(any::<&$rt::sync::Notify>());
                let _ = $rt::sync::Notify::notify_one(any::<&$rt::sync::Notify>());
                let _ = $rt::sync::Notify::notify_waiters(any::<&$rt::sync::Notify>());
                let _: $rt::sync::OnceCell<u8> = $rt::sync::OnceCell::const_new();
                let _ = $rt::sync::OnceCell::const_new_with(1_u8);
                let _ = $rt::sync::OnceCell::get(any::<&$rt::sync::OnceCell<u8>>());
                let _ = $rt::sync::OnceCell::get_mut(any::<&mut $rt::sync::OnceCell<u8>>());
                let _ = $rt::sync::OnceCell::get_or_init(any::<&$rt::sync::OnceCell<u8>>(), || {
                    ready(1)
                });
                let _ =
                    $rt::sync::OnceCell::get_or_try_init(any::<&$rt::sync::OnceCell<u8>>(), || {
                        ready(Err(()))
                    });
                let _ = $rt::sync::OnceCell::initialized(any::<&$rt::sync::OnceCell<u8>>());
                let _ = $rt::sync::OnceCell::into_inner(any::<$rt::sync::OnceCell<u8>>());
                let _: $rt::sync::OnceCell<u8> = $rt::sync::OnceCell::new();
                let _ = $rt::sync::OnceCell::new_with(Some(1_u8));
                let _ = $rt::sync::OnceCell::set(any::<&$rt::sync::OnceCell<u8>>(), 1);
                let _ = $rt::sync::OnceCell::take(any::<&mut $rt::sync::OnceCell<u8>>());
                let _ = $rt::sync::OwnedMappedMutexGuard::map(
                    any::<$rt::sync::OwnedMappedMutexGuard<u8, u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::OwnedMappedMutexGuard::try_map(
                    any::<$rt::sync::OwnedMappedMutexGuard<u8, u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::OwnedMutexGuard::map(
                    any::<$rt::sync::OwnedMutexGuard<u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::OwnedMutexGuard::mutex(any::<&$rt::sync::OwnedMutexGuard<u8>>());
                let _ = $rt::sync::OwnedMutexGuard::try_map(
                    any::<$rt::sync::OwnedMutexGuard<u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::OwnedRwLockMappedWriteGuard::map(
                    any::<$rt::sync::OwnedRwLockMappedWriteGuard<u8, u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::OwnedRwLockMappedWriteGuard::rwlock(any::<
                    &$rt::sync::OwnedRwLockMappedWriteGuard<u8, u8>,
                >());
                let _ = $rt::sync::OwnedRwLockMappedWriteGuard::try_map(
                    any::<$rt::sync::OwnedRwLockMappedWriteGuard<u8, u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::OwnedRwLockReadGuard::map(
                    any::<$rt::sync::OwnedRwLockReadGuard<u8, u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::OwnedRwLockReadGuard::rwlock(any::<
                    &$rt::sync::OwnedRwLockReadGuard<u8, u8>,
                >());
                let _ = $rt::sync::OwnedRwLockReadGuard::try_map(
                    any::<$rt::sync::OwnedRwLockReadGuard<u8, u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::OwnedRwLockWriteGuard::downgrade(any::<
                    $rt::sync::OwnedRwLockWriteGuard<u8>,
                >());
                let _ = $rt::sync::OwnedRwLockWriteGuard::downgrade_map(
                    any::<$rt::sync::OwnedRwLockWriteGuard<u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::OwnedRwLockWriteGuard::into_mapped(any::<
                    $rt::sync::OwnedRwLockWriteGuard<u8>,
                >());
                let _ = $rt::sync::OwnedRwLockWriteGuard::map(
                    any::<$rt::sync::OwnedRwLockWriteGuard<u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::OwnedRwLockWriteGuard::rwlock(any::<
                    &$rt::sync::OwnedRwLockWriteGuard<u8>,
                >());
                let _ = $rt::sync::OwnedRwLockWriteGuard::try_downgrade_map(
                    any::<$rt::sync::OwnedRwLockWriteGuard<u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::OwnedRwLockWriteGuard::try_map(
                    any::<$rt::sync::OwnedRwLockWriteGuard<u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::OwnedSemaphorePermit::forget(any::<
                    $rt::sync::OwnedSemaphorePermit,
                >());
                let _ = $rt::sync::OwnedSemaphorePermit::merge(
                    any::<&mut $rt::sync::OwnedSemaphorePermit>(),
                    any(),
                );
                let _ = $rt::sync::OwnedSemaphorePermit::num_permits(any::<
                    &$rt::sync::OwnedSemaphorePermit,
                >());
                let _ = $rt::sync::OwnedSemaphorePermit::semaphore(any::<
                    &$rt::sync::OwnedSemaphorePermit,
                >());
                let _ = $rt::sync::OwnedSemaphorePermit::split(
                    any::<&mut $rt::sync::OwnedSemaphorePermit>(),
                    1,
                );
                let _ = $rt::sync::RwLock::const_new(1_u8);
                let _ = $rt::sync::RwLock::const_with_max_readers(1_u8, 1);
                let _ = $rt::sync::RwLock::get_mut(any::<&mut $rt::sync::RwLock<u8>>());
                let _ = $rt::sync::RwLock::into_inner(any::<$rt::sync::RwLock<u8>>());
                let _ = $rt::sync::RwLock::new(1_u8);
                let _ = $rt::sync::RwLock::read(any::<&$rt::sync::RwLock<u8>>());
                let _ = $rt::sync::RwLock::read_owned(any::<Arc<$rt::sync::RwLock<u8>>>());
                let _ = $rt::sync::RwLock::try_read(any::<&$rt::sync::RwLock<u8>>());
                let _ = $rt::sync::RwLock::try_read_owned(any::<Arc<$rt::sync::RwLock<u8>>>());
                let _ = $rt::sync::RwLock::try_write(any::<&$rt::sync::RwLock<u8>>());
                let _ = $rt::sync::RwLock::try_write_owned(any::<Arc<$rt::sync::RwLock<u8>>>());
                let _ = $rt::sync::RwLock::with_max_readers(1_u8, 1);
                let _ = $rt::sync::RwLock::write(any::<&$rt::sync::RwLock<u8>>());
                let _ = $rt::sync::RwLock::write_owned(any::<Arc<$rt::sync::RwLock<u8>>>());
                let _ = $rt::sync::RwLockMappedWriteGuard::map(
                    any::<$rt::sync::RwLockMappedWriteGuard<'static, u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::RwLockMappedWriteGuard::try_map(
                    any::<$rt::sync::RwLockMappedWriteGuard<'static, u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::RwLockReadGuard::map(
                    any::<$rt::sync::RwLockReadGuard<'static, u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::RwLockReadGuard::try_map(
                    any::<$rt::sync::RwLockReadGuard<'static, u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::RwLockWriteGuard::downgrade(any::<
                    $rt::sync::RwLockWriteGuard<'static, u8>,
                >());
                let _ = $rt::sync::RwLockWriteGuard::downgrade_map(
                    any::<$rt::sync::RwLockWriteGuard<'static, u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::RwLockWriteGuard::into_mapped(any::<
                    $rt::sync::RwLockWriteGuard<'static, u8>,
                >());
                let _ = $rt::sync::RwLockWriteGuard::map(
                    any::<$rt::sync::RwLockWriteGuard<'static, u8>>(),
                    |value| value,
                );
                let _ = $rt::sync::RwLockWriteGuard::try_downgrade_map(
                    any::<$rt::sync::RwLockWriteGuard<'static, u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::RwLockWriteGuard::try_map(
                    any::<$rt::sync::RwLockWriteGuard<'static, u8>>(),
                    |value| Some(value),
                );
                let _ = $rt::sync::Semaphore::MAX_PERMITS;
                let _ = $rt::sync::Semaphore::acquire(any::<&$rt::sync::Semaphore>());
                let _ = $rt::sync::Semaphore::acquire_many(any::<&$rt::sync::Semaphore>(), 1);
                let _ =
                    $rt::sync::Semaphore::acquire_many_owned(any::<Arc<$rt::sync::Semaphore>>(), 1);
                let _ = $rt::sync::Semaphore::acquire_owned(any::<Arc<$rt::sync::Semaphore>>());
                let _ = $rt::sync::Semaphore::add_permits(any::<&$rt::sync::Semaphore>(), 1);
                let _ = $rt::sync::Semaphore::available_permits(any::<&$rt::sync::Semaphore>());
                let _ = $rt::sync::Semaphore::blocking_acquire(any::<&$rt::sync::Semaphore>());
                let _ =
                    $rt::sync::Semaphore::blocking_acquire_many(any::<&$rt::sync::Semaphore>(), 1);
                let _ = $rt::sync::Semaphore::blocking_acquire_many_owned(
                    any::<Arc<$rt::sync::Semaphore>>(),
                    1,
                );
                let _ = $rt::sync::Semaphore::blocking_acquire_owned(any::<
                    Arc<$rt::sync::Semaphore>,
                >());
                let _ = $rt::sync::Semaphore::close(any::<&$rt::sync::Semaphore>());
                let _ = $rt::sync::Semaphore::const_new(1);
                let _ = $rt::sync::Semaphore::forget_permits(any::<&$rt::sync::Semaphore>(), 1);
                let _ = $rt::sync::Semaphore::is_closed(any::<&$rt::sync::Semaphore>());
                let _ = $rt::sync::Semaphore::new(1);
                let _ = $rt::sync::Semaphore::try_acquire(any::<&$rt::sync::Semaphore>());
                let _ = $rt::sync::Semaphore::try_acquire_many(any::<&$rt::sync::Semaphore>(), 1);
                let _ = $rt::sync::Semaphore::try_acquire_many_owned(
                    any::<Arc<$rt::sync::Semaphore>>(),
                    1,
                );
                let _ = $rt::sync::Semaphore::try_acquire_owned(any::<Arc<$rt::sync::Semaphore>>());
                let _ = $rt::sync::SemaphorePermit::forget(any::<
                    $rt::sync::SemaphorePermit<'static>,
                >());
                let _ = $rt::sync::SemaphorePermit::merge(
                    any::<&mut $rt::sync::SemaphorePermit<'static>>(),
                    any(),
                );
                let _ = $rt::sync::SemaphorePermit::num_permits(any::<
                    &$rt::sync::SemaphorePermit<'static>,
                >());
                let _ = $rt::sync::SemaphorePermit::semaphore(any::<
                    &$rt::sync::SemaphorePermit<'static>,
                >());
                let _ = $rt::sync::SemaphorePermit::split(
                    any::<&mut $rt::sync::SemaphorePermit<'static>>(),
                    1,
                );
                let _ = $rt::sync::SetError::is_already_init_err(any::<&$rt::sync::SetError<u8>>());
                let _ = $rt::sync::SetError::is_initializing_err(any::<&$rt::sync::SetError<u8>>());
                let _: $rt::sync::SetOnce<u8> = $rt::sync::SetOnce::const_new();
                let _ = $rt::sync::SetOnce::const_new_with(1_u8);
                let _ = $rt::sync::SetOnce::get(any::<&$rt::sync::SetOnce<u8>>());
                let _ = $rt::sync::SetOnce::initialized(any::<&$rt::sync::SetOnce<u8>>());
                let _ = $rt::sync::SetOnce::into_inner(any::<$rt::sync::SetOnce<u8>>());
                let _: $rt::sync::SetOnce<u8> = $rt::sync::SetOnce::new();
                let _ = $rt::sync::SetOnce::new_with(Some(1_u8));
                let _ = $rt::sync::SetOnce::set(any::<&$rt::sync::SetOnce<u8>>(), 1);
                let _ = $rt::sync::SetOnce::wait(any::<&$rt::sync::SetOnce<u8>>());
                let _ = $rt::sync::broadcast::Receiver::is_closed(any::<
                    &$rt::sync::broadcast::Receiver<u8>,
                >());
                let _ = $rt::sync::broadcast::Receiver::is_empty(any::<
                    &$rt::sync::broadcast::Receiver<u8>,
                >());
                let _ = $rt::sync::broadcast::Receiver::len(any::<
                    &$rt::sync::broadcast::Receiver<u8>,
                >());
                let _ = $rt::sync::broadcast::Receiver::recv(any::<
                    &mut $rt::sync::broadcast::Receiver<u8>,
                >());
                let _ = $rt::sync::broadcast::Receiver::resubscribe(any::<
                    &$rt::sync::broadcast::Receiver<u8>,
                >());
                let _ = $rt::sync::broadcast::Receiver::same_channel(
                    any::<&$rt::sync::broadcast::Receiver<u8>>(),
                    any(),
                );
                let _ = $rt::sync::broadcast::Receiver::sender_strong_count(any::<
                    &$rt::sync::broadcast::Receiver<u8>,
                >());
                let _ = $rt::sync::broadcast::Receiver::sender_weak_count(any::<
                    &$rt::sync::broadcast::Receiver<u8>,
                >());
                let _ = $rt::sync::broadcast::Receiver::try_recv(any::<
                    &mut $rt::sync::broadcast::Receiver<u8>,
                >());
                let _ = $rt::sync::broadcast::Sender::closed(any::<
                    &$rt::sync::broadcast::Sender<u8>,
                >());
                let _ = $rt::sync::broadcast::Sender::downgrade(any::<
                    &$rt::sync::broadcast::Sender<u8>,
                >());
                let _ = $rt::sync::broadcast::Sender::is_empty(any::<
                    &$rt::sync::broadcast::Sender<u8>,
                >());
                let _ =
                    $rt::sync::broadcast::Sender::len(any::<&$rt::sync::broadcast::Sender<u8>>());
                let _: $rt::sync::broadcast::Sender<u8> = $rt::sync::broadcast::Sender::new(1);
                let _ = $rt::sync::broadcast::Sender::receiver_count(any::<
                    &$rt::sync::broadcast::Sender<u8>,
                >());
                let _ = $rt::sync::broadcast::Sender::same_channel(
                    any::<&$rt::sync::broadcast::Sender<u8>>(),
                    any(),
                );
                let _ = $rt::sync::broadcast::Sender::send(
                    any::<&$rt::sync::broadcast::Sender<u8>>(),
                    1,
                );
                let _ = $rt::sync::broadcast::Sender::strong_count(any::<
                    &$rt::sync::broadcast::Sender<u8>,
                >());
                let _ = $rt::sync::broadcast::Sender::subscribe(any::<
                    &$rt::sync::broadcast::Sender<u8>,
                >());
                let _ = $rt::sync::broadcast::Sender::weak_count(any::<
                    &$rt::sync::broadcast::Sender<u8>,
                >());
                let _ = $rt::sync::broadcast::WeakSender::strong_count(any::<
                    &$rt::sync::broadcast::WeakSender<u8>,
                >());
                let _ = $rt::sync::broadcast::WeakSender::upgrade(any::<
                    &$rt::sync::broadcast::WeakSender<u8>,
                >());
                let _ = $rt::sync::broadcast::WeakSender::weak_count(any::<
                    &$rt::sync::broadcast::WeakSender<u8>,
                >());
                let _: (
                    $rt::sync::broadcast::Sender<u8>,
                    $rt::sync::broadcast::Receiver<u8>,
                ) = $rt::sync::broadcast::channel(1);
                let _ = $rt::sync::futures::Notified::enable(any::<
                    Pin<&mut $rt::sync::futures::Notified<'static>>,
                >());
                let _ = $rt::sync::futures::OwnedNotified::enable(any::<
                    Pin<&mut $rt::sync::futures::OwnedNotified>,
                >());
                let _ = $rt::sync::mpsc::OwnedPermit::release(any::<
                    $rt::sync::mpsc::OwnedPermit<u8>,
                >());
                let _ = $rt::sync::mpsc::OwnedPermit::same_channel(
                    any::<&$rt::sync::mpsc::OwnedPermit<u8>>(),
                    any(),
                );
                let _ = $rt::sync::mpsc::OwnedPermit::same_channel_as_sender(
                    any::<&$rt::sync::mpsc::OwnedPermit<u8>>(),
                    any(),
                );
                let _ =
                    $rt::sync::mpsc::Receiver::capacity(any::<&$rt::sync::mpsc::Receiver<u8>>());
                let _ =
                    $rt::sync::mpsc::Receiver::close(any::<&mut $rt::sync::mpsc::Receiver<u8>>());
                let _ =
                    $rt::sync::mpsc::Receiver::is_closed(any::<&$rt::sync::mpsc::Receiver<u8>>());
                let _ =
                    $rt::sync::mpsc::Receiver::is_empty(any::<&$rt::sync::mpsc::Receiver<u8>>());
                let _ = $rt::sync::mpsc::Receiver::len(any::<&$rt::sync::mpsc::Receiver<u8>>());
                let _ = $rt::sync::mpsc::Receiver::max_capacity(any::<
                    &$rt::sync::mpsc::Receiver<u8>,
                >());
                let _ = $rt::sync::mpsc::Receiver::poll_recv(
                    any::<&mut $rt::sync::mpsc::Receiver<u8>>(),
                    any(),
                );
                let _ = $rt::sync::mpsc::Receiver::poll_recv_many(
                    any::<&mut $rt::sync::mpsc::Receiver<u8>>(),
                    any(),
                    any(),
                    1,
                );
                let _ =
                    $rt::sync::mpsc::Receiver::recv(any::<&mut $rt::sync::mpsc::Receiver<u8>>());
                let _ = $rt::sync::mpsc::Receiver::recv_many(
                    any::<&mut $rt::sync::mpsc::Receiver<u8>>(),
                    any(),
                    1,
                );
                let _ = $rt::sync::mpsc::Receiver::sender_strong_count(any::<
                    &$rt::sync::mpsc::Receiver<u8>,
                >());
                let _ = $rt::sync::mpsc::Receiver::sender_weak_count(any::<
                    &$rt::sync::mpsc::Receiver<u8>,
                >());
                let _ = $rt::sync::mpsc::Receiver::try_recv(any::<
                    &mut $rt::sync::mpsc::Receiver<u8>,
                >());
                let _ = $rt::sync::mpsc::Sender::capacity(any::<&$rt::sync::mpsc::Sender<u8>>());
                let _ = $rt::sync::mpsc::Sender::closed(any::<&$rt::sync::mpsc::Sender<u8>>());
                let _ = $rt::sync::mpsc::Sender::downgrade(any::<&$rt::sync::mpsc::Sender<u8>>());
                let _ = $rt::sync::mpsc::Sender::is_closed(any::<&$rt::sync::mpsc::Sender<u8>>());
                let _ =
                    $rt::sync::mpsc::Sender::max_capacity(any::<&$rt::sync::mpsc::Sender<u8>>());
                let _ = $rt::sync::mpsc::Sender::reserve(any::<&$rt::sync::mpsc::Sender<u8>>());
                let _ =
                    $rt::sync::mpsc::Sender::reserve_many(any::<&$rt::sync::mpsc::Sender<u8>>(), 1);
                let _ =
                    $rt::sync::mpsc::Sender::reserve_owned(any::<$rt::sync::mpsc::Sender<u8>>());
                let _ = $rt::sync::mpsc::Sender::same_channel(
                    any::<&$rt::sync::mpsc::Sender<u8>>(),
                    any(),
                );
                let _ = $rt::sync::mpsc::Receiver::blocking_recv(any::<
                    &mut $rt::sync::mpsc::Receiver<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedReceiver::blocking_recv(any::<
                    &mut $rt::sync::mpsc::UnboundedReceiver<u8>,
                >());
                let _ = $rt::sync::broadcast::Receiver::blocking_recv(any::<
                    &mut $rt::sync::broadcast::Receiver<u8>,
                >());
                let _ = $rt::sync::mpsc::Receiver::blocking_recv_many(
                    any::<&mut $rt::sync::mpsc::Receiver<u8>>(),
                    any(),
                    1,
                );
                let _ = $rt::sync::mpsc::UnboundedReceiver::blocking_recv_many(
                    any::<&mut $rt::sync::mpsc::UnboundedReceiver<u8>>(),
                    any(),
                    1,
                );
                let _ = $rt::sync::mpsc::Sender::blocking_send(
                    any::<&$rt::sync::mpsc::Sender<u8>>(),
                    1,
                );
                let _ = $rt::sync::oneshot::Receiver::blocking_recv(any::<
                    $rt::sync::oneshot::Receiver<u8>,
                >());
                let _ = $rt::sync::Mutex::blocking_lock(any::<&$rt::sync::Mutex<u8>>());
                let _ = $rt::sync::Mutex::blocking_lock_owned(any::<Arc<$rt::sync::Mutex<u8>>>());
                let _ = $rt::sync::RwLock::blocking_read(any::<&$rt::sync::RwLock<u8>>());
                let _ = $rt::sync::RwLock::blocking_write(any::<&$rt::sync::RwLock<u8>>());
                let _ = $rt::sync::mpsc::Sender::send(any::<&$rt::sync::mpsc::Sender<u8>>(), 1);
                let _ = $rt::sync::mpsc::Sender::send_timeout(
                    any::<&$rt::sync::mpsc::Sender<u8>>(),
                    1,
                    std::time::Duration::ZERO,
                );
                let _ =
                    $rt::sync::mpsc::Sender::strong_count(any::<&$rt::sync::mpsc::Sender<u8>>());
                let _ = $rt::sync::mpsc::Sender::try_reserve(any::<&$rt::sync::mpsc::Sender<u8>>());
                let _ = $rt::sync::mpsc::Sender::try_reserve_many(
                    any::<&$rt::sync::mpsc::Sender<u8>>(),
                    1,
                );
                let _ = $rt::sync::mpsc::Sender::try_reserve_owned(any::<
                    $rt::sync::mpsc::Sender<u8>,
                >());
                let _ = $rt::sync::mpsc::Sender::try_send(any::<&$rt::sync::mpsc::Sender<u8>>(), 1);
                let _ = $rt::sync::mpsc::Sender::weak_count(any::<&$rt::sync::mpsc::Sender<u8>>());
                let _ = $rt::sync::mpsc::UnboundedReceiver::close(any::<
                    &mut $rt::sync::mpsc::UnboundedReceiver<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedReceiver::is_closed(any::<
                    &$rt::sync::mpsc::UnboundedReceiver<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedReceiver::is_empty(any::<
                    &$rt::sync::mpsc::UnboundedReceiver<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedReceiver::len(any::<
                    &$rt::sync::mpsc::UnboundedReceiver<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedReceiver::poll_recv(
                    any::<&mut $rt::sync::mpsc::UnboundedReceiver<u8>>(),
                    any(),
                );
                let _ = $rt::sync::mpsc::UnboundedReceiver::poll_recv_many(
                    any::<&mut $rt::sync::mpsc::UnboundedReceiver<u8>>(),
                    any(),
                    any(),
                    1,
                );
                let _ = $rt::sync::mpsc::UnboundedReceiver::recv(any::<
                    &mut $rt::sync::mpsc::UnboundedReceiver<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedReceiver::recv_many(
                    any::<&mut $rt::sync::mpsc::UnboundedReceiver<u8>>(),
                    any(),
                    1,
                );
                let _ = $rt::sync::mpsc::UnboundedReceiver::sender_strong_count(any::<
                    &$rt::sync::mpsc::UnboundedReceiver<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedReceiver::sender_weak_count(any::<
                    &$rt::sync::mpsc::UnboundedReceiver<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedReceiver::try_recv(any::<
                    &mut $rt::sync::mpsc::UnboundedReceiver<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedSender::closed(any::<
                    &$rt::sync::mpsc::UnboundedSender<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedSender::downgrade(any::<
                    &$rt::sync::mpsc::UnboundedSender<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedSender::is_closed(any::<
                    &$rt::sync::mpsc::UnboundedSender<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedSender::same_channel(
                    any::<&$rt::sync::mpsc::UnboundedSender<u8>>(),
                    any(),
                );
                let _ = $rt::sync::mpsc::UnboundedSender::send(
                    any::<&$rt::sync::mpsc::UnboundedSender<u8>>(),
                    1,
                );
                let _ = $rt::sync::mpsc::UnboundedSender::strong_count(any::<
                    &$rt::sync::mpsc::UnboundedSender<u8>,
                >());
                let _ = $rt::sync::mpsc::UnboundedSender::weak_count(any::<
                    &$rt::sync::mpsc::UnboundedSender<u8>,
                >());
                let _ = $rt::sync::mpsc::WeakSender::strong_count(any::<
                    &$rt::sync::mpsc::WeakSender<u8>,
                >());
                let _ =
                    $rt::sync::mpsc::WeakSender::upgrade(any::<&$rt::sync::mpsc::WeakSender<u8>>());
                let _ = $rt::sync::mpsc::WeakSender::weak_count(any::<
                    &$rt::sync::mpsc::WeakSender<u8>,
                >());
                let _ = $rt::sync::mpsc::WeakUnboundedSender::strong_count(any::<
                    &$rt::sync::mpsc::WeakUnboundedSender<u8>,
                >());
                let _ = $rt::sync::mpsc::WeakUnboundedSender::upgrade(any::<
                    &$rt::sync::mpsc::WeakUnboundedSender<u8>,
                >());
                let _ = $rt::sync::mpsc::WeakUnboundedSender::weak_count(any::<
                    &$rt::sync::mpsc::WeakUnboundedSender<u8>,
                >());
                let _: ($rt::sync::mpsc::Sender<u8>, $rt::sync::mpsc::Receiver<u8>) =
                    $rt::sync::mpsc::channel(1);
                let _ = $rt::sync::mpsc::error::SendTimeoutError::into_inner(any::<
                    $rt::sync::mpsc::error::SendTimeoutError<u8>,
                >());
                let _ = $rt::sync::mpsc::error::TrySendError::into_inner(any::<
                    $rt::sync::mpsc::error::TrySendError<u8>,
                >());
                let _: (
                    $rt::sync::mpsc::UnboundedSender<u8>,
                    $rt::sync::mpsc::UnboundedReceiver<u8>,
                ) = $rt::sync::mpsc::unbounded_channel();
                let _ = $rt::sync::oneshot::Receiver::close(any::<
                    &mut $rt::sync::oneshot::Receiver<u8>,
                >());
                let _ = $rt::sync::oneshot::Receiver::is_empty(any::<
                    &$rt::sync::oneshot::Receiver<u8>,
                >());
                let _ = $rt::sync::oneshot::Receiver::is_terminated(any::<
                    &$rt::sync::oneshot::Receiver<u8>,
                >());
                let _ = $rt::sync::oneshot::Receiver::try_recv(any::<
                    &mut $rt::sync::oneshot::Receiver<u8>,
                >());
                let _ = $rt::sync::oneshot::Sender::closed(any::<
                    &mut $rt::sync::oneshot::Sender<u8>,
                >());
                let _ =
                    $rt::sync::oneshot::Sender::is_closed(any::<&$rt::sync::oneshot::Sender<u8>>());
                let _ = $rt::sync::oneshot::Sender::poll_closed(
                    any::<&mut $rt::sync::oneshot::Sender<u8>>(),
                    any(),
                );
                let _ =
                    $rt::sync::oneshot::Sender::send(any::<$rt::sync::oneshot::Sender<u8>>(), 1);
                let _: (
                    $rt::sync::oneshot::Sender<u8>,
                    $rt::sync::oneshot::Receiver<u8>,
                ) = $rt::sync::oneshot::channel();
                let _ =
                    $rt::sync::watch::Receiver::borrow(any::<&$rt::sync::watch::Receiver<u8>>());
                let _ = $rt::sync::watch::Receiver::borrow_and_update(any::<
                    &mut $rt::sync::watch::Receiver<u8>,
                >());
                let _ = $rt::sync::watch::Receiver::changed(any::<
                    &mut $rt::sync::watch::Receiver<u8>,
                >());
                let _ = $rt::sync::watch::Receiver::has_changed(any::<
                    &$rt::sync::watch::Receiver<u8>,
                >());
                let _ =
                    $rt::sync::watch::Receiver::is_closed(any::<&$rt::sync::watch::Receiver<u8>>());
                let _ = $rt::sync::watch::Receiver::mark_changed(any::<
                    &mut $rt::sync::watch::Receiver<u8>,
                >());
                let _ = $rt::sync::watch::Receiver::mark_unchanged(any::<
                    &mut $rt::sync::watch::Receiver<u8>,
                >());
                let _ = $rt::sync::watch::Receiver::same_channel(
                    any::<&$rt::sync::watch::Receiver<u8>>(),
                    any(),
                );
                let _ = $rt::sync::watch::Receiver::wait_for(
                    any::<&mut $rt::sync::watch::Receiver<u8>>(),
                    |_| true,
                );
                let _ = $rt::sync::watch::Ref::has_changed(any::<
                    &$rt::sync::watch::Ref<'static, u8>,
                >());
                let _ = $rt::sync::watch::Sender::borrow(any::<&$rt::sync::watch::Sender<u8>>());
                let _ = $rt::sync::watch::Sender::closed(any::<&$rt::sync::watch::Sender<u8>>());
                let _ = $rt::sync::watch::Sender::is_closed(any::<&$rt::sync::watch::Sender<u8>>());
                let _ = $rt::sync::watch::Sender::new(1_u8);
                let _ = $rt::sync::watch::Sender::receiver_count(any::<
                    &$rt::sync::watch::Sender<u8>,
                >());
                let _ = $rt::sync::watch::Sender::same_channel(
                    any::<&$rt::sync::watch::Sender<u8>>(),
                    any(),
                );
                let _ = $rt::sync::watch::Sender::send(any::<&$rt::sync::watch::Sender<u8>>(), 1);
                let _ = $rt::sync::watch::Sender::send_if_modified(
                    any::<&$rt::sync::watch::Sender<u8>>(),
                    |_| true,
                );
                let _ = $rt::sync::watch::Sender::send_modify(
                    any::<&$rt::sync::watch::Sender<u8>>(),
                    |_| (),
                );
                let _ = $rt::sync::watch::Sender::send_replace(
                    any::<&$rt::sync::watch::Sender<u8>>(),
                    1,
                );
                let _ =
                    $rt::sync::watch::Sender::sender_count(any::<&$rt::sync::watch::Sender<u8>>());
                let _ = $rt::sync::watch::Sender::subscribe(any::<&$rt::sync::watch::Sender<u8>>());
                let _: ($rt::sync::watch::Sender<u8>, $rt::sync::watch::Receiver<u8>) =
                    $rt::sync::watch::channel(1_u8);
            }
        }
    };
}

same!(theirs, tokio);
same!(ours, selvedge);

#[test]
fn same_items_of_sync_compile_against_both_crates() {
    let both: [fn(); 2] = [theirs::calls, ours::calls];
    assert_ne!(both[0] as usize, both[1] as usize);
}
