//! Any sequence of operations has the same effect on an injector as on a `VecDeque`.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use proptest::prelude::*;
use queue_global::{Boxed, Injector, List};
use std::collections::VecDeque;

#[derive(Clone, Debug)]
enum Op {
    Push,
    Batch(u8),
    Pop,
    PopN(u8),
    Split(u8),
    Requeue,
    RequeueBatch(u8),
    Close,
    Count,
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => Just(Op::Push),
        2 => (0..6u8).prop_map(Op::Batch),
        3 => Just(Op::Pop),
        2 => (0..6u8).prop_map(Op::PopN),
        1 => (0..6u8).prop_map(Op::Split),
        2 => Just(Op::Requeue),
        2 => (0..6u8).prop_map(Op::RequeueBatch),
        1 => Just(Op::Close),
        1 => Just(Op::Count),
    ]
}

proptest! {
    #[test]
    fn injector_behaves_as_a_vec_deque(ops in prop::collection::vec(op(), 0..60)) {
        let queue: Injector<Boxed<u32>> = Injector::new();
        let (mut model, mut next, mut closed) = (VecDeque::new(), 0, false);
        let mut node = || { next += 1; Box::new(Boxed::new(next)) };
        for op in ops {
            match op {
                Op::Push => {
                    let node = node();
                    let n = node.value;
                    prop_assert_eq!(queue.push(node).is_err(), closed);
                    if !closed { model.push_back(n) }
                }
                Op::Batch(n) => {
                    let nodes: Vec<_> = (0..n).map(|_| node()).collect();
                    let values: Vec<u32> = nodes.iter().map(|node| node.value).collect();
                    let list: List<Boxed<u32>> = nodes.into_iter().collect();
                    prop_assert_eq!(list.iter().len(), usize::from(n));
                    prop_assert!(list.iter().map(|node| &node.value).eq(&values));
                    prop_assert_eq!(queue.push_batch(list).is_err(), closed);
                    if !closed { model.extend(values) }
                }
                Op::Pop => prop_assert_eq!(queue.pop().map(|n| n.value), model.pop_front()),
                Op::PopN(n) => {
                    let got: Vec<_> = queue.pop_n(n.into()).into_iter().map(|n| n.value).collect();
                    let n = usize::from(n).min(model.len());
                    prop_assert_eq!(got, model.drain(..n).collect::<Vec<_>>());
                }
                Op::Split(n) => {
                    let mut all = queue.pop_n(usize::MAX);
                    let mut front = all.split_off_front(n.into());
                    prop_assert_eq!(front.len(), usize::from(n).min(model.len()));
                    front.append(&mut all);
                    prop_assert!(all.is_empty());
                    queue.requeue_batch(front);
                }
                Op::Requeue => {
                    let node = node();
                    model.push_back(node.value);
                    queue.requeue(node);
                }
                Op::RequeueBatch(n) => {
                    let list: List<Boxed<u32>> = (0..n).map(|_| node()).collect();
                    model.extend(list.iter().map(|node| node.value));
                    queue.requeue_batch(list);
                }
                Op::Close => { prop_assert_eq!(queue.close(), !closed); closed = true; }
                Op::Count => {
                    prop_assert_eq!(queue.count(), model.len());
                    prop_assert_eq!(queue.len(), model.len());
                }
            }
            // All pushed items count as one until a consumer has moved them.
            prop_assert!(queue.len() <= model.len());
            prop_assert!(queue.len() >= model.len().min(1));
            prop_assert_eq!(queue.is_empty(), model.is_empty());
        }
    }
}
