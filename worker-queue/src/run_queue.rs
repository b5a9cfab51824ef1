//! [`RunQueue`]: the queue of a worker's loop, which is a plain [`WorkerQueue`] or has another
//! policy.
//!
//! # A worker's loop
//!
//! 1. The worker calls [`next`](RunQueue::next), and runs the item. If there is none, it calls
//!    [`take_share`](RunQueue::take_share), and if need be [`steal`](RunQueue::steal), and runs the
//!    item that it got. If both return nothing, the worker sleeps.
//! 2. An item that is spawned or woken on the worker enters the queue by
//!    [`push_next`](RunQueue::push_next) or [`push_back`](RunQueue::push_back). An item that has
//!    run and is to run again enters it by [`requeue`](RunQueue::requeue).
//! 3. An item that comes from elsewhere is pushed into the injector, from which the workers take.
//! 4. Before the worker sleeps, it announces its sleep. Then it checks that the injector is empty
//!    and that the stealers of the other workers find nothing.
//!
//! The queue decides which item runs next, and which of its items thieves may take. If a queue
//! keeps an item where no thief finds it, the queue must return that item next. Otherwise it must
//! move the item to where thieves find it, and notify (the rules of [`WorkerQueue`] say when).
use crate::{Batch, Next, QueueHooks, Stealer, WorkerQueue};
use queue_global::{Injector, Linked, Lock};

/// A worker's own queue, as a scheduler's loop uses it.
///
/// A loop that is generic over this trait is compiled for each queue type, so for a plain
/// [`WorkerQueue`] the trait costs nothing.
///
/// The methods about a *slot* are for queues that hand a worker one more item within the current
/// item's turn. By default there is no slot.
///
/// ```
/// # use queue_global::{Boxed, Injector};
/// use queue_global::{Linked, Lock};
/// use worker_queue::{Next, QueueHooks, RunQueue, WorkerQueue};
///
/// /// Takes whatever a worker would run next: its own item, or else a share of the injector.
/// fn find<T: Linked, L: Lock>(
///     queue: &impl RunQueue<T>,
///     injector: &Injector<T, L>,
///     workers: usize,
///     hooks: &impl QueueHooks<T>,
/// ) -> Option<T::Handle> {
///     let own = queue.next(hooks).map(|next: Next<_>| next.item);
///     own.or_else(|| Some(queue.take_share(injector, workers, hooks)?.first))
/// }
///
/// # let item = |n| Box::new(Boxed::new(n));
/// let (queue, injector) = (WorkerQueue::new(256), Injector::<Boxed<u32>>::new());
/// queue.push_back(item(1), &injector);
/// injector.requeue(item(2));
/// let order = [(); 2].map(|()| find(&queue, &injector, 1, &injector).unwrap().value);
/// assert_eq!(order, [1, 2]);
/// ```
pub trait RunQueue<T: Linked> {
    /// The view that other threads have of the queue.
    type Stealer;

    /// Makes a handle for the other threads.
    fn stealer(&self) -> Self::Stealer;

    /// Takes the item to run next.
    fn next(&self, hooks: &impl QueueHooks<T>) -> Option<Next<T::Handle>>;

    /// Queues an item that should run soon: one that was just spawned or woken.
    fn push_next(&self, item: T::Handle, hooks: &impl QueueHooks<T>);

    /// Queues an item behind the others.
    fn push_back(&self, item: T::Handle, hooks: &impl QueueHooks<T>);

    /// Queues an item that has run and is to run again, behind the others. After this call, the
    /// worker takes its next item at once.
    fn requeue(&self, item: T::Handle, hooks: &impl QueueHooks<T>);

    /// Takes a fair share of the injector. Returns the item to run now; the others are queued.
    fn take_share<L: Lock>(
        &self,
        injector: &Injector<T, L>,
        workers: usize,
        hooks: &impl QueueHooks<T>,
    ) -> Option<Batch<T::Handle>>;

    /// Takes the oldest item of the injector. Returns the item to run now: the injector's item,
    /// unless the queue chooses another one.
    ///
    /// The worker's own items wait meanwhile. So a queue that keeps one of them where no thief
    /// finds it must override this method, and move that item to where thieves find it, and notify.
    fn take_one<L: Lock>(
        &self,
        injector: &Injector<T, L>,
        _hooks: &impl QueueHooks<T>,
    ) -> Option<T::Handle> {
        injector.pop()
    }

    /// Steals from the queues of the other workers. Returns the item to run now; the other stolen
    /// items are queued.
    ///
    /// A worker calls this when its [`next`](Self::next) has returned nothing. The worker's own
    /// stealer may be among `others`.
    fn steal<R>(
        &self,
        others: &[R],
        stealer: impl Fn(&R) -> &Self::Stealer,
        hooks: &impl QueueHooks<T>,
    ) -> Option<Batch<T::Handle>>;

    /// Takes any item that is left, and does not notify: for shutdown.
    fn take_any(&self) -> Option<T::Handle>;

    /// Returns whether no item is queued.
    fn is_empty(&self) -> bool;

    /// Prepares the worker for a time in which it runs no items: afterwards thieves may take all
    /// items, except perhaps the slot's.
    #[inline]
    fn leave(&self, _hooks: &impl QueueHooks<T>) {}

    /// Returns whether the slot is empty.
    #[inline]
    fn slot_is_empty(&self) -> bool {
        true
    }

    /// Takes the slot's item, to run it within the current item's turn.
    #[inline]
    fn take_slot(&self) -> Option<T::Handle> {
        None
    }

    /// Runs `f`, in which the worker pushes items between two of its own. After this call, the
    /// worker takes its next item at once.
    ///
    /// Meanwhile [`push_next`](Self::push_next) may keep a lone item where no thief finds it, and
    /// notify nobody of it. By default, `push_next` does here what it always does.
    #[inline]
    fn between_items<R>(&self, f: impl FnOnce() -> R) -> R {
        f()
    }

    /// Requeues the slot's item behind the others.
    #[inline]
    fn requeue_slot(&self, _hooks: &impl QueueHooks<T>) {}

    /// Prepares the worker to block, in the middle of an item or between two of them: afterwards
    /// thieves may take all items, the slot's too.
    #[inline]
    fn open_slot(&self, _hooks: &impl QueueHooks<T>) {}

    /// Returns whether the turn of the current item is over. Then the slot's item waits for
    /// [`next`](Self::next).
    #[inline]
    fn slice_over(&self) -> bool {
        false
    }
}

impl<T: Linked<Handle: Send>> RunQueue<T> for WorkerQueue<T> {
    type Stealer = Stealer<T>;

    fn stealer(&self) -> Stealer<T> {
        self.stealer()
    }

    #[inline]
    fn next(&self, hooks: &impl QueueHooks<T>) -> Option<Next<T::Handle>> {
        self.next(hooks)
    }

    #[inline]
    fn push_next(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        self.push_next(item, hooks);
    }

    #[inline]
    fn push_back(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        self.push_back(item, hooks);
    }

    #[inline(always)]
    fn requeue(&self, item: T::Handle, hooks: &impl QueueHooks<T>) {
        self.requeue(item, hooks);
    }

    fn take_share<L: Lock>(
        &self,
        injector: &Injector<T, L>,
        workers: usize,
        hooks: &impl QueueHooks<T>,
    ) -> Option<Batch<T::Handle>> {
        self.take_share(injector, workers, hooks)
    }

    fn take_one<L: Lock>(
        &self,
        injector: &Injector<T, L>,
        hooks: &impl QueueHooks<T>,
    ) -> Option<T::Handle> {
        let item = injector.pop()?;
        self.publish_and_notify(hooks);
        Some(item)
    }

    fn steal<R>(
        &self,
        others: &[R],
        stealer: impl Fn(&R) -> &Stealer<T>,
        _: &impl QueueHooks<T>,
    ) -> Option<Batch<T::Handle>> {
        self.steal(others, stealer)
    }

    fn take_any(&self) -> Option<T::Handle> {
        self.take_any()
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.is_empty()
    }

    fn leave(&self, hooks: &impl QueueHooks<T>) {
        self.leave(hooks);
    }

    #[inline]
    fn slot_is_empty(&self) -> bool {
        self.slot_is_empty()
    }

    #[inline]
    fn take_slot(&self) -> Option<T::Handle> {
        self.take_slot()
    }

    fn between_items<R>(&self, f: impl FnOnce() -> R) -> R {
        self.between_items(f)
    }

    fn requeue_slot(&self, hooks: &impl QueueHooks<T>) {
        self.requeue_slot(hooks);
    }

    fn open_slot(&self, hooks: &impl QueueHooks<T>) {
        self.open_slot(hooks);
    }
}
