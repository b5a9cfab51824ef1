//! Pipes, with a name in the file system or without one.
//!
//! ```
//! use futures_lite::{AsyncReadExt, AsyncWriteExt};
//! use net_driver::{Driver, net::unix::pipe};
//!
//! Driver::new(1).park(0).block_on(async {
//!     let (mut sender, mut receiver) = pipe::pipe()?;
//!     sender.write_all(b"hello").await?;
//!     drop(sender); // The receiver reads the end.
//!     let mut all = String::new();
//!     receiver.read_to_string(&mut all).await?;
//!     assert_eq!(all, "hello");
//!     std::io::Result::Ok(())
//! }).unwrap();
//! ```
use super::super::{
    bufs,
    source::Source,
    stream_io::{self, ReadEnd, WriteEnd, wanted},
};
use crate::{Interest, Ready, ready::PIPE, registration::Removal, slot::Direction};
use std::{
    fs::{self, File},
    io::{self, IoSlice, IoSliceMut, Read, Write},
    mem::MaybeUninit,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd},
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    path::Path,
    task::{Context, Poll},
};

/// Makes a pipe without a name.
///
/// ```
/// # net_driver::Driver::new(1).park(0).block_on(async {
/// let (sender, receiver) = net_driver::net::unix::pipe::pipe()?;
/// assert_eq!(sender.try_write(b"a")?, 1);
/// assert_eq!(receiver.try_read(&mut [0; 2])?, 1);
/// # std::io::Result::Ok(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// If there is no free descriptor.
///
/// # Panics
/// Without a current driver.
#[track_caller]
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let [receiver, sender] = ends()?;
    Ok((Sender::new(sender)?, Receiver::new(receiver)?))
}

/// Makes a pipe whose ends are non-blocking and close-on-exec. Returns the read end first, and then
/// the write end.
fn ends() -> io::Result<[File; 2]> {
    let mut ends = [0; 2];
    cfg_if::cfg_if! {
        if #[cfg(target_vendor = "apple")] {
            // SAFETY: the pointer is valid for a write of two descriptors.
            let made = unsafe { libc::pipe(ends.as_mut_ptr()) };
        } else {
            let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
            // SAFETY: the pointer is valid for a write of two descriptors.
            let made = unsafe { libc::pipe2(ends.as_mut_ptr(), flags) };
        }
    }
    if made != 0 {
        return Err(io::Error::last_os_error());
    }
    let ends = ends.map(|end| {
        // SAFETY: the call has just opened the descriptor, and no other code knows it.
        unsafe { File::from_raw_fd(end) }
    });
    #[cfg(target_vendor = "apple")]
    for end in &ends {
        super::super::set_flags(end.as_raw_fd())?;
    }
    Ok(ends)
}

/// Options for opening a pipe that has a name (a FIFO).
///
/// ```
/// use net_driver::{Driver, net::unix::pipe};
///
/// # let name = std::env::temp_dir().join(format!("net-driver-fifo-{}", std::process::id()));
/// # let _ = std::fs::remove_file(&name);
/// # assert!(std::process::Command::new("mkfifo").arg(&name).status()?.success());
/// Driver::new(1).park(0).block_on(async {
///     let options = pipe::OpenOptions::new();
///     assert!(options.open_sender(&name).is_err()); // There is no receiver yet.
///     let receiver = options.open_receiver(&name)?;
///     let sender = options.open_sender(&name)?;
///     sender.try_write(b"a")?;
///     assert_eq!(receiver.try_read(&mut [0; 2])?, 1);
///
///     let file = std::env::current_exe()?;
///     assert!(options.clone().unchecked(false).open_receiver(file).is_err());
///     drop(pipe::OpenOptions::new().read_write(true).open_sender(&name)?);
///     std::io::Result::Ok(())
/// })?;
/// # std::fs::remove_file(&name)?;
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    read_write: bool,
    unchecked: bool,
}

impl OpenOptions {
    /// Returns the default options: an end is opened for its own direction only, and a file that is
    /// no pipe is refused.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether an end is opened for both reading and writing. Then a sender can be opened
    /// before there is a receiver, and a receiver never reads the end of the stream. Only Linux
    /// promises this.
    pub fn read_write(&mut self, on: bool) -> &mut Self {
        self.read_write = on;
        self
    }

    /// Sets whether to open a file without a check that it is a pipe.
    pub fn unchecked(&mut self, on: bool) -> &mut Self {
        self.unchecked = on;
        self
    }

    /// Opens the read end.
    ///
    /// # Errors
    /// If the file cannot be opened, or is no pipe.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn open_receiver(&self, path: impl AsRef<Path>) -> io::Result<Receiver> {
        let mut options = fs::OpenOptions::new();
        Receiver::new(self.open(options.read(true).write(self.read_write), path.as_ref())?)
    }

    /// Opens the write end.
    ///
    /// # Errors
    /// As [`open_receiver`](Self::open_receiver), and `ENXIO` if no process has the other end open.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn open_sender(&self, path: impl AsRef<Path>) -> io::Result<Sender> {
        let mut options = fs::OpenOptions::new();
        Sender::new(self.open(options.write(true).read(self.read_write), path.as_ref())?)
    }

    fn open(&self, options: &mut fs::OpenOptions, path: &Path) -> io::Result<File> {
        let file = options.custom_flags(libc::O_NONBLOCK).open(path)?;
        if !self.unchecked {
            check_pipe(&file)?;
        }
        Ok(file)
    }
}

fn is_pipe(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.file_type().is_fifo())
}

fn check_pipe(file: &File) -> io::Result<()> {
    if is_pipe(file)? {
        Ok(())
    } else {
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not a pipe"))
    }
}

/// Defines the methods that both ends have.
macro_rules! end {
    ($end:ident, $ready:ident, $wrong:ident) => {
        impl $end {
            #[track_caller]
            fn new(file: File) -> io::Result<Self> {
                let ready = Ready::READABLE | Ready::WRITABLE | PIPE;
                let source = Source::new(file, ready, Removal::Deregister)?;
                Ok(Self { source })
            }

            /// Takes over an end of a pipe, which becomes non-blocking.
            ///
            /// # Errors
            /// If the file is no pipe, or is not open for this direction.
            ///
            /// # Panics
            /// Without a current driver.
            #[track_caller]
            pub fn from_file(file: File) -> io::Result<Self> {
                check_pipe(&file)?;
                if flags(&file)? & libc::O_ACCMODE == libc::$wrong {
                    let why = "the pipe is open for the other direction";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
                }
                set_blocking(&file, false)?;
                Self::new(file)
            }

            /// Takes over a file without a check that it is this end of a pipe, and that it is
            /// non-blocking.
            ///
            /// # Errors
            /// If the kernel refuses the file, or the driver has shut down.
            ///
            /// # Panics
            /// Without a current driver.
            #[track_caller]
            pub fn from_file_unchecked(file: File) -> io::Result<Self> {
                Self::new(file)
            }

            /// Takes over a descriptor, as [`from_file_unchecked`](Self::from_file_unchecked) does.
            ///
            /// # Errors
            /// As [`from_file_unchecked`](Self::from_file_unchecked).
            ///
            /// # Panics
            /// Without a current driver.
            #[track_caller]
            pub fn from_owned_fd_unchecked(fd: OwnedFd) -> io::Result<Self> {
                Self::new(fd.into())
            }

            /// Takes over an end of a pipe, as [`from_file`](Self::from_file) does.
            ///
            /// # Errors
            /// As [`from_file`](Self::from_file).
            ///
            /// # Panics
            /// As [`from_file`](Self::from_file).
            #[track_caller]
            pub fn from_owned_fd(fd: OwnedFd) -> io::Result<Self> {
                Self::from_file(fd.into())
            }

            /// Returns the descriptor, which becomes blocking.
            ///
            /// # Errors
            /// If the system call fails.
            pub fn into_blocking_fd(self) -> io::Result<OwnedFd> {
                let file = self.source.into_inner();
                set_blocking(&file, true)?;
                Ok(file.into())
            }

            /// Returns the descriptor, which stays non-blocking.
            ///
            /// # Errors
            /// None so far.
            pub fn into_nonblocking_fd(self) -> io::Result<OwnedFd> {
                Ok(self.source.into_inner().into())
            }

            /// Performs `op` once if this end is ready. If `op` fails with `WouldBlock`, this end
            /// counts as not ready until the next event.
            ///
            /// # Errors
            /// `WouldBlock` if this end is not ready, or the error of `op`.
            pub fn try_io<R>(&self, op: impl FnOnce() -> io::Result<R>) -> io::Result<R> {
                self.source.registration().try_user_io(Interest::$ready, op)
            }

            /// Waits until this end is ready for any state of `interest`. Any number of tasks may
            /// wait.
            ///
            /// # Errors
            /// If the driver has shut down.
            pub async fn ready(&self, interest: Interest) -> io::Result<Ready> {
                self.source.ready(interest).await
            }
        }

        impl AsFd for $end {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.source.as_fd()
            }
        }

        impl AsRawFd for $end {
            fn as_raw_fd(&self) -> RawFd {
                self.source.as_raw_fd()
            }
        }
    };
}

fn flags(file: &File) -> io::Result<libc::c_int> {
    // SAFETY: the call takes no pointers.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GETFL) } {
        -1 => Err(io::Error::last_os_error()),
        flags => Ok(flags),
    }
}

/// Asks the kernel, without a wait, for bytes to read (`POLLIN`) and for a hang-up (`POLLHUP`).
fn look(file: &File) -> io::Result<libc::c_short> {
    let mut entry = libc::pollfd {
        fd: file.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    // SAFETY: the pointer is valid for one entry.
    match unsafe { libc::poll(&raw mut entry, 1, 0) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(entry.revents),
    }
}

fn set_blocking(file: &File, on: bool) -> io::Result<()> {
    let (before, bit) = (flags(file)?, libc::O_NONBLOCK);
    let flags = if on { before & !bit } else { before | bit };
    // SAFETY: the call takes no pointers.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// The write end of a pipe.
///
/// ```
/// use net_driver::{Driver, Interest, net::unix::pipe::{self, Sender}};
///
/// Driver::new(1).park(0).block_on(async {
///     let (sender, receiver) = pipe::pipe()?;
///     sender.writable().await?;
///     std::future::poll_fn(|cx| sender.poll_write_ready(cx)).await?;
///     assert!(sender.ready(Interest::WRITABLE).await?.is_writable());
///     assert_eq!(sender.try_write(b"ab")?, 2);
///     assert_eq!(sender.try_write_vectored(&[std::io::IoSlice::new(b"c")])?, 1);
///
///     assert_eq!(sender.try_io(|| Ok(7))?, 7);
///
///     let sender = Sender::from_owned_fd(sender.into_blocking_fd()?)?;
///     let sender = Sender::from_file(sender.into_nonblocking_fd()?.into())?;
///     let sender = Sender::from_owned_fd_unchecked(sender.into_nonblocking_fd()?)?;
///     let sender = Sender::from_file_unchecked(sender.into_nonblocking_fd()?.into())?;
///     drop(receiver);
///     assert!(sender.try_write(b"d").is_err());
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
#[derive(Debug)]
pub struct Sender {
    source: Source<File>,
}

end!(Sender, WRITABLE, O_RDONLY);

impl Sender {
    /// Waits until there is room, or the other end is gone.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub async fn writable(&self) -> io::Result<()> {
        self.ready(Interest::WRITABLE).await.map(drop)
    }

    /// Polls for room. Only the last task that polled is woken.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.source.poll_ready(cx, Direction::Write)
    }

    /// Writes without a wait, perhaps only a part of `from`.
    ///
    /// # Errors
    /// `WouldBlock` if there is no room yet.
    pub fn try_write(&self, from: &[u8]) -> io::Result<usize> {
        let write = || self.source.io().write(from);
        self.source.try_io(Interest::WRITABLE, write)
    }

    /// Writes from several buffers without a wait.
    ///
    /// # Errors
    /// As [`try_write`](Self::try_write).
    pub fn try_write_vectored(&self, from: &[IoSlice<'_>]) -> io::Result<usize> {
        let write = || self.source.io().write_vectored(from);
        self.source.try_io(Interest::WRITABLE, write)
    }

    fn stream(&self) -> &Self {
        self
    }

    /// Does nothing: the drop of the sender closes the write end.
    fn close_for_writing(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll(
        &self,
        cx: &mut Context<'_>,
        mut write: impl FnMut(&mut &File) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let op = || write(&mut self.source.io());
        self.source.registration().poll_io(cx, Direction::Write, op)
    }
}

impl WriteEnd for Sender {
    fn poll_write(&self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.poll(cx, |file| file.write(from))
    }

    fn poll_write_vectored(
        &self,
        cx: &mut Context<'_>,
        from: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll(cx, |file| file.write_vectored(from))
    }
}

stream_io::impl_write!(Sender);

/// The read end of a pipe.
///
/// Before the first writer opens a pipe that has a name, a read waits. After the last writer has
/// closed the pipe, a read returns 0, until another writer has opened the pipe.
///
/// ```
/// use net_driver::{Driver, Interest, net::unix::pipe::{self, Receiver}};
/// use std::io::{ErrorKind, IoSliceMut};
///
/// Driver::new(1).park(0).block_on(async {
///     let (sender, receiver) = pipe::pipe()?;
///     let mut to = [0; 1];
///     assert_eq!(receiver.try_read(&mut to).unwrap_err().kind(), ErrorKind::WouldBlock);
///     sender.try_write(b"ab")?;
///     receiver.readable().await?;
///     std::future::poll_fn(|cx| receiver.poll_read_ready(cx)).await?;
///     assert!(receiver.ready(Interest::READABLE).await?.is_readable());
///     assert_eq!(receiver.try_read(&mut to)?, 1);
///     assert_eq!(receiver.try_read_vectored(&mut [IoSliceMut::new(&mut to)])?, 1);
///
///     sender.try_write(b"c")?;
///     assert_eq!(receiver.try_io(|| Ok(7))?, 7);
///     let mut bytes = Vec::with_capacity(8);
///     assert_eq!(receiver.try_read_buf(&mut bytes)?, 1);
///
///     let receiver = Receiver::from_owned_fd(receiver.into_blocking_fd()?)?;
///     let receiver = Receiver::from_file(receiver.into_nonblocking_fd()?.into())?;
///     let receiver = Receiver::from_owned_fd_unchecked(receiver.into_nonblocking_fd()?)?;
///     let receiver = Receiver::from_file_unchecked(receiver.into_nonblocking_fd()?.into())?;
///     drop(sender);
///     assert_eq!(receiver.try_read(&mut to)?, 0);
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
#[derive(Debug)]
pub struct Receiver {
    source: Source<File>,
}

end!(Receiver, READABLE, O_WRONLY);

impl Receiver {
    /// Waits until there is something to read, or the other end is gone.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub async fn readable(&self) -> io::Result<()> {
        self.ready(Interest::READABLE).await.map(drop)
    }

    /// Polls for a readable state. Only the last task that polled is woken.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub fn poll_read_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.source.poll_ready(cx, Direction::Read)
    }

    /// Reads without a wait. Zero bytes mean that the other end is gone, or that `to` is empty.
    ///
    /// # Errors
    /// `WouldBlock` if there is nothing to read yet.
    pub fn try_read(&self, to: &mut [u8]) -> io::Result<usize> {
        let read = || self.read(to.len(), |mut file| file.read(to));
        self.source.try_io(Interest::READABLE, read)
    }

    /// Reads into the next free memory of a buffer without a wait, and advances the buffer. Zero
    /// bytes mean that the other end is gone, or that `to` is full.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_buf<B: bytes::BufMut>(&self, to: &mut B) -> io::Result<usize> {
        let wanted = to.chunk_mut().len();
        let read = || self.read(wanted, |file| bufs::read(to, file));
        self.source.try_io(Interest::READABLE, read)
    }

    /// Reads into several buffers without a wait.
    ///
    /// # Errors
    /// As [`try_read`](Self::try_read).
    pub fn try_read_vectored(&self, to: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
        let wanted = wanted(to.iter().map(|part| part.len()));
        let read = || self.read(wanted, |mut file| file.read_vectored(to));
        self.source.try_io(Interest::READABLE, read)
    }

    fn stream(&self) -> &Self {
        self
    }

    /// Performs `read`, which reads up to `wanted` bytes. If `read` returns no byte, asks the
    /// kernel whether that is the end of the stream: before a pipe's first writer, a read also
    /// returns no byte.
    fn read(
        &self,
        wanted: usize,
        mut read: impl FnMut(&File) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let file = self.source.io();
        let count = read(file)?;
        if count > 0 || wanted == 0 {
            return Ok(count);
        }
        let seen = look(file)?;
        if seen & libc::POLLIN != 0 {
            // A writer has come since.
            read(file)
        } else if seen & libc::POLLHUP == 0 && is_pipe(file)? {
            Err(io::ErrorKind::WouldBlock.into())
        } else {
            Ok(0)
        }
    }

    fn poll(
        &self,
        cx: &mut Context<'_>,
        wanted: usize,
        mut read: impl FnMut(&File) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let read = || self.read(wanted, &mut read);
        self.source
            .registration()
            .poll_io(cx, Direction::Read, read)
    }
}

// SAFETY: `read_uninit` initialises as many bytes as it returns, and makes none uninitialised. If
// `read` reads twice, the first read has returned 0.
unsafe impl ReadEnd for Receiver {
    fn poll_read_uninit(
        &self,
        cx: &mut Context<'_>,
        to: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        self.poll(cx, to.len(), |file| bufs::read_uninit(to, file))
    }

    fn poll_read_vectored(
        &self,
        cx: &mut Context<'_>,
        to: &mut [IoSliceMut<'_>],
    ) -> Poll<io::Result<usize>> {
        let wanted = wanted(to.iter().map(|part| part.len()));
        self.poll(cx, wanted, |mut file| file.read_vectored(to))
    }
}

stream_io::impl_read!(Receiver);
