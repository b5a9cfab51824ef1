//! Any sequence of operations does to a deque what it does to a `VecDeque`.
#![cfg(all(feature = "deque", not(any(selvedge_loom, selvedge_shuttle))))]
use proptest::prelude::*;
use queue_spmc::{Steal, StealLimit, deque::Worker};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
enum Op {
    Push(u32),
    Pop(u32),
    Steal,
    StealInto(usize),
    StealHalfAndPop,
    StealHere(u32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (1..40u32).prop_map(Op::Push),
        4 => (1..40u32).prop_map(Op::Pop),
        2 => Just(Op::Steal),
        1 => (0..6usize).prop_map(Op::StealInto),
        1 => Just(Op::StealHalfAndPop),
        1 => (0..6u32).prop_map(Op::StealHere),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_deque_is_a_vec_deque(ops in prop::collection::vec(op(), 0..100)) {
        let mut deque = Worker::with_capacity(4);
        let stealer = deque.stealer();
        let (mut model, mut next) = (VecDeque::new(), 0);
        for op in ops {
            match op {
                Op::Push(n) => {
                    deque.extend(next..next + n);
                    model.extend(next..next + n);
                    next += n;
                }
                Op::Pop(n) => {
                    for _ in 0..n {
                        prop_assert_eq!(deque.pop(), model.pop_back());
                    }
                }
                Op::Steal => {
                    let expected = match model.pop_front() {
                        Some(first) => Steal::Success { first, moved: 0 },
                        None => Steal::Empty,
                    };
                    prop_assert_eq!(stealer.steal(), expected);
                }
                Op::StealInto(n) => {
                    let mut thief = Worker::new();
                    let expected: Vec<_> = model.drain(..n.min(model.len())).rev().collect();
                    let stolen = stealer.steal_into(&mut thief, StealLimit::AtMost(n));
                    prop_assert_eq!(stolen == Steal::Empty, expected.is_empty());
                    prop_assert_eq!(std::iter::from_fn(|| thief.pop()).collect::<Vec<_>>(), expected);
                }
                Op::StealHalfAndPop => {
                    let mut thief = Worker::new();
                    let half = model.len().div_ceil(2);
                    let mut taken: VecDeque<_> = model.drain(..half).collect();
                    match stealer.steal_into_and_pop(&mut thief, StealLimit::Half) {
                        Steal::Success { first, moved } => {
                            prop_assert_eq!(Some(first), taken.pop_front());
                            prop_assert_eq!(moved, taken.len());
                        }
                        other => prop_assert!(other == Steal::Empty && taken.is_empty()),
                    }
                    let got: Vec<_> = std::iter::from_fn(|| thief.pop()).collect();
                    prop_assert!(got.into_iter().eq(taken.into_iter().rev()));
                }
                Op::StealHere(n) => {
                    let mut victim = Worker::new();
                    victim.extend(next..next + n);
                    let _ = victim.stealer().steal_into(&mut deque, StealLimit::Half);
                    model.extend(next..next + n.div_ceil(2));
                    next += n;
                }
            }
            prop_assert_eq!((deque.len(), stealer.len()), (model.len(), model.len()));
            prop_assert!(deque.capacity() >= model.len());
        }
        while deque.pop().is_some() {}
        // Each pop halves it once, that of nothing too.
        (0..32).for_each(|_| assert!(deque.pop().is_none()));
        prop_assert_eq!(deque.capacity(), 4);
    }
}
