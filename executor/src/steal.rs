//! How a worker takes tasks from the others.
//!
//! | what | whose | a thief |
//! |---|---|---|
//! | a ring | its worker pushes and pops, any other steals | takes half, at two read-modify-writes however many that are |
//! | a LIFO slot | its worker's, and robbed by a watcher once its task has aged ([`watch`](crate::watch)) | leaves it alone |
//! | the task at hand | its worker's alone | doesn't see it |
//!
//! 1. Who has found nothing in its own queues, nor in the injector, becomes a *searcher*, unless half of the workers are already. One that isn't let search goes to
//!    sleep, and looks at every queue on its way there.
//! 2. A searcher looks at each other worker once, from a random one on, so that thieves don't all come to the same door.
//! 3. From the first ring that has any it takes half, rounded up, the oldest first: one to run, the others into its own ring, which is empty.
//!    An owner may have claimed tasks that are not to be seen then; it gives those back when its poll is over, as it finds that a thief has asked.
//! 4. One thief at a time copies out of a ring. Another tries again, but a few times only, as that one may be preempted in mid-copy. Then the next door.
//! 5. What is stolen is its thief's: it was in one ring, and is in the other or in hand. The ring sees to that ([`queue_spmc::ring`]).
//! 6. After the last door it looks at the injector once more: what came meanwhile told nobody, as there was a searcher.
//! 7. A searcher stops to be one before it runs what it has found. The last one to do so looks whether there is more, and then wakes another, who does the same: so
//!    a burst that woke one worker has soon woken as many as it takes.
//! 8. A searcher that has found nothing stays one until it sleeps: it announces that, and then looks at every queue again; what is left in a ring in mid-copy counts. So
//!    no task is missed: one that told nobody, since there was a searcher, is found by that searcher, or by rule 7, or by this look. Why that holds for each
//!    order of events, [`worker_idle`] proves.
use crate::{
    core::Core,
    shared::{Remote, Task},
};
use queue_spmc::ring::Steal;
use sync_shim::hint;

/// How often a thief tries a ring that another copies out of.
const TRIES: u32 = 4;

impl Core {
    /// Looks through the other workers, if few enough do: rules 1, 2 and 6.
    pub(crate) fn search(&self) -> Option<Task> {
        let shared = &self.shared;
        let workers = shared.remotes.len();
        if workers == 1 {
            return None;
        }
        if !self.searching.get() && !shared.idle.try_search() {
            return None;
        }
        self.searching.set(true);
        self.own().counters.searches.add(1);
        let start = self.next_random() as usize % workers;
        let others = (0..workers)
            .map(|i| (start + i) % workers)
            .filter(|&i| i != self.index);
        for other in others {
            if let Some(task) = self.steal(&shared.remotes[other]) {
                return Some(task);
            }
        }
        self.take_share()
    }

    /// Rules 3 and 4.
    fn steal(&self, victim: &Remote) -> Option<Task> {
        for _ in 0..TRIES {
            match self.steal_half(&victim.stealer) {
                Steal::Success { first, moved } => {
                    self.own().counters.steals.add(1);
                    self.own().counters.stolen.add(moved as u64);
                    return Some(first);
                }
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

    /// Rule 7: the searcher has found work.
    #[inline]
    pub(crate) fn leave_search(&self) {
        if self.searching.get() {
            self.leave_as_searcher();
        }
    }

    #[cold]
    #[inline(never)]
    fn leave_as_searcher(&self) {
        self.searching.set(false);
        let watched = self.watching.replace(false);
        let shared = &self.shared;
        if shared.idle.stop_searching()
            && (shared.has_work() || watched && shared.has_filled_slot())
        {
            shared.notify();
        }
        self.tell_unpark();
    }
}
