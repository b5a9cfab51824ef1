//! A registered source, and how operations on it wait.
//!
//! An operation goes round a loop. It loads the readiness. If the source is not ready, the
//! operation stores a waker and loads once more. If the source is ready, the operation asks the
//! kernel. If the kernel says "would block", the operation clears the readiness that the load saw.
//!
//! There are two kinds of waiters:
//! - *cells*, one for each direction, for a caller that owns that half of the source
//!   ([`poll_io`](Registration::poll_io)). Only the last task that polled is woken.
//! - the *list*, for callers that share the source ([`io`](Registration::io)). Each waiting task is
//!   woken.
//!
//! This crate repeats an operation of its own that a signal interrupts ([`uninterrupted`]). The
//! error of a user's operation goes to the user: nothing here knows whether that operation ends.
use crate::{
    Interest, Ready,
    reactor::{Reactor, Serial, shut_down_error},
    readiness::Snapshot,
    slab::SourceId,
    slot::{Direction, Slot, WaiterKey},
    sys::{Fd, Sys},
};
use coop_budget::WaitsOn;
use std::{
    collections::VecDeque,
    future::poll_fn,
    io,
    task::{Context, Poll, Waker, ready},
};
use sync_shim::sync::Arc;

/// The charge of an operation that calls the system: more than the charge of an operation in
/// memory, because the call takes at least a microsecond. With a budget of 128, one poll of a task
/// makes up to 32 calls. So the other tasks wait less, and one more poll costs little beside 32
/// calls.
pub(crate) const CALL: u32 = 4;

/// Returns the value of a result. Returns an error from the calling poll, whose operation has then
/// ended: it charges the budget.
macro_rules! or_end {
    ($result:expr, $charge:expr) => {
        match $result {
            Ok(value) => value,
            Err(error) => {
                $charge;
                return ::std::task::Poll::Ready(Err(error));
            }
        }
    };
}
#[allow(unused_imports, reason = "a model has no sockets that send datagrams")]
pub(crate) use or_end;

#[derive(Debug)]
pub(crate) struct Registration<S: Sys> {
    reactor: Arc<Reactor<S>>,
    id: SourceId,
    fd: Fd,
    removal: Removal,
}

/// The action that takes a source out of the kernel when its registration ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The close of the source's only descriptor, which follows anyway. This saves a system call.
    /// While a duplicate of the descriptor is open, the kernel reports further events, all of them
    /// stale. So this is for sockets that this crate has made.
    ByClose,
    /// A call of [`Sys::deregister`], since descriptors of the source may stay open.
    Deregister,
    /// A call of [`Sys::deregister`], but only if the registration still owns its number (rule 4
    /// of `slab.rs`). Such a registration is *checked*. This is for an `AsyncFd`, whose descriptor
    /// safe code may have dropped.
    DeregisterIfOwner,
}

/// Tells registrations apart, also those of different reactors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegistrationId {
    reactor: Serial,
    id: SourceId,
}

/// The result of an operation that moves bytes of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) count: usize,
    /// False if the kernel would say "would block" to another such operation.
    pub(crate) may_have_more: bool,
}

impl Moved {
    /// Returns the result of an operation that moved `count` bytes of a stream, of at most
    /// `wanted`.
    pub(crate) fn of(count: usize, wanted: usize) -> Self {
        Self {
            count,
            may_have_more: count >= wanted,
        }
    }
}

/// Adds words, and the caller's place, to the error of a simulated epoll that got a descriptor of
/// the system.
#[cfg(selvedge_sim)]
fn explain(error: io::Error, fd: Fd, at: &std::panic::Location<'_>) -> io::Error {
    if !sync_shim::sim::is_simulated() || error.raw_os_error() != Some(libc::EPERM) {
        return error;
    }
    let why = format!(
        "{at}: a simulated program cannot wait for descriptor {fd}, which is a descriptor of the \
         system, such as a pipe, or a socket that was made outside of the simulation"
    );
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

impl<S: Sys> Registration<S> {
    /// Registers a source. `ready` is the readiness to assume at first: one failed call costs less
    /// than a wait for the first event. Unless the removal is [checked](Removal::DeregisterIfOwner), the
    /// caller owns the descriptor, and closes it only after the registration.
    ///
    /// A descriptor may be registered already. If that entry is left over from a registration that
    /// has lost its number, or has ended, this takes the entry over. Otherwise this fails with
    /// `AlreadyExists`. Where the close of a descriptor leaves its entry, a checked registration
    /// also fails while the registration that has lost the number lives, or if that one was
    /// forgotten.
    #[cfg_attr(selvedge_sim, track_caller)]
    pub(crate) fn new(
        reactor: &Arc<Reactor<S>>,
        fd: Fd,
        ready: Ready,
        removal: Removal,
    ) -> io::Result<Self> {
        let id = reactor.add(fd, ready, removal == Removal::DeregisterIfOwner);
        #[cfg(selvedge_sim)]
        let id = {
            let at = std::panic::Location::caller();
            id.map_err(|error| explain(error, fd, at))
        };
        let id = id?;
        Ok(Self {
            reactor: reactor.clone(),
            id,
            fd,
            removal,
        })
    }

    pub(crate) fn reactor(&self) -> &Arc<Reactor<S>> {
        &self.reactor
    }

    pub(crate) fn id(&self) -> RegistrationId {
        RegistrationId {
            reactor: self.reactor.serial(),
            id: self.id,
        }
    }

    /// Ends this registration by [`Sys::deregister`], as the source's descriptor stays open.
    pub(crate) fn detach(mut self) {
        if self.removal == Removal::ByClose {
            self.removal = Removal::Deregister;
        }
    }

    fn slot(&self) -> &Slot {
        self.reactor.slab().get(self.id.index)
    }

    /// Clears the readiness of `interest` that `seen` shows: since then the kernel has answered
    /// "would block".
    ///
    /// Fails if the system refuses to arm the source, which then announces nothing.
    fn clear(&self, seen: Snapshot, interest: Interest) -> io::Result<()> {
        self.slot().clear(seen, interest);
        self.arm()
    }

    /// Arms the source on a one-shot system. If that fails, wakes the tasks that wait.
    fn arm(&self) -> io::Result<()> {
        self.reactor.arm(self.id).inspect_err(|_| {
            let mut wakers = VecDeque::new();
            self.reactor.assume_ready(self.id, &mut wakers);
            wakers.into_iter().for_each(Waker::wake);
        })
    }

    /// Clears the readiness of `interest` that `seen` shows, except that of a closed direction:
    /// since then an operation of the user has said "would block".
    ///
    /// Fails as [`clear`](Self::clear).
    pub(crate) fn clear_for_user(&self, seen: Snapshot, interest: Interest) -> io::Result<()> {
        self.slot().clear_for_user(seen, interest);
        self.arm()
    }

    /// Returns the readiness, without a wait.
    #[cfg(test)]
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.slot().load()
    }

    /// Returns the readiness, without a wait. Fails if the driver has shut down.
    pub(crate) fn current(&self) -> io::Result<Snapshot> {
        let seen = self.slot().load();
        if seen.is_shutdown() {
            Err(shut_down_error())
        } else {
            Ok(seen)
        }
    }

    /// Polls whether the source is ready; the waker goes to the cell of `direction`.
    pub(crate) fn poll_ready(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
    ) -> Poll<io::Result<Snapshot>> {
        let (slot, interest) = (self.slot(), direction.interest());
        let mut seen = slot.load();
        if !seen.ends_wait(interest) {
            seen = slot.wait_in_cell(direction, cx.waker());
        }
        ended(seen, interest)
    }

    /// Performs `op`, an operation of this crate, once the source is ready; the waker goes to the
    /// cell of `direction`.
    pub(crate) fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let progress = ready!(coop_budget::poll_proceed_n(cx, CALL));
        loop {
            let Poll::Ready(seen) = self.poll_ready(cx, direction) else {
                progress.waits_for(move || self.awaits(direction.interest()));
                return Poll::Pending;
            };
            let (seen, op) = (or_end!(seen, progress.made_progress()), || {
                uninterrupted(&mut op)
            });
            if let Some(done) = self.attempt(seen, direction.interest(), op) {
                progress.made_progress();
                return Poll::Ready(done);
            }
        }
    }

    /// Does the same as [`poll_io`](Self::poll_io), for an operation that moves up to `wanted`
    /// bytes of a stream. If `op` moves fewer bytes, the next operation waits for an event before
    /// it asks the kernel. That saves a system call.
    pub(crate) fn poll_transfer(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        wanted: usize,
        mut op: impl FnMut() -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let transfer = || op().map(|count| Moved::of(count, wanted));
        self.poll_moved(cx, direction, transfer)
    }

    /// Does the same as [`poll_transfer`](Self::poll_transfer), for an operation that knows whether
    /// there may be more to move.
    pub(crate) fn poll_moved(
        &self,
        cx: &mut Context<'_>,
        direction: Direction,
        mut op: impl FnMut() -> io::Result<Moved>,
    ) -> Poll<io::Result<usize>> {
        let progress = ready!(coop_budget::poll_proceed_n(cx, CALL));
        let interest = direction.interest();
        loop {
            let Poll::Ready(seen) = self.poll_ready(cx, direction) else {
                progress.waits_for(move || self.awaits(interest));
                return Poll::Pending;
            };
            let seen = or_end!(seen, progress.made_progress());
            if let Some(done) = self.attempt(seen, interest, || uninterrupted(&mut op)) {
                let may_guess = S::REPORTS_CLOSE;
                if may_guess && matches!(done, Ok(moved) if 0 < moved.count && !moved.may_have_more)
                {
                    self.slot().clear_after_short(seen, interest);
                }
                progress.made_progress();
                return Poll::Ready(done.map(|moved| moved.count));
            }
        }
    }

    /// Performs `op`, an operation of this crate that moves any number of datagrams, once the
    /// source is ready; `poll_ready` polls for that. `datagrams` returns how many datagrams the
    /// count of `op` stands for, and each of them is charged as a call. A budget that does not
    /// suffice for all of them lets `op` begin all the same, and is then used up.
    ///
    /// Only the kernel's "would block" clears the readiness: a batch that is short may have been
    /// ended by an error, which no event announces.
    pub(crate) fn poll_many(
        &self,
        cx: &mut Context<'_>,
        interest: Interest,
        mut poll_ready: impl FnMut(&mut Context<'_>) -> Poll<io::Result<Snapshot>>,
        mut op: impl FnMut() -> io::Result<usize>,
        datagrams: impl Fn(usize) -> usize,
    ) -> Poll<io::Result<usize>> {
        let progress = ready!(coop_budget::poll_proceed_n(cx, u32::MAX));
        loop {
            let Poll::Ready(seen) = poll_ready(cx) else {
                progress.waits_for(move || self.awaits(interest));
                return Poll::Pending;
            };
            let seen = or_end!(seen, progress.made_progress_n(CALL));
            if let Some(done) = self.attempt(seen, interest, || uninterrupted(&mut op)) {
                let count = done.as_ref().map_or(1, |count| datagrams(*count).max(1));
                let calls = u32::try_from(count).unwrap_or(u32::MAX);
                progress.made_progress_n(calls.saturating_mul(CALL));
                return Poll::Ready(done);
            }
        }
    }

    /// Performs `op`, an operation of this crate, once if the source is ready. Fails with
    /// `WouldBlock` otherwise. Returns the error of `op`, also `Interrupted`. After the shutdown no
    /// event makes the source ready, so this then asks the kernel each time.
    pub(crate) fn try_io<R>(
        &self,
        interest: Interest,
        op: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let seen = self.ready_now(interest)?;
        let done = op();
        if would_block(&done) {
            self.clear(seen, interest)?;
        }
        done
    }

    /// Does the same as [`try_io`](Self::try_io), for an operation of the user.
    pub(crate) fn try_user_io<R>(
        &self,
        interest: Interest,
        op: impl FnOnce() -> io::Result<R>,
    ) -> io::Result<R> {
        let seen = self.ready_now(interest)?;
        let done = op();
        if would_block(&done) {
            self.clear_for_user(seen, interest)?;
        }
        done
    }

    /// Returns the readiness. Fails with `WouldBlock` if a wait for `interest` would not end now.
    fn ready_now(&self, interest: Interest) -> io::Result<Snapshot> {
        let seen = self.slot().load();
        if seen.ends_wait(interest) {
            Ok(seen)
        } else {
            Err(io::ErrorKind::WouldBlock.into())
        }
    }

    /// Performs `op`, which asks the kernel. Returns `None` if the kernel said "would block".
    pub(crate) fn attempt<R>(
        &self,
        seen: Snapshot,
        interest: Interest,
        op: impl FnOnce() -> io::Result<R>,
    ) -> Option<io::Result<R>> {
        let done = op();
        if would_block(&done) {
            return self.clear(seen, interest).err().map(Err);
        }
        Some(done)
    }

    /// Makes a waiter for the list.
    pub(crate) fn wait(&self, interest: Interest) -> Wait<'_, S> {
        Wait {
            registration: self,
            interest,
            key: None,
        }
    }

    /// Waits in the list until the source is ready.
    pub(crate) async fn ready(&self, interest: Interest) -> io::Result<Snapshot> {
        let mut wait = self.wait(interest);
        poll_fn(|cx| {
            let progress = ready!(coop_budget::poll_proceed(cx));
            let Poll::Ready(seen) = wait.poll_ready(cx) else {
                progress.waits_for(move || self.awaits(interest));
                return Poll::Pending;
            };
            progress.made_progress();
            Poll::Ready(seen)
        })
        .await
    }

    /// Says what an operation waits for, to a dump of tasks.
    #[cold]
    pub(crate) fn awaits(&self, interest: Interest) -> WaitsOn {
        #[cfg_attr(not(windows), allow(clippy::unnecessary_fallible_conversions))]
        let fd = i64::try_from(self.fd).unwrap_or(i64::MAX);
        let state = match (interest.is_readable(), interest.is_writable()) {
            (true, false) => "readable",
            (false, true) => "writable",
            _ => "ready",
        };
        WaitsOn::Descriptor { fd, state }
    }

    /// Performs `op`, an operation of this crate, once the source is ready; waits in the list.
    ///
    /// This is no `async fn`, which would add the states of one more future to each operation.
    pub(crate) fn io<R>(
        &self,
        interest: Interest,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> impl Future<Output = io::Result<R>> {
        let mut wait = self.wait(interest);
        poll_fn(move |cx| wait.poll_io(cx, || uninterrupted(&mut op)))
    }

    /// Performs `op`, an operation of the user, once the source is ready; waits in the list.
    /// Returns each error of `op` except `WouldBlock`.
    pub(crate) async fn async_io<R>(
        &self,
        interest: Interest,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let mut wait = self.wait(interest);
        poll_fn(|cx| wait.poll_user_io(cx, &mut op)).await
    }
}

/// Returns whether an operation says that it has to wait.
fn would_block<R>(done: &io::Result<R>) -> bool {
    matches!(done, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// Performs `op`, an operation of this crate, until no signal interrupts it.
pub(crate) fn uninterrupted<R>(mut op: impl FnMut() -> io::Result<R>) -> io::Result<R> {
    loop {
        match op() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

impl<S: Sys> Drop for Registration<S> {
    fn drop(&mut self) {
        let slab = self.reactor.slab();
        let deregister = || {
            // An error says that the kernel has no such entry any more.
            let _ = self.reactor.sys().deregister(self.fd, self.id.to_bits());
        };
        match self.removal {
            Removal::DeregisterIfOwner => return slab.remove_checked(self.id, self.fd, deregister),
            Removal::ByClose if S::CLOSE_DEREGISTERS => {}
            Removal::ByClose | Removal::Deregister => deregister(),
        }
        slab.remove(self.id, self.fd);
    }
}

/// A waiter in the list. It leaves the list when it is dropped.
#[derive(Debug)]
pub(crate) struct Wait<'a, S: Sys> {
    registration: &'a Registration<S>,
    interest: Interest,
    key: Option<WaiterKey>,
}

impl<S: Sys> Wait<'_, S> {
    pub(crate) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Snapshot>> {
        let slot = self.registration.slot();
        let mut seen = slot.load();
        if !seen.ends_wait(self.interest) {
            seen = slot.wait_in_list(self.interest, &mut self.key, cx.waker());
        }
        ended(seen, self.interest)
    }

    /// Performs `op`, an operation of this crate, once the source is ready. Returns each error of
    /// `op` except `WouldBlock`.
    pub(crate) fn poll_io<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let progress = ready!(coop_budget::poll_proceed_n(cx, CALL));
        loop {
            let Poll::Ready(seen) = self.poll_ready(cx) else {
                progress.waits_for(move || self.registration.awaits(self.interest));
                return Poll::Pending;
            };
            let seen = or_end!(seen, progress.made_progress());
            if let Some(done) = self.registration.attempt(seen, self.interest, &mut op) {
                progress.made_progress();
                return Poll::Ready(done);
            }
        }
    }

    /// Does the same as [`poll_io`](Self::poll_io), for an operation of the user. If `op` says
    /// "would block" after a hang-up, it is called again in the next poll, and not in this one,
    /// where it might never say anything else.
    fn poll_user_io<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let progress = ready!(coop_budget::poll_proceed_n(cx, CALL));
        loop {
            let Poll::Ready(seen) = self.poll_ready(cx) else {
                progress.waits_for(move || self.registration.awaits(self.interest));
                return Poll::Pending;
            };
            let seen = or_end!(seen, progress.made_progress());
            let done = op();
            if !would_block(&done) {
                progress.made_progress();
                return Poll::Ready(done);
            }
            let cleared = self.registration.clear_for_user(seen, self.interest);
            or_end!(cleared, progress.made_progress());
            if seen.is_closed_for(self.interest) {
                progress.made_progress();
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        }
    }
}

impl<S: Sys> Drop for Wait<'_, S> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            self.registration.slot().stop_waiting(key);
        }
    }
}

fn ended(seen: Snapshot, interest: Interest) -> Poll<io::Result<Snapshot>> {
    if seen.is_shutdown() {
        Poll::Ready(Err(shut_down_error()))
    } else if seen.is_ready_for(interest) {
        Poll::Ready(Ok(seen))
    } else {
        Poll::Pending
    }
}
