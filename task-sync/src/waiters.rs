//! The queue of the tasks that wait for a primitive.
//!
//! # The story
//!
//! A future that must wait has a [`Waiter`] inside itself. The future locks the primitive's
//! [`Waiters`], looks once more whether it must wait, and pushes its waiter with a clone of its
//! task's waker. So a wait allocates nothing. A *notifier* is a thread that has something for a
//! waiter. It locks the queue, pops a waiter, writes what the waiter is granted, takes the waker
//! out, marks the waiter *released*, unlocks, and wakes. The task is polled and finds the mark
//! without the lock. If the future is dropped first, its drop locks the queue and removes the
//! waiter; if a notifier was faster, the drop finds the mark and passes on what was granted.
//!
//! # How to use it
//!
//! ```text
//! Waiters<T, S>          the lock, the queue, and S: other state under the same lock
//!   .lock() -> Locked    derefs to S
//!   .poll(waiter, waker) a later poll of a queued waiter: Ready(T) once it is released;
//!                        else registers the waker, if it has changed
//!   .remove(waiter)      the future's drop: Some(T) if a notifier was faster; else None
//! Locked                 the guard
//!   .push_back(..)       queues a waiter; also .push_front(..)
//!   .front()             the T of the first waiter, to grant it a part
//!   .pop_front(grant)    releases the first waiter, returns its waker; also .pop_back(..)
//!   .wake_all(grant)     releases all waiters that are queued now, unlocks, and wakes
//!   .is_empty(), .for_each(..)
//! Waiter<T>              .is_idle(), .is_queued(), .released() -> Option<T>, .reset(): the owner's,
//!                        without the lock
//! Batch, wake(waker), wake_batch(&mut batch), drop_waker(waker)   after the unlock; contain panics
//! ```
//!
//! `T: Copy` is what a waiter needs and was granted. A future polls so:
//!
//! 1. the fast path of the primitive, without the lock;
//! 2. if it fails, `waker.clone()`, then `lock()`, the check again, and `push_back`;
//! 3. in later polls, `poll`.
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | `Waiter::state` | read by anyone; written by the owner while it is not `QUEUED`, and under the lock |
//! | `Waiter::node`, `Waiter::value` | the owner while `state` is not `QUEUED`; else the lock's holder |
//! | `List` | the lock's holder |
//!
//! # States of a waiter
//!
//! | state | meaning | leaves it by |
//! |---|---|---|
//! | `IDLE` | in no list | `push_back`, `push_front`: to `QUEUED` |
//! | `QUEUED` | in the list, or in a list that `wake_all` split off | a notifier: to `RELEASED`; `remove`: to `IDLE` |
//! | `RELEASED` | in no list, woken or about to be | the owner: a new push, or `reset`: to `IDLE` |
//!
//! # Rules
//!
//! 1. A queued waiter has a waker, and does not move. Its owner removes it before it ends.
//! 2. So each pointer in a list leads to a live waiter, and is followed only under the lock.
//! 3. A notifier writes `RELEASED` last, still under the lock, and does not touch the waiter
//!    afterwards: the owner may then free it without taking the lock.
//! 4. One kind of user code runs under the lock: the closure of `for_each`, which reads the queue
//!    and cannot change it. A waker is cloned before the lock is taken, and woken or dropped after
//!    its release. The panic of a waker that is woken is caught and dropped, so each other
//!    waiter is woken. So is the panic of a waker whose wait is dropped.
//! 5. `wake_all` splits off the whole list in one step, under a sentinel on its stack. A waiter
//!    that is pushed later is not in that list, and `front`, `pop_front` and `pop_back` see only
//!    waiters that were pushed later. The list with a sentinel is a ring, so the removal of a
//!    waiter needs its neighbours alone, whichever list it is in.
//!
//! # Why no wake is lost
//!
//! The owner checks its condition under the lock and then pushes. A notifier changes the condition
//! and then takes the lock, or changes it under the lock. If the notifier's section comes first,
//! the owner's check sees the condition. Otherwise the notifier finds the waiter. A waker that
//! changes is replaced under the lock, and only while the waiter is queued: so either the notifier
//! takes the new waker, or the poll that brought it finds `RELEASED`.
//!
//! Whatever is granted is written before `RELEASED`, and exactly one of two takes it: the poll that
//! finds `RELEASED`, or the drop. Both are the owner's.
use crate::lock::{Lock, LockGuard};
use core::{
    marker::PhantomPinned,
    mem::MaybeUninit,
    ops::{Deref, DerefMut},
    panic::{RefUnwindSafe, UnwindSafe},
    pin::{Pin, pin},
    ptr::NonNull,
    task::{Poll, Waker},
};
use sync_shim::{
    atomic::{
        AtomicU32,
        Ordering::{Acquire, Relaxed, Release},
        Retire,
    },
    cell::UnsafeCell,
    panics::contain,
};
use waker_vtable::WakeList;

const IDLE: u32 = 0;
const QUEUED: u32 = 1;
const RELEASED: u32 = 2;

/// How many waiters a notifier releases before it unlocks and wakes them.
pub(crate) const BATCH: usize = if cfg!(any(selvedge_loom, selvedge_shuttle)) {
    1
} else {
    32
};

/// The wakers that a notifier collects under the lock.
pub(crate) type Batch = WakeList<BATCH>;

/// Wakes a task, and drops the panic of its waker. Not under a lock.
#[inline]
pub(crate) fn wake(waker: Waker) {
    contain(|| waker.wake());
}

/// Wakes and empties a batch, and drops the panics of its wakers. Not under a lock.
#[inline]
pub(crate) fn wake_batch(batch: &mut Batch) {
    contain(|| batch.wake_all());
}

/// Drops the waker of a wait that ended early, and drops its panic: a wait ends so in a drop. Not
/// under a lock.
#[inline]
pub(crate) fn drop_waker(waker: Option<Waker>) {
    contain(|| drop(waker));
}

/// A queue of waiters and its lock, which also protects an `S`.
pub(crate) struct Waiters<T, S = ()> {
    lock: Lock<Inner<T, S>>,
}

struct Inner<T, S> {
    list: List<T>,
    shared: S,
}

/// A place in a queue, for a future to hold. See the front page of this file.
///
/// The first push initialises the node. So the making of a future that needs no wait writes little.
pub(crate) struct Waiter<T> {
    node: UnsafeCell<MaybeUninit<Node<T>>>,
    /// Apart from the node, so that it fits beside `state`.
    value: UnsafeCell<T>,
    state: AtomicU32,
    _pinned: PhantomPinned,
}

struct Node<T> {
    prev: Option<Link<T>>,
    next: Option<Link<T>>,
    waker: Option<Waker>,
}

/// A pointer to a waiter in a list. It is live, and its node may be used, while the lock is held
/// (rule 2).
struct Link<T>(NonNull<Waiter<T>>);

/// The ends of the list. Both are `None`, or none of them.
struct List<T> {
    first: Option<Link<T>>,
    last: Option<Link<T>>,
}

/// The lock of a queue, held.
pub(crate) struct Locked<'a, T, S = ()> {
    waiters: &'a Waiters<T, S>,
    inner: LockGuard<'a, Inner<T, S>>,
}

// SAFETY: the pointers of a list are followed only under the lock (rule 2). A value and a waker
// move between threads with them, so `T: Send`; a `Waker` is `Send`.
unsafe impl<T: Send> Send for List<T> {}
// SAFETY: through a shared reference only the owner and the lock's holder touch the node, in turns
// (the table of fields), which moves the value between threads.
unsafe impl<T: Send> Sync for Waiter<T> {}
// SAFETY: as above. A waiter that is queued does not move, but its future's thread may change.
unsafe impl<T: Send> Send for Waiter<T> {}

// The user code that runs under the lock changes nothing there (rule 4), so its panic leaves the
// queue whole.
impl<T, S: UnwindSafe> UnwindSafe for Waiters<T, S> {}
impl<T, S: UnwindSafe> RefUnwindSafe for Waiters<T, S> {}

impl<T> Clone for Link<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Link<T> {}

impl<T> PartialEq for Link<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<T> Link<T> {
    fn new(waiter: Pin<&Waiter<T>>) -> Self {
        Self(NonNull::from(waiter.get_ref()))
    }

    /// Writes the waiter's node.
    ///
    /// # Safety
    /// The waiter is live, and not queued, and the caller owns it.
    #[inline]
    unsafe fn write(self, node: Node<T>) {
        // SAFETY: the waiter is live.
        let waiter = unsafe { self.0.as_ref() };
        waiter.node.with_mut(|place| {
            // An old node has no waker, so it needs no drop.
            // SAFETY: only the owner of a waiter that is not queued uses the node.
            unsafe { (*place).write(node) };
        });
    }

    /// Runs `f` on the waiter's node.
    ///
    /// # Safety
    /// The waiter is live and was pushed, and no other code uses its node meanwhile: the caller
    /// holds the lock of the queue, or owns a waiter that is not queued. `f` does not use the same
    /// node.
    #[inline]
    unsafe fn with<R>(self, f: impl FnOnce(&mut Node<T>) -> R) -> R {
        // SAFETY: the waiter is live.
        let waiter = unsafe { self.0.as_ref() };
        waiter.node.with_mut(|node| {
            // SAFETY: no other code uses the node.
            let node = unsafe { &mut *node };
            // SAFETY: the push has initialised it.
            f(unsafe { node.assume_init_mut() })
        })
    }

    /// Runs `f` on the waiter's value.
    ///
    /// # Safety
    /// As of `with`.
    #[inline]
    unsafe fn with_value<R>(self, f: impl FnOnce(&mut T) -> R) -> R {
        // SAFETY: the waiter is live.
        let waiter = unsafe { self.0.as_ref() };
        waiter.value.with_mut(|value| {
            // SAFETY: no other code uses the value.
            f(unsafe { &mut *value })
        })
    }

    /// Marks the waiter released.
    ///
    /// # Safety
    /// The waiter is live.
    #[inline]
    unsafe fn released(self) {
        // SAFETY: the waiter is live.
        let waiter = unsafe { self.0.as_ref() };
        // Ordering: Release pairs with the Acquire of `Waiter::released`: the owner sees the value,
        // and this thread has finished with the waiter (rule 3).
        waiter.state.store(RELEASED, Release);
    }
}

impl<T> List<T> {
    /// Takes a waiter out of its list: this one, or a ring that was split off.
    ///
    /// # Safety
    /// The caller holds the lock. The waiter is in this list, or in a ring that was split off it.
    unsafe fn unlink(&mut self, link: Link<T>) {
        // SAFETY: the waiter is in a list, so it is live, and the caller holds the lock.
        let (prev, next) = unsafe { link.with(|node| (node.prev.take(), node.next.take())) };
        match prev {
            // SAFETY: as above. A neighbour is another waiter, or, in a ring, the sentinel.
            Some(prev) => unsafe { prev.with(|node| node.next = next) },
            None => self.first = next,
        }
        match next {
            // SAFETY: as above.
            Some(next) => unsafe { next.with(|node| node.prev = prev) },
            None => self.last = prev,
        }
    }

    /// Unlinks a waiter, lets `grant` change its value, and releases it. Returns its waker.
    ///
    /// # Safety
    /// As of `unlink`.
    unsafe fn release(&mut self, link: Link<T>, grant: impl FnOnce(&mut T)) -> Option<Waker> {
        // SAFETY: the caller's.
        unsafe { self.unlink(link) };
        // SAFETY: the waiter is still `QUEUED`, so it is live, and the caller holds the lock.
        unsafe { link.with_value(grant) };
        // SAFETY: as above.
        let waker = unsafe { link.with(|node| node.waker.take()) };
        // SAFETY: as above.
        unsafe { link.released() };
        waker
    }
}

impl<T: Copy, S> Waiters<T, S> {
    sync_shim::const_fn! {
        pub(crate) const fn new(shared: S) -> Self {
            let list = List { first: None, last: None };
            Self { lock: Lock::new(Inner { list, shared }) }
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> Locked<'_, T, S> {
        Locked {
            waiters: self,
            inner: self.lock.lock(),
        }
    }

    /// Polls a waiter that was pushed. Returns its value once it is released. Until then registers
    /// `waker` in the place of an earlier one, unless they wake the same task.
    ///
    /// # Safety
    /// The caller owns the waiter, and has pushed it to this queue.
    ///
    /// # Panics
    /// If the clone or the drop of a waker panics. The waiter then has one of the two wakers.
    pub(crate) unsafe fn poll(&self, waiter: Pin<&Waiter<T>>, waker: &Waker) -> Poll<T> {
        if let Some(value) = waiter.released() {
            return Poll::Ready(value);
        }
        let link = Link::new(waiter);
        let locked = self.lock();
        if !waiter.is_queued() {
            return waiter.released().map_or(Poll::Pending, Poll::Ready);
        }
        // SAFETY: the lock is held and the waiter is queued here.
        let same = unsafe {
            link.with(|node| node.waker.as_ref().is_some_and(|old| old.will_wake(waker)))
        };
        drop(locked);
        if same {
            return Poll::Pending;
        }
        let mut new = Some(waker.clone());
        let locked = self.lock();
        if waiter.is_queued() {
            // SAFETY: as above. After the swap `new` is the old waker.
            unsafe { link.with(|node| core::mem::swap(&mut node.waker, &mut new)) };
        }
        drop(locked);
        drop(new);
        waiter.released().map_or(Poll::Pending, Poll::Ready)
    }

    /// Ends the wait of a waiter that was pushed: for the drop of its owner. Returns the value if
    /// a notifier was faster. Otherwise removes the waiter from the queue and drops its waker.
    ///
    /// # Safety
    /// As of `poll`.
    pub(crate) unsafe fn remove(&self, waiter: Pin<&Waiter<T>>) -> Option<T> {
        if let Some(value) = waiter.released() {
            return Some(value);
        }
        // SAFETY: the caller's.
        let waker = unsafe { self.lock().remove(waiter) };
        if waker.is_none() {
            return waiter.released();
        }
        drop_waker(waker);
        None
    }
}

impl<T: Copy, S> Locked<'_, T, S> {
    /// Returns whether no waiter is queued. Waiters that a `wake_all` has yet to release are not
    /// counted.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.inner.list.first.is_none()
    }

    /// Returns the number of queued waiters, or 2 if there are more.
    #[inline]
    pub(crate) fn len_up_to_two(&self) -> usize {
        match (self.inner.list.first, self.inner.list.last) {
            (Some(first), Some(last)) if first == last => 1,
            (None, _) => 0,
            _ => 2,
        }
    }

    /// Queues a waiter behind all others, with the waker of its task and its value.
    ///
    /// # Safety
    /// - The caller owns the waiter, and the waiter is not queued.
    /// - While the waiter is queued, its owner uses it with this queue alone.
    /// - Before the waiter ends, its owner calls `remove` of this queue, or has seen that the
    ///   waiter is released.
    pub(crate) unsafe fn push_back(&mut self, waiter: Pin<&Waiter<T>>, waker: Waker, value: T) {
        debug_assert!(!waiter.is_queued());
        let link = Link::new(waiter);
        let prev = self.inner.list.last.replace(link);
        // SAFETY: the caller's. `prev` is in the list and the lock is held.
        unsafe { self.link(link, prev, None, waker, value) };
        match prev {
            // SAFETY: the waiter is in the list and the lock is held.
            Some(prev) => unsafe { prev.with(|node| node.next = Some(link)) },
            None => self.inner.list.first = Some(link),
        }
    }

    /// Queues a waiter before all others, as [`push_back`](Self::push_back) does behind them.
    ///
    /// # Safety
    /// As of `push_back`.
    pub(crate) unsafe fn push_front(&mut self, waiter: Pin<&Waiter<T>>, waker: Waker, value: T) {
        let link = Link::new(waiter);
        let next = self.inner.list.first.replace(link);
        // SAFETY: the caller's. `next` is in the list and the lock is held.
        unsafe { self.link(link, None, next, waker, value) };
        match next {
            // SAFETY: the waiter is in the list and the lock is held.
            Some(next) => unsafe { next.with(|node| node.prev = Some(link)) },
            None => self.inner.list.last = Some(link),
        }
    }

    /// Fills in the node of a waiter that is being pushed.
    ///
    /// # Safety
    /// As of `push_back`.
    #[inline]
    unsafe fn link(
        &mut self,
        link: Link<T>,
        prev: Option<Link<T>>,
        next: Option<Link<T>>,
        waker: Waker,
        value: T,
    ) {
        let node = Node {
            prev,
            next,
            waker: Some(waker),
        };
        // SAFETY: the caller owns the waiter, which is not queued.
        unsafe { link.write(node) };
        // SAFETY: as above.
        unsafe { link.with_value(|old| *old = value) };
        // SAFETY: the caller owns the waiter.
        let waiter = unsafe { link.0.as_ref() };
        // Ordering: Relaxed. The owner reads its own store, and notifiers read the state under the
        // lock.
        waiter.state.store(QUEUED, Relaxed);
    }

    /// Removes a waiter from the queue and returns its waker, which the caller drops after the
    /// unlock. Returns `None` if the waiter is not queued.
    ///
    /// # Safety
    /// The caller owns the waiter, which was not pushed to another queue.
    pub(crate) unsafe fn remove(&mut self, waiter: Pin<&Waiter<T>>) -> Option<Waker> {
        if !waiter.is_queued() {
            return None;
        }
        let link = Link::new(waiter);
        // SAFETY: the lock is held and the waiter is queued here.
        unsafe { self.inner.list.unlink(link) };
        // Ordering: Relaxed, as in `link`.
        waiter.state.store(IDLE, Relaxed);
        // SAFETY: the waiter is in no list any more, and the caller owns it.
        unsafe { link.with(|node| node.waker.take()) }
    }

    /// Returns the value of a waiter that is queued here, for its owner.
    ///
    /// # Safety
    /// The caller owns the waiter, and it is queued here or in no queue.
    pub(crate) unsafe fn value(&self, waiter: Pin<&Waiter<T>>) -> T {
        // SAFETY: the lock is held, and the caller owns the waiter.
        unsafe { Link::new(waiter).with_value(|value| *value) }
    }

    /// Returns the value of the first waiter.
    #[inline]
    pub(crate) fn front(&self) -> Option<T> {
        let first = self.inner.list.first?;
        // SAFETY: the waiter is in the list and the lock is held.
        Some(unsafe { first.with_value(|value| *value) })
    }

    /// Returns how many of the first waiters, up to `most`, have a value of which `f` returns true,
    /// and whether no other waiter is queued.
    pub(crate) fn count_first(&self, most: usize, f: impl Fn(T) -> bool) -> (usize, bool) {
        let (mut count, mut next) = (0, self.inner.list.first);
        while let Some(link) = next {
            // SAFETY: the waiter is in the list and the lock is held.
            if count == most || !f(unsafe { link.with_value(|value| *value) }) {
                return (count, false);
            }
            count += 1;
            // SAFETY: as above.
            next = unsafe { link.with(|node| node.next) };
        }
        (count, true)
    }

    /// Changes the value of the first waiter, which stays queued.
    #[inline]
    pub(crate) fn set_front(&mut self, value: T) {
        if let Some(first) = self.inner.list.first {
            // SAFETY: the waiter is in the list and the lock is held.
            unsafe { first.with_value(|old| *old = value) };
        }
    }

    /// Releases the first waiter, after `grant` has changed its value. Returns its waker, which the
    /// caller wakes after the unlock; `None` if no waiter is queued.
    #[inline]
    pub(crate) fn pop_front(&mut self, grant: impl FnOnce(&mut T)) -> Option<Waker> {
        let first = self.inner.list.first?;
        // SAFETY: the waiter is in the list and the lock is held.
        unsafe { self.inner.list.release(first, grant) }
    }

    /// Releases the last waiter, as [`pop_front`](Self::pop_front) does the first.
    #[inline]
    pub(crate) fn pop_back(&mut self, grant: impl FnOnce(&mut T)) -> Option<Waker> {
        let last = self.inner.list.last?;
        // SAFETY: the waiter is in the list and the lock is held.
        unsafe { self.inner.list.release(last, grant) }
    }

    /// Releases all waiters that are queued at this moment, after `grant` has changed the value of
    /// each, and wakes them. Unlocks; between batches of wakes the lock is free for others.
    pub(crate) fn wake_all(mut self, mut grant: impl FnMut(&mut T)) {
        let Some(value) = self.front() else { return };
        let sentinel = pin!(Waiter::new(value));
        let mut ring = Ring {
            waiters: self.waiters,
            sentinel: sentinel.as_ref(),
            grant: &mut grant,
            is_done: false,
        };
        ring.split_off(&mut self.inner.list);
        ring.wake(self);
    }

    /// Calls `f` with the waker and the value of each queued waiter, from the first to the last.
    /// `f` may be user code (rule 4).
    pub(crate) fn for_each(&mut self, mut f: impl FnMut(&Waker, T)) {
        let mut next = self.inner.list.first;
        while let Some(link) = next {
            // SAFETY: the waiter is in the list and the lock is held.
            let value = unsafe { link.with_value(|value| *value) };
            // SAFETY: as above, and `f` cannot reach the node.
            next = unsafe {
                link.with(|node| {
                    if let Some(waker) = &node.waker {
                        f(waker, value);
                    }
                    node.next
                })
            };
        }
    }
}

impl<T, S> Deref for Locked<'_, T, S> {
    type Target = S;

    #[inline]
    fn deref(&self) -> &S {
        &self.inner.shared
    }
}

impl<T, S> DerefMut for Locked<'_, T, S> {
    #[inline]
    fn deref_mut(&mut self) -> &mut S {
        &mut self.inner.shared
    }
}

/// A list that was split off. Its drop releases what is left, so that no waiter points to the
/// sentinel afterwards, even if a wake unwinds (without `std` a panic is not caught).
struct Ring<'a, T: Copy, S, F: FnMut(&mut T)> {
    waiters: &'a Waiters<T, S>,
    sentinel: Pin<&'a Waiter<T>>,
    grant: &'a mut F,
    is_done: bool,
}

impl<'a, T: Copy, S, F: FnMut(&mut T)> Ring<'a, T, S, F> {
    /// Moves all waiters of the list behind the sentinel. The lock is held.
    fn split_off(&mut self, list: &mut List<T>) {
        let sentinel = Link::new(self.sentinel);
        let first = list.first.take().unwrap_or(sentinel);
        let last = list.last.take().unwrap_or(sentinel);
        let node = Node {
            prev: Some(last),
            next: Some(first),
            waker: None,
        };
        // SAFETY: nobody else knows the sentinel.
        unsafe { sentinel.write(node) };
        // SAFETY: the waiter was in the list, or is the sentinel, and the lock is held.
        unsafe { first.with(|node| node.prev = Some(sentinel)) };
        // SAFETY: as above.
        unsafe { last.with(|node| node.next = Some(sentinel)) };
    }

    /// Releases and wakes all waiters of the ring.
    fn wake(&mut self, mut locked: Locked<'a, T, S>) {
        let sentinel = Link::new(self.sentinel);
        let mut batch = Batch::new();
        loop {
            // SAFETY: the sentinel is live, and the lock is held.
            let first = unsafe { sentinel.with(|node| node.next) };
            let first = first.filter(|first| *first != sentinel);
            let Some(first) = first else {
                self.is_done = true;
                drop(locked);
                return wake_batch(&mut batch);
            };
            if batch.is_full() {
                drop(locked);
                wake_batch(&mut batch);
                locked = self.waiters.lock();
                continue;
            }
            // SAFETY: the waiter is in the ring and the lock is held.
            let waker = unsafe { locked.inner.list.release(first, &mut *self.grant) };
            // A queued waiter has a waker (rule 1), and the batch is not full.
            waker.map(|waker| batch.push(waker));
        }
    }
}

impl<T: Copy, S, F: FnMut(&mut T)> Drop for Ring<'_, T, S, F> {
    fn drop(&mut self) {
        if !self.is_done {
            self.wake(self.waiters.lock());
        }
    }
}

impl<T: Copy> Waiter<T> {
    sync_shim::const_fn! {
        pub(crate) const fn new(value: T) -> Self {
            Self {
                node: UnsafeCell::new(MaybeUninit::uninit()),
                value: UnsafeCell::new(value),
                state: AtomicU32::new(IDLE),
                _pinned: PhantomPinned,
            }
        }
    }

    /// Returns whether the waiter is queued. The owner may use the answer "no" without the lock.
    #[inline]
    pub(crate) fn is_queued(&self) -> bool {
        // Ordering: Acquire pairs with the Release of `Link::released`: the owner may free the
        // waiter after "no".
        self.state.load(Acquire) == QUEUED
    }

    /// Returns whether the waiter was never pushed, or was removed or reset. For the owner alone.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        // Ordering: Relaxed. Only the owner changes whether the waiter is idle.
        self.state.load(Relaxed) == IDLE
    }

    /// Makes a released waiter idle, after its owner has taken what it was granted. Does nothing to
    /// an idle one. A queued waiter must not be reset.
    #[inline]
    pub(crate) fn reset(&self) {
        debug_assert!(!self.is_queued());
        // Ordering: Relaxed. The waiter is not queued, so only its owner reads the state.
        self.state.store(IDLE, Relaxed);
    }

    /// Returns the value if a notifier has released the waiter. For the owner alone.
    #[inline]
    pub(crate) fn released(&self) -> Option<T> {
        // Ordering: Acquire pairs with the Release of `Link::released`: the value is written, and
        // the notifier has finished with the waiter.
        (self.state.load(Acquire) == RELEASED).then(|| {
            self.value.with(|value| {
                // SAFETY: the waiter is not queued, so the value is the owner's, which calls this.
                unsafe { *value }
            })
        })
    }
}

impl<T> Drop for Waiter<T> {
    #[inline]
    fn drop(&mut self) {
        self.state.retire();
        self.node.retire();
        self.value.retire();
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
