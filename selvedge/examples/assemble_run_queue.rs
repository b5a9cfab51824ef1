//! A worker's loop over any `RunQueue`, and a second implementation of `RunQueue`: a priority
//! queue.
//!
//! `Worker` below is generic over its queue. With the plain `WorkerQueue` it runs the tasks in the
//! order in which they are spawned. With `Heap` it runs them in the order of their priorities. The
//! compiler makes a copy of `Worker` for each of the two queues.
mod cli;

use queue_global::{Injector, List, Lock};
use std::{cell::Cell, cell::RefCell, collections::BinaryHeap, future::Future, sync::Arc, thread};
use task_header::{Node, Notified, Owned, Ran, Schedule, WakeKind};
use waker_vtable::WakeRef;
use worker_queue::{Batch, Next, QueueHooks, RunQueue, WorkerQueue};

type Task = Notified<Scheduler>;

/// A task's scheduler. It has the task's priority, so a queue finds the priority without a lookup.
#[derive(Clone)]
struct Scheduler {
    shared: Arc<Shared>,
    priority: u32,
}

struct Shared {
    injector: Injector<Node<Scheduler>>,
    thread: thread::Thread,
}

impl Schedule for Scheduler {
    fn schedule(task: Task, _: WakeKind) {
        let shared = task.scheduler().shared.clone();
        shared.injector.requeue(task);
        shared.thread.unpark();
    }
}

impl WakeRef for Shared {
    fn wake(&self) {
        self.thread.unpark();
    }
}

impl QueueHooks<Node<Scheduler>> for Shared {
    fn overflow(&self, tasks: List<Node<Scheduler>>) {
        self.injector.requeue_batch(tasks);
    }

    fn notify(&self) {} // There is only one worker, and it is this thread.
}

/// The second queue: the task of the highest priority runs next, and among equals the oldest.
#[derive(Default)]
struct Heap {
    tasks: RefCell<BinaryHeap<Entry>>,
    pushes: Cell<u64>,
}

struct Entry {
    priority: u32,
    /// The negated number of the push: of two tasks, the older one has the greater age.
    age: i64,
    task: Task,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.priority, self.age).cmp(&(other.priority, other.age))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl RunQueue<Node<Scheduler>> for Heap {
    type Stealer = (); // No other thread can take tasks from this queue.

    fn stealer(&self) {}

    fn next(&self, _: &impl QueueHooks<Node<Scheduler>>) -> Option<Next<Task>> {
        let item = self.take_any()?;
        Some(Next {
            item,
            from_slot: false,
        })
    }

    fn push_next(&self, task: Task, hooks: &impl QueueHooks<Node<Scheduler>>) {
        self.push_back(task, hooks);
    }

    fn push_back(&self, task: Task, _: &impl QueueHooks<Node<Scheduler>>) {
        let priority = task.scheduler().priority;
        let age = -i64::try_from(self.pushes.get()).expect("it counts for 292 years");
        self.pushes.set(self.pushes.get() + 1);
        self.tasks.borrow_mut().push(Entry {
            priority,
            age,
            task,
        });
    }

    fn requeue(&self, task: Task, hooks: &impl QueueHooks<Node<Scheduler>>) {
        self.push_back(task, hooks);
    }

    fn take_share<L: Lock>(
        &self,
        injector: &Injector<Node<Scheduler>, L>,
        _: usize,
        hooks: &impl QueueHooks<Node<Scheduler>>,
    ) -> Option<Batch<Task>> {
        // Takes all tasks: an urgent one may be behind the others.
        let mut share = injector.pop_n(usize::MAX);
        let moved = share.len().checked_sub(1)?;
        while let Some(task) = share.pop_front() {
            self.push_back(task, hooks);
        }
        Some(Batch {
            first: self.take_any()?,
            moved,
        })
    }

    fn steal<R>(
        &self,
        _: &[R],
        _: impl Fn(&R) -> &(),
        _: &impl QueueHooks<Node<Scheduler>>,
    ) -> Option<Batch<Task>> {
        None
    }

    fn take_any(&self) -> Option<Task> {
        self.tasks.borrow_mut().pop().map(|entry| entry.task)
    }

    fn is_empty(&self) -> bool {
        self.tasks.borrow().is_empty()
    }
}

/// A worker with any queue.
struct Worker<Q> {
    queue: Q,
    shared: Arc<Shared>,
    owned: Owned<Scheduler>,
}

impl<Q: RunQueue<Node<Scheduler>>> Worker<Q> {
    fn new(queue: Q) -> Self {
        let (injector, thread) = (Injector::new(), thread::current());
        let shared = Arc::new(Shared { injector, thread });
        let owned = Owned::new(waker_vtable::from_arc(shared.clone()));
        Self {
            queue,
            shared,
            owned,
        }
    }

    fn spawn(&self, priority: u32, future: impl Future<Output = ()> + Send + 'static) {
        let shared = self.shared.clone();
        let task = task_header::new_detached(future, Scheduler { shared, priority });
        self.queue.push_back(task, &*self.shared);
    }

    /// Returns the task to run next: from the worker's own queue, or else from the injector, of
    /// which the worker takes a share.
    fn next(&self) -> Option<Task> {
        let (queue, shared) = (&self.queue, &self.shared);
        let own = queue.next(&**shared).map(|next| next.item);
        own.or_else(|| Some(queue.take_share(&shared.injector, 1, &**shared)?.first))
    }

    /// Runs until every task has ended.
    fn run(&mut self) {
        loop {
            while let Some(task) = self.next() {
                if let Ran::Notified(again) = self.owned.run(task) {
                    self.queue.requeue(again, &*self.shared);
                }
            }
            if self.owned.is_empty() {
                return;
            }
            thread::park();
        }
    }
}

/// Runs tasks of the priorities 0 to 2, and returns their priorities in the order in which the
/// tasks end. Each of these tasks waits once, and another thread wakes it.
fn order<Q: RunQueue<Node<Scheduler>>>(queue: Q) -> Vec<u32> {
    const PRIORITIES: [u32; 6] = [2, 0, 1, 0, 2, 1];
    let mut worker = Worker::new(queue);
    let (sender, ended) = std::sync::mpsc::channel();
    let mut wakes = Vec::new();
    for priority in PRIORITIES {
        let (wake, woken) = async_channel::bounded(1);
        let sender = sender.clone();
        wakes.push(wake);
        worker.spawn(priority, async move {
            woken.recv().await.expect("the thread sends");
            sender.send(priority).expect("it is received below");
        });
    }
    // With either queue this task runs last, so all other tasks wait by then.
    worker.spawn(0, async move {
        let wake_all = move || wakes.iter().for_each(|wake| wake.try_send(()).unwrap());
        thread::spawn(wake_all).join().expect("it wakes them");
    });
    worker.run();
    drop((worker, sender));
    ended.iter().collect()
}

fn main() -> std::process::ExitCode {
    cli::demo(
        "Runs the same tasks on two queues: the worker queue, and a priority queue.\n\nUsage: assemble_run_queue",
        demo,
    )
}

fn demo() {
    let (plain, heap) = (order(WorkerQueue::new(256)), order(Heap::default()));
    println!("worker queue: {plain:?}\npriority queue: {heap:?}");
    assert_eq!(plain, [2, 0, 1, 0, 2, 1]);
    assert_eq!(heap, [2, 2, 1, 1, 0, 0]);
}
