//! Checks for an implementation of [`Overflow`]. Feature `conformance`, for tests.
//!
//! A check sends [`Token`]s through the implementation. A token is *queued* until it comes out of
//! the queue (*back*) or is *dropped*. Each token must end as *back* or *dropped*, and only once.
//!
//! | check | finds |
//! |---|---|
//! | [`each_item_comes_out_once`] | an item that is lost, doubled or out of order |
//! | [`full_ring_overflows_every_item`] | an item that is lost when a ring overflows |
//! | [`dropped_queue_drops_its_items`] | an item that is leaked, or dropped twice, by the queue's drop |
//! | [`concurrent_pushers_lose_no_item`] | an item that is lost between two threads |
//!
//! [`overflow`] runs all of them.
//!
//! ```
//! use queue_spmc::{Overflow, conformance::{Order, Subject, Token, overflow}};
//! use std::{collections::VecDeque, sync::Mutex};
//!
//! /// Your queue behind a ring.
//! #[derive(Default)]
//! struct Shared(Mutex<VecDeque<Token>>);
//!
//! impl Overflow<Token> for Shared {
//!     fn push(&self, item: Token) {
//!         self.0.lock().unwrap().push_back(item);
//!     }
//!     fn push_batch(&self, batch: impl ExactSizeIterator<Item = Token>) {
//!         self.0.lock().unwrap().extend(batch);
//!     }
//! }
//!
//! impl Subject for Shared {
//!     type Item = Token;
//!     const ORDER: Order = Order::Fifo;
//!     fn new() -> Self {
//!         Self::default()
//!     }
//!     fn item(token: Token) -> Token {
//!         token
//!     }
//!     fn token(item: Token) -> Token {
//!         item
//!     }
//!     fn take(&self) -> Option<Token> {
//!         self.0.lock().unwrap().pop_front()
//!     }
//! }
//!
//! overflow::<Shared>();
//! ```
use crate::{Overflow, ring::Worker};
use alloc::vec::Vec;
use core::iter;
use sync_shim::{
    conformance::{Account, LIMIT, check, explore},
    sync::Arc,
    thread,
};

pub use sync_shim::conformance::{Order, Token};

/// An implementation of [`Overflow`] that is to be checked.
pub trait Subject: Overflow<Self::Item> + Send + Sync + Sized + 'static {
    /// The type of the queued items.
    type Item: Send;
    /// The order in which items come out.
    const ORDER: Order;

    /// Creates an empty queue.
    fn new() -> Self;

    /// Wraps a token in an item.
    fn item(token: Token) -> Self::Item;

    /// Returns the token of an item.
    fn token(item: Self::Item) -> Token;

    /// Takes an item out, if there is one.
    fn take(&self) -> Option<Self::Item>;
}

/// Runs all checks: three with one thread, and one in which two threads push. Under loom, all
/// executions with up to three preemptions are explored.
///
/// # Panics
/// If a check fails: the message begins with the name of the check. Also if the checks do not end
/// in time.
pub fn overflow<S: Subject>() {
    let checks = [
        check("each_item_comes_out_once", each_item_comes_out_once::<S>),
        check(
            "full_ring_overflows_every_item",
            full_ring_overflows_every_item::<S>,
        ),
        check(
            "dropped_queue_drops_its_items",
            dropped_queue_drops_its_items::<S>,
        ),
        check(
            "concurrent_pushers_lose_no_item",
            concurrent_pushers_lose_no_item::<S>,
        ),
    ];
    explore(LIMIT, 3, checks);
}

fn push<S: Subject>(subject: &S, account: &Account) {
    subject.push(S::item(account.token()));
}

fn push_batch<S: Subject>(subject: &S, account: &Account, len: usize) {
    let batch: Vec<_> = (0..len).map(|_| S::item(account.token())).collect();
    subject.push_batch(batch.into_iter());
}

/// Takes items until none is left, settles their tokens, and returns the tokens' numbers.
fn take_all<S: Subject>(subject: &S, account: &Account) -> Vec<usize> {
    let items = iter::from_fn(|| subject.take());
    items.map(|item| account.settle(S::token(item))).collect()
}

/// Checks that single items and batches, including an empty batch, come out once and in the
/// promised order.
///
/// # Panics
/// If an item is lost, doubled or out of order.
pub fn each_item_comes_out_once<S: Subject>() {
    let account = Account::new("each_item_comes_out_once");
    let subject = S::new();
    push(&subject, &account);
    push_batch(&subject, &account, 3);
    push_batch(&subject, &account, 0);
    push(&subject, &account);
    push_batch(&subject, &account, 2);
    let came = take_all(&subject, &account);
    account.assert_all_back();
    account.assert_order(S::ORDER, &came);
    // Repeats the check on the queue, which is empty now.
    push_batch(&subject, &account, 2);
    push(&subject, &account);
    let came = take_all(&subject, &account);
    account.assert_all_back();
    account.assert_order(S::ORDER, &came);
}

/// Checks that no item of a full ring is lost: each either overflows or stays.
///
/// # Panics
/// If an item is missing.
pub fn full_ring_overflows_every_item<S: Subject>() {
    let account = Account::new("full_ring_overflows_every_item");
    let subject = S::new();
    let mut ring = Worker::new(4);
    for _ in 0..9 {
        ring.push_or_overflow(S::item(account.token()), &subject);
    }
    take_all(&subject, &account);
    while let Some(item) = ring.pop() {
        account.settle(S::token(item));
    }
    account.assert_all_back();
}

/// Checks that the drop of the implementation drops the items that are left in it.
///
/// # Panics
/// If it does not drop them, or drops one twice.
pub fn dropped_queue_drops_its_items<S: Subject>() {
    let account = Account::new("dropped_queue_drops_its_items");
    let subject = S::new();
    push(&subject, &account);
    push_batch(&subject, &account, 3);
    if let Some(item) = subject.take() {
        account.settle(S::token(item));
    }
    push(&subject, &account);
    drop(subject);
    account.assert_none_left();
}

/// Checks that every item comes out once if two threads push, and one of them also takes. If the
/// promised order is FIFO, each thread's items come out in the order of that thread's pushes.
///
/// # Panics
/// If an item is lost, doubled or out of order.
pub fn concurrent_pushers_lose_no_item<S: Subject>() {
    let account = Account::new("concurrent_pushers_lose_no_item");
    let subject = Arc::new(S::new());
    let theirs = [account.token(), account.token()];
    let other = {
        let subject = subject.clone();
        thread::spawn(move || {
            theirs
                .into_iter()
                .for_each(|token| subject.push(S::item(token)))
        })
    };
    push_batch(&*subject, &account, 2);
    let mut came = Vec::new();
    came.extend(subject.take().map(|item| account.settle(S::token(item))));
    other.join().expect("a push doesn't panic");
    came.extend(take_all(&*subject, &account));
    account.assert_all_back();
    if S::ORDER == Order::Fifo {
        let (theirs, ours): (Vec<_>, Vec<_>) = came.iter().partition(|number| **number < 2);
        account.assert_order(S::ORDER, &theirs);
        account.assert_order(S::ORDER, &ours);
    }
}

#[cfg(test)]
mod models;
#[cfg(test)]
mod tests;
