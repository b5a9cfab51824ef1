//! The waits of an [`AsyncFd`], and the guards that they return.
use super::AsyncFd;
use crate::{
    Interest, Ready,
    readiness::Snapshot,
    ready::{EVERY_INTEREST, InterestBits},
    registration::{Registration, RegistrationId},
    slot::Direction,
    sys::Os,
};
use std::{
    fmt, io,
    task::{Context, Poll, ready},
};

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
    pub(super) fd: &'a AsyncFd<T>,
    pub(super) found: Found,
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
    pub(super) fd: &'a mut AsyncFd<T>,
    pub(super) found: Found,
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

/// The readiness that a wait has found.
#[derive(Debug)]
pub(super) struct Found {
    seen: Snapshot,
    interest: Interest,
    /// The states that the wait has found and that no call has cleared.
    ready: Ready,
    /// The registration of the wait. A user may put another `AsyncFd` in the place of the guard's.
    of: RegistrationId,
}

impl Found {
    pub(super) fn new(registration: &Registration<Os>, seen: Snapshot, interest: Interest) -> Self {
        Self {
            seen,
            interest,
            ready: seen.ready_for(interest),
            of: registration.id(),
        }
    }

    fn clear(&self, registration: &Registration<Os>, interest: Interest) {
        if registration.id() == self.of {
            // This fails on one-shot systems alone. Then the tasks that wait are woken.
            let _ = registration.clear_for_user(self.seen, interest);
        }
    }

    fn clear_all(&mut self, registration: &Registration<Os>) {
        self.clear(registration, self.interest);
        self.ready = Ready::EMPTY;
    }

    fn clear_matching(&mut self, registration: &Registration<Os>, ready: Ready) {
        self.clear(registration, EVERY_INTEREST.intersection(ready));
        self.ready = self.ready - ready;
    }
}

impl<T> AsyncFd<T> {
    fn guard(&self, seen: Snapshot, interest: Interest) -> AsyncFdReadyGuard<'_, T> {
        AsyncFdReadyGuard {
            found: Found::new(self.registration(), seen, interest),
            fd: self,
        }
    }

    fn guard_mut(&mut self, seen: Snapshot, interest: Interest) -> AsyncFdReadyMutGuard<'_, T> {
        AsyncFdReadyMutGuard {
            found: Found::new(self.registration(), seen, interest),
            fd: self,
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
        let Poll::Ready(seen) = self.registration().poll_ready(cx, direction) else {
            progress.waits_for(move || self.registration().awaits(direction.interest()));
            return Poll::Pending;
        };
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
}

macro_rules! guard_methods {
    ($type:ident, $lent:ty) => {
        impl<'a, T> $type<'a, T> {
            /// Clears the readiness that the wait found, unless an event has come since, or the
            /// other side [has hung up](AsyncFd#hang-ups).
            pub fn clear_ready(&mut self) {
                self.found.clear_all(self.fd.registration());
            }

            /// Clears those states that are in `ready`, unless an event has come since the wait, or
            /// the other side [has hung up](AsyncFd#hang-ups).
            pub fn clear_ready_matching(&mut self, ready: Ready) {
                self.found.clear_matching(self.fd.registration(), ready);
            }

            /// Does nothing: the readiness stays until another call clears it. The name is tokio's.
            pub fn retain_ready(&mut self) {}

            /// Returns the readiness that the wait found, without the states that this guard was
            /// asked to clear.
            pub fn ready(&self) -> Ready {
                self.found.ready
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
