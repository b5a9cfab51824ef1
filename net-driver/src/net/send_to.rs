//! A send of a Unix socket to a socket that is not, or need not be, the connected one.
//!
//! While the queue of the receiver is full, Linux says "would block". But the events of the sender
//! tell whether the *sender* has room for a datagram:
//!
//! - A false event follows each such failure on Linux: the call has taken room and given it back. A
//!   task that waits for events alone calls the system in a loop.
//! - Often no event comes when the receiver has room again. No event comes if the datagrams that
//!   the receiver took were from other senders.
//!
//! So the waits follow these rules:
//!
//! 1. The first call does not wait, whatever the sender's readiness is.
//! 2. After a failed call the task waits for an event, or for the end of a pause. The length of the
//!    pause doubles from one failure to the next, up to [`LONGEST`].
//! 3. If a call that follows an event fails, the event was false, or another task took the room.
//!    From then on only the end of the pause ends a wait.
use super::{pause::Pause, source::Source};
use crate::{
    Interest,
    driver::WeakDriver,
    readiness::Snapshot,
    registration::{CALL, Registration, or_end, uninterrupted},
    slot::Direction,
    sys::Os,
};
use std::{
    future::poll_fn,
    io,
    task::{Context, Poll, ready},
    time::Duration,
};
use sync_shim::sync::Mutex;

const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(50);

/// The progress of one send.
pub(crate) struct SendPauses {
    pause: Pause,
    /// The length of the next pause.
    length: Duration,
    /// Whether no call that followed an event has failed (rule 3).
    trusts_events: bool,
}

impl Default for SendPauses {
    fn default() -> Self {
        Self {
            pause: Pause::default(),
            length: SHORTEST,
            trusts_events: true,
        }
    }
}

impl SendPauses {
    /// Polls the send `op`. `poll_ready` polls whether the sender is writable.
    fn poll<R>(
        &mut self,
        registration: &Registration<Os>,
        driver: &WeakDriver,
        cx: &mut Context<'_>,
        mut poll_ready: impl FnMut(&mut Context<'_>) -> Poll<io::Result<Snapshot>>,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let progress = ready!(coop_budget::poll_proceed_n(cx, CALL));
        loop {
            let polled = match self.pause.poll(driver, cx) {
                Poll::Ready(paused) => Poll::Ready(paused.and_then(|()| registration.current())),
                Poll::Pending if self.trusts_events => {
                    let polled = poll_ready(cx);
                    // Rule 3: if the call that follows succeeds, this send ends.
                    self.trusts_events &= !matches!(polled, Poll::Ready(Ok(_)));
                    polled
                }
                Poll::Pending => Poll::Pending,
            };
            let Poll::Ready(seen) = polled else {
                progress.waits_for(|| registration.awaits(Interest::WRITABLE));
                return Poll::Pending;
            };
            let seen = or_end!(seen, progress.made_progress());
            let op = || uninterrupted(&mut op);
            if let Some(done) = registration.attempt(seen, Interest::WRITABLE, op) {
                progress.made_progress();
                return Poll::Ready(done);
            }
            self.pause.begin(self.length);
            self.length = (self.length * 2).min(LONGEST);
        }
    }
}

impl<T> Source<T> {
    /// Performs `op`, which sends to a socket that may have a full queue. The pauses are timers of
    /// `driver`. Any number of tasks may call this at a time.
    pub(crate) async fn send_to<R>(
        &self,
        driver: &WeakDriver,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let (mut pauses, registration) = (SendPauses::default(), self.registration());
        let mut wait = registration.wait(Interest::WRITABLE);
        poll_fn(|cx| pauses.poll(registration, driver, cx, |cx| wait.poll_ready(cx), &mut op)).await
    }

    /// Polls for a [`send_to`](Self::send_to), whose state is in `pauses` from one poll to the
    /// next. Only the last task that polled is woken.
    pub(crate) fn poll_send_to<R>(
        &self,
        driver: &WeakDriver,
        pauses: &Mutex<SendPauses>,
        cx: &mut Context<'_>,
        op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let mut mine = std::mem::take(&mut *pauses.lock());
        let registration = self.registration();
        let poll_ready = |cx: &mut Context<'_>| registration.poll_ready(cx, Direction::Write);
        let polled = mine.poll(registration, driver, cx, poll_ready, op);
        if polled.is_pending() {
            // The lock is not held while the other state is dropped: its timer has a waker.
            let other = std::mem::replace(&mut *pauses.lock(), mine);
            drop(other);
        }
        polled
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
