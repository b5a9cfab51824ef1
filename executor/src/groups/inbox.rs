//! Homes: on which worker a task runs, in a runtime whose workers do not steal.
//!
//! In a *sharded* runtime ([`Builder::sharded`](crate::Builder::sharded)) a woken task comes back
//! to its *home*, whichever thread wakes it. This thread may be another worker: the one that waits
//! for timers, sockets and children wakes the tasks of all workers. So each worker has an *inbox*,
//! into which other threads push the tasks whose home that worker is.
//!
//! | a task is | its home |
//! |---|---|
//! | queued or running, and no poll of it has returned `Pending` yet | none: no other worker takes it from the queue of a worker, and any worker takes it from the injector |
//! | later | the worker in whose list of live tasks it is ([`Notified::owner_key`](task_header::Notified::owner_key)), for good |
//!
//! # Rules
//!
//! 1. *To the home.* A wake on the home's thread pushes the task into the home's own queue. A wake
//!    on any other thread pushes the task into the home's inbox, and so does a thread whose poll
//!    has lost its core. The tasks for which the home's ring has no room go to the home's inbox as
//!    well.
//! 2. *No task waits beside its sleeping home.* The thread that has pushed into an inbox makes a
//!    `SeqCst` fence, and then wakes the home if the home's bit says that it sleeps (rule 3). A
//!    home that goes to sleep sets that bit, makes a `SeqCst` fence, and then looks at its inbox.
//!    One of the two fences is first. If the pushing thread's fence is first, the home sees the
//!    task. If the home's fence is first, the pushing thread sees the bit, or sees that the bit has
//!    been cleared since. The thread that clears the bit unparks the home, or is the home's own
//!    thread. If the home then sleeps again, the same holds for that sleep.
//! 3. *One thread unparks the home, and only the home.* No other worker could run the task. A
//!    pushing thread that finds the bit set tries to clear it. The thread that has cleared the bit
//!    has chosen the home as a notifier does, so the home counts as searching, and this thread
//!    unparks it. Each other thread of the burst, and a notifier, leaves the unpark to this thread.
//!    A home has polled a task, so it has a thread, or had one until it was dropped (rule 5).
//! 4. *A busy home* looks at its inbox whenever it looks at the injector. A home that shares its
//!    time looks before each poll. The thread that pushes nudges the home. A home that has just
//!    found work ignores nudges. If it then does not look for some milliseconds, the monitor makes
//!    it look.
//! 5. *The end.* A home leaves only when its list of live tasks is empty, and so after all tasks
//!    that are on their way to its inbox. A driven worker may be dropped earlier. So while a
//!    runtime closes, an inbox is a queue like the injector: each worker ends the tasks in all
//!    inboxes, and a thread that ends queued tasks
//!    ([`Shared::end_queued`](crate::worker::shared::Shared)) does so too.
use crate::worker::scheduler::{Scheduler, Task};
use queue_global::{Injector, List};
use task_header::Node;

/// The tasks that other threads have sent to a worker.
pub(crate) struct Inbox {
    /// The tasks of main, which go to the ring.
    pub(super) main: Injector<Node<Scheduler>>,
    /// The tasks of the other groups, which go to the worker's lists.
    pub(super) groups: Injector<Node<Scheduler>>,
}

impl Inbox {
    pub(super) fn new() -> Self {
        Self {
            main: Injector::new(),
            groups: Injector::new(),
        }
    }

    /// Pushes a task, even if the runtime is closing. The caller unparks the worker (rule 2).
    pub(super) fn push(&self, task: Task) {
        let to = match task.scheduler().is_main() {
            true => &self.main,
            false => &self.groups,
        };
        to.requeue(task);
    }

    /// Takes the tasks of main for which the ring of this inbox's worker has no room.
    pub(super) fn overflow(&self, tasks: List<Node<Scheduler>>) {
        self.main.requeue_batch(tasks);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.main.is_empty() && self.groups.is_empty()
    }

    /// Counts the tasks, under the locks of both queues if need be. For metrics and reports.
    pub(super) fn count(&self) -> usize {
        self.main.count() + self.groups.count()
    }

    /// Takes any task: for shutdown.
    pub(super) fn pop(&self) -> Option<Task> {
        self.main.pop().or_else(|| self.groups.pop())
    }
}

#[cfg(all(test, not(selvedge_count)))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests;
