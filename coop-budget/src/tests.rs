//! What is granted, and what comes back.
use crate::*;
use proptest::prelude::*;
use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
};

fn cx() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

#[test]
fn outside_of_a_scope_everything_proceeds() {
    for _ in 0..1_000 {
        let Poll::Ready(progress) = poll_proceed(&mut cx()) else {
            panic!()
        };
        progress.made_progress();
    }
    assert_eq!(remaining(), None);
}

#[test]
fn exactly_the_budget_is_granted() {
    let granted = with_budget(Budget::DEFAULT, || {
        std::iter::from_fn(|| match pin!(consume()).poll(&mut cx()) {
            Poll::Ready(()) => Some(()),
            Poll::Pending => None,
        })
        .count()
    });
    assert_eq!(granted, 128);
    assert!(with_budget(Budget::new(0), || poll_proceed(&mut cx()).is_pending()));
}

#[test]
fn an_operation_without_progress_is_free() {
    with_budget(Budget::new(1), || {
        for _ in 0..3 {
            assert!(
                pin!(cooperative(std::future::pending::<()>()))
                    .poll(&mut cx())
                    .is_pending()
            );
            assert_eq!(remaining(), Some(1));
        }
        assert!(
            pin!(cooperative(std::future::ready(())))
                .poll(&mut cx())
                .is_ready()
        );
        assert!(!has_remaining());
        assert!(pin!(unconstrained(consume())).poll(&mut cx()).is_ready());
    });
}

#[test]
fn a_scope_ends_by_panic_too_and_a_charge_of_an_ended_scope_is_not_returned() {
    with_budget(Budget::new(5), || {
        let old = with_budget(Budget::new(5), || poll_proceed(&mut cx()));
        drop(old);
        assert_eq!(remaining(), Some(5));
        let _ = std::panic::catch_unwind(|| with_budget(Budget::new(1), || panic!("in a poll")));
        assert_eq!(remaining(), Some(5));
    });
    assert_eq!(remaining(), None);
}

#[derive(Clone, Debug)]
enum Op {
    Proceed,
    Keep,
    Return,
    Nest(u32, Vec<Op>),
}

fn op() -> impl Strategy<Value = Op> {
    let leaf = prop_oneof![3 => Just(Op::Proceed), 2 => Just(Op::Keep), 2 => Just(Op::Return)];
    leaf.prop_recursive(3, 40, 10, |inner| {
        (0..6u32, prop::collection::vec(inner, 0..10)).prop_map(|(n, ops)| Op::Nest(n, ops))
    })
}

/// Runs `ops` in a scope of `budget`, with operations of outer scopes in `open` that may end in it.
fn run(budget: u32, ops: &[Op], open: &mut Vec<Progress>) {
    with_budget(Budget::new(budget), || {
        for op in ops {
            let before = remaining().unwrap();
            match op {
                Op::Proceed => {
                    if let Poll::Ready(progress) = poll_proceed(&mut cx()) {
                        open.push(progress);
                    }
                }
                Op::Keep => {
                    if let Some(progress) = open.pop() {
                        progress.made_progress();
                        assert_eq!(remaining(), Some(before));
                    }
                }
                Op::Return => drop(open.pop()),
                Op::Nest(n, ops) => {
                    run(*n, ops, open);
                    assert_eq!(remaining(), Some(before));
                }
            }
            assert!(
                remaining().unwrap() <= budget,
                "more was returned than charged"
            );
        }
    });
}

proptest! {
    #[test]
    fn no_sequence_uses_more_than_the_budget(ops in prop::collection::vec(op(), 0..30), n in 0..20u32) {
        run(n, &ops, &mut Vec::new());
    }
}
