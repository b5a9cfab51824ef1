//! `Builder`: the settings of a runtime, and how its parts are put together.
#[cfg(feature = "groups")]
mod groups;

#[cfg(feature = "groups")]
use crate::groups::{GroupSettings, Groups};
use crate::{
    Runtime, UnhandledPanic, Worker,
    attributes::Attributes,
    blocking,
    core::Core,
    driver::{MakeDriver, Parker},
    events::{Events, Polling},
    extensions::Extensions,
    hooks::{Hooks, TaskMeta},
    metrics::Counters,
    monitor,
    park::{self, Park},
    queue::Queue,
    scope,
    shared::{Remote, Settings, Shared},
};
use blocking_threads::{Lent, Pool};
use coop_budget::Budget;
use std::{any::Any, fmt, io, task::Waker, time::Duration};
use sync_shim::{CachePadded, atomic::AtomicU64, sync::Arc};
use worker_idle::Backoff;
#[cfg(feature = "groups")]
use worker_queue::RunQueue;
use worker_queue::WorkerQueue;

/// Settings of a [`Runtime`], which [`build`](Self::build) starts.
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
    #[cfg(feature = "test-util")]
    start_paused: bool,
    /// Whether the interval of looks at the injector was set.
    fixed_interval: bool,
    /// Ticks between looks at sockets and timers, if that was set.
    event_interval: Option<u32>,
    /// Names a thread, in place of the first part of the names.
    thread_name_fn: Option<std::sync::Arc<dyn Fn() -> String + Send + Sync>>,
    ring_capacity: usize,
    pub(crate) settings: Settings,
    threads: blocking_threads::Settings,
    monitor: monitor::Settings,
    hooks: Hooks,
    driver: Option<MakeDriver>,
    polling: Polling,
    pub(crate) enable_io: bool,
    extensions: Extensions,
    #[cfg(feature = "groups")]
    pub(crate) groups: GroupSettings,
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
    /// Makes a builder with the default settings.
    pub fn new() -> Self {
        Self {
            workers: None,
            prestart: false,
            #[cfg(feature = "test-util")]
            start_paused: false,
            fixed_interval: false,
            event_interval: None,
            thread_name_fn: None,
            ring_capacity: 256,
            settings: Settings {
                global_interval: 61,
                adapts: false,
                lifo: true,
                budget: Budget::DEFAULT,
                seed: 0x9e37_79b9_7f4a_7c15,
                special_spawns: false,
                observed: false,
                poll_times: false,
                has_drivers: false,
                busy_time: false,
                backoff: Backoff::new(),
                thread_name: "selvedge".into(),
                name: None,
                current_thread: false,
            },
            threads: blocking_threads::Settings::default(),
            monitor: monitor::Settings::new(),
            hooks: Hooks::default(),
            driver: None,
            polling: Polling::default(),
            enable_io: false,
            extensions: Extensions::default(),
            #[cfg(feature = "groups")]
            groups: GroupSettings::default(),
        }
    }

    /// Sets the number of workers.
    ///
    /// The default is the environment variable `SELVEDGE_WORKERS`, or if that is not set, the
    /// number of CPUs that this process may use.
    ///
    /// # Panics
    /// If `workers` is 0, or above 65,535.
    #[track_caller]
    pub fn workers(mut self, workers: usize) -> Self {
        assert!(
            (1..=MAX_WORKERS).contains(&workers),
            "a runtime has from 1 to {MAX_WORKERS} workers, not {workers}"
        );
        self.workers = Some(workers);
        self
    }

    /// Starts the threads of all workers in `build`.
    ///
    /// So does a [hook for thread starts](Self::on_thread_start). By default `build` starts one
    /// thread. Each of the others is started by the first push that finds no other worker to wake,
    /// so that a runtime for a few tasks is cheap. If such a thread cannot be started, the runtime
    /// gives that worker up, which [`WorkerSnapshot::refused`](crate::WorkerSnapshot::refused)
    /// counts, and wakes or starts another.
    ///
    /// Any thread may push, and so start a worker's thread. On Linux each thread of the runtime
    /// first takes the signal mask, the CPU affinity, the scheduling policy and the niceness of the
    /// thread that called `build`, as far as the system permits: to raise a priority again may need
    /// a privilege. Anything else a thread inherits from the thread that pushes: seccomp filters,
    /// namespaces, credentials of a single thread. If one of your threads is confined by such means
    /// and wakes tasks, use `prestart`.
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

    /// Pauses the clock of the runtime's sleeps from the start, as
    /// [`time::pause`](crate::time::pause) does. Off by default.
    ///
    /// ```
    /// use selvedge::time::{self, Duration};
    ///
    /// let runtime = selvedge::Builder::new().start_paused(true).build()?;
    /// let day = Duration::from_secs(86_400);
    /// runtime.block_on(time::sleep(day)); // At once.
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "test-util")]
    #[cfg_attr(docsrs, doc(cfg(feature = "test-util")))]
    pub fn start_paused(mut self, paused: bool) -> Self {
        self.start_paused = paused;
        self
    }

    /// Sets the name of the runtime, which [`Handle::name`](crate::Handle::name) returns. It has
    /// none by default. [`thread_name`](Self::thread_name) is for the names of its threads.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().name("requests").build()?;
    /// assert_eq!(runtime.handle().name(), Some("requests"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// Sets the prefix of the threads' names. "selvedge" by default.
    ///
    /// # Panics
    /// If `name` contains a NUL character, which a thread's name cannot.
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

    /// Sets a function that returns the whole name of each thread that starts.
    ///
    /// It is called in the thread that starts the other one, for threads of workers and of blocking
    /// closures; the monitor keeps the name that [`thread_name`](Self::thread_name) gives. If it
    /// panics, or returns a name with a NUL character, the thread is not started.
    ///
    /// ```
    /// let name = || format!("mine, of process {}", std::process::id());
    /// let runtime = selvedge::Builder::new().workers(1).thread_name_fn(name).build()?;
    /// let found = runtime.spawn(async { std::thread::current().name().unwrap().to_owned() });
    /// assert_eq!(runtime.block_on(found).unwrap(), name());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn thread_name_fn(mut self, name: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.thread_name_fn = Some(std::sync::Arc::new(name));
        self
    }

    /// Sets the stack size of each thread, in bytes. By default that of [`std::thread`].
    ///
    /// ```
    /// fn deep(left: u32) -> u32 {
    ///     let page = std::hint::black_box([1_u8; 4096]);
    ///     if left == 0 { 0 } else { deep(left - 1) + u32::from(page[0]) }
    /// }
    ///
    /// // Four megabytes: too much for the default stack of std's threads.
    /// let runtime = selvedge::Builder::new().workers(1).stack_size(64 << 20).build()?;
    /// assert_eq!(runtime.block_on(runtime.spawn(async { deep(1_000) })).unwrap(), 1_000);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.threads.stack_size = Some(bytes);
        self
    }

    /// Sets the number of tasks in a worker's ring, above which half of them move to the injector.
    /// 256 by default.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().workers(1).ring_capacity(4).build()?;
    /// let children = || (0..10).for_each(|_| selvedge::spawn_detached(async {}));
    /// let parent = runtime.spawn(async move { children() });
    /// runtime.block_on(parent).unwrap();
    /// assert!(runtime.metrics().overflows > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `capacity` is not a power of two from 2 to 2³¹.
    #[track_caller]
    pub fn ring_capacity(mut self, capacity: usize) -> Self {
        assert!(
            capacity.is_power_of_two() && (2..=1 << 31).contains(&capacity),
            "a ring's capacity is a power of two from 2 to 2^31, not {capacity}"
        );
        self.ring_capacity = capacity;
        self
    }

    /// Sets after how many ticks a worker with tasks of its own looks at the injector.
    ///
    /// By default it looks after at most 61 ticks, and earlier while its polls are long: about
    /// every 10 µs, and at least after each poll. For this it reads the clock, at most once in
    /// 10 µs or 488 ticks. A worker with the ticks set here reads no clock, as a
    /// [driven worker](Self::build_driven), whose interval is 61 ticks by default. Any worker looks
    /// after the poll in which a push from outside has nudged it.
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
    /// If `ticks` is 0.
    #[track_caller]
    pub fn global_interval(mut self, ticks: u32) -> Self {
        assert!(ticks > 0, "the global interval is at least 1 tick, not 0");
        self.settings.global_interval = ticks;
        self.fixed_interval = true;
        self
    }

    /// Sets after how many ticks, at the latest, a busy worker looks for sockets and timers that
    /// are due.
    ///
    /// It does so whenever it looks at the injector in an interval of ticks. So the smaller one of
    /// this and of [`global_interval`](Self::global_interval) counts for both. By default there is
    /// only the latter.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().workers(1).event_interval(16).build()?;
    /// assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `ticks` is 0.
    #[track_caller]
    pub fn event_interval(mut self, ticks: u32) -> Self {
        assert!(ticks > 0, "the event interval is at least 1 tick, not 0");
        self.event_interval = Some(ticks);
        self
    }

    /// Sets whether workers have a LIFO slot. They have one by default.
    ///
    /// With it the task that a worker woke or spawned last runs next, ahead of the worker's others,
    /// at most three times in a row.
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

    /// Sets the maximum number of threads for blocking closures. 512 by default.
    ///
    /// A closure that finds no idle thread starts one at once, for the first four threads. More
    /// threads start once closures have waited for a millisecond, so a burst of short closures
    /// starts few.
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
    /// If `threads` is 0.
    #[track_caller]
    pub fn blocking_threads(mut self, threads: usize) -> Self {
        assert!(
            threads > 0,
            "a runtime has at least 1 thread for blocking closures, not 0"
        );
        self.threads.cap = threads;
        self
    }

    /// Sets how long an idle thread for blocking closures waits before it ends. 10 s by default.
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

    /// Sets the budget: the operations that a task may make between two yields. 128 by default.
    ///
    /// With a budget of 0 every operation yields and none ever proceeds. [`Budget::UNLIMITED`] sets
    /// no limit. If a push comes from outside while all workers are busy, one operation may yield
    /// earlier.
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

    /// Sets the seed of the random order in which workers steal from each other.
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

    /// Sets whether workers measure each poll, for
    /// [`Snapshot::poll_times`](crate::Snapshot::poll_times). Off by default.
    ///
    /// Costs two clock readings per poll.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = selvedge::Builder::new().workers(1).measure_polls(true).build()?;
    /// let handle = runtime.handle().clone();
    /// let task = runtime.spawn(async { std::thread::sleep(Duration::from_millis(5)) });
    /// runtime.block_on(task).unwrap();
    /// drop(runtime);
    /// assert!(handle.metrics().poll_times.quantile(1.0).unwrap() > Duration::from_millis(5));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn measure_polls(mut self, on: bool) -> Self {
        self.settings.poll_times = on;
        self
    }

    /// Sets whether workers measure how long they are awake, for
    /// [`Snapshot::busy_ns`](crate::Snapshot::busy_ns). Off by default.
    ///
    /// Costs two clock readings per sleep, and two every [`global_interval`](Self::global_interval)
    /// ticks.
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

    /// Sets a driver of your own in which workers wait, such as timers or a poller of sockets.
    ///
    /// A driver is a [`Park`]. `build` calls `make` for each worker, counted from 0. Without a
    /// driver a worker's thread just sleeps.
    ///
    /// A worker parks in its driver when it has nothing to run. While it is busy it polls the
    /// driver every [`global_interval`](Self::global_interval) ticks. It then
    /// [delivers](Park::deliver) the collected events: the tasks that this wakes go to the worker's
    /// own queue, behind the tasks there. A task that [blocks in place](crate::block_in_place())
    /// gives the driver away with the worker. `build` starts the threads of all workers, so that
    /// each driver is parked or polled.
    ///
    /// A panic of a driver that parks, polls or delivers goes to [`on_panic`](Self::on_panic), and
    /// the worker goes on. A panic of `make` or `unparker` leaves `build`. A panic of a driver's
    /// drop goes nowhere. A driver whose `park` returns at once, or panics, each time keeps its CPU
    /// busy.
    ///
    /// [`build_driven`](Self::build_driven) takes its own parkers and ignores this.
    ///
    /// ```
    /// use selvedge::park::{Park, ThreadPark, ThreadUnpark};
    /// use std::{sync::{Arc, Mutex}, task::{Poll, Waker}, time::{Duration, Instant}};
    ///
    /// /// Timers of all workers. Each worker that parks checks them.
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
    /// let shared = timers.clone();
    /// let driver = move |_worker| TimerPark(ThreadPark::new(), shared.clone(), Vec::new());
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

    /// Puts a value into the runtime, for [`Handle::extension`](crate::Handle::extension) to find
    /// by its type.
    ///
    /// It may be a driver's handle that sockets look for, for example. It replaces an earlier value
    /// of the same type. Clones of the builder share it. It is dropped with the runtime's memory,
    /// by the last thread or handle that refers to the runtime, unless it is still shared. A value
    /// that contains a [`Handle`](crate::Handle) keeps that memory forever; one that contains the
    /// [`Runtime`] keeps its threads, too.
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

    /// Sets a hook that each thread of the runtime calls when it starts.
    ///
    /// The thread is not in the runtime yet: [`Handle::current`](crate::Handle::current) and
    /// [`spawn`](crate::spawn()) panic in the hook. With this hook `build` starts the threads of
    /// all workers.
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

    /// Sets a hook that each thread of the runtime calls before it ends, when it has left the
    /// runtime.
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

    /// Sets a hook that a worker without tasks calls before it sleeps. The worker runs the tasks
    /// that the hook spawns.
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

    /// Sets a hook that a worker calls after a sleep: once it has found a task, or before it sleeps
    /// again.
    ///
    /// ```
    /// let (sender, woken) = std::sync::mpsc::channel();
    /// let hook = move || drop(sender.send(std::thread::current().id()));
    /// let runtime = selvedge::Builder::new().workers(1).on_thread_unpark(hook).build()?;
    /// let task = runtime.spawn(async { std::thread::current().id() });
    /// let worker = runtime.block_on(task).unwrap(); // Perhaps before its first sleep.
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

    /// Sets a hook that the spawning thread calls for each task, before the task is queued.
    ///
    /// ```
    /// let (sender, spawned) = std::sync::mpsc::channel();
    /// let hook = move |task: selvedge::TaskMeta<'_>| drop(sender.send(task.id()));
    /// let runtime = selvedge::Builder::new().on_task_spawn(hook).build()?;
    /// let task = runtime.spawn(async {});
    /// assert_eq!(spawned.recv().unwrap(), task.id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_task_spawn(
        mut self,
        hook: impl Fn(TaskMeta<'static>) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.on_spawn = Some(std::sync::Arc::new(hook));
        self
    }

    /// Sets a hook that the worker calls before each poll of a task.
    ///
    /// ```
    /// let (sender, polled) = std::sync::mpsc::channel();
    /// let hook = move |task: selvedge::TaskMeta<'_>| drop(sender.send(task.id()));
    /// let runtime = selvedge::Builder::new().on_before_poll(hook).build()?;
    /// let task = runtime.spawn(selvedge::yield_now());
    /// let id = task.id();
    /// runtime.block_on(task).unwrap();
    /// assert_eq!(polled.try_iter().collect::<Vec<_>>(), [id, id]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_before_poll(
        mut self,
        hook: impl Fn(TaskMeta<'static>) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.before_poll = Some(std::sync::Arc::new(hook));
        self
    }

    /// Sets a hook that the worker calls after each poll of a task.
    ///
    /// ```
    /// let (sender, polled) = std::sync::mpsc::channel();
    /// let hook = move |task: selvedge::TaskMeta<'_>| drop(sender.send(task.id()));
    /// let runtime = selvedge::Builder::new().on_after_poll(hook).build()?;
    /// let task = runtime.spawn(std::future::pending::<()>());
    /// assert_eq!(polled.recv().unwrap(), task.id());
    /// assert!(!task.is_finished());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_after_poll(
        mut self,
        hook: impl Fn(TaskMeta<'static>) + Send + Sync + 'static,
    ) -> Self {
        self.hooks.after_poll = Some(std::sync::Arc::new(hook));
        self
    }

    /// Sets a hook that the worker calls when a task has ended: completed, panicked, aborted, or
    /// dropped by the runtime's end.
    ///
    /// By then another task may have the same id. The hook is not called for tasks that are dropped
    /// elsewhere, such as those that the runtime refuses.
    ///
    /// ```
    /// let (sender, ended) = std::sync::mpsc::channel();
    /// let hook = move |task: selvedge::TaskMeta<'_>| drop(sender.send(task.id()));
    /// let runtime = selvedge::Builder::new().on_task_end(hook).build()?;
    /// let task = runtime.spawn(std::future::pending::<()>());
    /// drop(runtime);
    /// assert_eq!(ended.recv().unwrap(), task.id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_task_end(mut self, hook: impl Fn(TaskMeta<'static>) + Send + Sync + 'static) -> Self {
        self.hooks.on_end = Some(std::sync::Arc::new(hook));
        self
    }

    /// Sets a hook for the payload of every panic of a task, a blocking closure or a hook.
    ///
    /// The panic may be of a poll or a closure, of the drop of a future or an output, or of a waker
    /// that waits for the task. The thread where the panic surfaced calls the hook, in this runtime
    /// even if the thread is in another. A panic of a poll or a closure also goes to the join
    /// handle. Tasks of a [`LocalSet`](crate::LocalSet) belong to no runtime: their panics go only
    /// to their handles.
    ///
    /// With this hook, or with a policy for panics, each task counts as a reference to the
    /// runtime's memory. This costs two more read-modify-writes of a cache line that all tasks
    /// share, and a waker that outlives the runtime keeps its memory.
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

    /// Sets the policy for panics of tasks and blocking closures. [`UnhandledPanic::Ignore`] by
    /// default.
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

    /// Sets whether the runtime has a monitor: a thread that watches the workers. It has one by
    /// default.
    ///
    /// The monitor
    ///
    /// - ends a worker's time slice after 10 ms: the polled task yields at its next operation, and
    ///   the tasks behind it have their turn;
    /// - hands a worker over to another thread whose task is in a [`syscall`](crate::syscall())
    ///   that lasts;
    /// - makes busy workers look at tasks from outside that wait for long;
    /// - fires timers and polls sockets when no worker waits for them and all that are awake are in
    ///   long polls;
    /// - reports polls that [last](Self::on_stall).
    ///
    /// It looks at the workers every 1 to 10 ms while any is busy, and sleeps while all are idle.
    /// With `true` its thread starts in [`build`](Self::build), otherwise when a worker has a
    /// second task to run, a second worker starts, or a task makes a `syscall`. So without `true`
    /// it does not watch a worker's first task. If it cannot be started the runtime goes on without
    /// it, and [`Snapshot::monitor_refused`](crate::Snapshot::monitor_refused) says so. The [hooks
    /// for threads](Self::on_thread_start) are not called in it. A runtime with driven workers has
    /// none.
    ///
    /// ```
    /// use selvedge::{Budget, Builder, task};
    ///
    /// // Without a limit of operations only the time slice lets the other task run.
    /// let runtime = Builder::new().workers(1).budget(Budget::UNLIMITED).monitor(true).build()?;
    /// let turns = runtime.spawn(async {
    ///     let (sender, receiver) = std::sync::mpsc::channel();
    ///     selvedge::spawn_detached(async move { sender.send(()).unwrap() });
    ///     selvedge::spawn_detached(async {}); // It takes the LIFO slot.
    ///     while receiver.try_recv().is_err() {
    ///         task::consume_budget().await;
    ///     }
    /// });
    /// runtime.block_on(turns).unwrap();
    /// assert!(runtime.metrics().preempted > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "monitor")]
    #[cfg_attr(docsrs, doc(cfg(feature = "monitor")))]
    pub fn monitor(mut self, on: bool) -> Self {
        self.monitor.on = on;
        self.monitor.at_once = on;
        self
    }

    /// Sets a hook for polls that last, by default for 25 ms or longer.
    ///
    /// The monitor calls it in its own thread while the poll goes on, and again each time the
    /// poll's age has doubled; at most [five times a minute](Self::stall_reports_per_minute) over
    /// all workers. It must not block: with the feature `backtrace` it lets another thread look up
    /// the names on the [stack](crate::Stall), which may take long. A
    /// worker in a [`syscall`](crate::syscall()), or one that another thread has taken over because
    /// its task [blocks in place](crate::block_in_place()), is not reported. Without a hook the
    /// report goes to standard error. With the feature `tracing` it is also an event, in either
    /// case.
    ///
    /// With this hook `build` starts the [monitor](Self::monitor).
    ///
    /// ```
    /// use selvedge::{Builder, Cause, Stall};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let (sender, causes) = mpsc::channel();
    /// let hook = move |stall: &Stall| drop(sender.send(stall.cause.clone()));
    /// let runtime = Builder::new().workers(1).on_stall(hook).build()?;
    /// runtime.spawn_detached(async { std::thread::sleep(Duration::from_millis(100)) });
    /// let cause = causes.recv().unwrap();
    /// # #[cfg(target_os = "linux")]
    /// assert!(matches!(cause, Cause::Blocked { .. }), "{cause}");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "monitor")]
    #[cfg_attr(docsrs, doc(cfg(feature = "monitor")))]
    pub fn on_stall(mut self, hook: impl Fn(&crate::Stall) + Send + Sync + 'static) -> Self {
        self.monitor.on_stall = Some(std::sync::Arc::new(hook));
        self.monitor.at_once = true;
        self
    }

    /// Sets how long a poll lasts before it is [reported](Self::on_stall). 25 ms by default.
    ///
    /// ```
    /// let rarely = std::time::Duration::from_secs(1);
    /// let runtime = selvedge::Builder::new().stall_threshold(rarely).build()?;
    /// runtime.spawn_detached(async { std::thread::sleep(std::time::Duration::from_millis(50)) });
    /// assert_eq!(runtime.metrics().stalls, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "monitor")]
    #[cfg_attr(docsrs, doc(cfg(feature = "monitor")))]
    pub fn stall_threshold(mut self, threshold: Duration) -> Self {
        self.monitor.threshold = threshold;
        self
    }

    /// Sets how many stalls are [reported](Self::on_stall) in a minute, over all workers. 5 by
    /// default. The others are counted ([`Snapshot::stalls`](crate::Snapshot::stalls)), and the
    /// next report says how many there were.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().stall_reports_per_minute(u32::MAX).build()?;
    /// assert_eq!(runtime.metrics().stalls, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "monitor")]
    #[cfg_attr(docsrs, doc(cfg(feature = "monitor")))]
    pub fn stall_reports_per_minute(mut self, reports: u32) -> Self {
        self.monitor.reports_per_minute = reports;
        self
    }

    /// Lets the start of the monitor's thread fail.
    #[cfg(all(test, feature = "monitor", not(selvedge_loom)))]
    pub(crate) fn fail_at_monitor(mut self) -> Self {
        self.monitor.fails = true;
        self
    }

    /// Lets threads wait a moment before each sleep, from the first one on.
    #[cfg(test)]
    pub(crate) fn eager(mut self) -> Self {
        self.settings.backoff = Backoff::eager();
        self
    }

    /// Lets the start of this thread of the runtime fail, counted from 0.
    #[cfg(all(test, not(selvedge_loom)))]
    pub(crate) fn fail_at_thread(&mut self, thread: usize) {
        let started = sync_shim::atomic::AtomicUsize::new(0);
        self.threads.spawn = Some(std::sync::Arc::new(move |builder, run| {
            // Ordering: Relaxed, as it is only a count.
            if started.fetch_add(1, sync_shim::atomic::Ordering::Relaxed) == thread {
                return Err(io::Error::other("no thread, as the test asked"));
            }
            builder.spawn(run)
        }));
    }

    /// Sets how the sockets are polled: see [`Polling`](crate::net::Polling). It has no effect if
    /// workers wait in drivers of users ([`driver`](Self::driver)) or are driven: then a thread
    /// waits for the sockets.
    ///
    /// ```
    /// use selvedge::{Builder, net::Polling};
    ///
    /// let runtime = Builder::new().workers(2).poller(Polling::Thread).build()?;
    /// # drop(runtime);
    /// # std::io::Result::Ok(())
    /// ```
    #[cfg(all(
        feature = "net",
        target_os = "linux",
        not(any(selvedge_loom, selvedge_shuttle))
    ))]
    pub fn poller(mut self, polling: crate::events::Polling) -> Self {
        self.polling = polling;
        self
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// - If [`enable_io`](Self::enable_io) was called, and the kernel refuses what sockets need.
    /// - If the number of workers comes from `SELVEDGE_WORKERS`, and that is not a number from 1 to
    ///   65,535.
    /// - If the thread of the first worker cannot be started, or any thread where all are started
    ///   at once ([`prestart`](Self::prestart)). No thread is left then. (In a task, where a wait
    ///   would hold up others, the threads that had started may still be about to end.)
    pub fn build(mut self) -> io::Result<Runtime> {
        if self.settings.current_thread {
            let enable_io = self.enable_io;
            let (mut runtime, mut workers) = self.build_driven([park::ThreadPark::new()]);
            if enable_io {
                runtime.handle().shared().events.open()?;
            }
            runtime.be_driven_by_block_on(workers.remove(0));
            return Ok(runtime);
        }
        let workers = self.workers.map_or_else(default_workers, Ok)?;
        let at_once = self.prestart || self.hooks.on_start.is_some() || self.driver.is_some();
        self.settings.has_drivers = self.driver.is_some();
        // A model must be repeatable.
        let repeatable = cfg!(any(selvedge_loom, selvedge_shuttle));
        self.settings.adapts = !self.fixed_interval && !repeatable;
        let (parkers, events): (Vec<_>, _) = if let Some(make) = &self.driver {
            let parker = |worker| Parker::made_by(make, worker);
            ((0..workers).map(parker).collect(), None)
        } else {
            let events = Events::new(workers, self.polling);
            let parker = |worker| Parker::Events(events.park(worker));
            ((0..workers).map(parker).collect(), Some(events))
        };
        let enable_io = self.enable_io;
        let (shared, cores) = self.assemble(parkers, Parker::unparker, events);
        if enable_io {
            shared.events.open()?;
        }
        let runtime = Runtime::new_of(shared.clone());
        // The first worker starts last, so that it finds the cores of the others when it notifies
        // them.
        for (core, park) in cores.into_iter().rev() {
            let index = core.index;
            let park = park.with_timers(&shared.events, index);
            core.park.set(Some(park));
            // The first worker, and one that is started by a notification, counts as searching
            // before its thread runs. Pushes rely on that, so no hook may run in between: where all
            // threads start at once, as they do with a hook, no worker counts as searching here.
            core.searching
                .set(!at_once && (index > 0 || shared.idle.try_search()));
            if at_once || index == 0 {
                blocking::start(core)?; // The drop of the runtime waits for the others.
            } else {
                drop(shared.remotes[index].unstarted.offer(core));
                shared.idle.sleep(index, false);
            }
        }
        shared.monitor.start_at_once(&shared);
        Ok(runtime)
    }

    /// Makes a runtime without worker threads, and a [`Worker`] for each of `parks`.
    ///
    /// The caller's own loops drive the workers. The setting [`workers`](Self::workers) is ignored.
    /// Threads for blocking closures are started as needed.
    ///
    /// # Panics
    /// If `parks` is empty.
    ///
    /// ```
    /// use selvedge::{Builder, park::ThreadPark};
    ///
    /// let (runtime, workers) = Builder::new().build_driven([ThreadPark::new()]);
    /// let thread = std::thread::spawn(|| workers.into_iter().for_each(selvedge::Worker::run));
    /// assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    /// drop(runtime);
    /// thread.join().unwrap();
    /// ```
    #[track_caller]
    pub fn build_driven<P: Park>(
        mut self,
        parks: impl IntoIterator<Item = P>,
    ) -> (Runtime, Vec<Worker<P>>) {
        let parks: Vec<_> = parks.into_iter().collect();
        assert!(
            !parks.is_empty(),
            "build_driven needs a Park for each worker, and at least one"
        );
        self.monitor.turn_off();
        let (shared, cores) = self.assemble(parks, |park| park::waker(park.unparker()), None);
        let workers = cores
            .into_iter()
            .map(|(core, park)| Worker::new(core, park));
        (Runtime::new_of(shared), workers.collect())
    }

    /// Makes a driven worker that searches, beside an unstarted one.
    #[cfg(test)]
    pub(crate) fn build_beside_one_unstarted(
        mut self,
    ) -> (Runtime, Worker<crate::events::EventsPark>) {
        use crate::events::EventsPark;

        self.monitor.turn_off();

        let events = Events::new(2, self.polling);
        let parks = (0..2).map(|worker| events.park(worker)).collect();
        let unparker = |park: &EventsPark| park::waker(park.unparker());
        let (shared, mut cores) = self.assemble(parks, unparker, Some(events));
        let (unstarted, park) = cores.remove(1);
        unstarted.park.set(Some(Parker::Events(park)));
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
        events: Option<Events>,
    ) -> (Arc<Shared>, Vec<(Box<Core>, P)>) {
        let mut settings = self.settings;
        let events_after = self.event_interval.unwrap_or(u32::MAX);
        settings.global_interval = settings.global_interval.min(events_after);
        settings.special_spawns = self.hooks.observe_spawns();
        settings.observed = self.hooks.observe_polls() || settings.poll_times;
        #[cfg(feature = "groups")]
        let groups = std::sync::Arc::new(Groups::new(parks.len(), self.groups));
        let queue = |index| {
            let queue = WorkerQueue::new(self.ring_capacity)
                .with_slot(settings.lifo)
                .with_seed(settings.seed, index);
            #[cfg(feature = "groups")]
            let queue = Queue::new(queue, &groups, index);
            queue
        };
        let queues: Vec<Queue> = (0..parks.len()).map(queue).collect();
        let mut unparkers: Vec<_> = parks.iter().map(unparker).collect();
        let events = match events {
            Some(events) => events,
            None => {
                let events = Events::over(unparkers.iter().cloned());
                let marking = unparkers.into_iter().enumerate();
                unparkers = marking.map(|(n, unpark)| events.waker(n, unpark)).collect();
                events
            }
        };
        let remotes = queues.iter().zip(unparkers).map(|(queue, unpark)| {
            Arc::new(Remote {
                stealer: queue.stealer(),
                unpark,
                unstarted: Lent::new(),
                lent: Lent::new(),
                #[cfg(feature = "monitor")]
                call: sched_monitor::Handoff::new(),
                #[cfg(feature = "monitor")]
                thread: sync_shim::atomic::AtomicU32::new(0),
                nudged_at: AtomicU64::new(0),
                counters: CachePadded::new(Counters::new(settings.poll_times)),
            })
        });
        let remotes: Vec<_> = remotes.collect();
        #[cfg(all(
            feature = "net",
            target_os = "linux",
            not(any(selvedge_loom, selvedge_shuttle))
        ))]
        events.set_blocking(crate::net::run_blocking);
        #[cfg(feature = "test-util")]
        if self.start_paused {
            events.pause();
        }
        let hooks = Arc::new(self.hooks);
        let mut threads = self.threads;
        threads.name = format!("{}-blocking", settings.thread_name).into();
        if let Some(name) = self.thread_name_fn {
            let spawn = threads.spawn.take();
            threads.spawn = Some(std::sync::Arc::new(move |builder, run| {
                let name = name();
                if name.contains('\0') {
                    let why = "a thread's name has no NUL character";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
                }
                let builder = builder.name(name);
                match &spawn {
                    Some(spawn) => spawn(builder, run),
                    None => builder.spawn(run),
                }
            }));
        }
        let (start, stop) = (hooks.clone(), hooks.clone());
        let attributes = Attributes::of_this_thread();
        threads.on_start = Some(std::sync::Arc::new(move || {
            attributes.apply();
            scope::mark_own_thread(&start);
            start.call(&start.on_start);
        }));
        threads.on_stop = Some(std::sync::Arc::new(move || stop.call(&stop.on_stop)));
        let first = settings.backoff;
        threads.before_park = Some(std::sync::Arc::new(move || blocking::backoff(first)));
        let pool = Pool::new(threads);
        let shared = Arc::new(Shared::new(
            remotes,
            pool,
            self.monitor,
            settings,
            hooks,
            self.extensions,
            events,
            #[cfg(feature = "groups")]
            groups.clone(),
        ));
        #[cfg(feature = "groups")]
        groups.bind(shared.address());
        let cores = queues.into_iter().zip(parks).enumerate();
        let core =
            |(index, (queue, park))| (Box::new(Core::new(shared.clone(), index, queue)), park);
        let cores = cores.map(core).collect();
        (shared, cores)
    }
}

/// Limit of the number of workers, above that of any machine's CPUs.
const MAX_WORKERS: usize = u16::MAX as usize;

fn default_workers() -> io::Result<usize> {
    let Some(said) = std::env::var_os("SELVEDGE_WORKERS") else {
        return Ok(std::thread::available_parallelism().map_or(1, usize::from));
    };
    let number = said.to_str().and_then(|said| said.trim().parse().ok());
    number
        .filter(|n| (1..=MAX_WORKERS).contains(n))
        .ok_or_else(|| {
            let must = format!("must be a whole number from 1 to {MAX_WORKERS}, not {said:?}");
            io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("SELVEDGE_WORKERS {must}"),
            )
        })
}
