use crate::{AsyncBufRead, coop::Rounds};
use pin_project_lite::pin_project;
use std::{
    future::Future,
    io::{self, BufRead},
    marker::PhantomPinned,
    pin::Pin,
    task::{Context, Poll, ready},
};

pin_project! {
    /// The future of [`AsyncBufReadExt::read_until`](crate::AsyncBufReadExt::read_until).
    #[derive(Debug)]
    #[must_use = "futures do nothing unless polled"]
    pub struct ReadUntil<'a, R: ?Sized> {
        reader: &'a mut R,
        delimiter: u8,
        buf: &'a mut Vec<u8>,
        read: usize,
        #[pin]
        _pin: PhantomPinned,
    }
}

impl<'a, R: ?Sized> ReadUntil<'a, R> {
    pub(crate) fn new(reader: &'a mut R, delimiter: u8, buf: &'a mut Vec<u8>) -> Self {
        Self {
            reader,
            delimiter,
            buf,
            read: 0,
            _pin: PhantomPinned,
        }
    }
}

impl<R: AsyncBufRead + Unpin + ?Sized> Future for ReadUntil<'_, R> {
    type Output = io::Result<usize>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let before = this.buf.len();
        let polled = {
            let reader = Pin::new(&mut **this.reader);
            poll_read_until(reader, cx, *this.delimiter, this.buf)
        };
        *this.read += this.buf.len() - before;
        ready!(polled)?;
        Poll::Ready(Ok(*this.read))
    }
}

/// Moves bytes to the end of `buf`, up to the first delimiter, which is the last byte that moves,
/// or up to the end of the reader. A byte is in `buf` exactly if it was consumed.
pub(crate) fn poll_read_until<R: AsyncBufRead + ?Sized>(
    mut reader: Pin<&mut R>,
    cx: &mut Context<'_>,
    delimiter: u8,
    buf: &mut Vec<u8>,
) -> Poll<io::Result<()>> {
    let mut rounds = Rounds::new();
    loop {
        ready!(rounds.poll_next(cx));
        let bytes = match ready!(reader.as_mut().poll_fill_buf(cx)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        // This is std's fast search for a byte.
        let len = (&mut &*bytes).skip_until(delimiter)?;
        let is_end = len == 0 || bytes[len - 1] == delimiter;
        buf.extend_from_slice(&bytes[..len]);
        reader.as_mut().consume(len);
        if is_end {
            return Poll::Ready(Ok(()));
        }
    }
}
