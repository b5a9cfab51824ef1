//! Other Unix systems, and Windows: the poller that the crate `polling` uses there, such as kqueue.
//! On Linux this code stands for those systems in tests: `--cfg selvedge_polling` for those with
//! edge-triggered events, and `--cfg selvedge_one_shot` besides for Windows (rule 5 of `sys.rs`).
//!
//! The poller of `polling` differs from epoll:
//!
//! - One thread waits at a time. The `wait` of another thread returns at once, without events.
//! - A source stays registered until a call ends its registration: `polling` keeps a record of the
//!   source's number.
//! - No event says that one half alone is closed, so a read may not guess that no byte is left.
//! - A source has a *key* in place of a token. A key has as many bits as a pointer, and a token has
//!   64. On a system of 32 bits the key is the token's lower half, the number of the source's slot.
//!   No two sources have one slot at a time. So an event of an earlier source of the slot is one
//!   that comes for nothing (rule 2 of `sys.rs`). `sources` has the token of each key.
//!
//! `polling` merges wakes and does not say which wait they ended. So `wake` sets `is_woken` before
//! it notifies, and a wait that had the poller takes the flag at its end. Two things follow:
//!
//! 1. A wait that ended by a notification finds the flag, or another wait has taken the flag since.
//!    The wait that took the flag reports the wake. If that wait had a limit of zero, its thread
//!    wakes the reactor again (rule 6 of `poller.rs`).
//! 2. A notification may be left over for a later wait. That wait then returns without a wake.
//!
//! # One-shot systems
//!
//! `polling` disarms a source when it takes the source's event from the system. `sources` has the
//! number of the descriptor for each key, since an event names only the key. It is locked during
//! each call that makes, arms or ends a registration. So an arming that follows the end of a
//! registration finds no number, and never arms another source that has got the number since.
//!
//! On Windows `polling` queues an arming if it finds that no thread waits. The queue is read at the
//! begin of a wait. A thread that arms a source while another one begins to wait may thus be too
//! late for the queue, and see no waiter. So the thread that waits sets `is_waiting` before, and a
//! thread that has armed a source ends the wait of a thread that has set it: by the fences, the
//! wait finds the arming in the queue, or the arming finds the mark.
use super::{Fd, Sys};
use crate::Ready;
use polling::{Event, Events, PollMode};
use std::{
    collections::{HashMap, VecDeque},
    fmt, io,
    num::NonZeroUsize,
    sync::{Mutex, MutexGuard, PoisonError, TryLockError},
    time::Duration,
};
use sync_shim::atomic::{
    AtomicBool,
    Ordering::{Relaxed, SeqCst},
    fence,
};

/// Whether this stands for a system without edge-triggered events.
const ONE_SHOT: bool = cfg!(any(windows, selvedge_one_shot));

/// Whether a key has fewer bits than a token.
const SHORT_KEYS: bool = usize::BITS < u64::BITS;

const MODE: PollMode = if ONE_SHOT {
    PollMode::Oneshot
} else {
    PollMode::Edge
};

/// The number of events for which a new driver has room. A wait for more events makes more room.
const FIRST_CAPACITY: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// The longest wait: macOS refuses one of 69 years. A wait may end early.
const LONGEST: Duration = Duration::from_secs(1_000_000);

pub(crate) struct Portable {
    poller: polling::Poller,
    is_woken: AtomicBool,
    /// The source of each key, on a one-shot system and on one of 32 bits.
    sources: Mutex<Sources>,
    /// Whether a thread waits, or is about to.
    is_waiting: AtomicBool,
    /// Locked by the thread that waits.
    waiting: Mutex<Waiting>,
}

type Sources = HashMap<usize, (u64, Fd)>;

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
    const ONE_SHOT: bool = ONE_SHOT;

    fn open() -> io::Result<Self> {
        let poller = polling::Poller::new()?;
        if !ONE_SHOT && !poller.supports_edge() {
            let message = "this system's poller has no edge-triggered events";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        Ok(Self {
            poller,
            is_woken: AtomicBool::new(false),
            sources: Mutex::default(),
            is_waiting: AtomicBool::new(false),
            waiting: Mutex::new(Waiting {
                events: Events::with_capacity(FIRST_CAPACITY),
                left_over: VecDeque::new(),
            }),
        })
    }

    fn register(&self, fd: Fd, token: u64) -> io::Result<()> {
        let interest = Event::all(key(token));
        if is_invalid(fd) {
            // No borrowed handle may have this number, so `polling` panics, or is undefined.
            return Err(io::Error::from_raw_os_error(NO_HANDLE));
        }
        let mut sources = self.lock_sources();
        let added = self.add(fd, interest);
        if let (Ok(()), Some(sources)) = (&added, &mut sources) {
            sources.insert(key(token), (token, fd));
            self.call_waiter();
        }
        added
    }

    fn replace(&self, fd: Fd, token: u64) -> io::Result<()> {
        let interest = Event::all(key(token));
        let mut sources = self.lock_sources();
        self.modify(fd, interest)?;
        if let Some(sources) = &mut sources {
            sources.retain(|_, (_, of)| *of != fd);
            sources.insert(key(token), (token, fd));
            self.call_waiter();
        }
        Ok(())
    }

    fn deregister(&self, fd: Fd, token: u64) -> io::Result<()> {
        let mut sources = self.lock_sources();
        if let Some(sources) = &mut sources {
            // The key may be that of a later source.
            if sources.get(&key(token)).is_some_and(|(of, _)| *of == token) {
                sources.remove(&key(token));
            }
        }
        self.delete(fd)
    }

    fn arm(&self, token: u64, wanted: impl FnOnce() -> Ready) -> io::Result<()> {
        let sources = self.lock_sources();
        let source = sources
            .as_ref()
            .and_then(|sources| sources.get(&key(token)));
        let Some((_, fd)) = source.filter(|(of, _)| *of == token) else {
            return Ok(());
        };
        let wanted = wanted();
        if wanted.is_empty() {
            // Its event has disarmed the source. Or it comes once more, for nothing. To arm a
            // source for nothing would keep a wait busy, once the peer has reset the stream.
            return Ok(());
        }
        let event = Event::new(key(token), wanted.is_readable(), wanted.is_writable());
        let mut armed = self.modify(*fd, event);
        if cfg!(windows) && armed.is_err() {
            // After a refusal `polling` takes each later arming of this registration for one that
            // the system has yet to answer. So the next one says that all is well, and no event
            // comes. A new registration has no such past. If it is refused, too, the next arming
            // finds none, and gets here again.
            let _ = self.delete(*fd);
            armed = self.add(*fd, event);
        }
        self.call_waiter();
        armed
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
            self.begin_wait();
            let waited = self
                .poller
                .wait(events, limit.map(|limit| limit.min(LONGEST)));
            // Ordering: Relaxed. An arming that misses it ends a later wait for nothing.
            self.is_waiting.store(false, Relaxed);
            // Ordering: SeqCst pairs with `wake`. If this wait took the notification of a wake,
            // that wake's store comes before this swap. A wake sends no notification if it finds
            // the mark of an earlier one. If this wait cleared that mark, the wake's store comes
            // before this swap too.
            was_woken = self.is_woken.swap(false, SeqCst);
            let events = events.iter();
            let of_sources = |event: Event| Some((self.token(event.key)?, to_ready(&event)));
            left_over.extend(events.filter_map(of_sources));
            // Events that came before the error are disarmed: the next wait hands them over.
            waited?;
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

impl Portable {
    /// Locks the sources, on a system that needs them.
    fn lock_sources(&self) -> Option<MutexGuard<'_, Sources>> {
        let lock = || self.sources.lock().unwrap_or_else(PoisonError::into_inner);
        (ONE_SHOT || SHORT_KEYS).then(lock)
    }

    /// Returns the token of a key, unless its registration has ended.
    fn token(&self, key: usize) -> Option<u64> {
        if !SHORT_KEYS {
            return Some(key as u64);
        }
        self.lock_sources()?.get(&key).map(|(token, _)| *token)
    }

    /// Sets the mark of a wait that is about to read the queue.
    fn begin_wait(&self) {
        if cfg!(windows) {
            // Ordering: Relaxed, as the fence orders it.
            self.is_waiting.store(true, Relaxed);
            // Ordering: SeqCst pairs with `call_waiter`.
            fence(SeqCst);
        }
    }

    /// Ends the wait of another thread that may have read the queue before the arming that this
    /// thread has just queued.
    fn call_waiter(&self) {
        if cfg!(windows) {
            // Ordering: SeqCst pairs with `begin_wait`: this thread sees the mark, or the wait sees
            // the arming in the queue.
            fence(SeqCst);
            // Ordering: Relaxed, as the fence orders it.
            if self.is_waiting.load(Relaxed) {
                // As in `wake`. The wait returns without a wake.
                let _ = self.poller.notify();
            }
        }
    }

    /// Adds a number, which is not that of an invalid handle. A caller that arms a source holds the
    /// lock of `sources`, which have the source: so its owner has not closed it yet.
    ///
    /// Windows has no `AsyncFd`, whose descriptor its owner may close by safe code. There a socket
    /// that is closed while `polling` has armed it would block the thread that waits, in `polling`.
    fn add(&self, fd: Fd, interest: Event) -> io::Result<()> {
        // SAFETY: the rule of this call is that a source is deregistered before it is closed. The
        // drop of a registration keeps that rule for a socket, as `CLOSE_DEREGISTERS` is false. On
        // Unix an `AsyncFd`'s owner may break it. `polling` keeps the number alone there, and only
        // passes it to the kernel. A closed number is an error of the kernel, and the events of
        // another owner's descriptor are spurious ones (rule 2 of `sys.rs`). So memory is safe
        // whichever number this is.
        let added = unsafe { self.poller.add_with_mode(fd, interest, MODE) };
        let is_registered = |error: &io::Error| error.kind() == io::ErrorKind::AlreadyExists;
        if added.as_ref().is_err_and(|error| !is_registered(error)) {
            // `polling` may keep an entry for a number that the kernel has refused. This call fails
            // if there is no entry.
            let _ = self.delete(fd);
        }
        added
    }

    fn modify(&self, fd: Fd, interest: Event) -> io::Result<()> {
        // SAFETY: the number is not −1, which `register` refuses. It is used for this call alone.
        let source = unsafe { borrow(fd) };
        self.poller.modify_with_mode(source, interest, MODE)
    }

    fn delete(&self, fd: Fd) -> io::Result<()> {
        // SAFETY: as above. If its descriptor is closed, the call fails.
        let source = unsafe { borrow(fd) };
        self.poller.delete(source)
    }
}

// A short read would clear a readiness without an arming.
const _: () = assert!(!(ONE_SHOT && Portable::REPORTS_CLOSE));

/// Returns whether no handle has this number.
fn is_invalid(fd: Fd) -> bool {
    #[cfg(unix)]
    return fd < 0;
    #[cfg(windows)]
    return fd == Fd::MAX;
}

/// The error of a call that gets such a number: `EBADF`, or `WSAENOTSOCK`.
#[cfg(unix)]
const NO_HANDLE: i32 = libc::EBADF;
#[cfg(windows)]
const NO_HANDLE: i32 = 10_038;

#[cfg(unix)]
use std::os::fd::BorrowedFd as Borrowed;
#[cfg(windows)]
use std::os::windows::io::BorrowedSocket as Borrowed;

/// Borrows a number.
///
/// # Safety
/// The number is not that of an invalid handle.
unsafe fn borrow<'a>(fd: Fd) -> Borrowed<'a> {
    // SAFETY: the caller promises it.
    unsafe { Borrowed::borrow_raw(fd) }
}

/// Returns the key of a token: as many of its bits as a key has.
fn key(token: u64) -> usize {
    token as usize
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

#[cfg(all(test, unix))]
mod tests;

#[cfg(all(test, windows))]
mod windows_tests {
    use super::*;
    use std::net::UdpSocket;

    /// An arming fails once the registration has ended behind the poller's back.
    #[test]
    fn source_whose_arming_is_refused_is_registered_anew() {
        let sys = Portable::open().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let fd = crate::sys::handle::number(&socket);
        sys.register(fd, 7).unwrap();
        sys.delete(fd).unwrap();
        sys.arm(7, || Ready::WRITABLE).unwrap();
        let mut seen = None;
        while seen.is_none() {
            sys.wait(None, 1, |token, ready| seen = Some((token, ready)))
                .unwrap();
        }
        assert!(seen.is_some_and(|(token, ready)| token == 7 && ready.is_writable()));
        sys.deregister(fd, 7).unwrap();
    }
}
