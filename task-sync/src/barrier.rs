//! A barrier: tasks wait for each other.
//!
//! The lock of the queue protects the number of tasks that have arrived in the present *round*, and
//! the number of the round. The last task to arrive begins a new round and releases all waiters. A
//! wait that is dropped in its round takes its arrival back. If its round is over it takes nothing
//! back: the arrival was counted.
use crate::{
    coop::WaitsOn,
    wait::{Request, Wait},
    waiters::{Waiter, Waiters, drop_waker},
    waiting::Waiting,
};
use core::{
    fmt,
    future::Future,
    panic::{RefUnwindSafe, UnwindSafe},
    pin::Pin,
    task::{Poll, Waker, ready},
};

/// Lets a number of tasks wait for each other, again and again.
///
/// ```
/// use futures::future::join3;
/// use task_sync::Barrier;
///
/// let barrier = Barrier::new(3);
/// let wait = || async { barrier.wait().await.is_leader() };
/// for _ in 0..2 {
///     let (a, b, c) = futures::executor::block_on(join3(wait(), wait(), wait()));
///     let leaders = [a, b, c].into_iter().filter(|is_leader| *is_leader);
///     assert_eq!(leaders.count(), 1);
/// }
/// ```
pub struct Barrier {
    waiters: Waiters<(), Round>,
    size: usize,
}

struct Round {
    number: usize,
    arrived: usize,
}

// The code of a waker runs while no thread holds the lock.
impl UnwindSafe for Barrier {}
impl RefUnwindSafe for Barrier {}

impl Barrier {
    sync_shim::const_fn! {
        /// Creates a barrier for `n` tasks. A barrier for 0 tasks is one for 1. `const`, except
        /// under a model.
        ///
        /// ```
        /// use task_sync::Barrier;
        ///
        /// let alone = Barrier::new(1);
        /// assert!(futures::executor::block_on(alone.wait()).is_leader());
        /// ```
        pub const fn new(n: usize) -> Self {
            let round = Round { number: 0, arrived: 0 };
            Self {
                waiters: Waiters::new(round),
                size: if n == 0 { 1 } else { n },
            }
        }
    }

    /// Waits until as many tasks wait as the barrier is for. The last of them is the leader. The
    /// next tasks then wait for each other.
    ///
    /// The task arrives in the first poll. If the future is dropped before all have arrived, its
    /// arrival is taken back.
    ///
    /// ```
    /// use futures::FutureExt;
    /// use task_sync::Barrier;
    ///
    /// let barrier = Barrier::new(2);
    /// assert!(barrier.wait().now_or_never().is_none());
    /// // That wait was dropped, so this one is alone.
    /// assert!(barrier.wait().now_or_never().is_none());
    /// ```
    pub fn wait(&self) -> impl Future<Output = BarrierWaitResult> {
        let arrival = Arrival {
            barrier: self,
            round: None,
        };
        Wait::new(arrival, |_, result| result)
    }

    /// Calls `f` for each task that waits. For dumps of tasks. `f` runs under the internal lock, so
    /// it must be short; see [`Waiting`] for what it may do.
    ///
    /// ```
    /// use futures::{FutureExt, future::join};
    /// use task_sync::Barrier;
    ///
    /// let barrier = Barrier::new(2);
    /// let count = async {
    ///     let mut waiting = 0;
    ///     barrier.for_each_waiter(|task| waiting += task.needed());
    ///     assert_eq!(waiting, 1);
    /// };
    /// assert!(join(barrier.wait(), count).now_or_never().is_none());
    /// ```
    pub fn for_each_waiter(&self, mut f: impl FnMut(&Waiting<'_>)) {
        let mut locked = self.waiters.lock();
        locked.for_each(|waker, ()| f(&Waiting::new(waker, 1)));
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Barrier")
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

/// Says whether a task is the leader of those that waited together.
///
/// ```
/// use task_sync::{Barrier, BarrierWaitResult};
///
/// let barrier = Barrier::new(1);
/// let result: BarrierWaitResult = futures::executor::block_on(barrier.wait());
/// assert!(result.is_leader());
/// ```
#[derive(Clone, Debug)]
pub struct BarrierWaitResult(bool);

impl BarrierWaitResult {
    /// Returns true for one of the tasks that waited together: the one that arrived last.
    ///
    /// ```
    /// let barrier = task_sync::Barrier::new(1);
    /// assert!(futures::executor::block_on(barrier.wait()).is_leader());
    /// ```
    pub fn is_leader(&self) -> bool {
        self.0
    }
}

/// The request that all tasks of a round have arrived.
struct Arrival<'a> {
    barrier: &'a Barrier,
    /// The round in which the task has arrived, if it waits.
    round: Option<usize>,
}

impl Request for Arrival<'_> {
    type Value = ();
    const NEW: () = ();
    type Output = BarrierWaitResult;

    unsafe fn poll(&mut self, waiter: Pin<&Waiter<()>>, waker: &Waker) -> Poll<BarrierWaitResult> {
        if self.round.is_some() {
            // SAFETY: the caller's. The waiter was pushed to this queue.
            ready!(unsafe { self.barrier.waiters.poll(waiter, waker) });
            return Poll::Ready(BarrierWaitResult(false));
        }
        // Declared before the guard, so that it is dropped after the unlock.
        let waker = waker.clone();
        let mut locked = self.barrier.waiters.lock();
        locked.arrived += 1;
        if locked.arrived == self.barrier.size {
            locked.arrived = 0;
            locked.number = locked.number.wrapping_add(1);
            locked.wake_all(|()| ());
            return Poll::Ready(BarrierWaitResult(true));
        }
        self.round = Some(locked.number);
        // SAFETY: the caller's. The waiter is not queued.
        unsafe { locked.push_back(waiter, waker, ()) };
        Poll::Pending
    }

    unsafe fn cancel(&mut self, waiter: Pin<&Waiter<()>>) {
        let mut locked = self.barrier.waiters.lock();
        // SAFETY: the caller's. The waiter was pushed to this queue.
        let waker = unsafe { locked.remove(waiter) };
        // A waiter that the leader has yet to release is still queued, but its round is over.
        if waker.is_some() && self.round == Some(locked.number) {
            locked.arrived -= 1;
        }
        drop(locked);
        drop_waker(waker);
    }

    fn waits_on(&self) -> WaitsOn {
        WaitsOn::event("the other tasks at a barrier", self.barrier)
    }
}

#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
