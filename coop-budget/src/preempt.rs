//! The flag of a time slice: other threads ask the slice to end, or its worker to look for work.
//!
//! # Actors and states
//!
//! The *worker* opens slices and polls tasks in them. A *monitor* or timer requests that a slice
//! ends. A *nudger* has pushed work, and wants some worker to look for it. The *operations* of the
//! polled tasks check the flag (`poll_proceed`).
//!
//! | state | set by | the next operation | a nudge |
//! |---|---|---|---|
//! | *open* | the worker, when it opens a slice or begins a look in *nudged*; two of the ends of *ignoring* (below) | is granted | sets *nudged* |
//! | *requested* | a monitor | is refused, and so are all later ones | does nothing |
//! | *nudged* | a nudger, in an open slice; a monitor that insists; the end of a watch | is refused, and sets *ignoring* | does nothing |
//! | *ignoring* | the operation that a nudge refused; a look that found work | is granted | does nothing |
//! | *watched* | the worker, for one poll (`watch`) | is granted, and recorded | does nothing |
//!
//! Besides an opening and a request, three events end *ignoring*. A look that finds no work sets
//! *open*, and so does an operation that is refused because a budget is used up. A monitor that
//! insists ([`Preempt::insist`]) sets *nudged*.
//!
//! # Rules
//!
//! 1. Only opening a slice ends a request. A check does not end it, as one slice is checked many
//!    times, between polls too.
//! 2. *No request is lost.* The worker opens a slice before another thread can know of that slice.
//!    So a request by a thread that knows of the slice follows the opening in the flag's
//!    modification order, and stays until the next opening.
//! 3. A request that races the opening of the next slice may end the next slice early. This costs a
//!    yield and breaks nothing.
//! 4. A nudge is a hint. It ends with the operation that it refuses, so a poll that blocks its
//!    thread, and tries the operation again, continues. The slice then ignores nudges, so that
//!    operations are granted even if threads nudge without a pause.
//! 5. *A look and a nudge do not miss each other.* In a *nudged* slice, a look clears the nudge,
//!    executes a fence, and then looks. A nudger pushes, executes a fence, and then nudges, if it
//!    finds the slice *open*. One of the two `SeqCst` fences is first. If the nudger's fence is
//!    first, the look sees the push. If the look's fence is first, the nudger finds the slice
//!    *open*.
//! 6. *A nudge never replaces a request.* Every transition of a nudge is a compare-exchange from a
//!    state other than *requested*. The same is true of a watch.
//! 7. *A watch costs the other polls nothing.* An operation checks for *watched* where it checks
//!    for a refusal. A nudge that comes during a watch is dropped. So a watch ends in *nudged*, and
//!    a look follows. If the slice was *ignoring* before the watch, it is so again afterwards.
//! 8. *A watch ends with the hold on the worker.* A request ends the watch, and so does the opening
//!    of a slice. A thread that gets the worker in the middle of the watched poll takes the slice
//!    over ([`Preempt::take_over`]) before it polls a task. The poll's own end then finds no watch
//!    in force. Or it finds a later watch of that thread, ends it, and operations of that one poll
//!    may be missed.
use sync_shim::atomic::{
    AtomicU32,
    Ordering::{Relaxed, SeqCst},
    fence,
};

const OPEN: u32 = 0;
const IGNORING: u32 = 1;
/// The first state in which an operation takes the slow path.
const WATCHED: u32 = 2;
/// The first state that refuses operations.
const REQUESTED: u32 = 3;
const NUDGED: u32 = 4;

/// The flag of one time slice: a monitor or a timer sets it, and polls in the slice check it.
///
/// ```
/// use coop_budget::Preempt;
///
/// let slice = Preempt::new();
/// slice.open_slice();
/// // A worker polls while `!slice.need_preempt()`. A monitor finds that the slice lasts too long:
/// slice.request();
/// assert!(slice.need_preempt());
/// assert!(slice.need_preempt(), "it stays until the next slice");
/// slice.open_slice();
/// assert!(!slice.need_preempt());
/// ```
#[derive(Debug)]
pub struct Preempt(AtomicU32);

/// The flag of a thread without a slice, so that a check need not test for a slice. It is never
/// set. Under a model checker it is null, as a constant cannot create the checker's atomics.
#[cfg(feature = "std")]
pub(crate) const NONE: *const Preempt = {
    #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
    {
        static NEVER_SET: Preempt = Preempt(AtomicU32::new(OPEN));
        &raw const NEVER_SET
    }
    #[cfg(any(selvedge_loom, selvedge_shuttle, selvedge_count))]
    core::ptr::null()
};

impl Preempt {
    /// Creates an open slice.
    #[expect(
        clippy::new_without_default,
        reason = "a flag belongs to a slice: say so"
    )]
    pub fn new() -> Self {
        Self(AtomicU32::new(OPEN))
    }

    /// Begins a slice, and clears earlier requests, which were for the slice before. Costs a store.
    ///
    /// Open the slice before you let another thread know of it.
    #[inline]
    pub fn open_slice(&self) {
        // Ordering: Relaxed, as the flag publishes nothing else. Its modification order alone
        // decides which slice a request belongs to (rule 2).
        self.0.store(OPEN, Relaxed);
    }

    /// Asks the slice to end. Costs an exchange.
    #[inline]
    pub fn request(&self) {
        // Ordering: Relaxed, as in `open_slice`. An exchange rather than a store: under loom, a
        // nudge's exchange may read a value that is older than the store.
        self.0.swap(REQUESTED, Relaxed);
    }

    /// Asks the worker to look for work: refuses the slice's next operation, and no other.
    ///
    /// This is a hint: a slice that was nudged a moment ago ignores it. Returns whether the nudge
    /// was made. Costs a load, and an exchange if the load finds the slice open.
    ///
    /// ```
    /// use coop_budget::{Budget, OnExhausted, Preempt, Scope, poll_proceed};
    /// use std::task::{Context, Waker};
    ///
    /// struct Worker;
    ///
    /// impl OnExhausted for Worker {
    ///     fn defer(&self, _: &Waker) {}
    /// }
    ///
    /// let slice = Preempt::new();
    /// assert!(slice.nudge());
    /// Scope::new(Budget::DEFAULT).slice(&slice).hook(&Worker).run(|| {
    ///     let mut cx = Context::from_waker(Waker::noop());
    ///     assert!(poll_proceed(&mut cx).is_pending());
    ///     assert!(!slice.nudge(), "it ignores nudges now");
    ///     assert!(poll_proceed(&mut cx).is_ready());
    /// });
    /// slice.open_slice();
    /// assert!(slice.nudge());
    /// ```
    #[inline]
    pub fn nudge(&self) -> bool {
        self.transition(OPEN, NUDGED)
    }

    /// Nudges the slice even if it ignores nudges: for a worker that has not looked for work for a
    /// long time. Returns whether the nudge was made. Without a race the call costs at most two
    /// loads and an exchange.
    ///
    /// ```
    /// let slice = coop_budget::Preempt::new();
    /// slice.look(|| Some(7)); // It ignores nudges now.
    /// assert!(!slice.nudge() && slice.insist());
    /// assert!(slice.is_set());
    /// ```
    pub fn insist(&self) -> bool {
        self.transition(IGNORING, NUDGED) || self.nudge()
    }

    /// Moves the flag from the state `from` to `to`, if it is in `from`. Costs a load, and an
    /// exchange if the load finds `from`.
    #[inline]
    fn transition(&self, from: u32, to: u32) -> bool {
        // Ordering: Relaxed, as in `open_slice`. The fences of rule 5 are around it.
        self.0.load(Relaxed) == from
            // Ordering: Relaxed, as above.
            && self.0.compare_exchange(from, to, Relaxed, Relaxed).is_ok()
    }

    /// Clears an earlier nudge, and looks for work with `look`.
    ///
    /// If `look` finds something, the slice ignores nudges, as the worker will look again soon. If
    /// `look` finds nothing, the slice accepts nudges again. Costs at most three loads, an exchange
    /// if the state changes, and an exchange and a fence if there was a nudge.
    ///
    /// ```
    /// let slice = coop_budget::Preempt::new();
    /// assert!(slice.nudge());
    /// assert_eq!(slice.look(|| Some(7)), Some(7));
    /// assert!(!slice.nudge());
    /// assert_eq!(slice.look(|| None::<u32>), None);
    /// assert!(slice.nudge());
    /// ```
    #[inline]
    pub fn look<T>(&self, look: impl FnOnce() -> Option<T>) -> Option<T> {
        if self.transition(NUDGED, OPEN) {
            // Ordering: SeqCst pairs with the nudger's fence between its push and its nudge (rule
            // 5).
            fence(SeqCst);
        }
        let found = look();
        if found.is_none() {
            self.accept_nudges();
        } else {
            let _ = self.transition(OPEN, IGNORING) || self.transition(NUDGED, IGNORING);
        }
        found
    }

    #[inline]
    pub(crate) fn accept_nudges(&self) {
        let _ = self.transition(IGNORING, OPEN);
    }

    /// Returns whether the slice was asked to end. Costs a load.
    #[inline]
    pub fn need_preempt(&self) -> bool {
        // Ordering: Relaxed, as in `open_slice`. The caller reads nothing that depends on the flag.
        self.0.load(Relaxed) == REQUESTED
    }

    /// Returns whether the slice was asked to end, or nudged. Costs a load.
    ///
    /// If so, the next operation is refused. A worker checks this between two polls, too, as its
    /// tasks may do no operations. If this returns true, the worker opens a slice or
    /// [looks](Self::look) for work.
    ///
    /// ```
    /// let slice = coop_budget::Preempt::new();
    /// assert!(!slice.is_set());
    /// slice.nudge();
    /// assert!(slice.is_set() && !slice.need_preempt());
    /// ```
    #[inline]
    pub fn is_set(&self) -> bool {
        // Ordering: Relaxed, as in `need_preempt`.
        self.0.load(Relaxed) >= REQUESTED
    }

    /// Returns whether the next operation takes the slow path: it is refused, or recorded. Costs a
    /// load.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn is_special(&self) -> bool {
        // Ordering: Relaxed, as in `need_preempt`.
        self.0.load(Relaxed) >= WATCHED
    }

    /// Ends a [`watch`](crate::watch) of another thread's poll. A thread that has got the worker in
    /// the middle of that poll calls this before its first poll. The slice is nudged then, as the
    /// watch may have hidden a nudge. Costs a load, and an exchange if there is a watch.
    ///
    /// ```
    /// use coop_budget::{Budget, Preempt, Scope, watch};
    ///
    /// let slice = Preempt::new();
    /// Scope::new(Budget::DEFAULT).slice(&slice).run(|| {
    ///     watch(&|_| (), |watching| {
    ///         assert!(!slice.nudge() && !slice.is_set());
    ///         // The poll blocks its thread, and another thread becomes the worker:
    ///         slice.take_over();
    ///         assert!(slice.is_set() && !watching.so_far().is_whole);
    ///     });
    /// });
    /// ```
    pub fn take_over(&self) {
        let _ = self.transition(WATCHED, NUDGED);
    }

    /// Ends a nudge. Returns whether there was one: then the caller's operation is refused.
    #[cfg(feature = "std")]
    pub(crate) fn take_nudge(&self) -> bool {
        self.transition(NUDGED, IGNORING)
    }

    /// Creates a slice in the state *watched*, for a poll without a slice.
    #[cfg(feature = "std")]
    pub(crate) fn watched() -> Self {
        Self(AtomicU32::new(WATCHED))
    }

    /// Begins a watch, unless the slice was asked to end. Returns the watch's end, for
    /// [`end_watch`](Self::end_watch).
    #[cfg(feature = "std")]
    pub(crate) fn begin_watch(&self) -> Option<u32> {
        // Ordering: Relaxed, as in `open_slice`.
        let mut from = self.0.load(Relaxed);
        while from != REQUESTED {
            // Ordering: Relaxed, as above.
            match self.0.compare_exchange(from, WATCHED, Relaxed, Relaxed) {
                Ok(OPEN) => return Some(NUDGED),
                Ok(before) => return Some(before),
                Err(now) => from = now,
            }
        }
        None
    }

    /// Ends a watch, if it is still in force.
    #[cfg(feature = "std")]
    pub(crate) fn end_watch(&self, after: u32) {
        let _ = self.transition(WATCHED, after);
    }

    #[cfg(feature = "std")]
    pub(crate) fn is_watched(&self) -> bool {
        // Ordering: Relaxed, as in `need_preempt`.
        self.0.load(Relaxed) == WATCHED
    }

    /// Ends a request, and returns whether there was one. An exchange, as under loom a load may
    /// read a value from before the last store.
    #[cfg(test)]
    pub(crate) fn take_request(&self) -> bool {
        // Ordering: Relaxed, as an exchange reads the last value of the modification order.
        self.0.swap(OPEN, Relaxed) == REQUESTED
    }
}
