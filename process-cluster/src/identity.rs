//! The identities of nodes: incarnations on the wire, numbers in pids.
//!
//! An *incarnation* names one life of a node: a node that is started again has another. A *number*
//! names an incarnation on this node alone. It is never given to a second incarnation, so a pid
//! that was kept over the restart of its node names no process of the new one.
//!
//! A peer may name any incarnation in a pid, and begin sessions as ever new ones. So the table of
//! incarnations is bounded:
//!
//! - Of those that were only named in pids, it has the first ones. The pid of any other names no
//!   process: [`nowhere`](Identities::nowhere).
//! - Of those that had sessions, and have none now, it has the last ones. The pids of older ones
//!   name no process any more.
use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

/// One life of a node. A later life has a larger number, unless the clock went back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Incarnation(pub(crate) u64);

impl Incarnation {
    /// Returns a new one: the time in milliseconds, and 22 bits of `salt`, which differ between
    /// nodes that start at the same time.
    pub(crate) fn now(salt: u64) -> Self {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let millis = time.unwrap_or(Duration::ZERO).as_millis() as u64;
        Self(millis << 22 | salt >> 42)
    }
}

/// The most incarnations of which this node knows only by pids.
const MOST_NAMED: usize = 4_096;

/// The most incarnations that had sessions, and have none.
const MOST_PAST: usize = 10_000;

pub(crate) struct Identities {
    own: (Incarnation, u32),
    known: Mutex<Known>,
}

struct Known {
    numbers: HashMap<Incarnation, Number>,
    incarnations: HashMap<u32, Incarnation>,
    /// The next number. `None` once all are given.
    next: Option<u32>,
    /// How many incarnations had no session.
    named: usize,
    /// Those whose sessions have ended, the last one at the end.
    past: VecDeque<Incarnation>,
}

#[derive(Clone, Copy)]
struct Number {
    number: u32,
    was_met: bool,
}

impl Known {
    fn add(&mut self, incarnation: Incarnation, was_met: bool, nowhere: u32) -> Option<u32> {
        let number = self.next?;
        self.next = Some(number.wrapping_add(1)).filter(|next| *next != nowhere);
        self.incarnations.insert(number, incarnation);
        self.numbers.insert(incarnation, Number { number, was_met });
        Some(number)
    }
}

impl Identities {
    pub(crate) fn new(own: Incarnation, number: u32) -> Self {
        let was_met = true;
        Self {
            own: (own, number),
            known: Mutex::new(Known {
                numbers: HashMap::from([(own, Number { number, was_met })]),
                incarnations: HashMap::from([(number, own)]),
                next: Some(number.wrapping_add(1)),
                named: 0,
                past: VecDeque::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn own(&self) -> Incarnation {
        self.own.0
    }

    pub(crate) fn own_number(&self) -> u32 {
        self.own.1
    }

    /// Returns the number that no incarnation has.
    pub(crate) fn nowhere(&self) -> u32 {
        self.own.1.wrapping_sub(1)
    }

    /// Returns the number of an incarnation that a session has begun with. `None` if all numbers
    /// are given.
    pub(crate) fn meet(&self, incarnation: Incarnation) -> Option<u32> {
        let known = &mut *self.lock();
        let number = match known.numbers.get_mut(&incarnation) {
            None => known.add(incarnation, true, self.nowhere())?,
            Some(number) => {
                let was_met = std::mem::replace(&mut number.was_met, true);
                known.named -= usize::from(!was_met);
                number.number
            }
        };
        known.past.retain(|past| *past != incarnation);
        Some(number)
    }

    /// Notes that the session with an incarnation has ended.
    pub(crate) fn part(&self, incarnation: Incarnation) {
        let known = &mut *self.lock();
        known.past.push_back(incarnation);
        if known.past.len() > MOST_PAST {
            let oldest = known.past.pop_front();
            let forgotten = oldest.and_then(|oldest| known.numbers.remove(&oldest));
            forgotten.map(|of| known.incarnations.remove(&of.number));
        }
    }

    /// Returns the number of an incarnation that a pid names.
    pub(crate) fn number_of(&self, incarnation: Incarnation) -> u32 {
        let known = &mut *self.lock();
        if let Some(number) = known.numbers.get(&incarnation) {
            return number.number;
        }
        if known.named >= MOST_NAMED {
            return self.nowhere();
        }
        let Some(number) = known.add(incarnation, false, self.nowhere()) else {
            return self.nowhere();
        };
        known.named += 1;
        number
    }

    /// Returns the number of an incarnation that is known.
    pub(crate) fn find(&self, incarnation: Incarnation) -> Option<u32> {
        let known = self.lock();
        known.numbers.get(&incarnation).map(|number| number.number)
    }

    /// Returns the incarnation of a number. One that nobody has is that of no node: 0.
    pub(crate) fn incarnation_of(&self, number: u32) -> Incarnation {
        let found = self.lock().incarnations.get(&number).copied();
        found.unwrap_or(Incarnation(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Incarnation = Incarnation(u64::MAX);

    /// Fails if each incarnation that a peer makes up takes memory, or one that the node meets
    /// later does not.
    #[test]
    fn incarnations_in_pids_are_bounded() {
        let identities = Identities::new(OWN, 7);
        let first = identities.number_of(Incarnation(0));
        for made_up in 1..10 * MOST_NAMED as u64 {
            identities.number_of(Incarnation(made_up));
        }
        let last = Incarnation(10 * MOST_NAMED as u64);
        assert_eq!(identities.number_of(last), identities.nowhere());
        assert_eq!(identities.incarnation_of(identities.nowhere()).0, 0);
        assert!(identities.lock().numbers.len() <= MOST_NAMED + 1);
        assert_eq!(identities.number_of(Incarnation(0)), first);
        let met = identities.meet(last).unwrap();
        assert_eq!(
            (identities.number_of(last), identities.incarnation_of(met)),
            (met, last)
        );
        // One that was named makes room for another.
        assert_eq!(identities.meet(Incarnation(0)), Some(first));
        assert_ne!(
            identities.number_of(Incarnation(1 << 40)),
            identities.nowhere()
        );
    }

    /// Fails if a node that is up is forgotten, or a number is given twice.
    #[test]
    fn incarnations_of_past_sessions_are_bounded() {
        let identities = Identities::new(OWN, 7);
        let up = Incarnation(1);
        let number = identities.meet(up).unwrap();
        identities.part(up);
        assert_eq!(identities.meet(up), Some(number));
        for past in 2..MOST_PAST as u64 + 10 {
            identities.meet(Incarnation(past)).unwrap();
            identities.part(Incarnation(past));
        }
        assert!(identities.lock().numbers.len() <= MOST_PAST + 2);
        assert_eq!(identities.find(up), Some(number));
        assert_eq!(identities.find(OWN), Some(7));
        assert_eq!(identities.find(Incarnation(2)), None);
        let again = identities.meet(Incarnation(2)).unwrap();
        assert!(again > MOST_PAST as u32, "{again}");
    }

    #[test]
    fn last_number_is_given_once() {
        let identities = Identities::new(OWN, 7);
        identities.lock().next = Some(identities.nowhere() - 1);
        assert_eq!(
            identities.meet(Incarnation(1)),
            Some(identities.nowhere() - 1)
        );
        assert_eq!(identities.meet(Incarnation(2)), None);
        assert_eq!(identities.number_of(Incarnation(3)), identities.nowhere());
    }
}
