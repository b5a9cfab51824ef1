//! Notifications of tasks: one permit, and a queue of waiters.
//!
//! # The story
//!
//! A task creates a [`Notified`] and polls it. The first poll takes the permit if there is one;
//! else it queues a waiter. `notify_one` releases the first waiter, or stores the permit if nobody
//! waits. `notify_waiters` releases all waiters, and also all futures that exist and were not
//! polled yet: each future has noted the *generation* at its creation, and each call begins a new
//! one.
//!
//! # Fields
//!
//! | field | may be touched by |
//! |---|---|
//! | `Notify::state` | anyone, as the rules say |
//! | `Notify::waiters` | the holder of its lock |
//! | `Wait::seen` | the future's owner |
//! | `Wait::waiter` | see the front page of `waiters.rs` |
//!
//! `state` is the generation and two bits. `PERMIT`: there is a permit. `WAITING`: there may be
//! queued waiters, so a notifier must look.
//!
//! # Rules
//!
//! 1. `PERMIT` and `WAITING` are never set together.
//! 2. While the queue has a waiter, `WAITING` is set. It may stay set when the last waiter leaves:
//!    so two tasks that notify each other in turns do not set and clear it each time.
//! 3. Only the lock's holder sets or clears `WAITING`. A waiter is pushed after `WAITING` was set,
//!    under the same lock.
//! 4. While `WAITING` is clear, a step on `state` needs no lock, and is one compare-exchange. While
//!    it is set, only the lock's holder changes `state`.
//! 5. Each `notify_waiters` adds one to the generation. A future whose `seen` is another generation
//!    is ready.
//!
//! # Why no notification is lost
//!
//! A notifier changes the user's condition before its step on `state`; the waiting task's first
//! poll checks `state`, and then the task checks the condition. The steps on `state` have one
//! order. If the notifier's step is first, the poll takes the permit or sees the new generation. If
//! the poll's step is first, it has set `WAITING`, and the notifier finds the waiter under the
//! lock. A future that was created after the generation changed has acquired that change, so its
//! task sees the condition.
//!
//! A waiter that was released by one notification owes it: if the future is dropped before a poll
//! has seen the release, the drop notifies again, in the same way.
use crate::{
    waiters::{Locked, Waiters, wake},
    waiting::Waiting,
};
use alloc::sync::Arc;
use core::{
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
};
use sync_shim::atomic::{
    AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

mod notified;

use notified::Wait;
pub use notified::{Notified, OwnedNotified};

const PERMIT: usize = 1;
const WAITING: usize = 2;
const GENERATION: usize = 4;

const fn generation(state: usize) -> usize {
    state & !(PERMIT | WAITING)
}

/// Why a waiter was released. With four bytes a waiter has no padding within. So a new future is
/// copied in whole words, and no load waits for several smaller stores.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Reason {
    /// It was not.
    None,
    One,
    Last,
    All,
}

/// Notifies tasks, one at a time or all that wait.
///
/// A `Notify` is a semaphore with at most one permit, and no permit at first. `notified().await`
/// waits for the permit and takes it. [`notify_one`](Self::notify_one) hands the permit to the task
/// that has waited longest, or stores it. It carries no data: the tasks share that by other means.
///
/// ```
/// use std::{cell::RefCell, collections::VecDeque};
/// use task_sync::Notify;
///
/// struct Queue<T> {
///     values: RefCell<VecDeque<T>>,
///     notify: Notify,
/// }
///
/// impl<T> Queue<T> {
///     fn push(&self, value: T) {
///         self.values.borrow_mut().push_back(value);
///         self.notify.notify_one();
///     }
///
///     async fn pop(&self) -> T {
///         loop {
///             if let Some(value) = self.values.borrow_mut().pop_front() {
///                 return value;
///             }
///             self.notify.notified().await;
///         }
///     }
/// }
///
/// let queue = Queue { values: RefCell::default(), notify: Notify::new() };
/// let (popped, ()) = futures::executor::block_on(async {
///     futures::join!(queue.pop(), async { queue.push("hello") })
/// });
/// assert_eq!(popped, "hello");
/// ```
pub struct Notify {
    state: AtomicUsize,
    waiters: Waiters<Reason>,
}

// The code of a waker runs while no thread holds the lock, and the state is consistent then.
impl UnwindSafe for Notify {}
impl RefUnwindSafe for Notify {}

impl Notify {
    sync_shim::const_fn! {
        /// Creates a `Notify` without a permit. `const`, except under a model.
        ///
        /// ```
        /// use futures::FutureExt;
        /// use task_sync::Notify;
        ///
        /// let notify = Notify::new();
        /// assert!(notify.notified().now_or_never().is_none());
        /// ```
        pub const fn new() -> Self {
            Self {
                state: AtomicUsize::new(0),
                waiters: Waiters::new(()),
            }
        }
    }

    sync_shim::const_fn! {
        /// Creates a `Notify` in a `static`. The same as [`new`](Self::new).
        ///
        /// ```
        /// use task_sync::Notify;
        ///
        /// static NOTIFY: Notify = Notify::const_new();
        /// NOTIFY.notify_one();
        /// futures::executor::block_on(NOTIFY.notified());
        /// ```
        pub const fn const_new() -> Self {
            Self::new()
        }
    }

    /// Returns a future that waits for a notification.
    ///
    /// The future takes its place in the queue at its first poll, or at
    /// [`enable`](Notified::enable). But a [`notify_waiters`](Self::notify_waiters) after
    /// this call makes it ready even before that.
    ///
    /// If the future is dropped, its place in the queue is lost. If it was notified by `notify_one`
    /// or `notify_last` and not polled since, its drop passes the notification on.
    ///
    /// ```
    /// use task_sync::Notify;
    ///
    /// let notify = Notify::new();
    /// let notified = notify.notified();
    /// notify.notify_waiters();
    /// futures::executor::block_on(notified);
    /// ```
    #[inline]
    pub fn notified(&self) -> Notified<'_> {
        Notified {
            notify: self,
            wait: self.wait(),
        }
    }

    /// Returns a future that waits for a notification, as [`notified`](Self::notified) does, and
    /// that owns a reference to this `Notify`.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use task_sync::Notify;
    ///
    /// let notify = Arc::new(Notify::new());
    /// let notified = notify.clone().notified_owned();
    /// let waiting = std::thread::spawn(|| futures::executor::block_on(notified));
    /// notify.notify_one();
    /// waiting.join().unwrap();
    /// ```
    pub fn notified_owned(self: Arc<Self>) -> OwnedNotified {
        let wait = self.wait();
        OwnedNotified { notify: self, wait }
    }

    #[inline]
    fn wait(&self) -> Wait {
        // Ordering: Acquire pairs with the Release of `notify_waiters`: if this future is of the
        // new generation, its task sees the condition.
        Wait::new(generation(self.state.load(Acquire)))
    }

    /// Notifies the task that has waited longest. If none waits, stores the permit; there is at
    /// most one.
    ///
    /// After its `notified().await`, the task sees everything that happened before this call.
    ///
    /// Costs one read-modify-write if nobody waits, else a lock and a wake. The first call after
    /// the last waiter has left costs a lock, too.
    ///
    /// ```
    /// use futures::FutureExt;
    /// use task_sync::Notify;
    ///
    /// let notify = Notify::new();
    /// notify.notify_one();
    /// notify.notify_one();
    /// assert!(notify.notified().now_or_never().is_some());
    /// assert!(notify.notified().now_or_never().is_none());
    /// ```
    #[inline]
    pub fn notify_one(&self) {
        self.notify(Reason::One);
    }

    /// Notifies the task that has waited for the shortest time. If none waits, stores the permit,
    /// as [`notify_one`](Self::notify_one) does.
    ///
    /// ```
    /// use futures::FutureExt;
    /// use std::pin::pin;
    /// use task_sync::Notify;
    ///
    /// let notify = Notify::new();
    /// let (mut first, mut last) = (pin!(notify.notified()), pin!(notify.notified()));
    /// first.as_mut().enable();
    /// last.as_mut().enable();
    /// notify.notify_last();
    /// assert!(last.now_or_never().is_some());
    /// assert!(first.now_or_never().is_none());
    /// ```
    pub fn notify_last(&self) {
        self.notify(Reason::Last);
    }

    /// Notifies all tasks that wait, and makes each [`Notified`] that exists
    /// ready. Stores no permit.
    ///
    /// ```
    /// use futures::FutureExt;
    /// use task_sync::Notify;
    ///
    /// let notify = Notify::new();
    /// let (polled_later, second) = (notify.notified(), notify.notified());
    /// notify.notify_waiters();
    /// assert!(polled_later.now_or_never().is_some());
    /// assert!(second.now_or_never().is_some());
    /// assert!(notify.notified().now_or_never().is_none());
    /// ```
    pub fn notify_waiters(&self) {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        while state & WAITING == 0 {
            let next = state.wrapping_add(GENERATION);
            // Ordering: Release pairs with the Acquire of a future's creation and polls, which see
            // the condition with the generation. It continues the Release of a stored permit, as a
            // read-modify-write. Relaxed on failure: the value is the next guess.
            match self.state.compare_exchange(state, next, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
        let locked = self.waiters.lock();
        // Ordering: Release, as above.
        self.state.fetch_add(GENERATION, Release);
        locked.wake_all(|reason| *reason = Reason::All);
    }

    /// Calls `f` for each task that waits, from the first in the queue to the last. For dumps of
    /// tasks. `f` runs under the internal lock, so it must be short; see [`Waiting`] for what it
    /// may do. The call skips the tasks that a `notify_waiters` is about to wake.
    ///
    /// ```
    /// use std::pin::pin;
    /// use task_sync::Notify;
    ///
    /// let notify = Notify::new();
    /// let mut notified = pin!(notify.notified());
    /// notified.as_mut().enable();
    /// let mut waiting = 0;
    /// notify.for_each_waiter(|task| waiting += task.needed());
    /// assert_eq!(waiting, 1);
    /// ```
    pub fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        let mut locked = self.waiters.lock();
        locked.for_each(|waker, _| f(&Waiting::new(waker, 1)));
    }

    #[inline]
    fn notify(&self, reason: Reason) {
        // Ordering: Relaxed, a guess that the exchange checks.
        let state = self.state.load(Relaxed);
        if state & WAITING != 0 || !self.store_permit(state) {
            self.notify_waiter(reason);
        }
    }

    /// Stores the permit, and returns true; or returns false if `WAITING` is set.
    #[inline]
    fn store_permit(&self, mut state: usize) -> bool {
        while state & WAITING == 0 {
            // A permit that is there is stored once more: the future that takes it shall see what
            // happened before each of the calls.
            // Ordering: Release pairs with the Acquire of the future that takes the permit. It
            // continues the earlier Releases, as a read-modify-write. Relaxed on failure: the value
            // is the next guess.
            match self
                .state
                .compare_exchange(state, state | PERMIT, Release, Relaxed)
            {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// Releases a waiter, or stores the permit if the queue is empty.
    fn notify_waiter(&self, reason: Reason) {
        let mut locked = self.waiters.lock();
        let waker = match reason {
            Reason::Last => locked.pop_back(|it| *it = reason),
            _ => locked.pop_front(|it| *it = reason),
        };
        match waker {
            Some(waker) => {
                drop(locked);
                wake(waker);
            }
            None => self.store_permit_locked(&locked),
        }
    }

    /// Stores the permit under the lock of an empty queue, and clears `WAITING`.
    fn store_permit_locked(&self, _empty: &Locked<'_, Reason>) {
        // Ordering: Relaxed, a guess that the exchange checks.
        let mut state = self.state.load(Relaxed);
        loop {
            let next = (state & !WAITING) | PERMIT;
            // Ordering: as in `store_permit`.
            match self.state.compare_exchange(state, next, Release, Relaxed) {
                Ok(_) => return,
                Err(now) => state = now,
            }
        }
    }
}

impl Notify {
    /// Sees a newer generation than `seen`, or takes the permit. Otherwise returns the state as an
    /// error. A future that `notify_waiters` has completed leaves the permit to another one.
    #[inline]
    fn take(&self, seen: usize) -> Result<(), usize> {
        loop {
            // Ordering: Acquire pairs with the Release of each notification: the task sees the
            // condition.
            let state = self.state.load(Acquire);
            if generation(state) != seen {
                return Ok(());
            }
            if state & PERMIT == 0 {
                return Err(state);
            }
            // Ordering: Acquire on success, as above. No other thread needs to see what came before
            // a take. Relaxed on failure: the load looks again.
            let taken = self
                .state
                .compare_exchange(state, state & !PERMIT, Acquire, Relaxed);
            if taken.is_ok() {
                return Ok(());
            }
        }
    }

    /// Takes as `take` does, under the lock, and returns true. Otherwise sets `WAITING`.
    fn take_or_wait(&self, seen: usize, _held: &Locked<'_, Reason>) -> bool {
        loop {
            let Err(state) = self.take(seen) else {
                return true;
            };
            // Ordering: Relaxed on success. A notifier that sees `WAITING` takes the lock, which
            // orders it after the push. Relaxed on failure: `take` looks again.
            if state & WAITING != 0
                || self
                    .state
                    .compare_exchange(state, state | WAITING, Relaxed, Relaxed)
                    .is_ok()
            {
                return false;
            }
        }
    }
}

impl Default for Notify {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Ordering: Relaxed, the value is only printed.
        let state = self.state.load(Relaxed);
        f.debug_struct("Notify")
            .field("permit", &(state & PERMIT != 0))
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
