//! Asserts that the public types in the list below are covariant, and which auto traits the public
//! types have. `src/variance.rs` asserts the invariant types.
mod common;

use common::Numbered;
use static_assertions::{assert_impl_all, assert_not_impl_any};
use std::{ptr::NonNull, rc::Rc};
use timer_wheel::{Entry, Expired, Key, Node, Step, Timers, Wheel};

type Long = for<'a> fn(&'a u8);
type Short = fn(&'static u8);

/// A type that is `Send` and not `Sync`, and one that is `Sync` and not `Send`.
type NotSync = std::cell::Cell<u8>;
type NotSend = std::sync::MutexGuard<'static, u8>;
type Neither = Rc<u8>;

/// Asserts that each `$from` can be used as a `$to`.
macro_rules! covariant {
    ($($from:ty => $to:ty,)*) => { $(const _: for<'a> fn(&'a (), $from) -> $to = |_, x| x;)* };
}

covariant! {
    Step<Long> => Step<Short>,
    Expired<Long> => Expired<Short>,
}

// A shared node gives no access to its content. A node is not `Unpin`, since a wheel links to it.
assert_impl_all!(Node<Neither>: Send, Sync);
assert_not_impl_any!(Node<u8>: Unpin);

assert_impl_all!(Key: Send, Sync, Unpin, Copy);
assert_impl_all!(Timers<NotSync>: Send, Unpin);
assert_impl_all!(Timers<NotSend>: Sync);
assert_not_impl_any!(Timers<NotSync>: Sync);
assert_not_impl_any!(Timers<NotSend>: Send);
assert_impl_all!(Step<u8>: Send, Sync);
assert_impl_all!(Expired<u8>: Send, Sync, Copy);

/// An entry that is not `Sync`, with a handle that is not `Send`.
struct Local {
    node: Node<Local>,
    _value: Neither,
}

// SAFETY: a box owns its content, which stays in place.
unsafe impl Entry for Local {
    type Handle = Box<Local>;

    fn into_ptr(handle: Box<Local>) -> NonNull<Local> {
        // SAFETY: a box is not null.
        unsafe { NonNull::new_unchecked(Box::into_raw(handle)) }
    }
    unsafe fn from_ptr(entry: NonNull<Local>) -> Box<Local> {
        // SAFETY: the pointer came from `into_raw`.
        unsafe { Box::from_raw(entry.as_ptr()) }
    }
    unsafe fn node(entry: NonNull<Local>) -> NonNull<Node<Local>> {
        // SAFETY: the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: a field is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}

// A wheel may go wherever its handles may go, and may move while it has entries.
assert_impl_all!(Wheel<Numbered>: Send, Sync, Unpin);
assert_not_impl_any!(Wheel<Local>: Send, Sync);

#[test]
fn wheel_of_local_entries_works_where_it_is() {
    let mut wheel = Wheel::<Local>::default();
    let (node, _value) = (Node::default(), Rc::new(0));
    wheel.insert(Box::new(Local { node, _value }), 1);
    assert!(wheel.pop_expired(1).is_some());
    assert_eq!(Numbered::new(1).id, 1);
}
