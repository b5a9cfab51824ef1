//! Readiness of any descriptor that the kernel's poller takes.
use super::source::{Source, current_driver};
use crate::{
    Driver, Interest, Ready, readiness::Snapshot, registration::Registration, slot::Direction,
    sys::Os,
};
use std::{
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    task::{Context, Poll, ready},
};

/// Readiness of any descriptor that the kernel's poller takes, such as a pipe, a device, or another
/// library's socket.
///
/// The caller makes the descriptor non-blocking first. The descriptor must stay open until
/// [`into_inner`](Self::into_inner) or the drop of the `AsyncFd`. Any number of tasks may wait.
///
/// A wait returns a guard. If the operation that follows says `WouldBlock`, the task must clear the
/// readiness: otherwise the next wait returns at once. The guard's
/// [`try_io`](AsyncFdReadyGuard::try_io) clears it.
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

/// The readiness that a wait on an [`AsyncFd`] has found.
///
/// ```
/// use net_driver::{Driver, net::AsyncFd};
/// use std::{io::{Read, Write}, os::unix::net::UnixStream};
///
/// Driver::new(1).park(0).block_on(async {
///     let (one, mut other) = UnixStream::pair()?;
///     one.set_nonblocking(true)?;
///     let one = AsyncFd::new(one)?;
///     other.write_all(b"abc")?;
///     let mut guard = one.readable().await?;
///     let mut to = [0; 8];
///     let count = guard.try_io(|one| one.get_ref().read(&mut to)).unwrap()?;
///     assert_eq!(&to[..count], b"abc");
///     assert!(std::ptr::eq(guard.get_ref(), &one));
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
#[must_use = "readiness that proves wrong has to be cleared"]
pub struct AsyncFdReadyGuard<'a, T> {
    fd: &'a AsyncFd<T>,
    seen: Snapshot,
    interest: Interest,
}

/// The same as [`AsyncFdReadyGuard`], made by a wait that borrows the [`AsyncFd`] by `&mut`.
///
/// ```
/// use net_driver::{Driver, net::AsyncFd};
/// use std::{io::{Read, Write}, os::{fd::AsRawFd, unix::net::UnixStream}};
///
/// Driver::new(1).park(0).block_on(async {
///     let (one, mut other) = UnixStream::pair()?;
///     one.set_nonblocking(true)?;
///     let mut one = AsyncFd::new(one)?;
///     other.write_all(b"abc")?;
///     let mut guard = one.readable_mut().await?;
///     let mut to = [0; 1];
///     assert_eq!(guard.get_inner_mut().read(&mut to)?, 1);
///     assert_eq!(guard.get_mut().get_mut().read(&mut to)?, 1);
///     assert_eq!(guard.get_ref().get_ref().read(&mut to)?, 1);
///     assert_eq!(&to, b"c");
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
#[must_use = "readiness that proves wrong has to be cleared"]
pub struct AsyncFdReadyMutGuard<'a, T> {
    fd: &'a mut AsyncFd<T>,
    seen: Snapshot,
    interest: Interest,
}

/// The error of an operation that said `WouldBlock`: the caller must wait again.
///
/// ```
/// use net_driver::{Driver, net::{AsyncFd, TryIoError}};
/// use std::{io::{Read, Write}, os::unix::net::UnixStream};
///
/// Driver::new(1).park(0).block_on(async {
///     let (one, mut other) = UnixStream::pair()?;
///     one.set_nonblocking(true)?;
///     let one = AsyncFd::new(one)?;
///     other.write_all(b"abc")?;
///     let mut to = [0; 8];
///     let count = loop {
///         match one.readable().await?.try_io(|one| one.get_ref().read(&mut to)) {
///             Ok(read) => break read?,
///             Err(TryIoError) => {} // Another task was faster.
///         }
///     };
///     assert_eq!(count, 3);
///     let mut guard = one.readable().await?;
///     assert!(matches!(guard.try_io(|one| one.get_ref().read(&mut to)), Err(TryIoError)));
///     std::io::Result::Ok(())
/// }).unwrap();
/// ```
#[derive(Debug)]
pub struct TryIoError;

const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);

impl<T: AsRawFd> AsyncFd<T> {
    /// Registers a descriptor for reading and writing.
    ///
    /// # Errors
    /// If the kernel's poller does not take the descriptor: `EPERM` for a file, and `EEXIST` if
    /// this descriptor is registered with the driver already. (If a socket of this crate was
    /// dropped while a duplicate of its descriptor was open, the socket stays registered under its
    /// old number.)
    ///
    /// # Panics
    /// Without a current driver.
    #[track_caller]
    pub fn new(fd: T) -> io::Result<Self> {
        Self::with_interest(fd, BOTH)
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
        Self::new_in(&current_driver(), fd)
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
    pub fn new_in(driver: &Driver, fd: T) -> io::Result<Self> {
        let source = Source::new_sole(driver, fd)?;
        Ok(Self { source })
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
    /// with the old descriptor.
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

    fn guard(&self, seen: Snapshot, interest: Interest) -> AsyncFdReadyGuard<'_, T> {
        AsyncFdReadyGuard {
            fd: self,
            seen,
            interest,
        }
    }

    fn guard_mut(&mut self, seen: Snapshot, interest: Interest) -> AsyncFdReadyMutGuard<'_, T> {
        AsyncFdReadyMutGuard {
            fd: self,
            seen,
            interest,
        }
    }

    /// Waits until the descriptor is ready for any state of `interest`.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub async fn ready(&self, interest: Interest) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        let seen = self.registration().ready(interest).await?;
        Ok(self.guard(seen, interest))
    }

    /// Does the same as [`ready`](Self::ready), with a guard that lends `&mut`.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub async fn ready_mut(
        &mut self,
        interest: Interest,
    ) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        let seen = self.registration().ready(interest).await?;
        Ok(self.guard_mut(seen, interest))
    }

    /// Waits until the descriptor is readable.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub async fn readable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::READABLE).await
    }

    /// Does the same as [`readable`](Self::readable), with a guard that lends `&mut`.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub async fn readable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::READABLE).await
    }

    /// Waits until the descriptor is writable.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub async fn writable(&self) -> io::Result<AsyncFdReadyGuard<'_, T>> {
        self.ready(Interest::WRITABLE).await
    }

    /// Does the same as [`writable`](Self::writable), with a guard that lends `&mut`.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub async fn writable_mut(&mut self) -> io::Result<AsyncFdReadyMutGuard<'_, T>> {
        self.ready_mut(Interest::WRITABLE).await
    }

    fn poll(&self, cx: &mut Context<'_>, direction: Direction) -> Poll<io::Result<Snapshot>> {
        let progress = ready!(coop_budget::poll_proceed(cx));
        let seen = ready!(self.registration().poll_ready(cx, direction));
        progress.made_progress();
        Poll::Ready(seen)
    }

    /// Polls for a readable state. Only the last task that polled is woken.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub fn poll_read_ready(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'_, T>>> {
        let seen = ready!(self.poll(cx, Direction::Read))?;
        Poll::Ready(Ok(self.guard(seen, Interest::READABLE)))
    }

    /// Does the same as [`poll_read_ready`](Self::poll_read_ready), with a guard that lends `&mut`.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub fn poll_read_ready_mut(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'_, T>>> {
        let seen = ready!(self.poll(cx, Direction::Read))?;
        Poll::Ready(Ok(self.guard_mut(seen, Interest::READABLE)))
    }

    /// Polls for a writable state. Only the last task that polled is woken.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub fn poll_write_ready(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyGuard<'_, T>>> {
        let seen = ready!(self.poll(cx, Direction::Write))?;
        Poll::Ready(Ok(self.guard(seen, Interest::WRITABLE)))
    }

    /// Does the same as [`poll_write_ready`](Self::poll_write_ready), with a guard that lends
    /// `&mut`.
    ///
    /// # Errors
    /// If the driver has shut down.
    pub fn poll_write_ready_mut(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<AsyncFdReadyMutGuard<'_, T>>> {
        let seen = ready!(self.poll(cx, Direction::Write))?;
        Poll::Ready(Ok(self.guard_mut(seen, Interest::WRITABLE)))
    }

    /// Performs `op` once if the descriptor is ready for `interest`. If `op` fails with
    /// `WouldBlock`, the descriptor counts as not ready until the next event.
    ///
    /// # Errors
    /// `WouldBlock` if the descriptor is not ready, or the error of `op` (also `Interrupted`).
    /// After the driver's shutdown `op` is performed each time.
    pub fn try_io<R>(
        &self,
        interest: Interest,
        op: impl FnOnce(&T) -> io::Result<R>,
    ) -> io::Result<R> {
        self.registration().try_io(interest, || op(self.get_ref()))
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
        registration.try_io(interest, || op(io))
    }

    /// Performs `op` when the descriptor is ready for `interest`. If `op` fails with `WouldBlock`,
    /// waits again and then repeats `op`.
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

macro_rules! guard_methods {
    ($type:ident, $lent:ty) => {
        impl<'a, T> $type<'a, T> {
            /// Clears the readiness that the wait found, unless an event has come since.
            pub fn clear_ready(&mut self) {
                self.fd.registration().clear(self.seen, self.interest);
            }

            /// Clears those states that are in `ready`, unless an event has come since the wait.
            pub fn clear_ready_matching(&mut self, ready: Ready) {
                let registration = self.fd.registration();
                let bits = [
                    (Ready::READABLE, Interest::READABLE),
                    (Ready::WRITABLE, Interest::WRITABLE),
                    (Ready::PRIORITY, Interest::PRIORITY),
                    (Ready::ERROR, Interest::ERROR),
                ];
                for (_, interest) in bits.iter().filter(|(bit, _)| ready.intersects(*bit)) {
                    registration.clear(self.seen, *interest);
                }
            }

            /// Does nothing: the readiness stays until another call clears it. The name is tokio's.
            pub fn retain_ready(&mut self) {}

            /// Returns the readiness that the wait found.
            pub fn ready(&self) -> Ready {
                self.seen.ready_for(self.interest)
            }

            /// Returns the descriptor's owner.
            pub fn get_inner(&self) -> &T {
                self.fd.get_ref()
            }

            /// Performs `op`, and clears the readiness if `op` fails with `WouldBlock`.
            ///
            /// # Errors
            /// [`TryIoError`] if `op` fails with `WouldBlock`: the caller must wait again.
            pub fn try_io<R>(
                &mut self,
                op: impl FnOnce($lent) -> io::Result<R>,
            ) -> Result<io::Result<R>, TryIoError> {
                match op(self.lent()) {
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                        self.clear_ready();
                        Err(TryIoError)
                    }
                    done => Ok(done),
                }
            }
        }

        impl<T: fmt::Debug> fmt::Debug for $type<'_, T> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($type)).field(&self.fd).finish()
            }
        }
    };
}

guard_methods!(AsyncFdReadyGuard, &AsyncFd<T>);
guard_methods!(AsyncFdReadyMutGuard, &mut AsyncFd<T>);

impl<'a, T> AsyncFdReadyGuard<'a, T> {
    fn lent(&self) -> &AsyncFd<T> {
        self.fd
    }

    /// Returns the [`AsyncFd`] whose wait made this guard.
    pub fn get_ref(&self) -> &'a AsyncFd<T> {
        self.fd
    }
}

impl<T> AsyncFdReadyMutGuard<'_, T> {
    fn lent(&mut self) -> &mut AsyncFd<T> {
        self.fd
    }

    /// Returns the [`AsyncFd`] whose wait made this guard.
    pub fn get_ref(&self) -> &AsyncFd<T> {
        self.fd
    }

    /// Returns the [`AsyncFd`] whose wait made this guard.
    pub fn get_mut(&mut self) -> &mut AsyncFd<T> {
        self.fd
    }

    /// Returns the descriptor's owner.
    pub fn get_inner_mut(&mut self) -> &mut T {
        self.fd.get_mut()
    }
}

impl fmt::Display for TryIoError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the descriptor is not ready")
    }
}

impl std::error::Error for TryIoError {}
