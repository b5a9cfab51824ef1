//! The pool: its queues, its counts and its threads, all under one lock.
//!
//! # Actors and states
//!
//! A *submitter* calls `submit`, `submit_now` or `start`. A *closer* calls `close` or `finish`. The
//! threads of the pool run the jobs. There are three kinds of jobs:
//!
//! | job | submitted by | waits in | bounded by the cap |
//! |---|---|---|---|
//! | *capped* | `submit` | `queue` | yes |
//! | *urgent* | `submit_now` | `urgent` | no |
//! | *own* | `start` | `own`, for one new thread | no |
//!
//! Each thread of the pool is in one of these states:
//!
//! | state | the thread | counted in |
//! |---|---|---|
//! | *ready* | waits for a job, or has yet to check the queues: it was just started, or just finished a job | `ready` |
//! | *spinning* | is ready, and runs its [`before_park`](crate::Settings::before_park) hook without the lock | `ready`, `spinning` |
//! | *busy* | runs a capped job | `busy` |
//! | *exempt* | runs an urgent job or its own job | `alive` only |
//! | *watcher* | checks at intervals whether jobs wait too long (`growth.rs`) | `watched` |
//!
//! Every thread is also in `alive` until it ends. A capped job has *room* while fewer threads are
//! busy than the cap. The jobs that are *wanted* are the urgent ones and the capped ones that have
//! room. The pool is *short* while more jobs are wanted than threads are ready.
//!
//! # Rules
//!
//! 1. At most one thread is the watcher, and at most one is spinning.
//! 2. A submission that leaves the pool not short notifies a ready thread. A submission that leaves
//!    it short starts a ready thread in two cases: fewer than [`eager`](crate::Settings::eager)
//!    threads are busy or ready, or [`grow_after`](crate::Settings::grow_after) is zero. In all
//!    other cases the submission starts the watcher, unless there is one. So a pool that is short
//!    has a watcher, which starts more threads once the jobs have waited (`growth.rs`).
//! 3. An urgent job never waits for the watcher: if the pool is short, its submission starts a
//!    ready thread. Ready threads take urgent jobs first.
//! 4. A spinning thread checks the queues under the lock when its hook returns. So a submitter does
//!    not notify for a job that the spinning thread will find.
//! 5. A thread that waits counts as ready, also after its wait has ended, until it holds the lock
//!    again. Then it checks the queues, even if its wait timed out.
//! 6. The cap bounds busy threads, not all threads: an exempt thread that waits for a capped job
//!    takes no room. A thread that finishes a job checks the queues itself, so the room that it
//!    leaves is used.
//! 7. A thread ends when its wait lasted for the keep-alive and it finds no wanted job. A thread
//!    that finds no wanted job also ends while the pool has a *surplus*: threads above a cap that
//!    was lowered.
//! 8. `close` takes out the queued capped jobs, and leaves the urgent jobs in their queue. `finish`
//!    leaves the jobs in both queues. The threads end once the queues are empty.
//! 9. Jobs and hooks run, and jobs and errors are dropped, without the lock. One hook is an
//!    exception: [`Settings::spawn`] may be called under the lock. So a job for which no thread
//!    starts can go back to its submitter, and a new thread finds its own handle in `handles`. The
//!    drop of a hook's error is user code, so its panic is caught.
//! 10. A thread that ends moves its own handle to `last`, and joins the handle that was there. So
//!     a caller that has joined the handle in `last`, and all handles in `handles`, has joined
//!     every thread.
//!
//! # Why no job is left behind
//!
//! 1. For each wanted job there is a ready thread or the watcher, as the pool is not short or has a
//!    watcher (rules 2 and 3). If neither can be started, `submit` returns the job, unless another
//!    thread will take it.
//! 2. A ready thread cannot miss the job. Either the thread has yet to take the lock, and then
//!    checks the queues, or it waits and is notified. If the thread's wait timed out before the
//!    notification, the thread checks the queues before it ends (rule 5).
//! 3. A capped job without room waits for a busy thread, which checks the queues when its job ends
//!    (rule 6).
//! 4. A closed pool ends its threads only when they find no wanted job (rule 8), so the claims
//!    above hold for it too.
use crate::{Settings, settings::BeforePark};
use std::{
    collections::{BTreeMap, VecDeque},
    fmt, io,
    panic::{RefUnwindSafe, UnwindSafe},
    time::Duration,
};
use sync_shim::{
    panics::{contain, discard},
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};

/// A job for a [`Pool`]: a closure, or a type of your own. The pool catches a panic of the job, and
/// the thread continues with the next job.
pub trait Job: Send + 'static {
    /// Runs the job.
    fn run(self);
}

impl<F: FnOnce() + Send + 'static> Job for F {
    fn run(self) {
        self();
    }
}

/// A job for a pool of any closures.
pub type Boxed = Box<dyn FnOnce() + Send>;

/// A job that the pool did not accept.
pub struct Refused<J> {
    /// The job, as it was submitted.
    pub job: J,
    /// Why no thread could be started for the job. The error's kind is
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the thread's name contains a NUL. `None` if
    /// the pool is closed, or its cap is 0.
    pub why: Option<io::Error>,
}

/// A pool of threads that run blocking jobs.
///
/// This is a handle: its clones are handles to the same pool, and each thread of the pool has one.
/// A pool in a static is a [`StaticPool`].
pub struct Pool<J: 'static>(Handle<J>);

/// A pool that can be a static. Its threads start with the first job.
///
/// ```
/// use blocking_threads::{Settings, StaticPool};
/// use std::sync::mpsc;
///
/// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
/// static POOL: StaticPool<Box<dyn FnOnce() + Send>> = StaticPool::new(Settings::new());
///
/// # #[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))] {
/// let (sender, receiver) = mpsc::channel();
/// POOL.handle().submit(Box::new(move || sender.send(7).unwrap())).expect("the pool is open");
/// assert_eq!(receiver.recv(), Ok(7));
/// # }
/// ```
pub struct StaticPool<J>(Core<J>);

enum Handle<J: 'static> {
    Counted(Arc<Core<J>>),
    Static(&'static Core<J>),
}

/// The state that all handles of a pool share.
struct Core<J> {
    state: Mutex<State<J>>,
    /// Ready threads wait here for a job.
    work: Condvar,
    /// The watcher waits here between two checks.
    looks: Condvar,
    /// Callers of `wait` wait here for the last thread.
    ended: Condvar,
    settings: Settings,
}

pub(crate) struct State<J> {
    /// The cap. A cap of 0 still leaves room for one busy thread.
    cap: usize,
    /// Capped jobs.
    pub(crate) queue: VecDeque<J>,
    /// Urgent jobs.
    urgent: VecDeque<J>,
    /// Own jobs, by the number of the thread that each was submitted for.
    own: BTreeMap<u64, J>,
    /// Number of busy threads.
    busy: usize,
    /// Number of ready threads, the spinning one included.
    pub(crate) ready: usize,
    /// Whether there is a watcher. Its thread may not have begun yet.
    pub(crate) watched: bool,
    /// Number of capped jobs that threads took right after another job, since the watcher's last
    /// check.
    pub(crate) taken: usize,
    /// Number of threads that are to end as soon as they find no wanted job (rule 7).
    surplus: usize,
    /// 1 while a thread is spinning, else 0.
    spinning: usize,
    /// Number of all threads that have not yet run their last job and hook.
    alive: usize,
    /// Number of callers that wait for the last thread.
    waiters: usize,
    pub(crate) closed: bool,
    /// The handles of the threads that have not ended, by number.
    handles: BTreeMap<u64, thread::JoinHandle<()>>,
    /// How many threads were started so far. The next thread gets this number.
    number: u64,
    /// The handle of the thread that ended last, until it is joined (rule 10).
    last: Option<thread::JoinHandle<()>>,
}

/// The numbers of a pool's threads and queued jobs, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Number of threads, without those that run an urgent job or their own job.
    pub threads: usize,
    /// Number of threads without a job: the ready ones and the watcher.
    pub idle: usize,
    /// Number of queued jobs of [`submit`](Pool::submit).
    pub queue: usize,
}

impl<J> State<J> {
    /// Returns how many more threads may be busy. A cap of 0 counts as 1, for the jobs that were
    /// submitted before the cap was lowered.
    fn room(&self) -> usize {
        self.cap.max(1).saturating_sub(self.busy)
    }

    /// Returns the number of wanted jobs: those that a ready thread would take now.
    pub(crate) fn wanted(&self) -> usize {
        self.urgent.len() + self.queue.len().min(self.room())
    }

    fn has_news(&self) -> bool {
        self.wanted() > 0 || self.closed
    }

    /// Returns the number of threads, without the exempt ones.
    fn threads(&self) -> usize {
        self.busy + self.ready + usize::from(self.watched)
    }

    /// Takes the next job, and returns whether it is a capped one.
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

/// The purpose of a new thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// To run a job: its own, or the next of the queues.
    Job,
    /// To be the watcher.
    Watch,
}

impl<J> Core<J> {
    sync_shim::const_fn! {
        const fn new(settings: Settings) -> Self {
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
}

impl<J> StaticPool<J> {
    sync_shim::const_fn! {
        /// Creates a pool without threads: they are started when jobs come.
        ///
        /// A `const fn`, except under a model checker.
        pub const fn new(settings: Settings) -> Self {
            Self(Core::new(settings))
        }
    }

    /// Returns a handle to the pool, at no cost.
    pub fn handle(&'static self) -> Pool<J> {
        Pool(Handle::Static(&self.0))
    }
}

impl<J: 'static> Pool<J> {
    /// Creates a pool without threads: they are started when jobs come.
    pub fn new(settings: Settings) -> Self {
        Self(Handle::Counted(Arc::new(Core::new(settings))))
    }

    fn core(&self) -> &Core<J> {
        match &self.0 {
            Handle::Counted(core) => core,
            Handle::Static(core) => core,
        }
    }

    pub(crate) fn state(&self) -> &Mutex<State<J>> {
        &self.core().state
    }

    /// Returns the condition variable on which the watcher waits between two checks.
    pub(crate) fn looks(&self) -> &Condvar {
        &self.core().looks
    }

    /// Returns the number of handles to a pool that is not in a `static`.
    #[cfg(all(test, not(selvedge_loom)))]
    pub(crate) fn handles(&self) -> usize {
        match &self.0 {
            Handle::Counted(core) => Arc::strong_count(core),
            Handle::Static(_) => 0,
        }
    }
}

impl<J: Job> Pool<J> {
    /// Returns the settings that the pool was made with. [`cap`](Self::cap) may have changed since.
    pub fn settings(&self) -> &Settings {
        &self.core().settings
    }

    /// Queues a job behind the others.
    ///
    /// An idle thread takes the job, or a new thread, or the first thread that finishes its own
    /// job. At most [`cap`](Self::cap) such jobs run at a time. When [`Settings::eager`] threads or
    /// more are busy and none is idle, the pool starts another thread only after jobs have waited
    /// for [`Settings::grow_after`].
    ///
    /// # Errors
    /// Returns the job if the pool is closed, if its cap is 0, or if no thread will take the job
    /// and none can be started.
    pub fn submit(&self, job: J) -> Result<(), Refused<J>> {
        let mut state = self.state().lock();
        if state.closed || state.cap == 0 {
            return Err(Refused { job, why: None });
        }
        state.queue.push_back(job);
        match self.provide(&mut state) {
            // There are more threads than urgent jobs, so one of the threads will take this job.
            Err(why) if state.threads() > state.urgent.len() => {
                drop(state);
                contain(|| drop(why)); // Rule 9.
                Ok(())
            }
            provided => provided.or_else(|why| refused(state.queue.pop_back(), why)),
        }
    }

    /// Queues a job ahead of the others, and starts a thread called `name` if none is idle.
    ///
    /// The cap does not bound such jobs, and a closed pool still takes them. Use it for a job that
    /// replaces a thread which is about to block.
    ///
    /// # Errors
    /// Returns the job if no thread is idle and none can be started.
    pub fn submit_now(&self, job: J, name: &str) -> Result<(), Refused<J>> {
        let mut state = self.state().lock();
        state.urgent.push_back(job);
        if self.notify(&state) {
            return Ok(());
        }
        let added = self.add(&mut state, name);
        added.or_else(|why| refused(state.urgent.pop_back(), why))
    }

    /// Starts a thread called `name`, which runs this job first.
    ///
    /// The cap does not bound such jobs. Use it for a job that runs as long as the pool, such as a
    /// runtime's worker.
    ///
    /// # Errors
    /// Returns the job if the pool is closed, or if no thread can be started.
    pub fn start(&self, job: J, name: &str) -> Result<(), Refused<J>> {
        let mut state = self.state().lock();
        if state.closed {
            return Err(Refused { job, why: None });
        }
        let number = state.number;
        state.own.insert(number, job);
        let begun = self.begin(&mut state, name, Role::Job);
        begun.or_else(|why| refused(state.own.remove(&number), why))
    }

    /// Returns the most jobs of [`submit`](Self::submit) that run at a time.
    pub fn cap(&self) -> usize {
        self.state().lock().cap
    }

    /// Changes the [cap](Settings::cap).
    ///
    /// If the cap is raised, jobs that waited for room get threads, as if they were submitted now.
    /// If the cap is lowered, the threads above the new cap end as they finish their jobs; no job
    /// is interrupted. With a cap of 0 the pool refuses submissions. It still runs the jobs that
    /// were submitted before, one at a time.
    ///
    /// A thread that cannot be started is no error here: the pool tries to start one again when
    /// jobs have waited, or when another job comes.
    ///
    /// ```
    /// use blocking_threads::{Pool, Settings};
    /// use std::sync::{Arc, Barrier};
    ///
    /// let mut settings = Settings::new();
    /// settings.cap = 1;
    /// let pool = Pool::new(settings);
    /// let both = Arc::new(Barrier::new(2));
    /// for _ in 0..2 {
    ///     let both = both.clone();
    ///     pool.submit(move || drop(both.wait())).expect("the pool is open");
    /// }
    /// pool.set_cap(2); // Without this, the first job would wait forever.
    /// pool.finish();
    /// pool.join();
    /// ```
    pub fn set_cap(&self, cap: usize) {
        let mut state = self.state().lock();
        state.cap = cap;
        state.surplus = state.threads().saturating_sub(cap);
        let mut provided = Ok(());
        while provided.is_ok() && state.wanted() > state.ready && !state.watched {
            provided = self.provide(&mut state);
        }
        drop(state); // Unlocks first, as in `end`.
        self.core().work.notify_all();
        contain(|| drop(provided)); // Rule 9.
    }

    /// Notifies or starts a thread for a job that was queued or got room (rule 2).
    fn provide(&self, state: &mut State<J>) -> io::Result<()> {
        if self.notify(state) {
            return Ok(());
        }
        let settings = &self.core().settings;
        let is_few = state.busy + state.ready < settings.eager.max(1);
        if is_few || settings.grow_after.is_zero() {
            return self.add(state, &settings.name);
        }
        if !state.watched {
            self.begin(state, &settings.name, Role::Watch)?;
            state.watched = true;
        }
        Ok(())
    }

    /// Notifies a ready thread, unless the spinning one will find the job. Returns false if the
    /// pool is short.
    fn notify(&self, state: &State<J>) -> bool {
        let wanted = state.wanted();
        if state.ready < wanted {
            return false;
        }
        if wanted > state.spinning {
            self.core().work.notify_one();
        }
        true
    }

    /// Starts a ready thread.
    pub(crate) fn add(&self, state: &mut State<J>, name: &str) -> io::Result<()> {
        self.begin(state, name, Role::Job)?;
        state.ready += 1;
        Ok(())
    }

    /// Starts a thread.
    fn begin(&self, state: &mut State<J>, name: &str, role: Role) -> io::Result<()> {
        let (pool, number) = (self.clone(), state.number);
        let handle = self.thread(name, move || {
            if let Some(start) = &pool.settings().on_start {
                contain(|| start());
            }
            pool.work(number, role);
        })?;
        state.handles.insert(number, handle);
        state.number += 1;
        state.alive += 1;
        Ok(())
    }

    /// Starts a thread. A panic of [`Settings::spawn`], or of the drop of the closure that it did
    /// not run, becomes an error.
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
            // Dropped before the error exists: a panic of a later drop would leak the error.
            drop(run);
            let why = "a thread name must not contain a NUL";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let mut builder = thread::Builder::new().name(name.into());
        if let Some(bytes) = self.core().settings.stack_size {
            builder = builder.stack_size(bytes);
        }
        match &self.core().settings.spawn {
            Some(spawn) => spawn(builder, Box::new(run)),
            None => builder.spawn(run),
        }
    }

    /// Runs a thread of the pool: first its own job or the watch, then the jobs of the queues.
    fn work(&self, number: u64, role: Role) {
        let mut before_park: Option<Box<BeforePark>> = None;
        if let Some(make) = &self.core().settings.before_park {
            contain(|| before_park = Some(make()));
        }
        let mut state = self.state().lock();
        if role == Role::Watch {
            state = self.watch(state);
        } else if let Some(job) = state.own.remove(&number) {
            drop(state);
            contain(|| job.run());
            state = self.state().lock();
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
                state = self.state().lock();
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
                contain(|| before_park(&mut || self.state().lock().has_news()));
                state = self.state().lock();
                state.spinning = 0;
                if state.has_news() {
                    continue;
                }
            }
            let (now, timed_out) = self
                .core()
                .work
                .wait_timeout(state, self.core().settings.keep_alive);
            state = now;
            if timed_out && state.wanted() == 0 {
                break;
            }
        }
        state.ready -= 1;
        state.surplus = state.surplus.saturating_sub(1);
        if state.closed && state.watched {
            self.looks().notify_one(); // The watcher may have nothing left to watch.
        }
        drop(state);
        contain(|| drop(before_park));
        if let Some(stop) = &self.core().settings.on_stop {
            contain(|| stop());
        }
        let mut state = self.state().lock();
        let own = state.handles.remove(&number);
        let before = own.and_then(|own| state.last.replace(own));
        self.end(state);
        join(before);
    }

    /// Counts a thread as ended. Unlocks before it notifies the callers of `wait`, as a notified
    /// thread first takes the lock. Does not notify if none waits, as a notification costs a system
    /// call.
    fn end(&self, mut state: MutexGuard<'_, State<J>>) {
        state.alive -= 1;
        let notify = state.alive == 0 && state.waiters > 0;
        drop(state);
        if notify {
            self.core().ended.notify_all();
        }
    }

    /// Refuses jobs of [`submit`](Self::submit) and [`start`](Self::start) from now on, and returns
    /// the queued jobs of `submit`.
    ///
    /// The threads finish the jobs that they run, and run the queued jobs of
    /// [`submit_now`](Self::submit_now). Then the threads end.
    pub fn close(&self) -> Vec<J> {
        let mut state = self.state().lock();
        let left = std::mem::take(&mut state.queue);
        self.refuse(state);
        left.into()
    }

    /// Refuses jobs of [`submit`](Self::submit) and [`start`](Self::start) from now on. The threads
    /// run the queued jobs, then end.
    ///
    /// ```
    /// use blocking_threads::{Pool, Settings};
    /// use std::sync::mpsc;
    ///
    /// let pool = Pool::new(Settings::default());
    /// let (sender, ran) = mpsc::channel();
    /// pool.submit(move || sender.send(7).unwrap()).expect("the pool is open");
    /// pool.finish();
    /// pool.join();
    /// assert_eq!(ran.try_recv(), Ok(7));
    /// ```
    pub fn finish(&self) {
        self.refuse(self.state().lock());
    }

    fn refuse(&self, mut state: MutexGuard<'_, State<J>>) {
        state.closed = true;
        let (any_waits, is_watched) = (state.ready > 0, state.watched);
        drop(state); // Unlocks first, as in `end`.
        if any_waits {
            self.core().work.notify_all();
        }
        if is_watched {
            self.looks().notify_one();
        }
    }

    /// Waits until all threads have run their last job and hook, but at most for `limit`. Returns
    /// whether all threads have done so.
    ///
    /// Close the pool before the call: the threads of an open pool do not end. When this returns, a
    /// thread may still run the destructors of its thread-locals. A thread of the pool must not
    /// call this without a limit, as it would wait for itself.
    pub fn wait(&self, limit: Option<Duration>) -> bool {
        let deadline = limit.and_then(|limit| sync_shim::time::now().checked_add(limit));
        let mut state = self.state().lock();
        state.waiters += 1;
        while state.alive != 0 {
            let left =
                deadline.map(|deadline| deadline.saturating_duration_since(sync_shim::time::now()));
            state = match left {
                None => self.core().ended.wait(state),
                Some(Duration::ZERO) => break,
                Some(left) => self.core().ended.wait_timeout(state, left).0,
            };
        }
        state.waiters -= 1;
        state.alive == 0
    }

    /// Waits until all threads have ended, their thread-locals' destructors included.
    ///
    /// Like [`wait`](Self::wait) without a limit, but joins the threads. If two callers join at
    /// the same time, one may return before the last destructor has run. The destructors of
    /// thread-locals must not wait for a thread that calls `join`.
    ///
    /// # Panics
    /// If a thread of the pool calls this, it may panic or wait forever, as it would join itself.
    pub fn join(&self) {
        let next = || {
            let mut state = self.state().lock();
            let first = state.handles.pop_first().map(|(_, handle)| handle);
            first.or_else(|| state.last.take())
        };
        while let Some(thread) = next() {
            join(Some(thread));
        }
        self.wait(None); // Another caller may have taken the handles.
    }

    /// Returns the number of jobs that wait although a thread waits for a job: for the checks of a
    /// simulation, which ask while no thread can run.
    #[cfg(selvedge_sim)]
    #[doc(hidden)]
    pub fn count_unserved(&self) -> usize {
        let state = self.state().try_lock();
        state.map_or(0, |state| state.wanted().min(state.ready))
    }

    /// Returns the numbers of threads and queued jobs.
    pub fn counts(&self) -> Counts {
        let state = self.state().lock();
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
    // The panics of jobs and hooks were caught. Another one was printed: of a closure that
    // `Settings::spawn` put around the thread's main function, or of a thread-local's destructor.
    if let Some(Err(payload)) = thread.map(|thread| thread.join()) {
        discard(payload);
    }
}

// A panic of a job or a hook is caught. Neither a job nor a hook runs while the pool changes its
// counts.
impl<J> UnwindSafe for Pool<J> {}
impl<J> RefUnwindSafe for Pool<J> {}
impl<J> UnwindSafe for StaticPool<J> {}
impl<J> RefUnwindSafe for StaticPool<J> {}

impl<J> Clone for Pool<J> {
    fn clone(&self) -> Self {
        Self(match &self.0 {
            Handle::Counted(core) => Handle::Counted(core.clone()),
            Handle::Static(core) => Handle::Static(core),
        })
    }
}

impl<J> fmt::Debug for Pool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool")
            .field("settings", &self.core().settings)
            .finish_non_exhaustive()
    }
}

impl<J> fmt::Debug for StaticPool<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticPool")
            .field("settings", &self.0.settings)
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
            None => "the pool refused the job: it is closed, or its cap is 0",
            Some(_) => "the pool refused the job: no thread could be started",
        })
    }
}

impl<J> std::error::Error for Refused<J> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.why.as_ref().map(|why| why as _)
    }
}
