//! Futures that take part in the budget, or stay out of it.
use crate::{
    Budget, poll_proceed,
    scope::{poll_has_remaining, with_no_limit},
    with_budget,
};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Charges one operation, and yields first if none is left. For loops that do work of their own.
///
/// ```
/// # async fn example(rows: &[u64]) -> u64 {
/// let mut sum = 0;
/// for row in rows {
///     sum += row;
///     coop_budget::consume().await;
/// }
/// # sum }
/// ```
pub fn consume() -> Consume {
    Consume(())
}

/// The future of [`consume`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Consume(());

impl Future for Consume {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(poll_proceed(cx)).made_progress();
        Poll::Ready(())
    }
}

/// Makes a future whose resources know no budget take part: its completion costs one operation, a
/// poll that is pending none.
///
/// With features also a stream, a sink, a reader or a writer: see [`Cooperative`].
///
/// ```
/// # async fn example(mut receive: impl AsyncFnMut() -> Option<u64>) -> u64 {
/// let mut sum = 0;
/// while let Some(item) = coop_budget::cooperative(receive()).await {
///     sum += item;
/// }
/// # sum }
/// ```
pub fn cooperative<R>(resource: R) -> Cooperative<R> {
    Cooperative(resource)
}

/// The future of [`cooperative`], or the stream, sink, reader or writer.
///
/// Each operation that is not pending costs one of the budget, whatever came of it.
///
/// | feature | traits |
/// |---|---|
/// | | `Future` |
/// | `futures-core` | `Stream`, `FusedStream`, `FusedFuture` |
/// | `futures-sink` | `Sink` |
/// | `futures-io` | `AsyncRead`, `AsyncBufRead`, `AsyncWrite`, `AsyncSeek` |
/// | `tokio` | tokio's `AsyncRead`, `AsyncBufRead`, `AsyncWrite`, `AsyncSeek` |
///
/// What is done with the resource by [`get_mut`](Self::get_mut) is not charged.
///
/// ```
/// let mut reader = coop_budget::cooperative(&b"bytes"[..]);
/// assert_eq!(reader.get_ref().len(), 5);
/// *reader.get_mut() = b"other bytes";
/// assert_eq!(reader.into_inner(), b"other bytes");
/// ```
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Cooperative<R>(R);

impl<R> Cooperative<R> {
    /// The wrapped resource.
    pub const fn get_ref(&self) -> &R {
        &self.0
    }

    /// The wrapped resource.
    pub const fn get_mut(&mut self) -> &mut R {
        &mut self.0
    }

    /// The wrapped resource, pinned.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        // SAFETY: pinned with the whole: nothing moves it while that is pinned, and the type has no
        // `Drop` and no `Unpin` of its own.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }
    }

    /// Takes the wrapped resource out.
    pub fn into_inner(self) -> R {
        self.0
    }

    /// Charges `operation`, unless it is pending.
    #[inline]
    pub(crate) fn charged<'a, T>(
        self: Pin<&'a mut Self>,
        cx: &mut Context<'_>,
        operation: impl FnOnce(Pin<&'a mut R>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let progress = ready!(poll_proceed(cx));
        let polled = operation(self.get_pin_mut(), cx);
        if polled.is_ready() {
            progress.made_progress();
        }
        polled
    }
}

impl<F: Future> Future for Cooperative<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.charged(cx, |future, cx| future.poll(cx))
    }
}

/// Polls a future without a limit, neither of operations nor of time, in a scope of its own. It can
/// starve the other tasks of its worker.
///
/// It lifts this crate's limits alone, in the polls of `future` alone: scopes inside of it, tasks
/// that it spawns, tokio's budget and a `FuturesUnordered` that yields by itself have their limits
/// still.
///
/// ```
/// use coop_budget::{Budget, consume, unconstrained, with_budget};
/// use std::{future::Future, pin::pin, task::{Context, Waker}};
///
/// let thrice = || async {
///     for _ in 0..3 {
///         consume().await;
///     }
/// };
/// let mut cx = Context::from_waker(Waker::noop());
/// let (mut limited, mut free) = (pin!(thrice()), pin!(unconstrained(thrice())));
/// with_budget(Budget::new(2), || assert!(limited.as_mut().poll(&mut cx).is_pending()));
/// with_budget(Budget::new(2), || assert!(free.as_mut().poll(&mut cx).is_ready()));
/// ```
pub fn unconstrained<F>(future: F) -> Unconstrained<F> {
    Unconstrained(future)
}

/// The future of [`unconstrained`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Unconstrained<F>(F);

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: as in `Cooperative`.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.0) };
        with_no_limit(|| future.poll(cx))
    }
}

/// Runs a future in a scope, a new budget each time it is polled: for tasks of a runtime that
/// knows no budget.
///
/// An exhausted budget wakes the task and says `Pending`, which every runtime takes for a yield.
/// Under a runtime that does know budgets the new one is part of that poll's, as of
/// [`with_budget`].
///
/// ```
/// # async fn example<T: 'static>(spawn: impl Fn(coop_budget::Scoped<T>), task: T) {
/// spawn(coop_budget::scope(coop_budget::Budget::DEFAULT, task));
/// # }
/// ```
pub fn scope<F>(budget: Budget, future: F) -> Scoped<F> {
    Scoped { budget, future }
}

/// The future of [`scope`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Scoped<F> {
    budget: Budget,
    future: F,
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let budget = self.budget;
        // SAFETY: as in `Cooperative`.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
        with_budget(budget, || future.poll(cx))
    }
}

/// Gives a future that is polled among others, in a `FuturesUnordered`, a `join_all` or a
/// `select`, at most `limit` operations a poll of the task's budget.
///
/// It does two things for the sub-scheduler. A future that has had its share makes room for the
/// next, before the task's budget is used up. And once that is, it is not polled at all, nor is
/// what is nested in it, as it is under [`scope`]: it wakes its waker and says `Pending`,
/// whereupon the sub-scheduler yields.
///
/// ```
/// # use std::future::Future;
/// # fn example<F: Future>(futures: Vec<F>) -> impl Iterator<Item = coop_budget::SubBudget<F>> {
/// use coop_budget::{Budget, sub_budget};
/// futures.into_iter().map(|future| sub_budget(Budget::new(16), future)) // .collect::<FuturesUnordered<_>>()
/// # }
/// ```
pub fn sub_budget<F>(limit: Budget, future: F) -> SubBudget<F> {
    SubBudget { limit, future }
}

/// The future of [`sub_budget`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct SubBudget<F> {
    limit: Budget,
    future: F,
}

impl<F: Future> Future for SubBudget<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        ready!(poll_has_remaining(cx));
        let limit = self.limit;
        // SAFETY: as in `Cooperative`.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.future) };
        with_budget(limit, || future.poll(cx))
    }
}
