//! Concurrent histories, and a check that they are linearizable. Feature `history`, for tests.
//!
//! A *history* is a list of calls with their results, and with the times when each call began and
//! ended, by one clock. It is *linearizable* if there is an order of the calls with two properties.
//! First, a sequential object ([`Sequential`]) gives the same results in that order. Second, a call
//! that ended before another call began also comes before it in that order.
//!
//! [`check`] looks for such an order, by the algorithm of Wing and Gong ("Testing and Verifying
//! Concurrent Objects", 1993) with Lowe's table of tried states ("Testing for Linearizability",
//! 2017).
//!
//! ```
//! use sync_shim::history::{Clock, Log, Sequential, check};
//!
//! #[derive(Clone, Default, PartialEq, Eq, Hash)]
//! struct Counter(u32);
//!
//! impl Sequential for Counter {
//!     type Call = ();
//!     type Answer = u32;
//!     fn allows(&mut self, (): &(), got: &u32) -> bool {
//!         self.0 += 1;
//!         *got == self.0 - 1
//!     }
//! }
//!
//! let (clock, count) = (Clock::default(), std::sync::atomic::AtomicU32::new(0));
//! let mut log = Log::<Counter>::new(&clock);
//! log.call((), || count.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
//! assert!(check(Counter::default(), [log.done()]).is_ok());
//! ```
//!
//! The clock is an atomic of std under every backend, so recording is not a step of a model. On
//! real threads each recorded call begins and ends with a `SeqCst` read-modify-write, so the calls
//! are ordered more strictly than without the recording. So a history checks the results of the
//! calls. It does not check their memory orderings, which loom checks.
use std::{
    collections::HashSet,
    fmt::Debug,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

/// The sequential object that a history is compared with.
pub trait Sequential: Clone + Eq + Hash {
    /// A call with its arguments.
    type Call: Clone + Debug;
    /// The result of a call.
    type Answer: Clone + Debug;

    /// Applies the call, and returns whether its result may be `answer`. If not, the object's state
    /// is undefined afterwards.
    fn allows(&mut self, call: &Self::Call, answer: &Self::Answer) -> bool;
}

/// The clock of one history, which all its threads share.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    fn now(&self) -> u64 {
        // Ordering: SeqCst, so that the end of a call has a lower number than any call that begins
        // after that end.
        self.0.fetch_add(1, SeqCst)
    }
}

/// A call that has ended.
#[derive(Clone, Debug)]
pub struct Event<S: Sequential> {
    /// The call.
    pub call: S::Call,
    /// The call's result.
    pub answer: S::Answer,
    /// The time when the call began.
    pub from: u64,
    /// The time when the call ended.
    pub to: u64,
}

/// A recorder of one thread's calls.
#[derive(Debug)]
pub struct Log<S: Sequential> {
    clock: Clock,
    events: Vec<Event<S>>,
}

impl<S: Sequential> Log<S> {
    /// Creates an empty log.
    pub fn new(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            events: Vec::new(),
        }
    }

    /// Makes a call and records it.
    pub fn call(&mut self, call: S::Call, make: impl FnOnce() -> S::Answer) -> S::Answer {
        let from = self.clock.now();
        let answer = make();
        let to = self.clock.now();
        self.events.push(Event {
            call,
            answer: answer.clone(),
            from,
            to,
        });
        answer
    }

    /// Returns the recorded calls.
    pub fn done(self) -> Vec<Event<S>> {
        self.events
    }
}

/// The error of [`check`]: no order of the calls agrees with the sequential object.
#[derive(Clone, Debug)]
pub struct NotLinearizable<S: Sequential> {
    /// The calls, in the order of the times when they began.
    pub events: Vec<Event<S>>,
    /// The largest number of calls for which an order was found.
    pub explained: usize,
}

impl<S: Sequential> std::fmt::Display for NotLinearizable<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "no order explains more than {} of these calls:",
            self.explained
        )?;
        for event in &self.events {
            let Event {
                call,
                answer,
                from,
                to,
            } = event;
            writeln!(f, "{from:4}..{to:<4} {call:?} -> {answer:?}")?;
        }
        Ok(())
    }
}

impl<S: Sequential + Debug> std::error::Error for NotLinearizable<S> {}

/// Checks that there is an order of all threads' calls that agrees with `object`.
///
/// Each step clones and hashes the object. If no calls overlap, there is one step for each call,
/// and a step costs no more in a long history than in a short one. The number of steps can grow
/// exponentially with the number of calls that overlap each other.
///
/// # Errors
/// Returns the history if there is no such order.
pub fn check<S: Sequential>(
    object: S,
    threads: impl IntoIterator<Item = Vec<Event<S>>>,
) -> Result<(), NotLinearizable<S>> {
    let mut events: Vec<_> = threads.into_iter().flatten().collect();
    events.sort_by_key(|event| event.from);
    let mut tried = HashSet::new();
    let mut explained = 0;
    // Partial orders to extend: the set of placed calls, and the object after them.
    let mut open = vec![(Placed::default(), object)];
    while let Some((placed, object)) = open.pop() {
        explained = explained.max(placed.len());
        if placed.len() == events.len() {
            return Ok(());
        }
        // A call may come next if no other unplaced call had ended when it began.
        let mut first_end = u64::MAX;
        for (index, event) in events.iter().enumerate().skip(placed.first) {
            if placed.has(index) {
                continue;
            }
            if event.from > first_end {
                break;
            }
            first_end = first_end.min(event.to);
            let mut after = object.clone();
            if after.allows(&event.call, &event.answer) {
                let more = placed.with(index);
                if tried.insert((more.clone(), after.clone())) {
                    open.push((more, after));
                }
            }
        }
    }
    Err(NotLinearizable { events, explained })
}

/// A set of calls: all calls before `first`, and the calls of `later`. A call of `later` overlaps
/// the call `first`, which is not placed. So the set is small unless many calls overlap one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Placed {
    first: usize,
    /// Sorted, and greater than `first`.
    later: Vec<usize>,
}

impl Placed {
    fn len(&self) -> usize {
        self.first + self.later.len()
    }

    fn has(&self, index: usize) -> bool {
        index < self.first || self.later.binary_search(&index).is_ok()
    }

    /// Returns this set and a call that is not in it.
    fn with(&self, index: usize) -> Self {
        let mut more = self.clone();
        let place = more.later.partition_point(|&later| later < index);
        more.later.insert(place, index);
        let in_a_row = |&(place, later): &(usize, &usize)| more.first + place == *later;
        let placed = more.later.iter().enumerate().take_while(in_a_row).count();
        more.later.drain(..placed);
        more.first += placed;
        more
    }
}

#[cfg(test)]
mod tests;
