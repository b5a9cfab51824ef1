//! A thread that runs tasks, as users of async-task write it.
//!
//! async-task's `spawn(future, schedule)` returns a runnable, for a queue of your own, and a task
//! to await. Its users queue the runnables in a channel. Here the tasks are the nodes of the queue,
//! so a wake allocates nothing and takes no lock. The drop of a [`Task`] cancels the task, as with
//! async-task.
//!
//! 1. A wake pushes the task, then unparks the thread. The thread parks only when it has found the
//!    queue empty. An unpark between that look and the park leaves a token, which ends the park.
//! 2. A waiting task is in the thread's list. At its end the thread cancels all tasks of the list,
//!    and then those that other threads were about to queue. The thread ends when the list is
//!    empty.
//! 3. A wake never drops a task, not even after the thread has begun to end, where a drop would be
//!    an easy way to cancel it: the task's future would be dropped under whatever lock the thread
//!    that wakes holds. The future's drop may need the same lock, as that of event-listener does.
use queue_global::Injector;
use std::{
    fmt,
    future::Future,
    io,
    panic::resume_unwind,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker, ready},
    thread,
};
use task_header::{Closure, JoinError, JoinHandle, Node, Owned, Ran, Runnable};
use worker_idle::park::{Park, ThreadPark};

/// A thread that runs tasks. The drop of a `TaskThread` cancels all its tasks. The drop also waits
/// for the thread to end, except on that thread itself.
///
/// ```
/// use adopt::tasks::TaskThread;
///
/// let thread = TaskThread::start("tasks")?;
/// let task = thread.spawn(async { 1 + 2 });
/// assert_eq!(futures_lite::future::block_on(task), 3);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct TaskThread {
    queue: Arc<Queue>,
    thread: Option<thread::JoinHandle<()>>,
}

struct Queue {
    tasks: Injector<Node<Closure>>,
    waker: Waker,
}

impl Queue {
    fn push(&self, task: Runnable) {
        self.tasks.requeue(task); // A closed injector accepts it too (rule 2).
        self.waker.wake_by_ref();
    }

    fn run(&self, mut park: ThreadPark) {
        let mut owned = Owned::new(park.waker());
        while !self.tasks.is_closed() {
            match self.tasks.pop().map(|task| owned.run(task)) {
                // The task was woken during its poll: it goes behind the others.
                Some(Ran::Notified(task)) => self.push(task),
                Some(Ran::Complete | Ran::Pending) => {}
                None => park.park(),
            }
        }
        owned.watch_releases();
        owned.cancel_all();
        loop {
            while let Some(task) = self.tasks.pop() {
                owned.cancel(task);
            }
            owned.drain();
            if owned.is_empty() {
                break;
            }
            park.park(); // A thread in a wake holds a task, and is about to push it.
        }
    }
}

impl TaskThread {
    /// Starts a thread called `name`.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(name: &str) -> io::Result<Self> {
        let park = ThreadPark::new();
        let queue = Arc::new(Queue {
            tasks: Injector::new(),
            waker: park.waker(),
        });
        let runs = queue.clone();
        let builder = thread::Builder::new().name(name.into());
        let thread = Some(builder.spawn(move || runs.run(park))?);
        Ok(Self { queue, thread })
    }

    /// Runs a future on the thread.
    pub fn spawn<F>(&self, future: F) -> Task<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let queue = self.queue.clone();
        let (runnable, join) = task_header::spawn(future, move |task| queue.push(task));
        runnable.schedule();
        Task::new(join)
    }
}

impl Drop for TaskThread {
    fn drop(&mut self) {
        self.queue.tasks.close();
        self.queue.waker.wake_by_ref();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join(); // No error: the panics of tasks are caught.
        }
    }
}

/// Waits for a task, and returns its output or resumes its panic. The drop of this handle cancels
/// the task.
pub struct Task<T>(Option<JoinHandle<T>>);

impl<T> Task<T> {
    pub(crate) fn new(join: JoinHandle<T>) -> Self {
        Self(Some(join))
    }

    /// Drops the handle and lets the task go on.
    pub fn detach(mut self) {
        self.0 = None;
    }

    /// Cancels the task, and waits until its future is gone. Returns the output if the task was
    /// done before.
    ///
    /// # Errors
    /// When the task was cancelled in time, or has panicked.
    pub async fn cancel(mut self) -> Result<T, JoinError> {
        let join = self
            .0
            .take()
            .expect("the handle stays until it is consumed");
        join.abort();
        join.await
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    /// # Panics
    /// When the task panicked, or was cancelled by the end of its thread.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let join = self
            .0
            .as_mut()
            .expect("the handle stays until it is consumed");
        let result = ready!(Pin::new(join).poll(cx));
        Poll::Ready(result.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(cancelled) => panic!("{cancelled}"),
        }))
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if let Some(join) = &self.0 {
            join.abort(); // Does nothing if the task is done.
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.0).finish()
    }
}
