//! The threads of a runtime: its workers, and those for closures that block.
//!
//! One lock guards the queue and the counts.
//!
//! 1. A thread runs what is queued: closures, and the cores of workers, which keep it until the runtime ends or a task gives the core away.
//! 2. A closure is queued and an idle thread notified, or a thread started if there is none and the cap allows. The cap leaves out as many
//!    threads as there are cores. A core that was given away doesn't ask for the cap: the thread that gave it takes up room for nothing else.
//! 3. A thread that has waited for the keep-alive ends.
//! 4. Closing drops the closures that have not begun, and lets the threads end after what they have in hand. Cores stay queued: their
//!    tasks are to be dropped.
use crate::{hooks::Hooks, shared::Shared, worker};
use std::{
    collections::VecDeque,
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
    time::{Duration, Instant},
};
use sync_shim::{
    sync::{Arc, Condvar, Mutex},
    thread,
};
use task_header::{JoinHandle, Notified, Ran, Schedule, WakeKind};

/// The pool of one runtime.
pub(crate) struct Pool {
    state: Mutex<State>,
    /// Idle threads wait here for work.
    work: Condvar,
    /// The runtime's drop waits here for the last thread.
    ended: Condvar,
    settings: Threads,
    hooks: Arc<Hooks>,
}

/// What a builder has settled for the threads.
#[derive(Clone, Debug)]
pub(crate) struct Threads {
    pub(crate) name: String,
    pub(crate) stack_size: Option<usize>,
    /// The most threads that are not workers.
    pub(crate) cap: usize,
    pub(crate) keep_alive: Duration,
    /// Threads that are workers, usually.
    pub(crate) cores: usize,
    /// Which thread is not to start.
    #[cfg(test)]
    pub(crate) fails: Option<usize>,
}

struct State {
    queue: VecDeque<Job>,
    /// Those that look for jobs, now or later.
    threads: usize,
    /// Those, and the ones that are about to end.
    alive: usize,
    idle: usize,
    closed: bool,
}

enum Job {
    Closure(Notified<Blocking>),
    /// The core of a worker, if it is still on offer.
    Core(Arc<Shared>, usize),
}

/// How many there are.
pub(crate) struct Counts {
    pub(crate) threads: u64,
    pub(crate) idle: u64,
    pub(crate) queue: u64,
}

/// The scheduler of closures: they are queued once, and never woken.
pub(crate) struct Blocking;

impl Schedule for Blocking {
    fn schedule(task: Notified<Self>, _why: WakeKind) {
        // Only an abort gets here, and only after the closure's one run has begun or ended.
        drop(task);
    }
}

/// A closure as a future of one poll.
struct Once<F>(Option<F>);

impl<F> Unpin for Once<F> {}

impl<F: FnOnce() -> R, R> Future for Once<F> {
    type Output = R;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<R> {
        let f = self.0.take().expect("a closure runs once");
        Poll::Ready(f())
    }
}

impl Pool {
    pub(crate) fn new(settings: Threads, hooks: Arc<Hooks>) -> Self {
        let state = State {
            queue: VecDeque::new(),
            threads: 0,
            alive: 0,
            idle: 0,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            ended: Condvar::new(),
            settings,
            hooks,
        }
    }

    /// Queues a closure. Refused (closed, or not a single thread to be had) it is dropped here,
    /// which its handle sees as cancelled.
    pub(crate) fn spawn<F, R>(pool: &Arc<Self>, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        let (task, join) = task_header::new(Once(Some(f)), Blocking);
        let refused = Self::queue(pool, task);
        drop(refused); // User code, outside of the lock.
        join
    }

    fn queue(this: &Arc<Self>, task: Notified<Blocking>) -> Option<Job> {
        let mut state = this.state.lock();
        if state.closed {
            return Some(Job::Closure(task));
        }
        state.queue.push_back(Job::Closure(task));
        let most = this.settings.cap.saturating_add(this.settings.cores);
        if state.idle >= state.queue.len() {
            this.work.notify_one();
        } else if state.threads < most {
            let name = format!("{}-blocking", this.settings.name);
            let started = Self::start(this, &mut state, name, None);
            // The others will come to it; without any, nobody would.
            if started.is_err() && state.threads <= this.settings.cores {
                return state.queue.pop_back();
            }
        }
        None
    }

    /// Starts the thread of a worker, whose core is on offer.
    pub(crate) fn start_worker(
        this: &Arc<Self>,
        shared: &Arc<Shared>,
        index: usize,
    ) -> io::Result<thread::JoinHandle<()>> {
        let name = format!("{}-{index}", this.settings.name);
        let job = Job::Core(shared.clone(), index);
        Self::start(this, &mut this.state.lock(), name, Some(job))
    }

    /// Asks a thread to take over a core that is on offer. If none can be started, the core stays there, and goes back to who offered it.
    pub(crate) fn take_over(this: &Arc<Self>, shared: &Arc<Shared>, index: usize) {
        let mut state = this.state.lock();
        state.queue.push_front(Job::Core(shared.clone(), index));
        if state.idle >= state.queue.len() {
            this.work.notify_one();
            return;
        }
        let name = format!("{}-{index}", this.settings.name);
        if Self::start(this, &mut state, name, None).is_err() {
            let job = state.queue.pop_front();
            drop(state);
            drop(job);
        }
    }

    fn start(
        this: &Arc<Self>,
        state: &mut State,
        name: String,
        first: Option<Job>,
    ) -> io::Result<thread::JoinHandle<()>> {
        #[cfg(test)]
        if this.settings.fails == Some(state.threads) {
            return Err(io::Error::other("no thread, as the test asked"));
        }
        let mut builder = thread::Builder::new().name(name);
        if let Some(bytes) = this.settings.stack_size {
            builder = builder.stack_size(bytes);
        }
        let pool = this.clone();
        let thread = builder.spawn(move || Self::run(&pool, first))?;
        state.threads += 1;
        state.alive += 1;
        Ok(thread)
    }

    fn run(this: &Arc<Self>, first: Option<Job>) {
        this.hooks.start();
        if let Some(job) = first {
            job.run();
        }
        let mut state = this.state.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                job.run();
                state = this.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            state.idle += 1;
            let (now, timed_out) = this.work.wait_timeout(state, this.settings.keep_alive);
            state = now;
            state.idle -= 1;
            if timed_out && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        drop(state);
        this.hooks.stop();
        let mut state = this.state.lock();
        state.alive -= 1;
        if state.alive == 0 {
            this.ended.notify_all();
        }
    }

    /// Refuses closures from now on and drops those that have not begun.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        let (cores, dropped) = std::mem::take(&mut state.queue)
            .into_iter()
            .partition::<VecDeque<_>, _>(|job| matches!(job, Job::Core(..)));
        state.queue = cores;
        self.work.notify_all();
        drop(state);
        drop(dropped); // User code, outside of the lock.
    }

    /// Waits for the threads to end: whether they did in time.
    pub(crate) fn wait(&self, limit: Option<Duration>) -> bool {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = self.state.lock();
        while state.alive != 0 {
            let Some(deadline) = deadline else {
                state = self.ended.wait(state);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.ended.wait_timeout(state, left).0;
        }
        true
    }

    pub(crate) fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts {
            threads: state.threads.saturating_sub(self.settings.cores) as u64,
            idle: state.idle as u64,
            queue: state.queue.len() as u64,
        }
    }
}

impl Job {
    fn run(self) {
        match self {
            // The future is done in one poll, and its panic caught there.
            Self::Closure(task) => {
                let (Ran::Complete | Ran::Pending | Ran::Notified(_)) = task.run();
            }
            Self::Core(shared, index) => {
                let core = shared.remotes[index].lent.take();
                drop(shared);
                if let Some(core) = core {
                    worker::drive(core);
                }
            }
        }
    }
}
