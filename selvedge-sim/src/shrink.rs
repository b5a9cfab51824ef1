//! Simpler choices that lead to the same failure.
//!
//! 1. Whole lists become the simplest choices: the order of threads, the times of polls, packets
//!    and disks, together and then each alone; then what crashes leave; then the faults.
//! 2. Without them the run takes another course, and a fault may miss the moment that it has to
//!    hit. So if the failure is gone, the faults are moved: to each millisecond in which something
//!    happens in the simpler run.
//! 3. Of the lists that are left the last choices become the simplest ones, and then some of them.
//! 4. The numbers of faults become smaller, such as the time for which a host is down.
use crate::{
    Run,
    choice::{About, Lists},
};
use std::collections::BTreeSet;

/// The most runs, and the most events of all runs after the first ones.
const RUNS: usize = 1_000;
const EVENTS: u64 = 20_000_000;
const FIRST_RUNS: usize = 100;

/// The most moments to which a fault is moved.
const MOMENTS: usize = 150;

/// The most kept events of a run, whose times are such moments.
const KEPT: usize = 1 << 16;

/// The most choices of a list whose numbers become smaller.
const LOWERED: usize = 24;

const COURSE: &[About] = &[About::Threads, About::Polls, About::Packets, About::Disks];

/// The lists that become the simplest choices as a whole, in this order.
const WHOLE: &[&[About]] = &[
    COURSE,
    &[About::Threads, About::Polls],
    &[About::Packets],
    &[About::Disks],
    &[About::Threads],
    &[About::Polls],
    &[About::Losses],
    &[About::Faults],
];

/// The lists in the order in which they become shorter.
const EACH: [About; 6] = [
    About::Faults,
    About::Losses,
    About::Packets,
    About::Disks,
    About::Polls,
    About::Threads,
];

/// Makes runs with given choices.
pub(crate) struct Shrinking<F, L> {
    /// Runs the scenario with choices, and keeps so many events.
    run: F,
    /// Returns whether a run has failed in the same way.
    is_like: L,
    runs: usize,
    events: u64,
}

impl<F: Fn(&Lists, usize) -> Run, L: Fn(&Run) -> bool> Shrinking<F, L> {
    pub(crate) fn new(run: F, is_like: L) -> Self {
        Self {
            run,
            is_like,
            runs: 0,
            events: 0,
        }
    }

    /// Returns simpler choices with which the run fails, or these.
    pub(crate) fn shrink(mut self, mut lists: Lists) -> Lists {
        for whole in WHOLE {
            let mut simpler = lists.clone();
            whole.iter().for_each(|about| simpler.about(*about).clear());
            if simpler == lists {
                continue;
            }
            if self.fails(&simpler) {
                lists = simpler;
            } else if let Some(moved) = self.move_faults(&simpler) {
                lists = moved;
            }
        }
        EACH.iter()
            .for_each(|about| self.shorten(&mut lists, *about));
        // Large parts of each list come before small parts of any.
        let longest = lists.0.iter().map(Vec::len).max().unwrap_or(0);
        let halvings = 1..=longest.checked_ilog2().unwrap_or(0);
        for parts in halvings.map(|halving| 1 << halving) {
            for about in EACH {
                self.thin(&mut lists, about, parts);
            }
        }
        for about in EACH {
            self.lower(&mut lists, about);
        }
        for list in &mut lists.0 {
            let len = list.iter().rposition(|choice| *choice > 0);
            list.truncate(len.map_or(0, |at| at + 1));
        }
        lists
    }

    fn fails(&mut self, lists: &Lists) -> bool {
        if self.runs >= RUNS || self.runs >= FIRST_RUNS && self.events >= EVENTS {
            return false;
        }
        let run = (self.run)(lists, 0);
        self.runs += 1;
        self.events += run.count_events();
        (self.is_like)(&run)
    }

    /// Moves one fault (rule 2). Returns choices with which the run fails.
    fn move_faults(&mut self, lists: &Lists) -> Option<Lists> {
        let course = (self.run)(lists, KEPT);
        let moments = course.events().iter().flat_map(|event| {
            let millis = event.time.as_millis() as u64;
            [millis, millis + 1]
        });
        let moments: BTreeSet<u64> = moments.collect();
        let step = moments.len().div_ceil(MOMENTS).max(1);
        for begin in &course.begins {
            for moment in moments.iter().step_by(step) {
                let choice = moment.checked_sub(begin.first);
                let choice = choice.filter(|choice| *choice < u64::from(begin.count));
                let mut moved = lists.clone();
                let place = moved.about(About::Faults).get_mut(begin.at);
                let (Some(choice), Some(place)) = (choice, place) else {
                    continue;
                };
                *place = choice as u32;
                if moved != *lists && self.fails(&moved) {
                    return Some(moved);
                }
            }
        }
        None
    }

    /// Leaves out the last choices of a list.
    fn shorten(&mut self, lists: &mut Lists, about: About) {
        let (mut short, mut long) = (0, lists.about(about).len());
        while short < long {
            let middle = short.midpoint(long);
            let mut shorter = lists.clone();
            shorter.about(about).truncate(middle);
            match self.fails(&shorter) {
                true => long = middle,
                false => short = middle + 1,
            }
        }
        lists.about(about).truncate(long);
    }

    /// Makes parts of a list the simplest choices, of which there are so many.
    fn thin(&mut self, lists: &mut Lists, about: About, parts: usize) {
        let len = lists.about(about).len();
        if len == 0 || parts >= 2 * len {
            return;
        }
        let part = (len / parts).max(1);
        for from in (0..len).step_by(part) {
            let to = len.min(from + part);
            let mut fewer = lists.clone();
            fewer.about(about)[from..to].fill(0);
            if fewer != *lists && self.fails(&fewer) {
                *lists = fewer;
            }
        }
    }

    /// Makes the numbers of a list smaller, if they are few.
    fn lower(&mut self, lists: &mut Lists, about: About) {
        let list = lists.about(about).iter().enumerate();
        let others: Vec<_> = list.filter(|(_, choice)| **choice > 1).collect();
        let others: Vec<_> = others
            .into_iter()
            .map(|(at, choice)| (at, *choice))
            .collect();
        if others.len() > LOWERED {
            return;
        }
        for (at, choice) in others {
            let (mut low, mut high) = (0, choice);
            while high - low > 1 {
                let middle = low.midpoint(high);
                let mut lower = lists.clone();
                lower.about(about)[at] = middle;
                if self.fails(&lower) {
                    (*lists, high) = (lower, middle);
                } else {
                    low = middle;
                }
            }
        }
    }
}
