//! The workloads. `n` is the number of operations, of which the function's first line says what
//! one is. Each workload spawns its tasks within the sample: at least a hundred operations share
//! the cost of a spawn.
use crate::{
    peers::{Channel, Locks, Oneshot, Shared, Signals},
    runtimes::Rt,
};
use futures::task::AtomicWaker;
use std::{
    future::poll_fn,
    hint::black_box,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::AcqRel, Ordering::Acquire},
    },
    task::Poll,
};

/// The capacity of the bounded channels.
pub(crate) const CAPACITY: usize = 100;

/// Runs this many tasks, and waits for their ends.
async fn all<R: Rt, F: Future<Output = ()> + Send + 'static>(
    tasks: u64,
    work: impl Fn(u64) -> F + Send,
) {
    let ends: Vec<_> = (0..tasks).map(|number| R::spawn(work(number))).collect();
    for end in ends {
        end.await;
    }
}

/// A message. The senders of an unbounded channel yield after 256 of them: their sends never wait.
pub(crate) async fn mpsc<R: Rt, C: Channel>(senders: u64, is_bounded: bool, n: u64) {
    let (sender, mut receiver) = match is_bounded {
        true => C::bounded(CAPACITY),
        false => C::unbounded(),
    };
    for _ in 0..senders {
        let sender = sender.clone();
        // A task whose end is dropped runs on.
        drop(R::spawn(async move {
            for number in 0..n / senders {
                C::send(&sender, number).await;
                if !is_bounded && number % 256 == 255 {
                    R::yield_now().await;
                }
            }
        }));
    }
    drop(sender);
    let mut count = 0;
    while C::receive(&mut receiver).await.is_some() {
        count += 1;
    }
    assert_eq!(count, n / senders * senders);
}

/// A message from one of 8 senders to one of 8 receivers.
pub(crate) async fn mpmc<R: Rt, C: Shared>(n: u64) {
    let (sender, receiver) = C::bounded(CAPACITY);
    for _ in 0..8 {
        let sender = sender.clone();
        drop(R::spawn(async move {
            for number in 0..n / 8 {
                C::send(&sender, number).await;
            }
        }));
    }
    drop(sender);
    let count = Arc::new(AtomicU64::new(0));
    let consumer = C::share(receiver);
    let consume = |_| {
        let (mut consumer, count) = (consumer.clone(), count.clone());
        async move {
            let mut own = 0;
            while C::consume(&mut consumer).await.is_some() {
                own += 1;
            }
            // Ordering: the end of the task orders the count before the reader's load.
            count.fetch_add(own, AcqRel);
        }
    };
    all::<R, _>(8, consume).await;
    // Ordering: see above.
    assert_eq!(count.load(Acquire), n / 8 * 8);
}

/// A value over a channel of its own, between two tasks that take turns.
pub(crate) async fn oneshot<R: Rt, C: Oneshot>(n: u64) {
    /// The way back, but for the last value.
    struct Ball<C: Oneshot>(Option<C::Sender<Ball<C>>>);

    async fn play<C: Oneshot>(mut from: C::Receiver<Ball<C>>, turns: u64) {
        for turn in 1..=turns {
            let Some(Ball(Some(to))) = C::receive_once(from).await else {
                return;
            };
            let (sender, receiver) = C::oneshot();
            let last = turn == turns;
            C::send_once(to, Ball((!last).then_some(sender))).await;
            from = receiver;
        }
    }

    let (serve, first) = C::oneshot();
    let one = R::spawn(play::<C>(first, n / 2));
    let two = R::spawn(async move {
        let (sender, receiver) = C::oneshot();
        C::send_once(serve, Ball(Some(sender))).await;
        play::<C>(receiver, n / 2).await;
    });
    one.await;
    two.await;
}

/// Counts receipts, and wakes the sender when all receivers have the message.
#[derive(Default)]
struct Receipts {
    count: AtomicU64,
    waker: AtomicWaker,
}

impl Receipts {
    fn add(&self, receivers: u64) {
        // Ordering: Release pairs with the load in `until`, and Acquire makes the last receipt
        // follow the others.
        if (self.count.fetch_add(1, AcqRel) + 1).is_multiple_of(receivers) {
            self.waker.wake();
        }
    }

    async fn until(&self, count: u64) {
        poll_fn(|cx| {
            self.waker.register(cx.waker());
            // Ordering: Acquire pairs with the addition in `add`.
            match self.count.load(Acquire) >= count {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }
}

/// A message's way to one of the receivers. The sender waits until all have it.
pub(crate) async fn broadcast<R: Rt, S: Signals>(receivers: u64, n: u64) {
    let sender = S::broadcast(16);
    let receipts = Arc::new(Receipts::default());
    let ends: Vec<_> = (0..receivers)
        .map(|_| {
            let (mut receiver, receipts) = (S::subscribe(&sender), receipts.clone());
            R::spawn(async move {
                while S::listen(&mut receiver).await.is_some() {
                    receipts.add(receivers);
                }
            })
        })
        .collect();
    for round in 1..=n / receivers {
        S::cast(&sender, round);
        receipts.until(round * receivers).await;
    }
    drop(sender);
    for end in ends {
        end.await;
    }
}

/// A value's way to one of the receivers. The sender waits until all have seen it.
pub(crate) async fn watch<R: Rt, S: Signals>(receivers: u64, n: u64) {
    let (sender, receiver) = S::watch();
    let receipts = Arc::new(Receipts::default());
    let ends: Vec<_> = (0..receivers)
        .map(|_| {
            let (mut receiver, receipts) = (receiver.clone(), receipts.clone());
            R::spawn(async move {
                while S::see(&mut receiver).await.is_some() {
                    receipts.add(receivers);
                }
            })
        })
        .collect();
    for round in 1..=n / receivers {
        S::show(&sender, round);
        receipts.until(round * receivers).await;
    }
    drop(sender);
    for end in ends {
        end.await;
    }
}

/// A value from one of two tasks to the other, which answers by a second channel.
pub(crate) async fn watch_ping_pong<R: Rt, S: Signals>(n: u64) {
    let (ping, mut pings) = S::watch();
    let (pong, mut pongs) = S::watch();
    let one = R::spawn(async move {
        for turn in 1..=n / 2 {
            S::show(&ping, turn);
            assert_eq!(S::see(&mut pongs).await, Some(turn));
        }
    });
    let two = R::spawn(async move {
        for turn in 1..=n / 2 {
            assert_eq!(S::see(&mut pings).await, Some(turn));
            S::show(&pong, turn);
        }
    });
    one.await;
    two.await;
}

/// A notification of the other of two tasks, which take turns.
pub(crate) async fn notify<R: Rt, S: Signals>(n: u64) {
    let both = Arc::new([S::notify(), S::notify()]);
    let [one, two] = [0, 1].map(|number| {
        let both = both.clone();
        R::spawn(async move {
            for _ in 0..n / 2 {
                if number == 0 {
                    S::notify_one(&both[1]);
                }
                S::notified(&both[number]).await;
                if number == 1 {
                    S::notify_one(&both[0]);
                }
            }
        })
    });
    one.await;
    two.await;
}

/// When a task yields that has got a lock or a permit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Yields {
    Never,
    /// While it holds what it has got.
    Held,
}

/// A lock of a mutex by one of the tasks.
pub(crate) async fn mutex<R: Rt, L: Locks>(tasks: u64, yields: Yields, n: u64) {
    let mutex = Arc::new(L::mutex());
    let each = n / tasks;
    let work = |_| {
        let mutex = mutex.clone();
        async move {
            for _ in 0..each {
                let mut guard = L::lock(&mutex).await;
                *guard += 1;
                if yields == Yields::Held {
                    R::yield_now().await;
                }
            }
        }
    };
    all::<R, _>(tasks, work).await;
    assert_eq!(*L::lock(&mutex).await, each * tasks);
}

/// A lock of a `RwLock` by one of 64 tasks. Each twentieth lock is exclusive.
pub(crate) async fn rwlock<R: Rt, L: Locks>(yields: Yields, n: u64) {
    let lock = Arc::new(L::rwlock());
    let each = n / 64;
    let work = |number| {
        let lock = lock.clone();
        async move {
            for turn in 0..each {
                if (turn + number) % 20 == 0 {
                    let mut guard = L::write(&lock).await;
                    *guard += 1;
                    if yields == Yields::Held {
                        R::yield_now().await;
                    }
                } else {
                    let guard = L::read(&lock).await;
                    black_box(*guard);
                    if yields == Yields::Held {
                        R::yield_now().await;
                    }
                }
            }
        }
    };
    all::<R, _>(64, work).await;
}

/// A permit for one of the tasks.
pub(crate) async fn semaphore<R: Rt, L: Locks>(permits: usize, tasks: u64, yields: Yields, n: u64) {
    let semaphore = Arc::new(L::semaphore(permits));
    let work = |_| {
        let semaphore = semaphore.clone();
        async move {
            for _ in 0..n / tasks {
                let permit = L::acquire(&semaphore).await;
                if yields == Yields::Held {
                    R::yield_now().await;
                }
                black_box(&permit);
            }
        }
    };
    all::<R, _>(tasks, work).await;
}
