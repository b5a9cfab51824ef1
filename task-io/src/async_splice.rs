use std::{
    io,
    os::fd::BorrowedFd,
    task::{Context, Poll},
};

/// A socket that takes bytes out of a pipe by `splice(2)`, so that the kernel moves pages and
/// copies nothing. On Linux.
///
/// A file's bytes reach a socket through a pipe: a thread that may block moves them from the file
/// into the pipe, and a task moves them on. `Part` of the crate `blocking-fs` does that. The
/// `TcpStream` and the `UnixStream` of `net-driver` have this trait.
///
/// ```
/// use std::{io, os::fd::BorrowedFd, task::{Context, Poll}};
/// use task_io::AsyncSplice;
///
/// /// Counts the bytes that another socket takes.
/// struct Counted<S>(S, std::cell::Cell<usize>);
///
/// impl<S: AsyncSplice> AsyncSplice for Counted<S> {
///     fn poll_splice(
///         &self,
///         cx: &mut Context<'_>,
///         pipe: BorrowedFd<'_>,
///         max: usize,
///     ) -> Poll<io::Result<usize>> {
///         let spliced = self.0.poll_splice(cx, pipe, max);
///         if let Poll::Ready(Ok(count)) = &spliced {
///             self.1.set(self.1.get() + count);
///         }
///         spliced
///     }
/// }
/// ```
pub trait AsyncSplice {
    /// Takes up to `max` bytes out of the pipe. Returns the number of bytes, which the socket has
    /// taken.
    ///
    /// This is a write, for which one task at a time may wait.
    ///
    /// # Errors
    ///
    /// As a write. `InvalidInput` if the socket has room and the pipe has no byte: no event would
    /// end the wait.
    fn poll_splice(
        &self,
        cx: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        max: usize,
    ) -> Poll<io::Result<usize>>;
}
