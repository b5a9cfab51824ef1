//! The events of a run, and their hash.
#[cfg(selvedge_sim)]
use std::collections::VecDeque;
use std::{fmt, sync::Arc, time::Duration};

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The virtual time since the run began.
    pub time: Duration,
    /// The number of the host, in the order of their plans, from 1. 0 if there is only one.
    pub host: usize,
    /// The thread's id, from 1. The first thread runs the program's main function. 0 is the
    /// simulator.
    pub thread: u64,
    /// The thread's name.
    pub name: Option<Arc<str>>,
    /// The kind of the event, such as `poll` or `park`.
    pub kind: &'static str,
    /// The number of the task, or 0.
    pub task: u64,
    /// A number that depends on the kind.
    pub number: u64,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.name.as_deref().unwrap_or("simulator");
        write!(
            f,
            "{:>14?}  {:2} {name:<22} {}",
            self.time, self.thread, self.kind
        )?;
        if self.task != 0 {
            write!(f, " of task {}", self.task)?;
        }
        if self.number != 0 {
            write!(f, " ({})", self.number)?;
        }
        Ok(())
    }
}

/// The hash of all events so far, and the last of them.
#[cfg(selvedge_sim)]
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) hash: u64,
    pub(crate) events: u64,
    keep: usize,
    /// How many events gave way to later ones.
    pub(crate) lost: u64,
    /// The last events of each host, each with its place among all events.
    kept: Vec<VecDeque<(u64, Event)>>,
}

/// Returns a number for the kind of an event. It depends on the length, the first eight bytes and
/// the last eight ones, in which the kinds differ. An address would be another one in each process.
#[cfg(selvedge_sim)]
#[inline]
fn hash_of(kind: &str) -> u64 {
    let bytes = kind.as_bytes();
    let number = |part: &[u8]| {
        let digits = part.iter().rev();
        digits.fold(0, |number, byte| number << 8 | u64::from(*byte))
    };
    let ends = match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => {
            u64::from_le_bytes(*first) ^ u64::from_le_bytes(*last).rotate_left(29)
        }
        _ => number(bytes),
    };
    ends ^ (bytes.len() as u64) << 59
}

#[cfg(selvedge_sim)]
impl Trace {
    /// Makes an empty trace, which keeps so many events. Unless it keeps all, it leaves out the
    /// switches between threads and the jumps of the time: most events are such, and the times and
    /// threads of the others show them.
    pub(crate) fn new(keep: usize) -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            events: 0,
            keep,
            lost: 0,
            kept: vec![VecDeque::new()],
        }
    }

    #[inline]
    pub(crate) fn add(
        &mut self,
        nanos: u64,
        (thread, host): (u64, usize),
        name: Option<&Arc<str>>,
        kind: &'static str,
        task: u64,
        number: u64,
    ) {
        for part in [nanos, thread, hash_of(kind), task, number] {
            self.hash = (self.hash.rotate_left(5) ^ part).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        self.events += 1;
        let is_switch = matches!(kind, "run" | "time");
        if self.keep > 0 && (self.keep == usize::MAX || !is_switch) {
            let kept = &mut self.kept[host];
            if kept.len() == self.keep {
                kept.pop_front();
                self.lost += 1;
            }
            let (time, name) = (Duration::from_nanos(nanos), name.cloned());
            let event = Event {
                time,
                host,
                thread,
                name,
                kind,
                task,
                number,
            };
            kept.push_back((self.events, event));
        }
    }

    /// Keeps events of so many hosts from now on.
    pub(crate) fn share_among(&mut self, hosts: usize) {
        self.kept.resize_with(hosts, VecDeque::new);
        if self.keep < usize::MAX {
            self.keep = self.keep.div_ceil(hosts).max(self.keep.min(20));
        }
    }

    /// Returns the kept events in their order.
    pub(crate) fn into_kept(self) -> Vec<Event> {
        let mut all: Vec<_> = self.kept.into_iter().flatten().collect();
        all.sort_by_key(|(place, _)| *place);
        all.into_iter().map(|(_, event)| event).collect()
    }
}
