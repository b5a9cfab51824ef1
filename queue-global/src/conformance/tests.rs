//! Each check finds the faults that it is meant for. The panic's message begins with the check's
//! name.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use super::{Subject, Token, linked};
use crate::Linked;
use alloc::{boxed::Box, string::String};
use core::{cell::Cell, mem, ptr::NonNull};
use std::{cell::RefCell, collections::HashMap, panic::catch_unwind, thread_local};
use sync_shim::conformance::{Account, bury};

const RIGHT: u8 = 0;
const NODE_MOVES: u8 = 1;
const CONTENT_IS_OF_ANOTHER_NODE: u8 = 2;
const LINK_IS_SET_AT_FIRST: u8 = 3;
const LINK_LOSES_ITS_MARK: u8 = 4;
const LINK_IS_SHARED: u8 = 5;
const DROP_LEAKS: u8 = 6;
const DROP_DROPS_TWICE: u8 = 7;
const CONTENT_STAYS_WITH_THE_THREAD: u8 = 8;
const LOSES_TOKEN_AT_THIRD_USE: u8 = 9;

/// A node with a fault.
#[repr(align(16))]
struct Node<const FAULT: u8> {
    next: Cell<Option<NonNull<Self>>>,
    token: Option<Token>,
    /// The number of times that `into_ptr` took a handle of this node apart.
    apart: u8,
}

struct Handle<const FAULT: u8>(Box<Node<FAULT>>);

// SAFETY: the holder of a handle has the node alone. Some faults are unsound on purpose.
unsafe impl<const FAULT: u8> Send for Handle<FAULT> {}

/// Makes a second `Token` of the same token.
fn twin(token: &Token) -> Token {
    // SAFETY: unsound on purpose. The kit notices the second `Token` of a token before it would
    // free the token's data a second time.
    unsafe { core::ptr::read(token) }
}

impl<const FAULT: u8> Drop for Handle<FAULT> {
    fn drop(&mut self) {
        let Some(token) = self.0.token.take() else {
            return;
        };
        match FAULT {
            DROP_LEAKS => bury(token),
            DROP_DROPS_TWICE => drop((twin(&token), token)),
            _ => drop(token),
        }
    }
}

thread_local! {
    static ASIDE: RefCell<HashMap<usize, Token>> = RefCell::default();
    static SHARED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: unsound on purpose, unless there is no fault.
unsafe impl<const FAULT: u8> Linked for Node<FAULT> {
    type Handle = Handle<FAULT>;

    fn into_ptr(mut handle: Handle<FAULT>) -> NonNull<Self> {
        let token = handle.0.token.take();
        let mut node = Box::new(Node {
            next: Cell::new(handle.0.next.get()),
            token: None,
            apart: 0,
        });
        if FAULT != NODE_MOVES {
            mem::swap(&mut node, &mut handle.0);
        }
        let at = NonNull::from(Box::leak(node));
        // SAFETY: the node was just leaked.
        let node = unsafe { &mut *at.as_ptr() };
        node.apart += 1;
        match FAULT {
            LOSES_TOKEN_AT_THIRD_USE if node.apart == 3 => bury(token),
            CONTENT_IS_OF_ANOTHER_NODE => ASIDE.with_borrow_mut(|aside| {
                let height = aside.len();
                aside.extend(token.map(|token| (height, token)));
            }),
            CONTENT_STAYS_WITH_THE_THREAD => ASIDE.with_borrow_mut(|aside| {
                aside.extend(token.map(|token| (at.addr().get(), token)));
            }),
            _ => node.token = token,
        }
        at
    }

    unsafe fn from_ptr(node: NonNull<Self>) -> Handle<FAULT> {
        // SAFETY: `into_ptr` leaked the node.
        let mut node = unsafe { Box::from_raw(node.as_ptr()) };
        match FAULT {
            CONTENT_IS_OF_ANOTHER_NODE => {
                node.token = ASIDE.with_borrow_mut(|aside| aside.remove(&(aside.len() - 1)));
            }
            CONTENT_STAYS_WITH_THE_THREAD => {
                let at = (&raw const *node).addr();
                node.token = ASIDE.with_borrow_mut(|aside| aside.remove(&at));
            }
            _ => {}
        }
        Handle(node)
    }

    unsafe fn next(node: NonNull<Self>) -> Option<NonNull<Self>> {
        if FAULT == LINK_IS_SHARED {
            return NonNull::new(core::ptr::with_exposed_provenance_mut(SHARED.get()));
        }
        // SAFETY: the caller owns the node.
        unsafe { node.as_ref() }.next.get()
    }

    unsafe fn set_next(node: NonNull<Self>, mut next: Option<NonNull<Self>>) {
        if FAULT == LINK_IS_SHARED {
            return SHARED.set(next.map_or(0, |next| next.as_ptr().expose_provenance()));
        }
        if FAULT == LINK_LOSES_ITS_MARK {
            next = next.and_then(|next| NonNull::new(next.as_ptr().map_addr(|at| at & !1)));
        }
        // SAFETY: as above.
        unsafe { node.as_ref() }.next.set(next);
    }
}

struct Nodes<const FAULT: u8>;

impl<const FAULT: u8> Subject for Nodes<FAULT> {
    type Node = Node<FAULT>;

    fn node(token: Token) -> Handle<FAULT> {
        let first = (FAULT == LINK_IS_SET_AT_FIRST).then_some(NonNull::dangling());
        Handle(Box::new(Node {
            next: Cell::new(first),
            token: Some(token),
            apart: 0,
        }))
    }

    fn token(mut node: Handle<FAULT>) -> Token {
        let lost = || Account::new("nobody").token();
        node.0.token.take().unwrap_or_else(lost)
    }
}

fn said<const FAULT: u8>() -> String {
    let panic = catch_unwind(linked::<Nodes<FAULT>>).expect_err("the kit must find the fault");
    *panic.downcast::<String>().expect("the panic has a message")
}

#[test]
fn kit_passes_a_node_without_a_fault() {
    linked::<Nodes<RIGHT>>();
}

#[test]
fn each_fault_is_found_and_named() {
    let handles = "a_handle_taken_apart_is_the_same_put_together: ";
    let links = "the_link_holds_what_was_written: ";
    for (said, check, name) in [
        (said::<NODE_MOVES>(), handles, "the node is elsewhere"),
        (
            said::<CONTENT_IS_OF_ANOTHER_NODE>(),
            handles,
            "token 2 is in the place of 1",
        ),
        (
            said::<LINK_IS_SET_AT_FIRST>(),
            links,
            "a new node's link is something",
        ),
        (
            said::<LINK_LOSES_ITS_MARK>(),
            links,
            "Some(0x1) was written, None is read",
        ),
        (said::<LINK_IS_SHARED>(), links, "two nodes have one link"),
        (
            said::<LOSES_TOKEN_AT_THIRD_USE>(),
            "lists_and_queues_keep_every_node: ",
            "a token of another check",
        ),
        (
            said::<DROP_LEAKS>(),
            "dropped_queue_drops_its_items: ",
            "leaked",
        ),
        (
            said::<DROP_DROPS_TWICE>(),
            "dropped_queue_drops_its_items: ",
            "doubled",
        ),
        (
            said::<CONTENT_STAYS_WITH_THE_THREAD>(),
            "threads_pass_nodes_on: ",
            "a token of another check",
        ),
    ] {
        assert!(
            said.starts_with(check) && said.contains(name),
            "{said:?}, not {check}{name}"
        );
    }
}
