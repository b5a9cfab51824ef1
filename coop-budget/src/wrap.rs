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

/// Makes a future whose resources know no budget take part: each of its completions costs one operation.
pub fn cooperative<F: Future + Unpin>(future: F) -> Cooperative<F> {
    Cooperative(future)
}

/// The future of [`cooperative`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Cooperative<F>(F);

impl<F: Future + Unpin> Future for Cooperative<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let progress = ready!(poll_proceed(cx));
        let polled = Pin::new(&mut self.0).poll(cx);
        if polled.is_ready() {
            progress.made_progress();
        }
        polled
    }
}

/// Polls a future without a limit. It can starve the other tasks of its worker.
pub fn unconstrained<F: Future + Unpin>(future: F) -> Unconstrained<F> {
    Unconstrained(future)
}

/// The future of [`unconstrained`].
#[derive(Debug)]
#[must_use = "a future does nothing unless it is awaited"]
pub struct Unconstrained<F>(F);

impl<F: Future + Unpin> Future for Unconstrained<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        with_budget(Budget::UNLIMITED, || Pin::new(&mut self.0).poll(cx))
    }
}
