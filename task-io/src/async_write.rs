use std::{
    io::{self, IoSlice, Write},
    ops::DerefMut,
    pin::Pin,
    task::{Context, Poll},
};

/// A destination of bytes that a task writes without blocking its thread.
///
/// [`std::io::Write`] is the same for threads. [`AsyncWriteExt`](crate::AsyncWriteExt) has methods
/// that return futures.
///
/// If a method returns `Pending`, it has done nothing that the caller must know of, and the task is
/// woken once another call may do more. Only the last task that called is woken.
///
/// ```
/// use std::{io, pin::Pin, task::{Context, Poll}};
/// use task_io::{AsyncWrite, AsyncWriteExt};
///
/// /// Counts the bytes, and takes at most four at once.
/// #[derive(Default)]
/// struct Meter(usize);
///
/// impl AsyncWrite for Meter {
///     fn poll_write(
///         mut self: Pin<&mut Self>,
///         _: &mut Context<'_>,
///         buf: &[u8],
///     ) -> Poll<io::Result<usize>> {
///         let taken = buf.len().min(4);
///         self.0 += taken;
///         Poll::Ready(Ok(taken))
///     }
///
///     fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
///         Poll::Ready(Ok(()))
///     }
///
///     fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
///         Poll::Ready(Ok(()))
///     }
/// }
///
/// let mut meter = Meter::default();
/// futures::executor::block_on(meter.write_all(b"eleven byte")).unwrap();
/// assert_eq!(meter.0, 11);
/// // The provided methods write the first slice that is not empty.
/// assert!(!meter.is_write_vectored());
/// let slices = [io::IoSlice::new(b""), io::IoSlice::new(b"ab"), io::IoSlice::new(b"c")];
/// let mut cx = Context::from_waker(std::task::Waker::noop());
/// let written = Pin::new(&mut meter).poll_write_vectored(&mut cx, &slices);
/// assert!(matches!(written, Poll::Ready(Ok(2))));
/// ```
pub trait AsyncWrite {
    /// Writes bytes from the front of `buf`, and returns how many.
    ///
    /// 0 says that `buf` is empty, or that the object takes no more bytes.
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>>;

    /// Passes on all bytes that are buffered here.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ends the writing: flushes, and then closes this side of the connection, if there is one.
    ///
    /// Once this is ready the object can be dropped without losing bytes. A wrapper shuts down what
    /// it wraps. After the first call, nothing should be written: a write may fail.
    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Writes bytes from the front of `bufs`, as if the slices were one, and returns how many.
    ///
    /// Without an implementation of its own, it writes from the first slice that is not empty. An
    /// implementation does one write: an error or `Pending` says that no byte was written.
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = bufs.iter().find(|buf| !buf.is_empty());
        self.poll_write(cx, first.map_or(&[], |buf| buf))
    }

    /// Returns whether [`poll_write_vectored`](Self::poll_write_vectored) writes several slices at
    /// once. If not, a caller that has many small slices should copy them into one buffer.
    fn is_write_vectored(&self) -> bool {
        false
    }
}

macro_rules! forward {
    () => {
        fn poll_write(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            buf: &[u8],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut **self).poll_write(cx, buf)
        }

        fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut **self).poll_flush(cx)
        }

        fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            Pin::new(&mut **self).poll_shutdown(cx)
        }

        fn poll_write_vectored(
            mut self: Pin<&mut Self>,
            cx: &mut Context<'_>,
            bufs: &[IoSlice<'_>],
        ) -> Poll<io::Result<usize>> {
            Pin::new(&mut **self).poll_write_vectored(cx, bufs)
        }

        fn is_write_vectored(&self) -> bool {
            (**self).is_write_vectored()
        }
    };
}

impl<T: AsyncWrite + Unpin + ?Sized> AsyncWrite for Box<T> {
    forward!();
}

impl<T: AsyncWrite + Unpin + ?Sized> AsyncWrite for &mut T {
    forward!();
}

impl<P> AsyncWrite for Pin<P>
where
    P: DerefMut,
    P::Target: AsyncWrite,
{
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.as_deref_mut().poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_deref_mut().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.as_deref_mut().poll_shutdown(cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.as_deref_mut().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        (**self).is_write_vectored()
    }
}

/// Implements the trait for objects in memory, by their writes for threads, which never block.
macro_rules! in_memory {
    ($($object:ty),*) => {$(
        impl AsyncWrite for $object {
            fn poll_write(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
                buf: &[u8],
            ) -> Poll<io::Result<usize>> {
                Poll::Ready(self.write(buf))
            }

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                _: &mut Context<'_>,
                bufs: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                Poll::Ready(self.write_vectored(bufs))
            }

            fn is_write_vectored(&self) -> bool {
                true
            }
        }
    )*};
}

in_memory!(
    Vec<u8>,
    io::Cursor<&mut [u8]>,
    io::Cursor<&mut Vec<u8>>,
    io::Cursor<Vec<u8>>,
    io::Cursor<Box<[u8]>>
);
