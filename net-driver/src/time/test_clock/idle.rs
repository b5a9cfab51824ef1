//! Whether a runtime is idle: then its paused clock jumps (rules 1 to 4 of the parent module).
use super::clock;
use crate::{driver::Inner, threads::Threads, token::Token};
use sync_shim::atomic::{
    Ordering::{Acquire, Relaxed, SeqCst},
    fence,
};

impl Threads {
    /// Returns the result of `read`, if all threads except that of `worker` wait during this call,
    /// and no thread has unparked `worker` (rules 1 and 4). The worker has taken the role, and then
    /// called `Role::publish_until`, which contains the fence of rule 2.
    pub(super) fn if_idle_but<R>(&self, worker: usize, read: impl FnOnce() -> R) -> Option<R> {
        let clock = &self.clock;
        // Ordering: Acquire pairs with `will_wait`.
        let waits = clock.waits.load(Acquire);
        let mut workers = self.tokens.iter().zip(&clock.started).enumerate();
        // Ordering: Acquire pairs with the drop of a hold: if its holder unparked a thread before
        // the drop, this look sees that thread as running.
        let all_wait = clock.holds.load(Acquire) == 0
            && workers.all(|(index, (token, started))| {
                if index == worker {
                    return !token.is_notified();
                }
                // Ordering: Relaxed, as in `set_started`.
                !started.load(Relaxed) || token.is_waiting()
            })
            && self.guests.all(Token::is_waiting);
        let result = all_wait.then(read);
        // Ordering: Acquire pairs with the fence in `will_wait`.
        fence(Acquire);
        // Ordering: Relaxed, after the fence.
        result.filter(|_| clock.waits.load(Relaxed) == waits)
    }

    /// Lets the poller look again, after a thread has begun to wait (rule 2).
    pub(crate) fn began_to_wait(&self) {
        // Ordering: SeqCst pairs with the fence of `Role::publish_until`, and with the fence of a
        // pause.
        fence(SeqCst);
        if self.clock.is_paused() {
            self.unpark_poller();
        }
    }

    /// Unparks the poller. The caller's fence orders the load of the holder.
    pub(super) fn unpark_poller(&self) {
        if let Some(poller) = self.role.holder() {
            self.unpark(poller);
        }
    }
}

impl Inner {
    /// Sets a paused clock to the next deadline, if the runtime is idle. Returns whether the
    /// runtime was idle and there was a deadline.
    pub(crate) fn jump_if_idle(&self, poller: usize) -> bool {
        let next = self
            .threads
            .if_idle_but(poller, || self.timers.next_exact());
        if let Some(tick) = next.flatten() {
            self.threads.clock.jump_to(clock::time_of(tick));
        }
        next.flatten().is_some()
    }
}
