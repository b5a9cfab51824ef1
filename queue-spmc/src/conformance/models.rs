//! Models of the conformance checks. A correct queue passes. A queue whose push has two steps
//! fails, although it loses an item only if another thread pushes between the two steps.
use super::{Order, Subject, Token, concurrent_pushers_lose_no_item, overflow};
use crate::Overflow;
use alloc::collections::VecDeque;
use sync_shim::{model_must_fail, sync::Mutex};

/// A locked queue. If `ATOMIC` is true, a push locks once. Otherwise it locks twice, and overwrites
/// items that another thread pushes in between.
struct Locked<const ATOMIC: bool>(Mutex<VecDeque<Token>>);

impl<const ATOMIC: bool> Overflow<Token> for Locked<ATOMIC> {
    fn push(&self, item: Token) {
        if ATOMIC {
            return self.0.lock().push_back(item);
        }
        let mut queue = core::mem::take(&mut *self.0.lock());
        queue.push_back(item);
        *self.0.lock() = queue;
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = Token>) {
        self.0.lock().extend(batch);
    }
}

impl<const ATOMIC: bool> Subject for Locked<ATOMIC> {
    type Item = Token;
    const ORDER: Order = Order::Fifo;

    fn new() -> Self {
        Self(Mutex::new(VecDeque::new()))
    }

    fn item(token: Token) -> Token {
        token
    }

    fn token(item: Token) -> Token {
        item
    }

    fn take(&self) -> Option<Token> {
        self.0.lock().pop_front()
    }
}

#[test]
fn kit_passes_a_locked_queue() {
    overflow::<Locked<true>>();
}

#[test]
fn push_that_locks_twice_loses_an_item() {
    model_must_fail(
        "concurrent_pushers_lose_no_item: lost",
        concurrent_pushers_lose_no_item::<Locked<false>>,
    );
}
