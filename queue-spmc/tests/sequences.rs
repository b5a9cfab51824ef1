//! Any sequence of operations on a ring gives the results of a model that has two `VecDeque`s.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use proptest::prelude::*;
use queue_spmc::{
    Overflow,
    ring::{Steal, StealLimit, Stealer, Worker},
};
use std::{cell::RefCell, collections::VecDeque};

#[derive(Clone, Debug)]
enum Op {
    Push,
    PushOrOverflow,
    Extend(u32),
    Pop,
    PopN(usize),
    /// `PopSome(n, taken, stolen)`: takes `taken` items from the iterator of `pop_n(n)`, steals
    /// `stolen` times, and drops the iterator.
    PopSome(usize, usize, usize),
    Claim(usize),
    Steal,
    StealHalf,
    StealInto(usize),
    StealHere(u32),
}

/// Generates an operation. `Claim` sets a claim of at most `claim` items.
fn op(claim: usize) -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => Just(Op::Push),
        3 => Just(Op::PushOrOverflow),
        1 => (0..6u32).prop_map(Op::Extend),
        6 => Just(Op::Pop),
        1 => (0..6usize).prop_map(Op::PopN),
        1 => (0..9usize, 0..4usize, 0..4usize).prop_map(|(n, t, s)| Op::PopSome(n, t, s)),
        1 => (0..=claim).prop_map(Op::Claim),
        2 => Just(Op::Steal),
        1 => Just(Op::StealHalf),
        1 => (0..6usize).prop_map(Op::StealInto),
        1 => (0..8u32).prop_map(Op::StealHere),
    ]
}

#[derive(Default)]
struct Global(RefCell<Vec<u32>>);

impl Overflow<u32> for Global {
    fn push(&self, item: u32) {
        self.0.borrow_mut().push(item);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = u32>) {
        self.0.borrow_mut().extend(batch);
    }
}

const CAPACITY: usize = 8;

/// The owner's view: the claimed items, oldest first, and the available ones. The ring chooses how
/// many items the owner claims. So the model derives that number from the number of items that
/// thieves see.
#[derive(Default)]
struct Model {
    claimed: VecDeque<u32>,
    available: VecDeque<u32>,
    requested: bool,
    /// Whether thieves took items from behind the claimed ones.
    behind: bool,
}

impl Model {
    fn len(&self) -> usize {
        self.claimed.len() + self.available.len()
    }

    /// Serves a thief's request (rule 7). In these sequences, no item is behind the claimed ones
    /// when a thief makes a request.
    fn serve_request(&mut self) {
        if self.requested && !self.claimed.is_empty() {
            self.give_back();
        }
    }

    fn give_back(&mut self) {
        if self.available.is_empty() || !self.behind {
            self.claimed.append(&mut self.available);
            self.available.append(&mut self.claimed);
        }
        self.requested = false;
    }

    /// Adapts the model after the owner may have claimed more items, or published a private item:
    /// `available` items are available now.
    fn observe(&mut self, available: usize) {
        while self.available.len() > available {
            self.claimed.extend(self.available.pop_front());
        }
        while self.available.len() < available {
            self.available.push_front(self.claimed.pop_back().unwrap());
        }
    }

    fn steal(&mut self, limit: usize) -> Vec<u32> {
        if self.available.is_empty() {
            self.requested = true;
        }
        let n = limit.min(self.available.len());
        self.behind |= n > 0 && !self.claimed.is_empty();
        self.available.drain(..n).collect()
    }
}

fn stolen_one(stealer: &Stealer<u32>) -> Option<u32> {
    match stealer.steal() {
        Steal::Success { first, .. } => Some(first),
        _ => None,
    }
}

fn run(mut claim: usize, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut ring = Worker::new(CAPACITY).with_claim(claim);
    let stealer = ring.stealer();
    let (mut model, mut next) = (Model::default(), 0);
    for op in ops {
        next += 1;
        let owners = !matches!(op, Op::Steal | Op::StealHalf | Op::StealInto(_));
        let had_claimed = !model.claimed.is_empty();
        let was_requested = model.requested;
        // An item that is stolen from behind claimed items keeps its slot in use until the claimed
        // items are popped.
        let room = ring.spare_capacity();
        prop_assert!(room <= CAPACITY - model.len());
        prop_assert!(room == CAPACITY - model.len() || had_claimed);
        match op {
            Op::Push => {
                let fits = room > 0 || (had_claimed && was_requested && model.len() < CAPACITY);
                prop_assert_eq!(ring.push(next).is_ok(), fits);
                model.serve_request();
                if fits {
                    model.available.push_back(next);
                }
            }
            Op::PushOrOverflow => {
                let global = Global::default();
                ring.push_or_overflow(next, &global);
                model.serve_request();
                let out = global.0.into_inner();
                if out.is_empty() {
                    prop_assert!(room > 0 || (had_claimed && was_requested));
                    model.available.push_back(next);
                } else {
                    prop_assert_eq!(room, 0);
                    let mut half: Vec<_> = model.claimed.drain(..).collect();
                    let others = (CAPACITY / 2).saturating_sub(half.len());
                    let others = others.min(model.available.len());
                    half.extend(model.available.drain(..others));
                    half.push(next);
                    prop_assert_eq!(out, half);
                }
            }
            Op::Extend(n) => {
                let mut items = next..next + n;
                let pushed = ring.extend(&mut items);
                model.serve_request();
                prop_assert!(pushed >= room.min(n as usize) && pushed <= CAPACITY - model.len());
                model.available.extend(next..items.start);
                next += n;
            }
            Op::Pop => {
                let popped = model
                    .claimed
                    .pop_front()
                    .or_else(|| model.available.pop_front());
                prop_assert_eq!(ring.pop(), popped);
                model.serve_request();
            }
            Op::PopN(n) => {
                let expected: Vec<_> = (0..n)
                    .map_while(|_| {
                        model
                            .claimed
                            .pop_front()
                            .or_else(|| model.available.pop_front())
                    })
                    .collect();
                prop_assert_eq!(ring.pop_n(n).collect::<Vec<_>>(), expected);
            }
            Op::PopSome(n, taken, stolen) => {
                let expected: Vec<_> = (0..n.min(taken))
                    .map_while(|_| {
                        model
                            .claimed
                            .pop_front()
                            .or_else(|| model.available.pop_front())
                    })
                    .collect();
                let mut popped = ring.pop_n(n);
                let got: Vec<_> = popped.by_ref().take(taken).collect();
                model.behind &= !model.claimed.is_empty();
                model.observe(stealer.len());
                for _ in 0..stolen {
                    let item = model.steal(1).pop();
                    prop_assert_eq!(stolen_one(&stealer), item);
                }
                drop(popped);
                if got.len() < n && !model.claimed.is_empty() {
                    model.give_back();
                    prop_assert!(ring.gave_back() || model.behind);
                }
                prop_assert_eq!(got, expected);
            }
            Op::Claim(n) => {
                claim = n;
                ring = ring.with_claim(n);
                if had_claimed {
                    model.give_back();
                }
            }
            Op::Steal => {
                let expected = match model.steal(1).pop() {
                    Some(first) => Steal::Success { first, moved: 0 },
                    None => Steal::Empty,
                };
                prop_assert_eq!(stealer.steal(), expected);
            }
            Op::StealHalf => {
                let mut thief = Worker::new(CAPACITY);
                let expected = model.steal(model.available.len().div_ceil(2));
                match stealer.steal_into_and_pop(&mut thief, StealLimit::Half) {
                    Steal::Success { first, moved } => {
                        prop_assert_eq!(first, expected[0]);
                        prop_assert_eq!(moved, expected.len() - 1);
                    }
                    other => prop_assert!(other == Steal::Empty && expected.is_empty()),
                }
                prop_assert_eq!(
                    thief.drain().collect::<Vec<_>>(),
                    expected.get(1..).unwrap_or(&[])
                );
            }
            Op::StealInto(n) => {
                let mut thief = Worker::new(4);
                let expected = model.steal(n.min(4));
                let stolen = stealer.steal_into(&mut thief, StealLimit::AtMost(n));
                prop_assert_eq!(stolen == Steal::Empty, expected.is_empty());
                prop_assert_eq!(thief.drain().collect::<Vec<_>>(), expected);
            }
            Op::StealHere(n) => {
                let mut victim = Worker::new(CAPACITY).with_claim(1);
                victim.extend(next..next + n);
                let stolen = victim.stealer().steal_into(&mut ring, StealLimit::Half);
                model.serve_request();
                let most = (n as usize).div_ceil(2);
                let moved = match stolen {
                    Steal::Success { moved, .. } => moved as u32,
                    _ => 0,
                };
                prop_assert!(moved as usize >= room.min(most));
                prop_assert!(moved as usize <= most.min(CAPACITY - model.len()));
                model.available.extend(next..next + moved);
                next += n;
            }
        }
        if owners {
            let handles_request = !matches!(op, Op::PopN(_) | Op::PopSome(..));
            model.requested &= !handles_request;
            model.observe(stealer.len());
            model.behind &= !model.claimed.is_empty();
            // An owner that claims one item at a time has no item claimed between two operations.
            let most = if claim > 1 {
                claim.min(CAPACITY / 2)
            } else {
                0
            };
            prop_assert!(model.claimed.len() <= most || model.behind);
            // Items that were claimed when a thief made a request are available after the owner's
            // next operation. A private item may be claimed anew.
            if had_claimed && was_requested && handles_request {
                prop_assert!(model.claimed.len() <= 1);
                prop_assert!(ring.gave_back() || model.len() <= 1);
            }
        }
        prop_assert_eq!(ring.len(), model.len());
        prop_assert_eq!(stealer.len(), model.available.len());
        prop_assert_eq!(ring.is_empty(), model.len() == 0);
    }
    let rest: Vec<_> = model.claimed.into_iter().chain(model.available).collect();
    prop_assert_eq!(ring.drain().collect::<Vec<_>>(), rest);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn plain_ring_behaves_as_a_bounded_vec_deque(ops in prop::collection::vec(op(1), 0..200)) {
        run(1, ops)?;
    }

    #[test]
    fn claiming_ring_behaves_as_a_bounded_vec_deque(
        claim in 2..5usize,
        ops in prop::collection::vec(op(9), 0..200),
    ) {
        run(claim, ops)?;
    }
}
