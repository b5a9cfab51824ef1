//! An entry for the tests.
use std::ptr::NonNull;
use timer_wheel::{Entry, Node};

/// A boxed entry with a number.
pub struct Numbered {
    node: Node<Numbered>,
    pub id: u32,
}

// SAFETY: a box owns its content, which stays in place.
unsafe impl Entry for Numbered {
    type Handle = Box<Numbered>;

    fn into_ptr(handle: Box<Numbered>) -> NonNull<Numbered> {
        // SAFETY: a box is not null.
        unsafe { NonNull::new_unchecked(Box::into_raw(handle)) }
    }
    unsafe fn from_ptr(entry: NonNull<Numbered>) -> Box<Numbered> {
        // SAFETY: the pointer came from `into_raw`.
        unsafe { Box::from_raw(entry.as_ptr()) }
    }
    unsafe fn node(entry: NonNull<Numbered>) -> NonNull<Node<Numbered>> {
        // SAFETY: the entry is live.
        let node = unsafe { &raw mut (*entry.as_ptr()).node };
        // SAFETY: a field is not null.
        unsafe { NonNull::new_unchecked(node) }
    }
}

impl Numbered {
    pub fn new(id: u32) -> Box<Self> {
        Box::new(Self {
            node: Node::new(),
            id,
        })
    }
}
