//! A small executor from three parts, without `selvedge`: task cells (`task-header`), a queue of
//! cells (`queue-global`), and wakers (`waker-vtable`).
mod cli;

use queue_global::Injector;
use std::{future::Future, pin::pin, sync::Arc, task::Context, task::Poll, thread};
use task_header::{JoinError, JoinHandle, Node, Notified, Owned, Ran, Schedule, WakeKind};

/// State that all tasks share. The queue links the tasks' cells, so a push allocates nothing. Any
/// thread may push.
struct Shared {
    queue: Injector<Node<Scheduler>>,
    thread: thread::Thread,
}
/// A wake of the executor unparks the executor's thread. `waker-vtable` makes a `Waker` from an
/// `Arc<Shared>`.
impl waker_vtable::WakeRef for Shared {
    fn wake(&self) {
        self.thread.unpark();
    }
}
/// Reference by which a task finds the queue. Every task holds such a reference.
struct Scheduler(Arc<Shared>);
impl Schedule for Scheduler {
    /// Queues a task that was woken. Another thread may free the task after the push, so the task's
    /// reference is cloned before.
    fn schedule(task: Notified<Self>, _why: WakeKind) {
        let shared = task.scheduler().0.clone();
        shared.queue.requeue(task);
        shared.thread.unpark();
    }
}
struct Executor {
    shared: Arc<Shared>,
    /// The waiting tasks. The list holds a reference to each of them, so a wake need not count one.
    /// When the executor is dropped, it drops the tasks in the list.
    owned: Owned<Scheduler>,
}
impl Executor {
    fn new() -> Self {
        let (queue, thread) = (Injector::new(), thread::current());
        let shared = Arc::new(Shared { queue, thread });
        let owned = Owned::new(waker_vtable::from_arc(shared.clone()));
        Self { shared, owned }
    }

    /// Makes a `Notified` for the queue and a handle for the caller, in one allocation.
    fn spawn<F: Future<Output: Send> + Send + 'static>(&self, future: F) -> JoinHandle<F::Output> {
        let (task, join) = task_header::new(future, Scheduler(self.shared.clone()));
        self.shared.queue.requeue(task);
        join
    }

    /// Runs tasks until `main` has ended, and parks while no task is queued.
    fn block_on<T>(&mut self, main: JoinHandle<T>) -> Result<T, JoinError> {
        let (mut main, waker) = (pin!(main), waker_vtable::from_arc(self.shared.clone()));
        loop {
            if let Poll::Ready(output) = main.as_mut().poll(&mut Context::from_waker(&waker)) {
                return output;
            }
            while let Some(task) = self.shared.queue.pop() {
                if let Ran::Notified(again) = self.owned.run(task) {
                    self.shared.queue.requeue(again); // The task was woken in its own poll.
                }
            }
            thread::park(); // Returns at once if `main` has ended: its end unparks this thread.
        }
    }
}
impl Drop for Executor {
    // Each task that is left is in the list or in the queue.
    fn drop(&mut self) {
        self.owned.cancel_all();
        drop(self.shared.queue.pop_n(usize::MAX));
        self.owned.drain();
    }
}

fn main() -> std::process::ExitCode {
    cli::demo(
        "Runs two tasks on an executor of three parts.\n\nUsage: assemble",
        demo,
    )
}

fn demo() {
    let mut executor = Executor::new();
    let (sender, receiver) = async_channel::bounded(1);
    executor.spawn(async move { sender.send(42).await });
    let task = executor.spawn(async move { receiver.recv().await });
    println!("a task received {:?}", executor.block_on(task));
}
