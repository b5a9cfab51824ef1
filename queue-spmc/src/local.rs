//! Traits over the three kinds of local queue.
use crate::{Full, Overflow, Steal, StealLimit};

/// The owner's end of a [`ring`](crate::ring), a [`deque`](crate::deque) or a
/// [`fifo`](crate::fifo): for executors that work with any of them.
///
/// ```
/// use queue_spmc::{LocalQueue, LocalStealer, Overflow, Steal, StealLimit};
///
/// struct Worker<Q: LocalQueue<u64>> {
///     queue: Q,
///     others: Vec<Q::Stealer>,
/// }
///
/// impl<Q: LocalQueue<u64>> Worker<Q> {
///     fn find_task(&mut self) -> Option<u64> {
///         let queue = &mut self.queue;
///         queue.pop().or_else(|| {
///             self.others.iter().find_map(|other| {
///                 match other.steal_into_and_pop(queue, StealLimit::Half) {
///                     Steal::Success { first, .. } => Some(first),
///                     Steal::Retry | Steal::Empty => None,
///                 }
///             })
///         })
///     }
/// }
///
/// let mut other = queue_spmc::ring::Worker::new(8);
/// LocalQueue::push(&mut other, 0)?;
/// LocalQueue::push(&mut other, 1)?;
/// let queue = queue_spmc::ring::Worker::new(8);
/// let mut worker = Worker { queue, others: vec![other.stealer()] };
/// assert_eq!(worker.find_task(), Some(0));
/// # Ok::<(), queue_spmc::Full<u64>>(())
/// ```
pub trait LocalQueue<T>: Send {
    /// The thieves' end.
    type Stealer: LocalStealer<T, Worker = Self>;

    /// Pushes an item.
    ///
    /// # Errors
    /// Returns the item if there is no room. A queue that grows never returns one.
    ///
    /// # Panics
    /// If a queue that grows has 2³⁰ items. The item is then dropped.
    fn push(&mut self, item: T) -> Result<(), Full<T>>;

    /// Pushes an item. A queue that is full and cannot grow moves half of its items and the new
    /// item to `overflow`.
    ///
    /// # Panics
    /// As [`push`](Self::push).
    fn push_or_overflow(&mut self, item: T, overflow: &impl Overflow<T>);

    /// Takes the owner's next item.
    fn pop(&mut self) -> Option<T>;

    /// Returns the number of items in the queue. Thieves may take some at any time.
    fn len(&self) -> usize;

    /// Returns whether the queue is empty. If true, it stays true until the next push.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether items became available to thieves, other than by a push, since the last
    /// call of this method.
    fn gave_back(&mut self) -> bool {
        false
    }

    /// Returns a thief's end.
    fn stealer(&self) -> Self::Stealer;
}

/// The thieves' end of a [`LocalQueue`].
pub trait LocalStealer<T>: Clone + Send + Sync {
    /// The owner's end.
    type Worker;

    /// Takes the oldest item.
    fn steal(&self) -> Steal<T>;

    /// Moves up to `limit` of the oldest items into `worker`'s queue.
    ///
    /// # Panics
    /// If a queue that grows would have more than 2³⁰ items.
    fn steal_into(&self, worker: &mut Self::Worker, limit: StealLimit) -> Steal<()>;

    /// Takes up to `limit` of the oldest items: returns the first, and moves the others into
    /// `worker`'s queue.
    ///
    /// # Panics
    /// As [`steal_into`](Self::steal_into).
    fn steal_into_and_pop(&self, worker: &mut Self::Worker, limit: StealLimit) -> Steal<T>;

    /// Returns the number of items that can be stolen, as this thread sees it.
    fn len(&self) -> usize;

    /// Returns whether no item can be stolen, as this thread sees it.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

macro_rules! stealers {
    () => {
        #[inline]
        fn steal(&self) -> Steal<T> {
            self.steal()
        }

        fn steal_into(&self, worker: &mut Self::Worker, limit: StealLimit) -> Steal<()> {
            self.steal_into(worker, limit)
        }

        fn steal_into_and_pop(&self, worker: &mut Self::Worker, limit: StealLimit) -> Steal<T> {
            self.steal_into_and_pop(worker, limit)
        }

        fn len(&self) -> usize {
            self.len()
        }
    };
}

mod for_ring {
    use super::*;
    use crate::ring::{Stealer, Storage, Worker};

    impl<T: Send, S: Storage<T> + Send + Sync> LocalQueue<T> for Worker<T, S> {
        type Stealer = Stealer<T, S>;

        #[inline]
        fn push(&mut self, item: T) -> Result<(), Full<T>> {
            self.push(item)
        }

        #[inline]
        fn push_or_overflow(&mut self, item: T, overflow: &impl Overflow<T>) {
            self.push_or_overflow(item, overflow);
        }

        #[inline]
        fn pop(&mut self) -> Option<T> {
            self.pop()
        }

        fn len(&self) -> usize {
            self.len()
        }

        fn gave_back(&mut self) -> bool {
            self.gave_back()
        }

        fn stealer(&self) -> Self::Stealer {
            self.stealer()
        }
    }

    impl<T: Send, S: Storage<T> + Send + Sync> LocalStealer<T> for Stealer<T, S> {
        type Worker = Worker<T, S>;
        stealers! {}
    }
}

#[cfg(feature = "deque")]
mod for_growable {
    use super::*;
    use crate::{deque, fifo};

    macro_rules! grows {
        ($queue:ident) => {
            impl<T: Send> LocalQueue<T> for $queue::Worker<T> {
                type Stealer = $queue::Stealer<T>;

                #[inline]
                fn push(&mut self, item: T) -> Result<(), Full<T>> {
                    self.push(item);
                    Ok(())
                }

                #[inline]
                fn push_or_overflow(&mut self, item: T, _: &impl Overflow<T>) {
                    self.push(item);
                }

                #[inline]
                fn pop(&mut self) -> Option<T> {
                    self.pop()
                }

                fn len(&self) -> usize {
                    self.len()
                }

                fn stealer(&self) -> Self::Stealer {
                    self.stealer()
                }
            }

            impl<T: Send> LocalStealer<T> for $queue::Stealer<T> {
                type Worker = $queue::Worker<T>;
                stealers! {}
            }
        };
    }
    grows!(deque);
    grows!(fifo);
}
