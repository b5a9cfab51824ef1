//! The wires between hosts: what delays, loses and repeats a packet, and the queue of what arrives.
//!
//! A packet that is sent becomes an entry of the queue, at the time of its arrival, or it is lost.
//! Wires never change a packet. Packets of one sender may overtake each other, as each has a
//! latency of its own.
use super::{Dice, HostId, packet::Packet};
use crate::net_settings::Net as Settings;
use std::{
    collections::{BTreeMap, BinaryHeap},
    ops::Range,
};

/// The latency within a host, in nanoseconds.
const LOOPBACK: u64 = 10_000;

/// An entry of the queue: it happens at its time.
#[derive(Debug)]
pub(crate) enum Event {
    /// A packet arrives at a host.
    Arrival(HostId, Packet),
    /// The timer of a connection goes off, if it still has this number.
    Timer(u64, u64),
    /// A connection that is over is forgotten.
    Forget(u64),
    /// A fault of the scenario begins or ends: the number of it.
    Fault(usize),
}

#[derive(Debug)]
struct Entry {
    at: u64,
    /// Entries of the same time are in the order in which they were made.
    made: u64,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.made) == (other.at, other.made)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    /// The first entry is the greatest, as a `BinaryHeap` has its greatest element on top.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.at, other.made).cmp(&(self.at, self.made))
    }
}

/// All that is under way.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    heap: BinaryHeap<Entry>,
    made: u64,
}

impl Queue {
    pub(crate) fn add(&mut self, at: u64, event: Event) {
        self.made += 1;
        let made = self.made;
        self.heap.push(Entry { at, made, event });
    }

    /// Returns the time of the first entry, and what it is.
    pub(crate) fn first(&self) -> Option<(u64, &Event)> {
        self.heap.peek().map(|entry| (entry.at, &entry.event))
    }

    pub(crate) fn take_first(&mut self) -> Option<Event> {
        self.heap.pop().map(|entry| entry.event)
    }
}

/// The fate of a packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Lost,
    /// It arrives at this time, and perhaps again at another one.
    Arrives(u64, Option<u64>),
}

/// A direction in which nothing passes for some time.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    pub(crate) span: Range<u64>,
}

/// The wires between all hosts.
#[derive(Debug, Default)]
pub(crate) struct Wires {
    pub(crate) settings: Settings,
    pub(crate) cuts: Vec<Cut>,
    /// For each direction, the time at which its last packet has left, where the bandwidth is
    /// limited.
    busy_until: BTreeMap<(HostId, HostId), u64>,
}

impl Wires {
    /// Decides what happens to a packet of this length that is sent now.
    pub(crate) fn send(
        &mut self,
        now: u64,
        (from, to): (HostId, HostId),
        len: usize,
        dice: &dyn Dice,
    ) -> Fate {
        if from == to {
            return Fate::Arrives(now + LOOPBACK, None);
        }
        let is_cut = |cut: &Cut| (cut.from, cut.to) == (from, to) && cut.span.contains(&now);
        if self.cuts.iter().any(is_cut) || dice.once(self.settings.loss) {
            return Fate::Lost;
        }
        let mut leaves = now;
        if let Some(bytes_per_second) = self.settings.bandwidth {
            let takes = (len as u64).saturating_mul(1_000_000_000) / bytes_per_second.max(1);
            let busy = self.busy_until.entry((from, to)).or_default();
            leaves = (*busy).max(now).saturating_add(takes);
            *busy = leaves;
        }
        let first = leaves.saturating_add(self.latency(dice));
        let repeats = dice.once(self.settings.duplicates);
        let second = repeats.then(|| leaves.saturating_add(self.latency(dice)));
        Fate::Arrives(first, second)
    }

    fn latency(&self, dice: &dyn Dice) -> u64 {
        let Range { start, end } = &self.settings.latency;
        let nanos = |time: &std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (least, most) = (nanos(start), nanos(end));
        // A choice is a number of microseconds.
        let spread = most.saturating_sub(least) / 1_000;
        let spread = u32::try_from(spread).unwrap_or(u32::MAX);
        least + 1_000 * u64::from(dice.below(spread.max(1)))
    }

    /// Returns the longest latency, in nanoseconds.
    pub(crate) fn longest(&self) -> u64 {
        u64::try_from(self.settings.latency.end.as_nanos()).unwrap_or(u64::MAX)
    }
}
