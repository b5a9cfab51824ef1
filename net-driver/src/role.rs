//! The poller role: which parked worker wakes up for the next deadline, and for sockets.
//!
//! One parked thread at a time has the role: the *poller*. The poller parks until the first
//! deadline of all wheels. The other workers park without a limit of their own. A *guest* is a
//! thread in a `block_on` of the driver that is no worker. It has an index too, behind those of the
//! workers.
//!
//! | field | meaning | written by |
//! |---|---|---|
//! | `holder` | the poller's index plus 1, or 0 while the role is vacant; and a bit, [`CALLS`] | the thread that takes or leaves the role; the standby sets the bit |
//! | `until` | the deadline (a tick) for which the poller parks, or 0 while the role is vacant | the poller |
//! | `active` | there has been a timer, or a socket that workers poll | the thread that makes the first of them |
//! | `has_standby` | whether a parked thread stands by (rule 5) | the runtime that makes the driver |
//! | `standby` | the standby's index plus 1, or 0 | the thread that begins or ends to stand by |
//!
//! 1. A worker that parks takes the role if it is vacant, and leaves it when its park returns. The
//!    worker that left the role last is *responsible* for it while it is vacant: it is awake, looks
//!    at the timers between its tasks, and takes the role when it parks. If it stops parking
//!    instead, rule 4 makes another worker responsible.
//! 2. The poller publishes `until`, and then reads the next deadline of each wheel again. A thread
//!    that arms a timer publishes the wheel's next deadline, and then reads `until`. Each of them
//!    has a `SeqCst` fence between its two actions. So either the poller sees the new deadline
//!    before it parks, or the thread sees an `until` later than that deadline, and unparks the
//!    poller.
//! 3. Until `active` is set there is no role, and a park reads no deadline and no clock. The thread
//!    that sets `active` unparks every worker after that, so that each worker parks again under
//!    rule 1.
//! 4. A worker *retires* when it stops parking: its `block_on` ends, or its park is dropped. If the
//!    role is vacant then, the worker unparks one worker that waits on its thread. The unparked
//!    worker is responsible from then on: it parks again, or retires too. No waiting worker is
//!    missed. A worker that found the role held first says in its token that it waits, and then
//!    reads `holder` again. The last holder leaves the role, and when it retires, it reads the
//!    tokens. Each of them has a `SeqCst` fence between its two actions. So either the waiting
//!    worker sees that the role is vacant, and does not wait, or the retiring worker sees the wait.
//!    The token of a worker with a parker of its own does not say whether the worker waits: there,
//!    a retiring worker unparks all others.
//! 5. The responsible worker may be in a long poll. In most runtimes a thread that watches the
//!    workers then serves the timers and sockets ([`Driver::poll_overdue`]). In a runtime without
//!    such a thread, one parked thread *stands by* instead: a worker that found the role held, or a
//!    guest. It parks for a [`ROUND`] at a time. If the role is vacant at the end of a round, it
//!    takes the role. So no event waits longer than a round while any thread is parked.
//! 6. After [`ROUNDS`] rounds that all end with the role held, the standby sets [`CALLS`] and parks
//!    without a limit, so that an idle runtime has no wake-ups. The bit and the holder are one
//!    word. So either the standby finds that the role was left, or the poller finds the bit when it
//!    leaves the role, and unparks the standby. A standby leaves the bit set when it stops: the
//!    next standby sets it again before it relies on it.
//! 7. A standby that stops unparks another thread that waits, which stands by then. No waiting
//!    thread is missed, for the same reason as in rule 4: a thread that found a standby says that
//!    it waits and reads `standby` again, and a standby that stops writes `standby` and reads the
//!    tokens.
//!
//! [`Driver::poll_overdue`]: crate::Driver::poll_overdue
use std::time::Duration;
use sync_shim::{
    atomic::{
        AtomicBool, AtomicU64, AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    count::shared,
};

/// The time for which the standby parks before it looks at the role (rule 5).
pub(crate) const ROUND: Duration = Duration::from_millis(5);

/// The rounds after which the standby parks without a limit (rule 6). Each costs a wake-up. A
/// larger number spares a poller that leaves the role often the unpark of the standby.
pub(crate) const ROUNDS: u32 = 10;

/// The bit of `holder` with which the standby asks to be unparked (rule 6).
const CALLS: usize = 1 << (usize::BITS - 1);

/// The poller role of a driver.
pub(crate) struct Role {
    holder: AtomicUsize,
    until: AtomicU64,
    active: AtomicBool,
    has_standby: AtomicBool,
    standby: AtomicUsize,
}

impl Role {
    pub(crate) fn new() -> Self {
        Self {
            holder: shared(AtomicUsize::new(0)),
            until: AtomicU64::new(0),
            active: shared(AtomicBool::new(false)),
            has_standby: AtomicBool::new(false),
            standby: shared(AtomicUsize::new(0)),
        }
    }

    /// Returns whether there has been a timer, or a socket that workers poll (rule 3).
    #[inline]
    pub(crate) fn is_active(&self) -> bool {
        // Ordering: Relaxed. A worker that misses the change is unparked after it (rule 3), and the
        // token of that unpark orders its next look.
        self.active.load(Relaxed)
    }

    /// Records the first timer or socket. Returns whether this call was the first: then the caller
    /// must unpark every worker (rule 3).
    #[must_use = "the first call must unpark every worker"]
    pub(crate) fn activate(&self) -> bool {
        // Ordering: Relaxed, as in `is_active`. The tokens of the unparks publish the flag.
        !self.is_active() && !self.active.swap(true, Relaxed)
    }

    /// Returns whether a worker has the role, for a worker that is about to wait, or retires (rule
    /// 4). It has published its wait, or has left the role before.
    pub(crate) fn is_still_held(&self) -> bool {
        fence(SeqCst);
        self.is_held()
    }

    /// Returns whether a worker has the role.
    pub(crate) fn is_held(&self) -> bool {
        // Ordering: Relaxed. For a busy worker this is a hint: if it misses a change, it polls in
        // vain, or later. For rule 4 the fence of `is_still_held` orders this load.
        self.holder.load(Relaxed) != 0
    }

    /// Takes the role, if it is vacant (rule 1).
    pub(crate) fn try_take(&self, worker: usize) -> bool {
        // Ordering: Acquire pairs with the Release of `leave`: all uses of the poller's state by
        // the last poller come before this. The exchange itself publishes nothing: the fence of
        // `publish_until` does.
        self.holder
            .compare_exchange(0, worker + 1, Acquire, Relaxed)
            .is_ok()
    }

    /// Returns the index of the poller. The caller's fence orders the load.
    pub(crate) fn holder(&self) -> Option<usize> {
        // Ordering: Relaxed; see the callers: `must_unpark`, and the test clock.
        (self.holder.load(Relaxed) & !CALLS).checked_sub(1)
    }

    /// Publishes the deadline for which the poller is about to park (rule 2). The poller reads the
    /// wheels' deadlines again after this.
    pub(crate) fn publish_until(&self, tick: u64) {
        // Ordering: Relaxed; the fence pairs with the one in `must_unpark`.
        self.until.store(tick, Relaxed);
        fence(SeqCst);
    }

    /// Leaves the role. Returns the index of the standby, if the caller must unpark it (rule 6).
    #[must_use = "the standby must be unparked"]
    pub(crate) fn leave(&self) -> Option<usize> {
        // Ordering: Relaxed. A thread that still reads the old tick unparks a worker in vain.
        self.until.store(0, Relaxed);
        if !self.has_standby() {
            // Ordering: Release pairs with `try_take`.
            self.holder.store(0, Release);
            return None;
        }
        // Ordering: Release pairs with `try_take`. Acquire pairs with the Release of
        // `call_standby`: this thread then sees that standby, or a later one.
        let called = self.holder.swap(0, AcqRel) & CALLS != 0;
        // Ordering: Relaxed, after the Acquire.
        called.then(|| self.standby.load(Relaxed).checked_sub(1))?
    }

    /// Returns whether a parked thread stands by (rule 5).
    pub(crate) fn has_standby(&self) -> bool {
        // Ordering: Relaxed. Each thread is unparked after the change, and takes that token before
        // it next leaves the role or waits.
        self.has_standby.load(Relaxed)
    }

    /// Lets parked threads stand by. The caller unparks all threads.
    pub(crate) fn let_stand_by(&self) {
        // Ordering: Relaxed, as in `has_standby`.
        self.has_standby.store(true, Relaxed);
    }

    /// Begins to stand by, unless a thread does (rule 5).
    pub(crate) fn try_stand_by(&self, index: usize) -> bool {
        // Ordering: Relaxed. The exchange admits one standby, which takes over nothing from the one
        // before it. `call_standby` publishes the index.
        self.standby
            .compare_exchange(0, index + 1, Relaxed, Relaxed)
            .is_ok()
    }

    /// Stops to stand by. The caller then looks for another thread that waits (rule 7).
    pub(crate) fn stop_standing_by(&self) {
        // Ordering: Relaxed; the fence is the one between the two actions of rule 7.
        self.standby.store(0, Relaxed);
        fence(SeqCst);
    }

    /// Returns whether a thread stands by. A hint.
    pub(crate) fn is_stood_by(&self) -> bool {
        // Ordering: Relaxed, a hint.
        self.standby.load(Relaxed) != 0
    }

    /// Returns whether a thread stands by, for a thread that has published its wait (rule 7).
    pub(crate) fn is_still_stood_by(&self) -> bool {
        fence(SeqCst);
        self.is_stood_by()
    }

    /// Asks the poller to unpark the standby, which is the caller, when it leaves the role (rule
    /// 6). Returns false if the role is vacant.
    pub(crate) fn call_standby(&self) -> bool {
        // Ordering: Release pairs with the Acquire of `leave`. Relaxed for the loads: if the role
        // was left and taken again, the new poller finds the bit.
        self.holder
            .fetch_update(Release, Relaxed, |holder| {
                (holder != 0).then_some(holder | CALLS)
            })
            .is_ok()
    }

    /// Returns the index of the poller, if the poller parks beyond `tick`. A wheel has just
    /// published `tick` as its next deadline (rule 2).
    pub(crate) fn must_unpark(&self, tick: u64) -> Option<usize> {
        fence(SeqCst);
        // Ordering: Relaxed; the fence pairs with the one in `publish_until`.
        if self.until.load(Relaxed) <= tick {
            return None;
        }
        // Ordering: Relaxed. If the fence of the poller that published this `until` came before
        // this thread's fence, this load sees that poller, or a later value of `holder`. If it sees
        // a later value, that poller is awake, or another poller's fence comes after this thread's.
        // A poller whose fence comes after this thread's reads the new deadline itself.
        self.holder()
    }
}
