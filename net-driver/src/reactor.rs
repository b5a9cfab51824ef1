//! A kernel and a slab of slots: turns the kernel's events into wakers.
//!
//! A *registration* is a slot and an entry in the kernel under the slot's token. The drop of a
//! registration makes later events stale, whether or not the kernel's entry is gone by then.
use crate::{
    Ready,
    registration::Registration,
    slab::{Refused, Slab, SourceId},
    sys::{Existing, Fd, Sys},
};
use std::{collections::VecDeque, io, task::Waker, time::Duration};
use sync_shim::sync::Arc;

#[derive(Debug)]
pub(crate) struct Reactor<S> {
    sys: S,
    slab: Slab,
}

/// The action that takes a source out of the kernel when its registration ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The close of the source's only descriptor, which follows anyway. This saves a system call.
    /// While a duplicate of the descriptor is open, the kernel reports further events, all of them
    /// stale. So this is for sockets that this crate has made.
    ByClose,
    /// A call of [`Sys::deregister`], since descriptors of the source may stay open.
    ByCall,
}

impl<S: Sys> Reactor<S> {
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            sys: S::open()?,
            slab: Slab::new(),
        })
    }

    /// Registers a source. `ready` has the states that the caller assumes: to try an operation in
    /// vain costs less than to wait for the first event. The caller owns the descriptor. Refuses
    /// the number of a live registration that [`register_new`](Self::register_new) has made.
    pub(crate) fn register(
        this: &Arc<Self>,
        fd: Fd,
        ready: Ready,
        removal: Removal,
    ) -> io::Result<Registration<S>> {
        Self::register_over(this, fd, ready, removal, Existing::Replace)
    }

    /// Registers a source whose descriptor may have another owner, and assumes no states. Refuses a
    /// descriptor that is registered already.
    pub(crate) fn register_new(this: &Arc<Self>, fd: Fd) -> io::Result<Registration<S>> {
        Self::register_over(this, fd, Ready::EMPTY, Removal::ByCall, Existing::Refuse)
    }

    fn register_over(
        this: &Arc<Self>,
        fd: Fd,
        ready: Ready,
        removal: Removal,
        existing: Existing,
    ) -> io::Result<Registration<S>> {
        let token = this.slab.insert(ready).map_err(|refused| match refused {
            Refused::Closed => shut_down_error(),
            Refused::Full => io::Error::other("the driver has no room for another socket"),
        })?;
        if let Err(error) = this.sys.register(fd, token.to_bits(), existing) {
            this.slab.remove(token);
            return Err(error);
        }
        Ok(Registration::new(this.clone(), token, fd, removal))
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
        let token = SourceId::from_bits(token);
        self.slab
            .get(token.index)
            .dispatch(token.generation, ready, out);
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
}

/// Returns the error of an operation whose driver has shut down.
pub(crate) fn shut_down_error() -> io::Error {
    io::Error::other("the driver of this socket has shut down")
}

#[cfg(test)]
mod models;
#[cfg(all(test, target_os = "linux", not(selvedge_loom)))]
mod tests;
