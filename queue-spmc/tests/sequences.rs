//! Any sequence of operations does to a ring what it does to a `VecDeque`, and allocates nothing.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use proptest::prelude::*;
use queue_spmc::{
    Overflow,
    ring::{Steal, StealLimit, Worker},
};
use std::{cell::RefCell, collections::VecDeque};

#[derive(Clone, Debug)]
enum Op {
    Push,
    PushOrOverflow,
    Pop,
    Steal,
    StealHalf,
    StealInto(usize),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => Just(Op::Push),
        3 => Just(Op::PushOrOverflow),
        3 => Just(Op::Pop),
        1 => Just(Op::Steal),
        1 => Just(Op::StealHalf),
        1 => (0..6usize).prop_map(Op::StealInto),
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

proptest! {
    #[test]
    fn a_ring_is_a_bounded_vec_deque(ops in prop::collection::vec(op(), 0..200)) {
        const CAPACITY: usize = 8;
        let mut ring = Worker::new(CAPACITY);
        let stealer = ring.stealer();
        let (mut model, mut next) = (VecDeque::new(), 0);
        for op in ops {
            next += 1;
            match op {
                Op::Push => {
                    prop_assert_eq!(ring.push(next).is_err(), model.len() == CAPACITY);
                    if model.len() < CAPACITY {
                        model.push_back(next);
                    }
                }
                Op::PushOrOverflow => {
                    let global = Global::default();
                    ring.push_or_overflow(next, &global);
                    let mut expected: Vec<_> = Vec::new();
                    if model.len() == CAPACITY {
                        expected.extend(model.drain(..CAPACITY / 2));
                        expected.push(next);
                    } else {
                        model.push_back(next);
                    }
                    prop_assert_eq!(global.0.into_inner(), expected);
                }
                Op::Pop => prop_assert_eq!(ring.pop(), model.pop_front()),
                Op::Steal => {
                    let expected = match model.pop_front() {
                        Some(first) => Steal::Success { first, moved: 0 },
                        None => Steal::Empty,
                    };
                    prop_assert_eq!(stealer.steal(), expected);
                }
                Op::StealHalf => {
                    let mut thief = Worker::new(CAPACITY);
                    let half = model.len().div_ceil(2);
                    let mut expected: VecDeque<_> = model.drain(..half).collect();
                    match stealer.steal_into_and_pop(&mut thief, StealLimit::Half) {
                        Steal::Success { first, moved } => {
                            prop_assert_eq!(Some(first), expected.pop_front());
                            prop_assert_eq!(moved, expected.len());
                        }
                        other => prop_assert!(other == Steal::Empty && half == 0),
                    }
                    prop_assert_eq!(thief.drain().collect::<VecDeque<_>>(), expected);
                }
                Op::StealInto(n) => {
                    let mut thief = Worker::new(4);
                    let n = n.min(4).min(model.len());
                    let expected: Vec<_> = model.drain(..n).collect();
                    let stolen = stealer.steal_into(&mut thief, StealLimit::AtMost(n));
                    prop_assert_eq!(stolen == Steal::Empty, n == 0);
                    prop_assert_eq!(thief.drain().collect::<Vec<_>>(), expected);
                }
            }
            prop_assert_eq!(ring.len(), model.len());
            prop_assert_eq!(stealer.len(), model.len());
            prop_assert_eq!(ring.spare_capacity(), CAPACITY - model.len());
        }
    }
}
