//! The way in: a stack that anyone pushes chains of nodes to with one read-modify-write, and that a consumer takes whole.
//!
//! | field | written by |
//! |---|---|
//! | `top`, a [`Top`] | all, by read-modify-writes |
//! | the nodes' links | who pushes, before; who took the stack, after |
//!
//! 1. A chain leads from its oldest node to its newest, whose link has the mark END and leads to the first of the chain below, which is older as a whole. A single node is a chain.
//! 2. ONE is set by who pushes a single node to an empty queue; EMPTY by who takes the last item. Between, LISTED and MORE last while the list has something, which only the lock's holder
//!    changes. So `top` says by itself what the queue holds, at every time, and an exchange from what it was is right
//!    whatever happened since: a node that left and came back to the same word is again the only one.
//! 3. MORE ends under the lock alone. So the lock's holder who reads it may look into the node: it is in the stack until the holder takes it. Nobody else looks into a node that it
//!    doesn't own.
//! 4. Every change of `top` is a read-modify-write, so that each continues the release sequences of those before: who acquires from the last push has the
//!    nodes of all.
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
            Self(shared(AtomicUsize::new(Top::new().word())), PhantomData)
        }
    }

    /// What the queue holds; orders nothing.
    #[inline]
    pub(crate) fn look(&self) -> Top {
        // Ordering: Relaxed, for exchanges to expect, and for hints.
        Top::from_word(self.0.load(Relaxed))
    }

    /// Puts a chain on top, and says whether; the closed stack refuses unless `even_closed`, and the last node's link is then any. One read-modify-write.
    ///
    /// # Safety
    /// The links lead from `first` to `last`, all of them the caller's until this says true.
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
            // SAFETY: the caller's node, not in the stack yet.
            unsafe { link::end(last, top.node()) };
            let new = top.pushed(link::expose(first), first == last);
            // Ordering: Release publishes the nodes and links to `take_only` and `take`. A failure's value is only expected by the next exchange.
            match (self.0).compare_exchange_weak(top.word(), new.word(), Release, Relaxed) {
                Ok(_) => return true,
                Err(now) => top = Top::from_word(now),
            }
        }
    }

    /// Takes the only item of the queue, if `top`, which says that it is that, is still right.
    #[inline]
    pub(crate) fn take_only(&self, top: Top, node: usize) -> Option<NonNull<T>> {
        // Ordering: Acquire from the node's pusher, who may have pushed it again since the look.
        (self.0)
            .compare_exchange_weak(top.word(), top.emptied().word(), Acquire, Relaxed)
            .ok()?;
        // SAFETY: its pusher exposed it, and it was in the stack.
        Some(unsafe { link::pushed(node) })
    }

    /// Takes all, oldest first. The queue is left empty if that is one, else LISTED.
    ///
    /// # Safety
    /// Under the lock. If this gives one node, the list's are all taken in the same turn of the lock, and this one too.
    pub(crate) unsafe fn take(&self) -> List<T> {
        loop {
            // Ordering: Acquire from the push of the node, for its link to be read.
            let top = Top::from_word(self.0.load(Acquire));
            let node = match top.holds() {
                Holds::Empty | Holds::Listed => return List::new(),
                Holds::One(node) => node,
                Holds::More(node) => {
                    // SAFETY: its pusher exposed it.
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
                // SAFETY: a chain of one, the caller's.
                return unsafe { List::from_parts((only, only), 1) };
            }
        }
        // Ordering: Acquire from all pushers (rule 4). CLOSED doesn't change under the lock.
        let top = self.0.swap(self.look().listed().word(), Acquire);
        // SAFETY: the stack was taken, with one node at least.
        unsafe { Self::turn_round(Top::from_word(top)) }
    }

    /// # Safety
    /// `top` was taken, and has a node.
    unsafe fn turn_round(top: Top) -> List<T> {
        let mut address = top.node();
        let (mut newer, mut len) = (None, 0);
        loop {
            // SAFETY: its pusher exposed it; it was in the stack, which was taken.
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
                // SAFETY: the links lead from the oldest to the newest, `len` nodes, all of them the caller's.
                return unsafe { List::from_parts((first, tail), len) };
            }
            newer = Some((first, tail));
        }
    }

    /// Says that the list is empty. Under the lock.
    pub(crate) fn list_is_empty(&self) {
        let top = self.look();
        if top.holds() == Holds::Listed {
            // Ordering: Relaxed; who finds the queue empty learns nothing else. It fails if somebody pushed: then the queue is not empty, and `top` says so.
            let _ = (self.0).compare_exchange(top.word(), top.emptied().word(), Relaxed, Relaxed);
        }
    }

    /// Refuses pushes from now on. False when it did already. Under the lock, for `take` to know.
    pub(crate) fn close(&self) -> bool {
        // Ordering: Release to `is_closed`.
        !Top::from_word(self.0.fetch_or(Top::CLOSED, Release)).is_closed()
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Acquire, from who closed it.
        Top::from_word(self.0.load(Acquire)).is_closed()
    }
}

impl<T> Stack<T> {
    pub(crate) fn retire(&mut self) {
        self.0.retire();
    }
}
