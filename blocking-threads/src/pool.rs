//! The queues, the counts and the threads.
//!
//! One lock guards the queues and the counts. A thread is *busy* while it has a job of `queue`,
//! *ready* while it waits for a job or has yet to look for one, or the *watcher*, of which there is
//! one at most.
//!
//! 1. A job has *room* while fewer threads are busy than the cap. A pool is *short* while more jobs
//!    have room, or are beyond the cap, than there are ready threads.
//! 2. A submission to a pool that is not short afterwards notifies a ready thread. Else it starts
//!    one: a ready thread while the pool has few threads, the watcher otherwise, and none while
//!    there is a watcher. So a pool that is short has a watcher, which starts more threads when the
//!    jobs have waited (`growth.rs`).
//! 3. A job beyond the cap never waits for the watcher: its submission starts a ready thread, if
//!    the pool is short. Ready threads take such jobs first.
//! 4. A ready thread may first [wait a little](crate::Settings::before_park), one at a time. It looks at the
//!    queues under the lock afterwards, so that a job that it will find needs no notification.
//! 5. A thread that waits counts as ready until it has the lock again, and looks at the queues
//!    then, also when its time is up. So a notification that it has slept through is made good, and
//!    a job is never left to threads that have gone.
//! 6. The cap is one of busy threads, not of all: a job beyond the cap that waits for another takes
//!    up no room. A thread that is done with a job looks at the queues itself, so the room that it
//!    leaves is filled.
//! 7. A thread that has waited for the keep-alive, and finds nothing, ends. So does one that finds
//!    nothing while the pool has a *surplus*: the threads above a cap that was lowered.
//! 8. Closing takes out what has not begun, but for what is beyond the cap; finishing leaves all of
//!    it. The threads end once the queues are empty.
//! 9. A job runs and is dropped outside of the lock, and so are the hooks called. What starts a
//!    thread may be called under it: so that a job for which there is none goes back to the caller,
//!    and a thread finds its own handle.
//! 10. A thread that ends leaves its handle to the next, which joins it. So the caller that has
//!     joined the last, and all that have not ended, has joined all.
use crate::{Settings, SharedPool, settings::BeforePark, shared::Keep};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    panic::{AssertUnwindSafe, RefUnwindSafe, UnwindSafe, catch_unwind},
    time::{Duration, Instant},
};
use sync_shim::{
    sync::{Condvar, Mutex, MutexGuard},
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
    pub(crate) state: Mutex<State<J>>,
    /// Ready threads wait here for a job.
    work: Condvar,
    /// The watcher waits here for its next look.
    pub(crate) looks: Condvar,
    /// Who ends the pool waits here for the last thread.
    ended: Condvar,
    pub(crate) settings: Settings,
}

pub(crate) struct State<J> {
    /// The most busy threads, but for one that it leaves where it is 0.
    cap: usize,
    /// Jobs under the cap.
    pub(crate) queue: VecDeque<J>,
    /// Jobs beyond it.
    urgent: VecDeque<J>,
    /// Jobs that a new thread begins with, by its number.
    own: BTreeMap<u64, J>,
    /// Threads that have a job of `queue`.
    busy: usize,
    /// Threads that wait for a job, or have yet to look.
    pub(crate) ready: usize,
    /// Whether there is a watcher, which may have yet to begin.
    pub(crate) watched: bool,
    /// Jobs of `queue` that a thread has taken right after another job, since the watcher's last
    /// look.
    pub(crate) taken: usize,
    /// Threads that end as soon as they find nothing (rule 7).
    surplus: usize,
    /// 1 while one of these lingers.
    spinning: usize,
    /// All of them, until they have nothing more to do than to end.
    alive: usize,
    /// Who waits for the last of them.
    waiters: usize,
    pub(crate) closed: bool,
    /// The threads that were started for what is queued.
    handles: BTreeMap<u64, thread::JoinHandle<()>>,
    /// Threads started so far.
    number: u64,
    /// Rule 10.
    last: Option<thread::JoinHandle<()>>,
}

/// How many there are at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Threads, less those that have a job beyond the cap.
    pub threads: usize,
    /// Threads without a job, among them one that watches whether jobs wait.
    pub idle: usize,
    /// Jobs under the cap without a thread.
    pub queue: usize,
}

impl<J> State<J> {
    /// How many more threads may be busy. With a cap of 0, the jobs that were submitted before it
    /// was lowered still run.
    fn room(&self) -> usize {
        self.cap.max(1).saturating_sub(self.busy)
    }

    /// Jobs that a ready thread would take now.
    pub(crate) fn wanted(&self) -> usize {
        self.urgent.len() + self.queue.len().min(self.room())
    }

    fn has_news(&self) -> bool {
        self.wanted() > 0 || self.closed
    }

    /// Threads, less those that have a job beyond the cap.
    fn threads(&self) -> usize {
        self.busy + self.ready + usize::from(self.watched)
    }

    /// The next job, and whether it is under the cap.
    fn next(&mut self) -> Option<(J, bool)> {
        if let Some(job) = self.urgent.pop_front() {
            return Some((job, false));
        }
        if self.room() == 0 {
            return None;
        }
        self.queue.pop_front().map(|job| (job, true))
    }
}

/// What a thread is started for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A job: its own, or the next of the queues.
    Job,
    /// To be the watcher.
    Watch,
}

impl<J: Job> Pool<J> {
    sync_shim::const_fn! {
        /// A pool without threads. They are started for the jobs.
        ///
        /// A `const fn`, but under a model: a pool can be a static.
        ///
        /// ```
        /// use blocking_threads::{Pool, Settings};
        /// use std::sync::mpsc;
        ///
        /// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
        /// static POOL: Pool<Box<dyn FnOnce() + Send>> = Pool::new(Settings::new());
        ///
        /// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))] {
        /// let (sender, receiver) = mpsc::channel();
        /// Pool::submit(&POOL, Box::new(move || sender.send(7).unwrap())).expect("it is open");
        /// assert_eq!(receiver.recv(), Ok(7));
        /// # }
        /// ```
        pub const fn new(settings: Settings) -> Self {
            let state = State {
                cap: settings.cap,
                queue: VecDeque::new(),
                urgent: VecDeque::new(),
                own: BTreeMap::new(),
                busy: 0,
                ready: 0,
                watched: false,
                taken: 0,
                surplus: 0,
                spinning: 0,
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
                looks: Condvar::new(),
                ended: Condvar::new(),
                settings,
            }
        }
    }

    /// What it was made with. [`cap`](Self::cap) may have changed since.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Queues a job behind the others, for a thread that is idle, new, or done one day. As many of
    /// these run at a time as the cap says. When all threads are busy, and there are as many as
    /// [`Settings::eager`] says, another is started once jobs have waited for
    /// [`Settings::grow_after`].
    ///
    /// # Errors
    /// When the pool is closed, or its cap is 0, or no thread would come to it and none can be started. The job comes back.
    pub fn submit(this: impl SharedPool<J>, job: J) -> Result<(), Refused<J>> {
        let this = this.keep();
        let mut state = this.state.lock();
        if state.closed || state.cap == 0 {
            return Err(Refused { job, why: None });
        }
        state.queue.push_back(job);
        match Self::provide(this, &mut state) {
            // The others will come to it, but for those that are ready for what is urgent.
            Err(_) if state.threads() > state.urgent.len() => Ok(()),
            provided => provided.or_else(|why| refused(state.queue.pop_back(), why)),
        }
    }

    /// Queues a job ahead of the others, and starts a thread of that name if none is idle: beyond the cap, and also when the pool is closed. For
    /// what takes the place of a thread that waits.
    ///
    /// # Errors
    /// When no thread is idle and none can be started. The job comes back.
    pub fn submit_now(this: impl SharedPool<J>, job: J, name: &str) -> Result<(), Refused<J>> {
        let this = this.keep();
        let mut state = this.state.lock();
        state.urgent.push_back(job);
        if this.notify(&state) {
            return Ok(());
        }
        let added = Self::add(this, &mut state, name);
        added.or_else(|why| refused(state.urgent.pop_back(), why))
    }

    /// Starts a thread of that name, which begins with this job: beyond the cap, and for what runs as long as the pool lives.
    ///
    /// # Errors
    /// When the pool is closed, or no thread can be started. The job comes back.
    pub fn start(this: impl SharedPool<J>, job: J, name: &str) -> Result<(), Refused<J>> {
        let this = this.keep();
        let mut state = this.state.lock();
        if state.closed {
            return Err(Refused { job, why: None });
        }
        let number = state.number;
        state.own.insert(number, job);
        let begun = Self::begin(this, &mut state, name, Role::Job);
        begun.or_else(|why| refused(state.own.remove(&number), why))
    }

    /// The most jobs at a time, of those that came by [`submit`](Self::submit).
    pub fn cap(&self) -> usize {
        self.state.lock().cap
    }

    /// Changes the [cap](Settings::cap).
    ///
    /// After it was raised, jobs that waited for room get threads as if they were submitted now.
    /// After it was lowered, threads above it end as they are done with their jobs; nobody
    /// interrupts those. With 0, submissions are refused, and the jobs that were submitted before
    /// run one at a time. No error: a thread that can't be started is tried again when jobs have
    /// waited, or come.
    ///
    /// ```
    /// use blocking_threads::{Pool, Settings};
    /// use std::sync::{Arc, Barrier};
    ///
    /// let mut settings = Settings::new();
    /// settings.cap = 1;
    /// let pool = Arc::new(Pool::new(settings));
    /// let both = Arc::new(Barrier::new(2));
    /// for _ in 0..2 {
    ///     let both = both.clone();
    ///     Pool::submit(&pool, move || drop(both.wait())).expect("it is open");
    /// }
    /// Pool::set_cap(&pool, 2); // Else the first would wait for ever.
    /// pool.finish();
    /// pool.join();
    /// ```
    pub fn set_cap(this: impl SharedPool<J>, cap: usize) {
        let this = this.keep();
        let mut state = this.state.lock();
        state.cap = cap;
        state.surplus = state.threads().saturating_sub(cap);
        while state.wanted() > state.ready && !state.watched {
            if Self::provide(this, &mut state).is_err() {
                break;
            }
        }
        drop(state); // As in `end`.
        this.work.notify_all();
    }

    /// Rule 2, after a job was queued or got room.
    fn provide(this: &impl Keep<J>, state: &mut State<J>) -> io::Result<()> {
        if this.notify(state) {
            return Ok(());
        }
        let settings = &this.settings;
        let is_few = state.busy + state.ready < settings.eager.max(1);
        if is_few || settings.grow_after.is_zero() {
            return Self::add(this, state, &settings.name);
        }
        if !state.watched {
            Self::begin(this, state, &settings.name, Role::Watch)?;
            state.watched = true;
        }
        Ok(())
    }

    /// Notifies a ready thread, unless one finds the job anyway. False if the pool is short.
    fn notify(&self, state: &State<J>) -> bool {
        let wanted = state.wanted();
        if state.ready < wanted {
            return false;
        }
        if wanted > state.spinning {
            self.work.notify_one();
        }
        true
    }

    /// Starts a ready thread.
    pub(crate) fn add(this: &impl Keep<J>, state: &mut State<J>, name: &str) -> io::Result<()> {
        Self::begin(this, state, name, Role::Job)?;
        state.ready += 1;
        Ok(())
    }

    /// Starts a thread.
    fn begin(this: &impl Keep<J>, state: &mut State<J>, name: &str, role: Role) -> io::Result<()> {
        let (pool, number) = (this.clone(), state.number);
        let handle = this.thread(name, move || {
            if let Some(start) = &pool.settings.on_start {
                contain(|| start());
            }
            Self::work(&pool, number, role);
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
        match &self.settings.spawn {
            Some(spawn) => spawn(builder, Box::new(run)),
            None => builder.spawn(run),
        }
    }

    /// What a thread does: its own job or the watch, after which it is ready, and those that are
    /// queued.
    fn work(this: &impl Keep<J>, number: u64, role: Role) {
        let mut before_park: Option<Box<BeforePark>> = None;
        if let Some(make) = &this.settings.before_park {
            contain(|| before_park = Some(make()));
        }
        let mut state = this.state.lock();
        if role == Role::Watch {
            state = Self::watch(this, state);
        } else if let Some(job) = state.own.remove(&number) {
            drop(state);
            contain(|| job.run());
            state = this.state.lock();
            state.ready += 1;
        }
        let mut had_job = false;
        loop {
            if let Some((job, counted)) = state.next() {
                state.ready -= 1;
                state.busy += usize::from(counted);
                state.taken += usize::from(counted && had_job);
                drop(state);
                contain(|| job.run());
                had_job = true;
                state = this.state.lock();
                state.busy -= usize::from(counted);
                state.ready += 1;
                continue;
            }
            if state.closed || state.surplus > 0 {
                break;
            }
            had_job = false;
            if let Some(before_park) = before_park.as_mut().filter(|_| state.spinning == 0) {
                state.spinning = 1;
                drop(state);
                contain(|| before_park(&mut || this.state.lock().has_news()));
                state = this.state.lock();
                state.spinning = 0;
                if state.has_news() {
                    continue;
                }
            }
            let (now, timed_out) = this.work.wait_timeout(state, this.settings.keep_alive);
            state = now;
            if timed_out && state.wanted() == 0 {
                break;
            }
        }
        state.ready -= 1;
        state.surplus = state.surplus.saturating_sub(1);
        if state.closed && state.watched {
            this.looks.notify_one(); // Perhaps nothing is left to be watched.
        }
        drop(state);
        if let Some(stop) = &this.settings.on_stop {
            contain(|| stop());
        }
        let mut state = this.state.lock();
        let own = state.handles.remove(&number);
        let before = own.and_then(|own| state.last.replace(own));
        this.end(state);
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
        let (any_waits, is_watched) = (state.ready > 0, state.watched);
        drop(state); // As in `end`.
        if any_waits {
            self.work.notify_all();
        }
        if is_watched {
            self.looks.notify_one();
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
            threads: state.threads(),
            idle: state.ready + usize::from(state.watched),
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
    let Err(payload) = catch_unwind(AssertUnwindSafe(f)) else {
        return;
    };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}

// A panic of a job or a hook is contained, and none of them is called while the counts are changed.
impl<J> UnwindSafe for Pool<J> {}
impl<J> RefUnwindSafe for Pool<J> {}

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
