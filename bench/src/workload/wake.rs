//! Workloads that wake tasks.
use super::Done;
use crate::rt::Rt;
use std::{
    future::{Future, poll_fn},
    task::Poll,
};

/// Tasks of `yield_many`.
pub(super) const YIELDERS: usize = 200;

/// Yields of each.
pub(super) const YIELDS: usize = 1_000;

/// Tasks that yield side by side.
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

/// Yields or wakes of a task that has the runtime to itself.
pub(super) const ALONE: usize = 10_000;

/// A task that yields and has the runtime to itself.
pub(super) fn yield_one<R: Rt>(runtime: &R, done: Done) {
    runtime.spawn_outside(async move {
        for _ in 0..ALONE {
            R::yield_now().await;
        }
        done.one();
    });
}

/// A task that wakes itself through its waker and has the runtime to itself.
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

/// A channel for one message.
pub(super) trait Oneshot {
    /// The end that sends.
    type Sender: Send + 'static;
    /// The end that receives.
    type Receiver: Future + Send + 'static;

    /// Both ends.
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

/// tokio's channel, which knows tokio's budget.
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

/// Pairs of `ping_pong`.
pub(super) const PAIRS: usize = 1_000;

/// A task spawns pairs; the first of a pair sends to the second, which answers.
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
