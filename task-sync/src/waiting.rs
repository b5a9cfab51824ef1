//! A view of a waiting task, for dumps of tasks.
use core::{fmt, task::Waker};

/// A task that waits for a primitive of this crate, as a `for_each_waiter` reports it.
///
/// The closure of a `for_each_waiter` runs under the primitive's internal lock. It must be short:
/// each thread that uses the primitive meanwhile spins or sleeps until the closure has returned for
/// all tasks. So it must not print or block. It must not use the primitive that it was called from,
/// nor wake, clone or drop a waker: each of these may deadlock. It may compare the waker
/// ([`Waker::will_wake`], [`Waker::data`]) and copy what it finds.
///
/// ```
/// use std::{pin::pin, task::{Context, Waker}};
/// use task_sync::Semaphore;
///
/// let semaphore = Semaphore::new(1);
/// let mut acquire = pin!(semaphore.acquire_many(3));
/// assert!(acquire.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
/// let mut waiting = 0;
/// semaphore.for_each_waiter(|task| {
///     assert_eq!(task.needed(), 2); // It has got one permit.
///     waiting += 1;
/// });
/// assert_eq!(waiting, 1);
/// ```
pub struct Waiting<'a> {
    waker: &'a Waker,
    needed: usize,
}

impl<'a> Waiting<'a> {
    pub(crate) fn new(waker: &'a Waker, needed: usize) -> Self {
        Self { waker, needed }
    }

    /// Returns the waker that the task registered in its last poll.
    ///
    /// ```
    /// # let semaphore = task_sync::Semaphore::new(1);
    /// let mut tasks = Vec::with_capacity(100);
    /// semaphore.for_each_waiter(|task| tasks.push(task.waker().data()));
    /// println!("these wait: {tasks:?}"); // Not under the lock.
    /// ```
    pub fn waker(&self) -> &'a Waker {
        self.waker
    }

    /// Returns how many units the task still waits for: the permits that it lacks, or 1 where the
    /// primitive has no units.
    ///
    /// ```
    /// # let semaphore = task_sync::Semaphore::new(1);
    /// let mut permits = 0;
    /// semaphore.for_each_waiter(|task| permits += task.needed());
    /// println!("the tasks wait for {permits} permits"); // Not under the lock.
    /// ```
    pub fn needed(&self) -> usize {
        self.needed
    }
}

impl fmt::Debug for Waiting<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiting")
            .field("needed", &self.needed)
            .finish_non_exhaustive()
    }
}
