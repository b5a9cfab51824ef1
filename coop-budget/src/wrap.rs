//! Futures that take part in the budget, or stay out of it.
use crate::{Budget, poll_proceed, with_budget};
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

/// Makes a future whose resources know no budget take part: its completion costs one operation, a poll that is pending none.
///
/// ```
/// # async fn example(mut receive: impl AsyncFnMut() -> Option<u64>) -> u64 {
/// let mut sum = 0;
/// while let Some(item) = coop_budget::cooperative(receive()).await {
///     sum += item;
/// }
/// # sum }
/// ```
pub fn cooperative<F: Future>(future: F) -> Cooperative<F> {
    Cooperative(future)
}

/// The future of [`cooperative`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Cooperative<F>(F);

impl<F: Future> Future for Cooperative<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let progress = ready!(poll_proceed(cx));
        // SAFETY: pinned with the whole: nothing else moves it, and the type has no `Drop` and no `Unpin` of its own.
        let future = unsafe { self.map_unchecked_mut(|this| &mut this.0) };
        let polled = future.poll(cx);
        if polled.is_ready() {
            progress.made_progress();
        }
        polled
    }
}

/// Polls a future without a limit, in a scope of its own. It can starve the other tasks of its worker.
pub fn unconstrained<F: Future>(future: F) -> Unconstrained<F> {
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
        with_budget(Budget::UNLIMITED, || future.poll(cx))
    }
}
