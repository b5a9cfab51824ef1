//! A FIFO that any thread pushes to and pops from: the list under a lock, and a length beside it.
//!
//! | field | written |
//! |---|---|
//! | `list`, `closed` | under the lock |
//! | `len` | under the lock, after the list; read without |
//!
//! 1. Nothing that a user wrote runs under the lock: handles are linked before and dropped after. A batch costs one splice in it.
//! 2. `len` is what the list holds whenever the lock is free.
//! 3. Who has pushed and then fenced (`SeqCst`), and who announces and fences before [`is_empty`](Injector::is_empty), can't both miss: the one sees the
//!    announcement or the other the length.
//! 4. An item given to `push` is in the list or handed back, whatever `close` does meanwhile: both go by the lock.
use crate::{Linked, List, lock::Lock};
use core::fmt;
use lock_api::RawMutex;
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicUsize,
        Ordering::{Acquire, Release},
    },
};

/// The queue that a scheduler's workers share: for what is spawned outside, and what overflows.
///
/// Costs: every operation that finds something takes the lock once, and writes one atomic; a pop from
/// an empty queue is a load. Nothing is allocated.
#[cfg(feature = "std")]
pub struct Injector<T: Linked, L: RawMutex = crate::DefaultLock> {
    inner: Inner<T, L>,
}

/// The queue that a scheduler's workers share: for what is spawned outside, and what overflows.
///
/// Costs: every operation that finds something takes the lock once, and writes one atomic; a pop from
/// an empty queue is a load. Nothing is allocated.
#[cfg(not(feature = "std"))]
pub struct Injector<T: Linked, L: RawMutex> {
    inner: Inner<T, L>,
}

struct Inner<T: Linked, L> {
    queue: CachePadded<Lock<L, Queue<T>>>,
    len: CachePadded<AtomicUsize>,
}

struct Queue<T: Linked> {
    list: List<T>,
    closed: bool,
}

// SAFETY: handles go in at one thread and come out at another, one at a time under the lock.
unsafe impl<T: Linked, L: RawMutex + Send> Send for Injector<T, L> where T::Handle: Send {}

// SAFETY: as above; the lock may be taken by any thread.
unsafe impl<T: Linked, L: RawMutex + Sync> Sync for Injector<T, L> where T::Handle: Send {}

/// The queue was closed; here is what was to be pushed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<H>(pub H);

impl<T: Linked, L: RawMutex> Injector<T, L> {
    /// An empty, open queue.
    pub fn new() -> Self {
        let queue = Queue {
            list: List::new(),
            closed: false,
        };
        let inner = Inner {
            queue: CachePadded::new(Lock::new(queue)),
            len: CachePadded::new(AtomicUsize::new(0)),
        };
        Self { inner }
    }

    fn with<R>(&self, f: impl FnOnce(&mut Queue<T>) -> R) -> R {
        self.inner.queue.with(|queue| {
            let result = f(queue);
            // Ordering: Release pairs with `len`: who sees the length finds the lock taken since.
            self.inner.len.store(queue.list.len(), Release);
            result
        })
    }

    /// Puts an item at the back.
    ///
    /// # Errors
    /// Hands it back when the queue is closed.
    pub fn push(&self, handle: T::Handle) -> Result<(), Closed<T::Handle>> {
        let mut handle = Some(handle);
        self.with(|queue| {
            if !queue.closed
                && let Some(handle) = handle.take()
            {
                queue.list.push_back(handle);
            }
        });
        handle.map_or(Ok(()), |handle| Err(Closed(handle)))
    }

    /// Puts a list at the back: one splice under the lock, however long it is.
    ///
    /// # Errors
    /// Hands it back when the queue is closed.
    pub fn push_batch(&self, mut batch: List<T>) -> Result<(), Closed<List<T>>> {
        let closed = self.with(|queue| {
            if !queue.closed {
                queue.list.append(&mut batch);
            }
            queue.closed
        });
        if closed { Err(Closed(batch)) } else { Ok(()) }
    }

    /// Puts an item at the back, closed or not: for one that was accepted before, as a task that was
    /// spawned in time and is woken.
    pub fn requeue(&self, handle: T::Handle) {
        self.with(|queue| queue.list.push_back(handle));
    }

    /// [`requeue`](Self::requeue) for a list: one splice under the lock.
    pub fn requeue_batch(&self, mut batch: List<T>) {
        self.with(|queue| queue.list.append(&mut batch));
    }

    /// Takes the oldest item. A load if there seems to be none.
    pub fn pop(&self) -> Option<T::Handle> {
        if self.is_empty() {
            return None;
        }
        self.with(|queue| queue.list.pop_front())
    }

    /// Takes up to `n` of the oldest items. A load if there seems to be none; under the lock it
    /// walks what it takes.
    pub fn pop_n(&self, n: usize) -> List<T> {
        if self.is_empty() {
            return List::new();
        }
        self.with(|queue| queue.list.split_off_front(n))
    }

    /// Items in the queue, without the lock: the length after some operation no older than the
    /// last one that this thread made or knows of by synchronisation; with a `SeqCst` fence
    /// before it, no older than any that was followed by a `SeqCst` fence before this one.
    pub fn len(&self) -> usize {
        // Ordering: Acquire pairs with `with`.
        self.inner.len.load(Acquire)
    }

    /// Whether [`len`](Self::len) is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closes the queue to pushes. What is in it stays. False when it was closed already.
    pub fn close(&self) -> bool {
        self.with(|queue| !core::mem::replace(&mut queue.closed, true))
    }

    /// Whether the queue is closed. Takes the lock.
    pub fn is_closed(&self) -> bool {
        self.inner.queue.with(|queue| queue.closed)
    }
}

impl<T: Linked, L: RawMutex> Default for Injector<T, L> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Linked, L: RawMutex> fmt::Debug for Injector<T, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Injector")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<H> fmt::Debug for Closed<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Closed(..)")
    }
}

impl<H> fmt::Display for Closed<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is closed")
    }
}

impl<H> core::error::Error for Closed<H> {}
