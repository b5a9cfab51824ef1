//! Other Unix systems: the poller that the crate `polling` uses there, such as kqueue. On Linux
//! this code stands for those systems in tests (`--cfg selvedge_polling`).
//!
//! The poller of `polling` differs from epoll:
//!
//! - One thread waits at a time. The `wait` of another thread returns at once, without events.
//! - A source stays registered until a call ends its registration: `polling` keeps a record of the
//!   source's number.
//! - No event says that one half alone is closed, so a read may not guess that no byte is left.
//! - A token has as many bits as a pointer. This crate needs 64.
//!
//! `polling` merges wakes and does not say which wait they ended. So `wake` sets `is_woken` before
//! it notifies, and a wait that had the poller takes the flag at its end. Two things follow:
//!
//! 1. A wait that ended by a notification finds the flag, or another wait has taken the flag since.
//!    The wait that took the flag reports the wake. If that wait had a limit of zero, its thread
//!    wakes the reactor again (rule 6 of `poller.rs`).
//! 2. A notification may be left over for a later wait. That wait then returns without a wake.
use super::{Fd, Sys};
use crate::Ready;
use polling::{Event, Events, PollMode};
use std::{
    collections::VecDeque,
    fmt, io,
    num::NonZeroUsize,
    os::fd::BorrowedFd,
    sync::{Mutex, TryLockError},
    time::Duration,
};
use sync_shim::atomic::{AtomicBool, Ordering::SeqCst};

/// The number of events for which a new driver has room. A wait for more events makes more room.
const FIRST_CAPACITY: NonZeroUsize = NonZeroUsize::new(64).unwrap();

pub(crate) struct Portable {
    poller: polling::Poller,
    is_woken: AtomicBool,
    /// Locked by the thread that waits.
    waiting: Mutex<Waiting>,
}

struct Waiting {
    events: Events,
    /// Events beyond those that a wait asked for. The next wait hands them over.
    left_over: VecDeque<(u64, Ready)>,
}

impl fmt::Debug for Portable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.poller.fmt(f)
    }
}

impl Sys for Portable {
    const CLOSE_DEREGISTERS: bool = false;
    const REPORTS_CLOSE: bool = false;

    fn open() -> io::Result<Self> {
        let poller = polling::Poller::new()?;
        if !poller.supports_edge() {
            let message = "this system's poller has no edge-triggered events";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        Ok(Self {
            poller,
            is_woken: AtomicBool::new(false),
            waiting: Mutex::new(Waiting {
                events: Events::with_capacity(FIRST_CAPACITY),
                left_over: VecDeque::new(),
            }),
        })
    }

    fn register(&self, fd: Fd, token: u64) -> io::Result<()> {
        let interest = interest(token)?;
        if fd < 0 {
            // `polling` panics at −1: no `BorrowedFd` may have that number.
            return Err(io::Error::from_raw_os_error(libc::EBADF));
        }
        // SAFETY: the rule of this call is that a source is deregistered before it is closed. For a
        // socket of this crate, the registration's drop keeps that rule, as `CLOSE_DEREGISTERS` is
        // false. The owner of an `AsyncFd`'s descriptor may close it earlier, by safe code.
        // `polling` keeps the number alone, and only passes it to the kernel. A closed number is an
        // error of the kernel, and the events of another owner's descriptor are spurious ones (rule
        // 2 of `sys.rs`). So memory is safe whichever number this is.
        let added = unsafe { self.poller.add_with_mode(fd, interest, PollMode::Edge) };
        let is_registered = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        if added.as_ref().is_err_and(|error| !is_registered(error)) {
            // `polling` may keep an entry for a number that the kernel has refused. This call fails
            // if there is no entry.
            let _ = self.deregister(fd);
        }
        added
    }

    fn replace(&self, fd: Fd, token: u64) -> io::Result<()> {
        let interest = interest(token)?;
        // SAFETY: the number is not −1, which `register` refuses. It is used for this call alone.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        self.poller.modify_with_mode(fd, interest, PollMode::Edge)
    }

    fn deregister(&self, fd: Fd) -> io::Result<()> {
        // SAFETY: the number is not −1, which `register` refuses. It is used for this call alone.
        // If its descriptor is closed, the call fails.
        let source = unsafe { BorrowedFd::borrow_raw(fd) };
        self.poller.delete(source)
    }

    fn wait(
        &self,
        limit: Option<Duration>,
        max: usize,
        mut on_event: impl FnMut(u64, Ready),
    ) -> io::Result<bool> {
        let mut waiting = match self.waiting.try_lock() {
            Ok(waiting) => waiting,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(false),
        };
        let Waiting { events, left_over } = &mut *waiting;
        let mut was_woken = false;
        if left_over.is_empty() {
            events.clear();
            let max =
                NonZeroUsize::new(max.min(super::MAX_EVENTS_PER_WAIT)).unwrap_or(FIRST_CAPACITY);
            if max > events.capacity() {
                *events = Events::with_capacity(max);
            }
            self.poller.wait(events, limit)?;
            // Ordering: SeqCst pairs with `wake`. If this wait took the notification of a wake,
            // that wake's store comes before this swap. A wake sends no notification if it finds
            // the mark of an earlier one. If this wait cleared that mark, the wake's store comes
            // before this swap too.
            was_woken = self.is_woken.swap(false, SeqCst);
            left_over.extend(
                events
                    .iter()
                    .map(|event| (event.key as u64, to_ready(&event))),
            );
        }
        for _ in 0..max.max(1) {
            let Some((token, ready)) = left_over.pop_front() else {
                break;
            };
            on_event(token, ready);
        }
        Ok(was_woken)
    }

    fn wake(&self) {
        // Ordering: SeqCst pairs with `wait`. `polling` marks a notification, and clears the mark,
        // with SeqCst as well.
        self.is_woken.store(true, SeqCst);
        // `notify` fails only if other code has closed a descriptor of this poller.
        let _ = self.poller.notify();
    }
}

/// Returns the interest of each source: all events, under the bits of its token.
fn interest(token: u64) -> io::Result<Event> {
    let key = usize::try_from(token).map_err(|_| {
        let message = "sockets need a system of 64 bits";
        io::Error::new(io::ErrorKind::Unsupported, message)
    })?;
    Ok(Event::all(key))
}

fn to_ready(event: &Event) -> Ready {
    let mut ready = Ready::EMPTY;
    if event.readable {
        ready |= Ready::READABLE;
    }
    if event.writable {
        ready |= Ready::WRITABLE;
    }
    if event.is_priority() {
        ready |= Ready::PRIORITY | Ready::READABLE;
    }
    if event.is_interrupt() {
        let both = Ready::READABLE | Ready::WRITABLE;
        ready |= both | Ready::READ_CLOSED | Ready::WRITE_CLOSED;
    }
    if event.is_err() == Some(true) {
        ready |= Ready::READABLE | Ready::WRITABLE | Ready::ERROR;
    }
    ready
}

#[cfg(test)]
mod tests;
