//! The shared parts of streams and their halves: the traits for reading and writing, and the
//! methods that wait for readiness or do not wait at all.
use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    ptr,
    task::{Context, Poll},
};

/// An end whose reads serve one task.
///
/// # Safety
/// If [`poll_read_uninit`](Self::poll_read_uninit) returns a number, that many bytes at the start of
/// its buffer are initialised. It makes no initialised byte uninitialised.
pub(crate) unsafe trait ReadEnd {
    fn poll_read_uninit(
        &self,
        cx: &mut Context<'_>,
        to: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>>;

    fn poll_read_vectored(
        &self,
        cx: &mut Context<'_>,
        to: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>>;

    fn poll_read(&self, cx: &mut Context<'_>, to: &mut [u8]) -> Poll<io::Result<usize>> {
        let to = ptr::from_mut(to) as *mut [MaybeUninit<u8>];
        // SAFETY: the memory is that of `to`, which no other code uses meanwhile. The read
        // initialises bytes, and makes no byte uninitialised.
        self.poll_read_uninit(cx, unsafe { &mut *to })
    }
}

/// An end whose writes serve one task.
pub(crate) trait WriteEnd {
    fn poll_write(&self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>>;

    fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>;
}

/// The largest number of slices that std passes to one system call: `UIO_MAXIOV` of Linux. Only
/// there does a stream guess from the count of bytes whether there may be more.
const MAX_SLICES: usize = 1024;

/// Returns how many bytes one system call moves at most, from or into slices of these lengths.
pub(crate) fn wanted(lens: impl Iterator<Item = usize>) -> usize {
    lens.take(MAX_SLICES).fold(0, usize::saturating_add)
}

/// The most bytes that a vectored write first copies from its buffers into one, for a plain write.
/// Such a copy takes less time than the kernel takes to import a list of buffers.
pub(crate) const GATHERED: usize = 512;

/// Copies the buffers of a vectored write into one, and returns the part that they fill. The
/// [`wanted`] bytes of `from` have to fit.
pub(crate) fn gather<'a>(from: &[IoSlice<'_>], to: &'a mut [u8; GATHERED]) -> &'a [u8] {
    let mut end = 0;
    for part in from.iter().take(MAX_SLICES) {
        to[end..end + part.len()].copy_from_slice(part);
        end += part.len();
    }
    &to[..end]
}

/// Closes the write half. A connection that is gone already counts as closed.
pub(crate) fn shut_down_write(
    shut_down: impl FnOnce(std::net::Shutdown) -> io::Result<()>,
) -> io::Result<()> {
    match shut_down(std::net::Shutdown::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        done => done,
    }
}

/// Implements the traits for reading, for a type with a method `stream` that returns a
/// [`ReadEnd`].
macro_rules! impl_read {
    ($type:ty) => {
        impl futures_io::AsyncRead for $type {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                to: &mut [u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                crate::net::stream_io::ReadEnd::poll_read(self.stream(), cx, to)
            }

            fn poll_read_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                to: &mut [std::io::IoSliceMut<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                crate::net::stream_io::ReadEnd::poll_read_vectored(self.stream(), cx, to)
            }
        }

        crate::net::stream_io::impl_read_buf!($type, task_io);
        #[cfg(feature = "tokio")]
        crate::net::stream_io::impl_read_buf!($type, tokio::io);
    };
}

/// Implements `AsyncRead` of the module `$io`, whose reads take a `ReadBuf`.
macro_rules! impl_read_buf {
    ($type:ty, $($io:ident)::+) => {
        impl $($io)::+::AsyncRead for $type {
            fn poll_read(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                to: &mut $($io)::+::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                // SAFETY: a `ReadEnd` makes no byte uninitialised.
                let free = unsafe { to.unfilled_mut() };
                let read = crate::net::stream_io::ReadEnd::poll_read_uninit(self.stream(), cx, free);
                let count = std::task::ready!(read)?;
                // SAFETY: a `ReadEnd` has initialised as many bytes as it returns.
                unsafe { to.assume_init(count) };
                to.advance(count);
                std::task::Poll::Ready(Ok(()))
            }
        }
    };
}

/// Implements the traits for writing, for a type with a method `stream` that returns a
/// [`WriteEnd`], and a method `close_for_writing`.
macro_rules! impl_write {
    ($type:ty) => {
        crate::net::stream_io::impl_write_of!($type, poll_close, futures_io);
        crate::net::stream_io::impl_write_of!($type, poll_shutdown, task_io {
            fn is_write_vectored(&self) -> bool {
                true
            }
        });
        #[cfg(feature = "tokio")]
        crate::net::stream_io::impl_write_of!($type, poll_shutdown, tokio::io {
            fn is_write_vectored(&self) -> bool {
                true
            }
        });
    };
}

/// Implements `AsyncWrite` of the module `$io`. `$close` is the name of the method that closes.
macro_rules! impl_write_of {
    ($type:ty, $close:ident, $($io:ident)::+ $({ $($more:tt)* })?) => {
        impl $($io)::+::AsyncWrite for $type {
            fn poll_write(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                from: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                crate::net::stream_io::WriteEnd::poll_write(self.stream(), cx, from)
            }

            fn poll_write_vectored(
                self: std::pin::Pin<&mut Self>,
                cx: &mut std::task::Context<'_>,
                from: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                crate::net::stream_io::WriteEnd::poll_write_vectored(self.stream(), cx, from)
            }

            fn poll_flush(
                self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(Ok(()))
            }

            fn $close(
                mut self: std::pin::Pin<&mut Self>,
                _: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                std::task::Poll::Ready(self.close_for_writing())
            }

            $($($more)*)?
        }
    };
}

/// Implements methods that wait for readiness, for a type with a field `source`. `$poll_read` and
/// `$poll_write` are the names of the methods that poll.
macro_rules! readiness_methods {
    ($type:ty, $poll_read:ident, $poll_write:ident, $(#[$doc:meta])*) => {
        $(#[$doc])*
        impl $type {
            /// Waits until the socket is ready for any state of `interest`. The next operation may
            /// still fail with `WouldBlock`. Any number of tasks may wait.
            ///
            /// # Errors
            /// If the driver has shut down.
            pub async fn ready(&self, interest: crate::Interest) -> std::io::Result<crate::Ready> {
                self.source.ready(interest).await
            }

            /// Waits until the socket is readable.
            ///
            /// # Errors
            /// As [`ready`](Self::ready).
            pub async fn readable(&self) -> std::io::Result<()> {
                self.source.ready(crate::Interest::READABLE).await.map(drop)
            }

            /// Waits until the socket is writable.
            ///
            /// # Errors
            /// As [`ready`](Self::ready).
            pub async fn writable(&self) -> std::io::Result<()> {
                self.source.ready(crate::Interest::WRITABLE).await.map(drop)
            }

            /// Polls whether the socket is readable. Only the last task that polled is woken.
            ///
            /// # Errors
            /// As [`ready`](Self::ready).
            pub fn $poll_read(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.source.poll_ready(cx, crate::slot::Direction::Read)
            }

            /// Polls whether the socket is writable. Only the last task that polled is woken.
            ///
            /// # Errors
            /// As [`ready`](Self::ready).
            pub fn $poll_write(
                &self,
                cx: &mut std::task::Context<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                self.source.poll_ready(cx, crate::slot::Direction::Write)
            }

            /// Performs `op` once if the socket is ready for `interest`. If `op` fails with
            /// `WouldBlock`, the socket counts as not ready until the next event, unless the other
            /// side has hung up: then it stays ready.
            ///
            /// # Errors
            /// `WouldBlock` if the socket is not ready, or the error of `op` (also `Interrupted`).
            /// After the driver's shutdown `op` is performed each time.
            pub fn try_io<R>(
                &self,
                interest: crate::Interest,
                op: impl FnOnce() -> std::io::Result<R>,
            ) -> std::io::Result<R> {
                self.source.registration().try_user_io(interest, op)
            }

            /// Performs `op` when the socket is ready for `interest`. If `op` fails with
            /// `WouldBlock`, waits again and then repeats `op`. Once the other side has hung up, it
            /// repeats `op` without a wait, once in each poll.
            ///
            /// # Errors
            /// Any error of `op` other than `WouldBlock` (also `Interrupted`), or an error if the
            /// driver has shut down.
            pub async fn async_io<R>(
                &self,
                interest: crate::Interest,
                op: impl FnMut() -> std::io::Result<R>,
            ) -> std::io::Result<R> {
                self.source.registration().async_io(interest, op).await
            }

            /// Takes the pending error of the socket (`SO_ERROR`).
            ///
            /// # Errors
            /// If the system call fails.
            pub fn take_error(&self) -> std::io::Result<Option<std::io::Error>> {
                self.source.io().take_error()
            }
        }

        crate::sys::handle::impl_as_handle!(
            /// A duplicate of the descriptor must not outlive the socket, unless the socket is
            /// exempt: see [duplicates](crate::net#duplicates).
            [] $type, source
        );

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.source.fmt(f)
            }
        }
    };
}

/// Implements reads and writes of a stream of std, for a type with a field `source` and a method
/// `poll_receive`, which polls a read into one buffer. The expression `$poll` polls the other
/// operations. For TCP it calls `poll_transfer`. For reads of a Unix stream it calls `poll_io`:
/// such a read may end early at passed descriptors, although more bytes follow.
macro_rules! duplex_methods {
    ($type:ty, |$registration:ident, $cx:ident, $direction:ident, $len:ident, $op:ident| $poll:expr) => {
        impl $type {
            fn transfer(
                &self,
                $cx: &mut std::task::Context<'_>,
                $direction: crate::slot::Direction,
                $len: usize,
                $op: impl FnMut() -> std::io::Result<usize>,
            ) -> std::task::Poll<std::io::Result<usize>> {
                let $registration = self.source.registration();
                $poll
            }

            fn stream(&self) -> &Self {
                self
            }

            fn close_for_writing(&mut self) -> std::io::Result<()> {
                self.shut_down_write()
            }

            pub(crate) fn shut_down_write(&self) -> std::io::Result<()> {
                let shut_down = |how| self.source.io().shutdown(how);
                crate::net::stream_io::shut_down_write(shut_down)
            }

            /// Polls a read into memory that need not be initialised. Returns the number of bytes
            /// read. Zero bytes mean the end of the stream, or that `to` is empty. Only the last
            /// task that polled is woken.
            ///
            /// Unsafe code may rely on two promises. If the poll returns a number, that many bytes
            /// at the start of `to` are initialised. The poll makes no initialised byte
            /// uninitialised. As a rule a poll makes one system call.
            ///
            /// # Errors
            /// The error of the system call, or an error if the driver has shut down.
            pub fn poll_read_uninit(
                &self,
                cx: &mut std::task::Context<'_>,
                to: &mut [std::mem::MaybeUninit<u8>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.poll_receive(cx, to)
            }

            /// Reads without a wait. Zero bytes mean the end of the stream, or that `to` is empty.
            ///
            /// # Errors
            /// `WouldBlock` if there is nothing to read yet.
            pub fn try_read(&self, to: &mut [u8]) -> std::io::Result<usize> {
                let read = || std::io::Read::read(&mut self.source.io(), to);
                self.source.try_io(crate::Interest::READABLE, read)
            }

            /// Reads into several buffers without a wait.
            ///
            /// # Errors
            /// As [`try_read`](Self::try_read).
            pub fn try_read_vectored(
                &self,
                to: &mut [std::io::IoSliceMut<'_>],
            ) -> std::io::Result<usize> {
                let read = || std::io::Read::read_vectored(&mut self.source.io(), to);
                self.source.try_io(crate::Interest::READABLE, read)
            }

            /// Reads into the next free memory of a buffer without a wait, and advances the buffer.
            /// Zero bytes mean the end of the stream, or that `to` is full.
            ///
            /// # Errors
            /// As [`try_read`](Self::try_read).
            pub fn try_read_buf<B: bytes::BufMut>(&self, to: &mut B) -> std::io::Result<usize> {
                let read = || crate::net::bufs::recv(to, self.source.io().into());
                self.source.try_io(crate::Interest::READABLE, read)
            }

            /// Writes without a wait, perhaps only a part of `from`.
            ///
            /// # Errors
            /// `WouldBlock` if there is no room yet.
            pub fn try_write(&self, from: &[u8]) -> std::io::Result<usize> {
                let write = || std::io::Write::write(&mut self.source.io(), from);
                self.source.try_io(crate::Interest::WRITABLE, write)
            }

            /// Writes from several buffers without a wait.
            ///
            /// # Errors
            /// As [`try_write`](Self::try_write).
            pub fn try_write_vectored(
                &self,
                from: &[std::io::IoSlice<'_>],
            ) -> std::io::Result<usize> {
                let write = || std::io::Write::write_vectored(&mut self.source.io(), from);
                self.source.try_io(crate::Interest::WRITABLE, write)
            }
        }

        // SAFETY: `poll_receive` lets the kernel write, which does so at the start, and returns the
        // number of bytes.
        unsafe impl crate::net::stream_io::ReadEnd for $type {
            fn poll_read_uninit(
                &self,
                cx: &mut std::task::Context<'_>,
                to: &mut [std::mem::MaybeUninit<u8>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.poll_receive(cx, to)
            }

            fn poll_read_vectored(
                &self,
                cx: &mut std::task::Context<'_>,
                to: &mut [std::io::IoSliceMut<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let len = crate::net::stream_io::wanted(to.iter().map(|part| part.len()));
                self.transfer(cx, crate::slot::Direction::Read, len, || {
                    std::io::Read::read_vectored(&mut self.source.io(), to)
                })
            }
        }

        impl crate::net::stream_io::WriteEnd for $type {
            fn poll_write(
                &self,
                cx: &mut std::task::Context<'_>,
                from: &[u8],
            ) -> std::task::Poll<std::io::Result<usize>> {
                self.transfer(cx, crate::slot::Direction::Write, from.len(), || {
                    std::io::Write::write(&mut self.source.io(), from)
                })
            }

            fn poll_write_vectored(
                &self,
                cx: &mut std::task::Context<'_>,
                from: &[std::io::IoSlice<'_>],
            ) -> std::task::Poll<std::io::Result<usize>> {
                let len = crate::net::stream_io::wanted(from.iter().map(|part| part.len()));
                if let [one] = from {
                    return crate::net::stream_io::WriteEnd::poll_write(self, cx, one);
                }
                if (1..=crate::net::stream_io::GATHERED).contains(&len) {
                    let mut room = [0; crate::net::stream_io::GATHERED];
                    let gathered = crate::net::stream_io::gather(from, &mut room);
                    return crate::net::stream_io::WriteEnd::poll_write(self, cx, gathered);
                }
                self.transfer(cx, crate::slot::Direction::Write, len, || {
                    std::io::Write::write_vectored(&mut self.source.io(), from)
                })
            }
        }
    };
}

pub(crate) use {
    duplex_methods, impl_read, impl_read_buf, impl_write, impl_write_of, readiness_methods,
};
