//! A FIFO that any thread pushes to and pops from: a [stack](crate::submit) to push to, and a list under a lock that consumers fill from it.
//!
//! | field | written |
//! |---|---|
//! | `stack` | by all, without the lock; taken whole under it |
//! | `list` | under the lock |
//! | `listed` | under the lock: what the list holds, and BUSY while items move into it; read without |
//!
//! 1. Nothing that a user wrote runs under the lock: handles are linked before and dropped after. A batch costs one splice in it, after what the stack holds
//!    has been moved to the list: each item is moved once.
//! 2. Items in the list are older than those in the stack. A consumer takes from the list, and only when that is empty from the stack: the only node, with one exchange and
//!    no lock, or all, in order, to the list.
//! 3. Whoever moves items sets BUSY before it takes the stack, and `listed` to the list's length at the end. So who looks at the stack first and then at `listed` finds
//!    what is in the queue in one of them: an item leaves the stack after BUSY was set.
//! 4. Thus the only node may be taken when `listed` was 0 after the look: what was moved before its push is gone from the list. (A node that is popped and pushed
//!    again within the look and the exchange can overtake others that were pushed in that time; it is not lost.)
//! 5. Who has pushed and then fenced (`SeqCst`), and who announces and fences before [`is_empty`](Injector::is_empty), can't both miss: the one sees the
//!    announcement or the other the item.
//! 6. An item given to `push` is in the stack or handed back, whatever `close` does meanwhile: both go by one word. Batches, which go to the list, and `close` go by the lock.
use crate::{
    Linked, List,
    lock::Lock,
    submit::{Look, Stack},
};
use core::fmt;
use lock_api::RawMutex;
use sync_shim::{
    CachePadded,
    atomic::{AtomicUsize, Ordering::Relaxed, Retire},
};

/// The queue that a scheduler's workers share: for what is spawned outside, and what overflows.
///
/// A push is one read-modify-write on a word; so is a pop of the only item there. Other pops take the lock. A pop from an empty queue is two loads. Nothing is
/// allocated.
///
/// A node is aligned to 4 bytes at least, or it doesn't compile.
#[cfg(feature = "std")]
pub struct Injector<T: Linked, L: RawMutex = crate::DefaultLock> {
    inner: Inner<T, L>,
}

/// The queue that a scheduler's workers share: for what is spawned outside, and what overflows.
///
/// A push is one read-modify-write on a word; so is a pop of the only item there. Other pops take the lock. A pop from an empty queue is two loads. Nothing is
/// allocated.
///
/// A node is aligned to 4 bytes at least, or it doesn't compile.
#[cfg(not(feature = "std"))]
pub struct Injector<T: Linked, L: RawMutex> {
    inner: Inner<T, L>,
}

struct Inner<T: Linked, L> {
    stack: CachePadded<Stack<T>>,
    list: CachePadded<Lock<L, List<T>>>,
    listed: CachePadded<AtomicUsize>,
}

/// In `listed`: items are on their way from the stack.
const BUSY: usize = 1 << (usize::BITS - 1);

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
        let inner = Inner {
            stack: CachePadded::new(Stack::new()),
            list: CachePadded::new(Lock::new(List::new())),
            listed: CachePadded::new(AtomicUsize::new(0)),
        };
        Self { inner }
    }

    /// Runs `f` on the list, under the lock.
    fn with<R>(&self, f: impl FnOnce(&mut List<T>) -> R) -> R {
        self.inner.list.with(|list| {
            let result = f(list);
            // Ordering: Relaxed, the lock orders the list. Who looked at the stack after BUSY was announced reads this or a later one.
            self.inner.listed.store(list.len(), Relaxed);
            result
        })
    }

    /// Moves what the stack holds behind the list. Under the lock.
    fn take_over(&self, list: &mut List<T>) {
        if matches!(self.inner.stack.look(), Look::Empty) {
            return;
        }
        // Ordering: Relaxed, released by the swap that takes the stack (rule 3).
        self.inner.listed.store(list.len() | BUSY, Relaxed);
        list.append(&mut self.inner.stack.take());
    }

    /// Rule 3: the stack first. Then what the list holds, with BUSY.
    #[inline]
    fn look(&self) -> (Look<T>, usize) {
        let stack = self.inner.stack.look();
        // Ordering: Relaxed, after the Acquire of the look: it reads the BUSY of who took the stack then, or what came after.
        (stack, self.inner.listed.load(Relaxed))
    }

    /// Puts an item at the back. One read-modify-write.
    ///
    /// # Errors
    /// Hands it back when the queue is closed.
    #[inline]
    pub fn push(&self, handle: T::Handle) -> Result<(), Closed<T::Handle>> {
        let pushed = self.inner.stack.push(into_node::<T>(handle), false);
        // SAFETY: given back, so its handle is not in the queue.
        pushed.map_err(|node| Closed(unsafe { T::from_ptr(node) }))
    }

    /// Puts a list at the back: one splice under the lock, however long it is.
    ///
    /// # Errors
    /// Hands it back when the queue is closed.
    pub fn push_batch(&self, mut batch: List<T>) -> Result<(), Closed<List<T>>> {
        let closed = self.with(|list| {
            let closed = self.inner.stack.is_closed();
            if !closed {
                self.take_over(list);
                list.append(&mut batch);
            }
            closed
        });
        if closed { Err(Closed(batch)) } else { Ok(()) }
    }

    /// Puts an item at the back, closed or not: for one that was accepted before, as a task that was
    /// spawned in time and is woken.
    #[inline]
    pub fn requeue(&self, handle: T::Handle) {
        let pushed = self.inner.stack.push(into_node::<T>(handle), true);
        debug_assert!(pushed.is_ok());
    }

    /// [`requeue`](Self::requeue) for a list: one splice under the lock.
    pub fn requeue_batch(&self, mut batch: List<T>) {
        self.with(|list| {
            self.take_over(list);
            list.append(&mut batch);
        });
    }

    /// Takes the oldest item. One read-modify-write if it is the only one and was pushed alone, else under the lock. Two loads if there seems
    /// to be none.
    #[inline]
    pub fn pop(&self) -> Option<T::Handle> {
        loop {
            match self.look() {
                (Look::Empty, 0) => return None,
                (Look::One(only), 0) => {
                    if let Some(node) = self.inner.stack.take_only(only) {
                        // SAFETY: out of the stack, and its link is `None` as that of the oldest.
                        return Some(unsafe { T::from_ptr(node) });
                    }
                }
                _ => return self.pop_listed(),
            }
        }
    }

    fn pop_listed(&self) -> Option<T::Handle> {
        self.with(|list| {
            if list.is_empty() {
                self.take_over(list);
            }
            list.pop_front()
        })
    }

    /// Takes up to `n` of the oldest items. Two loads if there seems to be none; under the lock it
    /// walks what it takes, and once what was pushed since the last time.
    pub fn pop_n(&self, n: usize) -> List<T> {
        if self.is_empty() {
            return List::new();
        }
        self.with(|list| {
            if list.len() < n {
                self.take_over(list);
            }
            list.split_off_front(n)
        })
    }

    /// Items in the queue, without the lock. Those that were pushed one by one and that no consumer has looked at yet count as one.
    ///
    /// As of some time no earlier than the last operation that this thread made or knows of by synchronisation; with a `SeqCst` fence
    /// before it, no earlier than any operation that was followed by a `SeqCst` fence before this one.
    pub fn len(&self) -> usize {
        match self.look() {
            (Look::Empty, listed) if listed & BUSY == 0 => listed,
            (_, listed) => (listed & !BUSY) + 1,
        }
    }

    /// Whether the queue is empty, as of the time that [`len`](Self::len) says. No item hides from it.
    pub fn is_empty(&self) -> bool {
        matches!(self.look(), (Look::Empty, 0))
    }

    /// Closes the queue to pushes. What is in it stays. False when it was closed already.
    pub fn close(&self) -> bool {
        self.with(|_| self.inner.stack.close())
    }

    /// Whether the queue is closed. A load. Who finds it closed also sees what was done before [`close`](Self::close).
    pub fn is_closed(&self) -> bool {
        self.inner.stack.is_closed()
    }
}

/// Takes a handle apart.
///
/// # Panics
/// In debug builds, when the node's link is not clear: it is in a list already.
#[inline]
fn into_node<T: Linked>(handle: T::Handle) -> core::ptr::NonNull<T> {
    let node = T::into_ptr(handle);
    if cfg!(debug_assertions) {
        // SAFETY: the handle was the node's owner.
        let next = unsafe { T::next(node) };
        assert!(next.is_none(), "the node is in a list already");
    }
    node
}

impl<T: Linked, L> Drop for Inner<T, L> {
    fn drop(&mut self) {
        drop(self.stack.take());
        self.stack.retire();
        self.listed.retire();
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
