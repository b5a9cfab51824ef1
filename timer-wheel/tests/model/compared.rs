//! Compares a wheel or timers with a reference: a sorted map.
use crate::common::Numbered;
use std::{
    collections::{BTreeMap, HashMap},
    ptr::NonNull,
};
use timer_wheel::{Entry, Step, Wheel};

/// A wheel or timers to be compared with a sorted map.
pub trait Subject: Default {
    fn insert(&mut self, id: u32, deadline: u64);
    fn remove(&mut self, id: u32) -> bool;
    fn reset(&mut self, id: u32, deadline: u64) -> bool;
    fn deadline(&self, id: u32) -> Option<u64>;
    fn step(&mut self, now: u64) -> Step<u32>;
    fn pop(&mut self, now: u64) -> Option<u32>;
    fn next(&mut self) -> Option<u64>;
    fn bound(&self) -> Option<u64>;
    fn len(&self) -> usize;
    fn now(&self) -> u64;
}

/// A wheel of boxed entries, and their addresses.
#[derive(Default)]
pub struct Boxes {
    wheel: Wheel<Numbered>,
    entries: HashMap<u32, NonNull<Numbered>>,
}

impl Boxes {
    fn out(&mut self, id: u32) -> u32 {
        self.entries.remove(&id);
        id
    }
}

impl Subject for Boxes {
    fn insert(&mut self, id: u32, deadline: u64) {
        let entry = Numbered::into_ptr(Numbered::new(id));
        self.entries.insert(id, entry);
        // SAFETY: the pointer came from `into_ptr`.
        self.wheel
            .insert(unsafe { Numbered::from_ptr(entry) }, deadline);
    }
    fn remove(&mut self, id: u32) -> bool {
        let Some(&entry) = self.entries.get(&id) else {
            return false;
        };
        // SAFETY: the entry is in the wheel, which owns it.
        let entry = unsafe { self.wheel.remove(entry) };
        entry.map(|entry| self.out(entry.id)) == Some(id)
    }
    fn reset(&mut self, id: u32, deadline: u64) -> bool {
        let removed = self.remove(id);
        if removed {
            self.insert(id, deadline);
        }
        removed
    }
    fn deadline(&self, id: u32) -> Option<u64> {
        // SAFETY: the entry is in the wheel, which owns it.
        unsafe { self.wheel.deadline(*self.entries.get(&id)?) }
    }
    fn step(&mut self, now: u64) -> Step<u32> {
        match self.wheel.step(now) {
            Step::Expired(entry) => Step::Expired(self.out(entry.id)),
            Step::Moved => Step::Moved,
            Step::Done => Step::Done,
        }
    }
    fn pop(&mut self, now: u64) -> Option<u32> {
        let entry = self.wheel.pop_expired(now)?;
        Some(self.out(entry.id))
    }
    fn next(&mut self) -> Option<u64> {
        self.wheel.next_expiration()
    }
    fn bound(&self) -> Option<u64> {
        self.wheel.next_bound()
    }
    fn len(&self) -> usize {
        self.wheel.len()
    }
    fn now(&self) -> u64 {
        self.wheel.now()
    }
}

#[cfg(feature = "alloc")]
#[derive(Default)]
pub struct Values {
    timers: timer_wheel::Timers<u32>,
    keys: HashMap<u32, timer_wheel::Key>,
}

#[cfg(feature = "alloc")]
impl Values {
    fn out(&self, expired: timer_wheel::Expired<u32>) -> u32 {
        assert_eq!(self.timers.get(expired.key), None);
        assert_eq!(self.keys[&expired.value], expired.key);
        assert_eq!(self.timers.now(), expired.deadline);
        expired.value
    }
}

#[cfg(feature = "alloc")]
impl Subject for Values {
    fn insert(&mut self, id: u32, deadline: u64) {
        let key = self.timers.insert(deadline, id);
        assert_eq!(self.timers.get(key), Some(&id));
        self.keys.insert(id, key);
    }
    fn remove(&mut self, id: u32) -> bool {
        let removed = self.keys.get(&id).and_then(|&key| self.timers.remove(key));
        assert!(removed.is_none_or(|value| value == id));
        removed.is_some()
    }
    fn reset(&mut self, id: u32, deadline: u64) -> bool {
        let key = self.keys.get(&id);
        key.is_some_and(|&key| self.timers.reset(key, deadline))
    }
    fn deadline(&self, id: u32) -> Option<u64> {
        self.timers.deadline(*self.keys.get(&id)?)
    }
    fn step(&mut self, now: u64) -> Step<u32> {
        match self.timers.step(now) {
            Step::Expired(expired) => Step::Expired(self.out(expired)),
            Step::Moved => Step::Moved,
            Step::Done => Step::Done,
        }
    }
    fn pop(&mut self, now: u64) -> Option<u32> {
        let expired = self.timers.pop_expired(now)?;
        Some(self.out(expired))
    }
    fn next(&mut self) -> Option<u64> {
        self.timers.next_expiration()
    }
    fn bound(&self) -> Option<u64> {
        self.timers.next_bound()
    }
    fn len(&self) -> usize {
        self.timers.len()
    }
    fn now(&self) -> u64 {
        self.timers.now()
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Op {
    Insert(u64),
    /// Removes the n-th entry, modulo the number of entries.
    Remove(usize),
    /// Removes the first entry to expire, whose tick `next_expiration` may have kept.
    RemoveFirst,
    Reset(usize, u64),
    /// Tries to remove and to reset an entry that is gone.
    RemoveGone(usize),
    Step(u64),
    Pop(u64),
    /// Advances and takes all entries that are due.
    Advance(u64),
    /// Advances to the tick before the next expiration. The operation `Next` advances to the
    /// expiration itself.
    Before,
    Next,
}

/// Applies the same operations to a subject and to a sorted map.
pub struct Compared<S> {
    subject: S,
    /// Sorted by expiration, and then by insertion.
    order: BTreeMap<(u64, u64), u32>,
    keys: BTreeMap<u32, (u64, u64)>,
    now: u64,
    inserted: u64,
    /// Whether the last step moved entries, so that there may be more to move.
    moving: bool,
}

impl<S: Subject> Default for Compared<S> {
    fn default() -> Self {
        Self {
            subject: S::default(),
            order: BTreeMap::new(),
            keys: BTreeMap::new(),
            now: 0,
            inserted: 0,
            moving: false,
        }
    }
}

impl<S: Subject> Compared<S> {
    pub fn now(&self) -> u64 {
        self.now
    }

    pub fn len(&self) -> usize {
        self.order.len()
    }

    fn put(&mut self, id: u32, deadline: u64) {
        self.inserted += 1;
        let key = (deadline.max(self.now), self.inserted);
        self.order.insert(key, id);
        self.keys.insert(id, key);
    }

    fn take(&mut self, id: u32) {
        let key = self.keys.remove(&id).unwrap();
        self.order.remove(&key);
    }

    fn nth(&self, n: usize) -> Option<u32> {
        let n = n.checked_rem(self.keys.len())?;
        self.keys.keys().nth(n).copied()
    }

    fn pop(&mut self, now: u64) -> Option<u32> {
        self.moving = false;
        let now = now.max(self.now);
        let due = self.order.first_key_value().map(|(&key, &id)| (key, id));
        let due = due.filter(|&((when, _), _)| when <= now);
        if let Some((_, id)) = due {
            self.take(id);
        }
        self.now = due.map_or(now, |((when, _), _)| when);
        let id = due.map(|(_, id)| id);
        assert_eq!(self.subject.pop(now), id);
        id
    }

    pub fn apply(&mut self, op: Op) {
        match op {
            Op::Insert(deadline) => {
                let id = u32::try_from(self.inserted).unwrap();
                self.subject.insert(id, deadline);
                self.put(id, deadline);
            }
            Op::Remove(n) => {
                if let Some(id) = self.nth(n) {
                    assert!(self.subject.remove(id));
                    assert_eq!(self.subject.deadline(id), None);
                    self.take(id);
                }
            }
            Op::RemoveFirst => {
                if let Some(&id) = self.order.values().next() {
                    assert!(self.subject.remove(id));
                    self.take(id);
                }
            }
            Op::RemoveGone(n) => {
                let id = u32::try_from(n).unwrap();
                if !self.keys.contains_key(&id) {
                    assert!(!self.subject.remove(id) && !self.subject.reset(id, 0));
                    assert_eq!(self.subject.deadline(id), None);
                }
            }
            Op::Reset(n, deadline) => {
                if let Some(id) = self.nth(n) {
                    assert!(self.subject.reset(id, deadline));
                    self.take(id);
                    self.put(id, deadline);
                    assert_eq!(self.subject.deadline(id), Some(self.keys[&id].0));
                }
            }
            Op::Step(now) => match self.subject.step(now) {
                Step::Expired(id) => {
                    let (&key, &first) = self.order.first_key_value().unwrap();
                    assert_eq!(id, first);
                    assert!(key.0 <= now.max(self.now));
                    self.now = key.0;
                    self.take(id);
                    self.moving = false;
                }
                Step::Moved => {
                    let at = self.subject.now();
                    let first = self.order.first_key_value().unwrap().0.0;
                    assert!(self.now <= at && at <= first && at <= now.max(self.now));
                    self.now = at;
                    self.moving = true;
                }
                Step::Done => {
                    self.now = self.now.max(now);
                    let first = self.order.first_key_value();
                    assert!(first.is_none_or(|(key, _)| key.0 > self.now));
                    self.moving = false;
                }
            },
            Op::Pop(now) => drop(self.pop(now)),
            Op::Advance(now) => while self.pop(now).is_some() {},
            Op::Before | Op::Next => {
                let first = self.order.first_key_value().map(|(key, _)| key.0);
                if let Some(first) = first {
                    let early = matches!(op, Op::Before);
                    let expired = self.pop(first - u64::from(early && first > self.now));
                    assert_eq!(expired.is_none(), early && first > self.now);
                }
            }
        }
        self.check();
    }

    fn check(&mut self) {
        let first = self.order.first_key_value().map(|(key, _)| key.0);
        assert_eq!(self.subject.now(), self.now);
        assert_eq!(self.subject.len(), self.order.len());
        let bound = self.subject.bound();
        assert_eq!(bound.is_some(), first.is_some());
        assert!(bound <= first && bound.is_none_or(|bound| bound >= self.now));
        let next = self.subject.next();
        assert!(next == first || (self.moving && next == Some(self.now)));
        if !self.moving {
            assert_eq!(self.subject.bound(), first, "it is known now");
        }
    }

    /// Expires all remaining entries.
    pub fn finish(mut self) {
        self.apply(Op::Advance(u64::MAX));
        assert_eq!((self.subject.len(), self.keys.len()), (0, 0));
    }
}
