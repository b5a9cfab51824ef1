//! Waits for the end of a child, without reaping it.
//!
//! Until the child is reaped, no other process has its id. So both kinds of wait may use the id.
//!
//! A driver waits for the descriptor of the process. Once that driver has shut down, the next poll
//! moves the descriptor to the driver that is current, or waits by a thread where none is.
use net_driver::{Driver, net::AsyncFd};
use std::{
    io,
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker, ready},
    thread,
};

pub(super) enum Exit {
    /// A driver waits for the descriptor of the process.
    Pidfd { id: u32, fd: AsyncFd<OwnedFd> },
    /// There is no descriptor of the process. A thread waits, from the first poll on.
    Thread { id: u32, thread: Option<Arc<Ended>> },
}

#[derive(Default)]
pub(super) struct Ended(Mutex<State>);

#[derive(Default)]
struct State {
    result: Option<io::Result<()>>,
    waker: Option<Waker>,
}

impl Exit {
    /// Prepares to wait for a child that was not reaped yet.
    ///
    /// # Errors
    /// If the driver cannot wait for the descriptor: the driver has shut down.
    pub(super) fn of(id: u32) -> io::Result<Self> {
        match pidfd_open(id) {
            Ok(fd) => AsyncFd::new(fd).map(|fd| Self::Pidfd { id, fd }),
            // The system has no `pidfd_open`, or this process has no descriptor left.
            Err(_) => Ok(Self::by_thread(id)),
        }
    }

    pub(super) fn by_thread(id: u32) -> Self {
        Self::Thread { id, thread: None }
    }

    /// Returns the process id of the child.
    pub(super) fn id(&self) -> u32 {
        let (Self::Pidfd { id, .. } | Self::Thread { id, .. }) = *self;
        id
    }

    /// Waits for an event. As a rule the child has ended by the time of the event.
    ///
    /// # Errors
    /// If both the child's driver and the current one have shut down, or if no thread can wait.
    pub(super) fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Pidfd { fd, .. } => match ready!(fd.poll_read_ready(cx)) {
                Ok(mut event) => {
                    event.clear_ready();
                    Poll::Ready(Ok(()))
                }
                // The driver has shut down.
                Err(_) => {
                    self.leave_driver()?;
                    self.poll_event(cx)
                }
            },
            Self::Thread { id, thread } => {
                let ended = match thread {
                    Some(ended) => ended,
                    None => thread.insert(wait_in_thread(*id)?),
                };
                let result = ended.poll(cx);
                match result {
                    Poll::Ready(_) => *thread = None,
                    Poll::Pending => coop_budget::note_wait(|| "a thread".into()),
                }
                result
            }
        }
    }

    /// Moves the wait to the current driver, or to a thread where none is.
    ///
    /// # Errors
    /// If the current driver has shut down. Then the wait stays with its driver.
    fn leave_driver(&mut self) -> io::Result<()> {
        let Self::Pidfd { id, .. } = *self else {
            return Ok(());
        };
        let Some(driver) = Driver::current() else {
            *self = Self::by_thread(id);
            return Ok(());
        };
        driver.open()?;
        if let Some(fd) = self.take_pidfd() {
            // This driver may have no room for the descriptor, or shut down just now.
            let moved = AsyncFd::new_in(&driver, fd);
            *self = moved.map_or(Self::by_thread(id), |fd| Self::Pidfd { id, fd });
        }
        Ok(())
    }

    /// Takes the descriptor of the process, if there is one: from now on, only the thread that
    /// waits for orphans may need it.
    pub(super) fn take_pidfd(&mut self) -> Option<OwnedFd> {
        match std::mem::replace(self, Self::by_thread(0)) {
            Self::Pidfd { fd, .. } => Some(fd.into_inner()),
            Self::Thread { .. } => None,
        }
    }
}

impl Ended {
    pub(super) fn poll(&self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        // Wakers are cloned and dropped without the lock, as they are user code.
        let waker = cx.waker().clone();
        let mut state = self.lock();
        if let Some(result) = state.result.take() {
            return Poll::Ready(result);
        }
        let replaced = state.waker.replace(waker);
        drop(state);
        drop(replaced);
        Poll::Pending
    }

    pub(super) fn set(&self, result: io::Result<()>) {
        let mut state = self.lock();
        state.result = Some(result);
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a thread that waits for the child's end. The thread belongs to no runtime's pool, because
/// a runtime's shutdown waits for the threads of its pool.
fn wait_in_thread(id: u32) -> io::Result<Arc<Ended>> {
    let ended = Arc::new(Ended::default());
    let report = ended.clone();
    thread::Builder::new()
        .name("child-wait".into())
        .spawn(move || report.set(wait_unreaped(id)))?;
    Ok(ended)
}

fn wait_unreaped(id: u32) -> io::Result<()> {
    loop {
        // SAFETY: all zeros are a valid value of this type.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        let options = libc::WEXITED | libc::WNOWAIT;
        // SAFETY: the pointer is valid for a write.
        let result = unsafe { libc::waitid(libc::P_PID, id as libc::id_t, &raw mut info, options) };
        if result == 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// Opens a descriptor of the process. The descriptor is close-on-exec.
#[cfg(all(target_os = "linux", not(selvedge_polling)))]
fn pidfd_open(id: u32) -> io::Result<OwnedFd> {
    // SAFETY: the call takes no pointers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, id, 0) };
    match libc::c_int::try_from(fd) {
        // SAFETY: the call has just opened the descriptor, and no other code knows its number.
        Ok(fd @ 0..) => Ok(unsafe { std::os::fd::FromRawFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Fails: only Linux has such descriptors, and the cfg stands for the other systems there.
#[cfg(not(all(target_os = "linux", not(selvedge_polling))))]
fn pidfd_open(_: u32) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Waits until one of the descriptors is readable. Returns whether the first one is. A signal also
/// ends the wait.
pub(super) fn poll_readable<'a>(fds: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<bool> {
    let entry = |fd: BorrowedFd<'_>| libc::pollfd {
        fd: fd.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    };
    let mut entries: Vec<_> = fds.map(entry).collect();
    let count = entries.len() as libc::nfds_t;
    // SAFETY: the pointer is valid for `count` entries.
    let result = unsafe { libc::poll(entries.as_mut_ptr(), count, -1) };
    match io::Error::last_os_error() {
        error if result == -1 && error.kind() != io::ErrorKind::Interrupted => Err(error),
        _ => Ok(result > 0 && entries.first().is_some_and(|first| first.revents != 0)),
    }
}
