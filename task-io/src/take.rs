use crate::{AsyncBufRead, AsyncRead, ReadBuf};
use pin_project_lite::pin_project;
use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// A reader of at most so many bytes of another reader.
    ///
    /// [`AsyncReadExt::take`](crate::AsyncReadExt::take) makes it.
    ///
    /// ```
    /// use task_io::{AsyncReadExt, Repeat, Take};
    ///
    /// let mut three: Take<Repeat> = task_io::repeat(7).take(3);
    /// let mut bytes = Vec::new();
    /// futures::executor::block_on(three.read_to_end(&mut bytes)).unwrap();
    /// assert_eq!(bytes, [7; 3]);
    /// ```
    #[derive(Debug)]
    #[must_use = "readers do nothing unless read"]
    pub struct Take<R> {
        #[pin]
        inner: R,
        limit: u64,
    }
}

/// ```
/// use std::pin::Pin;
/// use task_io::AsyncReadExt;
///
/// # futures::executor::block_on(async {
/// let source: &[u8] = b"length body more";
/// let mut part = source.take(7);
/// let mut text = String::new();
/// part.read_to_string(&mut text).await?;
/// assert_eq!((text.as_str(), part.limit()), ("length ", 0));
///
/// part.set_limit(4);
/// part.read_to_string(&mut text).await?;
/// assert_eq!(text, "length body");
/// assert_eq!(*part.get_ref(), b" more");
/// *part.get_mut() = b"other";
/// assert_eq!(*Pin::new(&mut part).get_pin_mut(), b"other");
/// assert_eq!(part.into_inner(), b"other");
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
impl<R: AsyncRead> Take<R> {
    pub(crate) fn new(inner: R, limit: u64) -> Self {
        Self { inner, limit }
    }

    /// Returns how many bytes may still be read. The reader may end before.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Allows `limit` bytes from now on, whatever was read before.
    pub fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
    }

    /// Returns the reader.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Returns the reader. Bytes that are read from it here do not count.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Returns the reader, pinned.
    pub fn get_pin_mut(self: Pin<&mut Self>) -> Pin<&mut R> {
        self.project().inner
    }

    /// Returns the reader, which may have more bytes.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

/// Returns the lesser of a length and a limit.
fn at_most(len: usize, limit: u64) -> usize {
    usize::try_from(limit).map_or(len, |limit| len.min(limit))
}

impl<R: AsyncRead> AsyncRead for Take<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.project();
        if *this.limit == 0 {
            return Poll::Ready(Ok(()));
        }
        let mut part = buf.take(at_most(buf.remaining(), *this.limit));
        let start = part.filled().as_ptr();
        ready!(this.inner.poll_read(cx, &mut part))?;
        // A reader could put another `ReadBuf` in the place of this one: of other memory, or of the
        // first bytes of this, once it has leaked this one and initialised them.
        assert!(part.filled().as_ptr() == start);
        let (filled, initialized) = (part.filled().len(), part.initialized().len());
        // SAFETY: if `buf` has unfilled bytes and `part` is not empty, then `part` has the first of
        // them, which no other object has: so it is the one that was taken, or one of its first
        // bytes. Either knows its initialised bytes, which are unfilled ones of `buf`. If `part` is
        // empty, no byte is noted. If `buf` has none, `part` may be of memory that begins where
        // `buf` ends: then `assume_init` panics, as there are fewer unfilled bytes.
        unsafe { buf.assume_init(initialized) };
        buf.advance(filled);
        *this.limit -= filled as u64;
        Poll::Ready(Ok(()))
    }
}

impl<R: AsyncBufRead> AsyncBufRead for Take<R> {
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        let this = self.project();
        // A reader at its limit does not wait for bytes that it would not pass on.
        if *this.limit == 0 {
            return Poll::Ready(Ok(&[]));
        }
        let bytes = ready!(this.inner.poll_fill_buf(cx))?;
        Poll::Ready(Ok(&bytes[..at_most(bytes.len(), *this.limit)]))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        let this = self.project();
        let amt = at_most(amt, *this.limit);
        *this.limit -= amt as u64;
        this.inner.consume(amt);
    }
}
