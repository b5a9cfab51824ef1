use crate::{AsyncBufRead, read::poll_read_until};
use pin_project_lite::pin_project;
use std::{
    future::poll_fn,
    io, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The parts of a reader between delimiters.
    ///
    /// [`AsyncBufReadExt::split`](crate::AsyncBufReadExt::split) makes it.
    ///
    /// ```
    /// use task_io::{AsyncBufReadExt, BufReader, Empty, Split};
    ///
    /// let mut parts: Split<BufReader<Empty>> = BufReader::new(task_io::empty()).split(b',');
    /// assert_eq!(futures::executor::block_on(parts.next_segment()).unwrap(), None);
    /// ```
    #[derive(Debug)]
    #[must_use = "no segment is read unless it is asked for"]
    pub struct Split<R> {
        #[pin]
        reader: R,
        delimiter: u8,
        // The part of the next segment that was read.
        segment: Vec<u8>,
    }
}

impl<R> Split<R> {
    pub(crate) fn new(reader: R, delimiter: u8) -> Self {
        Self {
            reader,
            delimiter,
            segment: Vec::new(),
        }
    }
}

/// ```
/// use task_io::{AsyncBufReadExt, BufReader};
///
/// # futures::executor::block_on(async {
/// let text = BufReader::new(&b"one,two,"[..]);
/// let mut parts = text.split(b',');
/// assert_eq!(parts.next_segment().await?.unwrap(), b"one");
/// assert_eq!(parts.next_segment().await?.unwrap(), b"two");
/// assert_eq!(parts.next_segment().await?, None);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
impl<R: AsyncBufRead + Unpin> Split<R> {
    /// Returns the next segment without its delimiter, or `None` at the end of the reader.
    ///
    /// # Cancel safety
    /// If the future is dropped, no byte is lost.
    ///
    /// # Errors
    /// As of [`poll_next_segment`](Self::poll_next_segment).
    pub async fn next_segment(&mut self) -> io::Result<Option<Vec<u8>>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next_segment(cx)).await
    }
}

/// ```
/// use std::{pin::Pin, task::{Context, Poll, Waker}};
/// use task_io::{AsyncBufReadExt, BufReader};
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut parts = BufReader::new(&b"one,two"[..]).split(b',');
/// let part = Pin::new(&mut parts).poll_next_segment(&mut cx);
/// assert!(matches!(part, Poll::Ready(Ok(Some(part))) if part == b"one"));
/// ```
impl<R: AsyncBufRead> Split<R> {
    /// Polls for the next segment without its delimiter, or for `None` at the end of the reader.
    ///
    /// Only the last task that called this is woken.
    ///
    /// # Errors
    /// The reader's, except for `Interrupted`, after which the read is repeated. No byte is lost.
    pub fn poll_next_segment(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Vec<u8>>>> {
        let this = self.project();
        ready!(poll_read_until(
            this.reader,
            cx,
            *this.delimiter,
            this.segment
        ))?;
        let mut segment = mem::take(this.segment);
        if segment.is_empty() {
            return Poll::Ready(Ok(None));
        }
        if segment.last() == Some(this.delimiter) {
            segment.pop();
        }
        Poll::Ready(Ok(Some(segment)))
    }
}
