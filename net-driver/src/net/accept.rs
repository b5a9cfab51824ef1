//! `accept` waits when the process or the system has run out of descriptors or memory.
//!
//! The connection then stays in the listener's queue, and no event announces it again. Another try
//! at once would fail too. Therefore `accept` reports the error once, and then tries again after a
//! wait. The wait doubles from one try to the next, up to [`LONGEST`], until a try succeeds.
use super::{pause::Pause, source::Source};
use crate::{
    Driver, Interest,
    driver::WeakDriver,
    registration::uninterrupted,
    slot::Direction,
    sys::handle::{self, AsHandle, BorrowedHandle, OwnedHandle},
};
use socket2::SockAddr;
use std::{
    io,
    task::{Context, Poll, ready},
    time::Duration,
};
use sync_shim::sync::Mutex;

const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_secs(1);

/// The waits of a listener. All callers of `accept` share them, so one caller reports the error for
/// all.
#[derive(Debug)]
pub(crate) struct Backoff {
    /// The driver whose timers the waits use.
    driver: WeakDriver,
    /// The length of the next wait. `None` unless a try has failed for want of a descriptor or
    /// memory since the last success.
    wait: Mutex<Option<Duration>>,
}

/// The wait of one call of `accept`, or of the task that calls `poll_accept`.
#[derive(Default)]
pub(crate) struct Attempt {
    pause: Pause,
}

/// Returns whether the error says that there is no descriptor or memory for a connection.
fn is_exhausted(error: &io::Error) -> bool {
    #[cfg(unix)]
    const CODES: [i32; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    /// `WSAEMFILE`, `WSAENOBUFS` and `WSA_NOT_ENOUGH_MEMORY`.
    #[cfg(windows)]
    const CODES: [i32; 3] = [10_024, 10_055, 8];
    error
        .raw_os_error()
        .is_some_and(|code| CODES.contains(&code))
}

/// Returns whether the error is of a connection that ended before it was accepted.
fn is_of_connection(error: &io::Error) -> bool {
    #[cfg(unix)]
    let is_protocol = error.raw_os_error() == Some(libc::EPROTO);
    #[cfg(windows)]
    let is_protocol = false;
    let kinds = [
        io::ErrorKind::ConnectionAborted,
        io::ErrorKind::ConnectionReset,
    ];
    is_protocol || kinds.contains(&error.kind())
}

impl Backoff {
    pub(crate) fn new(driver: &Driver) -> Self {
        Self {
            driver: driver.downgrade(),
            wait: Mutex::new(None),
        }
    }

    /// Accepts a connection. `poll_once` tries the operation, and registers the caller's waker if
    /// no connection is in the queue.
    pub(crate) fn poll<R>(
        &self,
        attempt: &mut Attempt,
        cx: &mut Context<'_>,
        mut poll_once: impl FnMut(&mut Context<'_>) -> Poll<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        loop {
            ready!(attempt.pause.poll(&self.driver, cx))?;
            let error = match ready!(poll_once(cx)) {
                Ok(accepted) => {
                    *self.wait.lock() = None;
                    return Poll::Ready(Ok(accepted));
                }
                Err(error) if is_of_connection(&error) => continue,
                Err(error) if is_exhausted(&error) => error,
                Err(error) => return Poll::Ready(Err(error)),
            };
            let wait = self.wait.lock().replace(SHORTEST);
            let Some(wait) = wait else {
                return Poll::Ready(Err(error));
            };
            *self.wait.lock() = Some((wait * 2).min(LONGEST));
            attempt.pause.begin(wait);
        }
    }
}

/// An accepted socket, which is non-blocking and close-on-exec, and the address of its other side.
pub(crate) type Accepted = (OwnedHandle, SockAddr);

/// Takes a connection from the queue of `listener`. Where the system has a call `accept4`, that
/// call makes the socket non-blocking and close-on-exec. So this needs one system call less than an
/// `accept` of std, after which a second call makes the socket non-blocking.
#[cfg(unix)]
fn accept(listener: BorrowedHandle<'_>) -> io::Result<Accepted> {
    use socket2::SockAddrStorage;
    use std::os::fd::{AsRawFd, FromRawFd};

    let listener = listener.as_raw_fd();
    let accept = |address: *mut SockAddrStorage, len: *mut libc::socklen_t| {
        cfg_if::cfg_if! {
            if #[cfg(target_vendor = "apple")] {
                // SAFETY: the pointers are valid for the call, and `len` points to the storage's
                // length.
                let fd = unsafe { libc::accept(listener, address.cast(), len) };
            } else {
                let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
                // SAFETY: the pointers are valid for the call, and `len` points to the storage's
                // length.
                let fd = unsafe { libc::accept4(listener, address.cast(), len, flags) };
            }
        }
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call opened the descriptor, and no other code knows it.
        let fd = unsafe { OwnedHandle::from_raw_fd(fd) };
        // macOS accepts a connection that the peer has reset meanwhile, without an address.
        #[cfg(target_vendor = "apple")]
        // SAFETY: `len` is valid to read.
        if unsafe { *len } == 0 {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        #[cfg(target_vendor = "apple")]
        super::set_flags(fd.as_raw_fd())?;
        Ok(fd)
    };
    // SAFETY: a call that succeeds has written an address, and its length.
    unsafe { SockAddr::try_init(accept) }
}

/// Takes a connection from the queue of `listener`, and makes the socket non-blocking, and one that
/// no process inherits. A process that another thread starts between these calls inherits it.
#[cfg(windows)]
fn accept(listener: BorrowedHandle<'_>) -> io::Result<Accepted> {
    let (socket, address) = socket2::SockRef::from(&listener).accept()?;
    socket.set_nonblocking(true)?;
    Ok((socket.into(), address))
}

impl<T: AsHandle> Source<T> {
    /// Accepts a connection. Any number of tasks may call this at a time.
    pub(crate) async fn accept(&self, backoff: &Backoff) -> io::Result<Accepted> {
        let mut op = || uninterrupted(|| accept(handle::borrow(self.io())));
        let mut attempt = Attempt::default();
        let mut wait = self.registration().wait(Interest::READABLE);
        std::future::poll_fn(|cx| backoff.poll(&mut attempt, cx, |cx| wait.poll_io(cx, &mut op)))
            .await
    }

    /// Accepts a connection. Only the last task that polled is woken.
    pub(crate) fn poll_accept(
        &self,
        backoff: &Backoff,
        attempt: &Mutex<Attempt>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<Accepted>> {
        let mut op = || accept(handle::borrow(self.io()));
        let mut mine = std::mem::take(&mut *attempt.lock());
        let registration = self.registration();
        let polled = backoff.poll(&mut mine, cx, |cx| {
            registration.poll_io(cx, Direction::Read, &mut op)
        });
        let mine = std::mem::replace(&mut *attempt.lock(), mine);
        drop(mine);
        polled
    }
}
