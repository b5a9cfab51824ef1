//! The state word: its bits, its transitions, and what each transition obliges its caller to do.
//!
//! # Actors
//!
//! | actor | what it holds |
//! |---|---|
//! | owner | the list of live tasks ([`Owned`](crate::Owned), [`LocalOwned`](crate::LocalOwned)) |
//! | running thread | the future: it polls the future, or drops it |
//! | waker | one unit of the count; a wake requests a poll |
//! | aborter | an abort handle (one unit of the count) or the join handle; requests the future's drop |
//! | joiner | the join handle: waits for the output, and takes it |
//! | observer | no reference, but a lock without which the cell is not freed; may wake an idle task |
//!
//! # States
//!
//! ```text
//!  spawn           start            Pending
//!     ─────► queued ────► running ──────────► idle
//!              ▲           │ ▲ │               │
//!              │   yielded │ │ │ Ready, panic  │
//!              │  or woken ▼ │ ▼               │
//!              │     goes on ┘ complete        │
//!              └──────── a wake, an abort ─────┘
//! ```
//!
//! A task is in one of these states. `CANCELLED` with `NOTIFIED` makes each of the first four
//! states *aborted*: the next start drops the future.
//!
//! | state | bits set | bits clear | the future belongs to |
//! |---|---|---|---|
//! | *queued* | `NOTIFIED` | `RUNNING`, `COMPLETE` | the holder of the `Notified` |
//! | *running* | `RUNNING` | `COMPLETE` | the running thread |
//! | *running woken* | `RUNNING`, `NOTIFIED` | `COMPLETE` | the running thread |
//! | *goes on* | `RUNNING`, perhaps `NOTIFIED` | `COMPLETE` | the holder of the `Notified` (rule 8) |
//! | *idle* | | `RUNNING`, `NOTIFIED`, `COMPLETE` | nobody |
//! | *cancelling* | `RUNNING`, `CANCELLED` | `NOTIFIED`, `COMPLETE` | the running thread, which drops it |
//! | *complete* | `COMPLETE` | | nobody: the future is gone |
//!
//! *Running* and *goes on* may look alike in the word. The difference is where the run is: in a
//! thread that polls, or in a `Notified`.
//!
//! # Bits
//!
//! | bit | set by | cleared by | while set |
//! |---|---|---|---|
//! | `RUNNING` | the start of a run | `pend`, completion, or `release_run` after the joiner's wake | the task is *running*, its run *goes on*, or the running thread wakes the joiner |
//! | `NOTIFIED` | a wake, an abort, the drop of the last reference (rule 5) | the next start, completion | one `Notified` exists, or the poll's end makes one unless the task completes; after `COMPLETE`, nothing (rule 4) |
//! | `COMPLETE` | the running thread | nobody | the future is gone; if there is a join handle, the output slot is written |
//! | `CANCELLED` | an abort or the drop of the last reference, with `NOTIFIED`; `pend`, without `NOTIFIED`, when it leaves no reference | nobody | the next start drops the future; an abort in a poll takes effect when that poll ends (rule 9) |
//! | `JOIN_INTEREST` | the constructor | the join handle | a join handle exists |
//! | `JOIN_WAKER` | the join handle | the join handle, while not `COMPLETE` | at completion, the join waker's slot belongs to the running thread |
//! | `LISTED` | the owner, in the read-modify-write that publishes the first `Pending`; for a thread-local task, the constructor | the owner, or a completion that the owner runs | the task is in its owner's list |
//! | count | a clone of a waker or an abort handle adds one | a drop subtracts one | that many wakers and abort handles exist |
//!
//! # Rules
//!
//! Rules 1 to 5 prove that no wake and no reference is lost. Rules 6 and 7 prove that each slot has
//! one user at a time. Rules 8 and 9 prove that a run may outlast its poll.
//!
//! 1. `RUNNING`, `LISTED`, `JOIN_INTEREST` and each unit of the count are one reference each; so is
//!    `NOTIFIED` while `COMPLETE` is clear. The transition that leaves a completed task without a
//!    reference frees the cell.
//! 2. Each `Notified` that is submitted stands for one change of `NOTIFIED` from 0 to 1 while
//!    neither `RUNNING` nor `COMPLETE` was set. The caller whose read-modify-write made that change
//!    submits. If `RUNNING` was set, the running thread submits: it sees `NOTIFIED` no later than
//!    in the read-modify-write that ends its run. So no wake is lost, and no wake submits twice.
//! 3. A wake is a read-modify-write even if `NOTIFIED` is already set. Its release half makes the
//!    waker's writes visible to the next start, which acquires. Its acquire half makes the last run
//!    visible to the waker: a waker that submits writes the queue link, which the holder of the
//!    last `Notified` wrote earlier.
//! 4. `NOTIFIED` that is set after `COMPLETE` means nothing, and is no reference (rule 1).
//! 5. A task that has no reference although `COMPLETE` is clear can never be woken again. The
//!    thread that dropped the last reference owns the task alone. If it is the running thread, it
//!    drops the future at once. Otherwise it submits the task once more, cancelled, so that the
//!    future is dropped in a run. An observer wakes no such task. But it may wake a task whose
//!    references another thread is about to drop: then `NOTIFIED` is a new one. So a thread that
//!    drops a reference of a task that may be idle does so in a read-modify-write that acquires.
//! 6. The output slot belongs to the running thread until `COMPLETE`, then to the join handle. If
//!    there is no join handle (`JOIN_INTEREST` is clear and never comes back), the slot stays the
//!    running thread's.
//! 7. The join waker's slot belongs to the join handle while `JOIN_WAKER` is clear. While the bit
//!    is set, no thread writes the slot. `COMPLETE` with `JOIN_WAKER` set gives the waker to the
//!    running thread for good; that thread moves the waker out and leaves the slot's bytes as they
//!    are.
//! 8. A run need not end with its poll. If the task is to be polled again at once (it was woken in
//!    the poll, or has yielded there, or the runner requests it), the run *goes on* in a
//!    `Notified`: `RUNNING` stays set, and is the reference of that `Notified`. The holder of the
//!    `Notified` has the future alone, as the running thread had. The hand-over makes the running
//!    thread's writes visible to the holder. A wake or an abort in between sees `RUNNING`, as in a
//!    poll, and only sets bits. The next start is a load, unless that load finds `NOTIFIED`. The
//!    load may miss a `NOTIFIED`: then the task gets one more poll (rule 2), so the load need not
//!    be fresh. No other thread changes `RUNNING` meanwhile. So the load always tells whether a
//!    run goes on in this `Notified`.
//! 9. An abort during a poll that returns `Pending` ends the task with that poll, not by way of the
//!    queue. The running thread finds `CANCELLED`, starts again (rule 8), and so drops the future.
//!    It checks for the abort before it touches its list, because the future's drop is user code
//!    and may give the list to another thread. If the abort comes after that check, `pend` finds
//!    the abort, and has already turned the run into a `Notified`. The same thread starts that
//!    `Notified` and releases the task to its list over the stack, as if the task had ended on
//!    another thread. If a run that goes on is aborted later, its next start drops the future.

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

// No two constants share a bit, and together they fill the word. So `|` between them equals `^`;
// `.cargo/mutants.toml` leaves out the mutants that swap the two.
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

/// Returns whether any reference is left (rule 1).
const fn referenced(s: usize) -> bool {
    let notified = if s & COMPLETE == 0 { NOTIFIED } else { 0 };
    s & (RUNNING | LISTED | JOIN_INTEREST | COUNT | notified) != 0
}

/// A task's state at one look of an [`Observer`](crate::Observer).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TaskState {
    /// The task waits for a wake.
    Waiting,
    /// The task is queued, or a thread polls it, drops its future, or frees it: a task that ends
    /// without another reference to it is never seen complete.
    Active,
    /// The task's future is gone.
    Complete,
}

/// The duty that a wake, an abort, or the drop of a reference leaves to its caller.
#[must_use = "a submission or a deallocation would be lost"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// The caller holds the one `Notified` and must give it to the scheduler.
    Submit,
    /// The caller holds the last reference to a completed task and must free it.
    Dealloc,
    /// Nothing to do. Unless the caller has another reference, the cell may be gone already.
    Nothing,
}

/// Tells the runner what to do with the future.
#[must_use = "the future is the caller's now"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Poll the future.
    Poll,
    /// Drop the future: the task is cancelled.
    Cancel,
}

/// How a run whose poll returned `Pending` has ended.
#[must_use = "the task may need another run"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pend {
    /// The task waits, and there are other references to it.
    Idle,
    /// The task was woken during the run: the caller holds the one `Notified`.
    Notified,
    /// The task was aborted during the run: the caller holds the one `Notified`, and cancels the
    /// task (rule 9).
    Aborted,
    /// No reference is left (rule 5): the caller alone owns the task, in the state *cancelling*.
    Orphan,
}

/// The next step of a completion.
#[must_use = "completion is done only with `Done`, `Dealloc` or after `release_run`"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Complete {
    /// The word has not changed yet. No join handle will take the output: drop the output and call
    /// `complete` again.
    DropOutput,
    /// The task is complete, and the run's reference is kept. Wake the join waker, then call
    /// `release_run`.
    WakeJoin,
    /// The task is complete, and the run's reference is released.
    Done,
    /// The task is complete, and no reference is left.
    Dealloc,
}

/// The next step of dropping a join handle.
#[must_use = "the join handle's reference is released only with `Left`"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeaveJoin {
    /// The task is complete: drop the output unless it was taken, then call `release_join`.
    DropOutput,
    /// The waker's slot is the handle's again: drop the waker, then call `leave_join` again.
    DropWaker,
    /// The join handle's reference is released.
    Left(Duty),
}

/// The join handle can't change its waker any more: the task is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AlreadyComplete;

/// The state word of a task.
pub(crate) struct State(AtomicUsize);

impl State {
    /// Returns the state of a task that is about to be submitted for the first time. `joined` is
    /// true if it has a join handle, `listed` if its owner lists it from the start.
    #[inline]
    pub(crate) fn new(joined: bool, listed: bool) -> Self {
        let join = if joined { JOIN_INTEREST } else { 0 };
        let list = if listed { LISTED } else { 0 };
        Self(AtomicUsize::new(NOTIFIED | join | list))
    }

    /// Turns a `Notified` into a run, or continues the run that goes on in the `Notified`. Costs
    /// one read-modify-write, or none if a run goes on and the task was neither woken nor aborted.
    #[inline]
    pub(crate) fn start(&self) -> Start {
        // Ordering: Relaxed. The load need not be fresh (rule 8).
        let goes_on = self.0.load(Relaxed) & (RUNNING | NOTIFIED);
        if goes_on == RUNNING {
            return Start::Poll;
        }
        // Clears NOTIFIED, which is set; sets RUNNING, unless it is set already.
        let change = NOTIFIED - RUNNING + (goes_on & RUNNING);
        // Ordering: Acquire pairs with the release half of every wake (rule 3) and with the last
        // run's `pend`.
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

    /// Returns whether the task was aborted in the poll that returned `Pending` (rule 9). The
    /// running thread calls this, at the cost of a load. `false` is a guess, which
    /// [`pend`](Self::pend) checks.
    #[inline]
    pub(crate) fn is_aborted(&self) -> bool {
        // Ordering: Relaxed; `start` acquires what the aborter published.
        self.0.load(Relaxed) & CANCELLED != 0
    }

    /// Returns whether the task was woken in the poll that returned `Pending`, and not aborted, so
    /// that its run goes on (rule 8). The running thread calls this, at the cost of a load. `false`
    /// is a guess, which [`pend`](Self::pend) checks.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        // Ordering: Relaxed; `start` acquires what the waker published.
        self.0.load(Relaxed) & (NOTIFIED | CANCELLED) == NOTIFIED
    }

    /// Ends a run whose poll returned `Pending`. `list` is true if the owner has just put the task
    /// into its list. Costs one read-modify-write.
    #[inline]
    pub(crate) fn pend(&self, list: bool) -> Pend {
        let listed = if list { LISTED } else { 0 };
        // Ordering: Release publishes the future to the next `start`. Acquire pairs with the
        // releasing drops of other references, in case this transition leaves none.
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
            // Ordering: Relaxed; no other thread has a reference.
            self.0.store(RUNNING | CANCELLED, Relaxed);
            Pend::Orphan
        }
    }

    /// Completes the task, with the output written (`has_output`) or dropped. `unlisted` is true if
    /// the owner has just taken the task out of its list. Costs one read-modify-write, or none if
    /// there is no other reference.
    #[inline]
    pub(crate) fn complete(&self, has_output: bool, unlisted: bool) -> Complete {
        let gone = RUNNING | NOTIFIED | if unlisted { LISTED } else { 0 };
        // Ordering: Acquire pairs with the releasing drops of references, in case none is left
        // below.
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
                // There is no other reference, so no other thread can change the word.
                return Complete::Dealloc;
            }
            let wake = s & JOIN_WAKER != 0;
            let end = if wake {
                end | RUNNING | s & LISTED
            } else {
                end
            };
            // Ordering: Release publishes the output to the join handle's loads. Acquire pairs with
            // `set_join_waker`, whose waker is read next.
            match self.0.compare_exchange_weak(s, end, AcqRel, Acquire) {
                Ok(_) if wake => return Complete::WakeJoin,
                Ok(_) => return Complete::Done,
                Err(now) => s = now,
            }
        }
    }

    /// Ends a run that kept its reference to wake the join waker. Costs one read-modify-write.
    pub(crate) fn release_run(&self, unlisted: bool) -> Duty {
        self.release(RUNNING | if unlisted { LISTED } else { 0 })
    }

    /// Releases the list's reference to a completed task that the owner has taken out of its list.
    /// Costs one read-modify-write, or none if the list's reference is the last.
    pub(crate) fn release_listed(&self) -> Duty {
        self.release_unless_last(LISTED)
    }

    /// Releases the join handle's reference to a completed task. Costs one read-modify-write, or
    /// none if the handle's reference is the last.
    #[inline]
    pub(crate) fn release_join(&self) -> Duty {
        self.release_unless_last(JOIN_INTEREST)
    }

    #[inline]
    fn release_unless_last(&self, refs: usize) -> Duty {
        // Ordering: Acquire pairs with the releasing drops of references, in case this load finds
        // that all others are gone.
        if referenced(self.0.load(Acquire) & !refs) {
            self.release(refs)
        } else {
            Duty::Dealloc
        }
    }

    #[inline]
    fn release(&self, refs: usize) -> Duty {
        // Ordering: Release orders this holder's accesses before the free. Acquire, if this is the
        // last reference, orders the accesses of all other holders before the free: it pairs with
        // itself and with `ref_dec`.
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

    /// Wakes the task and keeps the waker. Costs one read-modify-write.
    #[inline]
    pub(crate) fn wake_by_ref(&self) -> Duty {
        // Ordering: Release pairs with `start` (rule 3). Acquire pairs with `pend`: a waker that
        // submits writes the queue link, which the holder of the last `Notified` wrote.
        Self::submit_if_idle(self.0.fetch_or(NOTIFIED, AcqRel))
    }

    /// Wakes the task and gives the waker's reference to the `Notified`, or drops that reference.
    /// Costs one read-modify-write.
    pub(crate) fn wake_by_val(&self) -> Duty {
        // Ordering: Relaxed; the exchange below confirms the value.
        let mut s = self.0.load(Relaxed);
        loop {
            let end = (s | NOTIFIED) - REF_ONE;
            // Ordering: Release pairs with `start` (rule 3), and with the last reference's release.
            // Acquire pairs with the other releases, if this reference is the last, and with
            // `pend`, if this wake submits.
            match self.0.compare_exchange_weak(s, end, AcqRel, Relaxed) {
                Ok(_) if !referenced(end) => return Duty::Dealloc,
                Ok(_) => return Self::submit_if_idle(s),
                Err(now) => s = now,
            }
        }
    }

    /// Wakes the task for an observer, which has no reference, if the task is idle and has one.
    /// Returns whether it did so: then the caller holds the one `Notified`. Costs a load, and one
    /// read-modify-write or more if the load finds such a task.
    pub(crate) fn wake_if_idle(&self) -> bool {
        // Ordering: Relaxed; the exchange below confirms the value.
        let mut s = self.0.load(Relaxed);
        loop {
            if s & (RUNNING | NOTIFIED | COMPLETE) != 0 || !referenced(s) {
                return false;
            }
            // Ordering: as for `wake_by_ref`.
            match self
                .0
                .compare_exchange_weak(s, s | NOTIFIED, AcqRel, Relaxed)
            {
                Ok(_) => return true,
                Err(now) => s = now,
            }
        }
    }

    /// Requests the future's drop. The drop happens at the next start, or at the end of the current
    /// poll. Costs one read-modify-write.
    pub(crate) fn abort(&self) -> Duty {
        // Ordering: as for `wake_by_ref`.
        Self::submit_if_idle(self.0.fetch_or(CANCELLED | NOTIFIED, AcqRel))
    }

    /// Returns the duty of a caller that has set `NOTIFIED` (rule 2).
    fn submit_if_idle(before: usize) -> Duty {
        if before & (RUNNING | NOTIFIED | COMPLETE) == 0 {
            Duty::Submit
        } else {
            Duty::Nothing
        }
    }

    /// Counts one more waker or abort handle. Costs one read-modify-write.
    ///
    /// Aborts the process when the count reaches the sign bit: at 2^56 references on a 64-bit
    /// target, at 2^24 on a 32-bit one. On the former only a program that forgets clones gets
    /// there.
    #[inline]
    pub(crate) fn ref_inc(&self) {
        // Ordering: Relaxed; the caller got here through a reference that it has.
        let before = self.0.fetch_add(REF_ONE, Relaxed);
        if before > isize::MAX as usize {
            overflowed();
        }
    }

    /// Subtracts one waker or abort handle from the count. Costs one read-modify-write.
    #[inline]
    pub(crate) fn ref_dec(&self) -> Duty {
        // Ordering: as in `release`.
        let before = self.0.fetch_sub(REF_ONE, AcqRel);
        debug_assert!(before & COUNT != 0, "no reference to drop: {before:#b}");
        self.after_drop(before - REF_ONE)
    }

    /// Returns the duty of a caller that has dropped a reference (rules 1 and 5).
    #[inline]
    fn after_drop(&self, s: usize) -> Duty {
        if referenced(s) {
            Duty::Nothing
        } else if s & COMPLETE != 0 {
            Duty::Dealloc
        } else {
            debug_assert_eq!(s & (NOTIFIED | CANCELLED), 0, "held: {s:#b}");
            // Ordering: Relaxed; no other thread has a reference.
            self.0.store(s | NOTIFIED | CANCELLED, Relaxed);
            Duty::Submit
        }
    }

    /// Drops the join interest. The caller repeats the call until the result is not `DropWaker`.
    /// Together the calls cost one read-modify-write, or two if a waker was registered.
    #[inline]
    pub(crate) fn leave_join(&self) -> LeaveJoin {
        // Ordering: Acquire pairs with `complete`: if the load shows COMPLETE, the caller drops the
        // output.
        let mut s = self.0.load(Acquire);
        loop {
            if s & COMPLETE != 0 {
                return LeaveJoin::DropOutput;
            }
            let waker = s & JOIN_WAKER != 0;
            let end = s & !(if waker { JOIN_WAKER } else { JOIN_INTEREST });
            // Ordering: Release orders the handle's accesses before the free, or before the running
            // thread's accesses. Acquire pairs with `pend` and with the releasing drops of other
            // references, in case none is left: an observer's wake may have led to a run since the
            // load, after which the word is the same again (rule 5). Acquire on failure, as in the
            // first load.
            match self.0.compare_exchange_weak(s, end, AcqRel, Acquire) {
                Ok(_) if waker => return LeaveJoin::DropWaker,
                Ok(_) => return LeaveJoin::Left(self.after_drop(end)),
                Err(now) => s = now,
            }
        }
    }

    /// Returns whether the task is complete. Costs one load.
    #[inline]
    pub(crate) fn is_complete(&self) -> bool {
        // Ordering: Acquire pairs with `complete`: if the result is true, the caller may read the
        // output.
        self.0.load(Acquire) & COMPLETE != 0
    }

    /// Returns whether a join handle may still ask for the output. The running thread calls this,
    /// at the cost of a load. `false` is final.
    #[inline]
    pub(crate) fn is_joined(&self) -> bool {
        // Ordering: Relaxed; `complete` checks again, and nothing is read because of a `false`.
        self.0.load(Relaxed) & JOIN_INTEREST != 0
    }

    /// Returns whether the task is in a list. The running thread or the holder of the `Notified`
    /// calls this, at the cost of a load. Until the run ends, only the running thread can set or
    /// clear the bit.
    #[inline]
    pub(crate) fn is_listed(&self) -> bool {
        // Ordering: Relaxed; `start`, or the wake that made the caller's `Notified`, has acquired
        // what the listing thread wrote.
        self.0.load(Relaxed) & LISTED != 0
    }

    /// Returns whether the slot holds the join handle's waker. The join handle calls this, at the
    /// cost of a load.
    pub(crate) fn has_join_waker(&self) -> Result<bool, AlreadyComplete> {
        // Ordering: Acquire, as in `is_complete`. Only this thread changes JOIN_WAKER.
        let s = self.0.load(Acquire);
        if s & COMPLETE != 0 {
            return Err(AlreadyComplete);
        }
        Ok(s & JOIN_WAKER != 0)
    }

    /// Returns whether the completion took the join waker. The thread that frees the cell calls
    /// this, at the cost of a load.
    pub(crate) fn gave_join_waker(&self) -> bool {
        // Ordering: Relaxed; the thread that frees the cell has acquired everything.
        self.0.load(Relaxed) & JOIN_WAKER != 0
    }

    /// Returns the state as an observer sees it. Costs a load.
    pub(crate) fn observed(&self) -> TaskState {
        // Ordering: Relaxed; an observer reads nothing else of the task because of this value.
        let s = self.0.load(Relaxed);
        if s & COMPLETE != 0 {
            TaskState::Complete
        } else if s & (RUNNING | NOTIFIED) != 0 {
            TaskState::Active
        } else {
            TaskState::Waiting
        }
    }

    /// Publishes the waker that the join handle has written. Costs one read-modify-write.
    pub(crate) fn set_join_waker(&self) -> Result<(), AlreadyComplete> {
        self.toggle_join_waker()
    }

    /// Takes the waker's slot back for the join handle. Costs one read-modify-write.
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
            // Ordering: Release publishes the slot to `complete`; a failure acquires, as above.
            match self
                .0
                .compare_exchange_weak(s, s ^ JOIN_WAKER, Release, Acquire)
            {
                Ok(_) => return Ok(()),
                Err(now) => s = now,
            }
        }
    }

    /// Retires the atomic just before the cell is freed.
    pub(crate) fn retire(&mut self) {
        self.0.retire();
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: Relaxed; a snapshot for debug output.
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

/// Ends the process: the reference count has overflowed.
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
