//! The poller role: which parked worker wakes up for the next deadline, and for sockets.
//!
//! One parked thread at a time has the role: the *poller*. It parks until the first deadline of all
//! wheels. Meanwhile it waits for the events of sockets, unless a thread of the driver does. The
//! other workers park without a limit of their own, but for the standby (see `standby.rs`). A
//! thread that arms an earlier timer unparks the poller. When the park of the poller returns, it
//! leaves the role, runs tasks, and looks at the timers between them. When it parks again, it takes
//! the role again, unless another worker has taken it. A worker that will not park again makes
//! sure that a waiting worker takes the role (rule 4).
//!
//! ```text
//!            a worker parks
//!   vacant -----------------> held by the poller
//!     ^                               |
//!     |                               | its park returns, by a deadline, an event or an unpark
//!     +-------------------------------+
//! ```
//!
//! A *guest* is a thread in a `block_on` of the driver that is no worker. It has an index too,
//! behind those of the workers.
//!
//! | field | meaning | written by |
//! |---|---|---|
//! | `holder` | the poller's index plus 1, or 0 while the role is vacant; and a bit, [`UNPARKS_STANDBY`] | the thread that takes or leaves the role; the standby sets the bit |
//! | `until` | the deadline (a tick) for which the poller parks, or 0 while the role is vacant | the poller |
//! | `active` | there has been a timer, or a socket that workers poll | the thread that makes the first of them |
//! | `standby_allowed` | whether parked threads may stand by: never, from the start, or since a late call | the runtime, once |
//! | `standby` | the standby's index plus 1, or 0 | the thread that begins or stops standing by |
//!
//! 1. A worker that parks takes the role if it is vacant, and leaves it when its park returns. The
//!    worker that left the role last is *responsible* while the role is vacant: this worker is
//!    awake, looks at the timers between its tasks, and takes the role when it parks. If it stops
//!    parking instead, rule 4 makes another worker responsible.
//! 2. The poller publishes `until`, and then reads the next deadline of each wheel again. A thread
//!    that arms a timer publishes the wheel's next deadline, and then reads `until`. Each of them
//!    has a `SeqCst` fence between its two actions. So either the poller sees the new deadline
//!    before it parks, or the thread sees an `until` later than that deadline, and unparks the
//!    poller.
//! 3. Until `active` is set there is no role, and a park reads no deadline and no clock. The thread
//!    that sets `active` unparks every worker after that, so that each worker parks again under
//!    rule 1.
//! 4. A worker *retires* when it stops parking: its `block_on` ends, or its park is dropped. If the
//!    role is vacant then, the worker unparks one worker that waits in the driver's own parker. The
//!    unparked worker is responsible from then on: it parks again, or retires too. No waiting
//!    worker is missed. A worker that finds the role held records in its token that it waits. Only
//!    then it reads `holder` again. The last holder leaves the role, and when it retires, it reads
//!    the tokens. Each of them has a `SeqCst` fence between its two actions. So either the waiting
//!    worker sees that the role is vacant, and does not wait, or the retiring worker sees the wait.
//!    The token of a worker with a parker of its own does not say whether the worker waits: there,
//!    a retiring worker unparks all others. It reads no token, and so needs no fence.
use sync_shim::{
    atomic::{
        AtomicBool, AtomicU32, AtomicU64, AtomicUsize,
        Ordering::{Acquire, Relaxed, Release, SeqCst},
        fence,
    },
    count::shared,
};

/// The bit of `holder` with which the standby requests an unpark at the poller's leave (rule 2 of
/// `standby.rs`).
const UNPARKS_STANDBY: usize = 1 << (usize::BITS - 1);

/// The values of `standby_allowed`. With `LATE`, threads had parked before it was allowed.
const NEVER: u32 = 0;
const FROM_THE_START: u32 = 1;
const LATE: u32 = 2;

/// The duty of a thread that has left the role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaveDuty {
    /// The thread has no duty: the standby will notice by itself that the role is vacant, or no
    /// thread may stand by.
    Nothing,
    /// The thread must unpark the standby, which has this index.
    UnparkStandby(usize),
    /// No thread stands by: the thread must make one that waits the standby.
    RecruitStandby,
}

/// The poller role of a driver.
pub(crate) struct Role {
    holder: AtomicUsize,
    until: AtomicU64,
    active: AtomicBool,
    standby_allowed: AtomicU32,
    standby: AtomicUsize,
}

impl Role {
    pub(crate) fn new() -> Self {
        Self {
            holder: shared(AtomicUsize::new(0)),
            until: AtomicU64::new(0),
            active: shared(AtomicBool::new(false)),
            standby_allowed: AtomicU32::new(NEVER),
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

    /// Returns whether a worker has the role, for a worker that is about to wait, or that hands the
    /// role over (rule 4). The worker has published its wait, or has left the role, before this
    /// call.
    pub(crate) fn is_still_held(&self) -> bool {
        fence(SeqCst);
        self.is_held()
    }

    /// Returns whether a worker has the role.
    pub(crate) fn is_held(&self) -> bool {
        // Ordering: Relaxed. For a busy worker this is a hint: if it misses a change, it polls in
        // vain, or later. For rule 4 the fence of `is_still_held` orders this load. A worker with a
        // parker of its own retires without that fence. If it was the last to leave the role, it
        // reads its own store of 0, or a later holder. Otherwise another worker was the last: that
        // worker parks again, or unparks all others.
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
        (self.holder.load(Relaxed) & !UNPARKS_STANDBY).checked_sub(1)
    }

    /// Publishes the deadline for which the poller is about to park (rule 2). The poller reads the
    /// wheels' deadlines again after this.
    pub(crate) fn publish_until(&self, tick: u64) {
        // Ordering: Relaxed; the fence pairs with the one in `must_unpark`.
        self.until.store(tick, Relaxed);
        fence(SeqCst);
    }

    /// Leaves the role. Returns what the caller must then do for the standby.
    #[must_use = "a thread may have to stand by"]
    pub(crate) fn leave(&self) -> LeaveDuty {
        // Ordering: Relaxed. A thread that still reads the old tick unparks a worker in vain.
        self.until.store(0, Relaxed);
        if !self.may_stand_by() {
            // Ordering: Release pairs with `try_take`.
            self.holder.store(0, Release);
            return LeaveDuty::Nothing;
        }
        // Ordering: Release pairs with `try_take`.
        let unparks = self.holder.swap(0, Release) & UNPARKS_STANDBY != 0;
        // Ordering: SeqCst pairs with the fence of `stop_standing_by` (rule 3 of `standby.rs`). It
        // also acquires the Release of `request_unpark`: this thread then sees that standby, or a
        // later one.
        fence(SeqCst);
        // Ordering: Relaxed, after the fence.
        match self.standby.load(Relaxed).checked_sub(1) {
            None => LeaveDuty::RecruitStandby,
            Some(standby) if unparks => LeaveDuty::UnparkStandby(standby),
            Some(_) => LeaveDuty::Nothing,
        }
    }

    /// Returns whether parked threads may stand by.
    pub(crate) fn may_stand_by(&self) -> bool {
        // Ordering: Relaxed. A thread that misses a late change is unparked after it, and then
        // waits by the rules of `standby.rs`.
        self.standby_allowed.load(Relaxed) != NEVER
    }

    /// Lets parked threads stand by. `is_new` says that no thread has parked yet. Otherwise the
    /// caller unparks all threads.
    pub(crate) fn let_stand_by(&self, is_new: bool) {
        if !self.may_stand_by() {
            let when = if is_new { FROM_THE_START } else { LATE };
            // Ordering: Relaxed, as in `may_stand_by`.
            self.standby_allowed.store(when, Relaxed);
        }
    }

    /// Begins to stand by, unless a thread stands by already.
    pub(crate) fn try_stand_by(&self, index: usize) -> bool {
        // Ordering: Relaxed. The exchange admits one standby, which takes over nothing from the one
        // before it. `request_unpark` publishes the index.
        self.standby
            .compare_exchange(0, index + 1, Relaxed, Relaxed)
            .is_ok()
    }

    /// Stops standing by.
    pub(crate) fn stop_standing_by(&self) {
        // Ordering: Relaxed; the fence pairs with those of `leave` and `is_still_stood_by`.
        self.standby.store(0, Relaxed);
        fence(SeqCst);
    }

    /// Returns whether a thread stands by. A hint, unless fences order it.
    pub(crate) fn has_standby(&self) -> bool {
        // Ordering: Relaxed; see the callers.
        self.standby.load(Relaxed) != 0
    }

    /// Returns whether a thread stands by, for a thread that has published its wait (rule 3 of
    /// `standby.rs`).
    pub(crate) fn is_still_stood_by(&self) -> bool {
        // Ordering: SeqCst pairs with the fences of `stop_standing_by` and `recruit_standby`.
        fence(SeqCst);
        self.has_standby()
    }

    /// Requests that the poller, when it leaves the role, unparks the caller, which is the standby.
    /// Returns false if the role is vacant, or if standing by was allowed late: in that case the
    /// poller may have taken the role earlier, and would leave it without a look at the bit.
    pub(crate) fn request_unpark(&self) -> bool {
        // Ordering: Relaxed. The caller stands by, so it has seen the value.
        if self.standby_allowed.load(Relaxed) == LATE {
            return false;
        }
        // Ordering: Release pairs with the fence of `leave`. Relaxed for the loads: if the role
        // was left and taken again, the new poller finds the bit.
        self.holder
            .fetch_update(Release, Relaxed, |holder| {
                (holder != 0).then_some(holder | UNPARKS_STANDBY)
            })
            .is_ok()
    }

    /// Returns the index of the poller, if the poller parks beyond `tick`. A wheel has just
    /// published `tick` as its next deadline (rule 2).
    pub(crate) fn must_unpark(&self, tick: u64) -> Option<usize> {
        // Ordering: SeqCst pairs with the fence of `publish_until` (rule 2).
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
