//! Parts of a file on their way to a socket, which no program copies.
//!
//! The bytes go through a pipe, which holds references to the kernel's pages of the file:
//!
//! 1. A job moves bytes from the file into the pipe. The job may wait for a disk, and does not wait
//!    for room in the pipe.
//! 2. A task moves them on into the socket. So the socket stays with the task: a job has neither
//!    the socket nor a duplicate of it.
//! 3. The kernel locks the pipe during both, also while a job waits for a disk. So there is no job
//!    while the task empties the pipe, and the task touches the pipe only while there is no job: it
//!    never waits for a disk.
//!
//! The [`Part`] counts the bytes that the socket has taken. A dropped future leaves the pipe, the
//! job and the count in the `Part`.
use crate::File;
use std::{
    fmt, fs,
    future::{Future, poll_fn},
    io::{self, ErrorKind, Write},
    ops::Range,
    os::{
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::fs::FileExt,
    },
    pin::Pin,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, ready},
};
use task_io::AsyncSplice;

/// The bytes that a large pipe holds: what the system allows to each user (`pipe-max-size`). With a
/// fourth of it, a large file takes 1.6 times as long.
const LARGE: u64 = 1024 * 1024;

/// The most bytes of a copy, where the file system cannot splice.
const COPIED: usize = 64 * 1024;

/// The most large pipes of the process. They hold half of the pages that a user may have in pipes
/// (`pipe-user-pages-soft`). Beyond that number the kernel would make all of the user's new pipes
/// small, also those that have nothing to do with files.
const MOST_LARGE: usize = 32;

/// The large pipes that there are.
static LARGE_PIPES: Mutex<usize> = Mutex::new(0);

/// A part of a file, to be sent over a socket. [`File::part`] makes it.
///
/// The bytes do not pass through the program: the kernel moves references to its pages of the file
/// (`splice(2)`). This takes a fourth of the processor time that reads and writes take. On Linux.
///
/// ```
/// use blocking_fs::File;
/// use futures_lite::AsyncReadExt;
/// use net_driver::{Driver, net::UnixStream};
///
/// # let directory = tempfile::tempdir()?;
/// # let at = directory.path().join("a");
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// Driver::new(1).park(0).block_on(async {
///     blocking_fs::write(&at, "<h1>hello</h1>").await?;
///     let file = File::open(&at).await?;
///     let (client, mut browser) = UnixStream::pair()?;
///
///     let mut part = file.part(4..9);
///     assert_eq!(part.send_to(&client).await?, 5);
///     let mut to = [0; 5];
///     browser.read_exact(&mut to).await?;
///     assert_eq!(&to, b"hello");
///
///     let mut rest = file.part(9..u64::MAX);
///     assert_eq!(rest.send_to(&client).await?, 5);
///     assert_eq!(rest.sent(), 5);
///     std::io::Result::Ok(())
/// })?;
/// # std::io::Result::Ok(())
/// ```
///
/// # Which bytes
/// The position of the file stays as it is, and does not matter. Bytes that were written to this
/// `File` before are in the file, unless the write failed, which `flush` tells. If somebody changes
/// the file while it is sent, the other side may get the bytes of before or of after the change,
/// even after [`send_to`](Self::send_to) has returned: the kernel reads them when they leave.
///
/// # Cancellation
/// If the future of `send_to` is dropped, [`sent`](Self::sent) says how many bytes the socket has
/// taken. Another call of `send_to` goes on from there.
///
/// # Costs
/// A part that is being sent has a pipe, with two descriptors, until it is sent or dropped. If the
/// part has more than 64 KiB, the pipe has room for 1 MiB, in the first 32 such parts of the
/// process, and for 64 KiB in the others. A job of the pool fills a pipe. A part of a few kilobytes
/// is sent in less time by a read and a write.
///
/// If the other side has closed a socket, the kernel sends the process the signal `SIGPIPE`. A Rust
/// program ignores it, unless it is a library in a program that does not.
pub struct Part<'a> {
    file: &'a File,
    /// The range that no job has moved into the pipe.
    rest: Range<u64>,
    pipe: Option<Arc<Pipe>>,
    in_pipe: usize,
    sent: u64,
    job: Option<Pin<Box<dyn Future<Output = io::Result<Moved>> + Send + 'a>>>,
    /// The reason why the last job moved no more bytes: an error, or `Ok` at the end of the file.
    /// The call that has sent the bytes before returns it.
    met: Option<io::Result<()>>,
}

/// The result of a job that moves bytes from the file into the pipe.
struct Moved {
    count: usize,
    is_at_end: bool,
}

struct Pipe {
    from: OwnedFd,
    to: fs::File,
    room: usize,
    is_large: bool,
}

impl File {
    /// Returns a part of the file, to be sent over a socket. If the file ends before the range
    /// does, the part ends with the file.
    ///
    /// ```
    /// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
    /// #     blocking_threads::Pool::new(Default::default());
    /// # let _entered = pool.enter();
    /// # futures_lite::future::block_on(async {
    /// let file = blocking_fs::File::open("Cargo.toml").await?;
    /// let part = file.part(100..200); // `Part` has an example that sends it.
    /// assert_eq!(part.sent(), 0);
    /// # std::io::Result::Ok(())
    /// # })?;
    /// # std::io::Result::Ok(())
    /// ```
    pub fn part(&self, range: Range<u64>) -> Part<'_> {
        Part {
            file: self,
            rest: range,
            pipe: None,
            in_pipe: 0,
            sent: 0,
            job: None,
            met: None,
        }
    }
}

impl Part<'_> {
    /// Sends what has not been sent. Returns [`sent`](Self::sent), which is less than the length of
    /// the range only if the file ends before.
    ///
    /// This is a write of the socket: one task at a time may wait for it. A half of a socket has
    /// the socket by `as_ref`.
    ///
    /// # Errors
    /// The error of the read or of the write, or as each operation that needs a pool. Of an error
    /// of a read, the bytes before it have been sent. After an error, [`sent`](Self::sent) says how
    /// many bytes the socket has taken, and another call goes on from there.
    pub async fn send_to<S: AsyncSplice + ?Sized>(&mut self, socket: &S) -> io::Result<u64> {
        poll_fn(|cx| self.poll_send(cx, socket)).await
    }

    /// Returns how many bytes sockets have taken.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    fn poll_send<S: AsyncSplice + ?Sized>(
        &mut self,
        cx: &mut Context<'_>,
        socket: &S,
    ) -> Poll<io::Result<u64>> {
        loop {
            self.start_job()?;
            if let Some(job) = &mut self.job {
                match job.as_mut().poll(cx) {
                    Poll::Ready(moved) => self.end_job(moved),
                    Poll::Pending => return Poll::Pending,
                }
            }
            if self.in_pipe > 0 {
                let pipe = self.pipe.as_ref().expect("it has bytes");
                let polled = socket.poll_splice(cx, pipe.from.as_fd(), self.in_pipe);
                let count = match ready!(polled)? {
                    0 => return Poll::Ready(Err(ErrorKind::WriteZero.into())),
                    count => count.min(self.in_pipe),
                };
                self.in_pipe -= count;
                self.sent += count as u64;
            } else if self.rest.is_empty() || self.met.is_some() {
                // A part that was sent needs no pipe any more.
                self.pipe = None;
                let met = self.met.take().unwrap_or(Ok(()));
                return Poll::Ready(met.map(|()| self.sent));
            }
        }
    }

    /// Starts a job, if there is none and the pipe is empty (rule 3).
    fn start_job(&mut self) -> io::Result<()> {
        let is_due = self.job.is_none() && self.in_pipe == 0 && self.met.is_none();
        if !is_due || self.rest.is_empty() {
            return Ok(());
        }
        let pipe = match &self.pipe {
            Some(pipe) => pipe,
            None => {
                let len = self.rest.end - self.rest.start;
                self.pipe.insert(Arc::new(Pipe::new(len)?))
            }
        };
        let rest = self.rest.clone();
        let len = (pipe.room as u64).min(rest.end - rest.start) as usize;
        let pipe = pipe.clone();
        let fill = move |file: &fs::File| pipe.fill(file, rest.start, len);
        self.job = Some(Box::pin(self.file.cursor.run_beside(false, fill)));
        Ok(())
    }

    fn end_job(&mut self, moved: io::Result<Moved>) {
        self.job = None;
        match moved {
            Ok(Moved { count, is_at_end }) => {
                self.in_pipe += count;
                self.rest.start += count as u64;
                self.met = is_at_end.then_some(Ok(()));
            }
            Err(error) => self.met = Some(Err(error)),
        }
    }
}

impl Pipe {
    /// Makes a pipe for so many bytes.
    fn new(len: u64) -> io::Result<Self> {
        let mut ends = [0; 2];
        // SAFETY: the pointer is to two ints, into which the call writes.
        let made = unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC | libc::O_NONBLOCK) };
        if made != 0 {
            return Err(io::Error::last_os_error());
        }
        let [from, to] = ends.map(|end| {
            // SAFETY: the call has just opened the descriptor, and nothing else owns it.
            unsafe { OwnedFd::from_raw_fd(end) }
        });
        let to = fs::File::from(to);
        let mut pipe = Self {
            room: room(&to)?,
            from,
            to,
            is_large: false,
        };
        if len > pipe.room as u64 {
            pipe.enlarge(len)?;
        }
        Ok(pipe)
    }

    /// Makes the pipe large, if the process has not too many large ones and the system allows it.
    fn enlarge(&mut self, len: u64) -> io::Result<()> {
        {
            let mut count = large_pipes();
            if *count >= MOST_LARGE {
                return Ok(());
            }
            *count += 1;
            self.is_large = true;
        }
        let to = self.to.as_raw_fd();
        let wanted = len.min(LARGE) as libc::c_int; // The kernel rounds up to a power of two.
        // SAFETY: the descriptor is open, and the call takes no pointer.
        unsafe { libc::fcntl(to, libc::F_SETPIPE_SZ, wanted) };
        self.room = room(&self.to)?;
        Ok(())
    }

    /// Moves up to `len` bytes of the file into the pipe, which is empty.
    fn fill(&self, file: &fs::File, start: u64, len: usize) -> io::Result<Moved> {
        let (mut count, mut splices) = (0, true);
        while count < len {
            let (start, len) = (start.saturating_add(count as u64), len - count);
            let moved = if splices {
                splice(file, &self.to, start, len)
            } else {
                copy(file, &self.to, start, len)
            };
            match moved {
                Ok(0) => {
                    let is_at_end = true;
                    return Ok(Moved { count, is_at_end });
                }
                Ok(more) => count += more,
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    // Some file systems cannot splice.
                    ErrorKind::InvalidInput if count == 0 && splices => splices = false,
                    _ if count == 0 => return Err(error),
                    _ => break, // The next job meets the error, unless the pipe is full.
                },
            }
        }
        let is_at_end = false;
        Ok(Moved { count, is_at_end })
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        if self.is_large {
            *large_pipes() -= 1;
        }
    }
}

impl fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut part = f.debug_struct("Part");
        part.field("file", &self.file).field("sent", &self.sent);
        part.finish_non_exhaustive()
    }
}

/// Moves references to the kernel's pages.
fn splice(file: &fs::File, pipe: &fs::File, start: u64, len: usize) -> io::Result<usize> {
    let mut start = libc::loff_t::try_from(start).map_err(|_| ErrorKind::InvalidInput)?;
    let (from, to) = (file.as_raw_fd(), pipe.as_raw_fd());
    let (none, flags) = (ptr::null_mut(), libc::SPLICE_F_NONBLOCK);
    // SAFETY: both descriptors are open. The pointer is to an offset, which the call reads and
    // writes.
    let count = unsafe { libc::splice(from, &raw mut start, to, none, len, flags) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Copies bytes.
fn copy(file: &fs::File, mut pipe: &fs::File, start: u64, len: usize) -> io::Result<usize> {
    let mut buffer = vec![0; len.min(COPIED)];
    match file.read_at(&mut buffer, start)? {
        0 => Ok(0),
        count => pipe.write(&buffer[..count]),
    }
}

/// Returns how many bytes a pipe holds.
fn room(pipe: &fs::File) -> io::Result<usize> {
    // SAFETY: the descriptor is open, and the call takes no pointer.
    let room = unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ) };
    usize::try_from(room).map_err(|_| io::Error::last_os_error())
}

fn large_pipes() -> MutexGuard<'static, usize> {
    LARGE_PIPES.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
