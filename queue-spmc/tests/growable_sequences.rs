//! Any sequence of operations on a growable queue gives the results of a `VecDeque`.
#![cfg(all(feature = "deque", not(any(selvedge_loom, selvedge_shuttle))))]
use proptest::{prelude::*, test_runner::TestCaseResult};
use queue_spmc::{LocalQueue, LocalStealer, Steal, StealLimit, deque, fifo};
use std::{collections::VecDeque, iter::from_fn};

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

/// A kind of growable queue.
trait Growable: LocalQueue<u32> {
    /// Takes the owner's next item from the model.
    fn next_of(model: &mut VecDeque<u32>) -> Option<u32>;
    fn with_capacity(capacity: usize) -> Self;
    fn capacity(&self) -> usize;

    fn add(&mut self, items: impl IntoIterator<Item = u32>) {
        items
            .into_iter()
            .for_each(|item| assert!(self.push(item).is_ok()));
    }

    /// Takes all items of the model, in the owner's order.
    fn drained(mut model: VecDeque<u32>) -> Vec<u32> {
        from_fn(|| Self::next_of(&mut model)).collect()
    }
}

impl Growable for deque::Worker<u32> {
    fn next_of(model: &mut VecDeque<u32>) -> Option<u32> {
        model.pop_back()
    }
    fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity(capacity)
    }
    fn capacity(&self) -> usize {
        self.capacity()
    }
}

impl Growable for fifo::Worker<u32> {
    fn next_of(model: &mut VecDeque<u32>) -> Option<u32> {
        model.pop_front()
    }
    fn with_capacity(capacity: usize) -> Self {
        Self::with_capacity(capacity)
    }
    fn capacity(&self) -> usize {
        self.capacity()
    }
}

fn run<Q: Growable>(ops: Vec<Op>) -> TestCaseResult
where
    Q::Stealer: LocalStealer<u32, Worker = Q>,
{
    let mut queue = Q::with_capacity(4);
    let stealer = queue.stealer();
    let (mut model, mut next) = (VecDeque::new(), 0);
    for op in ops {
        match op {
            Op::Push(n) => {
                queue.add(next..next + n);
                model.extend(next..next + n);
                next += n;
            }
            Op::Pop(n) => {
                for _ in 0..n {
                    prop_assert_eq!(queue.pop(), Q::next_of(&mut model));
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
                let mut thief = Q::with_capacity(2);
                let taken: VecDeque<_> = model.drain(..n.min(model.len())).collect();
                let stolen = stealer.steal_into(&mut thief, StealLimit::AtMost(n));
                prop_assert_eq!(stolen == Steal::Empty, taken.is_empty());
                let got: Vec<_> = from_fn(|| thief.pop()).collect();
                prop_assert_eq!(got, Q::drained(taken));
            }
            Op::StealHalfAndPop => {
                let mut thief = Q::with_capacity(2);
                let half = model.len().div_ceil(2);
                let mut taken: VecDeque<_> = model.drain(..half).collect();
                match stealer.steal_into_and_pop(&mut thief, StealLimit::Half) {
                    Steal::Success { first, moved } => {
                        prop_assert_eq!(Some(first), taken.pop_front());
                        prop_assert_eq!(moved, taken.len());
                    }
                    other => prop_assert!(other == Steal::Empty && taken.is_empty()),
                }
                let got: Vec<_> = from_fn(|| thief.pop()).collect();
                prop_assert_eq!(got, Q::drained(taken));
            }
            Op::StealHere(n) => {
                let mut victim = Q::with_capacity(2);
                victim.add(next..next + n);
                let _ = victim.stealer().steal_into(&mut queue, StealLimit::Half);
                model.extend(next..next + n.div_ceil(2));
                next += n;
            }
        }
        prop_assert_eq!((queue.len(), stealer.len()), (model.len(), model.len()));
        prop_assert!(queue.capacity() >= model.len());
    }
    while queue.pop().is_some() {}
    prop_assert_eq!(queue.capacity(), 4);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn deque_behaves_as_a_vec_deque(ops in prop::collection::vec(op(), 0..100)) {
        run::<deque::Worker<u32>>(ops)?;
    }

    #[test]
    fn fifo_behaves_as_a_vec_deque(ops in prop::collection::vec(op(), 0..100)) {
        run::<fifo::Worker<u32>>(ops)?;
    }
}
