//! A kernel and a slab of slots: turns the kernel's events into wakers.
//!
//! A *registration* is a slot and an entry in the kernel under the slot's token. The drop of a
//! registration makes later events stale, whether or not the kernel's entry is gone by then.
use crate::{
    Ready,
    slab::{Refused, Slab, SourceId},
    sys::{Fd, Sys},
};
use std::{
    collections::VecDeque,
    io,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    task::Waker,
    time::Duration,
};

#[derive(Debug)]
pub(crate) struct Reactor<S> {
    sys: S,
    slab: Slab,
    serial: Serial,
}

/// A number that no other reactor of this process has had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Serial(u64);

impl Serial {
    fn next() -> Self {
        // An atomic of std, so that models need not explore it.
        static NEXT: AtomicU64 = AtomicU64::new(0);
        // Ordering: Relaxed, as only the numbers must differ.
        Self(NEXT.fetch_add(1, Relaxed))
    }
}

impl<S: Sys> Reactor<S> {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            sys: S::open()?,
            slab: Slab::new(),
            serial: Serial::next(),
        })
    }

    /// Occupies a slot for a source, and makes the kernel's entry: see [`Registration::new`].
    ///
    /// [`Registration::new`]: crate::registration::Registration::new
    pub(crate) fn add(&self, fd: Fd, ready: Ready, is_checked: bool) -> io::Result<SourceId> {
        let mut slab = self.slab.lock();
        let id = slab.insert(ready).map_err(|refused| match refused {
            Refused::Closed => shut_down_error(),
            Refused::Full => io::Error::other("the driver has no room for another socket"),
        })?;
        let added = if is_checked || slab.has_owner(fd) {
            drop(slab);
            self.add_entry_first(fd, id, is_checked)
        } else {
            slab.set_owner(fd, id);
            drop(slab);
            self.add_entry_of_owner(fd, id)
        };
        match added {
            Ok(()) => Ok(id),
            Err(error) => {
                self.slab.remove(id, fd);
                Err(error)
            }
        }
    }

    /// Makes the kernel's entry of a registration, which then becomes the owner of its number
    /// (rule 4 of `slab.rs`).
    fn add_entry_first(&self, fd: Fd, id: SourceId, is_checked: bool) -> io::Result<()> {
        let _entries = self.slab.lock_entries();
        self.add_entry(fd, id, || self.is_left_over(fd, is_checked))?;
        self.slab.lock().set_owner(fd, id);
        Ok(())
    }

    /// Makes the kernel's entry of a registration that has become the owner of its number (rule 5
    /// of `slab.rs`).
    fn add_entry_of_owner(&self, fd: Fd, id: SourceId) -> io::Result<()> {
        let mut entries = None;
        self.add_entry(fd, id, || {
            entries = Some(self.slab.lock_entries());
            self.slab.lock().is_owner(fd, id)
        })
    }

    /// Makes the kernel's entry of a source. If there is an entry already, and `may_replace` then
    /// returns true, replaces it.
    fn add_entry(
        &self,
        fd: Fd,
        id: SourceId,
        may_replace: impl FnOnce() -> bool,
    ) -> io::Result<()> {
        match self.sys.register(fd, id.to_bits()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && may_replace() => {
                self.sys.replace(fd, id.to_bits())
            }
            added => added,
        }
    }

    /// Returns whether the kernel's entry of a number is left over, and so free for a registration
    /// that is about to own the number. The caller holds the lock of the entries.
    ///
    /// If the number has no owner, the registration of the entry has ended. If it has an owner, the
    /// entry is in use on systems where the close of a number ends its entry. On other systems the
    /// owner may have lost the number. The owner certainly has lost it if the new registration is
    /// not checked, as the caller of such a registration owns the descriptor.
    fn is_left_over(&self, fd: Fd, is_checked: bool) -> bool {
        !self.slab.lock().has_owner(fd) || !is_checked && !S::CLOSE_DEREGISTERS
    }

    /// Waits for events, and moves the wakers of the tasks that waited for them to `out`. Returns
    /// whether a [`wake`](Self::wake) has ended this wait.
    pub(crate) fn collect(
        &self,
        limit: Option<Duration>,
        max: usize,
        out: &mut VecDeque<Waker>,
    ) -> io::Result<bool> {
        let on_event = |token, ready| self.dispatch(token, ready, out);
        self.sys.wait(limit, max, on_event)
    }

    /// Collects, without a wait, all events that have come, `batch` of them at a time. Returns
    /// whether this took a [`wake`](Self::wake). An error ends the collection: the next wait gets
    /// that error too.
    pub(crate) fn collect_all(&self, batch: usize, out: &mut VecDeque<Waker>) -> bool {
        let mut was_woken = false;
        // The kernel has one event for each source, or one for each direction, and one for the
        // wake. Events that come meanwhile must not keep this thread here.
        for _ in 0..=2 * self.registered() / batch {
            let mut events = 0;
            let on_event = |token, ready| {
                events += 1;
                self.dispatch(token, ready, out);
            };
            let waited = self.sys.wait(Some(Duration::ZERO), batch, on_event);
            was_woken |= waited.unwrap_or(false);
            if events + usize::from(was_woken) < batch {
                break;
            }
        }
        was_woken
    }

    fn dispatch(&self, token: u64, ready: Ready, out: &mut VecDeque<Waker>) {
        let id = SourceId::from_bits(token);
        let slot = self.slab.get(id.index);
        slot.dispatch(id.generation, ready, out);
        if self.arm(id).is_err() {
            self.assume_ready(id, out);
        }
    }

    /// Makes each direction of a source ready that could not be armed, as no event would come. So
    /// each task that waits is woken. An operation that then has to wait gets the error.
    pub(crate) fn assume_ready(&self, id: SourceId, out: &mut VecDeque<Waker>) {
        let both = Ready::READABLE | Ready::WRITABLE;
        self.slab.get(id.index).dispatch(id.generation, both, out);
    }

    /// Arms a source for the directions that are not ready, on a system that is one-shot (rule 5
    /// of `sys.rs`). Each change of the source's readiness comes before a call of this.
    pub(crate) fn arm(&self, id: SourceId) -> io::Result<()> {
        if S::ONE_SHOT {
            let slot = self.slab.get(id.index);
            self.sys.arm(id.to_bits(), || slot.load().not_ready())
        } else {
            Ok(())
        }
    }

    /// Ends one thread's wait in [`collect`](Self::collect), perhaps not the wait that the caller
    /// means to end.
    pub(crate) fn wake(&self) {
        self.sys.wake();
    }

    /// Ends all waits with an error, and refuses registrations from now on. Moves the wakers of
    /// the tasks that waited to `out`.
    pub(crate) fn shut_down(&self, out: &mut VecDeque<Waker>) {
        self.slab.shut_down(out);
    }

    /// Returns the number of registrations.
    pub(crate) fn registered(&self) -> usize {
        self.slab.registered()
    }

    pub(crate) fn sys(&self) -> &S {
        &self.sys
    }

    pub(crate) fn slab(&self) -> &Slab {
        &self.slab
    }

    pub(crate) fn serial(&self) -> Serial {
        self.serial
    }
}

/// Returns the error of an operation whose driver has shut down.
pub(crate) fn shut_down_error() -> io::Error {
    io::Error::other("the driver of this socket has shut down")
}

#[cfg(test)]
mod models;
#[cfg(all(test, target_os = "linux", not(selvedge_loom)))]
mod tests;
