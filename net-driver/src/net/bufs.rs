//! Receives and reads into a `BufMut` of the crate `bytes`, which a `ReadBuf` is, too. Its memory
//! need not be initialised, and a system call writes there.
use bytes::BufMut;
use socket2::{SockAddr, SockRef};
#[cfg(unix)]
use std::{fs::File, os::fd::AsRawFd};
use std::{io, mem::MaybeUninit, slice};

/// The most bytes that one read asks for. Linux moves no more, and macOS refuses more than
/// `i32::MAX`.
#[cfg(unix)]
const MOST: usize = 0x7fff_f000;

/// Lets `read` write into the next free memory of `to`, and advances `to` by the count of bytes
/// that `read` returns.
///
/// # Safety
/// If `read` returns a count, it has initialised that many bytes at the start of the memory. It
/// makes no initialised byte uninitialised.
unsafe fn fill<B: BufMut, R>(
    to: &mut B,
    read: impl FnOnce(&mut [MaybeUninit<u8>]) -> io::Result<(usize, R)>,
) -> io::Result<(usize, R)> {
    let free = to.chunk_mut();
    let (start, len) = (free.as_mut_ptr().cast(), free.len());
    // SAFETY: the memory is that of `to`, which no other code uses until `read` has returned. An
    // element need not be initialised. By the caller's promise, `read` makes no byte uninitialised.
    let (count, more) = read(unsafe { slice::from_raw_parts_mut(start, len) })?;
    // SAFETY: by the caller's promise, the bytes are initialised.
    unsafe { to.advance_mut(count) };
    Ok((count, more))
}

/// Receives from a socket.
pub(crate) fn recv<B: BufMut>(to: &mut B, socket: SockRef<'_>) -> io::Result<usize> {
    let recv = |to: &mut [MaybeUninit<u8>]| Ok((socket.recv(to)?, ()));
    // SAFETY: the call returns the count of bytes that the kernel has written, and writes no other.
    unsafe { fill(to, recv) }.map(|(count, ())| count)
}

/// Receives a datagram, with the address of its sender.
pub(crate) fn recv_from<B: BufMut>(
    to: &mut B,
    socket: SockRef<'_>,
) -> io::Result<(usize, SockAddr)> {
    // SAFETY: as in `recv`.
    unsafe { fill(to, |to| socket.recv_from(to)) }
}

/// Peeks at a socket.
pub(crate) fn peek<B: BufMut>(to: &mut B, socket: SockRef<'_>) -> io::Result<usize> {
    let peek = |to: &mut [MaybeUninit<u8>]| Ok((socket.peek(to)?, ()));
    // SAFETY: as in `recv`.
    unsafe { fill(to, peek) }.map(|(count, ())| count)
}

/// Peeks at a datagram, with the address of its sender.
pub(crate) fn peek_from<B: BufMut>(
    to: &mut B,
    socket: SockRef<'_>,
) -> io::Result<(usize, SockAddr)> {
    // SAFETY: as in `recv`.
    unsafe { fill(to, |to| socket.peek_from(to)) }
}

/// Reads from a file.
#[cfg(unix)]
pub(crate) fn read<B: BufMut>(to: &mut B, file: &File) -> io::Result<usize> {
    // SAFETY: as in `recv`.
    unsafe { fill(to, |to| Ok((read_uninit(to, file)?, ()))) }.map(|(count, ())| count)
}

/// Reads from a file. If it returns a number, that many bytes at the start of `to` are initialised.
/// It makes no byte uninitialised.
#[cfg(unix)]
pub(crate) fn read_uninit(to: &mut [MaybeUninit<u8>], file: &File) -> io::Result<usize> {
    let (start, len) = (to.as_mut_ptr().cast(), to.len().min(MOST));
    // SAFETY: the pointer is valid for a write of the length.
    let count = unsafe { libc::read(file.as_raw_fd(), start, len) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Implements receives of datagrams into buffers, for a type with a field `source` and an address
/// `$addr`, which the function `$address` makes of one of socket2.
macro_rules! datagram_methods {
    ($type:ty, $addr:ty, $address:expr, $(#[$doc:meta])*) => {
        $(#[$doc])*
        impl $type {
            /// Polls for a [`recv`](Self::recv) into a buffer that need not be initialised. Only the
            /// last task that polled is woken.
            ///
            /// # Errors
            /// As `recv`.
            pub fn poll_recv(
                &self,
                cx: &mut std::task::Context<'_>,
                to: &mut task_io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<()>> {
                let receive = || crate::net::bufs::recv(to, self.source.io().into());
                self.source.poll_reading(cx, receive).map_ok(drop)
            }

            /// Polls for a [`recv_from`](Self::recv_from) into a buffer that need not be
            /// initialised. Returns the address of the sender. Only the last task that polled is
            /// woken.
            ///
            /// # Errors
            /// As `recv_from`.
            pub fn poll_recv_from(
                &self,
                cx: &mut std::task::Context<'_>,
                to: &mut task_io::ReadBuf<'_>,
            ) -> std::task::Poll<std::io::Result<$addr>> {
                let receive = || crate::net::bufs::recv_from(to, self.source.io().into());
                self.source.poll_reading(cx, receive)?.map(|(_, from)| $address(&from))
            }

            /// Receives into the next free memory of a buffer, and advances the buffer.
            ///
            /// # Errors
            /// As [`recv`](Self::recv).
            pub async fn recv_buf<B: bytes::BufMut>(&self, to: &mut B) -> std::io::Result<usize> {
                self.source.reading(|| crate::net::bufs::recv(to, self.source.io().into())).await
            }

            /// Receives as [`recv_buf`](Self::recv_buf), without a wait.
            ///
            /// # Errors
            /// As [`try_recv`](Self::try_recv).
            pub fn try_recv_buf<B: bytes::BufMut>(&self, to: &mut B) -> std::io::Result<usize> {
                let receive = || crate::net::bufs::recv(to, self.source.io().into());
                self.source.try_io(crate::Interest::READABLE, receive)
            }

            /// Receives as [`recv_buf`](Self::recv_buf), and returns the address of the sender too.
            ///
            /// # Errors
            /// As [`recv_from`](Self::recv_from).
            pub async fn recv_buf_from<B: bytes::BufMut>(
                &self,
                to: &mut B,
            ) -> std::io::Result<(usize, $addr)> {
                let receive = || crate::net::bufs::recv_from(to, self.source.io().into());
                let (count, from) = self.source.reading(receive).await?;
                Ok((count, $address(&from)?))
            }

            /// Receives as [`recv_buf_from`](Self::recv_buf_from), without a wait.
            ///
            /// # Errors
            /// As [`try_recv_from`](Self::try_recv_from).
            pub fn try_recv_buf_from<B: bytes::BufMut>(
                &self,
                to: &mut B,
            ) -> std::io::Result<(usize, $addr)> {
                let receive = || crate::net::bufs::recv_from(to, self.source.io().into());
                let (count, from) = self.source.try_io(crate::Interest::READABLE, receive)?;
                Ok((count, $address(&from)?))
            }
        }
    };
}

pub(crate) use datagram_methods;
