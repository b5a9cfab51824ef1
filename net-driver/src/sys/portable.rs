//! Other Unix systems: what the crate `polling` has there, such as kqueue. On Linux it stands for
//! those systems in tests (`--cfg selvedge_polling`).
//!
//! Compared with epoll it lacks some things:
//!
//! - One thread waits at a time. Another one's `wait` returns at once, without events.
//! - A source stays registered until a call ends its registration: `polling` keeps a record of its
//!   number.
//! - No event says that a half is closed, so a read may not guess that no byte is left.
//! - A token has as many bits as a pointer. This crate needs 64.
//!
//! `polling` merges wakes and does not say which wait they ended. So `wake` sets `is_woken` before
//! it notifies, and a wait that had the poller takes the flag when it is over:
//!
//! 1. A wait that ended by a notification finds the flag, or another wait has taken it since. The
//!    wait that took the flag reports the wake. If that wait was a look, its thread wakes again
//!    (rule 6 of the poller).
//! 2. A notification may be left over for a later wait, which returns for nothing.
use super::{Existing, Fd, Sys};
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

/// The events of one wait.
const MOST: NonZeroUsize = NonZeroUsize::new(64).unwrap();

pub(crate) struct Portable {
    poller: polling::Poller,
    is_woken: AtomicBool,
    /// Locked by the thread that waits.
    waiting: Mutex<Waiting>,
}

struct Waiting {
    events: Events,
    /// Events beyond those that a wait asked for. The next wait hands them over.
    rest: VecDeque<(u64, Ready)>,
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
            let why = "this system's poller has no edge-triggered events";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(Self {
            poller,
            is_woken: AtomicBool::new(false),
            waiting: Mutex::new(Waiting {
                events: Events::with_capacity(MOST),
                rest: VecDeque::new(),
            }),
        })
    }

    fn register(&self, fd: Fd, token: u64, existing: Existing) -> io::Result<()> {
        let Ok(key) = usize::try_from(token) else {
            let why = "sockets need a system of 64 bits";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        };
        let interest = Event::all(key);
        // SAFETY: the number is an open descriptor: the caller of `Reactor::register` owns it. It
        // stays registered until `deregister`, which comes before its close, or until the kernel
        // forgets it. `polling` keeps the number alone, so the call's own safety rule is that of
        // this `Sys`: `CLOSE_DEREGISTERS` is false.
        let done = unsafe { self.poller.add_with_mode(fd, interest, PollMode::Edge) };
        let exists = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        let done = match (done, existing) {
            (Err(error), Existing::Replace) if exists(&error) => {
                // SAFETY: as above.
                let fd = unsafe { BorrowedFd::borrow_raw(fd) };
                self.poller.modify_with_mode(fd, interest, PollMode::Edge)
            }
            (done, _) => done,
        };
        if done.as_ref().is_err_and(|error| !exists(error)) {
            // `polling` may keep an entry for a number that the kernel has refused.
            let _ = self.deregister(fd);
        }
        done
    }

    fn deregister(&self, fd: Fd) -> io::Result<()> {
        // SAFETY: the number is used for this call alone. For a closed one the call fails.
        self.poller.delete(unsafe { BorrowedFd::borrow_raw(fd) })
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
        let Waiting { events, rest } = &mut *waiting;
        let mut was_woken = false;
        if rest.is_empty() {
            events.clear();
            self.poller.wait(events, limit)?;
            // Ordering: SeqCst pairs with `wake`. If this wait took the notification of a wake, the
            // wake's store comes before. So it does if this wait cleared the mark because of which
            // that wake sent no notification.
            was_woken = self.is_woken.swap(false, SeqCst);
            rest.extend(
                events
                    .iter()
                    .map(|event| (event.key as u64, to_ready(&event))),
            );
        }
        for _ in 0..max.max(1) {
            let Some((token, ready)) = rest.pop_front() else {
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
        // It fails only if other code has closed a descriptor of this poller.
        let _ = self.poller.notify();
    }
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
