//! Checks of somebody's [`Overflow`]. Feature `conformance`, for tests.
//!
//! ```
//! use queue_spmc::{Overflow, conformance::{Order, Subject, Token, overflow}};
//! use std::{collections::VecDeque, sync::Mutex};
//!
//! /// Somebody's queue behind a ring.
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

/// An overflow to be checked.
pub trait Subject: Overflow<Self::Item> + Send + Sync + Sized + 'static {
    /// What is queued.
    type Item: Send;
    /// In which order items come out of it.
    const ORDER: Order;

    /// An empty one.
    fn new() -> Self;

    /// An item that holds the token.
    fn item(token: Token) -> Self::Item;

    /// The token again.
    fn token(item: Self::Item) -> Token;

    /// Takes an item out, if there is one.
    fn take(&self) -> Option<Self::Item>;
}

/// Runs all checks: one thread's, and then a pusher against a consumer, under loom with up to three preemptions.
///
/// # Panics
/// When one fails, in words that begin with its name; or when the checks don't end.
pub fn overflow<S: Subject>() {
    let checks = [
        check("each_item_comes_out_once", each_item_comes_out_once::<S>),
        check("a_full_ring_spills_whole", a_full_ring_spills_whole::<S>),
        check("what_is_left_is_dropped", what_is_left_is_dropped::<S>),
        check(
            "pushers_lose_nothing_to_each_other",
            pushers_lose_nothing_to_each_other::<S>,
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

/// Takes until nothing is left, and settles.
fn take_all<S: Subject>(subject: &S, account: &Account) -> Vec<usize> {
    let items = iter::from_fn(|| subject.take());
    items.map(|item| account.settle(S::token(item))).collect()
}

/// Single items and batches, one without an item among them, come out once, in the promised order.
///
/// # Panics
/// When they don't.
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
    // Once more, as it was emptied.
    push_batch(&subject, &account, 2);
    push(&subject, &account);
    let came = take_all(&subject, &account);
    account.assert_all_back();
    account.assert_order(S::ORDER, &came);
}

/// What a ring overflows, in the middle of its batches, and what it keeps are all there is.
///
/// # Panics
/// When they aren't.
pub fn a_full_ring_spills_whole<S: Subject>() {
    let account = Account::new("a_full_ring_spills_whole");
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

/// An overflow that goes drops what is in it.
///
/// # Panics
/// When it doesn't, or does so twice.
pub fn what_is_left_is_dropped<S: Subject>() {
    let account = Account::new("what_is_left_is_dropped");
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

/// Two threads that push, while one of them takes: everything comes out once, each thread's in the promised order if that is first in, first out.
///
/// # Panics
/// When it doesn't.
pub fn pushers_lose_nothing_to_each_other<S: Subject>() {
    let account = Account::new("pushers_lose_nothing_to_each_other");
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
