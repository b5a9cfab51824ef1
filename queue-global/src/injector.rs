//! A FIFO that any thread pushes to and pops from: a [stack](crate::submit) to push to, and a list under a lock that consumers fill from it.
//!
//! | field | written |
//! |---|---|
//! | `top`, in `stack` | by all, by read-modify-writes; [what it says](crate::top) |
//! | `list` | under the lock |
//! | `listed` | under the lock: the list's length, as a hint for who has no lock |
//!
//! 1. Nothing that a user wrote runs under the lock but the link's `next` and `set_next`: handles are taken apart before and put together after.
//! 2. Items in the list are older than those in the stack. A consumer takes from the list, and only when that is empty from the stack: the only node, with one exchange and
//!    no lock, or all, in order, to the list. Each item is moved once.
//! 3. The queue, the list and then the stack, is a FIFO as a whole, and `top` says at every time whether it is empty. A push is done with its exchange. A pop that leaves something is
//!    done under the lock, while `top` is MORE or LISTED; one that leaves nothing, with the exchange that makes `top` EMPTY. So "empty" is what was at the time of the look.
//! 4. Who takes from the list, and may leave it empty, tells `top` before the lock is free. So under a free lock the list is empty unless `top` is MORE or LISTED.
//! 5. Who has pushed and then fenced (`SeqCst`), and who announces and fences before [`is_empty`](Injector::is_empty), can't both miss: the one sees the
//!    announcement or the other the item.
//! 6. What is given to `push` or `push_batch` is in the stack or handed back, whatever `close` does meanwhile: all three go by one word.
use crate::{Linked, List, Lock, link, lock::Locked, submit::Stack, top::Holds};
use core::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    ptr::NonNull,
};
use sync_shim::{
    CachePadded,
    atomic::{AtomicUsize, Ordering::Relaxed, Retire},
};

/// The queue that a scheduler's workers share: for what is spawned outside, and what overflows.
///
/// A push, of one or of many, is one read-modify-write on a word; so is a pop of the only item there. Other pops take the lock. A pop from an empty queue is two loads. Nothing is
/// allocated.
///
/// A node is aligned to 4 bytes at least. This doesn't compile, for its marks would be lost in the address:
///
/// ```compile_fail
/// # use queue_global::{Injector, Linked};
/// # use core::ptr::NonNull;
/// #[repr(packed(2))]
/// struct Node(Option<NonNull<Node>>);
/// # struct Handle(NonNull<Node>);
/// # unsafe impl Linked for Node {
/// #     type Handle = Handle;
/// #     fn into_ptr(handle: Handle) -> NonNull<Node> { handle.0 }
/// #     unsafe fn from_ptr(node: NonNull<Node>) -> Handle { Handle(node) }
/// #     unsafe fn next(node: NonNull<Node>) -> Option<NonNull<Node>> { unsafe { (*node.as_ptr()).0 } }
/// #     unsafe fn set_next(node: NonNull<Node>, next: Option<NonNull<Node>>) { unsafe { (*node.as_ptr()).0 = next } }
/// # }
/// let injector: Injector<Node> = Injector::new();
/// ```
#[cfg(feature = "std")]
pub struct Injector<T: Linked, L: Lock = crate::DefaultLock> {
    inner: Inner<T, L>,
}

/// The queue that a scheduler's workers share: for what is spawned outside, and what overflows.
///
/// A push, of one or of many, is one read-modify-write on a word; so is a pop of the only item there. Other pops take the lock. A pop from an empty queue is two loads. Nothing is
/// allocated.
///
/// A node is aligned to 4 bytes at least, or it doesn't compile.
#[cfg(not(feature = "std"))]
pub struct Injector<T: Linked, L: Lock> {
    inner: Inner<T, L>,
}

struct Inner<T: Linked, L> {
    stack: CachePadded<Stack<T>>,
    list: CachePadded<Locked<L, List<T>>>,
    listed: CachePadded<AtomicUsize>,
}

// SAFETY: handles go in at one thread and come out at another; what is shared on the way, the nodes' links and the list, is touched by one thread at a time.
unsafe impl<T: Linked, L: Lock + Send> Send for Injector<T, L> where T::Handle: Send {}

// SAFETY: as above; the lock may be taken by any thread.
unsafe impl<T: Linked, L: Lock + Sync> Sync for Injector<T, L> where T::Handle: Send {}

// A panic, which only a handle's drop makes, leaves the queue whole; its lock has no poison.
impl<T: Linked, L: Lock> UnwindSafe for Injector<T, L> {}
impl<T: Linked, L: Lock> RefUnwindSafe for Injector<T, L> {}

/// The queue was closed; here is what was to be pushed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<H>(pub H);

#[cfg(feature = "std")]
impl<T: Linked> Injector<T> {
    sync_shim::const_fn! {
        /// An empty, open queue, whose lock is std's mutex. `const`, except under a model.
        ///
        /// ```
        /// use queue_global::{Boxed, Injector};
        ///
        /// static QUEUE: Injector<Boxed<u32>> = Injector::new();
        ///
        /// QUEUE.push(Box::new(Boxed::new(7))).unwrap();
        /// assert_eq!(QUEUE.pop().unwrap().value, 7);
        /// ```
        pub const fn new() -> Self {
            Self::with_lock(std::sync::Mutex::new(()))
        }
    }
}

impl<T: Linked, L: Lock> Injector<T, L> {
    sync_shim::const_fn! {
        /// An empty, open queue with a lock of yours, which nobody holds. `const`, except under a
        /// model.
        pub const fn with_lock(lock: L) -> Self {
            let inner = Inner {
                stack: CachePadded::new(Stack::new()),
                list: CachePadded::new(Locked::new(lock, List::new())),
                listed: CachePadded::new(AtomicUsize::new(0)),
            };
            Self { inner }
        }
    }

    /// Puts an item at the back. One read-modify-write.
    ///
    /// # Errors
    /// Hands it back when the queue is closed.
    ///
    /// # Panics
    /// In debug builds, when the node is in a list already.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push(&self, handle: T::Handle) -> Result<(), Closed<T::Handle>> {
        let node = link::enter::<T>(handle);
        // SAFETY: a chain of one, of which the handle was the owner.
        if unsafe { self.inner.stack.push(node, node, false) } {
            return Ok(());
        }
        // SAFETY: refused, so it is not in the queue.
        Err(Closed(unsafe { link::leave(node) }))
    }

    /// Puts a list at the back, in one piece. One read-modify-write, however long it is.
    ///
    /// # Errors
    /// Hands it back when the queue is closed.
    pub fn push_batch(&self, batch: List<T>) -> Result<(), Closed<List<T>>> {
        let len = batch.len();
        let Some((first, last)) = batch.into_ends() else {
            return match self.is_closed() {
                true => Err(Closed(List::new())),
                false => Ok(()),
            };
        };
        // SAFETY: the list was the owner.
        if unsafe { self.inner.stack.push(first, last, false) } {
            return Ok(());
        }
        // SAFETY: refused, so they are not in the queue; the last link is an end, if perhaps another.
        Err(Closed(unsafe { List::from_parts((first, last), len) }))
    }

    /// Puts an item at the back, closed or not: for one that was accepted before, as a task that was
    /// spawned in time and is woken.
    ///
    /// # Panics
    /// In debug builds, when the node is in a list already.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn requeue(&self, handle: T::Handle) {
        let node = link::enter::<T>(handle);
        // SAFETY: a chain of one, of which the handle was the owner.
        let pushed = unsafe { self.inner.stack.push(node, node, true) };
        debug_assert!(pushed);
    }

    /// [`requeue`](Self::requeue) for a list, in one piece. One read-modify-write, however long it is.
    pub fn requeue_batch(&self, batch: List<T>) {
        if let Some((first, last)) = batch.into_ends() {
            // SAFETY: the list was the owner.
            let pushed = unsafe { self.inner.stack.push(first, last, true) };
            debug_assert!(pushed);
        }
    }

    /// The only item, or whether there are more. Without the lock.
    #[inline]
    fn take_only(&self) -> Found<T> {
        // Ordering: Relaxed, a hint. It spares pushers the look at the word that they write.
        if self.inner.listed.load(Relaxed) > 0 {
            return Found::More;
        }
        loop {
            let top = self.inner.stack.look();
            match top.holds() {
                Holds::Empty => return Found::Nothing,
                Holds::More(_) | Holds::Listed => return Found::More,
                Holds::One(node) => {
                    if let Some(node) = self.inner.stack.take_only(top, node) {
                        return Found::Only(node);
                    }
                }
            }
        }
    }

    /// Runs `f` on the list, with `n` items in it if the queue has so many; under the lock. Leaves `n` fewer.
    fn with<R>(&self, n: usize, f: impl FnOnce(&mut List<T>) -> R) -> R {
        self.inner.list.with(|list| {
            if list.len() < n {
                // SAFETY: under the lock. If it is one, it goes with the list's, which are fewer than `n`.
                list.append(&mut unsafe { self.inner.stack.take() });
            }
            let result = f(list);
            if list.is_empty() {
                self.inner.stack.list_is_empty();
            }
            // Ordering: Relaxed, a hint.
            self.inner.listed.store(list.len(), Relaxed);
            result
        })
    }

    /// Takes the oldest item. One read-modify-write if it is the only one, else under the lock. Two loads if there is none.
    #[inline]
    pub fn pop(&self) -> Option<T::Handle> {
        let node = match self.take_only() {
            Found::Nothing => return None,
            Found::Only(node) => node,
            Found::More => self.with(1, List::pop_node)?,
        };
        // SAFETY: out of the queue, into which `enter` put it.
        Some(unsafe { link::leave(node) })
    }

    /// Takes up to `n` of the oldest items. Costs what [`pop`](Self::pop) does; under the lock it
    /// walks what it takes, and once what was pushed since the last time.
    pub fn pop_n(&self, n: usize) -> List<T> {
        if n == 0 {
            return List::new();
        }
        match self.take_only() {
            Found::Nothing => List::new(),
            // SAFETY: the only node, a chain of one.
            Found::Only(node) => unsafe { List::from_parts((node, node), 1) },
            Found::More => self.with(n, |list| list.split_off_front(n)),
        }
    }

    /// Items in the queue, without the lock: a hint, but 0 if and only if [`is_empty`](Self::is_empty). Those that no consumer has moved to the list yet count as one, and
    /// twice while they move.
    pub fn len(&self) -> usize {
        // Ordering: Relaxed, a hint.
        let listed = || self.inner.listed.load(Relaxed);
        match self.inner.stack.look().holds() {
            Holds::Empty => 0,
            Holds::One(_) => 1,
            Holds::Listed => listed().max(1),
            Holds::More(_) => listed() + 1,
        }
    }

    /// Whether the queue is empty, without the lock; exactly, as are a [`pop`](Self::pop) and a [`pop_n`](Self::pop_n) that find nothing.
    ///
    /// It was at some time no earlier than the last operation that this thread made or knows of by synchronisation; with a `SeqCst` fence
    /// before it, no earlier than any operation that was followed by a `SeqCst` fence before this one.
    pub fn is_empty(&self) -> bool {
        self.inner.stack.look().holds() == Holds::Empty
    }

    /// Closes the queue to pushes. What is in it stays. False when it was closed already.
    pub fn close(&self) -> bool {
        self.with(0, |_| self.inner.stack.close())
    }

    /// Whether the queue is closed. A load. Who finds it closed also sees what was done before [`close`](Self::close).
    pub fn is_closed(&self) -> bool {
        self.inner.stack.is_closed()
    }
}

/// What a consumer finds without the lock.
enum Found<T> {
    Nothing,
    Only(NonNull<T>),
    More,
}

impl<T: Linked, L> Drop for Inner<T, L> {
    fn drop(&mut self) {
        // SAFETY: nobody else is left to hold the lock; the list is dropped next.
        drop(unsafe { self.stack.take() });
        self.stack.retire();
        self.listed.retire();
    }
}

impl<T: Linked, L: Lock + Default> Default for Injector<T, L> {
    fn default() -> Self {
        Self::with_lock(L::default())
    }
}

impl<T: Linked, L: Lock> fmt::Debug for Injector<T, L> {
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
