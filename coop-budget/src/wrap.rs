//! Futures that charge the budget, and futures that are exempt from it.
//!
//! Each of these types has one pinned field, and projects to it by hand: `pin-project-lite` would
//! be one more package in the lockfile of each user, for four lines.
use crate::{Budget, Scope, poll_proceed, scope::poll_has_remaining};
use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

/// Charges one operation, and yields first if the budget is used up. It is for loops that compute.
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

/// Wraps a future whose resources know no budget: its completion costs one operation.
///
/// A poll that returns `Pending` is free. With features of this crate, the function also wraps
/// streams, sinks, readers and writers: see [`Cooperative`].
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
/// Each operation that does not return `Pending` costs one operation of the budget, whatever its
/// result.
///
/// | feature | traits |
/// |---|---|
/// | | `Future` |
/// | `futures-core` | `Stream`, `FusedStream`, `FusedFuture` |
/// | `futures-sink` | `Sink` |
/// | `futures-io` | `AsyncRead`, `AsyncBufRead`, `AsyncWrite`, `AsyncSeek` |
/// | `tokio` | tokio's `AsyncRead`, `AsyncBufRead`, `AsyncWrite`, `AsyncSeek` |
///
/// Operations on the resource through [`get_mut`](Self::get_mut) are free.
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
    /// Returns the wrapped resource.
    pub const fn get_ref(&self) -> &R {
        &self.0
    }

    /// Returns the wrapped resource, mutably.
    pub const fn get_mut(&mut self) -> &mut R {
        &mut self.0
    }

    /// Returns the wrapped resource, pinned.
    ///
    /// ```
    /// use coop_budget::cooperative;
    /// use std::pin::Pin;
    ///
    /// let mut reader = cooperative(&b"bytes"[..]);
    /// assert_eq!(Pin::new(&mut reader).get_pin_mut().len(), 5);
    /// ```
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        // SAFETY: the pinning is structural. The field is pinned while the wrapper is, nothing
        // moves the field during that time, and the wrapper has neither a `Drop` nor an `Unpin` of
        // its own.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }
    }

    /// Unwraps the resource.
    pub fn into_inner(self) -> R {
        self.0
    }

    /// Runs `operation` and charges it, unless it returns `Pending`.
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

/// Polls a future without a limit of operations or time. It can starve the other tasks of its
/// worker.
///
/// It lifts only this crate's limits, and only while it polls `future`. It lifts no limit of a
/// scope inside the future, of a task that the future spawns, or of tokio. A `FuturesUnordered`
/// still yields by itself.
///
/// ```
/// use coop_budget::{Budget, Scope, consume, unconstrained};
/// use std::{future::Future, pin::pin, task::{Context, Waker}};
///
/// let thrice = || async {
///     for _ in 0..3 {
///         consume().await;
///     }
/// };
/// let mut cx = Context::from_waker(Waker::noop());
/// let (mut limited, mut free) = (pin!(thrice()), pin!(unconstrained(thrice())));
/// Scope::new(Budget::new(2)).run(|| assert!(limited.as_mut().poll(&mut cx).is_pending()));
/// Scope::new(Budget::new(2)).run(|| assert!(free.as_mut().poll(&mut cx).is_ready()));
/// ```
pub fn unconstrained<F>(future: F) -> Unconstrained<F> {
    Unconstrained(future)
}

/// The future of [`unconstrained`].
///
/// ```
/// use coop_budget::{Unconstrained, unconstrained};
/// use std::future::{Ready, ready};
///
/// let future: Unconstrained<Ready<u8>> = unconstrained(ready(7));
/// ```
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Unconstrained<F>(F);

impl<F: Future> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: as in `Cooperative`.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.0) };
        Scope::unconstrained().run(|| future.poll(cx))
    }
}

/// Gives a future a new budget in each poll, for tasks of a runtime that knows no budget.
///
/// When the budget is exhausted the task is woken and returns `Pending`, which every runtime treats
/// as a yield. Under a runtime that has budgets, the new budget is part of the poll's budget, as
/// with [`Scope::new`].
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
        Scope::new(budget).run(|| future.poll(cx))
    }
}

/// Gives each of several futures of a task at most `limit` operations of the task's budget in a
/// poll.
///
/// It is for futures in a `FuturesUnordered`, a `join_all` or a `select`. A future that used up its
/// share leaves the rest of the budget to the others. Once the task's budget is used up, the
/// wrapper does not poll its future any more, unlike [`scope`]. So no future that is nested in that
/// future is polled either. The wrapper wakes its waker and returns `Pending`, and the set of
/// futures yields.
///
/// ```
/// # use std::future::Future;
/// # fn example<F: Future>(futures: Vec<F>) -> impl Iterator<Item = coop_budget::SubBudget<F>> {
/// use coop_budget::{Budget, sub_budget};
/// futures.into_iter().map(|future| sub_budget(Budget::new(16), future))
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
        Scope::new(limit).run(|| future.poll(cx))
    }
}
