//! Workloads that wake tasks.
use super::Done;
use crate::rt::Rt;
use futures::task::AtomicWaker;
use std::{
    future::{Future, poll_fn},
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicUsize,
            Ordering::{AcqRel, Acquire, Relaxed, Release},
        },
        mpsc,
    },
    task::Poll,
    thread::{self, Thread},
};

/// Number of tasks of `yield_many`.
pub(super) const YIELDERS: usize = super::size(200);

/// Number of yields of each task.
pub(super) const YIELDS: usize = if super::SMALL { 50 } else { 1_000 };

/// Runs tasks that yield side by side.
pub(super) fn yield_many<R: Rt>(runtime: &R, done: Done) {
    for _ in 0..YIELDERS {
        runtime.spawn_outside(async move {
            for _ in 0..YIELDS {
                R::yield_now().await;
            }
            done.one();
        });
    }
}

/// Number of yields or wakes of a task that has the runtime to itself.
pub(super) const ALONE: usize = super::size(10_000);

/// Runs a task that yields and has the runtime to itself.
pub(super) fn yield_one<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for _ in 0..ALONE {
            R::yield_now().await;
        }
        done.one();
    });
}

/// Runs a task that wakes itself through its waker and has the runtime to itself.
pub(super) fn wake_one<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        let mut left = ALONE;
        poll_fn(|cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
        done.one();
    });
}

/// Runs tasks that wake themselves through their wakers, side by side.
pub(super) fn wake_many<R: Rt>(runtime: &R, done: Done) {
    for _ in 0..YIELDERS {
        let mut left = YIELDS;
        runtime.spawn_outside(async move {
            poll_fn(|cx| {
                if left == 0 {
                    return Poll::Ready(());
                }
                left -= 1;
                cx.waker().wake_by_ref();
                Poll::Pending
            })
            .await;
            done.one();
        });
    }
}

/// Number of threads of `wake_threads`.
pub(super) const WAKING_THREADS: usize = 4;

/// Number of wakes of each of these threads: so many that the time of the threads' start is
/// negligible.
pub(super) const WAKES: usize = super::size(100_000);

/// Lets threads wake one task, as fast as they can.
pub(super) fn wake_threads<R: Rt>(runtime: &R, done: Done) {
    let (waker, awake) = mpsc::channel();
    let over = Arc::new(AtomicBool::new(false));
    runtime.spawn_outside({
        let over = over.clone();
        let mut first = Some(waker);
        async move {
            poll_fn(|cx| {
                if let Some(first) = first.take() {
                    let _ = first.send(cx.waker().clone());
                }
                // Ordering: Acquire pairs with the store below.
                if over.load(Acquire) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
            .await;
            done.one();
        }
    });
    let waker = awake.recv().expect("the task is polled");
    thread::scope(|scope| {
        for _ in 0..WAKING_THREADS {
            scope.spawn(|| (0..WAKES).for_each(|_| waker.wake_by_ref()));
        }
    });
    // Ordering: Release pairs with the load above.
    over.store(true, Release);
    waker.wake();
}

/// A channel for one message.
pub(super) trait Oneshot {
    /// The sending end.
    type Sender: Send + 'static;
    /// The receiving end.
    type Receiver: Future + Send + 'static;

    /// Makes both ends.
    fn channel() -> (Self::Sender, Self::Receiver);

    /// Sends the message.
    fn send(sender: Self::Sender);
}

/// futures' channel.
pub(super) struct Futures;

impl Oneshot for Futures {
    type Sender = futures::channel::oneshot::Sender<()>;
    type Receiver = futures::channel::oneshot::Receiver<()>;

    fn channel() -> (Self::Sender, Self::Receiver) {
        futures::channel::oneshot::channel()
    }

    fn send(sender: Self::Sender) {
        sender.send(()).expect("the other end waits");
    }
}

/// tokio's channel, which charges tokio's budget.
pub(super) struct Tokio;

impl Oneshot for Tokio {
    type Sender = tokio::sync::oneshot::Sender<()>;
    type Receiver = tokio::sync::oneshot::Receiver<()>;

    fn channel() -> (Self::Sender, Self::Receiver) {
        tokio::sync::oneshot::channel()
    }

    fn send(sender: Self::Sender) {
        sender.send(()).expect("the other end waits");
    }
}

/// Number of pairs of `ping_pong`.
pub(super) const PAIRS: usize = super::size(1_000);

/// Runs a task that spawns pairs of tasks. The first of a pair sends to the second, which answers.
pub(super) fn ping_pong<R: Rt, C: Oneshot>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for _ in 0..PAIRS {
            R::spawn(async move {
                let (ping, pinged) = C::channel();
                let (pong, ponged) = C::channel();
                R::spawn(async move {
                    pinged.await;
                    C::send(pong);
                });
                C::send(ping);
                ponged.await;
                done.one();
            });
        }
    });
}

/// A place in a ring of tasks: the number of messages at the place, and the waker of the task that
/// waits for them.
#[derive(Default)]
struct Place {
    messages: AtomicUsize,
    waker: AtomicWaker,
}

impl Place {
    fn put(&self) {
        // Ordering: Release pairs with the subtraction in `try_take`.
        self.messages.fetch_add(1, Release);
        self.waker.wake();
    }

    async fn take(&self) {
        poll_fn(|cx| {
            if self.try_take() {
                return Poll::Ready(());
            }
            self.waker.register(cx.waker());
            if self.try_take() {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    fn try_take(&self) -> bool {
        // Ordering: Relaxed. Only one task takes messages from a place, so a message that it saw
        // stays.
        if self.messages.load(Relaxed) == 0 {
            return false;
        }
        // Ordering: Acquire pairs with the addition in `put`.
        self.messages.fetch_sub(1, Acquire);
        true
    }
}

/// Runs tasks in a ring. `MESSAGES` messages, spread evenly, go round it `ROUNDS` times.
pub(super) fn ring<R: Rt, const TASKS: usize, const MESSAGES: usize, const ROUNDS: usize>(
    runtime: &R,
    done: Done,
) {
    let ring: Arc<[Place]> = (0..TASKS).map(|_| Place::default()).collect();
    for at in 0..TASKS {
        let ring = ring.clone();
        runtime.spawn_outside(async move {
            if at % (TASKS / MESSAGES) == 0 {
                ring[at].put();
            }
            for _ in 0..MESSAGES * ROUNDS {
                ring[at].take().await;
                ring[(at + 1) % TASKS].put();
            }
            done.one();
        });
    }
}

/// Number of tasks that are woken at once.
pub(super) const STORM_TASKS: usize = super::size(1_000);

/// Number of times that these tasks are woken.
pub(super) const STORMS: usize = super::size(20);

/// The barrier at which the tasks meet.
struct Barrier {
    arrived: AtomicUsize,
    storm: AtomicUsize,
    wakers: Vec<AtomicWaker>,
    /// The outside thread that wakes the tasks once all have arrived. `None` if the last task to
    /// arrive wakes the others.
    outside: Option<Thread>,
}

impl Barrier {
    /// Wakes all tasks that wait for the storm with this number.
    fn wake(&self, storm: usize) {
        // Ordering: Release pairs with the loads in `wait`.
        self.storm.store(storm, Release);
        self.wakers.iter().for_each(AtomicWaker::wake);
    }

    /// Counts an arrival. Returns true if it was the last one.
    fn arrive(&self) -> bool {
        // Ordering: AcqRel pairs with the earlier arrivals. The last task to arrive wakes all
        // tasks, or has the outside thread wake them.
        let last = self.arrived.fetch_add(1, AcqRel) + 1 == STORM_TASKS;
        if last {
            // Ordering: Relaxed. No task arrives again before it has seen the storm's number, whose
            // Release store in `wake` comes after this store.
            self.arrived.store(0, Relaxed);
        }
        last
    }

    async fn wait(&self, who: usize, storm: usize) {
        poll_fn(|cx| {
            self.wakers[who].register(cx.waker());
            // Ordering: Acquire pairs with the store in `wake`.
            if self.storm.load(Acquire) >= storm {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }
}

/// Lets tasks meet at a barrier again and again. The last task to come, or an outside thread, wakes
/// the others.
pub(super) fn storm<R: Rt, const OUTSIDE: bool>(runtime: &R, done: Done) {
    let barrier = Arc::new(Barrier {
        arrived: AtomicUsize::new(0),
        storm: AtomicUsize::new(0),
        wakers: (0..STORM_TASKS).map(|_| AtomicWaker::new()).collect(),
        outside: OUTSIDE.then(thread::current),
    });
    let all_arrived = Arc::new(AtomicUsize::new(0));
    for who in 0..STORM_TASKS {
        let (barrier, all_arrived) = (barrier.clone(), all_arrived.clone());
        runtime.spawn_outside(async move {
            for storm in 1..=STORMS {
                if barrier.arrive() {
                    match &barrier.outside {
                        None => barrier.wake(storm),
                        Some(outside) => {
                            // Ordering: Release pairs with the load below.
                            all_arrived.store(storm, Release);
                            outside.unpark();
                        }
                    }
                }
                barrier.wait(who, storm).await;
            }
            done.one();
        });
    }
    if OUTSIDE {
        for storm in 1..=STORMS {
            // Ordering: Acquire pairs with the store above.
            while all_arrived.load(Acquire) < storm {
                thread::park();
            }
            barrier.wake(storm);
        }
    }
}
