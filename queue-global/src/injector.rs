//! A FIFO that any thread pushes to and pops from: pushers push on a [stack](crate::submit), and
//! consumers move its nodes to a list under a lock.
//!
//! # Actors
//!
//! A *pusher* pushes one item or a batch. A *consumer* pops. A *looker* calls `len`, `is_empty` or
//! `is_closed`. A *counter* calls `count`. Any thread may be any of them.
//!
//! # States
//!
//! The word `top` says what the queue holds ([`Top`](crate::top::Top)):
//!
//! | state | stack | list |
//! |---|---|---|
//! | EMPTY | empty | empty |
//! | ONE | one node | empty |
//! | MORE | one node or more | perhaps not empty |
//! | LISTED | empty | not empty |
//!
//! The mark CLOSED may be set in each of these states.
//!
//! # Fields
//!
//! | field | written by |
//! |---|---|
//! | `top`, in `stack` | all threads, by read-modify-writes |
//! | `list` | the holder of the lock |
//! | `listed` | the holder of the lock: the list's length, as a hint for threads without the lock |
//!
//! # Rules
//!
//! 1. The only user code that runs under the lock is the link's `next` and `set_next`. A pusher
//!    turns handles into nodes, and a consumer turns nodes into handles after it has unlocked.
//! 2. Items in the list are older than those in the stack, so a consumer takes from the list first.
//!    If the list holds fewer items than the consumer wants, the consumer moves all nodes of the
//!    stack, in order, to the list. So each item is moved at most once. But if the queue holds one
//!    item, in the stack, the consumer takes it with one exchange, and needs no lock for that. A
//!    counter moves the nodes as a consumer does, and takes none, so the stack must be MORE.
//! 3. The queue is a FIFO: the list followed by the stack. At every moment `top` says whether the
//!    queue is empty. A push takes effect with its exchange. A pop that leaves items takes effect
//!    under the lock, while `top` is MORE or LISTED. A pop that leaves none takes effect with the
//!    exchange that makes `top` EMPTY. So if a looker finds EMPTY, the queue was empty at the time
//!    of the load.
//! 4. A consumer that may have emptied the list updates `top` before it unlocks. So while the lock
//!    is free, the list is empty unless `top` is MORE or LISTED.
//! 5. A pusher that pushes and then fences (`SeqCst`), and a sleeper that announces its sleep and
//!    then fences before [`is_empty`](Injector::is_empty), can't miss each other: the pusher sees
//!    the announcement, or the sleeper sees the item.
//! 6. An item or a batch given to `push` or `push_batch` is either in the stack or handed back,
//!    whatever `close` does meanwhile: all three change the same word.
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

/// The shared queue of a scheduler's workers, for tasks that outside threads spawn, and for
/// overflow.
///
/// A push of one item or of a batch is one read-modify-write on one word. So is a pop of an item
/// that was pushed to an empty queue and is still alone in it. Other pops take the lock. A pop from
/// an empty queue is two loads. No operation allocates.
///
/// A node is aligned to 4 bytes at least. This doesn't compile, because the queue's marks would
/// overlap the address:
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
/// #     unsafe fn next(node: NonNull<Node>) -> Option<NonNull<Node>> {
/// #         unsafe { (*node.as_ptr()).0 }
/// #     }
/// #     unsafe fn set_next(node: NonNull<Node>, next: Option<NonNull<Node>>) {
/// #         unsafe { (*node.as_ptr()).0 = next }
/// #     }
/// # }
/// let injector: Injector<Node> = Injector::new();
/// ```
#[cfg(feature = "std")]
pub struct Injector<T: Linked, L: Lock = crate::DefaultLock> {
    inner: Inner<T, L>,
}

/// The shared queue of a scheduler's workers, for tasks that outside threads spawn, and for
/// overflow.
///
/// A push of one item or of a batch is one read-modify-write on one word. So is a pop of an item
/// that was pushed to an empty queue and is still alone in it. Other pops take the lock. A pop from
/// an empty queue is two loads. No operation allocates.
///
/// A node is aligned to 4 bytes at least; other nodes don't compile.
///
/// Without the feature `std` there is no default lock: name [one of your own](Lock), and make the
/// queue by [`with_lock`](Self::with_lock).
///
/// ```compile_fail,E0107
/// use queue_global::{Boxed, Injector};
///
/// fn push(queue: &Injector<Boxed<u32>>, item: Box<Boxed<u32>>) {
///     queue.push(item).unwrap();
/// }
/// ```
#[cfg(not(feature = "std"))]
pub struct Injector<T: Linked, YourLock: Lock> {
    inner: Inner<T, YourLock>,
}

struct Inner<T: Linked, L> {
    stack: CachePadded<Stack<T>>,
    list: CachePadded<Locked<L, List<T>>>,
    listed: CachePadded<AtomicUsize>,
}

// SAFETY: handles go in on one thread and come out on another. In between, one thread at a time
// touches the shared parts: the nodes' links and the list.
unsafe impl<T: Linked, L: Lock + Send> Send for Injector<T, L> where T::Handle: Send {}

// SAFETY: as above; any thread may take the lock.
unsafe impl<T: Linked, L: Lock + Sync> Sync for Injector<T, L> where T::Handle: Send {}

// Only a handle's drop can panic, and such a panic leaves the queue whole. The queue ignores a
// lock's poison.
impl<T: Linked, L: Lock> UnwindSafe for Injector<T, L> {}
impl<T: Linked, L: Lock> RefUnwindSafe for Injector<T, L> {}

/// The error of a push to a closed queue. It hands back the refused item or batch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Closed<H>(pub H);

#[cfg(feature = "std")]
impl<T: Linked> Injector<T> {
    sync_shim::const_fn! {
        /// Makes an empty, open queue whose lock is std's mutex. `const`, except under a model.
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
        /// Makes an empty, open queue with your own lock, which nobody holds. `const`, except under
        /// a model.
        pub const fn with_lock(lock: L) -> Self {
            let inner = Inner {
                stack: CachePadded::new(Stack::new()),
                list: CachePadded::new(Locked::new(lock, List::new())),
                listed: CachePadded::new(AtomicUsize::new(0)),
            };
            Self { inner }
        }
    }

    /// Pushes an item at the back. One read-modify-write.
    ///
    /// # Errors
    /// Hands the item back if the queue is closed.
    ///
    /// # Panics
    /// In debug builds, if the node is in a list already.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn push(&self, handle: T::Handle) -> Result<(), Closed<T::Handle>> {
        let node = link::enter::<T>(handle);
        // SAFETY: the node is a chain of one, and the handle owned it.
        if unsafe { self.inner.stack.push(node, node, false) } {
            return Ok(());
        }
        // SAFETY: the push was refused, so the node is not in the queue.
        Err(Closed(unsafe { link::leave(node) }))
    }

    /// Pushes a whole list at the back. One read-modify-write, whatever its length.
    ///
    /// # Errors
    /// Hands the list back if the queue is closed.
    pub fn push_batch(&self, batch: List<T>) -> Result<(), Closed<List<T>>> {
        let len = batch.len();
        let Some((first, last)) = batch.into_ends() else {
            return match self.is_closed() {
                true => Err(Closed(List::new())),
                false => Ok(()),
            };
        };
        // SAFETY: the list owned the nodes.
        if unsafe { self.inner.stack.push(first, last, false) } {
            return Ok(());
        }
        // SAFETY: the push was refused, so the nodes are not in the queue. The last link still
        // marks an end, though perhaps by another value than before.
        Err(Closed(unsafe { List::from_parts((first, last), len) }))
    }

    /// Pushes an item at the back, even if the queue is closed. This is for an item that was
    /// accepted before the close, such as a task that was spawned before it and is woken after it.
    ///
    /// # Panics
    /// In debug builds, if the node is in a list already.
    #[inline]
    #[cfg_attr(debug_assertions, track_caller)]
    pub fn requeue(&self, handle: T::Handle) {
        let node = link::enter::<T>(handle);
        // SAFETY: the node is a chain of one, and the handle owned it.
        let pushed = unsafe { self.inner.stack.push(node, node, true) };
        debug_assert!(pushed);
    }

    /// Pushes a whole list, as [`requeue`](Self::requeue) does with an item. One read-modify-write,
    /// whatever its length.
    pub fn requeue_batch(&self, batch: List<T>) {
        if let Some((first, last)) = batch.into_ends() {
            // SAFETY: the list owned the nodes.
            let pushed = unsafe { self.inner.stack.push(first, last, true) };
            debug_assert!(pushed);
        }
    }

    /// Takes the only item without the lock, or finds that there is no item, or that the lock is
    /// needed.
    #[inline]
    fn take_only(&self) -> Found<T> {
        // Ordering: Relaxed, because the length is a hint. It often spares the consumer the load of
        // the word that pushers write.
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

    /// Runs `f` on the list under the lock. If the list has fewer than `n` items, it first gets all
    /// items of the stack. `f` takes up to `n` items.
    fn with<R>(&self, n: usize, f: impl FnOnce(&mut List<T>) -> R) -> R {
        self.inner.list.with(|list| {
            if list.len() < n {
                // SAFETY: this thread holds the lock. If the stack gives one node, the list has at
                // most `n` nodes with it, and `f` takes all of them.
                list.append(&mut unsafe { self.inner.stack.take() });
            }
            let result = f(list);
            if list.is_empty() {
                self.inner.stack.note_empty_list();
            }
            // Ordering: Relaxed; a hint.
            self.inner.listed.store(list.len(), Relaxed);
            result
        })
    }

    /// Takes the oldest item. This is one read-modify-write if the item was pushed to an empty
    /// queue and is still alone in it, and two loads if the queue is empty. Other pops take the
    /// lock.
    #[inline]
    pub fn pop(&self) -> Option<T::Handle> {
        let node = match self.take_only() {
            Found::Nothing => return None,
            Found::Only(node) => node,
            Found::More => self.with(1, List::pop_node)?,
        };
        // SAFETY: the node is out of the queue, and `enter` put it in.
        Some(unsafe { link::leave(node) })
    }

    /// Takes up to `n` of the oldest items. This costs as many read-modify-writes as a
    /// [`pop`](Self::pop), or one more if it moves the items of the stack and takes all items.
    /// Under the lock, it follows the links of the items that it takes. If it moves the items of
    /// the stack, it also follows the links of all of these.
    pub fn pop_n(&self, n: usize) -> List<T> {
        if n == 0 {
            return List::new();
        }
        match self.take_only() {
            Found::Nothing => List::new(),
            // SAFETY: the node was the only one, so it is a chain of one.
            Found::Only(node) => unsafe { List::from_parts((node, node), 1) },
            Found::More => self.with(n, |list| list.split_off_front(n)),
        }
    }

    /// Returns the number of items in the queue, without the lock. This is a hint, but it is 0
    /// exactly if [`is_empty`](Self::is_empty) is true. The items that no consumer has moved to the
    /// list yet count as one item together. While a consumer moves them, `len` may return one more.
    /// [`count`](Self::count) counts each.
    pub fn len(&self) -> usize {
        // Ordering: Relaxed; a hint.
        let listed = || self.inner.listed.load(Relaxed);
        match self.inner.stack.look().holds() {
            Holds::Empty => 0,
            Holds::One(_) => 1,
            Holds::Listed => listed().max(1),
            Holds::More(_) => listed() + 1,
        }
    }

    /// Counts the items in the queue. Exact: the queue had this many items at some moment of the
    /// call. For metrics and reports.
    ///
    /// Costs a load if there is at most one item. Otherwise it takes the lock. If items were pushed
    /// since a consumer last moved the stack's items, it moves them in the consumer's place: it
    /// costs one read-modify-write, and follows the links of these items. The next consumer is
    /// spared that work.
    ///
    /// ```
    /// # #[cfg(feature = "std")] {
    /// use queue_global::{Boxed, Injector};
    ///
    /// let queue = Injector::<Boxed<u32>>::new();
    /// (0..10).for_each(|n| queue.push(Box::new(Boxed::new(n))).unwrap());
    /// assert_eq!((queue.count(), queue.pop().unwrap().value, queue.count()), (10, 0, 9));
    /// # }
    /// ```
    pub fn count(&self) -> usize {
        match self.inner.stack.look().holds() {
            Holds::Empty => return 0,
            Holds::One(_) => return 1,
            Holds::More(_) | Holds::Listed => {}
        }
        self.with(0, |list| match self.inner.stack.look().holds() {
            // The list is empty.
            Holds::Empty => 0,
            Holds::One(_) => 1,
            Holds::Listed => list.len(),
            Holds::More(_) => {
                // SAFETY: this thread holds the lock, and the nodes go into the list.
                list.append(&mut unsafe { self.inner.stack.take_more() });
                list.len()
            }
        })
    }

    /// Returns whether the queue is empty, without the lock. The answer is exact, as is that of a
    /// [`pop`](Self::pop) or a [`pop_n`](Self::pop_n) that finds nothing.
    ///
    /// If true, the queue was empty at some moment. That moment is no earlier than any operation
    /// that happens before this call. It is also no earlier than an operation that precedes a
    /// `SeqCst` fence of another thread, if a later `SeqCst` fence precedes this call.
    pub fn is_empty(&self) -> bool {
        self.inner.stack.look().is_empty()
    }

    /// Closes the queue to pushes; its items stay. Returns `false` if it was closed already.
    pub fn close(&self) -> bool {
        self.with(0, |_| self.inner.stack.close())
    }

    /// Returns whether the queue is closed. One load. A thread that finds it closed also sees all
    /// writes that happened before [`close`](Self::close).
    pub fn is_closed(&self) -> bool {
        self.inner.stack.is_closed()
    }
}

/// The result of a consumer's look without the lock.
enum Found<T> {
    Nothing,
    Only(NonNull<T>),
    More,
}

impl<T: Linked, L> Drop for Inner<T, L> {
    fn drop(&mut self) {
        // SAFETY: no other thread is left that could hold the lock. If the stack gives one node,
        // that node is dropped here, and the list's nodes are dropped next.
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
