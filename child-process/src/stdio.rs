//! The pipes of a child.
use futures_io::AsyncRead;
use net_driver::net::unix::pipe::{Receiver, Sender};
use std::{
    future::poll_fn,
    io::{self, IoSlice, IoSliceMut},
    os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd},
    pin::Pin,
    process::{self as std_process, Stdio},
    task::{Context, Poll},
};

/// Size in bytes of the buffer for the first read of an output: the usual capacity of a pipe.
const ROOM: usize = 64 * 1024;

/// Defines the methods that all three pipes have.
macro_rules! end {
    ($end:ident, $pipe:ident) => {
        impl $end {
            /// Takes over a pipe of std, which becomes non-blocking.
            ///
            /// # Errors
            /// If `pipe` is no pipe, or the driver has shut down.
            ///
            /// # Panics
            /// Without a current driver.
            #[track_caller]
            pub fn from_std(pipe: std_process::$end) -> io::Result<Self> {
                $pipe::from_owned_fd(OwnedFd::from(pipe)).map(Self)
            }

            /// Returns the descriptor, which becomes blocking.
            ///
            /// # Errors
            /// If the system call fails.
            pub fn into_owned_fd(self) -> io::Result<OwnedFd> {
                self.0.into_blocking_fd()
            }
        }

        impl AsFd for $end {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        impl AsRawFd for $end {
            fn as_raw_fd(&self) -> RawFd {
                self.0.as_raw_fd()
            }
        }

        /// Makes the pipe usable as a standard stream of another child.
        impl TryFrom<$end> for Stdio {
            type Error = io::Error;

            fn try_from(pipe: $end) -> io::Result<Self> {
                pipe.into_owned_fd().map(Self::from)
            }
        }
    };
}

macro_rules! reading_end {
    ($end:ident) => {
        end!($end, Receiver);

        impl futures_io::AsyncRead for $end {
            fn poll_read(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                to: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncRead::poll_read(Pin::new(&mut self.0), cx, to)
            }

            fn poll_read_vectored(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                to: &mut [IoSliceMut<'_>],
            ) -> Poll<io::Result<usize>> {
                futures_io::AsyncRead::poll_read_vectored(Pin::new(&mut self.0), cx, to)
            }
        }

        read_buf!($end, task_io);
        #[cfg(feature = "tokio")]
        read_buf!($end, tokio::io);
    };
}

/// Implements `AsyncRead` of the module `$io`, whose reads take a `ReadBuf`.
macro_rules! read_buf {
    ($end:ident, $($io:ident)::+) => {
        impl $($io)::+::AsyncRead for $end {
            fn poll_read(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                to: &mut $($io)::+::ReadBuf<'_>,
            ) -> Poll<io::Result<()>> {
                $($io)::+::AsyncRead::poll_read(Pin::new(&mut self.0), cx, to)
            }
        }
    };
}

/// The pipe to a child's standard input. The drop closes the pipe; `close` does nothing.
///
/// ```
/// use child_process::{ChildStdin, Command};
/// use futures_lite::AsyncWriteExt;
/// use std::process::Stdio;
///
/// # net_driver::Driver::new(1).park(0).block_on(async {
/// let mut command = std::process::Command::new("cat");
/// let mut cat = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
/// let mut stdin = ChildStdin::from_std(cat.stdin.take().expect("a pipe"))?;
/// stdin.write_all(b"hello").await?;
/// drop(stdin.into_owned_fd()?);
/// cat.wait()?;
/// # std::io::Result::Ok(())
/// # })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct ChildStdin(pub(super) Sender);

end!(ChildStdin, Sender);

/// The pipe from a child's standard output.
///
/// ```
/// use child_process::{ChildStdout, Command};
/// use futures_lite::AsyncReadExt;
/// use std::process::Stdio;
///
/// # net_driver::Driver::new(1).park(0).block_on(async {
/// let mut command = std::process::Command::new("echo");
/// let mut echo = command.arg("a").stdout(Stdio::piped()).spawn()?;
/// let mut stdout = ChildStdout::from_std(echo.stdout.take().expect("a pipe"))?;
/// stdout.read_exact(&mut [0]).await?;
/// let rest = Stdio::from(stdout.into_owned_fd()?);
/// assert_eq!(Command::new("cat").stdin(rest).output().await?.stdout, b"\n");
/// echo.wait()?;
/// # std::io::Result::Ok(())
/// # })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct ChildStdout(pub(super) Receiver);

reading_end!(ChildStdout);

/// The pipe from a child's standard error.
///
/// ```
/// use child_process::{ChildStderr, Command};
/// use futures_lite::AsyncReadExt;
/// use std::process::Stdio;
///
/// # net_driver::Driver::new(1).park(0).block_on(async {
/// let mut command = std::process::Command::new("sh");
/// let mut sh = command.args(["-c", "echo a >&2"]).stderr(Stdio::piped()).spawn()?;
/// let mut stderr = ChildStderr::from_std(sh.stderr.take().expect("a pipe"))?;
/// stderr.read_exact(&mut [0]).await?;
/// drop(stderr.into_owned_fd()?);
/// sh.wait()?;
/// # std::io::Result::Ok(())
/// # })?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Debug)]
pub struct ChildStderr(pub(super) Receiver);

reading_end!(ChildStderr);

/// Implements `AsyncWrite` of the module `$io`. `$close` is the name of the method that closes.
macro_rules! write {
    ($close:ident, $($io:ident)::+ $({ $($more:tt)* })?) => {
        impl $($io)::+::AsyncWrite for ChildStdin {
            fn poll_write(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                from: &[u8],
            ) -> Poll<io::Result<usize>> {
                $($io)::+::AsyncWrite::poll_write(Pin::new(&mut self.0), cx, from)
            }

            fn poll_write_vectored(
                mut self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                from: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                $($io)::+::AsyncWrite::poll_write_vectored(Pin::new(&mut self.0), cx, from)
            }

            fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                $($io)::+::AsyncWrite::poll_flush(Pin::new(&mut self.0), cx)
            }

            fn $close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
                $($io)::+::AsyncWrite::$close(Pin::new(&mut self.0), cx)
            }

            $($($more)*)?
        }
    };
}

write!(poll_close, futures_io);
write!(poll_shutdown, task_io {
    fn is_write_vectored(&self) -> bool {
        true
    }
});
#[cfg(feature = "tokio")]
write!(poll_shutdown, tokio::io {
    fn is_write_vectored(&self) -> bool {
        true
    }
});

/// Reads to the end of a pipe, if there is one.
pub(super) async fn read_all(pipe: Option<Receiver>) -> io::Result<Vec<u8>> {
    let Some(mut pipe) = pipe else {
        return Ok(Vec::new());
    };
    let (mut bytes, mut len) = (Vec::new(), 0);
    loop {
        if len == bytes.len() {
            bytes.resize(ROOM.max(2 * len), 0);
        }
        let read = poll_fn(|cx| AsyncRead::poll_read(Pin::new(&mut pipe), cx, &mut bytes[len..]));
        match read.await? {
            0 => break,
            count => len += count,
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}
