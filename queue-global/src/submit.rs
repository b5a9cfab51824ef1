//! The push side of the injector: a stack. Any thread pushes a chain of nodes with one
//! read-modify-write, and a consumer takes the whole stack.
//!
//! | field | written by |
//! |---|---|
//! | `top`, a [`Top`] | all threads, by read-modify-writes |
//! | the nodes' links | the pusher, before its push; then the consumer that took the stack |
//!
//! The states EMPTY, ONE, MORE and LISTED of `top` are defined in [`top`](crate::top).
//!
//! Rules:
//!
//! 1. A chain leads from its oldest node to its newest. The newest node's link has the mark END and
//!    the address of the first node of the next older chain. A single node is a chain.
//! 2. `top` alone says at every moment what the queue holds. A push of a single node to an EMPTY
//!    queue sets ONE, and the pop of the last item sets EMPTY. Only the lock's holder changes the
//!    list. While the lock is free, the list is empty unless `top` is LISTED or MORE. So if an
//!    exchange finds the word that it expects, this word describes the queue at that moment. It
//!    does not matter whether `top` had other values since the thread read it. For example, another
//!    thread may have popped the node of ONE and pushed it again. If the exchange then finds ONE
//!    with this node, the node is the only one again.
//! 3. Only the lock's holder changes MORE to another state. So a holder that reads MORE may read
//!    the node's link: the node stays in the stack until the holder takes it. No other thread reads
//!    a node that it doesn't own.
//! 4. Every change of `top` is a read-modify-write, so each change continues the release sequences
//!    of the changes before it. A consumer that acquires from the last push has acquired the nodes
//!    of all pushes.
use crate::{
    Linked, List, link,
    top::{ALIGN, Holds, Top},
};
use core::{marker::PhantomData, ptr::NonNull};
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Relaxed, Release},
        Retire,
    },
    count::shared,
};

pub(crate) struct Stack<T>(AtomicUsize, PhantomData<*mut T>);

impl<T: Linked> Stack<T> {
    const ALIGNED: () = assert!(
        align_of::<T>() >= ALIGN,
        "a node's address has two bits to spare: align it to 4"
    );

    sync_shim::const_fn! {
        pub(crate) const fn new() -> Self {
            const { Self::ALIGNED };
            Self(shared(AtomicUsize::new(Top::new().0)), PhantomData)
        }
    }

    /// Reads the state of the queue, without any ordering.
    #[inline]
    pub(crate) fn look(&self) -> Top {
        // Ordering: Relaxed; the value is a hint, or confirmed by an exchange.
        Top(self.0.load(Relaxed))
    }

    /// Pushes a chain, and returns `true`. If the stack is closed and `even_closed` is not set,
    /// refuses the chain, and returns `false`. The last link of a refused chain still has the mark
    /// END, but its address may have changed. One read-modify-write.
    ///
    /// # Safety
    /// The links lead from `first` to `last`. The caller owns all these nodes until this returns
    /// `true`.
    #[inline]
    pub(crate) unsafe fn push(
        &self,
        first: NonNull<T>,
        last: NonNull<T>,
        even_closed: bool,
    ) -> bool {
        let mut top = self.look();
        loop {
            if top.is_closed() && !even_closed {
                return false;
            }
            // SAFETY: the node is the caller's, and not in the stack yet.
            unsafe { link::end(last, top.node()) };
            let new = top.pushed(link::expose(first), first == last);
            // Ordering: Release publishes the nodes and links to `take_only` and `take`. Relaxed on
            // failure: the next exchange confirms the value.
            match (self.0).compare_exchange_weak(top.0, new.0, Release, Relaxed) {
                Ok(_) => return true,
                Err(now) => top = Top(now),
            }
        }
    }

    /// Takes the only node of the stack, and leaves EMPTY, if `top` is still current. `top` is a
    /// value that the caller has read, and `node` is the node's address. Returns `None` if `top`
    /// has changed, or if the weak exchange fails spuriously.
    #[inline]
    pub(crate) fn take_only(&self, top: Top, node: usize) -> Option<NonNull<T>> {
        // Ordering: Acquire pairs with the push of the node, which may have been pushed again since
        // the caller read `top`.
        (self.0)
            .compare_exchange_weak(top.0, top.emptied().0, Acquire, Relaxed)
            .ok()?;
        // SAFETY: the pusher exposed the node, which was in the stack.
        Some(unsafe { link::pushed(node) })
    }

    /// Takes all nodes, oldest first. If the stack had one node, `top` is EMPTY afterwards; if it
    /// had more, LISTED.
    ///
    /// # Safety
    /// The caller holds the lock. If this returns one node, the caller takes that node and all
    /// nodes of the list before it releases the lock.
    pub(crate) unsafe fn take(&self) -> List<T> {
        loop {
            // Ordering: Acquire pairs with the push of the node, whose link is read next.
            let top = Top(self.0.load(Acquire));
            let node = match top.holds() {
                Holds::Empty | Holds::Listed => return List::new(),
                Holds::One(node) => node,
                Holds::More(node) => {
                    // SAFETY: the pusher exposed the node.
                    let first = unsafe { link::pushed::<T>(node) };
                    // SAFETY: rule 3.
                    let link = unsafe { link::read(first) };
                    if !matches!(link, link::Link::End(0)) {
                        break;
                    }
                    node
                }
            };
            if let Some(only) = self.take_only(top, node) {
                // SAFETY: the node is a chain of one, and now the caller's.
                return unsafe { List::from_parts((only, only), 1) };
            }
        }
        // SAFETY: the caller holds the lock, and `top` was MORE.
        unsafe { self.take_more() }
    }

    /// Takes all nodes of a stack that is MORE, oldest first, and leaves LISTED.
    ///
    /// # Safety
    /// The caller holds the lock, and has read MORE under it (rule 3). The caller puts the nodes
    /// into the list, or takes them together with the nodes of the list.
    pub(crate) unsafe fn take_more(&self) -> List<T> {
        // Ordering: Acquire pairs with all pushes (rule 4). The swap loses no CLOSED: `close` needs
        // the lock, which this thread holds.
        let top = self.0.swap(self.look().listed().0, Acquire);
        // SAFETY: the stack was just taken, with one node at least.
        unsafe { Self::turn_round(Top(top)) }
    }

    /// Links the nodes of a taken stack in the order in which they were pushed.
    ///
    /// # Safety
    /// `top` was taken from the stack, and has a node.
    unsafe fn turn_round(top: Top) -> List<T> {
        let mut address = top.node();
        let (mut newer, mut len) = (None, 0);
        loop {
            // SAFETY: the pusher exposed the node, which was in the taken stack.
            let first = unsafe { link::pushed::<T>(address) };
            let mut last = first;
            len += 1;
            address = loop {
                // SAFETY: the stack was taken, so its nodes are the caller's.
                match unsafe { link::read(last) } {
                    link::Link::Node(next) => last = next,
                    link::Link::End(below) => break below,
                }
                len += 1;
            };
            let tail = match newer {
                None => last,
                Some((behind, tail)) => {
                    // SAFETY: as above.
                    unsafe { T::set_next(last, Some(behind)) };
                    tail
                }
            };
            if address == 0 {
                // SAFETY: the links lead from the oldest to the newest of `len` nodes, all of them
                // the caller's.
                return unsafe { List::from_parts((first, tail), len) };
            }
            newer = Some((first, tail));
        }
    }

    /// Records that the list is empty. The caller holds the lock.
    pub(crate) fn note_empty_list(&self) {
        let top = self.look();
        if top.holds() == Holds::Listed {
            // Ordering: Relaxed. This exchange publishes nothing, since a thread that finds EMPTY
            // reads no node. It fails if a thread has pushed meanwhile. Then the queue is not
            // empty, and `top` says so.
            let _ = (self.0).compare_exchange(top.0, top.emptied().0, Relaxed, Relaxed);
        }
    }

    /// Closes the stack: from now on it refuses every push without `even_closed`. Returns `false`
    /// if the stack was closed already. The caller holds the lock, so CLOSED does not change during
    /// a `take`.
    pub(crate) fn close(&self) -> bool {
        // Ordering: Release pairs with `is_closed`.
        !Top(self.0.fetch_or(Top::CLOSED, Release)).is_closed()
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Acquire pairs with `close`.
        Top(self.0.load(Acquire)).is_closed()
    }
}

impl<T> Stack<T> {
    pub(crate) fn retire(&mut self) {
        self.0.retire();
    }
}
