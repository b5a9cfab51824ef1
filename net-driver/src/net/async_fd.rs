//! Readiness of any descriptor that the kernel's poller takes.
use super::source::{Source, current_driver};
use crate::{
    Driver, Interest, Ready,
    ready::PIPE,
    registration::{Registration, Removal},
    sys::Os,
};
#[cfg(not(feature = "raw-fd"))]
use AsFd as Descriptor;
#[cfg(feature = "raw-fd")]
use AsRawFd as Descriptor;
use std::{
    fmt, io,
    mem::MaybeUninit,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
};

mod guard;

pub use guard::{AsyncFdReadyGuard, AsyncFdReadyMutGuard, TryIoError};

/// Readiness of any descriptor that the kernel's poller takes, such as a pipe, a device, or another
/// library's socket.
///
/// The caller makes the descriptor non-blocking first. `T` owns or borrows the descriptor, such as
/// an [`OwnedFd`](std::os::fd::OwnedFd). A forgotten `AsyncFd` stays registered until its
/// descriptor is closed ([not in kqueue](#other-systems-than-linux)). Any number of tasks may wait.
///
/// A wait returns a guard. If the operation that follows says `WouldBlock`, the task must clear the
/// readiness: otherwise the next wait returns at once. The guard's
/// [`try_io`](AsyncFdReadyGuard::try_io) clears it.
///
/// # Hang-ups
/// Once the other side has hung up, that direction is ready for ever, whatever is cleared: no
/// further event would end a wait. An operation may still say `WouldBlock`, such as one that has
/// read half of a message. [`async_io`](Self::async_io) then calls it again, in the next poll of
/// the task.
///
/// Some hang-ups end: a FIFO gets another writer, the other side of a terminal is opened again, or
/// a socket was registered before it was connected. Until the `AsyncFd` is made anew, such a task
/// tries again and again in place of a wait, with a yield after each try. A
/// [`pipe::Receiver`](crate::net::unix::pipe::Receiver) waits for the next writer.
///
/// The other side may also close one direction and keep the other one open. After such a half-close
/// name only the direction that you need. An operation for `READABLE | WRITABLE` that says
/// `WouldBlock` is called again in each poll, although only an event of the open direction can help
/// it.
///
/// # Other systems than Linux
/// There the poller, such as kqueue, keeps the number of a descriptor that was closed while its
/// `AsyncFd` was registered, because a value was [replaced](Self::get_mut) or an `AsyncFd` was
/// forgotten. Another `AsyncFd` with that number is refused with `AlreadyExists` as long as the old
/// one lives, and after a forgotten one as long as the driver lives. A socket of this crate with
/// that number is not refused, and ends this state.
///
/// ```
/// use net_driver::{Driver, Interest, Ready, net::{AsyncFd, TryIoError}};
/// use std::{future::poll_fn, io::{Read, Write}, os::{fd::AsRawFd, unix::net::UnixStream}};
///
/// Driver::new(1).park(0).block_on(async {
///     let (one, mut other) = UnixStream::pair()?;
///     one.set_nonblocking(true)?;
///     let mut one = AsyncFd::with_interest(one, Interest::READABLE | Interest::WRITABLE)?;
///     one.writable().await?.retain_ready();
///     poll_fn(|cx| one.poll_write_ready(cx).map_ok(drop)).await?;
///     poll_fn(|cx| one.poll_write_ready_mut(cx).map_ok(drop)).await?;
///     one.writable_mut().await?.clear_ready();
///
///     other.write_all(b"abc")?;
///     let mut guard = one.readable().await?;
///     assert!(guard.ready().is_readable());
///     let mut to = [0; 1];
///     let read = guard.try_io(|one| one.get_ref().read(&mut to));
///     assert_eq!(read.unwrap()?, 1);
///     guard.clear_ready_matching(Ready::WRITABLE);
///     assert_eq!(guard.get_inner().as_raw_fd(), guard.get_ref().as_raw_fd());
///     one.async_io(Interest::READABLE, |mut one| one.read(&mut to)).await?;
///     one.async_io_mut(Interest::READABLE, |one| one.read(&mut to)).await?;
///     poll_fn(|cx| one.poll_read_ready(cx).map_ok(drop)).await?;
///     poll_fn(|cx| one.poll_read_ready_mut(cx).map_ok(drop)).await?;
///     let mut guard = one.readable_mut().await?;
///     let read = guard.try_io(|one| one.get_mut().read(&mut to));
///     assert!(matches!(read, Err(TryIoError)), "all was read");
///
///     other.write_all(b"d")?;
///     one.ready(Interest::READABLE).await?.retain_ready();
///     assert!(one.ready_mut(Interest::READABLE).await?.ready().is_readable());
///     assert_eq!(one.readable_mut().await?.get_inner_mut().read(&mut to)?, 1);
///     let count = one.try_io(Interest::READABLE, |mut one| one.read(&mut to));
///     assert_eq!(count.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
///     let count = one.try_io_mut(Interest::READABLE, |one| one.read(&mut to));
///     assert_eq!(count.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
///     let one: UnixStream = one.into_inner();
///     drop(AsyncFd::new(one)?);
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
pub struct AsyncFd<T> {
    source: Source<T>,
}

/// The error of a registration, with the value that was not registered.
///
/// ```
/// use net_driver::{Driver, net::{AsyncFd, AsyncFdRegisterError}};
/// use std::fs::File;
///
/// let _entered = Driver::new(1).enter(None);
/// let error: AsyncFdRegisterError<File> = AsyncFd::try_new(File::open("/")?).unwrap_err();
/// assert!(std::error::Error::source(&error).is_some());
/// assert!(format!("{error} {error:?}").contains("permitted"));
/// let (file, cause): (File, std::io::Error) = error.into_parts();
/// assert_eq!(cause.kind(), std::io::ErrorKind::PermissionDenied);
/// # drop(file);
/// # std::io::Result::Ok(())
/// ```
pub struct AsyncFdRegisterError<T> {
    inner: T,
    cause: io::Error,
}

/// Registers a descriptor for reading and writing.
///
/// These constructors take a value that lends its descriptor ([`AsFd`]), and so has one. For a bare
/// number there is [`register`](Self::register), which is unsafe. With the feature `raw-fd` they
/// take any [`AsRawFd`], as tokio's do, and the caller must keep the descriptor open nevertheless.
///
/// ```
/// use net_driver::{Driver, Interest, net::AsyncFd};
/// use std::os::{fd::AsFd, unix::net::UnixStream};
///
/// let _entered = Driver::new(1).enter(None);
/// let (one, _other) = UnixStream::pair()?;
/// one.set_nonblocking(true)?;
/// let first = AsyncFd::try_new(one.as_fd())?;
/// let second = AsyncFd::try_with_interest(one.as_fd(), Interest::READABLE);
/// let (_fd, cause) = second.unwrap_err().into_parts();
/// assert_eq!(cause.kind(), std::io::ErrorKind::AlreadyExists);
/// drop(AsyncFd::try_new_in(&Driver::new(1), one.as_fd())?);
/// # drop(first);
/// # std::io::Result::Ok(())
/// ```
///
#[cfg_attr(not(feature = "raw-fd"), doc = "```compile_fail,E0277")]
#[cfg_attr(feature = "raw-fd", doc = "```no_run")]
/// let _ = net_driver::net::AsyncFd::new(5);
/// ```
impl<T: Descriptor> AsyncFd<T> {
    /// Registers a descriptor for reading and writing.
    ///
    /// This costs two system calls: the registration, and an `fstat`. The latter recognises a pipe,
    /// whose last reader leaves no other sign than an error.
    ///
    /// # Errors
    /// If the kernel's poller does not take the descriptor: `EPERM` for a file, and `EEXIST` if
    /// this descriptor is registered with the driver already. Also if the driver has shut down.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn new(fd: T) -> io::Result<Self> {
        Self::new_in(&current_driver(), fd)
    }

    /// Does the same as [`new`](Self::new): the name is tokio's, and `interest` has no effect. A
    /// descriptor is always registered for all states, and each wait names its own interest.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn with_interest(fd: T, interest: Interest) -> io::Result<Self> {
        let _ = interest;
        Self::new(fd)
    }

    /// Does the same as [`new`](Self::new), with this driver in place of the current one.
    ///
    /// ```
    /// use net_driver::{Driver, net::AsyncFd};
    ///
    /// let (one, _other) = std::os::unix::net::UnixStream::pair()?;
    /// one.set_nonblocking(true)?;
    /// AsyncFd::new_in(&Driver::new(1), one)?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[cfg_attr(selvedge_sim, track_caller)]
    pub fn new_in(driver: &Driver, fd: T) -> io::Result<Self> {
        Ok(Self::try_new_in(driver, fd)?)
    }

    /// Does the same as [`new`](Self::new). The error hands `fd` back.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn try_new(fd: T) -> Result<Self, AsyncFdRegisterError<T>> {
        Self::try_new_in(&current_driver(), fd)
    }

    /// Does the same as [`with_interest`](Self::with_interest). The error hands `fd` back.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn try_with_interest(fd: T, interest: Interest) -> Result<Self, AsyncFdRegisterError<T>> {
        let _ = interest;
        Self::try_new(fd)
    }

    /// Does the same as [`new_in`](Self::new_in). The error hands `fd` back.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    #[cfg_attr(selvedge_sim, track_caller)]
    pub fn try_new_in(driver: &Driver, fd: T) -> Result<Self, AsyncFdRegisterError<T>> {
        #[cfg(not(feature = "raw-fd"))]
        let number = fd.as_fd().as_raw_fd();
        #[cfg(feature = "raw-fd")]
        let number = fd.as_raw_fd();
        Self::registered(driver, fd, number)
    }
}

/// Registers the descriptor of a value that only knows its number.
///
/// ```
/// use net_driver::{Driver, Interest, net::AsyncFd};
/// use std::os::{fd::AsRawFd, unix::net::UnixStream};
///
/// let _entered = Driver::new(1).enter(None);
/// let (one, other) = UnixStream::pair()?;
/// one.set_nonblocking(true)?;
/// other.set_nonblocking(true)?;
/// // SAFETY: the streams outlive the registrations of their numbers.
/// let number = unsafe { AsyncFd::register(one.as_raw_fd()) }?;
/// // SAFETY: as above.
/// let other_number =
///     unsafe { AsyncFd::register_with_interest(other.as_raw_fd(), Interest::WRITABLE) }?;
/// drop(number);
/// // SAFETY: as above.
/// let number = unsafe { AsyncFd::register_in(&Driver::new(1), one.as_raw_fd()) }?;
/// drop((number, other_number));
/// # std::io::Result::Ok(())
/// ```
impl<T: AsRawFd> AsyncFd<T> {
    /// Registers a descriptor for reading and writing.
    ///
    /// # Safety
    /// The number that [`as_raw_fd`](AsRawFd::as_raw_fd) of `fd` returns is the number of an open
    /// descriptor. It stays that, and the descriptor stays that of the same open file, until
    /// [`into_inner`](Self::into_inner), the drop, or a leak of the `AsyncFd`.
    ///
    /// # Errors
    /// As [`new`](Self::new). The error hands `fd` back.
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub unsafe fn register(fd: T) -> Result<Self, AsyncFdRegisterError<T>> {
        // SAFETY: the caller vouches for the same.
        unsafe { Self::register_in(&current_driver(), fd) }
    }

    /// Does the same as [`register`](Self::register), with this driver in place of the current one.
    ///
    /// # Safety
    /// As [`register`](Self::register).
    ///
    /// # Errors
    /// As [`register`](Self::register).
    #[cfg_attr(selvedge_sim, track_caller)]
    pub unsafe fn register_in(driver: &Driver, fd: T) -> Result<Self, AsyncFdRegisterError<T>> {
        let number = fd.as_raw_fd();
        Self::registered(driver, fd, number)
    }

    /// Does the same as [`register`](Self::register): `interest` has no effect, as in
    /// [`with_interest`](Self::with_interest).
    ///
    /// # Safety
    /// As [`register`](Self::register).
    ///
    /// # Errors
    /// As [`register`](Self::register).
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub unsafe fn register_with_interest(
        fd: T,
        interest: Interest,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        let _ = interest;
        // SAFETY: the caller vouches for the same.
        unsafe { Self::register(fd) }
    }
}

impl<T> AsyncFd<T> {
    #[cfg_attr(selvedge_sim, track_caller)]
    fn registered(
        driver: &Driver,
        inner: T,
        number: RawFd,
    ) -> Result<Self, AsyncFdRegisterError<T>> {
        let registration = match driver.inner().open_reactor() {
            Ok(reactor) => {
                // The type is asked for now: by the time of an error, the number may be another
                // file's.
                let ready = if is_pipe(number) { PIPE } else { Ready::EMPTY };
                Registration::new(&reactor, number, ready, Removal::DeregisterIfOwner)
            }
            Err(error) => Err(error),
        };
        match registration {
            Ok(registration) => Ok(Self {
                source: Source::registered(registration, inner),
            }),
            Err(cause) => Err(AsyncFdRegisterError { inner, cause }),
        }
    }
}

impl<T> AsyncFd<T> {
    /// Returns the descriptor's owner.
    pub fn get_ref(&self) -> &T {
        self.source.io()
    }

    /// Returns the descriptor's owner.
    ///
    /// Do not replace the owner by a value with another descriptor: the registration would stay
    /// with the old descriptor, so waits for the new one may never end. (Nothing else is disturbed:
    /// once the old descriptor is closed, its number is free for another registration, [except in
    /// kqueue](Self#other-systems-than-linux).)
    pub fn get_mut(&mut self) -> &mut T {
        self.source.parts_mut().1
    }

    /// Ends the registration, and returns the descriptor's owner.
    pub fn into_inner(self) -> T {
        self.source.into_inner()
    }

    fn registration(&self) -> &Registration<Os> {
        self.source.registration()
    }

    /// Performs `op` once if the descriptor is ready for `interest`. If `op` fails with
    /// `WouldBlock`, the descriptor counts as not ready until the next event, unless the other side
    /// [has hung up](Self#hang-ups).
    ///
    /// # Errors
    /// `WouldBlock` if the descriptor is not ready, or the error of `op` (also `Interrupted`).
    /// After the driver's shutdown `op` is performed each time.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        op: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration()
            .try_user_io(interest, || op(self.get_ref()))
    }

    /// Does the same as [`try_io`](Self::try_io), with `&mut` access.
    ///
    /// # Errors
    /// As [`try_io`](Self::try_io).
    pub fn try_io_mut<R>(
        &mut self,
        interest: Interest,
        op: impl FnOnce(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let (registration, io) = self.source.parts_mut();
        registration.try_user_io(interest, || op(io))
    }

    /// Performs `op` when the descriptor is ready for `interest`. If `op` fails with `WouldBlock`,
    /// waits again and then repeats `op`. After a [hang-up](Self#hang-ups) of a direction of
    /// `interest` it repeats `op` without a wait, once in each poll. So after a half-close name
    /// only the direction that `op` needs.
    ///
    /// # Errors
    /// Any error of `op` other than `WouldBlock` (also `Interrupted`), or an error if the driver
    /// has shut down.
    pub async fn async_io<R>(
        &self,
        interest: Interest,
        mut op: impl FnMut(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration()
            .async_io(interest, || op(self.get_ref()))
            .await
    }

    /// Does the same as [`async_io`](Self::async_io), with `&mut` access.
    ///
    /// # Errors
    /// As [`async_io`](Self::async_io).
    pub async fn async_io_mut<R>(
        &mut self,
        interest: Interest,
        mut op: impl FnMut(&mut T) -> io::Result<R>,
    ) -> io::Result<R> {
        let (registration, io) = self.source.parts_mut();
        registration.async_io(interest, || op(io)).await
    }
}

fn is_pipe(fd: RawFd) -> bool {
    let mut stat = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: the pointer is valid for a write of a `stat`.
    if unsafe { libc::fstat(fd, stat.as_mut_ptr()) } != 0 {
        return false;
    }
    // SAFETY: the call has succeeded, so it has written a `stat`.
    let stat = unsafe { stat.assume_init() };
    stat.st_mode & libc::S_IFMT == libc::S_IFIFO
}

impl<T: AsRawFd> AsRawFd for AsyncFd<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.source.as_raw_fd()
    }
}

impl<T: AsFd> AsFd for AsyncFd<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}

impl<T: fmt::Debug> fmt::Debug for AsyncFd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncFd").field(&self.source).finish()
    }
}

impl<T> AsyncFdRegisterError<T> {
    /// Returns the value that was not registered, and the error of the registration.
    pub fn into_parts(self) -> (T, io::Error) {
        (self.inner, self.cause)
    }
}

impl<T> fmt::Debug for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AsyncFdRegisterError")
            .field(&self.cause)
            .finish()
    }
}

impl<T> fmt::Display for AsyncFdRegisterError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl<T> std::error::Error for AsyncFdRegisterError<T> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl<T> From<AsyncFdRegisterError<T>> for io::Error {
    fn from(error: AsyncFdRegisterError<T>) -> Self {
        error.cause
    }
}
