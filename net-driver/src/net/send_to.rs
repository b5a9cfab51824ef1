//! A send of a Unix socket to a socket that is not, or need not be, the connected one.
//!
//! While the queue of the receiver is full, Linux says "would block". But the events of the sender
//! tell whether the *sender* has room for a datagram:
//!
//! - A false event follows each such failure on Linux: the call has taken room and given it back. A
//!   task that waits for events alone calls the system in a loop.
//! - Often no event comes when the receiver has room again. It does not if the datagrams that the
//!   receiver took were of other senders.
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
    registration::{CALL, Registration, Wait, uninterrupted},
    sys::Os,
};
use std::{
    future::poll_fn,
    io,
    task::{Context, Poll, ready},
    time::Duration,
};

const SHORTEST: Duration = Duration::from_micros(100);
const LONGEST: Duration = Duration::from_millis(50);

/// One send.
struct Sending<'a> {
    registration: &'a Registration<Os>,
    driver: &'a WeakDriver,
    wait: Wait<'a, Os>,
    pause: Pause,
    /// The length of the next pause.
    length: Duration,
    /// Whether no call that followed an event has failed (rule 3).
    trusts_events: bool,
}

impl<'a> Sending<'a> {
    fn new(registration: &'a Registration<Os>, driver: &'a WeakDriver) -> Self {
        Self {
            registration,
            driver,
            wait: registration.wait(Interest::WRITABLE),
            pause: Pause::default(),
            length: SHORTEST,
            trusts_events: true,
        }
    }

    fn poll<R>(
        &mut self,
        cx: &mut Context<'_>,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        let progress = ready!(coop_budget::poll_proceed_n(cx, CALL));
        loop {
            let seen = ready!(self.poll_turn(cx))?;
            let op = || uninterrupted(&mut op);
            if let Some(done) = self.registration.attempt(seen, Interest::WRITABLE, op) {
                progress.made_progress();
                return Poll::Ready(done);
            }
            self.pause.begin(self.length);
            self.length = (self.length * 2).min(LONGEST);
        }
    }

    /// Polls whether the next call is due.
    fn poll_turn(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Snapshot>> {
        if self.pause.poll(self.driver, cx)?.is_ready() {
            return Poll::Ready(self.registration.current());
        }
        if !self.trusts_events {
            return Poll::Pending;
        }
        let seen = ready!(self.wait.poll_ready(cx))?;
        // Rule 3: if the call that follows succeeds, this send ends.
        self.trusts_events = false;
        Poll::Ready(Ok(seen))
    }
}

impl<T> Source<T> {
    /// Performs `op`, which sends to a socket that may have a full queue. The pauses are timers of
    /// `driver`.
    pub(crate) async fn send_to<R>(
        &self,
        driver: &WeakDriver,
        mut op: impl FnMut() -> io::Result<R>,
    ) -> io::Result<R> {
        let mut sending = Sending::new(self.registration(), driver);
        poll_fn(|cx| sending.poll(cx, &mut op)).await
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
