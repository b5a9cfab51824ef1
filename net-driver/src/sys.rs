//! The interface to the kernel: how a driver learns what its sources are ready for.
//!
//! 1. Each source is registered once, for both directions, *edge-triggered*: an event comes when
//!    the readiness grows. One more event comes for the states that are ready at the registration.
//! 2. Events may come late, twice and for nothing. No event is lost: the thread whose `wait`
//!    returned an event hands it over to the slot of its source.
//! 3. Any number of threads may call `wait` at a time. Each event goes to one of them. A system may
//!    let only one thread wait: then the `wait` of each other thread returns at once, without
//!    events.
//! 4. `wake` ends the present or the next `wait` of one thread, which may be another thread than
//!    the caller means. A `wait` returns whether a `wake` has ended it.
//! 5. A system without edge-triggered events is *one-shot*: an event of a source disarms the
//!    source, in both directions. The reactor [arms](Sys::arm) it again, for the directions that
//!    are not ready, after each event, and after each operation that has cleared a readiness. A
//!    source that is ready in both directions stays disarmed. An arming asks for the state and not
//!    for its growth, so an event comes at once if a direction is ready. The readiness is read, and
//!    the source is armed, in one hold of the system's lock. So of two threads that arm a source,
//!    the second one sees the change of either. An arming also reaches a wait that has begun, or is
//!    about to.
use crate::Ready;
use std::{io, time::Duration};

#[cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_polling))))]
mod epoll;
#[cfg(all(any(unix, windows), not(selvedge_loom)))]
pub(crate) mod handle;
#[cfg(any(test, selvedge_loom))]
pub(crate) mod kernel;
#[cfg(not(any(unix, windows, selvedge_loom)))]
mod none;
#[cfg(all(test, selvedge_loom))]
mod once_lock;
#[cfg(all(
    any(unix, windows),
    not(selvedge_loom),
    any(selvedge_polling, not(target_os = "linux"))
))]
mod portable;

#[cfg(all(target_os = "linux", not(any(selvedge_loom, selvedge_polling))))]
pub(crate) use epoll::Epoll as Os;
#[cfg(selvedge_loom)]
pub(crate) use kernel::Kernel as Os;
#[cfg(not(any(unix, windows, selvedge_loom)))]
pub(crate) use none::NoSys as Os;
#[cfg(all(
    any(unix, windows),
    not(selvedge_loom),
    any(selvedge_polling, not(target_os = "linux"))
))]
pub(crate) use portable::Portable as Os;

#[cfg(all(test, selvedge_loom))]
pub(crate) use once_lock::OnceLock;
#[cfg(not(all(test, selvedge_loom)))]
pub(crate) use std::sync::OnceLock;

/// The number of a source's descriptor.
#[cfg(unix)]
pub(crate) type Fd = std::os::fd::RawFd;
#[cfg(windows)]
pub(crate) type Fd = std::os::windows::io::RawSocket;
#[cfg(not(any(unix, windows)))]
pub(crate) type Fd = i32;

/// The largest number of events of one wait.
pub(crate) const MAX_EVENTS_PER_WAIT: usize = 1 << 16;

/// A kernel.
pub(crate) trait Sys: Send + Sync + Sized + 'static {
    /// Whether the close of a source's last descriptor ends its registration. If not, only
    /// [`deregister`](Self::deregister) ends it.
    const CLOSE_DEREGISTERS: bool;

    /// Whether an event says that a half was closed. If not, an operation cannot tell whether the
    /// end of the stream follows a short read, and no further event would announce that end.
    const REPORTS_CLOSE: bool;

    /// Whether the system is one-shot (rule 5).
    const ONE_SHOT: bool = false;

    /// Opens the kernel objects that the driver needs.
    fn open() -> io::Result<Self>;

    /// Registers a source, under the bits of its token. Fails with `AlreadyExists` if there is an
    /// entry for this source and this number. Such an entry may be left over: its registration has
    /// ended by the close of the number, while another descriptor kept the source open.
    fn register(&self, fd: Fd, token: u64) -> io::Result<()>;

    /// Gives the entry for this source and this number another token. Then an event comes for the
    /// states that are ready, as at a registration.
    fn replace(&self, fd: Fd, token: u64) -> io::Result<()>;

    /// Ends the registration of a source under this token. If
    /// [`CLOSE_DEREGISTERS`](Self::CLOSE_DEREGISTERS), the kernel also ends it when the last
    /// descriptor of the source is closed.
    fn deregister(&self, fd: Fd, token: u64) -> io::Result<()>;

    /// Arms the source that is registered under this token, for events of the states that `wanted`
    /// returns: readable, writable, both, or none (rule 5). Does nothing if no source has the
    /// token, because its registration has ended, or if the system is not one-shot. Windows mostly
    /// tells an error to the next wait, which cannot name the source: no event of that source comes
    /// any more.
    fn arm(&self, _token: u64, _wanted: impl FnOnce() -> Ready) -> io::Result<()> {
        Ok(())
    }

    /// Waits for events, at most for `limit` (without end for `None`). Calls `on_event` for up to
    /// `max` events, with the token and the states of each. Returns early for a
    /// [`wake`](Self::wake) or a signal. Returns whether there was a wake.
    fn wait(
        &self,
        limit: Option<Duration>,
        max: usize,
        on_event: impl FnMut(u64, Ready),
    ) -> io::Result<bool>;

    /// Ends one thread's wait (rule 4).
    fn wake(&self);
}
