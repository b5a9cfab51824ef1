use crate::{AsyncBufRead, read::poll_read_until};
use pin_project_lite::pin_project;
use std::{
    future::poll_fn,
    io, mem,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The lines of a reader.
    ///
    /// [`AsyncBufReadExt::lines`](crate::AsyncBufReadExt::lines) makes it.
    ///
    /// ```
    /// use task_io::{AsyncBufReadExt, Lines};
    ///
    /// let mut lines: Lines<&[u8]> = (&b"one\ntwo"[..]).lines();
    /// let first = futures::executor::block_on(lines.next_line()).unwrap();
    /// assert_eq!(first.as_deref(), Some("one"));
    /// ```
    #[derive(Debug)]
    #[must_use = "no line is read unless it is asked for"]
    pub struct Lines<R> {
        #[pin]
        reader: R,
        // The part of the next line that was read.
        line: Vec<u8>,
    }
}

impl<R> Lines<R> {
    pub(crate) fn new(reader: R) -> Self {
        Self {
            reader,
            line: Vec::new(),
        }
    }
}

/// ```
/// use task_io::AsyncBufReadExt;
///
/// # futures::executor::block_on(async {
/// let text: &[u8] = b"one\r\ntwo\nthree";
/// let mut lines = text.lines();
/// assert_eq!(lines.next_line().await?.as_deref(), Some("one"));
/// assert_eq!(*lines.get_ref(), b"two\nthree");
/// assert_eq!(lines.next_line().await?.as_deref(), Some("two"));
/// *lines.get_mut() = b"";
/// assert_eq!(lines.next_line().await?, None);
/// assert!(lines.into_inner().is_empty());
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Returns the next line without its end, or `None` at the end of the reader.
    ///
    /// # Cancel safety
    /// If the future is dropped, no byte is lost.
    ///
    /// # Errors
    /// As of [`poll_next_line`](Self::poll_next_line).
    pub async fn next_line(&mut self) -> io::Result<Option<String>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next_line(cx)).await
    }

    /// Returns the reader. Bytes that are read from it here are missing in the lines.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.reader
    }

    /// Returns the reader.
    pub fn get_ref(&self) -> &R {
        &self.reader
    }

    /// Returns the reader. The part of a line that was read is lost, after a
    /// [`next_line`](Self::next_line) that was dropped or has failed.
    pub fn into_inner(self) -> R {
        self.reader
    }
}

/// ```
/// use std::{pin::Pin, task::{Context, Poll, Waker}};
/// use task_io::AsyncBufReadExt;
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let text: &[u8] = b"one\r\ntwo";
/// let mut lines = text.lines();
/// let line = Pin::new(&mut lines).poll_next_line(&mut cx);
/// assert!(matches!(line, Poll::Ready(Ok(Some(line))) if line == "one"));
/// ```
impl<R: AsyncBufRead> Lines<R> {
    /// Polls for the next line without its end, or for `None` at the end of the reader.
    ///
    /// Only the last task that called this is woken.
    ///
    /// # Errors
    /// The reader's, except for `Interrupted`, after which the read is repeated. No byte is lost.
    /// If the line is not UTF-8, the error's kind is `InvalidData`, its inner error is a
    /// [`FromUtf8Error`](std::string::FromUtf8Error), which has the line, and the next call returns
    /// the line after it.
    pub fn poll_next_line(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Option<String>>> {
        let this = self.project();
        ready!(poll_read_until(this.reader, cx, b'\n', this.line))?;
        let mut line = mem::take(this.line);
        if line.is_empty() {
            return Poll::Ready(Ok(None));
        }
        if line.last() == Some(&b'\n') {
            line.pop();
            if line.last() == Some(&b'\r') {
                line.pop();
            }
        }
        let line = String::from_utf8(line);
        let line = line.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error));
        Poll::Ready(line.map(Some))
    }
}
