//! The state word: every bit, every transition, and what each transition obliges its caller to do.
//!
//! # Bits
//!
//! | bit | set by | cleared by | while set |
//! |---|---|---|---|
//! | `RUNNING` | whoever starts a [`Notified`](crate::Notified) | the end of that run | the future belongs to that thread, or to the holder of the `Notified` in which the run goes on |
//! | `NOTIFIED` | a wake, an abort | the start or going-on of a run, completion | one `Notified` exists, or the run goes on in one |
//! | `COMPLETE` | the running thread | nobody | the future is gone, the output slot is written |
//! | `CANCELLED` | an abort, always together with `NOTIFIED` | nobody | the next start drops the future; in a poll, the end of that poll (rule 9) |
//! | `JOIN_INTEREST` | the constructor | the join handle | a join handle exists |
//! | `JOIN_WAKER` | the join handle | the join handle, while not `COMPLETE` | the join waker's slot is the running thread's at completion |
//! | `LISTED` | the owner, with the first `Pending`; the constructor of a task of one thread | the owner | the task is in its owner's list |
//! | count | clone of a waker or abort handle | drop of one | |
//!
//! # Rules
//!
//! 1. `RUNNING`, `LISTED`, `JOIN_INTEREST`, each unit of the count, and `NOTIFIED` while not
//!    `COMPLETE`, are one reference each. The cell is freed by the transition that leaves none.
//! 2. `NOTIFIED` turns from 0 to 1 with neither `RUNNING` nor `COMPLETE` set exactly once for each
//!    `Notified` that is submitted: the one whose read-modify-write saw it so submits. If `RUNNING`
//!    was set, the running thread sees `NOTIFIED` at the latest in the read-modify-write that ends its run, and
//!    submits. So no wake is lost and none submits twice.
//! 3. A wake is a read-modify-write even if `NOTIFIED` is set already: its release half makes the
//!    waker's writes visible to the start of the run, which acquires. It acquires itself what the last run did: who submits
//!    writes the queue link, which the last holder of a `Notified` wrote before.
//! 4. `NOTIFIED` set after `COMPLETE` means nothing; it is no reference (rule 1).
//! 5. A task that is left with no reference before `COMPLETE` can never be woken again. Whoever
//!    took the last one owns it alone and submits it once more, cancelled, so that the future is
//!    dropped where futures are dropped.
//! 6. The output slot belongs to the running thread until `COMPLETE`, then to the join handle, and
//!    if there is none (`JOIN_INTEREST` is clear and never comes back) to the running thread still.
//! 7. The join waker's slot belongs to the join handle while `JOIN_WAKER` is clear; while it is set
//!    nobody writes it. `COMPLETE` with `JOIN_WAKER` set gives the waker in it to the running thread for good, which leaves the slot as it is.
//! 8. A run need not end with its poll. One whose task is to be polled again at once (it was woken in the poll, or asks for it) goes on
//!    in a `Notified`: `RUNNING` stays set, and is that one's reference. The holder of it has the future alone, as the running thread had, and what
//!    that wrote comes with the hand-over. A wake or an abort meanwhile sees `RUNNING`, as in a poll, and sets bits alone. Going on is a
//!    load, unless that finds `NOTIFIED`. A `NOTIFIED` that is set but not seen by it gives one more poll (rule 2), so nothing hangs on how fresh the load is; and `RUNNING` changes with no
//!    other holder, so that the load tells for certain which kind of `Notified` it is.
//! 9. An abort in a poll that is `Pending` ends the task with that poll, without a way through the
//!    queue: the running thread finds `CANCELLED`, starts again (rule 8) and so drops the future.
//!    It looks before it touches its list, because the drop is code of users, which may give the
//!    list to another thread. An abort after that look is found by `pend`, which has then
//!    made the run a `Notified`: the same thread starts that, and its list hears of the end as of
//!    an end elsewhere. A run that is to go on is not looked at again: its next start drops the
//!    future.

use core::fmt;
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
    Retire,
};

const RUNNING: usize = 1;
const NOTIFIED: usize = 1 << 1;
const COMPLETE: usize = 1 << 2;
const CANCELLED: usize = 1 << 3;
const JOIN_INTEREST: usize = 1 << 4;
const JOIN_WAKER: usize = 1 << 5;
const LISTED: usize = 1 << 6;
const REF_ONE: usize = 1 << 7;
const COUNT: usize = !(REF_ONE - 1);

// No two share a bit, and together they are the word. So `|` between them is `^`: for that `.cargo/mutants.toml` leaves out the mutants that put one for the other.
const _: () = {
    let parts = [
        RUNNING,
        NOTIFIED,
        COMPLETE,
        CANCELLED,
        JOIN_INTEREST,
        JOIN_WAKER,
        LISTED,
        COUNT,
    ];
    let (mut all, mut i) = (0, 0);
    while i < parts.len() {
        assert!(parts[i] != 0 && all & parts[i] == 0);
        all += parts[i];
        i += 1;
    }
    assert!(all == usize::MAX);
};

/// Rule 1.
const fn referenced(s: usize) -> bool {
    let notified = if s & COMPLETE == 0 { NOTIFIED } else { 0 };
    s & (RUNNING | LISTED | JOIN_INTEREST | COUNT | notified) != 0
}

/// What a wake, an abort, or the drop of a reference leaves to its caller.
#[must_use = "a submission or a deallocation would be lost"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// The caller holds the one `Notified` and hands it to the scheduler.
    Submit,
    /// The caller holds the last reference to a completed task and frees it.
    Dealloc,
    /// Nothing; the cell may be gone already unless the caller has a reference left.
    Nothing,
}

/// What a start found.
#[must_use = "the future is the caller's now"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Poll the future.
    Poll,
    /// Drop the future: the task was aborted.
    Cancel,
}

/// What the end of a run whose poll was `Pending` found.
#[must_use = "the task may need another run"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pend {
    /// Others hold the task.
    Idle,
    /// It was woken after all: the caller holds the one `Notified`.
    Notified,
    /// It was aborted after all: the caller holds the one `Notified`, and cancels it (rule 9).
    Aborted,
    /// Rule 5: the caller owns the task alone, as running and cancelled.
    Orphan,
}

/// What completion asks for.
#[must_use = "completion is done only with `Done`, `Dealloc` or after `release_run`"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complete {
    /// Nothing has changed yet: nobody will take the output. Drop it and complete again.
    DropOutput,
    /// Complete; the run's reference is kept. Wake the join waker, then `release_run`.
    WakeJoin,
    /// Complete, and the run's reference is released.
    Done,
    /// Complete, and no reference is left.
    Dealloc,
}

/// What the drop of a join handle asks for.
#[must_use = "the join handle's reference is released only with `Left`"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaveJoin {
    /// The task is complete: drop the output unless it was taken, then `release_join`.
    DropOutput,
    /// The waker's slot is the handle's again: drop the waker and leave again.
    DropWaker,
    /// The reference is released.
    Left(Duty),
}

/// The join handle came too late to change its waker: the task is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlreadyComplete;

/// The word.
pub(crate) struct State(AtomicUsize);

impl State {
    /// A task that is about to be submitted for the first time.
    #[inline]
    pub(crate) fn new(joined: bool) -> Self {
        Self(AtomicUsize::new(
            NOTIFIED | if joined { JOIN_INTEREST } else { 0 },
        ))
    }

    /// As [`new`](Self::new), of a task that its owner lists from the start.
    pub(crate) fn new_listed(joined: bool) -> Self {
        Self(AtomicUsize::new(
            NOTIFIED | LISTED | if joined { JOIN_INTEREST } else { 0 },
        ))
    }

    /// A `Notified` becomes a run, or its run goes on. One read-modify-write; none if it goes on and nobody has woken or aborted the task.
    #[inline]
    pub(crate) fn start(&self) -> Start {
        // Ordering: Relaxed, rule 8.
        let goes_on = self.0.load(Relaxed) & (RUNNING | NOTIFIED);
        if goes_on == RUNNING {
            return Start::Poll;
        }
        // NOTIFIED is set, and goes; RUNNING comes, unless it is there.
        let change = NOTIFIED - RUNNING + (goes_on & RUNNING);
        // Ordering: Acquire pairs with the release half of every wake (rule 3) and of the last run's `pend`.
        let s = self.0.fetch_sub(change, Acquire);
        debug_assert_eq!(
            s & (NOTIFIED | RUNNING | COMPLETE),
            NOTIFIED | goes_on & RUNNING,
            "not a queued task: {s:#b}"
        );
        if s & CANCELLED != 0 {
            Start::Cancel
        } else {
            Start::Poll
        }
    }

    /// Whether the task was aborted in the poll that was `Pending` (rule 9). A load, by the running
    /// thread; a no is a guess that [`pend`](Self::pend) checks.
    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        // Ordering: Relaxed, `start` acquires what the abort published.
        self.0.load(Relaxed) & CANCELLED != 0
    }

    /// Whether the task was woken in the poll that was `Pending`, and not aborted, and so its run goes
    /// on (rule 8). A load, by the running thread; a no is a guess that [`pend`](Self::pend) checks.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        // Ordering: Relaxed, `start` acquires what the wake published.
        self.0.load(Relaxed) & (NOTIFIED | CANCELLED) == NOTIFIED
    }

    /// The poll was `Pending`; `list` when the owner has just put the task into its list. One read-modify-write.
    #[inline]
    pub(crate) fn pend(&self, list: bool) -> Pend {
        let listed = if list { LISTED } else { 0 };
        // Ordering: Release publishes the future to the next `start`; Acquire pairs with the
        // releasing drops of other references, in case this leaves none.
        let before = self.0.fetch_add(listed.wrapping_sub(RUNNING), AcqRel);
        debug_assert_eq!(
            before & (RUNNING | COMPLETE),
            RUNNING,
            "not a running task: {before:#b}"
        );
        let s = before.wrapping_add(listed).wrapping_sub(RUNNING);
        if s & NOTIFIED != 0 {
            if s & CANCELLED == 0 {
                Pend::Notified
            } else {
                Pend::Aborted
            }
        } else if referenced(s) {
            Pend::Idle
        } else {
            // Ordering: Relaxed, nobody else has a reference.
            self.0.store(RUNNING | CANCELLED, Relaxed);
            Pend::Orphan
        }
    }

    /// The run ends with the output written (`has_output`) or dropped. `unlisted` when the owner has
    /// just taken the task out. No read-modify-write if nobody else holds the task, else one.
    #[inline]
    pub(crate) fn complete(&self, has_output: bool, unlisted: bool) -> Complete {
        let gone = RUNNING | NOTIFIED | if unlisted { LISTED } else { 0 };
        // Ordering: Acquire pairs with the releasing drops of references, when none is left below.
        let mut s = self.0.load(Acquire);
        loop {
            debug_assert_eq!(
                s & (RUNNING | COMPLETE),
                RUNNING,
                "not a running task: {s:#b}"
            );
            if s & JOIN_INTEREST == 0 && has_output {
                return Complete::DropOutput;
            }
            let end = (s | COMPLETE) & !gone;
            if !referenced(end) {
                // Nobody else has a reference, so nobody else can change the word.
                return Complete::Dealloc;
            }
            let wake = s & JOIN_WAKER != 0;
            let end = if wake {
                end | RUNNING | s & LISTED
            } else {
                end
            };
            // Ordering: Release publishes the output to the join handle's loads; Acquire pairs
            // with `set_join_waker`, whose waker is read next.
            match self.0.compare_exchange_weak(s, end, AcqRel, Acquire) {
                Ok(_) if wake => return Complete::WakeJoin,
                Ok(_) => return Complete::Done,
                Err(now) => s = now,
            }
        }
    }

    /// Ends a run that stayed on to wake the join waker. One read-modify-write.
    pub(crate) fn release_run(&self, unlisted: bool) -> Duty {
        self.release(RUNNING | if unlisted { LISTED } else { 0 })
    }

    /// The owner has taken a completed task out of its list. One read-modify-write, none if it is the last reference.
    pub(crate) fn release_listed(&self) -> Duty {
        self.release_unless_last(LISTED)
    }

    /// The join handle of a completed task goes. One read-modify-write, none if it is the last reference.
    #[inline]
    pub(crate) fn release_join(&self) -> Duty {
        self.release_unless_last(JOIN_INTEREST)
    }

    #[inline]
    fn release_unless_last(&self, refs: usize) -> Duty {
        // Ordering: Acquire pairs with the releasing drops of references, when this finds that they are gone.
        if referenced(self.0.load(Acquire) & !refs) {
            self.release(refs)
        } else {
            Duty::Dealloc
        }
    }

    #[inline]
    fn release(&self, refs: usize) -> Duty {
        // Ordering: Release orders this holder's accesses before the free, Acquire everybody
        // else's, when this is the last: it pairs with itself and with `ref_dec`.
        let before = self.0.fetch_sub(refs, AcqRel);
        debug_assert_eq!(
            before & (refs | COMPLETE),
            refs | COMPLETE,
            "not held: {before:#b}"
        );
        if referenced(before - refs) {
            Duty::Nothing
        } else {
            Duty::Dealloc
        }
    }

    /// A wake that keeps the waker. One read-modify-write.
    #[inline]
    pub(crate) fn wake_by_ref(&self) -> Duty {
        // Ordering: Release pairs with `start` (rule 3); Acquire with `pend`: who submits has the queue link, which the holder of the last `Notified` wrote.
        Self::submit_if_idle(self.0.fetch_or(NOTIFIED, AcqRel))
    }

    /// A wake that gives its reference to the `Notified`, or drops it. One read-modify-write.
    pub(crate) fn wake_by_val(&self) -> Duty {
        // Ordering: Relaxed, the exchange below confirms what was read.
        let mut s = self.0.load(Relaxed);
        loop {
            let end = (s | NOTIFIED) - REF_ONE;
            // Ordering: Release pairs with `start` (rule 3) and with the last reference's release;
            // Acquire with the releases of the others, if this one is the last, and with `pend`, if it submits.
            match self.0.compare_exchange_weak(s, end, AcqRel, Relaxed) {
                Ok(_) if !referenced(end) => return Duty::Dealloc,
                Ok(_) => return Self::submit_if_idle(s),
                Err(now) => s = now,
            }
        }
    }

    /// Asks for the future to be dropped: at the next start, or at the end of the poll that is
    /// under way. One read-modify-write.
    pub(crate) fn abort(&self) -> Duty {
        // Ordering: as a wake's.
        Self::submit_if_idle(self.0.fetch_or(CANCELLED | NOTIFIED, AcqRel))
    }

    /// Rule 2.
    fn submit_if_idle(before: usize) -> Duty {
        if before & (RUNNING | NOTIFIED | COMPLETE) == 0 {
            Duty::Submit
        } else {
            Duty::Nothing
        }
    }

    /// One more waker or abort handle. One read-modify-write.
    ///
    /// Aborts when the count reaches the sign bit, which no honest program can: it takes as many
    /// forgotten clones.
    #[inline]
    pub(crate) fn ref_inc(&self) {
        // Ordering: Relaxed, the caller has a reference, through which it got here.
        let before = self.0.fetch_add(REF_ONE, Relaxed);
        if before > isize::MAX as usize {
            overflowed();
        }
    }

    /// One waker or abort handle less. One read-modify-write.
    #[inline]
    pub(crate) fn ref_dec(&self) -> Duty {
        // Ordering: as in `release`.
        let before = self.0.fetch_sub(REF_ONE, AcqRel);
        debug_assert!(before & COUNT != 0, "no reference to drop: {before:#b}");
        self.after_drop(before - REF_ONE)
    }

    /// Rules 1 and 5.
    #[inline]
    fn after_drop(&self, s: usize) -> Duty {
        if referenced(s) {
            Duty::Nothing
        } else if s & COMPLETE != 0 {
            Duty::Dealloc
        } else {
            debug_assert_eq!(s & (NOTIFIED | CANCELLED), 0, "held: {s:#b}");
            // Ordering: Relaxed, nobody else has a reference.
            self.0.store(s | NOTIFIED | CANCELLED, Relaxed);
            Duty::Submit
        }
    }

    /// The join handle goes. At most two read-modify-writes over its calls, one without a waker.
    #[inline]
    pub(crate) fn leave_join(&self) -> LeaveJoin {
        // Ordering: Acquire pairs with `complete`: the output is dropped on the strength of it.
        let mut s = self.0.load(Acquire);
        loop {
            if s & COMPLETE != 0 {
                return LeaveJoin::DropOutput;
            }
            let waker = s & JOIN_WAKER != 0;
            let end = s & !(if waker { JOIN_WAKER } else { JOIN_INTEREST });
            // Ordering: Release orders the handle's accesses before the free, or before the
            // running thread's. Those of other holders are acquired with `s`: if it shows none, none comes back. So failing acquires.
            match self.0.compare_exchange_weak(s, end, Release, Acquire) {
                Ok(_) if waker => return LeaveJoin::DropWaker,
                Ok(_) => return LeaveJoin::Left(self.after_drop(end)),
                Err(now) => s = now,
            }
        }
    }

    /// Whether the output is written. A load.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        // Ordering: Acquire pairs with `complete`: the output is read on the strength of it.
        self.0.load(Acquire) & COMPLETE != 0
    }

    /// Whether somebody may ask for the output. A load, by the running thread; no is final.
    #[inline]
    pub(crate) fn is_joined(&self) -> bool {
        // Ordering: Relaxed, `complete` looks again. On the strength of a no nothing is read.
        self.0.load(Relaxed) & JOIN_INTEREST != 0
    }

    /// Whether the task is in a list. A load, by the running thread, after which only that
    /// thread's owner can clear it.
    #[inline]
    pub(crate) fn is_listed(&self) -> bool {
        // Ordering: Relaxed, `start` has acquired what the listing thread wrote.
        self.0.load(Relaxed) & LISTED != 0
    }

    /// Whether the slot has the join handle's waker. A load, by the join handle.
    pub(crate) fn has_join_waker(&self) -> Result<bool, AlreadyComplete> {
        // Ordering: Acquire, as in `is_complete`. The bit is this thread's own.
        let s = self.0.load(Acquire);
        if s & COMPLETE != 0 {
            return Err(AlreadyComplete);
        }
        Ok(s & JOIN_WAKER != 0)
    }

    /// Whether the completion was given the join waker. A load, when no reference is left.
    pub(crate) fn gave_join_waker(&self) -> bool {
        // Ordering: Relaxed, whoever frees has acquired everything.
        self.0.load(Relaxed) & JOIN_WAKER != 0
    }

    /// The join handle has written its waker. One read-modify-write.
    pub(crate) fn set_join_waker(&self) -> Result<(), AlreadyComplete> {
        self.toggle_join_waker()
    }

    /// The join handle wants its slot back. One read-modify-write.
    pub(crate) fn unset_join_waker(&self) -> Result<(), AlreadyComplete> {
        self.toggle_join_waker()
    }

    fn toggle_join_waker(&self) -> Result<(), AlreadyComplete> {
        // Ordering: Acquire, as in `is_complete`.
        let mut s = self.0.load(Acquire);
        loop {
            if s & COMPLETE != 0 {
                return Err(AlreadyComplete);
            }
            // Ordering: Release publishes the slot to `complete`; failing acquires as above.
            match self
                .0
                .compare_exchange_weak(s, s ^ JOIN_WAKER, Release, Acquire)
            {
                Ok(_) => return Ok(()),
                Err(now) => s = now,
            }
        }
    }

    /// Just before the cell is freed.
    pub(crate) fn retire(&mut self) {
        self.0.retire();
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: Relaxed, a snapshot for people.
        let s = self.0.load(Relaxed);
        let names = [
            (RUNNING, "RUNNING"),
            (NOTIFIED, "NOTIFIED"),
            (COMPLETE, "COMPLETE"),
            (CANCELLED, "CANCELLED"),
            (JOIN_INTEREST, "JOIN_INTEREST"),
            (JOIN_WAKER, "JOIN_WAKER"),
            (LISTED, "LISTED"),
        ];
        for (bit, name) in names {
            if s & bit != 0 {
                write!(f, "{name} ")?;
            }
        }
        write!(f, "+{}", s / REF_ONE)
    }
}

/// Ends the process: the count of references has overflowed.
#[cold]
fn overflowed() -> ! {
    #[cfg(feature = "std")]
    std::process::abort();
    #[cfg(not(feature = "std"))]
    {
        struct Twice;
        impl Drop for Twice {
            fn drop(&mut self) {
                panic!("a panic while panicking aborts");
            }
        }
        let _twice = Twice;
        panic!("the reference count overflowed");
    }
}

#[cfg(all(test, feature = "std"))]
mod diagram;
#[cfg(test)]
mod tests;
