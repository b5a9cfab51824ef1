//! Concurrent histories, and whether they are linearizable. Feature `history`, for tests.
//!
//! A history is what threads called, what they got, and when each call began and ended, by one clock. It is *linearizable*
//! when there is an order of the calls, in which each is as if alone, that agrees with a sequential object ([`Sequential`]) and puts a call that
//! ended before another began before it. [`check`] looks for one: Wing and Gong, "Testing and Verifying Concurrent Objects" (1993), with
//! Lowe's table of what was tried, "Testing for Linearizability" (2017).
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
//! The clock is an atomic of std, under every backend: recording is no step of a model. On real threads it orders the calls more than
//! they do themselves, as each call begins and ends with a `SeqCst` read-modify-write: it is the calls' results that are judged, not their orderings,
//! which are loom's to judge.
use std::{
    collections::HashSet,
    fmt::Debug,
    hash::Hash,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

/// An object that one thread uses.
pub trait Sequential: Clone + Eq + Hash {
    /// What is asked of it.
    type Call: Clone + Debug;
    /// What it gives.
    type Answer: Clone + Debug;

    /// Makes the call, and tells whether it may be answered so. When not, the object's state is of no more use.
    fn allows(&mut self, call: &Self::Call, answer: &Self::Answer) -> bool;
}

/// What the threads of one history take the time from.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    fn now(&self) -> u64 {
        // Ordering: SeqCst, so that a call that ended before another began has the lower number.
        self.0.fetch_add(1, SeqCst)
    }
}

/// A call that ended.
#[derive(Clone, Debug)]
pub struct Event<S: Sequential> {
    /// What was asked.
    pub call: S::Call,
    /// What was given.
    pub answer: S::Answer,
    /// When it began.
    pub from: u64,
    /// When it ended.
    pub to: u64,
}

/// One thread's calls.
#[derive(Debug)]
pub struct Log<S: Sequential> {
    clock: Clock,
    events: Vec<Event<S>>,
}

impl<S: Sequential> Log<S> {
    /// An empty one.
    pub fn new(clock: &Clock) -> Self {
        Self {
            clock: clock.clone(),
            events: Vec::new(),
        }
    }

    /// Makes a call and notes it.
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

    /// The calls.
    pub fn done(self) -> Vec<Event<S>> {
        self.events
    }
}

/// No order of the calls agrees with the sequential object.
#[derive(Clone, Debug)]
pub struct NotLinearizable<S: Sequential> {
    /// The calls, by their beginning.
    pub events: Vec<Event<S>>,
    /// How many of them an order was found for at best.
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

/// Looks for an order of all threads' calls that `object` could have seen.
///
/// Takes time that grows with the calls that overlap, not with those that follow each other: a few dozen calls of a few threads are a matter of
/// microseconds.
///
/// # Errors
/// The history, when there is no such order.
pub fn check<S: Sequential>(
    object: S,
    threads: impl IntoIterator<Item = Vec<Event<S>>>,
) -> Result<(), NotLinearizable<S>> {
    let mut events: Vec<_> = threads.into_iter().flatten().collect();
    events.sort_by_key(|event| event.from);
    let mut tried = HashSet::new();
    let mut explained = 0;
    // Orders to go on from: what is placed, how many, and the object after it.
    let mut open = vec![(Placed::none(events.len()), 0, object)];
    while let Some((placed, count, object)) = open.pop() {
        explained = explained.max(count);
        if count == events.len() {
            return Ok(());
        }
        // A call may come next when no other has ended before it began.
        let mut first_end = u64::MAX;
        for (index, event) in events.iter().enumerate() {
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
                    open.push((more, count + 1, after));
                }
            }
        }
    }
    Err(NotLinearizable { events, explained })
}

/// A set of calls.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Placed(Box<[u64]>);

impl Placed {
    fn none(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)].into())
    }

    fn has(&self, index: usize) -> bool {
        self.0[index / 64] >> (index % 64) & 1 == 1
    }

    fn with(&self, index: usize) -> Self {
        let mut more = self.clone();
        more.0[index / 64] |= 1 << (index % 64);
        more
    }
}

#[cfg(test)]
mod tests;
