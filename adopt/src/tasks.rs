//! A thread that runs tasks, in the shape of async-task's users: `spawn(future, schedule)` gives a
//! runnable for a queue of your own, and a task to await.
//!
//! Where async-task's users have a channel of runnables, here the tasks are the queue's nodes: a
//! wake allocates nothing, and takes no lock. [`Task`] is what async-task's is: dropped, it
//! cancels.
//!
//! 1. A wake pushes the task, then unparks the thread. The thread parks only when it has found the
//!    queue empty, and a token that came in between ends the park at once.
//! 2. A task that waits is in the thread's list. At its end the thread cancels all of the list,
//!    takes those that others were about to queue, and is done when the list is empty.
//! 3. No wake drops a task, though that would cancel it as well: its future would be dropped inside
//!    of the wake, under whatever lock the caller holds (event-listener's is one that this would
//!    take again).
use queue_global::Injector;
use std::{
    fmt,
    future::Future,
    io,
    panic::resume_unwind,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    thread,
};
use task_header::{Closure, JoinError, JoinHandle, Node, Owned, Ran, Runnable};
use worker_idle::park::{self, Park, ThreadPark, ThreadUnpark, Unpark};

/// A thread that runs tasks. Dropped, it cancels them all, and waits for the one that runs.
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
    unpark: ThreadUnpark,
}

impl Queue {
    fn push(&self, task: Runnable) {
        self.tasks.requeue(task); // Also after the end: rule 2.
        self.unpark.unpark();
    }

    fn run(&self, mut park: ThreadPark) {
        let mut owned = Owned::new(park::waker(park.unparker()));
        while !self.tasks.is_closed() {
            match self.tasks.pop().map(|task| owned.run(task)) {
                // It was woken in its poll: behind the others.
                Some(Ran::Notified(task)) => self.push(task),
                Some(Ran::Complete | Ran::Pending) => {}
                None => park.park(),
            }
        }
        owned.close();
        owned.cancel_all();
        loop {
            while let Some(task) = self.tasks.pop() {
                owned.cancel(task);
            }
            owned.drain();
            if owned.is_empty() {
                break;
            }
            park.park(); // Another thread is in a wake.
        }
    }
}

impl TaskThread {
    /// Starts a thread of that name.
    ///
    /// # Errors
    /// When it can't be started.
    pub fn start(name: &str) -> io::Result<Self> {
        let park = ThreadPark::new();
        let queue = Arc::new(Queue {
            tasks: Injector::new(),
            unpark: park.unparker(),
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
        self.queue.unpark.unpark();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            let _ = thread.join(); // The tasks' panics are caught.
        }
    }
}

/// Waits for a task; dropped, it cancels the task. Its future gives the output, or resumes the
/// task's panic.
pub struct Task<T>(Option<JoinHandle<T>>);

impl<T> Task<T> {
    pub(crate) fn new(join: JoinHandle<T>) -> Self {
        Self(Some(join))
    }

    /// Lets the task go on.
    pub fn detach(mut self) {
        self.0 = None;
    }

    /// Cancels the task, and waits until its future is gone: the output if it was done before, the
    /// panic as an error.
    ///
    /// # Errors
    /// When it was cancelled in time, or has panicked.
    pub async fn cancel(mut self) -> Result<T, JoinError> {
        let join = self.0.take().expect("it is there until it is consumed");
        join.abort();
        join.await
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    /// # Panics
    /// When the task panicked, or was cancelled by the end of its thread.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let join = self.0.as_mut().expect("it is there until it is consumed");
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
            join.abort(); // Of one that is done, nothing.
        }
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Task").field(&self.0).finish()
    }
}
