//! The state word of a process, and every transition of this word. No `unsafe` here.
//!
//! A worker that takes a ready process runs it, and the process makes steps. When it has nothing to
//! do, the worker puts the process's token into its cell and suspends the process. A sender pushes
//! a message, and then sets a bit of the word. If the process waits for that bit, the sender has
//! made it ready: the sender takes the token out of the cell and queues it. If the process runs,
//! the bit stays, and the worker finds it when it tries to suspend the process.
//!
//! ```text
//!            a worker takes it               nothing to do
//!   ready ──────────────────────▶ running ───────────────────▶ blocked or idle
//!     ▲                            │   │                          │
//!     │          slice used up     │   │ ends                     │
//!     ├────────────────────────────┘   ├───────▶ done             │
//!     │          restart               ▼                          │
//!     ├──────────────────────────── stopped                       │
//!     │                                 an event, a waker, a kill │
//!     └───────────────────────────────────────────────────────────┘
//! ```
//!
//! The README has all edges of this diagram.
//!
//! # Phases
//!
//! | phase | the process | the token is with |
//! |---|---|---|
//! | *ready* | is in a queue, or about to be | the queue |
//! | *running* | is stepped by a worker | the worker |
//! | *blocked* | waits for a completion or a signal | the cell |
//! | *idle* | waits for any event | the cell |
//! | *stopped* | has stopped, and its supervisor may restart it | the cell |
//! | *done* | has ended for good | nobody |
//!
//! The *token* is the right to run the process; each process has one. Only the thread that has it
//! touches the parts of the cell that are not shared.
//!
//! # Bits
//!
//! | bit | set by | means |
//! |---|---|---|
//! | MESSAGE | the first sender | the lane of messages has something |
//! | URGENT | the first thread that signals or completes | the urgent lane has something |
//! | WAKE | a waker | the process must step once more |
//! | KILL | a kill | this incarnation must end before its next step |
//! | FINAL | a supervisor, a shutdown, a takeover of a name | the process must end for good. It is never cleared |
//!
//! The *incarnation*, in the upper half, counts restarts. A completion carries the incarnation that
//! gave the command, and a supervisor's cancel carries the incarnation that it stops. So a later
//! incarnation never gets such an event.
//!
//! # Rules
//!
//! 1. A notifier first pushes an event, then sets the event's bit ([`RunState::notify`]). If the
//!    phase waits for that bit, the same exchange makes the process ready, and gives the notifier
//!    the token: of many notifiers exactly one gets it.
//! 2. A worker clears the bits of events when it begins a run ([`RunState::begin`]), and then looks
//!    at all lanes. So a bit that is set later is for an event that the worker may have missed.
//! 3. A worker that suspends a process does so in one exchange ([`RunState::suspend`]), which
//!    checks the bits. If a bit is set that ends the wait, the process is ready again, and the
//!    worker keeps the token. So a notification is never lost to a race with the suspension: the
//!    exchange sees the bit, or the notification comes later and finds the process waiting.
//! 4. *Done* is final.
use sync_shim::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
    Retire,
};

const RUNNING: u64 = 0;
const READY: u64 = 1;
const BLOCKED: u64 = 2;
const IDLE: u64 = 3;
const STOPPED: u64 = 4;
const DONE: u64 = 5;
const PHASE: u64 = 0b111;

/// The lane of messages has something.
pub(crate) const MESSAGE: u64 = 1 << 3;
/// The urgent lane has something.
pub(crate) const URGENT: u64 = 1 << 4;
/// A waker was called.
pub(crate) const WAKE: u64 = 1 << 5;
/// This incarnation must end.
pub(crate) const KILL: u64 = 1 << 6;
/// The process must end for good.
pub(crate) const FINAL: u64 = 1 << 7;

const EVENTS: u64 = MESSAGE | URGENT | WAKE;
const INCARNATION: u32 = 32;

/// The phase of a process's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// It is in a queue.
    Ready,
    /// A worker steps it.
    Running,
    /// It waits for a completion or a signal.
    Blocked,
    /// It waits for any event.
    Idle,
    /// It has stopped, and its supervisor may restart it.
    Stopped,
    /// It has ended.
    Done,
}

/// The events that a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    /// A completion or a signal, or a waker.
    Blocked,
    /// Any event.
    Idle,
}

/// The duty of a notifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum NotifierDuty {
    /// Take the token and submit it.
    Submit,
    /// Nothing: the bit is set, and the worker that runs the process next will see it.
    DoNothing,
    /// The process is done.
    Gone,
}

/// The duty of a worker that has suspended a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum SuspenderDuty {
    /// Nothing: the token stays in the cell.
    Waits,
    /// Take the token back and submit it: an event came meanwhile.
    Ready,
}

pub(crate) struct RunState(AtomicU64);

impl RunState {
    /// Makes the state of a process that is ready, but whose token is not in a queue yet. The
    /// caller submits the token.
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(READY))
    }

    /// Changes the word, unless `to` returns `None`. Returns the old word, or the one that `to`
    /// refused.
    #[inline]
    fn change(&self, to: impl Fn(u64) -> Option<u64>) -> Result<u64, u64> {
        // Ordering: Relaxed, the exchange checks a value that `to` changes. A value that `to`
        // refuses does not become acceptable: DONE and FINAL stay, and the thread that revives a
        // stopped process has learned of the stop, so it sees STOPPED or a later phase. The caller
        // of a refused change reads nothing that another thread has written.
        let mut word = self.0.load(Relaxed);
        loop {
            let Some(new) = to(word) else {
                return Err(word);
            };
            // Ordering: AcqRel. A notifier releases its push to `begin` and `suspend`. A worker
            // releases the cell with its token to the notifier that gets the token.
            match self.0.compare_exchange_weak(word, new, AcqRel, Relaxed) {
                Ok(_) => return Ok(word),
                Err(now) => word = now,
            }
        }
    }

    /// Sets a bit after a push (rule 1). One read-modify-write, also if the bit is set already.
    #[inline]
    pub(crate) fn notify(&self, bit: u64) -> NotifierDuty {
        // Ordering: Relaxed, as in `change`: DONE stays.
        let mut word = self.0.load(Relaxed);
        loop {
            if word & PHASE == DONE {
                return NotifierDuty::Gone;
            }
            let ends_wait = ends_wait(word, bit);
            let phase = if ends_wait { READY } else { word & PHASE };
            let new = with_phase(word, phase) | bit;
            // Ordering: AcqRel, as in `change`.
            match self.0.compare_exchange_weak(word, new, AcqRel, Relaxed) {
                Ok(_) if ends_wait => return NotifierDuty::Submit,
                Ok(_) => return NotifierDuty::DoNothing,
                Err(now) => word = now,
            }
        }
    }

    /// Changes the phase from ready to running (rule 2). One read-modify-write. The caller has the
    /// token. Returns whether a waker was called.
    #[inline]
    pub(crate) fn begin(&self) -> bool {
        // Ordering: Acquire pairs with the notifiers' exchanges, so that their pushes are seen.
        // This operation publishes nothing: the exchange that ends the run does. A
        // read-modify-write continues the release sequences of the notifiers.
        let word = self.0.fetch_and(!(READY | EVENTS), Acquire);
        debug_assert_eq!(word & PHASE, READY);
        word & WAKE != 0
    }

    /// Returns whether this incarnation must end. One load.
    #[inline]
    pub(crate) fn is_killed(&self) -> bool {
        // Ordering: Relaxed. The killer sets the bit and the reason under one lock. So a thread
        // that sees the bit takes the lock after the killer.
        self.0.load(Relaxed) & (KILL | FINAL) != 0
    }

    /// Returns whether the process must end for good. One load.
    #[inline]
    pub(crate) fn is_final(&self) -> bool {
        // Ordering: Relaxed: if this load misses the bit, the exchange of `stop` sees it.
        self.0.load(Relaxed) & FINAL != 0
    }

    /// Returns whether the process must end for good, or has. One load. Once true, it stays so.
    #[inline]
    pub(crate) fn ends_for_good(&self) -> bool {
        // Ordering: Relaxed. FINAL and DONE stay. A restarted supervisor got its token after its
        // earlier incarnation had set FINAL in its children, so the supervisor sees the bit. Other
        // threads get a hint.
        let word = self.0.load(Relaxed);
        word & FINAL != 0 || word & PHASE == DONE
    }

    /// Changes the phase from running to waiting, or to ready if an event came meanwhile (rule 3).
    /// The caller has put the token into the cell.
    #[inline]
    pub(crate) fn suspend(&self, wait: Wait) -> SuspenderDuty {
        let wait = match wait {
            Wait::Blocked => BLOCKED,
            Wait::Idle => IDLE,
        };
        let waits = |word| {
            let waiting = with_phase(word, wait);
            (!ends_wait(waiting, word & (EVENTS | KILL | FINAL))).then_some(waiting)
        };
        let changed = self.change(|word| {
            debug_assert_eq!(word & PHASE, RUNNING);
            waits(word).or(Some(with_phase(word, READY)))
        });
        match waits(changed.unwrap_or_else(|word| word)) {
            Some(_) => SuspenderDuty::Waits,
            None => SuspenderDuty::Ready,
        }
    }

    /// Changes the phase from running to ready, as the process continues. The caller keeps the
    /// token and submits it.
    #[inline]
    pub(crate) fn requeue(&self) {
        // Ordering: Relaxed: the queue carries the token and what was done before. A
        // read-modify-write continues what the notifiers released.
        let word = self.0.fetch_or(READY, Relaxed);
        debug_assert_eq!(word & PHASE, RUNNING);
    }

    /// Changes the phase from running to stopped, whether KILL is set or not. False if the process
    /// must end for good (FINAL). The caller has put the token into the cell.
    #[must_use]
    pub(crate) fn stop(&self) -> bool {
        let stopped = self.change(|word| {
            debug_assert_eq!(word & PHASE, RUNNING);
            (word & FINAL == 0).then_some(with_phase(word, STOPPED))
        });
        stopped.is_ok()
    }

    /// Changes the phase from stopped to ready, as the next incarnation. If this returns true, the
    /// caller takes the token from the cell. False if the process is not stopped.
    #[must_use]
    pub(crate) fn revive(&self) -> bool {
        let revived = self.change(|word| {
            let next = u64::from(incarnation(word).wrapping_add(1)) << INCARNATION;
            let low = word & ((1 << INCARNATION) - 1) & !KILL;
            (word & PHASE == STOPPED).then_some(next | with_phase(low, READY))
        });
        revived.is_ok()
    }

    /// Changes the phase to done. The caller has the token.
    #[inline]
    pub(crate) fn end(&self) {
        let ended = self.change(|word| Some(with_phase(word, DONE)));
        debug_assert!(ended.is_ok());
    }

    /// Returns the number of restarts. One load.
    #[inline]
    pub(crate) fn incarnation(&self) -> u32 {
        // Ordering: Relaxed. The process's worker sees each restart, as it made the restart or got
        // the token since. The supervisor sees each restart too, as its steps make all of them.
        // Other threads get a hint, which the worker checks again.
        incarnation(self.0.load(Relaxed))
    }

    /// Returns the phase. One load.
    pub(crate) fn phase(&self) -> Phase {
        // Ordering: Acquire pairs with `end` and `suspend`: a thread that sees that the process has
        // ended, or waits, also sees what its steps have done.
        match self.0.load(Acquire) & PHASE {
            READY => Phase::Ready,
            RUNNING => Phase::Running,
            BLOCKED => Phase::Blocked,
            IDLE => Phase::Idle,
            STOPPED => Phase::Stopped,
            _ => Phase::Done,
        }
    }
}

#[inline]
fn with_phase(word: u64, phase: u64) -> u64 {
    word & !PHASE | phase
}

#[inline]
fn incarnation(word: u64) -> u32 {
    (word >> INCARNATION) as u32
}

/// Returns whether one of `bits` ends the wait of a word's phase.
#[inline]
fn ends_wait(word: u64, bits: u64) -> bool {
    let ending_bits = match word & PHASE {
        IDLE => MESSAGE | URGENT | WAKE | KILL | FINAL,
        BLOCKED => URGENT | WAKE | KILL | FINAL,
        STOPPED => FINAL,
        _ => 0,
    };
    bits & ending_bits != 0
}

impl Drop for RunState {
    fn drop(&mut self) {
        self.0.retire();
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod diagram;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
