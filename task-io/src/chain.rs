use crate::{AsyncBufRead, AsyncRead, ReadBuf};
use pin_project_lite::pin_project;
use std::{
    fmt, io,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// A reader of two readers' bytes, one after the other.
    ///
    /// [`AsyncReadExt::chain`](crate::AsyncReadExt::chain) makes it.
    ///
    /// ```
    /// use task_io::{AsyncReadExt, Chain};
    ///
    /// let mut both: Chain<&[u8], &[u8]> = (&b"ab"[..]).chain(&b"cd"[..]);
    /// let mut text = String::new();
    /// futures::executor::block_on(both.read_to_string(&mut text)).unwrap();
    /// assert_eq!(text, "abcd");
    /// ```
    pub struct Chain<T, U> {
        #[pin]
        first: T,
        #[pin]
        second: U,
        first_ended: bool,
    }
}

/// ```
/// use std::pin::Pin;
/// use task_io::AsyncReadExt;
///
/// let (head, tail): (&[u8], &[u8]) = (b"ab", b"cd");
/// let mut both = head.chain(tail);
/// assert_eq!(*both.get_ref().1, b"cd");
/// *both.get_mut().1 = b"ef";
/// assert_eq!(futures::executor::block_on(both.read_u16()).unwrap(), u16::from_be_bytes(*b"ab"));
/// let (first, _) = Pin::new(&mut both).get_pin_mut();
/// assert!(first.is_empty());
/// assert_eq!(both.into_inner().1, b"ef");
/// ```
impl<T: AsyncRead, U: AsyncRead> Chain<T, U> {
    pub(crate) fn new(first: T, second: U) -> Self {
        Self {
            first,
            second,
            first_ended: false,
        }
    }

    /// Returns both readers.
    pub fn get_ref(&self) -> (&T, &U) {
        (&self.first, &self.second)
    }

    /// Returns both readers. Bytes that are read from them here are not read from the chain.
    pub fn get_mut(&mut self) -> (&mut T, &mut U) {
        (&mut self.first, &mut self.second)
    }

    /// Returns both readers, pinned.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> (Pin<&mut T>, Pin<&mut U>) {
        let this = self.project();
        (this.first, this.second)
    }

    /// Takes the chain apart.
    pub fn into_inner(self) -> (T, U) {
        (self.first, self.second)
    }
}

impl<T: AsyncRead, U: AsyncRead> AsyncRead for Chain<T, U> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        let room = buf.remaining();
        if !*this.first_ended {
            ready!(this.first.poll_read(cx, buf))?;
            // A read without room does not show whether the reader has ended.
            if buf.remaining() != room || room == 0 {
                return Poll::Ready(Ok(()));
            }
            *this.first_ended = true;
        }
        this.second.poll_read(cx, buf)
    }
}

impl<T: AsyncBufRead, U: AsyncBufRead> AsyncBufRead for Chain<T, U> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.project();
        if !*this.first_ended {
            let bytes = ready!(this.first.poll_fill_buf(cx))?;
            if !bytes.is_empty() {
                return Poll::Ready(Ok(bytes));
            }
            *this.first_ended = true;
        }
        this.second.poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let this = self.project();
        if *this.first_ended {
            this.second.consume(amt);
        } else {
            this.first.consume(amt);
        }
    }
}

impl<T: fmt::Debug, U: fmt::Debug> fmt::Debug for Chain<T, U> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain")
            .field("first", &self.first)
            .field("second", &self.second)
            .finish()
    }
}
