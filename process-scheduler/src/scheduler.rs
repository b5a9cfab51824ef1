//! The scheduler, and its builder: the start of the workers. `shutdown.rs` has their end.
use crate::{
    Handle, Info, Mailbox, Relay, ShutdownReport,
    guard::Guarded,
    handler::guarded_handler,
    shared::{Config, Shared},
    worker::{self, BoxPark, WorkerContext},
};
use queue_spmc::deque::Worker as Deque;
use std::{
    any::TypeId,
    fmt, io,
    ops::Deref,
    sync::{Arc, PoisonError},
    time::Duration,
};
use sync_shim::sim::thread::{self, JoinHandle};
use worker_idle::{
    Wait,
    park::{Park, ThreadPark},
};

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
    name: String,
    config: Config,
    relay: Option<Arc<dyn Relay>>,
    driver: Option<Box<MakeDriver>>,
    scope: Option<Arc<WorkerScope>>,
}

type MakeDriver = dyn Fn(usize) -> BoxPark + Send + Sync;

type WorkerScope = dyn Fn(usize, &mut dyn FnMut()) + Send + Sync;

impl Builder {
    fn new() -> Self {
        Self {
            workers: None,
            name: "process".to_owned(),
            config: Config::default(),
            relay: None,
            driver: None,
            scope: None,
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

    /// Sets how much processor time a worker may spend on looks for processes before it parks.
    /// [`Wait::Adaptive`] by default. The crate `worker-idle` has this type.
    ///
    /// A look that finds a process saves a park and its wake-up, and their latency. A look in vain
    /// costs processor time.
    ///
    /// | setting | a worker looks before a park |
    /// |---|---|
    /// | [`Wait::Adaptive`] | while looks find processes |
    /// | [`Wait::Latency`] | up to 50 µs before each park, whatever that costs |
    /// | [`Wait::Power`] | never |
    ///
    /// At most one worker looks at a time. A [driver](Self::driver) decides for itself how long it
    /// looks for events.
    ///
    /// ```
    /// use process_scheduler::{Scheduler, Wait};
    ///
    /// let scheduler = Scheduler::builder().wait(Wait::Power).build();
    /// let (sender, seen) = std::sync::mpsc::channel();
    /// let process = scheduler.spawn_fn(move |n: u8, _| sender.send(n).unwrap()).unwrap();
    /// process.try_send(7).unwrap();
    /// assert_eq!(seen.recv(), Ok(7));
    /// ```
    pub fn wait(mut self, wait: Wait) -> Self {
        self.config.backoff = self.config.backoff.with(wait);
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
    ///
    /// A machine that starts anew takes another number. With the same one, a pid that another node
    /// still has from the last start may name a new process.
    pub fn node(mut self, node: u32) -> Self {
        self.config.node = node;
        self
    }

    /// Sets a hook for the panics of processes: in `init`, in a step, in `close`, and in the
    /// closures from which a supervisor restarts a child. By default, a line on standard error
    /// names the process: its pid, its names, its type, its supervisor and the number of its
    /// restarts.
    ///
    /// The hook gets the state of the process and the text of the panic, or `a value that is not a
    /// string`. It runs on the thread of the process, which is usually a worker. The panic hook of
    /// std, which knows only the thread, runs before it, and prints a message of its own. A panic
    /// of this hook is dropped.
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
        self.config.on_panic = Guarded::new(Box::new(hook));
        self
    }

    /// Sets the relay for pids of other nodes. [`Handle::set_relay`](crate::Handle::set_relay) sets
    /// it later.
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
        self.config.handlers.insert(key, Box::new(handler));
        self
    }

    /// Sets a driver in which the workers wait, such as a poller of sockets. `build` calls `make`
    /// with the index of each worker, counted from 0.
    ///
    /// A worker that finds nothing to run parks in its driver, with a limit if it waits for a
    /// deadline. A busy worker polls its driver now and then. After a park and after a poll, the
    /// worker [delivers](Park::deliver) the collected events. The processes that a delivery wakes
    /// come to the worker's own queue. So a process awaits whatever the driver drives. A panic of
    /// the driver is dropped, and the worker goes on.
    ///
    /// A worker in a long step neither parks in its driver nor polls it. So a driver should have a
    /// way to be driven by the workers that sleep meanwhile, such as the standby of this example.
    ///
    /// A driver that its resources find by a thread-local needs a [`scope`](Self::scope), too. By
    /// default a worker waits in a [`ThreadPark`]. This crate exports the trait
    /// [`Park`] of `worker-idle`.
    ///
    /// ```
    /// use process_scheduler::{Inbox, Scheduler};
    /// use net_driver::{Driver, time};
    /// use std::time::Duration;
    ///
    /// let driver = Driver::new(2).with_standby();
    /// let parks = driver.clone();
    /// let scheduler = Scheduler::builder()
    ///     .workers(2)
    ///     .driver(move |worker| parks.park(worker))
    ///     .scope(move |worker, run| driver.scope(Some(worker), run))
    ///     .build();
    /// let sleeper = scheduler
    ///     .spawn_async(|_: Inbox<()>| time::sleep(Duration::from_millis(5)))
    ///     .unwrap();
    /// scheduler.wait(sleeper.pid());
    /// ```
    pub fn driver<P: Park + Send + 'static>(
        mut self,
        make: impl Fn(usize) -> P + Send + Sync + 'static,
    ) -> Self {
        self.driver = Some(Box::new(move |worker| Box::new(make(worker))));
        self.config.has_driver = true;
        self
    }

    /// Sets a function that each worker's thread calls with its index and the loop of the worker.
    /// The function must call the loop, once. It may set thread-locals around the call: see
    /// [`driver`](Self::driver).
    ///
    /// ```
    /// use process_scheduler::Scheduler;
    /// use std::cell::Cell;
    ///
    /// thread_local!(static WORKER: Cell<Option<usize>> = const { Cell::new(None) });
    ///
    /// let scheduler = Scheduler::builder()
    ///     .scope(|worker, run| {
    ///         WORKER.set(Some(worker));
    ///         run();
    ///     })
    ///     .build();
    /// let (sender, worker) = std::sync::mpsc::channel();
    /// let asks = scheduler.spawn_fn(move |(), _| sender.send(WORKER.get()).unwrap()).unwrap();
    /// asks.try_send(()).unwrap();
    /// assert!(worker.recv().unwrap().is_some());
    /// ```
    pub fn scope(
        mut self,
        scope: impl Fn(usize, &mut dyn FnMut()) + Send + Sync + 'static,
    ) -> Self {
        self.scope = Some(Arc::new(scope));
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
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.workers.unwrap_or_else(processors);
        let deques: Vec<_> = (0..workers).map(|_| Deque::new()).collect();
        let park = |worker| match &self.driver {
            Some(make) => make(worker),
            None => Box::new(ThreadPark::new()),
        };
        let parks: Vec<_> = (0..workers).map(park).collect();
        let stealers = deques.iter().map(Deque::stealer).collect();
        let wakers = parks.iter().map(Park::waker).collect();
        let shared = Arc::new(Shared::new(self.config, stealers, wakers));
        if let Some(relay) = self.relay {
            *shared.relay.write().unwrap_or_else(PoisonError::into_inner) = Some(relay);
        }
        #[cfg(selvedge_sim)]
        sync_shim::sim::watch(&shared);
        let mut scheduler = Scheduler {
            handle: Handle {
                shared: shared.clone(),
            },
            threads: Vec::new(),
        };
        for (index, (deque, park)) in deques.into_iter().zip(parks).enumerate() {
            let context = WorkerContext::new(shared.clone(), index, deque);
            let thread = thread::Builder::new().name(format!("{}-{index}", self.name));
            let scope = self.scope.clone();
            let thread = thread.spawn(move || {
                let mut worker = Some((context, park));
                let mut run = || {
                    if let Some((context, park)) = worker.take() {
                        worker::run(context, park);
                    }
                };
                match scope {
                    Some(scope) => scope(index, &mut run),
                    None => run(),
                }
                assert!(
                    worker.is_none(),
                    "the scope of worker {index} did not call its argument"
                );
            })?;
            scheduler.threads.push(thread);
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

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
