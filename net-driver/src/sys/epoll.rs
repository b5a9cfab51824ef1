//! Linux: epoll, and an eventfd for the wakes.
//!
//! - The eventfd is registered edge-triggered and never read: each write is an edge. Its counter
//!   overflows after 2⁶⁴ − 2 wakes.
//! - A wait without a limit, or with a limit of zero, calls `epoll_wait`. A wait with another limit
//!   calls `epoll_pwait2`, which takes nanoseconds. Where the kernel lacks that call (before 5.11),
//!   such a wait calls `epoll_wait`, which takes milliseconds: the limit is rounded up.
use super::{Fd, MAX_EVENTS_PER_WAIT, Sys};
use crate::Ready;
use libc::{c_int, c_void};
use std::{
    io,
    mem::{self, MaybeUninit},
    os::fd::{AsRawFd, FromRawFd, OwnedFd},
    ptr,
    time::Duration,
};
use sync_shim::{
    atomic::{AtomicBool, Ordering::Relaxed},
    sync::Mutex,
};

/// The largest number of events of a wait whose array is on the stack.
const FEW: usize = 64;

/// The place of an event, which the kernel fills.
type Event = MaybeUninit<libc::epoll_event>;

/// The token of the eventfd. No registration has it.
const WAKE: u64 = u64::MAX;

/// The events of a source: both directions, priority data and the half-close, edge-triggered.
const INTEREST: u32 =
    (libc::EPOLLIN | libc::EPOLLPRI | libc::EPOLLOUT | libc::EPOLLRDHUP | libc::EPOLLET) as u32;

/// A time as the system call `epoll_pwait2` takes it (`__kernel_timespec`). libc's `timespec` is
/// shorter on most systems of 32 bits.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct KernelTimespec {
    tv_sec: i64,
    tv_nsec: i64,
}

const _: () = assert!(size_of::<KernelTimespec>() == 16);

impl From<Duration> for KernelTimespec {
    /// Converts a duration. One beyond the range becomes the longest time.
    fn from(span: Duration) -> Self {
        Self {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(span.subsec_nanos()),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Epoll {
    epoll: OwnedFd,
    waker: OwnedFd,
    /// Whether the kernel has no `epoll_pwait2`, or a filter of system calls forbids it.
    lacks_pwait2: AtomicBool,
    /// The places for the events of the next wait that takes more than [`FEW`].
    spare: Mutex<Vec<Event>>,
}

impl Sys for Epoll {
    const CLOSE_DEREGISTERS: bool = true;
    const REPORTS_CLOSE: bool = true;

    fn open() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let epoll = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        let epoll = owned(epoll)?;
        // SAFETY: the call takes no pointers.
        let waker = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        let waker = owned(waker)?;
        let this = Self {
            epoll,
            waker,
            lacks_pwait2: AtomicBool::new(false),
            spare: Mutex::new(Vec::new()),
        };
        let events = (libc::EPOLLIN | libc::EPOLLET) as u32;
        this.control(libc::EPOLL_CTL_ADD, this.waker.as_raw_fd(), events, WAKE)?;
        Ok(this)
    }

    fn register(&self, fd: Fd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, INTEREST, token)
    }

    fn replace(&self, fd: Fd, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, INTEREST, token)
    }

    fn deregister(&self, fd: Fd, _: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    fn wait(
        &self,
        limit: Option<Duration>,
        max: usize,
        on_event: impl FnMut(u64, Ready),
    ) -> io::Result<bool> {
        let max = max.clamp(1, MAX_EVENTS_PER_WAIT);
        if max <= FEW {
            let mut few = [const { MaybeUninit::uninit() }; FEW];
            return self.wait_in(&mut few[..max], limit, on_event);
        }
        // Another thread that waits meanwhile makes a list of its own.
        let mut many = mem::take(&mut *self.spare.lock());
        if many.len() < max {
            many.resize_with(max, MaybeUninit::uninit);
        }
        let done = self.wait_in(&mut many[..max], limit, on_event);
        *self.spare.lock() = many;
        done
    }

    fn wake(&self) {
        let one = 1_u64;
        // SAFETY: the descriptor is open, and the pointer leads to 8 bytes. The call fails only if
        // the counter is full, which takes 2⁶⁴ − 2 wakes.
        unsafe { libc::write(self.waker.as_raw_fd(), ptr::from_ref(&one).cast(), 8) };
    }
}

impl Epoll {
    fn control(&self, operation: c_int, fd: Fd, events: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events, u64: token };
        // SAFETY: the pointer is valid for the call. A bad `fd` is an error.
        let done = unsafe { libc::epoll_ctl(self.epoll.as_raw_fd(), operation, fd, &mut event) };
        if done == 0 {
            Ok(())
        } else {
            Err(io::Error::last_os_error())
        }
    }

    /// Waits as [`wait`](Sys::wait), for as many events as `events` has room for.
    fn wait_in(
        &self,
        events: &mut [Event],
        limit: Option<Duration>,
        mut on_event: impl FnMut(u64, Ready),
    ) -> io::Result<bool> {
        let count = self.wait_for(events, limit);
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::Interrupted => Ok(false),
                _ => Err(error),
            };
        }
        let mut was_woken = false;
        for event in &events[..count as usize] {
            // SAFETY: the kernel has written `count` events.
            let event = unsafe { event.assume_init() };
            let (bits, token) = (event.events, event.u64);
            if token == WAKE {
                was_woken = true;
            } else {
                on_event(token, to_ready(bits));
            }
        }
        Ok(was_woken)
    }

    /// Returns the count of events, which are at the start of `events`. After an error, returns a
    /// negative number, and `errno` is set.
    fn wait_for(&self, events: &mut [Event], limit: Option<Duration>) -> c_int {
        // Ordering: Relaxed, a hint.
        let timed = limit.filter(|limit| !limit.is_zero() && !self.lacks_pwait2.load(Relaxed));
        if let Some(limit) = timed {
            let count = self.pwait2(events, limit);
            let error = io::Error::last_os_error().raw_os_error();
            if count >= 0 || !matches!(error, Some(libc::ENOSYS | libc::EPERM)) {
                return count;
            }
            // Ordering: Relaxed, a hint.
            self.lacks_pwait2.store(true, Relaxed);
        }
        let (epoll, len) = (self.epoll.as_raw_fd(), events.len() as c_int);
        // SAFETY: the pointer is valid for `len` events.
        unsafe { libc::epoll_wait(epoll, events.as_mut_ptr().cast(), len, milliseconds(limit)) }
    }

    fn pwait2(&self, events: &mut [Event], limit: Duration) -> c_int {
        let spec = KernelTimespec::from(limit);
        let (no_mask, mask_len) = (ptr::null::<c_void>(), 0_usize);
        // This makes the call by its number: an older libc has no function for it.
        // SAFETY: the pointers are valid for the call, the first one for `events.len()` events.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.epoll.as_raw_fd(),
                events.as_mut_ptr(),
                events.len() as c_int,
                ptr::from_ref(&spec),
                no_mask,
                mask_len,
            )
        };
        count as c_int
    }
}

/// Takes ownership of a descriptor that a call has just returned. If the call has failed, returns
/// its error.
fn owned(fd: c_int) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call opened the descriptor, and no other code knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the limit for `epoll_wait`: rounded up, so that no wait ends early, or −1 for no limit.
fn milliseconds(limit: Option<Duration>) -> c_int {
    let Some(limit) = limit else { return -1 };
    let milliseconds = limit.as_nanos().div_ceil(1_000_000);
    c_int::try_from(milliseconds).unwrap_or(c_int::MAX)
}

fn to_ready(bits: u32) -> Ready {
    let has = |flags: c_int| bits & flags as u32 != 0;
    let mut ready = Ready::EMPTY;
    if has(libc::EPOLLIN) {
        ready |= Ready::READABLE;
    }
    if has(libc::EPOLLOUT) {
        ready |= Ready::WRITABLE;
    }
    if has(libc::EPOLLPRI) {
        ready |= Ready::PRIORITY | Ready::READABLE;
    }
    if has(libc::EPOLLRDHUP) {
        ready |= Ready::READABLE | Ready::READ_CLOSED;
    }
    if has(libc::EPOLLHUP) {
        let both = Ready::READABLE | Ready::WRITABLE;
        ready |= both | Ready::READ_CLOSED | Ready::WRITE_CLOSED;
    }
    if has(libc::EPOLLERR) {
        ready |= Ready::READABLE | Ready::WRITABLE | Ready::ERROR;
    }
    ready
}

#[cfg(test)]
mod tests;
