//! How a worker takes items from the others.
//!
//! 1. It looks at each other worker once, from a random one on, so that thieves don't all come to the same door.
//! 2. From the first ring that has any it takes half, rounded up, the oldest first: one to run, the others into its own ring.
//! 3. One thief at a time copies out of a ring. Another tries again, but a few times only, as that one may be preempted in mid-copy. Then the next door.
//! 4. What is stolen is its thief's: it was in one ring, and is in the other or in hand. The ring sees to that ([`queue_spmc::ring`]).
use crate::{Stealer, WorkerQueue};
use queue_global::Linked;
use queue_spmc::ring::{Steal, StealLimit};
use sync_shim::hint;

/// How often a thief tries a ring that another copies out of.
const TRIES: u32 = 4;

/// Items that a worker has taken from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the first item would be dropped"]
pub struct Batch<H> {
    /// The oldest, to be run.
    pub first: H,
    /// How many more there are, in the ring by now.
    pub moved: usize,
}

impl<T: Linked<Handle: Send>> WorkerQueue<T> {
    /// Looks through the others, and takes half of the first ring that has any. Its own ring, which may be among them, has nothing for it.
    ///
    /// For a worker to which [`next`](Self::next) has given nothing. Nobody is told of what it moves: a worker that has sleepers beside it looks for more work when it stops to search.
    ///
    /// Nothing found doesn't say that all were empty: of a ring that is busy with other thieves it lets go after a few tries.
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

    /// Takes half of one other's ring.
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
