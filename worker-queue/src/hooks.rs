//! [`QueueHooks`]: the calls of a queue to its scheduler.
use queue_global::{Injector, Linked, List, Lock};

/// The calls that a worker's queue makes to its scheduler: one takes overflowing items, the others
/// notify workers.
///
/// The queue's methods make these calls with no change half done. So a hook may use the queue
/// again, and may panic: by then a pushed item is queued. A panic drops only the item that the
/// queue's method was about to return, and the items that `overflow` has taken.
///
/// ```
/// use queue_global::{Boxed, Injector, List};
/// use std::sync::{Arc, atomic::{AtomicUsize, Ordering::SeqCst}, mpsc};
/// use worker_queue::{QueueHooks, WorkerQueue};
///
/// /// A scheduler whose sleeper waits at a channel.
/// struct Shared {
///     injector: Injector<Boxed<u32>>,
///     sleeper: mpsc::Sender<()>,
/// }
///
/// impl QueueHooks<Boxed<u32>> for Shared {
///     fn overflow(&self, items: List<Boxed<u32>>) {
///         self.injector.requeue_batch(items);
///     }
///
///     fn notify(&self) {
///         let _ = self.sleeper.send(());
///     }
/// }
///
/// let (sleeper, notified) = mpsc::channel();
/// let shared = Shared { injector: Injector::new(), sleeper };
/// let queue = WorkerQueue::new(2);
/// for n in 0..3 {
///     queue.push_back(Box::new(Boxed::new(n)), &shared);
/// }
/// assert_eq!(notified.try_iter().count(), 3);
/// // Half of the ring, and the item for which the ring had no room:
/// assert_eq!(shared.injector.pop_n(9).len(), 2);
/// ```
pub trait QueueHooks<T: Linked> {
    /// Takes the items that the ring has no room for, oldest first: the older half of the ring and
    /// the newest item, or only the newest item while a thief blocks the ring.
    fn overflow(&self, items: List<T>);

    /// Notifies a sleeper: an item overflowed, or the ring has an item that a thief can take.
    ///
    /// A worker that is about to sleep looks at the queues a last time. Either that look must see
    /// the item, or this call must see the sleeper. So this call fences (`SeqCst`) before it looks
    /// for sleepers, and a sleeper fences between the announcement of its sleep and its last look.
    /// `worker_idle::Idle` does both.
    fn notify(&self);

    /// Reports that the slot was empty and is now filled. The worker runs the slot's item next. If
    /// the item waits too long for that, a watcher may take it
    /// ([`Stealer::steal_slot`](crate::Stealer::steal_slot)).
    #[inline]
    fn slot_filled(&self) {}
}

/// Overflow goes to the injector, and no sleeper is notified: for a single worker, or for workers
/// that never sleep for long.
impl<T: Linked, L: Lock> QueueHooks<T> for Injector<T, L> {
    fn overflow(&self, items: List<T>) {
        self.requeue_batch(items);
    }

    #[inline]
    fn notify(&self) {}
}
