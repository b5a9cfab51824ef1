//! An event queue: any thread pushes values, one at a time, and the consumer takes all of them at
//! once.
//!
//! # Actors
//!
//! A *pusher* pushes one value. The *consumer* takes all values, or closes the queue. Any thread
//! may be either; several consumers are sound, but each of them then gets only some of the values.
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `top` | all threads, by read-modify-writes |
//! | a node's `next` and `value` | the pusher before its exchange, then the consumer that took the node |
//!
//! # States
//!
//! | `top` | the queue is |
//! |---|---|
//! | EMPTY | empty and open |
//! | CLOSED | empty and closed, forever |
//! | the address of a node | open; that node is the newest, and each `next` names an older one |
//!
//! # Rules
//!
//! 1. A push takes effect with its exchange on `top`, which succeeds only while the queue is open.
//!    So either a push is refused, or its value is in the batch of a take or of the close.
//! 2. A take removes all nodes with one read-modify-write, which leaves CLOSED as it is.
//! 3. The pusher whose exchange finds EMPTY gets [`Pushed::First`], every other one
//!    [`Pushed::Behind`]. Between two takes that find values there is exactly one first push.
//!    Suppose that each first pusher notifies the consumer after its push. Then for each value one
//!    of three things holds: the value was taken, a notification came after its push, or the first
//!    pusher since the last take has yet to notify.
//! 4. A node may be freed and its address reused while a pusher holds that address as `next`. This
//!    is harmless: if the exchange succeeds, the newest node has that address again. But the
//!    address carries no provenance: a pusher exposes its node's provenance, and a consumer makes
//!    pointers from addresses.
use crate::Closed;
use alloc::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use core::{
    fmt,
    iter::FusedIterator,
    marker::PhantomData,
    mem,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::{self, NonNull},
};
use sync_shim::{
    atomic::{
        AtomicUsize,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        Retire,
    },
    cell::UnsafeCell,
};

const EMPTY: usize = 0;
const CLOSED: usize = 1;

/// A queue of events for one consumer, which takes all of them at once.
///
/// A push is one allocation and one read-modify-write; it never waits for another thread. The
/// result of a push says whether the queue was empty: if it was, the pusher must notify the
/// consumer. A take is one read-modify-write for any number of values, and one load if there is
/// none. An empty queue is one word.
///
/// ```
/// use queue_global::mpsc::{Pushed, Queue};
///
/// let queue = Queue::new();
/// assert_eq!(queue.push("first"), Ok(Pushed::First)); // Notify the consumer.
/// assert_eq!(queue.push("second"), Ok(Pushed::Behind)); // The consumer has been notified.
/// assert_eq!(queue.take().collect::<Vec<_>>(), ["first", "second"]);
///
/// queue.push("late").unwrap();
/// assert_eq!(queue.close().next(), Some("late"));
/// assert_eq!(queue.push("later").unwrap_err().0, "later");
/// ```
pub struct Queue<T, A: Nodes = Heap> {
    top: AtomicUsize,
    /// Makes `T` invariant: a shared queue takes values in and hands them out.
    owns: PhantomData<*mut Node<T>>,
    /// Makes `A` invariant: a node is freed by the source that allocated it.
    nodes: PhantomData<fn(A) -> A>,
}

/// The source of a queue's nodes: [`Heap`], or for example a pool that keeps freed nodes for reuse.
///
/// The thread that pushes a value allocates its node. The thread that takes the value out of its
/// batch, or drops the batch, frees the node. If the push is refused, the pusher frees the node.
///
/// ```
/// use queue_global::mpsc::{Heap, Nodes, Queue};
/// use std::{alloc::Layout, ptr::NonNull, sync::atomic::{AtomicUsize, Ordering::Relaxed}};
///
/// static LIVE: AtomicUsize = AtomicUsize::new(0);
///
/// /// Counts the nodes.
/// struct Counted;
///
/// // SAFETY: `Heap` keeps the contract.
/// unsafe impl Nodes for Counted {
///     fn allocate(layout: Layout) -> NonNull<u8> {
///         LIVE.fetch_add(1, Relaxed);
///         Heap::allocate(layout)
///     }
///     unsafe fn free(node: NonNull<u8>, layout: Layout) {
///         LIVE.fetch_sub(1, Relaxed);
///         // SAFETY: the caller keeps the contract of this function.
///         unsafe { Heap::free(node, layout) }
///     }
/// }
///
/// let queue = Queue::<_, Counted>::with_nodes();
/// let _ = queue.push("counted");
/// assert_eq!(LIVE.load(Relaxed), 1);
/// assert_eq!(queue.take().next(), Some("counted"));
/// assert_eq!(LIVE.load(Relaxed), 0);
/// ```
///
/// # Safety
/// `allocate` returns a block of at least the layout's size and alignment, which nothing else uses
/// until it is freed. `free` does not unwind. A block may be freed on another thread.
pub unsafe trait Nodes {
    /// Allocates a block. The layout is never empty.
    fn allocate(layout: Layout) -> NonNull<u8>;

    /// Frees a block.
    ///
    /// # Safety
    /// `node` is from [`allocate`](Self::allocate), with the same layout, and is not used any more.
    unsafe fn free(node: NonNull<u8>, layout: Layout);
}

/// Nodes of the global allocator.
#[derive(Clone, Copy, Debug)]
pub struct Heap;

// SAFETY: the global allocator keeps this contract.
unsafe impl Nodes for Heap {
    #[inline]
    fn allocate(layout: Layout) -> NonNull<u8> {
        // SAFETY: the layout is not empty.
        let block = unsafe { alloc(layout) };
        NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
    }

    #[inline]
    unsafe fn free(node: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promises that the block is from `allocate`.
        unsafe { dealloc(node.as_ptr(), layout) }
    }
}

/// Where a push put its value. See [`Queue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the first pusher must notify the consumer"]
pub enum Pushed {
    /// Into an empty queue: the pusher must notify the consumer.
    First,
    /// Behind another value, whose pusher notifies the consumer.
    Behind,
}

struct Node<T> {
    /// While the node is in the queue, this is the address of the next older node; in a batch, of
    /// the next newer one.
    next: UnsafeCell<usize>,
    value: T,
}

impl<T> Node<T> {
    /// Moves a node into a new block, where the node stays until it is freed.
    fn into_raw<A: Nodes>(self) -> *mut Self {
        let node = A::allocate(Layout::new::<Self>()).cast::<Self>();
        // SAFETY: the block is new, and fits a node.
        unsafe { node.write(self) };
        node.as_ptr()
    }

    /// Takes a node back, and frees its block.
    ///
    /// # Safety
    /// The node is from `into_raw` with the same `A`, and the caller owns it.
    unsafe fn from_raw<A: Nodes>(node: NonNull<Self>) -> Self {
        // SAFETY: the caller owns the node.
        let taken = unsafe { node.read() };
        // SAFETY: the caller promises that the block is from `A`; the node was moved out.
        unsafe { A::free(node.cast(), Layout::new::<Self>()) };
        taken
    }
}

// SAFETY: values go in on one thread and come out on another; no two threads share a value.
unsafe impl<T: Send, A: Nodes> Send for Queue<T, A> {}

// SAFETY: as above.
unsafe impl<T: Send, A: Nodes> Sync for Queue<T, A> {}

// No user code runs while the queue is half changed.
impl<T, A: Nodes> UnwindSafe for Queue<T, A> {}
impl<T, A: Nodes> RefUnwindSafe for Queue<T, A> {}

impl<T> Queue<T> {
    sync_shim::const_fn! {
        /// Creates an empty, open queue. Allocates nothing. `const`, except under a model.
        pub const fn new() -> Self {
            Self::with_nodes()
        }
    }
}

impl<T, A: Nodes> Queue<T, A> {
    sync_shim::const_fn! {
        /// Creates an empty, open queue with nodes of `A`. Allocates nothing. `const`, except under
        /// a model.
        pub const fn with_nodes() -> Self {
            Self { top: AtomicUsize::new(EMPTY), owns: PhantomData, nodes: PhantomData }
        }
    }

    /// Pushes a value. One allocation and one read-modify-write.
    ///
    /// # Errors
    /// Hands the value back if the queue is closed. If the queue was closed before the call, this
    /// allocates nothing.
    pub fn push(&self, value: T) -> Result<Pushed, Closed<T>> {
        // Ordering: Acquire pairs with `close`: a pusher that is refused sees the writes before the
        // close.
        let mut top = self.top.load(Acquire);
        if top == CLOSED {
            return Err(Closed(value));
        }
        let next = UnsafeCell::new(EMPTY);
        let node = Node { next, value }.into_raw::<A>();
        let address = node.expose_provenance();
        loop {
            // SAFETY: the node is this thread's until the exchange succeeds.
            let next = unsafe { &(*node).next };
            next.with_mut(|next| {
                // SAFETY: as above.
                unsafe { *next = top }
            });
            // Ordering: Release pairs with the Acquire of `take` and `close`, so the consumer sees
            // the node written. Later pushes are read-modify-writes, so they continue the release
            // sequence. A failed exchange has Acquire for the same reason as the load above.
            match self
                .top
                .compare_exchange_weak(top, address, Release, Acquire)
            {
                Ok(EMPTY) => return Ok(Pushed::First),
                Ok(_) => return Ok(Pushed::Behind),
                Err(CLOSED) => {
                    // SAFETY: `into_raw` returns no null.
                    let node = unsafe { NonNull::new_unchecked(node) };
                    // SAFETY: the node came from `into_raw`. It was not pushed, so this thread owns
                    // it.
                    let node = unsafe { Node::from_raw::<A>(node) };
                    return Err(Closed(node.value));
                }
                Err(now) => top = now,
            }
        }
    }

    /// Takes all values, oldest first. One read-modify-write, or one load if the queue is empty.
    /// `take` visits each node once, to put the values in order.
    pub fn take(&self) -> Batch<T, A> {
        // Ordering: Relaxed; a caller that finds nothing learns nothing else.
        if self.top.load(Relaxed) <= CLOSED {
            return Batch::default();
        }
        // Ordering: Acquire pairs with the pushes. The operation keeps only the bit CLOSED, which
        // is 0 in a node's address (rule 2).
        let top = self.top.fetch_and(CLOSED, Acquire);
        // SAFETY: the nodes are this thread's now.
        unsafe { Batch::of_stack(top) }
    }

    /// Refuses pushes from now on, and takes all values. One read-modify-write.
    pub fn close(&self) -> Batch<T, A> {
        // Ordering: Acquire as in `take`. Release pairs with the loads of `push` and `is_closed`.
        let top = self.top.swap(CLOSED, AcqRel);
        // SAFETY: the nodes are this thread's now.
        unsafe { Batch::of_stack(top) }
    }

    /// Returns whether the queue is empty. One load.
    ///
    /// The call may miss a push that does not happen before it.
    pub fn is_empty(&self) -> bool {
        // Ordering: Acquire: a caller that sees a value also sees the pusher's writes before the
        // push.
        self.top.load(Acquire) <= CLOSED
    }

    /// Returns whether the queue is closed. One load.
    pub fn is_closed(&self) -> bool {
        // Ordering: Acquire pairs with `close`.
        self.top.load(Acquire) == CLOSED
    }
}

impl<T, A: Nodes> Drop for Queue<T, A> {
    fn drop(&mut self) {
        drop(self.close());
        self.top.retire();
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, A: Nodes> fmt::Debug for Queue<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("is_empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}

/// The values that one [`take`](Queue::take) or [`close`](Queue::close) removed, oldest first. A
/// dropped batch drops the values that are left in it.
///
/// A batch is one word. `Batch::default()` is empty.
///
/// ```
/// use queue_global::mpsc::Queue;
///
/// let queue = Queue::new();
/// let _ = queue.push(1);
/// let _ = queue.push(2);
/// let mut batch = queue.take();
/// assert_eq!(batch.next(), Some(1));
/// assert!(!batch.is_empty());
/// ```
pub struct Batch<T, A: Nodes = Heap> {
    /// The oldest node. Each `next` is the address of a newer one.
    first: Option<NonNull<Node<T>>>,
    /// Makes `A` invariant, as in [`Queue`].
    nodes: PhantomData<fn(A) -> A>,
}

// SAFETY: the batch owns its values.
unsafe impl<T: Send, A: Nodes> Send for Batch<T, A> {}

// SAFETY: a shared batch gives access to no value.
unsafe impl<T: Send, A: Nodes> Sync for Batch<T, A> {}

impl<T, A: Nodes> UnwindSafe for Batch<T, A> {}
impl<T, A: Nodes> RefUnwindSafe for Batch<T, A> {}

impl<T, A: Nodes> Batch<T, A> {
    /// Reverses a stack of nodes.
    ///
    /// # Safety
    /// `top` was read from a queue's field `top`, and the caller owns the nodes that it leads to.
    unsafe fn of_stack(top: usize) -> Self {
        let (mut newer, mut at) = (EMPTY, top & !CLOSED);
        while at != EMPTY {
            // SAFETY: this is the address of a live node, which its pusher exposed (rule 4).
            let next = unsafe { &(*node::<T>(at)).next };
            let older = next.with_mut(|next| {
                // SAFETY: the caller owns the node.
                unsafe { mem::replace(&mut *next, newer) }
            });
            newer = at;
            at = older;
        }
        Self {
            first: NonNull::new(node(newer)),
            nodes: PhantomData,
        }
    }

    /// Returns whether no value is left.
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

/// Returns the node at an exposed address, or null for EMPTY.
fn node<T>(address: usize) -> *mut Node<T> {
    match address {
        EMPTY => ptr::null_mut(),
        address => ptr::with_exposed_provenance_mut(address),
    }
}

impl<T, A: Nodes> Iterator for Batch<T, A> {
    type Item = T;

    #[inline]
    fn next(&mut self) -> Option<T> {
        let first = self.first?;
        // SAFETY: the batch owns the node, which came from `into_raw`.
        let Node { next, value } = unsafe { Node::from_raw::<A>(first) };
        self.first = NonNull::new(node(next.into_inner()));
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self.first {
            None => (0, Some(0)),
            Some(_) => (1, None),
        }
    }
}

impl<T, A: Nodes> FusedIterator for Batch<T, A> {}

impl<T, A: Nodes> Batch<T, A> {
    #[cold]
    fn drop_all(&mut self) {
        /// Drops the other values if the drop of one panics.
        struct Rest<'a, T, A: Nodes>(&'a mut Batch<T, A>);
        impl<T, A: Nodes> Drop for Rest<'_, T, A> {
            fn drop(&mut self) {
                self.0.for_each(drop);
            }
        }
        let rest = Rest(self);
        rest.0.for_each(drop);
    }
}

impl<T, A: Nodes> Drop for Batch<T, A> {
    #[inline]
    fn drop(&mut self) {
        // Most batches have no value left here.
        if self.first.is_some() {
            self.drop_all();
        }
    }
}

impl<T, A: Nodes> Default for Batch<T, A> {
    fn default() -> Self {
        Self {
            first: None,
            nodes: PhantomData,
        }
    }
}

impl<T, A: Nodes> fmt::Debug for Batch<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch")
            .field("is_empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
