//! How a runtime is put together.
mod names;

use crate::{
    Runtime, UnhandledPanic, Worker,
    attributes::Attributes,
    blocking::{self, Pool},
    core::Core,
    driver::{MakeDriver, Parker},
    extensions::Extensions,
    hooks::Hooks,
    metrics::Counters,
    park::{self, Park},
    scope,
    shared::{Remote, Settings, Shared},
};
use blocking_threads::Lent;
use coop_budget::Budget;
use std::{any::Any, fmt, io, task::Waker, time::Duration};
use sync_shim::{CachePadded, sync::Arc};
use task_header::Id;
use worker_idle::Backoff;
use worker_queue::WorkerQueue;

/// Settings of a [`Runtime`].
///
/// ```
/// let runtime = selvedge::Builder::new().workers(2).thread_name("crunch").build()?;
/// let name = runtime.spawn(async { std::thread::current().name().unwrap().to_owned() });
/// assert!(runtime.block_on(name).unwrap().starts_with("crunch-"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing before `build`"]
pub struct Builder {
    workers: Option<usize>,
    prestart: bool,
    ring_capacity: usize,
    settings: Settings,
    threads: blocking_threads::Settings,
    hooks: Hooks,
    driver: Option<MakeDriver>,
    extensions: Extensions,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("prestart", &self.prestart)
            .field("ring_capacity", &self.ring_capacity)
            .field("settings", &self.settings)
            .field("threads", &self.threads)
            .field("extensions", &self.extensions)
            .finish_non_exhaustive()
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            workers: None,
            prestart: false,
            ring_capacity: 256,
            settings: Settings {
                global_interval: 61,
                lifo: true,
                budget: Budget::DEFAULT,
                seed: 0x9e37_79b9_7f4a_7c15,
                special_spawns: false,
                observed: false,
                poll_times: false,
                has_drivers: false,
                busy_time: false,
                linger: Backoff::new(),
                thread_name: "selvedge".into(),
            },
            threads: blocking_threads::Settings::default(),
            hooks: Hooks::default(),
            driver: None,
            extensions: Extensions::default(),
        }
    }

    /// Worker threads; by default what the environment's `SELVEDGE_WORKERS` says, or else as many
    /// as the machine has processors for this process.
    ///
    /// # Panics
    /// When `workers` is 0, or above 65,535.
    #[track_caller]
    pub fn workers(mut self, workers: usize) -> Self {
        assert!(
            (1..=MOST_WORKERS).contains(&workers),
            "a runtime has from 1 to {MOST_WORKERS} workers, not {workers}"
        );
        self.workers = Some(workers);
        self
    }

    /// The build starts the threads of all workers, as it does with a [hook for starts](Self::on_thread_start). By default it starts one, and each of the others is started by the first push that finds nobody
    /// else to wake: a runtime for a few tasks is cheaper so. Where such a thread can't be started the worker is given up
    /// ([`WorkerSnapshot::refused`](crate::WorkerSnapshot::refused)), and all that have no thread by then are tried.
    ///
    /// The thread that pushes, which may be any, starts it. On Linux each thread of the runtime
    /// first takes the signal mask, the processors, the scheduling policy and the niceness of the
    /// thread that called `build`, as far as the system lets it: it may take a privilege to raise a
    /// priority again. What else a thread inherits it has from the thread that pushes: seccomp
    /// filters, namespaces, credentials of a single thread. If any of your threads is confined by
    /// such means and wakes tasks, have all workers start at once.
    ///
    /// ```
    /// let (sender, stopped) = std::sync::mpsc::channel();
    /// let hook = move || drop(sender.send(()));
    /// drop(selvedge::Builder::new().workers(3).prestart().on_thread_stop(hook).build()?);
    /// assert_eq!(stopped.try_iter().count(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn prestart(mut self) -> Self {
        self.prestart = true;
        self
    }

    /// What the threads' names begin with.
    ///
    /// # Panics
    /// When `name` holds a NUL, which no thread's name can.
    #[track_caller]
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        assert!(
            !name.contains('\0'),
            "a thread's name has no NUL character, but this one: {name:?}"
        );
        self.settings.thread_name = name;
        self
    }

    /// Bytes of each thread's stack. By default what [`std::thread`] gives.
    ///
    /// ```
    /// fn deep(left: u32) -> u32 {
    ///     let page = std::hint::black_box([1_u8; 4096]);
    ///     if left == 0 { 0 } else { deep(left - 1) + u32::from(page[0]) }
    /// }
    ///
    /// // Four megabytes: too many for a thread of std's default.
    /// let runtime = selvedge::Builder::new().workers(1).stack_size(64 << 20).build()?;
    /// assert_eq!(runtime.block_on(runtime.spawn(async { deep(1_000) })).unwrap(), 1_000);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.threads.stack_size = Some(bytes);
        self
    }

    /// Tasks that a worker's ring holds before half of them move to the injector. 256 by default.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().workers(1).ring_capacity(4).build()?;
    /// let parent = runtime.spawn(async { (0..10).for_each(|_| selvedge::spawn_detached(async {})) });
    /// runtime.block_on(parent).unwrap();
    /// assert!(runtime.metrics().overflows > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// When `capacity` is no power of two, below 2, or above 2³¹.
    #[track_caller]
    pub fn ring_capacity(mut self, capacity: usize) -> Self {
        assert!(
            capacity.is_power_of_two() && (2..=1 << 31).contains(&capacity),
            "a ring's capacity is a power of two from 2 to 2^31, not {capacity}"
        );
        self.ring_capacity = capacity;
        self
    }

    /// A worker looks at the injector at every so many ticks, even if it has tasks of its own. 61 by default.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().workers(1).global_interval(3).build()?;
    /// let busy = runtime.spawn(async {
    ///     let (sender, receiver) = std::sync::mpsc::channel();
    ///     let handle = selvedge::Handle::current();
    ///     let outside = move || handle.spawn_detached(async move { sender.send(()).unwrap() });
    ///     std::thread::spawn(outside).join().unwrap();
    ///     let mut turns = 0;
    ///     while receiver.try_recv().is_err() {
    ///         turns += 1;
    ///         selvedge::yield_now().await;
    ///     }
    ///     turns
    /// });
    /// assert!(runtime.block_on(busy).unwrap() <= 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// When `ticks` is 0.
    #[track_caller]
    pub fn global_interval(mut self, ticks: u32) -> Self {
        assert!(ticks > 0, "the global interval is at least 1 tick, not 0");
        self.settings.global_interval = ticks;
        self
    }

    /// Whether the task that was woken or spawned last runs next, ahead of its worker's others, at most three times in a row. It does by default.
    ///
    /// ```
    /// let order = |lifo| {
    ///     let runtime = selvedge::Builder::new().workers(1).lifo_slot(lifo).build()?;
    ///     let (sender, receiver) = std::sync::mpsc::channel();
    ///     runtime.spawn_detached(async move {
    ///         for n in 1..=5 {
    ///             let sender = sender.clone();
    ///             selvedge::spawn_detached(async move { sender.send(n).unwrap() });
    ///         }
    ///     });
    ///     std::io::Result::Ok(receiver.iter().collect::<Vec<_>>())
    /// };
    /// assert_eq!(order(true)?, [5, 1, 2, 3, 4]);
    /// assert_eq!(order(false)?, [1, 2, 3, 4, 5]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn lifo_slot(mut self, on: bool) -> Self {
        self.settings.lifo = on;
        self
    }

    /// The most blocking closures at a time, each in a thread. 512 by default.
    ///
    /// Up to four threads are started at once for closures that find no idle one. The others are
    /// started once closures have waited for a millisecond, so that a burst of short ones starts
    /// few.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().workers(1).blocking_threads(1).build()?;
    /// let here = || runtime.spawn_blocking(|| std::thread::current().id());
    /// let (one, other) = (here(), here());
    /// assert_eq!(runtime.block_on(one).unwrap(), runtime.block_on(other).unwrap());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// When `threads` is 0.
    #[track_caller]
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        assert!(
            threads > 0,
            "the threads for closures that block are at least 1, not 0"
        );
        self.threads.cap = threads;
        self
    }

    /// How long a thread for blocking closures waits for the next before it ends. 10 s by default.
    ///
    /// ```
    /// let short = std::time::Duration::from_millis(1);
    /// let runtime = selvedge::Builder::new().workers(1).blocking_keep_alive(short).build()?;
    /// runtime.block_on(runtime.spawn_blocking(|| {})).unwrap();
    /// while runtime.metrics().blocking_threads > 0 {
    ///     std::thread::yield_now(); // It ends soon.
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn blocking_keep_alive(mut self, limit: Duration) -> Self {
        self.threads.keep_alive = limit;
        self
    }

    /// Operations that a task's resources grant between two yields. 128 by default; with 0 each operation yields first and never proceeds, and
    /// [`Budget::UNLIMITED`] sets no limit. Where something comes from outside while all workers are busy, one operation may yield earlier.
    ///
    /// ```
    /// use selvedge::{Budget, Builder, task::consume_budget};
    ///
    /// let runtime = Builder::new().workers(1).budget(Budget::new(10)).build()?;
    /// let task = runtime.spawn(async {
    ///     for _ in 0..25 {
    ///         consume_budget().await;
    ///     }
    /// });
    /// runtime.block_on(task).unwrap();
    /// assert!(runtime.metrics().forced_yields >= 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn budget(mut self, budget: Budget) -> Self {
        self.settings.budget = budget;
        self
    }

    /// Seed of the order in which workers look at each other.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().seed(7).build()?;
    /// assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn seed(mut self, seed: u64) -> Self {
        self.settings.seed = seed;
        self
    }

    /// Whether each poll is timed, for [`Snapshot::poll_times`](crate::Snapshot::poll_times): two looks at the clock a poll. It isn't by default.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = selvedge::Builder::new().workers(1).measure_polls(true).build()?;
    /// let handle = runtime.handle().clone();
    /// runtime.block_on(runtime.spawn(async { std::thread::sleep(Duration::from_millis(5)) })).unwrap();
    /// drop(runtime);
    /// assert!(handle.metrics().poll_times.quantile(1.0).unwrap() > Duration::from_millis(5));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn measure_polls(mut self, on: bool) -> Self {
        self.settings.poll_times = on;
        self
    }

    /// Whether workers measure how long they are awake, for [`Snapshot::busy_ns`](crate::Snapshot::busy_ns): a look at the clock a sleep, and one
    /// every so many ticks. They don't by default.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().workers(1).measure_busy(true).build()?;
    /// let task = runtime.spawn(async { std::thread::sleep(std::time::Duration::from_millis(5)) });
    /// runtime.block_on(task).unwrap();
    /// while runtime.metrics().busy_ns < 5_000_000 {
    ///     std::thread::yield_now(); // It is counted when the worker goes to sleep.
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn measure_busy(mut self, on: bool) -> Self {
        self.settings.busy_time = on;
        self
    }

    /// Workers wait in a driver of your own: a [`Park`] with timers, or a poller of sockets. `make` is
    /// called by `build` for each worker, from 0 on. Without this a worker's thread just sleeps.
    ///
    /// A worker parks in its driver when it has nothing to run, and polls it every so many ticks
    /// ([`global_interval`](Self::global_interval)) while it is busy. It then
    /// [delivers](Park::deliver) what was collected: the tasks that this wakes go to the worker's own
    /// queue, behind the tasks there. A task that [blocks in place](crate::block_in_place()) gives the
    /// driver away with the worker. A panic of a driver goes to [`on_panic`](Self::on_panic), and the
    /// worker goes on.
    ///
    /// [`build_driven`](Self::build_driven), which is given its parkers, ignores this.
    ///
    /// ```
    /// use selvedge::park::{Park, ThreadPark, ThreadUnpark};
    /// use std::{sync::{Arc, Mutex}, task::{Poll, Waker}, time::{Duration, Instant}};
    ///
    /// /// Timers of all workers, which whoever parks looks at.
    /// type Timers = Arc<Mutex<Vec<(Instant, Waker)>>>;
    ///
    /// struct TimerPark(ThreadPark, Timers, Vec<Waker>);
    ///
    /// impl Park for TimerPark {
    ///     type Unpark = ThreadUnpark;
    ///     fn park(&mut self) {
    ///         self.park_timeout(Duration::from_millis(1));
    ///     }
    ///     fn park_timeout(&mut self, limit: Duration) {
    ///         self.0.park_timeout(limit.min(Duration::from_millis(1)));
    ///         self.poll(usize::MAX);
    ///     }
    ///     fn poll(&mut self, max: usize) {
    ///         let due = |timer: &mut (Instant, Waker)| timer.0 <= Instant::now();
    ///         let mut timers = self.1.lock().unwrap();
    ///         self.2.extend(timers.extract_if(.., due).take(max).map(|timer| timer.1));
    ///     }
    ///     fn has_events(&self) -> bool {
    ///         !self.2.is_empty()
    ///     }
    ///     fn deliver(&mut self) {
    ///         self.2.drain(..).for_each(Waker::wake);
    ///     }
    ///     fn unparker(&self) -> ThreadUnpark {
    ///         self.0.unparker()
    ///     }
    /// }
    ///
    /// let timers = Timers::default();
    /// let driver = { let timers = timers.clone(); move |_worker| TimerPark(ThreadPark::new(), timers.clone(), Vec::new()) };
    /// let runtime = selvedge::Builder::new().workers(2).driver(driver).build()?;
    /// let at = Instant::now() + Duration::from_millis(5);
    /// let sleep = runtime.spawn(std::future::poll_fn(move |cx| {
    ///     if Instant::now() >= at {
    ///         return Poll::Ready(());
    ///     }
    ///     timers.lock().unwrap().push((at, cx.waker().clone()));
    ///     Poll::Pending
    /// }));
    /// runtime.block_on(sleep).unwrap();
    /// assert!(Instant::now() >= at);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn driver<P: Park + Send + 'static>(
        mut self,
        make: impl Fn(usize) -> P + Send + Sync + 'static,
    ) -> Self {
        self.driver = Some(std::sync::Arc::new(move |worker| Box::new(make(worker))));
        self
    }

    /// Puts a value into the runtime, which [`Handle::extension`](crate::Handle::extension) finds by
    /// its type: a driver's handle, say, for sockets to find. It replaces an earlier value of the
    /// same type, and is dropped with the runtime's memory, by the last thread or handle that has it.
    /// A value that holds a [`Handle`](crate::Handle) keeps that memory for ever.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().extend(7_u32).build()?;
    /// assert_eq!(*runtime.handle().extension::<u32>().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn extend<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }

    /// Called by each thread of the runtime when it starts, before it is in the runtime: [`Handle::current`](crate::Handle::current) and [`spawn`](crate::spawn())
    /// panic there. With it the build starts the threads of all workers.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering::SeqCst}};
    ///
    /// let threads = Arc::new(AtomicU32::new(0));
    /// let count = threads.clone();
    /// let hook = move || drop(count.fetch_add(1, SeqCst));
    /// drop(selvedge::Builder::new().workers(2).on_thread_start(hook).build()?);
    /// assert_eq!(threads.load(SeqCst), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_start = Some(std::sync::Arc::new(hook));
        self
    }

    /// Called by each thread of the runtime before it ends, when it is no longer in the runtime.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering::SeqCst}};
    ///
    /// let threads = Arc::new(AtomicU32::new(0));
    /// let count = threads.clone();
    /// let hook = move || drop(count.fetch_add(1, SeqCst));
    /// drop(selvedge::Builder::new().workers(2).prestart().on_thread_stop(hook).build()?);
    /// assert_eq!(threads.load(SeqCst), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_stop(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_stop = Some(std::sync::Arc::new(hook));
        self
    }

    /// Called by a worker that has run out of tasks, before it sleeps. What it spawns is run.
    ///
    /// ```
    /// let (sender, parked) = std::sync::mpsc::channel();
    /// let hook = move || drop(sender.send(std::thread::current().id()));
    /// let runtime = selvedge::Builder::new().workers(1).on_thread_park(hook).build()?;
    /// let worker = parked.recv().unwrap();
    /// let task = runtime.spawn(async { std::thread::current().id() });
    /// assert_eq!(runtime.block_on(task).unwrap(), worker);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_park(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_park = Some(std::sync::Arc::new(hook));
        self
    }

    /// Called by a worker that has slept: once it has found a task, or before it sleeps again.
    ///
    /// ```
    /// let (sender, woken) = std::sync::mpsc::channel();
    /// let hook = move || drop(sender.send(std::thread::current().id()));
    /// let runtime = selvedge::Builder::new().workers(1).on_thread_unpark(hook).build()?;
    /// let task = runtime.spawn(async { std::thread::current().id() });
    /// let worker = runtime.block_on(task).unwrap(); // It may have found that one before it slept.
    /// let slept = loop {
    ///     runtime.spawn_detached(async {});
    ///     if let Ok(thread) = woken.recv_timeout(std::time::Duration::from_millis(10)) {
    ///         break thread;
    ///     }
    /// };
    /// assert_eq!(slept, worker);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_unpark(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_unpark = Some(std::sync::Arc::new(hook));
        self
    }

    /// Called by whoever spawns a task, before it is queued.
    ///
    /// ```
    /// let (sender, spawned) = std::sync::mpsc::channel();
    /// let hook = move |task| drop(sender.send(task));
    /// let runtime = selvedge::Builder::new().on_task_spawn(hook).build()?;
    /// let task = runtime.spawn(async {});
    /// assert_eq!(spawned.recv().unwrap(), task.id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_task_spawn(mut self, hook: impl Fn(Id) + Send + Sync + 'static) -> Self {
        self.hooks.on_spawn = Some(std::sync::Arc::new(hook));
        self
    }

    /// Called by the worker before each poll of a task.
    ///
    /// ```
    /// let (sender, polled) = std::sync::mpsc::channel();
    /// let hook = move |task| drop(sender.send(task));
    /// let runtime = selvedge::Builder::new().on_before_poll(hook).build()?;
    /// let task = runtime.spawn(selvedge::yield_now());
    /// let id = task.id();
    /// runtime.block_on(task).unwrap();
    /// assert_eq!(polled.try_iter().collect::<Vec<_>>(), [id, id]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_before_poll(mut self, hook: impl Fn(Id) + Send + Sync + 'static) -> Self {
        self.hooks.before_poll = Some(std::sync::Arc::new(hook));
        self
    }

    /// Called by the worker after each poll of a task.
    ///
    /// ```
    /// let (sender, polled) = std::sync::mpsc::channel();
    /// let hook = move |task| drop(sender.send(task));
    /// let runtime = selvedge::Builder::new().on_after_poll(hook).build()?;
    /// let task = runtime.spawn(std::future::pending::<()>());
    /// assert_eq!(polled.recv().unwrap(), task.id());
    /// assert!(!task.is_finished());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_after_poll(mut self, hook: impl Fn(Id) + Send + Sync + 'static) -> Self {
        self.hooks.after_poll = Some(std::sync::Arc::new(hook));
        self
    }

    /// Called by the worker when a task is done: complete, panicked, aborted, or dropped by the runtime's end. By then another task may have its id.
    /// A task that is dropped by anybody else, as a refused one, is not heard of.
    ///
    /// ```
    /// let (sender, ended) = std::sync::mpsc::channel();
    /// let hook = move |task| drop(sender.send(task));
    /// let runtime = selvedge::Builder::new().on_task_end(hook).build()?;
    /// let task = runtime.spawn(std::future::pending::<()>());
    /// drop(runtime);
    /// assert_eq!(ended.recv().unwrap(), task.id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_task_end(mut self, hook: impl Fn(Id) + Send + Sync + 'static) -> Self {
        self.hooks.on_end = Some(std::sync::Arc::new(hook));
        self
    }

    /// Called with the payload of every panic of a task, a blocking closure or a hook, by the thread that it comes up in: of a run, of the drop of what the task holds or has given,
    /// and of the waker that waits for it. It is called in this runtime, whichever that thread is in. A panic of a run goes to the handle as well. Tasks of a
    /// [`LocalSet`](crate::LocalSet) are of no runtime, and tell their handles alone.
    ///
    /// With it, or with a policy for panics, each task counts on the runtime's memory: two read-modify-writes more on a line that all share, and a waker that outlives the runtime keeps that.
    ///
    /// ```
    /// let (sender, said) = std::sync::mpsc::channel();
    /// let hook = move |payload: &(dyn std::any::Any + Send)| {
    ///     drop(sender.send(payload.downcast_ref::<&str>().copied()));
    /// };
    /// let runtime = selvedge::Builder::new().on_panic(hook).build()?;
    /// runtime.spawn_detached(async { panic!("oh no") });
    /// assert_eq!(said.recv().unwrap(), Some("oh no"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_panic(mut self, hook: impl Fn(&(dyn Any + Send)) + Send + Sync + 'static) -> Self {
        self.hooks.on_panic = Some(std::sync::Arc::new(hook));
        self
    }

    /// What else is to happen after a task or a blocking closure has panicked. [`UnhandledPanic::Ignore`] by default.
    ///
    /// ```
    /// use selvedge::{Builder, UnhandledPanic};
    ///
    /// let runtime = Builder::new().unhandled_panic(UnhandledPanic::Shutdown).build()?;
    /// let bystander = runtime.spawn(std::future::pending::<()>());
    /// runtime.spawn_detached(async { panic!("nobody waits for me") });
    /// assert!(futures::executor::block_on(bystander).unwrap_err().is_cancelled());
    /// let waits = || runtime.block_on(std::future::pending::<()>());
    /// assert!(std::panic::catch_unwind(waits).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn unhandled_panic(mut self, policy: UnhandledPanic) -> Self {
        self.hooks.policy = policy;
        self
    }

    /// Threads linger before their sleeps from the first one on.
    #[cfg(test)]
    pub(crate) fn eager(mut self) -> Self {
        self.settings.linger = Backoff::eager();
        self
    }

    /// This thread of the runtime, from 0 on, is one that the system refuses.
    #[cfg(all(test, not(selvedge_loom)))]
    pub(crate) fn fail_at_thread(&mut self, thread: usize) {
        let started = sync_shim::atomic::AtomicUsize::new(0);
        self.threads.spawn = Some(std::sync::Arc::new(move |builder, run| {
            // Ordering: Relaxed, a count.
            if started.fetch_add(1, sync_shim::atomic::Ordering::Relaxed) == thread {
                return Err(io::Error::other("no thread, as the test asked"));
            }
            builder.spawn(run)
        }));
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// When `SELVEDGE_WORKERS` is no number from 1 to 65,535, or the first worker's thread can't be started, or, where all are started at once ([`prestart`](Self::prestart)), any; none is left
    /// behind then. (In a task, where waiting would hold up others, those that had started are still about to end.)
    pub fn build(mut self) -> io::Result<Runtime> {
        let workers = self.workers.map_or_else(default_workers, Ok)?;
        let at_once = self.prestart || self.hooks.on_start.is_some();
        self.settings.has_drivers = self.driver.is_some();
        let parker = |worker| Parker::new(self.driver.as_ref(), worker);
        let parkers = (0..workers).map(parker).collect();
        let (shared, cores) = self.assemble(parkers, Parker::unparker);
        let runtime = Runtime::new_of(shared.clone());
        // The first worker is the last: whoever notifies another finds its core.
        for (core, park) in cores.into_iter().rev() {
            let index = core.index;
            core.park.set(Some(park));
            // One that was notified, or is the first, searches before its thread is there: pushes rely on it, so no hook comes between.
            core.searching
                .set(!at_once && (index > 0 || shared.idle.try_search()));
            if at_once || index == 0 {
                blocking::start(core)?; // The drop of the runtime waits for the others.
            } else {
                drop(shared.remotes[index].unstarted.offer(core));
                shared.idle.sleep(index, false);
            }
        }
        Ok(runtime)
    }

    /// Makes a runtime without worker threads, and a [`Worker`] for each of `parks`, to be driven by the caller's own loops. How many
    /// were asked for is ignored. Threads for blocking closures are started as needed.
    ///
    /// # Panics
    /// When `parks` is empty.
    ///
    /// ```
    /// let (runtime, workers) = selvedge::Builder::new().build_driven([selvedge::park::ThreadPark::new()]);
    /// let thread = std::thread::spawn(|| workers.into_iter().for_each(selvedge::Worker::run));
    /// assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    /// drop(runtime);
    /// thread.join().unwrap();
    /// ```
    #[track_caller]
    pub fn build_driven<P: Park>(
        self,
        parks: impl IntoIterator<Item = P>,
    ) -> (Runtime, Vec<Worker<P>>) {
        let parks: Vec<_> = parks.into_iter().collect();
        assert!(
            !parks.is_empty(),
            "build_driven needs a Park for each worker, and at least one"
        );
        let (shared, cores) = self.assemble(parks, |park| park::waker(park.unparker()));
        let workers = cores
            .into_iter()
            .map(|(core, park)| Worker::new(core, park));
        (Runtime::new_of(shared), workers.collect())
    }

    /// A worker that is driven, and searches, beside one that has no thread.
    #[cfg(test)]
    pub(crate) fn build_beside_one_unstarted(self) -> (Runtime, Worker<park::ThreadPark>) {
        use park::ThreadPark;

        let parks = vec![ThreadPark::new(), ThreadPark::new()];
        let (shared, mut cores) = self.assemble(parks, |park| park::waker(park.unparker()));
        let (unstarted, park) = cores.remove(1);
        unstarted.park.set(Some(Parker::Thread(park)));
        unstarted.searching.set(true);
        drop(shared.remotes[1].unstarted.offer(unstarted));
        shared.idle.sleep(1, false);
        let (core, park) = cores.remove(0);
        core.searching.set(shared.idle.try_search());
        (Runtime::new_of(shared), Worker::new(core, park))
    }

    fn assemble<P>(
        self,
        parks: Vec<P>,
        unparker: impl Fn(&P) -> Waker,
    ) -> (Arc<Shared>, Vec<(Box<Core>, P)>) {
        let mut settings = self.settings;
        settings.special_spawns = self.hooks.observe_spawns();
        settings.observed = self.hooks.observe_polls() || settings.poll_times;
        let queue = |index| {
            WorkerQueue::new(self.ring_capacity)
                .with_slot(settings.lifo)
                .with_seed(settings.seed, index)
        };
        let queues: Vec<_> = (0..parks.len()).map(queue).collect();
        let remotes = queues.iter().zip(&parks).map(|(queue, park)| {
            Arc::new(Remote {
                stealer: queue.stealer(),
                unpark: unparker(park),
                unstarted: Lent::new(),
                lent: Lent::new(),
                counters: CachePadded::new(Counters::new(settings.poll_times)),
            })
        });
        let remotes = remotes.collect();
        let hooks = Arc::new(self.hooks);
        let mut threads = self.threads;
        threads.name = format!("{}-blocking", settings.thread_name).into();
        let (start, stop) = (hooks.clone(), hooks.clone());
        let attributes = Attributes::of_this_thread();
        threads.on_start = Some(std::sync::Arc::new(move || {
            attributes.apply();
            scope::mark_own_thread(&start);
            start.call(&start.on_start);
        }));
        threads.on_stop = Some(std::sync::Arc::new(move || stop.call(&stop.on_stop)));
        let first = settings.linger;
        threads.before_park = Some(std::sync::Arc::new(move || blocking::linger(first)));
        let pool = Pool::new(threads);
        let shared = Arc::new(Shared::new(remotes, pool, settings, hooks, self.extensions));
        let cores = queues.into_iter().zip(parks).enumerate();
        let core =
            |(index, (queue, park))| (Box::new(Core::new(shared.clone(), index, queue)), park);
        let cores = cores.map(core).collect();
        (shared, cores)
    }
}

/// More than any machine has processors.
const MOST_WORKERS: usize = u16::MAX as usize;

fn default_workers() -> io::Result<usize> {
    let Some(said) = std::env::var_os("SELVEDGE_WORKERS") else {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    };
    let number = said.to_str().and_then(|said| said.trim().parse().ok());
    number
        .filter(|n| (1..=MOST_WORKERS).contains(n))
        .ok_or_else(|| {
            let must = format!("must be a whole number from 1 to {MOST_WORKERS}, not {said:?}");
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("SELVEDGE_WORKERS {must}"),
            )
        })
}
