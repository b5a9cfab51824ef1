use std::{
    io::{self, Seek, SeekFrom},
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

/// A file or another object with a position that a task moves without blocking its thread.
///
/// [`std::io::Seek`] is the same for threads. [`AsyncSeekExt`](crate::AsyncSeekExt) has methods
/// that return futures.
///
/// A seek has two steps, so that the first one needs no waker:
///
/// ```
/// use std::{io::{Cursor, SeekFrom}, pin::Pin, task::{Context, Poll, Waker}};
/// use task_io::AsyncSeek;
///
/// let mut cx = Context::from_waker(Waker::noop());
/// let mut cursor = Cursor::new([0; 16]);
/// Pin::new(&mut cursor).start_seek(SeekFrom::End(-4)).unwrap();
/// let position = Pin::new(&mut cursor).poll_complete(&mut cx);
/// assert!(matches!(position, Poll::Ready(Ok(12))));
/// ```
pub trait AsyncSeek {
    /// Starts a seek to `position`. Whether a position past the end is allowed depends on the
    /// implementation.
    ///
    /// # Errors
    ///
    /// An implementation may return an error if another seek has not completed. To avoid this, call
    /// [`poll_complete`](Self::poll_complete) first.
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()>;

    /// Completes the seek, and returns the new position from the start.
    ///
    /// The position is of use only right after the seek. If no seek was started, or if the caller
    /// has read or written since, any position may be returned.
    ///
    /// # Errors
    ///
    /// A seek to a position before the start fails, here or in [`start_seek`](Self::start_seek).
    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>>;
}

macro_rules! forward {
    () => {
        fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
            Pin::new(&mut **self).start_seek(position)
        }

        fn poll_complete(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
            Pin::new(&mut **self).poll_complete(cx)
        }
    };
}

impl<T: AsyncSeek + Unpin + ?Sized> AsyncSeek for Box<T> {
    forward!();
}

impl<T: AsyncSeek + Unpin + ?Sized> AsyncSeek for &mut T {
    forward!();
}

impl<P> AsyncSeek for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncSeek,
{
    fn start_seek(self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.as_deref_mut().start_seek(position)
    }

    fn poll_complete(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        self.as_deref_mut().poll_complete(cx)
    }
}

impl<T: AsRef<[u8]> + Unpin> AsyncSeek for io::Cursor<T> {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        self.seek(position).map(drop)
    }

    fn poll_complete(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position()))
    }
}
