//! The steal path: how a worker takes items from the others.
//!
//! 1. A thief looks at each other worker once. It starts at a random worker, so that thieves spread
//!    out.
//! 2. From the first ring that is not empty, the thief takes the older half of the items, rounded
//!    up. It runs the oldest of them, and moves the others into its own ring.
//! 3. One thief at a time copies out of a ring. Another thief retries a few times only, since the
//!    first one may be preempted in the middle of its copy. Then that other thief goes to the next
//!    worker.
//! 4. A stolen item belongs to its thief: it was in the victim's ring, and is now in the thief's
//!    ring or returned to it. The ring guarantees this ([`queue_spmc::ring`]).
use crate::{Batch, Stealer, WorkerQueue};
use queue_global::Linked;
use queue_spmc::ring::{Steal, StealLimit};
use sync_shim::hint;

/// How often a thief tries a ring from which another thief copies.
const TRIES: u32 = 4;

impl<T: Linked<Handle: Send>> WorkerQueue<T> {
    /// Steals half of the first other ring that is not empty. The worker's own ring may be among
    /// `others`: it is empty.
    ///
    /// Call this after [`next`](Self::next) has returned nothing. The call does not notify of the
    /// items that it moves: if other workers sleep, the thief is a searcher, and looks for more
    /// work when it stops searching.
    ///
    /// `None` does not mean that all rings were empty: a ring that is busy with other thieves is
    /// left after a few tries.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// use worker_queue::WorkerQueue;
    ///
    /// let queues = [0, 1, 2].map(|index| WorkerQueue::new(256).with_seed(42, index));
    /// let stealers = queues.each_ref().map(WorkerQueue::stealer);
    /// for n in 0..8 {
    ///     queues[0].push_back(item(n), &injector);
    /// }
    /// let batch = queues[1].steal(&stealers, |stealer| stealer).unwrap();
    /// assert_eq!((batch.first.value, batch.moved), (0, 3));
    /// ```
    pub fn steal<R>(
        &self,
        others: &[R],
        stealer: impl Fn(&R) -> &Stealer<T>,
    ) -> Option<Batch<T::Handle>> {
        let start = (self.next_random() as usize).checked_rem(others.len())?;
        let (before, from) = others.split_at(start);
        from.iter()
            .chain(before)
            .find_map(|other| self.steal_from(stealer(other)))
    }

    /// Steals half of one other worker's ring.
    ///
    /// ```
    /// # use queue_global::{Boxed, Injector};
    /// # let item = |n| Box::new(Boxed::new(n));
    /// # let injector = Injector::<Boxed<u32>>::new();
    /// use worker_queue::WorkerQueue;
    ///
    /// let (one, other) = (WorkerQueue::new(256), WorkerQueue::new(256));
    /// one.push_back(item(7), &injector);
    /// assert_eq!(other.steal_from(&one.stealer()).unwrap().first.value, 7);
    /// assert!(other.steal_from(&one.stealer()).is_none());
    /// ```
    pub fn steal_from(&self, victim: &Stealer<T>) -> Option<Batch<T::Handle>> {
        for _ in 0..TRIES {
            match self.ring(|ring| victim.ring.steal_into_and_pop(ring, StealLimit::Half)) {
                Steal::Success { first, moved } => return Some(Batch { first, moved }),
                Steal::Retry => hint::spin_loop(),
                Steal::Empty => break,
            }
        }
        None
    }

    fn next_random(&self) -> u64 {
        // Marsaglia's xorshift64.
        let mut random = self.random.get();
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        self.random.set(random);
        random
    }
}
