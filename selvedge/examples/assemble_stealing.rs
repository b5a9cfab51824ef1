//! A work-stealing executor from four parts, without `selvedge`: task cells (`task-header`), a
//! queue per worker from which others steal (`worker-queue`), a queue for tasks from outside
//! (`queue-global`), and wakers (`waker-vtable`).
//!
//! It is complete, and simpler than `selvedge` in two ways. First, a worker without work sleeps for
//! 1 ms at most, so a missed wake-up costs 1 ms. A worker of `selvedge` misses no wake-up, since
//! the runtime counts the workers that search and those that sleep. Second, tasks that wake each
//! other through the LIFO slot may run without end while the other tasks of their worker wait.
//! `selvedge` limits the length of such a chain.
mod cli;

use queue_global::{Injector, List};
use std::{
    cell::RefCell,
    future::Future,
    rc::Rc,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};
use task_header::{JoinHandle, Node, Notified, Owned, Ran, Schedule, WakeKind};
use worker_queue::{QueueHooks, Stealer, WorkerQueue};

type Task = Notified<Scheduler>;
type Queue = WorkerQueue<Node<Scheduler>>;

/// State that all workers share. Every task holds a reference to it, so a late wake still finds
/// the state.
struct Shared {
    injector: Injector<Node<Scheduler>>,
    stealers: Vec<Stealer<Node<Scheduler>>>,
    threads: Mutex<Vec<thread::Thread>>,
    asleep: AtomicUsize,
    ending: AtomicBool,
    stolen: AtomicUsize,
}

impl Shared {
    fn wake_all(&self) {
        let threads = self.threads.lock().unwrap();
        threads.iter().for_each(thread::Thread::unpark);
    }
}

impl QueueHooks<Node<Scheduler>> for Shared {
    fn overflow(&self, tasks: List<Node<Scheduler>>) {
        self.injector.requeue_batch(tasks);
    }

    fn notify(&self) {
        if self.asleep.load(SeqCst) > 0 {
            self.wake_all();
        }
    }
}

thread_local! {
    /// Queue of this thread, if the thread is a worker. A task that spawns or wakes another task in
    /// its poll pushes that task here.
    static QUEUE: RefCell<Option<Rc<Queue>>> = const { RefCell::new(None) };
}
struct Scheduler(Arc<Shared>);

impl Scheduler {
    /// Pushes the task to this worker's queue. If this thread is not a worker, returns the task.
    fn keep(shared: &Shared, task: Task) -> Option<Task> {
        let Some(queue) = QUEUE.with_borrow(Clone::clone) else {
            return Some(task);
        };
        queue.push_next(task, shared);
        None
    }
}

impl Schedule for Scheduler {
    fn schedule(task: Task, _why: WakeKind) {
        let shared = task.scheduler().0.clone();
        if let Some(task) = Self::keep(&shared, task) {
            shared.injector.requeue(task); // Unlike `push`, this works on a closed injector.
            shared.wake_all();
        }
    }
}

/// Unparks a worker whose list is closed, when another worker has ended a task of that list.
struct Unpark(thread::Thread);
impl waker_vtable::WakeRef for Unpark {
    fn wake(&self) {
        self.0.unpark();
    }
}

fn worker(shared: &Shared, queue: Queue) {
    let queue = &Rc::new(queue);
    QUEUE.set(Some(queue.clone()));
    let unpark = Arc::new(Unpark(thread::current()));
    let mut owned = Owned::new(waker_vtable::from_arc(unpark));
    while !shared.ending.load(SeqCst) {
        let Some(task) = find(shared, queue) else {
            owned.drain();
            shared.asleep.fetch_add(1, SeqCst);
            thread::park_timeout(Duration::from_millis(1));
            shared.asleep.fetch_sub(1, SeqCst);
            continue;
        };
        // A task enters the list of the worker that runs it when its future first returns
        // `Pending`. It stays in that list, even if other workers run it later. So the loop at the
        // end of that worker finds and drops the task.
        if let Ran::Notified(again) = owned.run(task) {
            queue.requeue(again, shared); // The task has yielded, so it goes behind the others.
        }
    }
    // The tasks that are queued or wait are dropped here. A task that an outside thread is about to
    // wake still comes through the injector: a closed injector refuses only new tasks.
    owned.watch_releases();
    loop {
        owned.cancel_all();
        while let Some(task) = queue.take_any().or_else(|| shared.injector.pop()) {
            owned.cancel(task);
        }
        owned.drain();
        if owned.is_empty() {
            QUEUE.set(None);
            return;
        }
        thread::yield_now();
    }
}

/// Finds a task: in the worker's own queue, the injector, or the ring of another worker.
fn find(shared: &Shared, queue: &Queue) -> Option<Task> {
    if let Some(next) = queue.next(shared) {
        return Some(next.item);
    }
    let workers = shared.stealers.len();
    if let Some(share) = queue.take_share(&shared.injector, workers, shared) {
        return Some(share.first);
    }
    let batch = queue.steal(&shared.stealers, |stealer| stealer)?;
    shared.stolen.fetch_add(1 + batch.moved, SeqCst);
    Some(batch.first)
}

struct Executor {
    shared: Arc<Shared>,
    workers: Vec<thread::JoinHandle<()>>,
}

impl Executor {
    fn new(workers: usize) -> Self {
        let queues = Vec::from_iter((0..workers).map(|i| Queue::new(256).with_seed(42, i)));
        let shared = Arc::new(Shared {
            injector: Injector::new(),
            stealers: queues.iter().map(Queue::stealer).collect(),
            threads: Mutex::default(),
            asleep: AtomicUsize::new(0),
            ending: AtomicBool::new(false),
            stolen: AtomicUsize::new(0),
        });
        let start = |queue| {
            let shared = shared.clone();
            thread::spawn(move || worker(&shared, queue))
        };
        let workers: Vec<_> = queues.into_iter().map(start).collect();
        let threads = workers.iter().map(|worker| worker.thread().clone());
        *shared.threads.lock().unwrap() = threads.collect();
        Self { shared, workers }
    }
}

fn spawn<F>(shared: &Arc<Shared>, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let (task, join) = task_header::new(future, Scheduler(shared.clone()));
    if let Some(task) = Scheduler::keep(shared, task) {
        if shared.injector.push(task).is_ok() {
            shared.wake_all();
        }
    } // If the injector is closed, the task is dropped: `join` then says that it was cancelled.
    join
}
impl Drop for Executor {
    fn drop(&mut self) {
        self.shared.injector.close();
        self.shared.ending.store(true, SeqCst);
        self.shared.wake_all();
        for worker in self.workers.drain(..) {
            worker.join().expect("a worker doesn't panic");
        }
    }
}

fn main() -> std::process::ExitCode {
    cli::demo(
        "Runs 5,000 tasks on two workers that steal from each other.\n\nUsage: assemble_stealing",
        demo,
    )
}

fn demo() {
    let executor = Executor::new(2);
    let shared = executor.shared.clone();
    let parent = spawn(&executor.shared, async move {
        // All children go to the queue of one worker. What its ring cannot hold goes to the
        // injector.
        let count = |n| async move { (0..200).fold(n, |n, m| std::hint::black_box(n ^ m)) };
        let children = Vec::from_iter((0..5_000_u64).map(|n| spawn(&shared, count(n))));
        futures::future::join_all(children).await;
    });
    futures::executor::block_on(parent).unwrap();
    let shared = executor.shared.clone();
    println!("5000 tasks ran; stolen: {}", shared.stolen.load(SeqCst));
    drop(executor);
    assert!(spawn(&shared, async {}).is_finished());
    assert_eq!(Arc::strong_count(&shared), 1, "a task was left");
}
