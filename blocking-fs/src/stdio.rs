//! The standard streams of the process.
//!
//! All handles of a stream share its bytes, as those of `std::io` do. They read and write through
//! std's streams, so `println!` and a [`Stdout`] may be mixed. The text of a `println!` stays
//! whole. A write of a handle may be cut where the queue is full, and other bytes may come between
//! its parts. A `println!` blocks its thread while a job writes, as the job has std's lock.
//!
//! ```
//! use blocking_fs::stdio::{stderr, stdout};
//! use futures_lite::AsyncWriteExt;
//!
//! # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
//! #     blocking_threads::Pool::new(Default::default());
//! # let _entered = pool.enter();
//! # futures_lite::future::block_on(async {
//! stdout().write_all(b"hello\n").await?;
//! stderr().write_all(b"hello\n").await?;
//! stdout().flush().await?; // Now the text is written, or `flush` has failed.
//! # std::io::Result::Ok(())
//! # })?;
//! # std::io::Result::Ok(())
//! ```
use crate::traits::{impl_read, impl_write};
use input::Reader;
use output::{Output, Writer};
use std::{
    fmt,
    io::{self, IoSlice, Write},
    task::{Context, Poll},
};

mod input;
mod output;

/// A handle to the standard input of the process.
///
/// A read waits in a thread of its own, one for all handles, until there is input. Such a wait
/// cannot be cancelled: after its future was dropped, the next read of any handle takes the bytes.
/// **The end of a runtime does not wait for that thread**, as a read may never end. The end of the
/// process ends it. Code that reads `std::io::stdin` meanwhile waits for it, as it has std's lock.
///
/// The thread reads up to 64 KiB, however few bytes the task wants. The next reads of all handles
/// take the rest, and start no thread. Code that reads `std::io::stdin` does not get these bytes.
///
/// ```
/// use blocking_fs::stdio::stdin;
/// use futures_lite::AsyncReadExt;
///
/// # async fn f() -> std::io::Result<()> {
/// let mut first = [0; 1];
/// stdin().read_exact(&mut first).await?;
/// # Ok(())
/// # }
/// ```
pub struct Stdin {
    std: io::Stdin,
    reader: Reader,
}

/// Returns a handle to the standard input.
///
/// ```
/// let stdin: blocking_fs::stdio::Stdin = blocking_fs::stdio::stdin();
/// ```
pub fn stdin() -> Stdin {
    Stdin {
        std: io::stdin(),
        reader: Reader::new(),
    }
}

impl Stdin {
    fn poll_take(
        &self,
        cx: &mut Context<'_>,
        room: usize,
        take: impl FnOnce(&[u8]),
    ) -> Poll<io::Result<usize>> {
        self.reader.poll_take(cx, room, take)
    }
}

impl_read!(Stdin);

/// A handle to the standard output of the process.
///
/// **A write returns when its bytes are queued**, and they are written in the order of the writes,
/// also if those are of several handles. A job of the thread's current pool writes them and flushes
/// std's buffer, so that a part of a line appears, too. At most 2 MiB wait, beside as many that are
/// being written. The end of the process does not wait for them: end with a `flush`.
///
/// `flush` and `close` wait until the system has taken all bytes that this handle has written
/// before, and those that other handles had written when the `flush` began. If its future is
/// dropped, the next `flush` of the handle goes on with it, and does not wait for what other
/// handles have written since.
///
/// The end of a runtime waits for its job. The job ends when no bytes are left, also none that the
/// tasks of another runtime have written. So the end waits while another runtime keeps writing.
///
/// If a write fails, the bytes that wait behind it are dropped, and every handle that was there
/// returns the error once, by its next write, `flush` or `close`.
///
/// ```
/// use blocking_fs::stdio::stdout;
/// use futures_lite::AsyncWriteExt;
///
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// let mut stdout = stdout();
/// stdout.write_all(b"Name: ").await?;
/// stdout.flush().await?;
/// # std::io::Result::Ok(())
/// # })?;
/// # std::io::Result::Ok(())
/// ```
pub struct Stdout {
    std: io::Stdout,
    writer: Writer,
}

/// Returns a handle to the standard output.
///
/// ```
/// let stdout: blocking_fs::stdio::Stdout = blocking_fs::stdio::stdout();
/// ```
pub fn stdout() -> Stdout {
    static OUTPUT: Output = Output::new(|bytes| write(io::stdout().lock(), bytes));
    Stdout {
        std: io::stdout(),
        writer: Writer::new(&OUTPUT),
    }
}

/// A handle to the standard error of the process. It does what [`Stdout`] does.
///
/// ```
/// use blocking_fs::stdio::stderr;
/// use futures_lite::AsyncWriteExt;
///
/// # let pool: blocking_threads::Pool<blocking_threads::Boxed> =
/// #     blocking_threads::Pool::new(Default::default());
/// # let _entered = pool.enter();
/// # futures_lite::future::block_on(async {
/// let mut stderr = stderr();
/// stderr.write_all(b"no such file\n").await?;
/// stderr.flush().await?;
/// # std::io::Result::Ok(())
/// # })?;
/// # std::io::Result::Ok(())
/// ```
pub struct Stderr {
    std: io::Stderr,
    writer: Writer,
}

/// Returns a handle to the standard error.
///
/// ```
/// let stderr: blocking_fs::stdio::Stderr = blocking_fs::stdio::stderr();
/// ```
pub fn stderr() -> Stderr {
    static OUTPUT: Output = Output::new(|bytes| write(io::stderr().lock(), bytes));
    Stderr {
        std: io::stderr(),
        writer: Writer::new(&OUTPUT),
    }
}

fn write(mut to: impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(bytes)?;
    to.flush()
}

macro_rules! output {
    ($type:ident) => {
        impl $type {
            fn poll_put(
                &mut self,
                cx: &mut Context<'_>,
                from: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                self.writer.poll_put(cx, from)
            }

            fn poll_done(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
                self.writer.poll_done(cx)
            }
        }

        impl_write!($type);
    };
}

output!(Stdout);
output!(Stderr);

macro_rules! handle {
    ($type:ident) => {
        impl fmt::Debug for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($type)).field(&self.std).finish()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.std.as_fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.std.as_raw_fd()
            }
        }
    };
}

handle!(Stdin);
handle!(Stdout);
handle!(Stderr);
