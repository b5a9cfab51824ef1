//! The scheduler and its builder: the state that all workers share, and their start and end.
//!
//! # Shutdown
//!
//! 1. The registry is closed: either a new process is in the registry by then, or its spawn is
//!    refused.
//! 2. All processes get a cancel. The workers continue, so that processes can clean up with
//!    commands, messages and timers.
//! 3. At the deadline, all processes that are left get a final kill, which acts between their
//!    steps.
//! 4. The shutdown waits for 100 ms after the kills. It waits longer, for at most 10 seconds, while
//!    a process is left that is not in a step, and a worker is free to end it. The processes that
//!    are left then are *stuck*. Then the workers stop: once it is in no step, each ends the
//!    processes that are left in the queues (rule 6 of `worker.rs`): these are stuck only because
//!    no worker was free. The shutdown joins the threads of the workers one after the other. If
//!    processes are stuck, it waits for each thread for 100 ms. A thread that is still in a step
//!    then, or still ends processes, is leaked.
//! 5. A shutdown on a worker leaves rules 3 and 4 to a thread. If the system refuses that thread,
//!    no thread waits for the deadline. So all processes that are left get their final kill at
//!    once, the last end stops the workers, and nobody joins the workers. Workers that stopped
//!    before the last end would leave processes that never end.
use crate::{
    CancelReason, ExitReason, Handle, Info, Mailbox, Pid, Relay, Signal,
    cell::AnyCell,
    group::Group,
    guard::{Guarded, guarded},
    handler::guarded_handler,
    metrics::Counters,
    registry::Registry,
    remote::RemoteTable,
    timer::Timer,
    worker::{self, Runnable, Work},
};
use queue_global::ValueInjector;
use queue_spmc::{
    Steal,
    deque::{Stealer, Worker},
};
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    fmt,
    io::{self, Write},
    ops::Deref,
    sync::Arc,
    task::Waker,
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
    count,
    sync::{Condvar, Mutex},
};
use worker_idle::{
    Idle,
    park::{Park, ThreadPark},
};

/// How long a forced shutdown waits for the steps that run.
const GRACE: Duration = Duration::from_millis(100);
/// How long a forced shutdown waits at most while workers are free (rule 4).
const FREE_LIMIT: Duration = Duration::from_secs(10);

/// Gets each panic of a process: see [`Builder::on_panic`].
type PanicHook = dyn Fn(&Info, &str) + Send + Sync;

pub(crate) struct Config {
    pub(crate) step_budget: u32,
    pub(crate) messages: u32,
    pub(crate) mailbox: Mailbox,
    max_processes: usize,
    shutdown_timeout: Duration,
}

pub(crate) struct Shared {
    pub(crate) injector: ValueInjector<Runnable>,
    pub(crate) stealers: Vec<Stealer<Runnable>>,
    pub(crate) idle: Idle,
    wakers: Vec<Waker>,
    pub(crate) stop: AtomicBool,
    pub(crate) registry: Registry,
    pub(crate) counters: Counters,
    pub(crate) config: Config,
    pub(crate) timer: Timer,
    pub(crate) names: Mutex<HashMap<String, Pid>>,
    pub(crate) groups: Mutex<HashMap<String, Group>>,
    pub(crate) relay: Option<Arc<dyn Relay>>,
    pub(crate) remote: RemoteTable,
    pub(crate) handlers: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    on_panic: Guarded<Box<PanicHook>>,
    /// `begun` counts the spawns. `gone` counts the processes that have ended for good, and the
    /// spawns that were refused. There are two counts, so that a thread that spawns processes and
    /// a thread that ends processes write to different cache lines. The counts have 64 bits on each
    /// target, so they do not wrap.
    begun: CachePadded<AtomicU64>,
    gone: CachePadded<AtomicU64>,
    is_closed: AtomicBool,
    /// True if the last end must stop the workers (rule 5 of the shutdown).
    is_unattended: AtomicBool,
    ended: Mutex<()>,
    all_ended: Condvar,
}

impl Shared {
    /// Wakes a worker for a process that was pushed, if a worker sleeps and none searches.
    pub(crate) fn notify(&self) {
        if let Some(worker) = self.idle.notify() {
            self.wakers[worker].wake_by_ref();
        }
    }

    /// Returns whether a queue has a process that a thief takes at once: see rule 4 of
    /// `worker.rs`.
    pub(crate) fn has_shared(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|stealer| stealer.len() > 1)
    }

    /// Returns whether any queue has a process.
    pub(crate) fn has_ready(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|stealer| !stealer.is_empty())
    }

    /// Takes a process that is left in a queue after the stop (rule 6 of `worker.rs`).
    pub(crate) fn take_left(&self) -> Option<Runnable> {
        // Ordering: Acquire pairs with `stop_workers`: a worker that sees the stop sees the
        // processes that were queued before it, also those that the shutdown has killed.
        if !self.stop.load(Acquire) {
            return None;
        }
        let left = self.injector.pop();
        left.or_else(|| self.stealers.iter().find_map(steal_one))
    }

    pub(crate) fn live(&self) -> usize {
        // Ordering: Acquire pairs with `ended`: a thread that counts an end sees the writes before
        // that end. A shutdown that leaks a stuck thread has no join that would order this.
        let gone = self.gone.load(Acquire);
        // Ordering: Relaxed. The begin of each process came before its end, so this load sees the
        // begins of all ends in `gone`. Later begins count as live, so the result is zero only if
        // nothing was live.
        self.begun.load(Relaxed).wrapping_sub(gone) as usize
    }

    /// Calls the hook for a panic of a process.
    pub(crate) fn report_panic(&self, process: &Info, text: &str) {
        guarded(|| (self.on_panic)(process, text));
    }

    /// Returns the number of spawns, including those that were refused.
    pub(crate) fn begun(&self) -> u64 {
        // Ordering: Relaxed, as the other counters.
        self.begun.load(Relaxed)
    }

    /// Counts a new process. False if there are too many.
    pub(crate) fn begin(&self) -> bool {
        // Ordering: Relaxed, the count guards nothing else.
        let before = self.begun.fetch_add(1, Relaxed);
        let most = self.config.max_processes as u64;
        // Ordering: Relaxed: a spawn that misses an end is refused.
        if before < most || before.saturating_sub(self.gone.load(Relaxed)) < most {
            return true;
        }
        self.ended();
        false
    }

    /// Counts an end.
    pub(crate) fn ended(&self) {
        // Ordering: Release pairs with `live`: the thread that waits for all ends sees what came
        // before each end. Acquire pairs with `stop_after_the_last_end`: the loads below then see
        // the close and `is_unattended`.
        self.gone.fetch_add(1, AcqRel);
        if self.is_closed() && self.live() == 0 {
            let guard = self.ended.lock();
            self.all_ended.notify_all();
            drop(guard);
            // Ordering: Relaxed, as the read-modify-write above orders this load.
            if self.is_unattended.load(Relaxed) {
                self.stop_unattended();
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Relaxed. `close` locks each shard of the registry after its store. A thread may
        // lock a shard and then load this flag. Either the thread sees the store, or `close` locks
        // that shard later and sees what the thread did before. An end that misses the store
        // notifies nobody, so `wait_for_all` looks again soon.
        self.is_closed.load(Relaxed)
    }

    /// Waits until no process is left, or until the deadline.
    fn wait_for_all(&self, deadline: Option<Instant>) {
        let mut guard = self.ended.lock();
        while self.live() > 0 {
            // A last end that came just before the close notified nobody: so this looks from time
            // to time.
            let look = Duration::from_millis(20);
            let left = deadline.map_or(look, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return;
            }
            guard = self.all_ended.wait_timeout(guard, left.min(look)).0;
        }
    }
}

/// Writes the panic of a process to standard error, in one line.
fn write_panic(process: &Info, text: &str) {
    // A program without a standard error goes on.
    let _ = writeln!(io::stderr().lock(), "{}", panic_line(process, text));
}

fn panic_line(process: &Info, text: &str) -> String {
    let mut line = format!("process {}", process.pid);
    for name in &process.names {
        line += &format!(" {name:?}");
    }
    line += &format!(" ({}", process.kind);
    if let Some(supervisor) = process.supervisor {
        line += &format!(", child of {supervisor}, {} restarts", process.restarts);
    }
    line + ") panicked: " + text
}

/// Steals the oldest process of a deque, unless the deque is empty.
fn steal_one(stealer: &Stealer<Runnable>) -> Option<Runnable> {
    loop {
        match stealer.steal() {
            Steal::Success { first, .. } => return Some(first),
            Steal::Empty => return None,
            // Another thread takes a process.
            Steal::Retry => sync_shim::thread::yield_now(),
        }
    }
}

/// Settings of a [`Scheduler`]. See [`Scheduler::builder`].
///
/// ```
/// use process_scheduler::{Mailbox, Scheduler};
/// use std::time::Duration;
///
/// let scheduler = Scheduler::builder()
///     .workers(2)
///     .max_processes(1_000_000)
///     .mailbox(Mailbox::Bounded(10_000))
///     .step_budget(16)
///     .messages(64)
///     .shutdown_timeout(Duration::from_secs(1))
///     .name("accounts")
///     .build();
/// assert_eq!(scheduler.metrics().workers, 2);
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct Builder {
    workers: Option<usize>,
    config: Config,
    name: String,
    node: u32,
    relay: Option<Arc<dyn Relay>>,
    handlers: HashMap<TypeId, Box<dyn Any + Send + Sync>>,
    on_panic: Box<PanicHook>,
}

impl Builder {
    fn new() -> Self {
        Self {
            workers: None,
            config: Config {
                step_budget: 32,
                messages: 128,
                mailbox: Mailbox::Unbounded,
                max_processes: usize::MAX,
                shutdown_timeout: Duration::from_secs(5),
            },
            name: "process".to_owned(),
            node: 0,
            relay: None,
            handlers: HashMap::new(),
            on_panic: Box::new(write_panic),
        }
    }

    /// Sets the number of workers, at least one. By default, as many as processors.
    pub fn workers(mut self, workers: usize) -> Self {
        self.workers = Some(workers.max(1));
        self
    }

    /// Sets how many processes may live at a time. By default, as many as the registry has slots.
    pub fn max_processes(mut self, processes: usize) -> Self {
        self.config.max_processes = processes;
        self
    }

    /// Sets the mailbox of processes that are spawned without one. Unbounded by default.
    pub fn mailbox(mut self, mailbox: Mailbox) -> Self {
        self.config.mailbox = mailbox;
        self
    }

    /// Sets how many steps a process makes in a row while others wait: 32 by default, at least one,
    /// and at most 61.
    pub fn step_budget(mut self, steps: u32) -> Self {
        self.config.step_budget = steps.clamp(1, 61);
        self
    }

    /// Sets how many messages a step gets: 128 by default, at least one.
    pub fn messages(mut self, messages: u32) -> Self {
        self.config.messages = messages.max(1);
        self
    }

    /// Sets how long a shutdown lets processes clean up: 5 seconds by default.
    pub fn shutdown_timeout(mut self, limit: Duration) -> Self {
        self.config.shutdown_timeout = limit;
        self
    }

    /// Sets the name of the worker threads.
    ///
    /// # Panics
    /// If `name` contains a NUL character: the name of a thread cannot contain one.
    #[track_caller]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        assert!(
            !self.name.contains('\0'),
            "a thread's name may not contain a NUL character: {:?}",
            self.name
        );
        self
    }

    /// Sets the number of this node, which is in the pids of all its processes: 0 by default.
    pub fn node(mut self, node: u32) -> Self {
        self.node = node;
        self
    }

    /// Sets a hook for the panics of processes: in `init`, in a step, in `close`, and in the
    /// closures from which a supervisor restarts a child. By default, a line on standard error
    /// names the process: its pid, its names, its type, its supervisor and the number of its
    /// restarts.
    ///
    /// The hook gets the state of the process and the text of the panic, or `a value that is not a
    /// string`. It runs on the thread of the process, which is usually a worker, after the panic
    /// hook of std. That hook knows only the thread, and prints before. A panic of the hook is
    /// dropped.
    ///
    /// ```
    /// use process_scheduler::{Scheduler, Spawn};
    ///
    /// let (sender, panics) = std::sync::mpsc::channel();
    /// let scheduler = Scheduler::builder()
    ///     .on_panic(move |process, text| drop(sender.send((process.names.clone(), text.to_owned()))))
    ///     .build();
    /// let spawn = Spawn::new().name("clerk");
    /// let clerk = scheduler.spawn_with(spawn, |n: u32, _| assert!(n > 0, "no number")).unwrap();
    /// clerk.try_send(0).unwrap();
    /// assert_eq!(panics.recv().unwrap(), (vec!["clerk".to_owned()], "no number".to_owned()));
    /// ```
    pub fn on_panic(mut self, hook: impl Fn(&Info, &str) + Send + Sync + 'static) -> Self {
        self.on_panic = Box::new(hook);
        self
    }

    /// Sets the relay for pids of other nodes.
    pub fn relay(mut self, relay: impl Relay) -> Self {
        self.relay = Some(Arc::new(Guarded::new(relay)));
        self
    }

    /// Sets the handler of all processes whose commands, outputs and errors have these types.
    /// A process that is spawned with a handler of its own keeps that one.
    ///
    /// ```
    /// use process_scheduler::{Completer, Scheduler};
    ///
    /// let scheduler = Scheduler::builder()
    ///     .handler(|path: String, completer: Completer<usize, ()>| {
    ///         drop(completer.complete(Ok(path.len())));
    ///     })
    ///     .build();
    /// # drop(scheduler);
    /// ```
    pub fn handler<C, O, E>(mut self, handler: impl crate::Handler<C, O, E>) -> Self
    where
        C: 'static,
        O: 'static,
        E: 'static,
    {
        let handler = guarded_handler(handler);
        let key = TypeId::of::<(C, O, E)>();
        self.handlers.insert(key, Box::new(handler));
        self
    }

    /// Starts the workers.
    ///
    /// # Panics
    /// If a thread cannot be spawned: see [`try_build`](Self::try_build).
    pub fn build(self) -> Scheduler {
        self.try_build().expect("a worker's thread can be spawned")
    }

    /// Starts the workers.
    ///
    /// ```
    /// let scheduler = process_scheduler::Scheduler::builder().try_build()?;
    /// # drop(scheduler);
    /// # Ok::<_, std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a thread cannot be spawned.
    pub fn try_build(self) -> io::Result<Scheduler> {
        let processors = || thread::available_parallelism().map_or(1, usize::from);
        let workers = self.workers.unwrap_or_else(processors);
        let deques: Vec<_> = (0..workers).map(|_| Worker::new()).collect();
        let parks: Vec<_> = (0..workers).map(|_| ThreadPark::new()).collect();
        let shared = Arc::new(Shared {
            injector: ValueInjector::new(),
            stealers: deques.iter().map(Worker::stealer).collect(),
            idle: Idle::new(workers),
            wakers: parks.iter().map(Park::waker).collect(),
            stop: AtomicBool::new(false),
            registry: Registry::new(self.node),
            counters: Counters::new(workers),
            config: self.config,
            timer: Timer::new(),
            names: Mutex::new(HashMap::new()),
            groups: Mutex::new(HashMap::new()),
            relay: self.relay,
            remote: RemoteTable::new(),
            handlers: self.handlers,
            on_panic: Guarded::new(self.on_panic),
            begun: CachePadded::new(count::shared(AtomicU64::new(0))),
            gone: CachePadded::new(count::shared(AtomicU64::new(0))),
            is_closed: AtomicBool::new(false),
            is_unattended: AtomicBool::new(false),
            ended: Mutex::new(()),
            all_ended: Condvar::new(),
        });
        let mut scheduler = Scheduler {
            handle: Handle {
                shared: shared.clone(),
            },
            threads: Vec::new(),
        };
        for (index, (deque, park)) in deques.into_iter().zip(parks).enumerate() {
            let work = Work::new(shared.clone(), index, park);
            let thread = thread::Builder::new().name(format!("{}-{index}", self.name));
            scheduler
                .threads
                .push(thread.spawn(move || work.run(deque))?);
        }
        Ok(scheduler)
    }
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

/// The outcome of a shutdown: how the processes that it found have ended.
///
/// ```
/// use process_scheduler::{Scheduler, ShutdownReport};
///
/// let scheduler = Scheduler::new();
/// let _idle = scheduler.spawn_fn(|_: u8, _| ()).unwrap();
/// let report = scheduler.shutdown();
/// assert_eq!((report.graceful, report.forced, report.stuck), (1, 0, 0));
/// # let _: ShutdownReport = report;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShutdownReport {
    /// Processes that ended before the deadline.
    pub graceful: usize,
    /// Processes that the kill at the deadline has ended.
    pub forced: usize,
    /// Processes that are left, because a step did not return or no worker was free to end them.
    /// The threads of these steps are leaked, and so is a thread that still ends processes 100 ms
    /// after the stop. When such a step returns, its thread ends the processes that are left and
    /// are in no step.
    pub stuck: usize,
}

/// A scheduler of processes, with its worker threads.
///
/// A scheduler derefs to its [`Handle`], which has most of the methods. The drop of a scheduler is
/// a [`shutdown`](Self::shutdown).
///
/// ```
/// use process_scheduler::Scheduler;
///
/// let scheduler = Scheduler::new();
/// let greeter = scheduler.spawn_fn(|name: &str, _| println!("Hello, {name}!")).unwrap();
/// greeter.try_send("world").unwrap();
/// scheduler.shutdown();
/// ```
pub struct Scheduler {
    handle: Handle,
    threads: Vec<JoinHandle<()>>,
}

impl Scheduler {
    /// Starts a scheduler with as many workers as processors.
    ///
    /// # Panics
    /// If a thread cannot be spawned.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Cancels all processes, and waits until they have ended, but at most for
    /// [`Builder::shutdown_timeout`]. Then kills the processes that are left.
    ///
    /// On a worker of this scheduler the call waits for nothing, and its report has only zeros: it
    /// cancels all processes and leaves the rest to a thread. If the system refuses that thread,
    /// the call kills all processes at once.
    pub fn shutdown(self) -> ShutdownReport {
        let limit = self.handle.shared.config.shutdown_timeout;
        self.shutdown_timeout(limit)
    }

    /// Shuts down as [`shutdown`](Self::shutdown) does, with another limit.
    ///
    /// ```
    /// use process_scheduler::{Flow, Scheduler};
    /// use std::time::Duration;
    ///
    /// let scheduler = Scheduler::new();
    /// let report = scheduler.shutdown_timeout(Duration::from_millis(10));
    /// assert_eq!(report.graceful, 0);
    /// ```
    pub fn shutdown_timeout(mut self, limit: Duration) -> ShutdownReport {
        self.end(limit)
    }

    fn end(&mut self, limit: Duration) -> ShutdownReport {
        self.end_on(limit, |end| {
            let thread = thread::Builder::new().name("process-shutdown".to_owned());
            thread.spawn(end).map(drop)
        })
    }

    /// Ends the scheduler. On one of its workers, `spawn` starts the thread that ends it.
    fn end_on(
        &mut self,
        limit: Duration,
        spawn: impl FnOnce(Box<dyn FnOnce() + Send>) -> io::Result<()>,
    ) -> ShutdownReport {
        let threads = std::mem::take(&mut self.threads);
        let shared = self.handle.shared.clone();
        let Some(found) = shared.close() else {
            return ShutdownReport::default();
        };
        if worker::index_in(&shared).is_some() {
            let on_thread = shared.clone();
            let end = move || {
                on_thread.end(threads, found, limit);
            };
            if spawn(Box::new(end)).is_err() {
                shared.end_without_a_thread();
            }
            return ShutdownReport::default();
        }
        shared.end(threads, found, limit)
    }
}

impl Shared {
    /// Refuses spawns, and cancels all processes. Returns the number of processes, or `None` if the
    /// scheduler was closed before.
    pub(crate) fn close(&self) -> Option<usize> {
        // Ordering: Relaxed: one caller gets `false`. The locks of the registry pair with those of
        // a process that stops: see `is_closed`.
        if self.is_closed.swap(true, Relaxed) {
            return None;
        }
        self.registry.close();
        let all = self.registry.all();
        for cell in &all {
            // A process that has just ended needs no cancel.
            drop(cell.signal(Signal::Cancel(CancelReason::Shutdown)));
            if cell.info().phase == crate::Phase::Stopped {
                cell.kill(ExitReason::Killed, true);
            }
        }
        Some(all.len())
    }

    /// Waits while a process is left that is not in a step, and a worker is free to end it. On a
    /// busy machine this may take long, so the wait ends after `FREE_LIMIT`.
    fn wait_for_free_workers(&self) {
        let limit = Instant::now() + FREE_LIMIT;
        while self.live() > 0 && Instant::now() < limit {
            let left = self.registry.all();
            let runs = |cell: &&Arc<dyn AnyCell>| cell.info().phase == crate::Phase::Running;
            let running = left.iter().filter(runs).count();
            if running == left.len() || running >= self.stealers.len() {
                return;
            }
            drop(left);
            self.wait_for_all(Instant::now().checked_add(Duration::from_millis(20)));
        }
    }

    fn end(&self, threads: Vec<JoinHandle<()>>, found: usize, limit: Duration) -> ShutdownReport {
        self.wait_for_all(Instant::now().checked_add(limit));
        let left = self.live();
        if left > 0 {
            for cell in self.registry.all() {
                cell.kill(ExitReason::Killed, true);
            }
            self.wait_for_all(Instant::now().checked_add(GRACE));
            self.wait_for_free_workers();
        }
        let stuck = self.live();
        self.stop_workers();
        for thread in threads {
            // Only stuck processes keep a thread from ending: it is in a step, or it ends those
            // that are left. After the deadline it is leaked (rule 4).
            let deadline = Instant::now() + GRACE;
            while stuck > 0 && !thread.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(1));
            }
            if stuck == 0 || thread.is_finished() {
                drop(thread.join());
            }
        }
        self.timer.stop();
        ShutdownReport {
            graceful: found.saturating_sub(left),
            forced: left.saturating_sub(stuck),
            stuck,
        }
    }
}

impl Shared {
    fn stop_workers(&self) {
        // Ordering: Release pairs with `take_left`. The token of the unpark publishes the flag to a
        // worker that parks.
        self.stop.store(true, Release);
        self.wakers.iter().for_each(Waker::wake_by_ref);
    }

    /// Ends a shutdown that has begun on a worker, and has no thread of its own (rule 5).
    fn end_without_a_thread(&self) {
        for cell in self.registry.all() {
            cell.kill(ExitReason::Killed, true);
        }
        self.stop_after_the_last_end();
    }

    /// Stops the workers and the timer after the last end (rule 5).
    fn stop_after_the_last_end(&self) {
        // Ordering: Relaxed, as the next operation publishes the flag.
        self.is_unattended.store(true, Relaxed);
        // Ordering: Release pairs with the read-modify-write of `ended`: of the two, the later one
        // reads the earlier one. So the last end sees the flags, or the load of `live` below sees
        // the last end.
        self.gone.fetch_add(0, Release);
        if self.live() == 0 {
            self.stop_unattended();
        }
    }

    fn stop_unattended(&self) {
        self.stop_workers();
        self.timer.stop();
    }
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}

impl Deref for Scheduler {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        let limit = self.handle.shared.config.shutdown_timeout;
        self.end(limit);
    }
}

impl fmt::Debug for Scheduler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scheduler")
            .field("workers", &self.threads.len())
            .field("processes", &self.handle.shared.live())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
pub(crate) mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
