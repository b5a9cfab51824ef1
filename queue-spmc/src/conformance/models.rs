//! The kit under the model, on a queue that passes and on one that only another thread's push in between betrays.
use super::{Order, Subject, Token, overflow, pushers_lose_nothing_to_each_other};
use crate::Overflow;
use alloc::collections::VecDeque;
use sync_shim::{model_must_fail, sync::Mutex};

/// A locked queue. `ATOMIC`: a push is one turn of the lock.
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
fn a_locked_queue_passes() {
    overflow::<Locked<true>>();
}

#[test]
fn a_push_in_two_turns_of_the_lock_loses_an_item() {
    model_must_fail(
        "pushers_lose_nothing_to_each_other: lost",
        pushers_lose_nothing_to_each_other::<Locked<false>>,
    );
}
