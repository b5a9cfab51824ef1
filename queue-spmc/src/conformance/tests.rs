//! Each check finds its fault, and its panic begins with the name of the check.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use super::{Order, Subject, Token, overflow};
use crate::Overflow;
use alloc::{collections::VecDeque, string::String};
use std::{
    mem,
    panic::catch_unwind,
    sync::{Mutex, PoisonError},
};
use sync_shim::conformance::bury;

const SINGLE_IS_LOST: u8 = 0;
const LAST_OF_A_BATCH_IS_LOST: u8 = 1;
const BATCH_IS_REVERSED: u8 = 2;
const ITEM_COMES_TWICE: u8 = 3;
const DROP_LEAKS: u8 = 4;
const DROP_DROPS_TWICE: u8 = 5;
const RIGHT: u8 = 6;
const ROOM_FOR_TWO_WHEN_EMPTY: u8 = 7;

/// A locked queue with a fault.
struct Faulty<const FAULT: u8>(Mutex<VecDeque<Token>>);

impl<const FAULT: u8> Faulty<FAULT> {
    fn with<R>(&self, f: impl FnOnce(&mut VecDeque<Token>) -> R) -> R {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Makes a second copy of a token.
fn twin(token: &Token) -> Token {
    // SAFETY: the copy breaks ownership on purpose. It is harmless: a `Token` keeps its `Account`
    // in a `ManuallyDrop`, and drops it only the first time that the token ends.
    unsafe { core::ptr::read(token) }
}

impl<const FAULT: u8> Overflow<Token> for Faulty<FAULT> {
    fn push(&self, item: Token) {
        self.with(|queue| {
            if FAULT != SINGLE_IS_LOST || queue.is_empty() {
                queue.push_back(item);
            } else {
                bury(item);
            }
        });
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = Token>) {
        self.with(|queue| {
            let keep = match FAULT {
                LAST_OF_A_BATCH_IS_LOST => batch.len().saturating_sub(1),
                ROOM_FOR_TWO_WHEN_EMPTY if queue.is_empty() => batch.len().min(2),
                _ => batch.len(),
            };
            let mut batch: VecDeque<_> = batch.take(keep).collect();
            if FAULT == BATCH_IS_REVERSED {
                batch.make_contiguous().reverse();
            }
            queue.append(&mut batch);
        });
    }
}

impl<const FAULT: u8> Drop for Faulty<FAULT> {
    fn drop(&mut self) {
        let queue = self.with(mem::take);
        match FAULT {
            DROP_LEAKS => bury(queue),
            DROP_DROPS_TWICE => {
                if let Some(token) = queue.front() {
                    drop(twin(token));
                }
            }
            _ => {}
        }
    }
}

impl<const FAULT: u8> Subject for Faulty<FAULT> {
    type Item = Token;
    const ORDER: Order = Order::Fifo;

    fn new() -> Self {
        Self(Mutex::default())
    }

    fn item(token: Token) -> Token {
        token
    }

    fn token(item: Token) -> Token {
        item
    }

    fn take(&self) -> Option<Token> {
        self.with(|queue| {
            let token = queue.pop_front()?;
            if FAULT == ITEM_COMES_TWICE && token.number() == 1 {
                queue.push_back(twin(&token));
            }
            Some(token)
        })
    }
}

fn said<const FAULT: u8>() -> String {
    let panic = catch_unwind(overflow::<Faulty<FAULT>>).expect_err("the kit must find the fault");
    *panic.downcast::<String>().expect("the panic has a message")
}

#[test]
fn kit_passes_a_correct_queue() {
    overflow::<Faulty<RIGHT>>();
}

#[test]
fn each_fault_is_found_and_named() {
    for (said, name) in [
        (
            said::<SINGLE_IS_LOST>(),
            "each_item_comes_out_once: lost: token 4 of 7 did not come out",
        ),
        (
            said::<LAST_OF_A_BATCH_IS_LOST>(),
            "each_item_comes_out_once: lost: token 3 of 7 was dropped",
        ),
        (
            said::<BATCH_IS_REVERSED>(),
            "each_item_comes_out_once: order",
        ),
        (
            said::<ITEM_COMES_TWICE>(),
            "each_item_comes_out_once: doubled: token 1 came out twice",
        ),
        (
            said::<ROOM_FOR_TWO_WHEN_EMPTY>(),
            "full_ring_overflows_every_item: lost: token 4 of 9 was dropped",
        ),
        (
            said::<DROP_LEAKS>(),
            "dropped_queue_drops_its_items: leaked: tokens [1, 2, 3, 4]",
        ),
        (
            said::<DROP_DROPS_TWICE>(),
            "dropped_queue_drops_its_items: doubled: token 1",
        ),
    ] {
        assert!(said.starts_with(name), "{said:?}, not {name:?}");
    }
}
