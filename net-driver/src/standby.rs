//! The standby: the parked thread that takes the poller role if the worker that left it is busy for
//! long.
//!
//! The worker that left the role last is responsible for timers and sockets (rule 1 of `role.rs`).
//! It looks between its polls, so during a long poll nobody looks. In most runtimes a thread that
//! watches the workers looks then ([`Driver::poll_overdue`]). In a runtime without such a thread
//! ([`Driver::with_standby`]), one thread that waits *stands by*: a worker in its park, or a guest.
//!
//! 1. The standby waits for a [`ROUND`] at a time. If the role is vacant at the end of a round, a
//!    standby that is a worker takes it. A guest takes the role only if something has been due for
//!    a round: see `guest.rs`.
//! 2. After [`ROUNDS`] rounds in a row at whose end the role is held, the standby sets a bit beside
//!    the holder, and waits without a limit. So an idle driver has no wake-ups. The bit and the
//!    holder are one word. So either the standby finds that the role was left, or the poller finds
//!    the bit when it leaves the role, and unparks the standby. The poller clears the bit when it
//!    leaves the role. A standby that stops does not clear it, so a bit may be there for nobody.
//!    Each standby sets the bit itself before it relies on it.
//! 3. A thread waits beside the standby without a limit only if it sees a standby after it has
//!    published its wait. If the standby stops, another one must be *recruited*: a thread unparks
//!    one that waits. The poller does so if it leaves the role and sees no standby. The thread that
//!    has stopped does so if the role is vacant and it does not wait again. If it waits again, it
//!    takes the role or becomes the standby, and recruits nobody. The poller and that thread each
//!    write their own word, make a `SeqCst` fence, and read the other's word. So at least one of
//!    them sees that the role is vacant and that no thread stands by.
//! 4. A thread writes into its token that it waits, makes a fence, and reads whether a thread
//!    stands by. The recruiter reads that none does, makes a fence, and reads the tokens. If the
//!    first thread has seen a standby, its fence comes before the recruiter's. So the recruiter
//!    reads in the token that this thread waits.
//! 5. The recruit usually waits again, and then takes the role or stands by. After a wait, a thread
//!    may run a task, poll its own future, or leave. Before it does so, it recruits another standby
//!    if the role is vacant and no thread stands by. A worker's executor does so
//!    ([`Driver::recruit_standby`]).
//! 6. The poller may wait on its thread too, and its token looks like that of any other thread. So
//!    the recruiter skips the poller's token when it scans the tokens. A thread that becomes the
//!    poller during the scan may be unparked in vain: it recruits another one when it leaves the
//!    role. Workers that park in parkers of their own never stand by.
use crate::{driver::Driver, park::WorkerPark, threads::Threads, token::Waited};
use std::time::Duration;
use sync_shim::atomic::{Ordering::SeqCst, fence};

/// The time for which the standby waits before it looks at the role (rule 1).
pub(crate) const ROUND: Duration = Duration::from_millis(5);

/// The rounds after which the standby waits without a limit (rule 2). Each round costs a wake-up.
/// With more rounds, a poller that often leaves the role needs to unpark the standby less often.
const ROUNDS: u32 = 10;

/// The shortest round of a guest.
const MIN_ROUND: Duration = Duration::from_millis(1);

/// While this value lives, the thread is the standby. Its drop ends that (rule 3).
struct Standby<'a>(&'a Threads);

impl Drop for Standby<'_> {
    fn drop(&mut self) {
        self.0.role.stop_standing_by();
    }
}

impl WorkerPark {
    /// Waits on this thread while another thread has the role. Does not wait if the role is vacant,
    /// or if a thread is to stand by and none does.
    pub(crate) fn wait_beside_poller(&self, limit: Option<Duration>) -> Waited {
        let threads = self.driver().threads();
        let role = &threads.role;
        if !threads.needs_standby() || limit == Some(Duration::ZERO) {
            return self.wait_in_thread_if(limit, || role.is_still_held());
        }
        if role.try_stand_by(self.index()) {
            return self.stand_by(limit);
        }
        // The fence of `wait_beside_standby` orders this load too.
        self.wait_beside_standby(limit, || role.is_held())
    }

    /// Waits on this thread while another thread stands by (rule 3), and if `may_wait` returns
    /// true.
    pub(crate) fn wait_beside_standby(
        &self,
        limit: Option<Duration>,
        may_wait: impl FnOnce() -> bool,
    ) -> Waited {
        let role = &self.driver().threads().role;
        self.wait_in_thread_if(limit, || role.is_still_stood_by() && may_wait())
    }

    /// Waits as the standby, at most for `limit`. Is refused when the thread is to take the role.
    pub(crate) fn stand_by(&self, limit: Option<Duration>) -> Waited {
        let driver = self.driver().inner();
        let role = &driver.threads.role;
        let _standby = Standby(&driver.threads);
        let deadline = limit.and_then(|limit| sync_shim::time::now().checked_add(limit));
        let mut rounds = 0;
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(sync_shim::time::now()));
            if left == Some(Duration::ZERO) {
                return Waited::TimedOut;
            }
            let is_idle = rounds >= ROUNDS && role.request_unpark();
            let round = (!is_idle).then(|| self.round());
            let limit = [left, round].into_iter().flatten().min();
            let waited = self.wait_in_thread_if(limit, || true);
            if waited != Waited::TimedOut {
                return waited;
            }
            if role.is_held() {
                rounds += 1;
            } else if !self.is_guest() || driver.is_due_for(ROUND) {
                return Waited::Refused;
            } else {
                rounds = 0;
            }
        }
    }

    /// Returns the length of the round that begins now. A guest looks when something will have been
    /// due for a round.
    fn round(&self) -> Duration {
        let driver = self.driver().inner();
        let due = self
            .is_guest()
            .then(|| driver.until_due_for(ROUND))
            .flatten();
        due.map_or(ROUND, |due| due.clamp(MIN_ROUND, ROUND))
    }
}

impl Threads {
    /// Returns whether a thread that waits has to stand by. While the clock is paused, no timer
    /// becomes due beside a worker that runs.
    pub(crate) fn needs_standby(&self) -> bool {
        self.role.may_stand_by() && self.role.is_active() && !self.is_clock_paused()
    }

    /// Returns whether a thread must stand by and none does.
    #[inline]
    pub(crate) fn lacks_standby(&self) -> bool {
        let role = &self.role;
        role.may_stand_by() && role.is_active() && !role.is_held() && !role.has_standby()
    }

    /// Unparks a thread that waits, so that it stands by (rules 3 to 6). Returns false if no thread
    /// stands by and none waits.
    #[cold]
    pub(crate) fn recruit_standby(&self) -> bool {
        if self.role.has_standby() {
            return true;
        }
        // Ordering: SeqCst pairs with the fence of `is_still_stood_by` (rule 4).
        fence(SeqCst);
        if self.tokens.len() == 1 && self.guests.is_empty() {
            return false; // The caller is the only thread.
        }
        let poller = self.role.holder();
        let workers = self.tokens.iter().enumerate();
        let mut workers = workers.filter(|_| !self.parks_elsewhere());
        let worker = workers.find(|(index, token)| Some(*index) != poller && token.is_in_thread());
        let token = match worker {
            Some((_, token)) => Some(token.clone()),
            None => {
                let poller = poller.and_then(|poller| poller.checked_sub(self.tokens.len()));
                self.guests.in_thread(poller)
            }
        };
        if let Some(token) = &token {
            token.unpark();
        }
        token.is_some()
    }
}

impl Driver {
    /// Lets a parked thread of this new driver stand by: the thread serves timers and sockets if
    /// the workers that are awake do not. The thread is a worker in its [`WorkerPark`], or a thread
    /// in [`block_on`](Self::block_on). It looks every 5 ms, until the driver has been idle for 50
    /// ms.
    ///
    /// Without this call, timers and sockets wait while the worker that polled them last is in a
    /// long poll, until another thread calls [`poll_overdue`](Self::poll_overdue) or parks.
    ///
    /// A worker that ends its park and then runs a task must call
    /// [`recruit_standby`](Self::recruit_standby) in between, if the driver
    /// [lacks a standby](Self::lacks_standby). [`WorkerPark::block_on`] does so by itself.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::time::Duration;
    ///
    /// let driver = Driver::new(1).with_standby(); // Its only worker never parks.
    /// driver.block_on(time::sleep(Duration::from_millis(1)));
    /// ```
    #[must_use]
    pub fn with_standby(self) -> Self {
        self.threads().role.let_stand_by(true);
        self
    }

    /// As [`with_standby`](Self::with_standby), for a driver that runs already. The thread that
    /// stands by then looks every 5 ms, also while the driver is idle. Unparks all workers.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::time::Duration;
    ///
    /// let driver = Driver::new(1);
    /// driver.let_stand_by();
    /// driver.block_on(time::sleep(Duration::from_millis(1)));
    /// ```
    pub fn let_stand_by(&self) {
        self.threads().role.let_stand_by(false);
        self.threads().unpark_all();
    }

    /// Returns whether parked threads may stand by: see [`with_standby`](Self::with_standby).
    pub fn may_stand_by(&self) -> bool {
        self.threads().role.may_stand_by()
    }

    /// Returns whether a worker must stand by and no thread does: timers or sockets are in use, and
    /// no parked thread waits for them. Costs a load unless parked threads may stand by. Workers
    /// that park in parkers of their own never stand by.
    ///
    /// ```
    /// assert!(!net_driver::Driver::new(1).lacks_standby());
    /// ```
    #[inline]
    pub fn lacks_standby(&self) -> bool {
        self.threads().lacks_standby() && !self.threads().parks_elsewhere()
    }

    /// Unparks a thread that waits, so that it stands by, unless a thread does. Returns false if no
    /// thread waits.
    ///
    /// ```
    /// assert!(!net_driver::Driver::new(1).recruit_standby());
    /// ```
    pub fn recruit_standby(&self) -> bool {
        self.threads().recruit_standby()
    }
}
