//! Counts how often a task with a budget polls the futures of a set. In some sets each future has a
//! share of the budget, by `sub_budget`.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use coop_budget::{Budget, OnExhausted, Scope, consume, sub_budget};
use futures::{
    StreamExt,
    future::{BoxFuture, FutureExt, join_all},
    stream::FuturesUnordered,
    task::noop_waker,
};
use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll, Waker},
};

/// A runtime of one task, which defers wakes.
#[derive(Default)]
struct Runtime {
    deferred: RefCell<Vec<Waker>>,
    polls: Cell<u64>,
}

impl OnExhausted for Runtime {
    fn defer(&self, waker: &Waker) {
        self.deferred.borrow_mut().push(waker.clone());
    }
}

impl Runtime {
    /// Polls `task` to completion with the default budget, and returns the number of polls.
    fn run(task: impl Future<Output = ()>) -> u64 {
        let runtime = Self::default();
        let mut task = pin!(task);
        let waker = noop_waker();
        loop {
            runtime.polls.set(runtime.polls.get() + 1);
            let poll = || task.as_mut().poll(&mut Context::from_waker(&waker));
            if Scope::new(Budget::DEFAULT)
                .hook(&runtime)
                .run(poll)
                .is_ready()
            {
                return runtime.polls.get();
            }
            for waker in runtime.deferred.take() {
                waker.wake();
            }
        }
    }
}

/// Counts the polls of the future that it wraps.
struct Counted<F>(Arc<AtomicU64>, F);

impl<F: Future + Unpin> Future for Counted<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.0.fetch_add(1, Relaxed);
        self.1.poll_unpin(cx)
    }
}

async fn operations(n: u32) {
    for _ in 0..n {
        consume().await;
    }
}

/// Counts the polls of `n` futures of 8 operations each, in the set that `set` makes of them.
fn polls<S: Future<Output = ()>>(
    n: usize,
    set: impl FnOnce(Vec<Counted<BoxFuture<'static, ()>>>) -> S,
) -> u64 {
    let count = Arc::new(AtomicU64::new(0));
    let futures = (0..n).map(|_| Counted(count.clone(), operations(8).boxed()));
    Runtime::run(set(futures.collect()));
    count.load(Relaxed)
}

async fn drain<F: Future>(mut set: FuturesUnordered<F>) {
    while set.next().await.is_some() {}
}

const EIGHT: Budget = Budget::new(8);

#[test]
fn futures_unordered_with_shares_costs_linear_polls() {
    let plain = |n| polls(n, |futures| drain(futures.into_iter().collect()));
    let shared = |n| {
        polls(n, |futures| {
            drain(futures.into_iter().map(|f| sub_budget(EIGHT, f)).collect())
        })
    };
    println!(
        "FuturesUnordered: plain {} {}, shares {} {}",
        plain(1_000),
        plain(2_000),
        shared(1_000),
        shared(2_000)
    );
    assert_eq!([shared(1_000), shared(2_000)], [1_000, 2_000]);
    assert!(
        plain(2_000) > 3 * plain(1_000),
        "quadratic: {} {}",
        plain(1_000),
        plain(2_000)
    );
}

#[test]
fn join_all_with_shares_costs_linear_polls() {
    let plain = |n| polls(n, |futures| async { drop(join_all(futures).await) });
    let shared = |n| {
        polls(n, |futures| async {
            drop(join_all(futures.into_iter().map(|f| sub_budget(EIGHT, f))).await);
        })
    };
    println!(
        "join_all: plain {} {}, shares {} {}",
        plain(1_000),
        plain(2_000),
        shared(1_000),
        shared(2_000)
    );
    assert_eq!([shared(1_000), shared(2_000)], [1_000, 2_000]);
    assert!(
        plain(2_000) > 3 * plain(1_000),
        "quadratic: {} {}",
        plain(1_000),
        plain(2_000)
    );
}

/// Counts the polls of all nodes and leaves of a tree. Each node is a set of `width` children.
fn tree(depth: u32, width: usize, shares: bool) -> u64 {
    fn node(
        depth: u32,
        width: usize,
        shares: bool,
        count: Arc<AtomicU64>,
    ) -> BoxFuture<'static, ()> {
        if depth == 0 {
            return Counted(count, operations(8).boxed()).boxed();
        }
        let children = (0..width).map(|_| node(depth - 1, width, shares, count.clone()));
        let set = match shares {
            true => drain(children.map(|f| sub_budget(Budget::UNLIMITED, f)).collect()).boxed(),
            false => drain(children.collect()).boxed(),
        };
        Counted(count, set).boxed()
    }
    let count = Arc::new(AtomicU64::new(0));
    Runtime::run(node(depth, width, shares, count.clone()));
    count.load(Relaxed)
}

#[test]
fn tree_of_sets_with_shares_costs_linear_polls() {
    let nodes: u64 = (0..=5).map(|depth| 4u64.pow(depth)).sum();
    let (plain, shared) = (tree(5, 4, false), tree(5, 4, true));
    println!("tree of depth 5, {nodes} nodes: plain {plain}, shares {shared}");
    assert!(shared < 3 * nodes, "{shared} polls of {nodes} nodes");
    assert!(plain > shared, "{plain} {shared}");
}
