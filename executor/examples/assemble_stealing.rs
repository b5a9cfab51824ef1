//! A work-stealing executor of one's own from four parts, without `selvedge`: task cells (`task-header`), a ring a worker that others steal
//! from (`queue-spmc`), a queue for what comes from outside (`queue-global`), wakers of one's own (`waker-vtable`).
//!
//! It is complete, and simpler than it could be: a worker without work sleeps for a moment at a time, where `selvedge` counts who searches and who sleeps.
use queue_global::Injector;
use queue_spmc::ring::{self, Steal, StealLimit, Stealer};
use std::{
    cell::RefCell,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};
use task_header::{JoinHandle, Node, Notified, Owned, Ran, Schedule, WakeKind};

type Task = Notified<Scheduler>;

/// What all workers share. Every task holds one, so a waker that comes late finds it.
struct Shared {
    injector: Injector<Node<Scheduler>>,
    stealers: Vec<Stealer<Task>>,
    threads: std::sync::Mutex<Vec<thread::Thread>>,
    ending: AtomicBool,
    stolen: AtomicUsize,
}

impl Shared {
    fn wake_all(&self) {
        let threads = self.threads.lock().unwrap();
        threads.iter().for_each(thread::Thread::unpark);
    }
}

thread_local! {
    /// The ring of this thread, if it is a worker, which its tasks reach from inside a poll.
    static RING: RefCell<Option<ring::Worker<Task>>> = const { RefCell::new(None) };
}
struct Scheduler(Arc<Shared>);

impl Scheduler {
    /// To the ring, whose overflow goes to the injector in one batch. From elsewhere it comes back.
    fn keep(shared: &Shared, task: Task) -> Option<Task> {
        let mut task = Some(task);
        RING.with_borrow_mut(|ring| {
            if let Some(ring) = ring {
                ring.push_or_overflow(task.take().unwrap(), &shared.injector);
                if ring.len() == 64 {
                    shared.wake_all(); // Enough to share.
                }
            }
        });
        task
    }

    /// A task that was spawned in time is never refused.
    fn requeue(shared: &Shared, task: Task) {
        if let Some(task) = Self::keep(shared, task) {
            shared.injector.requeue(task);
            shared.wake_all();
        }
    }
}

impl Schedule for Scheduler {
    fn schedule(task: Task, _why: WakeKind) {
        let shared = task.scheduler().0.clone();
        Self::requeue(&shared, task);
    }
}

/// To wake a worker whose list is closing is to unpark it.
struct Unpark(thread::Thread);
impl waker_vtable::WakeRef for Unpark {
    fn wake(&self) {
        self.0.unpark();
    }
}

fn worker(shared: &Shared, me: usize, ring: ring::Worker<Task>) {
    RING.set(Some(ring));
    let unpark = Arc::new(Unpark(thread::current()));
    let mut owned = Owned::new(waker_vtable::from_arc(unpark));
    while !shared.ending.load(SeqCst) {
        let Some(task) = find(shared, me) else {
            owned.drain();
            thread::park_timeout(Duration::from_millis(1));
            continue;
        };
        // Polled in this worker's list: a task that waits is found again at the end.
        if let Ran::Notified(again) = owned.run(task) {
            Scheduler::requeue(shared, again);
        }
    }
    // Whoever is queued or waits is dropped here; what others are about to wake comes over the injector, and nothing new: it is closed.
    owned.close();
    loop {
        owned.cancel_all();
        while let Some(task) = pop().or_else(|| shared.injector.pop()) {
            owned.cancel(task);
        }
        owned.drain();
        if owned.is_empty() {
            drop(RING.take());
            return;
        }
        thread::yield_now();
    }
}

fn pop() -> Option<Task> {
    RING.with_borrow_mut(|ring| ring.as_mut()?.pop())
}
/// The own ring, then the injector, then half of another's ring.
fn find(shared: &Shared, me: usize) -> Option<Task> {
    pop().or_else(|| shared.injector.pop()).or_else(|| {
        let workers = shared.stealers.len();
        (1..workers).find_map(|i| steal(shared, (me + i) % workers))
    })
}

fn steal(shared: &Shared, victim: usize) -> Option<Task> {
    RING.with_borrow_mut(|ring| {
        match shared.stealers[victim].steal_into_and_pop(ring.as_mut()?, StealLimit::Half) {
            Steal::Success { first, moved } => {
                shared.stolen.fetch_add(moved, SeqCst);
                Some(first)
            }
            Steal::Empty | Steal::Retry => None,
        }
    })
}

struct Executor {
    shared: Arc<Shared>,
    workers: Vec<thread::JoinHandle<()>>,
}

impl Executor {
    fn new(workers: usize) -> Self {
        let rings: Vec<_> = (0..workers).map(|_| ring::Worker::new(256)).collect();
        let shared = Arc::new(Shared {
            injector: Injector::new(),
            stealers: rings.iter().map(ring::Worker::stealer).collect(),
            threads: std::sync::Mutex::default(),
            ending: AtomicBool::new(false),
            stolen: AtomicUsize::new(0),
        });
        let start = |(me, ring)| {
            let shared = shared.clone();
            thread::spawn(move || worker(&shared, me, ring))
        };
        let workers: Vec<_> = rings.into_iter().enumerate().map(start).collect();
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
    if let Some(task) = Scheduler::keep(shared, task)
        && shared.injector.push(task).is_ok()
    {
        shared.wake_all();
    } // Else it came too late, and is dropped: its handle says so.
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

fn main() {
    let executor = Executor::new(2);
    let shared = executor.shared.clone();
    let parent = spawn(&executor.shared, async move {
        // All of these go to one ring.
        let children: Vec<_> = (0..5_000_u64)
            .map(|i| {
                spawn(&shared, async move {
                    (0..200).fold(i, |n, m| std::hint::black_box(n ^ m))
                })
            })
            .collect();
        let mut done = 0;
        for child in children {
            child.await.unwrap();
            done += 1;
        }
        done
    });
    let done = futures::executor::block_on(parent).unwrap();
    println!(
        "{done} tasks ran; stolen: {}",
        executor.shared.stolen.load(SeqCst)
    );
    assert_eq!(done, 5_000);
    let shared = executor.shared.clone();
    drop(executor);
    let late = spawn(&shared, async {});
    assert!(late.is_finished(), "it would wait for ever");
    drop(late);
    assert_eq!(Arc::strong_count(&shared), 1, "a task was left");
}
