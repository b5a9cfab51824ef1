//! The queue, the counts and the threads.
//!
//! One lock guards the queue and the counts.
//!
//! 1. A job is queued and an idle thread notified, or a thread started if there are fewer idle ones than queued jobs and the cap allows; else
//!    it waits for a thread that is done.
//! 2. A thread without a job may first [linger](crate::Settings::linger), one at a time. It looks at the queue under the lock afterwards, so that a job that
//!    it will find needs no notification.
//! 3. Who waits counts as idle until it has the lock again, and looks at the queue then, also when its time is up. So a
//!    notification that it has slept through is made good, and a job is never left to threads that have gone.
//! 4. A thread that has waited for the keep-alive, and finds nothing, ends.
//! 5. Closing takes out what has not begun, but for what is to run all the same. The threads end once the queue is empty.
//! 6. A job runs and is dropped outside of the lock, and so are the hooks called. What starts a thread may be called under it: so that a job for which
//!    there is none goes back to who brought it.
use crate::Settings;
use std::{
    collections::VecDeque,
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};
use sync_shim::{
    sync::{Arc, Condvar, Mutex},
    thread,
};

/// What a thread of a [`Pool`] does: a closure, or a type of one's own. A panic of it is contained: the thread goes on.
pub trait Job: Send + 'static {
    /// Does it.
    fn run(self);

    /// Whether it is to be done even if the pool is closed before it has begun. Asked under the pool's lock.
    fn outlasts_close(&self) -> bool {
        false
    }
}

impl<F: FnOnce() + Send + 'static> Job for F {
    fn run(self) {
        self();
    }
}

/// A job that its pool did not take: the pool is closed, or not a single thread can be started.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Refused<J>(pub J);

/// Threads for jobs that block.
pub struct Pool<J> {
    state: Mutex<State<J>>,
    /// Idle threads wait here for a job.
    work: Condvar,
    /// Who ends the pool waits here for the last thread.
    ended: Condvar,
    settings: Settings,
}

struct State<J> {
    queue: VecDeque<J>,
    /// Those that look for jobs, now or later.
    threads: usize,
    /// Those, and the ones that are about to end.
    alive: usize,
    /// Those that wait.
    idle: usize,
    /// 1 while a thread lingers.
    lingering: usize,
    closed: bool,
}

/// How many there are at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Threads, less those that are kept for long jobs.
    pub threads: usize,
    /// Threads without a job.
    pub idle: usize,
    /// Jobs without a thread.
    pub queue: usize,
}

impl<J> State<J> {
    /// A job was queued: whether the threads without one suffice.
    fn find_thread(&self, work: &Condvar) -> bool {
        if self.lingering >= self.queue.len() {
            return true;
        }
        let suffice = self.idle + self.lingering >= self.queue.len();
        if suffice {
            work.notify_one();
        }
        suffice
    }

    fn enter(&mut self) {
        self.threads += 1;
        self.alive += 1;
    }
}

impl<J: Job> Pool<J> {
    /// A pool without threads.
    pub fn new(settings: Settings) -> Self {
        let state = State {
            queue: VecDeque::new(),
            threads: 0,
            alive: 0,
            idle: 0,
            lingering: 0,
            closed: false,
        };
        Self {
            state: Mutex::new(state),
            work: Condvar::new(),
            ended: Condvar::new(),
            settings,
        }
    }

    /// What it was made with.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Queues a job behind the others, for a thread that is idle, new, or done one day.
    ///
    /// # Errors
    /// When the pool is closed, or there is no thread and none can be started. The job comes back.
    pub fn submit(this: &Arc<Self>, job: J) -> Result<(), Refused<J>> {
        let mut state = this.state.lock();
        if state.closed {
            return Err(Refused(job));
        }
        state.queue.push_back(job);
        let Settings { cap, long, .. } = this.settings;
        if !state.find_thread(&this.work) && state.threads < cap.saturating_add(long) {
            match Self::thread(this, &this.settings.name, None) {
                Ok(_) => state.enter(),
                // The others will come to it.
                Err(_) if state.threads > long => {}
                Err(_) => {
                    return state
                        .queue
                        .pop_back()
                        .map_or(Ok(()), |job| Err(Refused(job)));
                }
            }
        }
        Ok(())
    }

    /// Queues a job ahead of the others, and starts a thread of that name if none is idle: whatever the cap, and also when the pool is closed. For
    /// what takes the place of a thread that waits.
    ///
    /// # Errors
    /// When no thread is idle and none can be started. The job comes back.
    pub fn submit_now(this: &Arc<Self>, job: J, name: &str) -> Result<(), Refused<J>> {
        let mut state = this.state.lock();
        state.queue.push_front(job);
        if state.find_thread(&this.work) {
            return Ok(());
        }
        match Self::thread(this, name, None) {
            Ok(_) => state.enter(),
            Err(_) => {
                return state
                    .queue
                    .pop_front()
                    .map_or(Ok(()), |job| Err(Refused(job)));
            }
        }
        Ok(())
    }

    /// Starts a thread of that name, whatever the cap, which begins with this job.
    ///
    /// # Errors
    /// When it can't be started. The job is dropped.
    pub fn start(this: &Arc<Self>, job: J, name: &str) -> io::Result<thread::JoinHandle<()>> {
        this.state.lock().enter();
        let started = Self::thread(this, name, Some(job));
        if started.is_err() {
            let mut state = this.state.lock();
            state.threads -= 1;
            this.end(&mut state);
        }
        started
    }

    fn thread(
        this: &Arc<Self>,
        name: &str,
        first: Option<J>,
    ) -> io::Result<thread::JoinHandle<()>> {
        let mut builder = thread::Builder::new().name(name.into());
        if let Some(bytes) = this.settings.stack_size {
            builder = builder.stack_size(bytes);
        }
        let pool = this.clone();
        (this.settings.spawn)(builder, Box::new(move || pool.run(first)))
    }

    fn run(&self, first: Option<J>) {
        contain(|| (self.settings.on_start)());
        if let Some(job) = first {
            contain(|| job.run());
        }
        let mut linger = (self.settings.linger)();
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.queue.pop_front() {
                drop(state);
                contain(|| job.run());
                state = self.state.lock();
                continue;
            }
            if state.closed {
                break;
            }
            if state.lingering == 0 {
                state.lingering = 1;
                drop(state);
                contain(|| linger(&mut || self.has_news()));
                state = self.state.lock();
                state.lingering = 0;
                if !state.queue.is_empty() || state.closed {
                    continue;
                }
            }
            state.idle += 1;
            let (now, timed_out) = self.work.wait_timeout(state, self.settings.keep_alive);
            state = now;
            state.idle -= 1;
            if timed_out && state.queue.is_empty() {
                break;
            }
        }
        state.threads -= 1;
        drop(state);
        contain(|| (self.settings.on_stop)());
        self.end(&mut self.state.lock());
    }

    fn has_news(&self) -> bool {
        let state = self.state.lock();
        !state.queue.is_empty() || state.closed
    }

    fn end(&self, state: &mut State<J>) {
        state.alive -= 1;
        if state.alive == 0 {
            self.ended.notify_all();
        }
    }

    /// Refuses jobs from now on, and gives those that have not begun, but for the ones that [outlast](Job::outlasts_close) this. The threads end
    /// after what they have in hand.
    pub fn close(&self) -> Vec<J> {
        let mut state = self.state.lock();
        state.closed = true;
        let (kept, left) = std::mem::take(&mut state.queue)
            .into_iter()
            .partition(J::outlasts_close);
        state.queue = kept;
        self.work.notify_all();
        Vec::from(left)
    }

    /// Waits for all threads to end, which they do once the pool is closed: whether they did in time. One of its own threads waits in vain.
    pub fn wait(&self, limit: Option<Duration>) -> bool {
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

    /// How many there are.
    pub fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts {
            threads: state.threads.saturating_sub(self.settings.long),
            idle: state.idle + state.lingering,
            queue: state.queue.len(),
        }
    }
}

/// Runs what may panic, which is printed; a payload's drop is such code, too.
fn contain(f: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(f))
        && let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
    {
        std::mem::forget(payload);
    }
}

impl<J> fmt::Debug for Pool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl<J> fmt::Debug for Refused<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Refused(..)")
    }
}

impl<J> fmt::Display for Refused<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no thread takes this job: the pool is closed, or none can be started")
    }
}

impl<J> std::error::Error for Refused<J> {}
