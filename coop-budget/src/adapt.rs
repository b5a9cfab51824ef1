//! [`Cooperative`] streams, sinks and readers: foreign resources that take part in the budget, one operation for each item or read.
use crate::{Cooperative, poll_proceed};
use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

impl<R> Cooperative<R> {
    fn inner(self: Pin<&mut Self>) -> Pin<&mut R> {
        // SAFETY: pinned with the whole: nothing else moves it, and the type has no `Drop` and no `Unpin` of its own.
        unsafe { self.map_unchecked_mut(|this| &mut this.0) }
    }

    /// Charges `operation`, unless it is pending.
    fn charged<T>(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        operation: impl FnOnce(Pin<&mut R>, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let progress = ready!(poll_proceed(cx));
        let polled = operation(self.inner(), cx);
        if polled.is_ready() {
            progress.made_progress();
        }
        polled
    }
}

/// Each item costs an operation, and so does the end.
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
#[cfg(feature = "futures-core")]
impl<S: futures_core::Stream> futures_core::Stream for Cooperative<S> {
    type Item = S::Item;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<S::Item>> {
        self.charged(cx, |stream, cx| stream.poll_next(cx))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

/// Readiness for an item costs an operation, a flush or a close too.
#[cfg(feature = "futures-sink")]
impl<T, S: futures_sink::Sink<T>> futures_sink::Sink<T> for Cooperative<S> {
    type Error = S::Error;

    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.charged(cx, |sink, cx| sink.poll_ready(cx))
    }

    fn start_send(self: Pin<&mut Self>, item: T) -> Result<(), S::Error> {
        self.inner().start_send(item)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.charged(cx, |sink, cx| sink.poll_flush(cx))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.charged(cx, |sink, cx| sink.poll_close(cx))
    }
}

/// Each read costs an operation, however long.
#[cfg(feature = "futures-io")]
impl<R: futures_io::AsyncRead> futures_io::AsyncRead for Cooperative<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &mut [u8],
    ) -> Poll<std::io::Result<usize>> {
        self.charged(cx, |reader, cx| reader.poll_read(cx, bytes))
    }

    fn poll_read_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &mut [std::io::IoSliceMut<'_>],
    ) -> Poll<std::io::Result<usize>> {
        self.charged(cx, |reader, cx| reader.poll_read_vectored(cx, slices))
    }
}
