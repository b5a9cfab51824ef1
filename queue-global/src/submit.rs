//! The way in: a stack that anyone pushes to with one read-modify-write, and that a consumer takes whole.
//!
//! | field | written by |
//! |---|---|
//! | `top`: the newest node, and two bits | all, by read-modify-writes |
//! | the nodes' links | who pushes, before; who took the stack, after |
//!
//! 1. Links lead from `top`, the newest, to the oldest, whose link is `None`.
//! 2. The bit ONE says that the node at `top` is the only one. It is set by who pushes to an empty stack, and not by the next. So a consumer may take the only
//!    node with an exchange from what it read to the empty stack: if the same node came back meanwhile with the same bit, it is again the only one. Nobody looks into a
//!    node that it doesn't own.
//! 3. The bit CLOSED stays.
//! 4. Every change of `top` is a read-modify-write, so that each continues the release sequences of those before: who acquires from the last push has the
//!    nodes of all, and what the last consumer did before it took the stack.
use crate::{Linked, List};
use core::ptr::{self, NonNull};
use sync_shim::atomic::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed},
    Retire,
};

const ONE: usize = 1;
const CLOSED: usize = 2;

pub(crate) struct Stack<T>(AtomicPtr<T>);

/// What `top` holds.
struct Top<T>(*mut T);

impl<T> Clone for Top<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Top<T> {}

impl<T> Top<T> {
    fn new(node: *mut T, bits: usize) -> Self {
        Self(node.map_addr(|address| address | bits))
    }

    fn has(self, bit: usize) -> bool {
        self.0.addr() & bit != 0
    }

    fn node(self) -> Option<NonNull<T>> {
        NonNull::new(self.0.map_addr(|address| address & !(ONE | CLOSED)))
    }

    fn closed(self) -> usize {
        self.0.addr() & CLOSED
    }
}

impl<T: Linked> Stack<T> {
    const ALIGNED: () = assert!(
        align_of::<T>() > ONE | CLOSED,
        "a node's address has two bits to spare: align it to 4"
    );

    pub(crate) fn new() -> Self {
        const { Self::ALIGNED };
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    fn exchange(&self, from: Top<T>, to: Top<T>) -> Result<(), Top<T>> {
        // Ordering: Release publishes the pusher's node and link to `look`, `take` and `take_only`; Acquire, for `take_only`, from the pusher, who may have pushed the
        // node again since the look. A failure's value is only expected by the next exchange.
        match self.0.compare_exchange_weak(from.0, to.0, AcqRel, Relaxed) {
            Ok(_) => Ok(()),
            Err(now) => Err(Top(now)),
        }
    }

    /// Puts a node on top, or gives it back when the stack is closed and that matters. One read-modify-write.
    #[inline]
    pub(crate) fn push(&self, node: NonNull<T>, even_closed: bool) -> Result<(), NonNull<T>> {
        // Ordering: Relaxed, for the exchange to expect.
        let mut top = Top(self.0.load(Relaxed));
        loop {
            if top.has(CLOSED) && !even_closed {
                // SAFETY: the caller's node, not in the stack.
                unsafe { T::set_next(node, None) };
                return Err(node);
            }
            let below = top.node();
            // SAFETY: the caller's node, not in the stack yet.
            unsafe { T::set_next(node, below) };
            let one = if below.is_none() { ONE } else { 0 };
            let new = Top::new(node.as_ptr(), one | top.closed());
            match self.exchange(top, new) {
                Ok(()) => return Ok(()),
                Err(now) => top = now,
            }
        }
    }

    /// Whether there are none, one or more nodes.
    #[inline]
    pub(crate) fn look(&self) -> Look<T> {
        // Ordering: Acquire, from the consumer that took the stack last, by rule 4: what it announced before is seen after.
        let top = Top(self.0.load(Acquire));
        match top.node() {
            None => Look::Empty,
            Some(node) if top.has(ONE) => Look::One(Only(top, node)),
            Some(_) => Look::More,
        }
    }

    /// Rule 2. `None` if it is not the only one any more, or is gone.
    #[inline]
    pub(crate) fn take_only(&self, only: Only<T>) -> Option<NonNull<T>> {
        let empty = Top::new(ptr::null_mut(), only.0.closed());
        self.exchange(only.0, empty).ok().map(|()| only.1)
    }

    /// Takes all, oldest first. The caller keeps `close` out meanwhile.
    pub(crate) fn take(&self) -> List<T> {
        // Ordering: Relaxed, CLOSED doesn't change meanwhile.
        let closed = Top(self.0.load(Relaxed)).closed();
        let empty = Top::<T>::new(ptr::null_mut(), closed);
        // Ordering: Acquire from all pushers (rule 4); Release announces to `look` what the caller did before.
        let top = Top(self.0.swap(empty.0, AcqRel));
        let newest = top.node();
        let (mut oldest, mut at, mut len) = (None, newest, 0);
        while let Some(node) = at {
            // SAFETY: the stack was taken, so its nodes are the caller's.
            at = unsafe { T::next(node) };
            // SAFETY: as above.
            unsafe { T::set_next(node, oldest) };
            oldest = Some(node);
            len += 1;
        }
        // SAFETY: the links lead from the oldest to the newest, `len` nodes, all of them the caller's.
        unsafe { List::from_parts(oldest, newest, len) }
    }

    /// Refuses pushes from now on. False when it did already. The caller keeps `take` out meanwhile.
    pub(crate) fn close(&self) -> bool {
        // Ordering: Relaxed, for the exchange to expect.
        let mut top = Top(self.0.load(Relaxed));
        loop {
            if top.has(CLOSED) {
                return false;
            }
            match self.exchange(top, Top::new(top.0, CLOSED)) {
                Ok(()) => return true,
                Err(now) => top = now,
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Acquire, from who closed it.
        Top(self.0.load(Acquire)).has(CLOSED)
    }
}

impl<T> Stack<T> {
    pub(crate) fn retire(&mut self) {
        self.0.retire();
    }
}

pub(crate) enum Look<T> {
    Empty,
    One(Only<T>),
    More,
}

/// The only node, and what `top` was.
pub(crate) struct Only<T>(Top<T>, NonNull<T>);
