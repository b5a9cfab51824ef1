//! What a queue asks of the scheduler that it is in.
use queue_global::{Injector, Linked, List, Lock};

/// What is around a worker's queue: where items go that it has no room for, and who is to be told of others.
///
/// The queue's methods call these with nothing of theirs half done, so these may use the queue again, and may panic: what was to be queued is queued by then. Only what
/// the method was about to give is dropped.
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
/// assert_eq!(shared.injector.pop_n(9).len(), 2); // Half of the ring, and the item that found it full.
/// ```
pub trait QueueHooks<T: Linked> {
    /// Takes items that the ring has no room for: its older half and the newest, or while a thief holds the ring up that one alone, oldest first.
    fn overflow(&self, items: List<T>);

    /// There is something that a thief can take, or that overflowed: a sleeper is to look for it.
    ///
    /// Whoever is about to sleep looks at the queues a last time. So that either of the two sees the other, this fences (`SeqCst`) before it looks who sleeps,
    /// and a sleeper fences between announcing its sleep and that look; `worker_idle::Idle` does both.
    fn notify(&self);

    /// The slot, which was empty, is not any more. The worker runs that item next; for a watcher, which takes it if that is long in coming ([`Stealer::rob`](crate::Stealer::rob)).
    #[inline]
    fn slot_filled(&self) {}
}

/// What overflows goes to the injector, and nobody is told: for a worker that is alone, or for workers that never sleep for long.
impl<T: Linked, L: Lock> QueueHooks<T> for Injector<T, L> {
    fn overflow(&self, items: List<T>) {
        self.requeue_batch(items);
    }

    #[inline]
    fn notify(&self) {}
}
