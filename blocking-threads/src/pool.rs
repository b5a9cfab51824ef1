//! The queues, the counts and the threads.
//!
//! One lock guards the queues and the counts.
//!
//! 1. A job for which there is room, under the cap or beyond it, has a ready thread: when it is queued one of those that wait is notified if there
//!    are enough for all such jobs, or else a thread is started. Ready is who waits, and who has yet to look.
//! 2. A ready thread may first [linger](crate::Settings::linger), one at a time. It looks at the queues under the lock afterwards, so that a job that
//!    it will find needs no notification.
//! 3. Who waits counts as ready until it has the lock again, and looks at the queues then, also when its time is up. So a
//!    notification that it has slept through is made good, and a job is never left to threads that have gone.
//! 4. The cap is one of jobs in hand, not of threads: one that waits for another in a job beyond the cap takes up no room. A thread that
//!    is done with a job looks at the queues itself, so the room that it leaves is filled.
//! 5. A thread that has waited for the keep-alive, and finds nothing, ends.
//! 6. Closing takes out what has not begun, but for what is beyond the cap; finishing leaves all of it. The threads end once the queues are empty.
//! 7. A job runs and is dropped outside of the lock, and so are the hooks called. What starts a thread may be called under it: so that a job for which
//!    there is none goes back to who brought it, and a thread finds its own handle.
//! 8. A thread that ends leaves its handle to the next, which joins it. So who has joined the last, and all that have not ended, has joined all.
use crate::{Settings, settings::Linger};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    panic::{AssertUnwindSafe, catch_unwind},
    time::{Duration, Instant},
};
use sync_shim::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};

/// What a thread of a [`Pool`] does: a closure, or a type of one's own. A panic of it is contained: the thread goes on.
pub trait Job: Send + 'static {
    /// Does it.
    fn run(self);
}

impl<F: FnOnce() + Send + 'static> Job for F {
    fn run(self) {
        self();
    }
}

/// A job that its pool did not take.
pub struct Refused<J> {
    /// As it was given.
    pub job: J,
    /// Why no thread could be started for it: with [`InvalidInput`](io::ErrorKind::InvalidInput) if its name holds a NUL. None if the pool is closed, or has no room for a job, ever.
    pub why: Option<io::Error>,
}

/// Threads for jobs that block.
pub struct Pool<J> {
    state: Mutex<State<J>>,
    /// Ready threads wait here for a job.
    work: Condvar,
    /// Who ends the pool waits here for the last thread.
    ended: Condvar,
    settings: Settings,
}

struct State<J> {
    /// Jobs under the cap.
    queue: VecDeque<J>,
    /// Jobs beyond it.
    urgent: VecDeque<J>,
    /// Jobs that a new thread begins with, by its number.
    own: BTreeMap<u64, J>,
    /// Threads that have a job of `queue`.
    busy: usize,
    /// Threads that wait for a job, or have yet to look.
    ready: usize,
    /// 1 while one of these lingers.
    lingering: usize,
    /// All of them, until they have nothing more to do than to end.
    alive: usize,
    /// Who waits for the last of them.
    waiters: usize,
    closed: bool,
    /// The threads that were started for what is queued.
    handles: BTreeMap<u64, thread::JoinHandle<()>>,
    /// Threads started so far.
    number: u64,
    /// Rule 8.
    last: Option<thread::JoinHandle<()>>,
}

/// How many there are at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Threads, less those that have a job beyond the cap.
    pub threads: usize,
    /// Threads without a job.
    pub idle: usize,
    /// Jobs under the cap without a thread.
    pub queue: usize,
}

impl<J> State<J> {
    /// Jobs that a ready thread would take now.
    fn wanted(&self, cap: usize) -> usize {
        let room = cap.saturating_sub(self.busy);
        self.urgent.len() + self.queue.len().min(room)
    }

    fn has_news(&self, cap: usize) -> bool {
        self.wanted(cap) > 0 || self.closed
    }

    /// The next job, and whether it is under the cap.
    fn next(&mut self, cap: usize) -> Option<(J, bool)> {
        if let Some(job) = self.urgent.pop_front() {
            return Some((job, false));
        }
        if self.busy >= cap {
            return None;
        }
        self.queue.pop_front().map(|job| (job, true))
    }
}

impl<J: Job> Pool<J> {
    /// A pool without threads.
    pub fn new(settings: Settings) -> Self {
        let state = State {
            queue: VecDeque::new(),
            urgent: VecDeque::new(),
            own: BTreeMap::new(),
            busy: 0,
            ready: 0,
            lingering: 0,
            alive: 0,
            waiters: 0,
            closed: false,
            handles: BTreeMap::new(),
            number: 0,
            last: None,
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

    /// Queues a job behind the others, for a thread that is idle, new, or done one day. As many of these run at a time as the cap says.
    ///
    /// # Errors
    /// When the pool is closed, or its cap is 0, or no thread would come to it and none can be started. The job comes back.
    pub fn submit(this: &Arc<Self>, job: J) -> Result<(), Refused<J>> {
        let mut state = this.state.lock();
        if state.closed || this.settings.cap == 0 {
            return Err(Refused { job, why: None });
        }
        state.queue.push_back(job);
        match Self::call(this, &mut state, &this.settings.name) {
            // The others will come to it, but for those that are ready for what is urgent.
            Err(_) if state.busy + state.ready > state.urgent.len() => Ok(()),
            called => called.or_else(|why| refused(state.queue.pop_back(), why)),
        }
    }

    /// Queues a job ahead of the others, and starts a thread of that name if none is idle: beyond the cap, and also when the pool is closed. For
    /// what takes the place of a thread that waits.
    ///
    /// # Errors
    /// When no thread is idle and none can be started. The job comes back.
    pub fn submit_now(this: &Arc<Self>, job: J, name: &str) -> Result<(), Refused<J>> {
        let mut state = this.state.lock();
        state.urgent.push_back(job);
        let called = Self::call(this, &mut state, name);
        called.or_else(|why| refused(state.urgent.pop_back(), why))
    }

    /// Starts a thread of that name, which begins with this job: beyond the cap, and for what runs as long as the pool lives.
    ///
    /// # Errors
    /// When the pool is closed, or no thread can be started. The job comes back.
    pub fn start(this: &Arc<Self>, job: J, name: &str) -> Result<(), Refused<J>> {
        let mut state = this.state.lock();
        if state.closed {
            return Err(Refused { job, why: None });
        }
        let number = state.number;
        state.own.insert(number, job);
        let begun = Self::begin(this, &mut state, name);
        begun.or_else(|why| refused(state.own.remove(&number), why))
    }

    /// Rule 1, after a job was queued.
    fn call(this: &Arc<Self>, state: &mut State<J>, name: &str) -> io::Result<()> {
        let wanted = state.wanted(this.settings.cap);
        if state.ready >= wanted {
            if wanted > state.lingering {
                this.work.notify_one();
            }
            return Ok(());
        }
        Self::begin(this, state, name)?;
        state.ready += 1;
        Ok(())
    }

    /// Starts a thread.
    fn begin(this: &Arc<Self>, state: &mut State<J>, name: &str) -> io::Result<()> {
        let (pool, number) = (this.clone(), state.number);
        let handle = this.thread(name, move || {
            contain(|| (pool.settings.on_start)());
            pool.work(number);
        })?;
        state.handles.insert(number, handle);
        state.number += 1;
        state.alive += 1;
        Ok(())
    }

    /// A panic of what starts it, or of the drop of what it doesn't run, is a failure to start it.
    fn thread(
        &self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<thread::JoinHandle<()>> {
        let mut started = Err(io::Error::other("the start of a thread panicked"));
        contain(|| started = self.try_thread(name, run));
        started
    }

    fn try_thread(
        &self,
        name: &str,
        run: impl FnOnce() + Send + 'static,
    ) -> io::Result<thread::JoinHandle<()>> {
        if name.contains('\0') {
            drop(run); // Before there is an error, which a panic of this would leak.
            let why = "a thread's name holds no NUL";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut builder = thread::Builder::new().name(name.into());
        if let Some(bytes) = self.settings.stack_size {
            builder = builder.stack_size(bytes);
        }
        (self.settings.spawn)(builder, Box::new(run))
    }

    /// What a thread does: its own job, after which it is ready, and those that are queued.
    fn work(&self, number: u64) {
        let cap = self.settings.cap;
        let mut linger: Box<Linger> = Box::new(|_| ());
        contain(|| linger = (self.settings.linger)());
        let mut state = self.state.lock();
        if let Some(job) = state.own.remove(&number) {
            drop(state);
            contain(|| job.run());
            state = self.state.lock();
            state.ready += 1;
        }
        loop {
            if let Some((job, counted)) = state.next(cap) {
                state.ready -= 1;
                state.busy += usize::from(counted);
                drop(state);
                contain(|| job.run());
                state = self.state.lock();
                state.busy -= usize::from(counted);
                state.ready += 1;
                continue;
            }
            if state.closed {
                break;
            }
            if state.lingering == 0 {
                state.lingering = 1;
                drop(state);
                contain(|| linger(&mut || self.state.lock().has_news(cap)));
                state = self.state.lock();
                state.lingering = 0;
                if state.has_news(cap) {
                    continue;
                }
            }
            let (now, timed_out) = self.work.wait_timeout(state, self.settings.keep_alive);
            state = now;
            if timed_out && state.wanted(cap) == 0 {
                break;
            }
        }
        state.ready -= 1;
        drop(state);
        contain(|| (self.settings.on_stop)());
        let mut state = self.state.lock();
        let own = state.handles.remove(&number);
        let before = own.and_then(|own| state.last.replace(own));
        self.end(state);
        join(before);
    }

    /// Not under the lock, which who is notified takes first of all. A notification that nobody waits for is a system call all the same.
    fn end(&self, mut state: MutexGuard<'_, State<J>>) {
        state.alive -= 1;
        let notify = state.alive == 0 && state.waiters > 0;
        drop(state);
        if notify {
            self.ended.notify_all();
        }
    }

    /// Refuses jobs from now on, and gives those that have not begun, but for the ones that came by [`submit_now`](Self::submit_now). The threads end
    /// after what they have in hand.
    pub fn close(&self) -> Vec<J> {
        let mut state = self.state.lock();
        let left = std::mem::take(&mut state.queue);
        self.refuse(state);
        left.into()
    }

    /// Refuses jobs from now on. The threads run those that were submitted, and end after them.
    ///
    /// ```
    /// use blocking_threads::{Pool, Settings};
    /// use std::sync::{Arc, mpsc};
    ///
    /// let pool = Arc::new(Pool::new(Settings::default()));
    /// let (sender, ran) = mpsc::channel();
    /// Pool::submit(&pool, move || sender.send(7).unwrap()).expect("it is open");
    /// pool.finish();
    /// pool.join();
    /// assert_eq!(ran.try_recv(), Ok(7));
    /// ```
    pub fn finish(&self) {
        self.refuse(self.state.lock());
    }

    fn refuse(&self, mut state: MutexGuard<'_, State<J>>) {
        state.closed = true;
        let any_waits = state.ready > 0;
        drop(state); // As in `end`.
        if any_waits {
            self.work.notify_all();
        }
    }

    /// Waits until all threads have come to their end, which they do once the pool is closed: whether they did in time. What is left to them is the drops of
    /// their thread-locals. One of its own threads waits in vain.
    pub fn wait(&self, limit: Option<Duration>) -> bool {
        let deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut state = self.state.lock();
        state.waiters += 1;
        while state.alive != 0 {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            state = match left {
                None => self.ended.wait(state),
                Some(Duration::ZERO) => break,
                Some(left) => self.ended.wait_timeout(state, left).0,
            };
        }
        state.waiters -= 1;
        state.alive == 0
    }

    /// As [`wait`](Self::wait), without a limit, and for the drops of thread-locals too, if no other thread joins meanwhile. Those must not wait for who calls this.
    ///
    /// # Panics
    /// In one of its own threads, or it waits in vain.
    pub fn join(&self) {
        let next = || {
            let mut state = self.state.lock();
            let first = state.handles.pop_first().map(|(_, handle)| handle);
            first.or_else(|| state.last.take())
        };
        while let Some(thread) = next() {
            join(Some(thread));
        }
        self.wait(None); // Another may have taken the handles.
    }

    /// How many there are.
    pub fn counts(&self) -> Counts {
        let state = self.state.lock();
        Counts {
            threads: state.busy + state.ready,
            idle: state.ready,
            queue: state.queue.len(),
        }
    }
}

fn refused<J>(job: Option<J>, why: io::Error) -> Result<(), Refused<J>> {
    let why = Some(why);
    job.map_or(Ok(()), |job| Err(Refused { job, why }))
}

fn join(thread: Option<thread::JoinHandle<()>>) {
    if let Some(thread) = thread {
        // Its jobs' panics were contained; what its thread-locals do is printed.
        let _ = thread.join();
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
        f.debug_struct("Refused")
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

impl<J> fmt::Display for Refused<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.why {
            None => "no thread takes this job: the pool is closed, or its cap is 0",
            Some(_) => "no thread takes this job: none can be started",
        })
    }
}

impl<J> std::error::Error for Refused<J> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.why.as_ref().map(|why| why as _)
    }
}
