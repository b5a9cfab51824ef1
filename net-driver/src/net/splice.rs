//! Moves of bytes from a pipe to a stream, by `splice(2)`.
use super::{TcpStream, UnixStream, source::Source};
use std::{
    io::{self, ErrorKind},
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    ptr,
    task::{Context, Poll},
};
use task_io::AsyncSplice;

impl AsyncSplice for TcpStream {
    fn poll_splice(
        &self,
        cx: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        poll_splice(&self.source, cx, pipe, max)
    }
}

impl AsyncSplice for UnixStream {
    fn poll_splice(
        &self,
        cx: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        max: usize,
    ) -> Poll<io::Result<usize>> {
        poll_splice(&self.source, cx, pipe, max)
    }
}

fn poll_splice<T: AsRawFd>(
    source: &Source<T>,
    cx: &mut Context<'_>,
    pipe: BorrowedFd<'_>,
    max: usize,
) -> Poll<io::Result<usize>> {
    let (from, to) = (pipe.as_raw_fd(), source.as_raw_fd());
    source.poll_writing(cx, || match splice(from, to, max) {
        // An empty pipe says the same as a full socket, and no event of the socket ends that.
        Err(error) if error.kind() == ErrorKind::WouldBlock && is_empty(from)? => {
            Err(ErrorKind::InvalidInput.into())
        }
        result => result,
    })
}

fn splice(from: RawFd, to: RawFd, max: usize) -> io::Result<usize> {
    let (none, flags) = (ptr::null_mut(), libc::SPLICE_F_NONBLOCK);
    let max = max.min(i32::MAX as usize); // The kernel refuses numbers that are negative to it.
    // SAFETY: the call takes two descriptors and no pointer to memory. The caller has borrowed both
    // descriptors, so they are open.
    let count = unsafe { libc::splice(from, none, to, none, max, flags) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Returns whether a pipe has no byte.
fn is_empty(pipe: RawFd) -> io::Result<bool> {
    let mut count: libc::c_int = 0;
    // SAFETY: the descriptor is open, and the pointer is to an int, into which the call writes.
    match unsafe { libc::ioctl(pipe, libc::FIONREAD, &raw mut count) } {
        0 => Ok(count == 0),
        _ => Err(io::Error::last_os_error()),
    }
}
