use crate::ReadBuf;
use std::{
    io,
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

/// A source of bytes that a task reads without blocking its thread.
///
/// [`std::io::Read`] is the same for threads. [`AsyncReadExt`](crate::AsyncReadExt) has methods
/// that return futures.
///
/// # For implementers
///
/// [`poll_read`](Self::poll_read) ends in one of four ways:
///
/// | result | bytes in `buf` | meaning |
/// |---|---|---|
/// | `Ready(Ok(()))` | more than before | these bytes were read |
/// | `Ready(Ok(()))` | as before | the source has ended, or `buf` has no room |
/// | `Ready(Err(_))` | as before | the read failed |
/// | `Pending` | as before | the task is woken once another call may do more |
///
/// ```
/// use std::{io, pin::Pin, task::{Context, Poll}};
/// use task_io::{AsyncRead, AsyncReadExt, ReadBuf};
///
/// /// Counts down, and then ends.
/// struct Countdown(u8);
///
/// impl AsyncRead for Countdown {
///     fn poll_read(
///         mut self: Pin<&mut Self>,
///         _: &mut Context<'_>,
///         buf: &mut ReadBuf<'_>,
///     ) -> Poll<io::Result<()>> {
///         while self.0 > 0 && buf.remaining() > 0 {
///             self.0 -= 1;
///             buf.put_slice(&[self.0]);
///         }
///         Poll::Ready(Ok(()))
///     }
/// }
///
/// let mut bytes = Vec::new();
/// futures::executor::block_on(Countdown(3).read_to_end(&mut bytes)).unwrap();
/// assert_eq!(bytes, [2, 1, 0]);
/// ```
pub trait AsyncRead {
    /// Reads into the unfilled part of `buf`.
    ///
    /// Only the last task that called this is woken.
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>>;
}

macro_rules! forward {
    () => {
        fn poll_read(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            Pin::new(&mut **self).poll_read(cx, buf)
        }
    };
}

impl<T: AsyncRead + Unpin + ?Sized> AsyncRead for Box<T> {
    forward!();
}

impl<T: AsyncRead + Unpin + ?Sized> AsyncRead for &mut T {
    forward!();
}

impl<P> AsyncRead for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncRead,
{
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.as_deref_mut().poll_read(cx, buf)
    }
}

/// Takes the bytes off the front of the slice.
impl AsyncRead for &[u8] {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (head, tail) = self.split_at(self.len().min(buf.remaining()));
        buf.put_slice(head);
        *self = tail;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsRef<[u8]> + Unpin> AsyncRead for io::Cursor<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let rest = rest(&self);
        let len = rest.len().min(buf.remaining());
        buf.put_slice(&rest[..len]);
        let position = self.position();
        // A position past the end stays where it is, as nothing was read there.
        self.set_position(position + len as u64);
        Poll::Ready(Ok(()))
    }
}

/// Returns the bytes after the cursor's position. There are none past the end.
pub(crate) fn rest<T: AsRef<[u8]>>(cursor: &io::Cursor<T>) -> &[u8] {
    let all = cursor.get_ref().as_ref();
    let start = usize::try_from(cursor.position()).map_or(all.len(), |at| at.min(all.len()));
    &all[start..]
}
