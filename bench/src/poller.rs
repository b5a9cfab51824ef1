//! An epoll, by the calls of libc: without a runtime, and without a copy of what it watches.
use std::{
    io,
    os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd},
    ptr,
    time::Duration,
};

/// The most events of a wait.
const EVENTS: usize = 64;

pub(crate) struct Poller {
    epoll: OwnedFd,
    events: [libc::epoll_event; EVENTS],
}

impl Poller {
    pub(crate) fn new() -> io::Result<Self> {
        // SAFETY: the call takes no pointers.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call has just opened `fd`, and nothing else owns the descriptor.
        let epoll = unsafe { OwnedFd::from_raw_fd(fd) };
        let events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        Ok(Self { epoll, events })
    }

    /// Watches a descriptor for data, until the descriptor is closed. [`wait`](Self::wait) returns
    /// its key.
    pub(crate) fn add(&self, fd: RawFd, key: u64) -> io::Result<()> {
        let mut event = libc::epoll_event {
            events: libc::EPOLLIN as u32,
            u64: key,
        };
        let epoll = self.epoll.as_raw_fd();
        // SAFETY: the pointer is valid for the call.
        match unsafe { libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until a descriptor has data, or a time limit is over. Returns the keys. There are none
    /// after the limit, or if a signal came.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> impl Iterator<Item = u64> + use<> {
        let (epoll, events) = (self.epoll.as_raw_fd(), self.events.as_mut_ptr());
        let len = self.events.len() as i32;
        let count = match limit {
            // SAFETY: the pointer is valid for a write of `len` events.
            None => unsafe { libc::epoll_wait(epoll, events, len, -1) },
            // SAFETY: as above.
            Some(Duration::ZERO) => unsafe { libc::epoll_wait(epoll, events, len, 0) },
            Some(limit) => {
                let limit = libc::timespec {
                    tv_sec: limit.as_secs() as libc::time_t,
                    tv_nsec: limit.subsec_nanos().into(),
                };
                let (call, limit) = (libc::SYS_epoll_pwait2, &raw const limit);
                let no_mask = ptr::null::<libc::sigset_t>();
                // SAFETY: the pointers are valid for `len` events and for the limit. There is no
                // mask of signals.
                unsafe { libc::syscall(call, epoll, events, len, limit, no_mask, 0_usize) as i32 }
            }
        };
        let (count, events) = (count.max(0) as usize, self.events);
        (0..count).map(move |at| events[at].u64)
    }
}
