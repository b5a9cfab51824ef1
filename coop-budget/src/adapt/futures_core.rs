//! `Cooperative` for the traits of `futures-core`.
use crate::Cooperative;
use ::futures_core::{FusedFuture, FusedStream, Stream};
use std::{
    pin::Pin,
    task::{Context, Poll},
};

/// Each item costs an operation, and so does the end of the stream.
///
/// ```
/// # async fn example(items: impl futures::Stream<Item = u64> + Unpin) {
/// use futures::StreamExt;
/// let mut items = coop_budget::cooperative(items);
/// while let Some(item) = items.next().await {
///     println!("{item}");
/// }
/// # }
/// ```
impl<S: Stream> Stream for Cooperative<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.charged(cx, |stream, cx| stream.poll_next(cx))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.get_ref().size_hint()
    }
}

/// Asks the wrapped stream, and costs no operation.
impl<S: FusedStream> FusedStream for Cooperative<S> {
    fn is_terminated(&self) -> bool {
        self.get_ref().is_terminated()
    }
}

/// Asks the wrapped future, and costs no operation.
impl<F: FusedFuture> FusedFuture for Cooperative<F> {
    fn is_terminated(&self) -> bool {
        self.get_ref().is_terminated()
    }
}
