//! The identities of nodes: incarnations on the wire, numbers in pids.
//!
//! An *incarnation* names one life of a node: a node that is started again has another. A *number*
//! names an incarnation on this node alone. It is never given to a second incarnation, so a pid
//! that was kept over the restart of its node names no process of the new one.
use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
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

pub(crate) struct Identities {
    own: (Incarnation, u32),
    known: Mutex<Known>,
}

struct Known {
    numbers: HashMap<Incarnation, u32>,
    incarnations: HashMap<u32, Incarnation>,
    next: u32,
}

impl Identities {
    pub(crate) fn new(own: Incarnation, number: u32) -> Self {
        Self {
            own: (own, number),
            known: Mutex::new(Known {
                numbers: HashMap::from([(own, number)]),
                incarnations: HashMap::from([(number, own)]),
                next: number.wrapping_add(1),
            }),
        }
    }

    pub(crate) fn own(&self) -> Incarnation {
        self.own.0
    }

    pub(crate) fn own_number(&self) -> u32 {
        self.own.1
    }

    /// Returns the number of an incarnation, which may be new.
    ///
    /// # Panics
    /// After 2^32 incarnations.
    pub(crate) fn number_of(&self, incarnation: Incarnation) -> u32 {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = known.numbers.get(&incarnation) {
            return *number;
        }
        let number = known.next;
        known.next = number.wrapping_add(1);
        let before = known.incarnations.insert(number, incarnation);
        assert!(before.is_none(), "no number is left for a node");
        known.numbers.insert(incarnation, number);
        number
    }

    /// Returns the incarnation of a number. One that nobody has is that of no node: 0.
    pub(crate) fn incarnation_of(&self, number: u32) -> Incarnation {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known
            .incarnations
            .get(&number)
            .copied()
            .unwrap_or(Incarnation(0))
    }
}
