//! The crates that are compared, as types with a name, and traits for what a workload calls.
use std::{
    future::Future,
    ops::{Deref, DerefMut},
    sync::Arc,
};

/// A crate of channels or locks.
pub(crate) trait Peer: 'static {
    const NAME: &str;
}

macro_rules! peers {
    ($($peer:ident $name:literal,)*) => {$(
        pub(crate) struct $peer;

        impl Peer for $peer {
            const NAME: &str = $name;
        }
    )*};
}

peers! {
    Ours "task-sync",
    Tokio "tokio",
    AsyncChannel "async-channel",
    Flume "flume",
    Kanal "kanal",
    AsyncLock "async-lock",
    Futures "futures",
}

/// A channel with many senders. The receiver is one, or is cloned.
pub(crate) trait Channel: Peer {
    type Sender<T: Send + 'static>: Clone + Send + Sync + 'static;
    type Receiver<T: Send + 'static>: Send + 'static;

    fn bounded<T: Send + 'static>(capacity: usize) -> (Self::Sender<T>, Self::Receiver<T>);
    fn unbounded<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>);
    /// Sends, and waits for room.
    fn send<T: Send + 'static>(to: &Self::Sender<T>, message: T)
    -> impl Future<Output = ()> + Send;
    fn receive<T: Send + 'static>(
        from: &mut Self::Receiver<T>,
    ) -> impl Future<Output = Option<T>> + Send;
}

/// A channel whose messages are shared out among many receivers.
pub(crate) trait Shared: Channel {
    type Consumer<T: Send + 'static>: Clone + Send + Sync + 'static;

    fn share<T: Send + 'static>(receiver: Self::Receiver<T>) -> Self::Consumer<T>;
    fn consume<T: Send + 'static>(
        from: &mut Self::Consumer<T>,
    ) -> impl Future<Output = Option<T>> + Send;
}

/// An unbounded channel and a bounded one with tokio's names, in one type each.
pub(crate) enum Either<B, U> {
    Bounded(B),
    Unbounded(U),
}

impl<B: Clone, U: Clone> Clone for Either<B, U> {
    fn clone(&self) -> Self {
        match self {
            Self::Bounded(one) => Self::Bounded(one.clone()),
            Self::Unbounded(one) => Self::Unbounded(one.clone()),
        }
    }
}

macro_rules! as_tokio {
    ($peer:ident, $sync:path) => {
        const _: () = {
            use $sync as sync;

            impl Channel for $peer {
                type Sender<T: Send + 'static> =
                    Either<sync::mpsc::Sender<T>, sync::mpsc::UnboundedSender<T>>;
                type Receiver<T: Send + 'static> =
                    Either<sync::mpsc::Receiver<T>, sync::mpsc::UnboundedReceiver<T>>;

                fn bounded<T: Send + 'static>(
                    capacity: usize,
                ) -> (Self::Sender<T>, Self::Receiver<T>) {
                    let (sender, receiver) = sync::mpsc::channel(capacity);
                    (Either::Bounded(sender), Either::Bounded(receiver))
                }

                fn unbounded<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
                    let (sender, receiver) = sync::mpsc::unbounded_channel();
                    (Either::Unbounded(sender), Either::Unbounded(receiver))
                }

                async fn send<T: Send + 'static>(to: &Self::Sender<T>, message: T) {
                    let sent = match to {
                        Either::Bounded(to) => to.send(message).await.is_ok(),
                        Either::Unbounded(to) => to.send(message).is_ok(),
                    };
                    assert!(sent);
                }

                async fn receive<T: Send + 'static>(from: &mut Self::Receiver<T>) -> Option<T> {
                    match from {
                        Either::Bounded(from) => from.recv().await,
                        Either::Unbounded(from) => from.recv().await,
                    }
                }
            }

            // Neither has a channel of many receivers: they share the receiver under the crate's
            // own lock, which the waiting one holds.
            impl Shared for $peer {
                type Consumer<T: Send + 'static> = Arc<sync::Mutex<Self::Receiver<T>>>;

                fn share<T: Send + 'static>(receiver: Self::Receiver<T>) -> Self::Consumer<T> {
                    Arc::new(sync::Mutex::new(receiver))
                }

                async fn consume<T: Send + 'static>(from: &mut Self::Consumer<T>) -> Option<T> {
                    Self::receive(&mut *from.lock().await).await
                }
            }

            impl Oneshot for $peer {
                type Sender<T: Send + 'static> = sync::oneshot::Sender<T>;
                type Receiver<T: Send + 'static> = sync::oneshot::Receiver<T>;

                fn oneshot<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
                    sync::oneshot::channel()
                }

                async fn send_once<T: Send + 'static>(to: Self::Sender<T>, value: T) {
                    assert!(to.send(value).is_ok());
                }

                async fn receive_once<T: Send + 'static>(from: Self::Receiver<T>) -> Option<T> {
                    from.await.ok()
                }
            }

            impl Locks for $peer {
                type Mutex = sync::Mutex<u64>;
                type RwLock = sync::RwLock<u64>;
                type Semaphore = sync::Semaphore;

                fn mutex() -> Self::Mutex {
                    sync::Mutex::new(0)
                }

                fn rwlock() -> Self::RwLock {
                    sync::RwLock::new(0)
                }

                fn semaphore(permits: usize) -> Self::Semaphore {
                    sync::Semaphore::new(permits)
                }

                async fn lock(mutex: &Self::Mutex) -> impl DerefMut<Target = u64> + Send {
                    mutex.lock().await
                }

                async fn read(lock: &Self::RwLock) -> impl Deref<Target = u64> + Send {
                    lock.read().await
                }

                async fn write(lock: &Self::RwLock) -> impl DerefMut<Target = u64> + Send {
                    lock.write().await
                }

                async fn acquire(semaphore: &Self::Semaphore) -> impl Send {
                    semaphore.acquire().await.expect("nobody closes it")
                }
            }

            impl Signals for $peer {
                type Broadcast = sync::broadcast::Sender<u64>;
                type Listener = sync::broadcast::Receiver<u64>;
                type Watch = sync::watch::Sender<u64>;
                type Watcher = sync::watch::Receiver<u64>;
                type Notify = sync::Notify;

                fn broadcast(capacity: usize) -> Self::Broadcast {
                    sync::broadcast::channel(capacity).0
                }

                fn subscribe(to: &Self::Broadcast) -> Self::Listener {
                    to.subscribe()
                }

                fn cast(to: &Self::Broadcast, message: u64) {
                    assert!(to.send(message).is_ok());
                }

                async fn listen(from: &mut Self::Listener) -> Option<u64> {
                    from.recv().await.ok()
                }

                fn watch() -> (Self::Watch, Self::Watcher) {
                    sync::watch::channel(0)
                }

                fn show(to: &Self::Watch, value: u64) {
                    assert!(to.send(value).is_ok());
                }

                async fn see(from: &mut Self::Watcher) -> Option<u64> {
                    from.changed().await.ok()?;
                    Some(*from.borrow_and_update())
                }

                fn notify() -> Self::Notify {
                    sync::Notify::new()
                }

                fn notify_one(notify: &Self::Notify) {
                    notify.notify_one();
                }

                async fn notified(notify: &Self::Notify) {
                    notify.notified().await;
                }
            }
        };
    };
}

as_tokio!(Ours, selvedge::sync);
as_tokio!(Tokio, tokio::sync);

macro_rules! channel {
    ($peer:ident, $Sender:path, $Receiver:path, $bounded:path, $unbounded:path, $send:ident,
     $receive:ident) => {
        const _: () = {
            use $Receiver as Rx;
            use $Sender as Tx;
            impl Channel for $peer {
                type Sender<T: Send + 'static> = Tx<T>;
                type Receiver<T: Send + 'static> = Rx<T>;

                fn bounded<T: Send + 'static>(
                    capacity: usize,
                ) -> (Self::Sender<T>, Self::Receiver<T>) {
                    $bounded(capacity)
                }

                fn unbounded<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
                    $unbounded()
                }

                async fn send<T: Send + 'static>(to: &Self::Sender<T>, message: T) {
                    assert!(to.$send(message).await.is_ok());
                }

                async fn receive<T: Send + 'static>(from: &mut Self::Receiver<T>) -> Option<T> {
                    from.$receive().await.ok()
                }
            }

            impl Shared for $peer {
                type Consumer<T: Send + 'static> = Rx<T>;

                fn share<T: Send + 'static>(receiver: Self::Receiver<T>) -> Self::Consumer<T> {
                    receiver
                }

                async fn consume<T: Send + 'static>(from: &mut Self::Consumer<T>) -> Option<T> {
                    from.$receive().await.ok()
                }
            }

            // A channel of one place stands in for a oneshot, which the crate has none of.
            impl Oneshot for $peer {
                type Sender<T: Send + 'static> = Tx<T>;
                type Receiver<T: Send + 'static> = Rx<T>;

                fn oneshot<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
                    $bounded(1)
                }

                async fn send_once<T: Send + 'static>(to: Self::Sender<T>, value: T) {
                    assert!(to.$send(value).await.is_ok());
                }

                async fn receive_once<T: Send + 'static>(from: Self::Receiver<T>) -> Option<T> {
                    from.$receive().await.ok()
                }
            }
        };
    };
}

channel!(
    AsyncChannel,
    async_channel::Sender,
    async_channel::Receiver,
    async_channel::bounded,
    async_channel::unbounded,
    send,
    recv
);
channel!(
    Flume,
    flume::Sender,
    flume::Receiver,
    flume::bounded,
    flume::unbounded,
    send_async,
    recv_async
);
channel!(
    Kanal,
    kanal::AsyncSender,
    kanal::AsyncReceiver,
    kanal::bounded_async,
    kanal::unbounded_async,
    send,
    recv
);

/// A channel for one value.
pub(crate) trait Oneshot: Peer {
    type Sender<T: Send + 'static>: Send + 'static;
    type Receiver<T: Send + 'static>: Send + 'static;

    fn oneshot<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>);
    fn send_once<T: Send + 'static>(
        to: Self::Sender<T>,
        value: T,
    ) -> impl Future<Output = ()> + Send;
    fn receive_once<T: Send + 'static>(
        from: Self::Receiver<T>,
    ) -> impl Future<Output = Option<T>> + Send;
}

impl Oneshot for Futures {
    type Sender<T: Send + 'static> = futures::channel::oneshot::Sender<T>;
    type Receiver<T: Send + 'static> = futures::channel::oneshot::Receiver<T>;

    fn oneshot<T: Send + 'static>() -> (Self::Sender<T>, Self::Receiver<T>) {
        futures::channel::oneshot::channel()
    }

    async fn send_once<T: Send + 'static>(to: Self::Sender<T>, value: T) {
        assert!(to.send(value).is_ok());
    }

    async fn receive_once<T: Send + 'static>(from: Self::Receiver<T>) -> Option<T> {
        from.await.ok()
    }
}

/// Locks that a task may hold while it waits.
pub(crate) trait Locks: Peer {
    type Mutex: Send + Sync + 'static;
    type RwLock: Send + Sync + 'static;
    type Semaphore: Send + Sync + 'static;

    fn mutex() -> Self::Mutex;
    fn rwlock() -> Self::RwLock;
    fn semaphore(permits: usize) -> Self::Semaphore;
    fn lock(mutex: &Self::Mutex)
    -> impl Future<Output = impl DerefMut<Target = u64> + Send> + Send;
    fn read(lock: &Self::RwLock) -> impl Future<Output = impl Deref<Target = u64> + Send> + Send;
    fn write(
        lock: &Self::RwLock,
    ) -> impl Future<Output = impl DerefMut<Target = u64> + Send> + Send;
    fn acquire(semaphore: &Self::Semaphore) -> impl Future<Output = impl Send> + Send;
}

impl Locks for AsyncLock {
    type Mutex = async_lock::Mutex<u64>;
    type RwLock = async_lock::RwLock<u64>;
    type Semaphore = async_lock::Semaphore;

    fn mutex() -> Self::Mutex {
        async_lock::Mutex::new(0)
    }

    fn rwlock() -> Self::RwLock {
        async_lock::RwLock::new(0)
    }

    fn semaphore(permits: usize) -> Self::Semaphore {
        async_lock::Semaphore::new(permits)
    }

    async fn lock(mutex: &Self::Mutex) -> impl DerefMut<Target = u64> + Send {
        mutex.lock().await
    }

    async fn read(lock: &Self::RwLock) -> impl Deref<Target = u64> + Send {
        lock.read().await
    }

    async fn write(lock: &Self::RwLock) -> impl DerefMut<Target = u64> + Send {
        lock.write().await
    }

    async fn acquire(semaphore: &Self::Semaphore) -> impl Send {
        semaphore.acquire().await
    }
}

/// Messages to all, the last value, and wakes without a value.
pub(crate) trait Signals: Peer {
    type Broadcast: Send + Sync + 'static;
    type Listener: Send + 'static;
    type Watch: Send + Sync + 'static;
    type Watcher: Clone + Send + 'static;
    type Notify: Send + Sync + 'static;

    fn broadcast(capacity: usize) -> Self::Broadcast;
    fn subscribe(to: &Self::Broadcast) -> Self::Listener;
    fn cast(to: &Self::Broadcast, message: u64);
    fn listen(from: &mut Self::Listener) -> impl Future<Output = Option<u64>> + Send;
    fn watch() -> (Self::Watch, Self::Watcher);
    fn show(to: &Self::Watch, value: u64);
    fn see(from: &mut Self::Watcher) -> impl Future<Output = Option<u64>> + Send;
    fn notify() -> Self::Notify;
    fn notify_one(notify: &Self::Notify);
    fn notified(notify: &Self::Notify) -> impl Future<Output = ()> + Send;
}
