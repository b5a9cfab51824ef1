use crate::{AsyncRead, async_read};
use std::{
    io,
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

/// A source with a buffer inside, whose bytes a task sees before it takes them.
///
/// [`std::io::BufRead`] is the same for threads. [`AsyncBufReadExt`](crate::AsyncBufReadExt) has
/// methods that return futures, such as those that read lines.
///
/// ```
/// use std::{pin::Pin, task::{Context, Poll, Waker}};
/// use task_io::AsyncBufRead;
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut source: &[u8] = b"key=value";
/// let Poll::Ready(Ok(seen)) = Pin::new(&mut source).poll_fill_buf(&mut cx) else {
///     panic!("a slice is always ready");
/// };
/// let key = seen.iter().position(|byte| *byte == b'=').unwrap();
/// Pin::new(&mut source).consume(key + 1);
/// assert_eq!(source, b"value");
/// ```
pub trait AsyncBufRead: AsyncRead {
    /// Returns the bytes in the buffer, and first fills the buffer if it is empty.
    ///
    /// An empty slice says that the source has ended. The bytes stay in the buffer until
    /// [`consume`](Self::consume) takes them. If the method returns `Pending`, the task is woken
    /// once another call may do more.
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>>;

    /// Takes `amt` bytes out of the buffer: no later read returns them.
    ///
    /// `amt` is at most the number of bytes that [`poll_fill_buf`](Self::poll_fill_buf) returned.
    /// An implementation may panic, or take fewer bytes, if it is greater.
    fn consume(self: Pin<&mut Self>, amt: usize);
}

macro_rules! forward {
    () => {
        fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
            Pin::new(&mut **self.get_mut()).poll_fill_buf(cx)
        }

        fn consume(mut self: Pin<&mut Self>, amt: usize) {
            Pin::new(&mut **self).consume(amt);
        }
    };
}

impl<T: AsyncBufRead + Unpin + ?Sized> AsyncBufRead for Box<T> {
    forward!();
}

impl<T: AsyncBufRead + Unpin + ?Sized> AsyncBufRead for &mut T {
    forward!();
}

impl<P> AsyncBufRead for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncBufRead,
{
    fn poll_fill_buf(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        self.as_deref_mut().poll_fill_buf(cx)
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        self.as_deref_mut().consume(amt);
    }
}

/// Panics if more bytes are consumed than the slice has.
impl AsyncBufRead for &[u8] {
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Poll::Ready(Ok(*self))
    }

    fn consume(mut self: Pin<&mut Self>, amt: usize) {
        *self = &self[amt..];
    }
}

impl<T: AsRef<[u8]> + Unpin> AsyncBufRead for io::Cursor<T> {
    fn poll_fill_buf(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        Poll::Ready(Ok(async_read::rest(self.get_mut())))
    }

    fn consume(self: Pin<&mut Self>, amt: usize) {
        io::BufRead::consume(self.get_mut(), amt);
    }
}
