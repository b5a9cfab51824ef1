//! Checks that your own [`Linked`] keeps its contract: for tests, with the feature `conformance`.
//!
//! ```
//! use queue_global::{Boxed, conformance::{Subject, Token, linked}};
//!
//! /// The nodes to check: here those of this crate.
//! struct Nodes;
//!
//! impl Subject for Nodes {
//!     type Node = Boxed<Token>;
//!     fn node(token: Token) -> Box<Boxed<Token>> {
//!         Box::new(Boxed::new(token))
//!     }
//!     fn token(node: Box<Boxed<Token>>) -> Token {
//!         node.value
//!     }
//! }
//!
//! linked::<Nodes>();
//! ```
use crate::{DefaultLock, Injector, Linked, List};
use alloc::vec::Vec;
use core::ptr::{self, NonNull};
use sync_shim::{
    conformance::{Account, LIMIT, Order, check, explore},
    sync::Arc,
    thread,
};

pub use sync_shim::conformance::Token;

/// The nodes to be checked.
pub trait Subject: 'static {
    /// The node type.
    type Node: Linked<Handle: Send>;

    /// Makes a node that is in no list and holds the token.
    fn node(token: Token) -> <Self::Node as Linked>::Handle;

    /// Returns the token.
    fn token(node: <Self::Node as Linked>::Handle) -> Token;
}

type Queue<S> = Injector<<S as Subject>::Node, DefaultLock>;

/// Runs all checks. Two are about handles and links, two about lists and an injector on one thread,
/// and one is about an injector that two threads use. Loom explores each check with up to three
/// preemptions.
///
/// # Panics
/// If a check fails, with a message that begins with the check's name; or if the checks don't end.
pub fn linked<S: Subject>() {
    let checks = [
        check(
            "a_handle_taken_apart_is_the_same_put_together",
            a_handle_taken_apart_is_the_same_put_together::<S>,
        ),
        check(
            "the_link_holds_what_was_written",
            the_link_holds_what_was_written::<S>,
        ),
        check(
            "lists_and_queues_keep_every_node",
            lists_and_queues_keep_every_node::<S>,
        ),
        check(
            "dropped_queue_drops_its_items",
            dropped_queue_drops_its_items::<S>,
        ),
        check("threads_pass_nodes_on", threads_pass_nodes_on::<S>),
    ];
    explore(LIMIT, 3, checks);
}

fn nodes<S: Subject>(account: &Account, count: usize) -> List<S::Node> {
    (0..count).map(|_| S::node(account.token())).collect()
}

/// Checks that `from_ptr`, given a pointer from `into_ptr`, makes a handle of the same node, with
/// its content and at its address.
///
/// # Panics
/// If the check fails.
pub fn a_handle_taken_apart_is_the_same_put_together<S: Subject>() {
    let name = "a_handle_taken_apart_is_the_same_put_together";
    let account = Account::new(name);
    let all = [(); 3].map(|()| S::Node::into_ptr(S::node(account.token())));
    let [one, two, three] = all;
    assert!(
        one != two && one != three && two != three,
        "{name}: two nodes have one address"
    );
    let aligned = all.iter().all(|node| node.is_aligned());
    assert!(aligned, "{name}: a node isn't aligned");
    // The handles come back in the order of neither a queue nor a stack. So the check also fails
    // for a type that keeps its handles in a queue or a stack.
    for (node, number) in [(two, 1), (one, 0), (three, 2)] {
        // SAFETY: the handle was taken apart above, and not put together since.
        let handle = unsafe { S::Node::from_ptr(node) };
        let again = S::Node::into_ptr(handle);
        assert!(again == node, "{name}: the node is elsewhere");
        // SAFETY: as above.
        let handle = unsafe { S::Node::from_ptr(again) };
        let came = account.settle(S::token(handle));
        assert!(
            came == number,
            "{name}: token {came} is in the place of {number}"
        );
    }
    account.assert_all_back();
}

/// Checks that a node's link is `None` at first, and then holds the last value written to that
/// node, bit for bit.
///
/// # Panics
/// If the check fails.
pub fn the_link_holds_what_was_written<S: Subject>() {
    let name = "the_link_holds_what_was_written";
    let account = Account::new(name);
    let [one, two] = [(); 2].map(|()| S::Node::into_ptr(S::node(account.token())));
    // SAFETY: the handle was taken apart above, so the node is owned here.
    let read = |node| unsafe { S::Node::next(node) };
    // SAFETY: as above.
    let write = |node, next| unsafe { S::Node::set_next(node, next) };
    assert!(
        read(one).is_none(),
        "{name}: a new node's link is something"
    );
    let marks = (0..usize::BITS).map(|bit| 1 << bit).chain([usize::MAX, 3]);
    let links = marks
        .map(|mark| NonNull::new(ptr::without_provenance_mut(mark)))
        .chain([Some(two), Some(one), None]);
    for link in links {
        write(two, Some(one));
        write(one, link);
        let got = read(one);
        assert!(got == link, "{name}: {link:?} was written, {got:?} is read");
        assert!(read(two) == Some(one), "{name}: two nodes have one link");
    }
    write(two, None);
    for node in [one, two] {
        // SAFETY: the handle was taken apart above.
        account.settle(S::token(unsafe { S::Node::from_ptr(node) }));
    }
    account.assert_all_back();
}

/// Checks that items that go through a list and an injector, one by one and in batches, come out in
/// order, also when the same nodes go through again.
///
/// # Panics
/// If the check fails.
pub fn lists_and_queues_keep_every_node<S: Subject>() {
    let account = Account::new("lists_and_queues_keep_every_node");
    let queue = Queue::<S>::new();
    let mut list = nodes::<S>(&account, 3);
    for handle in nodes::<S>(&account, 2) {
        queue.requeue(handle);
    }
    // The second and the third round start with the links that the round before them left.
    for _ in 0..3 {
        while let Some(handle) = list.pop_front() {
            queue.requeue(handle);
        }
        list = queue.pop_n(4);
        list.append(&mut queue.pop_n(1));
        queue.requeue_batch(list);
        list = queue.pop_n(2);
    }
    list.append(&mut queue.pop_n(usize::MAX));
    let came: Vec<_> = list
        .into_iter()
        .map(|node| account.settle(S::token(node)))
        .collect();
    account.assert_all_back();
    // The first round puts items 0, 1 and 2 behind 3 and 4. Each later round puts the two oldest
    // items behind the three others.
    assert!(
        came == [2, 3, 4, 0, 1],
        "lists_and_queues_keep_every_node: order: {came:?} came"
    );
}

/// Checks that lists and injectors drop their nodes when they are dropped.
///
/// # Panics
/// If a node is leaked, or is dropped twice.
pub fn dropped_queue_drops_its_items<S: Subject>() {
    let account = Account::new("dropped_queue_drops_its_items");
    drop(nodes::<S>(&account, 2));
    let queue = Queue::<S>::new();
    queue.requeue_batch(nodes::<S>(&account, 3));
    queue.requeue(S::node(account.token()));
    drop(queue.pop());
    queue.requeue(S::node(account.token()));
    drop(queue);
    account.assert_none_left();
}

/// Checks that each node comes out once, while one thread pushes, and another pushes and pops. The
/// nodes of the first thread come out in order.
///
/// # Panics
/// If the check fails.
pub fn threads_pass_nodes_on<S: Subject>() {
    let account = Account::new("threads_pass_nodes_on");
    let queue = Arc::new(Queue::<S>::new());
    let theirs = [account.token(), account.token()];
    let other = {
        let queue = queue.clone();
        thread::spawn(move || {
            for token in theirs {
                queue.requeue(S::node(token));
            }
        })
    };
    let mut came = Vec::new();
    let mut take = || {
        let node = queue.pop()?;
        came.push(account.settle(S::token(node)));
        Some(())
    };
    take();
    queue.requeue(S::node(account.token()));
    take();
    other.join().expect("a push doesn't panic");
    while take().is_some() {}
    account.assert_all_back();
    came.retain(|number| *number < 2);
    account.assert_order(Order::Fifo, &came);
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
