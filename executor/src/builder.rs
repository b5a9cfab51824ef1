//! `Builder`: the settings of a runtime. The module `build` puts the runtime's parts together.
mod build;
#[cfg(test)]
mod for_tests;
#[cfg(feature = "groups")]
mod groups;
mod hooks;
mod monitor;
#[cfg(all(
    feature = "net",
    any(unix, windows),
    not(any(selvedge_loom, selvedge_shuttle))
))]
mod net;
mod observe;

use crate::{
    events::Polling,
    groups::GroupSettings,
    monitor::Settings as MonitorSettings,
    observe::{environment::Views, trace::RecorderSettings},
    settings::hooks::Hooks,
    worker::{
        driver::MakeDriver,
        park::{MAX_EVENTS, Park},
        shared::Settings,
    },
};
use coop_budget::Budget;
use std::{fmt, time::Duration};
use worker_idle::{Backoff, Wait};

/// Settings with which [`build`](Self::build) starts a [`Runtime`](crate::Runtime).
///
/// ```
/// let runtime = selvedge_executor::Builder::new().workers(2).thread_name("crunch").build()?;
/// let name = runtime.spawn(async { std::thread::current().name().unwrap().to_owned() });
/// assert!(runtime.block_on(name).unwrap().starts_with("crunch-"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing before `build`"]
pub struct Builder {
    workers: Option<usize>,
    prestart: bool,
    start_paused: bool,
    /// Whether the program has set the interval of looks at the injector.
    fixed_interval: bool,
    /// The most ticks between two looks at sockets and timers, if the program has set that number.
    event_interval: Option<u32>,
    /// The function that returns a thread's whole name, if the program has set one.
    thread_name_fn: Option<std::sync::Arc<dyn Fn() -> String + Send + Sync>>,
    ring_capacity: usize,
    pub(crate) settings: Settings,
    threads: blocking_threads::Settings,
    monitor: MonitorSettings,
    hooks: Hooks,
    driver: Option<MakeDriver>,
    polling: Polling,
    /// The most events of sockets that a worker takes at once, if the program has set that number.
    max_io_events: Option<usize>,
    /// The most events that a worker with tasks to run takes at once, if the program has set that
    /// number.
    max_busy_io_events: Option<usize>,
    pub(crate) enable_io: bool,
    pub(crate) no_sleeps: bool,
    pub(crate) no_sockets: bool,
    /// Whether the environment turns no views of this runtime on.
    unobserved: bool,
    pub(crate) groups: GroupSettings,
    recorder: RecorderSettings,
    views: Views,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("workers", &self.workers)
            .field("prestart", &self.prestart)
            .field("ring_capacity", &self.ring_capacity)
            .field("settings", &self.settings)
            .field("threads", &self.threads)
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
            start_paused: false,
            fixed_interval: false,
            event_interval: None,
            thread_name_fn: None,
            ring_capacity: 256,
            settings: Settings {
                global_interval: 61,
                injector_shards: None,
                adapts: false,
                lifo: true,
                budget: Budget::DEFAULT,
                seed: 0x9e37_79b9_7f4a_7c15,
                special_spawns: false,
                observed: false,
                lists_tasks: false,
                poll_times: false,
                has_drivers: false,
                busy_time: false,
                backoff: Backoff::new(),
                thread_name: "selvedge".into(),
                name: None,
                current_thread: false,
                max_busy_events: MAX_EVENTS,
            },
            threads: blocking_threads::Settings::default(),
            monitor: MonitorSettings::new(),
            hooks: Hooks::default(),
            driver: None,
            polling: Polling::default(),
            max_io_events: None,
            max_busy_io_events: None,
            enable_io: false,
            no_sleeps: false,
            no_sockets: false,
            unobserved: false,
            groups: GroupSettings::default(),
            recorder: RecorderSettings::default(),
            views: Views::default(),
        }
    }

    /// Makes a builder of a runtime that starts no thread for its tasks: they run on the thread
    /// that is in [`Runtime::block_on`](crate::Runtime::block_on).
    ///
    /// Tasks may be spawned from any thread, and run once a thread is in `block_on`. If several
    /// threads are in `block_on`, one of them runs the tasks. When the future of that thread is
    /// ready, another thread takes over. [`Handle::block_on`](crate::Handle::block_on) runs no
    /// task. The runtime ignores the builder's number of workers and driver: it has one worker.
    /// Blocking closures run on threads of their own, as in other runtimes.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new_current_thread().build()?;
    /// let here = std::thread::current().id();
    /// let there = runtime.spawn(async { std::thread::current().id() });
    /// assert_eq!(runtime.block_on(there).unwrap(), here);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_current_thread() -> Self {
        let mut builder = Self::new();
        builder.settings.current_thread = true;
        builder
    }

    /// Sets the number of workers.
    ///
    /// The default is the number in the environment variable `SELVEDGE_WORKERS`. If the variable is
    /// not set, the default is the number of CPUs that this process may use. On Linux this number
    /// respects the CPU affinity and the quota of a container (`cpu.max`, or `cpu.cfs_quota_us` in
    /// the first version of cgroups), rounded down, when the runtime is built.
    ///
    /// Running workers do not follow a quota that changes. Two workers under a quota of one CPU did
    /// no harm up to 90 % of its processor time: they finished a burst sooner, as the kernel stops
    /// them only once the quota of a period is used up. So if a quota may rise a little, set the
    /// number that it may rise to.
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
    /// A [hook for thread starts](Self::on_thread_start) and a [driver](Self::driver) have the same
    /// effect. By default `build` starts one thread. A push that finds no other worker to wake
    /// starts one more thread, so a runtime for a few tasks is cheap. If that thread cannot be
    /// started, the runtime gives the thread's worker up, and wakes or starts another worker.
    /// [`thread_refusals`](crate::WorkerSnapshot::thread_refusals) counts such failures.
    ///
    /// Any thread may push, and so start a worker's thread. On Linux each thread of the runtime
    /// first takes the signal mask, the CPU affinity, the scheduling policy and the niceness of the
    /// thread that called `build`, as far as the system permits: to raise a priority again may need
    /// a privilege. The new thread inherits everything else from the thread that pushes: for
    /// example seccomp filters, namespaces, and the credentials of a single thread. If one of your
    /// threads is confined by such means and wakes tasks, use `prestart`.
    ///
    /// ```
    /// let (sender, stopped) = std::sync::mpsc::channel();
    /// let hook = move || drop(sender.send(()));
    /// drop(selvedge_executor::Builder::new().workers(3).prestart().on_thread_stop(hook).build()?);
    /// assert_eq!(stopped.try_iter().count(), 3);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn prestart(mut self) -> Self {
        self.prestart = true;
        self
    }

    /// Pauses the clock of the runtime's sleeps from the start, as
    /// [`time::pause`](net_driver::time::pause) does. Off by default.
    ///
    /// ```
    /// use net_driver::time::{self, Duration};
    ///
    /// let runtime = selvedge_executor::Builder::new().start_paused(true).build()?;
    /// let day = Duration::from_secs(86_400);
    /// runtime.block_on(time::sleep(day)); // At once.
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "test-util")]
    pub fn start_paused(mut self, paused: bool) -> Self {
        self.start_paused = paused;
        self
    }

    /// Sets the name of the runtime, which [`Handle::name`](crate::Handle::name) returns. A runtime
    /// has no name by default. [`thread_name`](Self::thread_name) is for the names of its threads.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().name("requests").build()?;
    /// assert_eq!(runtime.handle().name(), Some("requests"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If `name` is empty or has only white space.
    #[track_caller]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        assert!(
            !name.trim().is_empty(),
            "a runtime's name has a character that is not white space: {name:?}"
        );
        self.settings.name = Some(name);
        self
    }

    /// Sets the prefix of the threads' names. "selvedge" by default.
    ///
    /// # Panics
    /// If `name` contains a NUL character: the name of a thread cannot contain one.
    #[track_caller]
    pub fn thread_name(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        assert!(
            !name.contains('\0'),
            "a thread's name may not contain a NUL character: {name:?}"
        );
        self.settings.thread_name = name;
        self
    }

    /// Sets a function that returns the whole name of each thread that starts.
    ///
    /// The function names the threads of workers and of blocking closures. It is called in the
    /// thread that starts the new thread. The monitor's thread keeps the name that
    /// [`thread_name`](Self::thread_name) gives. If the function panics, or returns a name with a
    /// NUL character, the new thread is not started. The function must not call a method of this
    /// runtime or of its handles: it is called under a lock of the runtime, and such a call may
    /// wait for that lock forever.
    ///
    /// ```
    /// let name = || format!("mine, of process {}", std::process::id());
    /// let runtime = selvedge_executor::Builder::new().workers(1).thread_name_fn(name).build()?;
    /// let found = runtime.spawn(async { std::thread::current().name().unwrap().to_owned() });
    /// assert_eq!(runtime.block_on(found).unwrap(), name());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn thread_name_fn(mut self, name: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.thread_name_fn = Some(std::sync::Arc::new(name));
        self
    }

    /// Sets the stack size of each thread, in bytes. The default is that of [`std::thread`].
    ///
    /// ```
    /// fn deep(left: u32) -> u32 {
    ///     let page = std::hint::black_box([1_u8; 4096]);
    ///     if left == 0 { 0 } else { deep(left - 1) + u32::from(page[0]) }
    /// }
    ///
    /// // Four megabytes: too much for the default stack of std's threads.
    /// let runtime = selvedge_executor::Builder::new().workers(1).stack_size(64 << 20).build()?;
    /// assert_eq!(runtime.block_on(runtime.spawn(async { deep(1_000) })).unwrap(), 1_000);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stack_size(mut self, bytes: usize) -> Self {
        self.threads.stack_size = Some(bytes);
        self
    }

    /// Sets the capacity of a worker's ring, in tasks. 256 by default.
    ///
    /// When a push finds the ring full, the pushed task and half of the ring's tasks move to the
    /// injector.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(1).ring_capacity(4).build()?;
    /// let children = || (0..10).for_each(|_| selvedge_executor::spawn_detached(async {}));
    /// let parent = runtime.spawn(async move { children() });
    /// runtime.block_on(parent).unwrap();
    /// assert!(runtime.snapshot().overflows > 0);
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
    /// By default the worker looks after at most 61 ticks. While its polls are long, it looks
    /// earlier: about every 30 µs, or after each poll that takes longer than that. To measure its
    /// ticks it reads the clock, about once in 30 µs and at least once in 488 ticks. With this
    /// setting a worker does not read the clock to measure ticks. Nor does a
    /// [driven worker](Self::build_driven), whose interval is 61 ticks by default. Any worker also
    /// looks after a poll in which a push from outside has nudged it.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(1).global_interval(3).build()?;
    /// let busy = runtime.spawn(async {
    ///     let (sender, receiver) = std::sync::mpsc::channel();
    ///     let handle = selvedge_executor::Handle::current();
    ///     let outside = move || handle.spawn_detached(async move { sender.send(()).unwrap() });
    ///     std::thread::spawn(outside).join().unwrap();
    ///     let mut turns = 0;
    ///     while receiver.try_recv().is_err() {
    ///         turns += 1;
    ///         selvedge_executor::yield_now().await;
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

    /// Sets after how many ticks, at the latest, a busy worker looks for sockets that are ready and
    /// timers that are due, unless its ring is full.
    ///
    /// Once in an interval of ticks, a worker looks both at the injector, and for sockets and
    /// timers. So the smaller one of this setting and of [`global_interval`](Self::global_interval)
    /// is the interval of both looks. This setting has no default: without it only
    /// `global_interval` counts. While a worker's ring is full, it skips up to 16 looks for sockets
    /// and timers, if its intervals take 30 µs or less.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(1).event_interval(16).build()?;
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
    /// With a LIFO slot, the task that a worker woke or spawned last runs next, ahead of the
    /// worker's other tasks, at most three times in a row.
    ///
    /// ```
    /// let order = |lifo| {
    ///     let runtime = selvedge_executor::Builder::new().workers(1).lifo_slot(lifo).build()?;
    ///     let (sender, receiver) = std::sync::mpsc::channel();
    ///     runtime.spawn_detached(async move {
    ///         for n in 1..=5 {
    ///             let sender = sender.clone();
    ///             selvedge_executor::spawn_detached(async move { sender.send(n).unwrap() });
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

    /// Sets how much processor time a thread may spend on looks for work before it parks.
    /// [`Wait::Adaptive`] by default.
    ///
    /// A worker without tasks, and a thread for blocking closures, may look for work for a moment
    /// before it parks. A look that finds work saves a park and its wake-up, and their latency. A
    /// look in vain costs processor time.
    ///
    /// | setting | a thread looks before a park |
    /// |---|---|
    /// | [`Wait::Adaptive`] | while looks find work; for events of sockets only where short trials say that looks cost the process no processor time |
    /// | [`Wait::Latency`] | up to 50 µs before each park, whatever that costs: for short latency |
    /// | [`Wait::Power`] | never |
    ///
    /// The costs and gains on a virtual machine with two processors, as ratios to tokio in the same
    /// round (`BENCH_WAIT=latency cargo xtask bench --rows hello_open_1k --peers tokio`):
    ///
    /// | setting | processor time of an HTTP request at 1,000, 5,000 and 20,000 a second | system calls | time and processor time of a round trip on one TCP connection |
    /// |---|---|---|---|
    /// | `Adaptive` | 1.06, 1.00, 1.07 | 1.2, 1.2, 1.1 | 0.61, 0.76 |
    /// | `Latency` | 1.32, 1.32, 1.13 | 5.4, 1.1, 1.0 | 0.65, 0.93 |
    /// | `Power` | 1.12, 1.05, 0.97 | 1.0, 1.1, 1.0 | 0.91, 0.77 |
    ///
    /// A driver of your own ([`driver`](Self::driver)) decides for itself.
    ///
    /// ```
    /// use selvedge_executor::{Builder, Wait};
    ///
    /// let runtime = Builder::new().workers(1).wait(Wait::Power).build()?;
    /// assert_eq!(runtime.block_on(async { 7 }), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn wait(mut self, wait: Wait) -> Self {
        self.settings.backoff = self.settings.backoff.with(wait);
        self
    }

    /// Sets the maximum number of threads for blocking closures. 512 by default.
    ///
    /// A closure that finds no idle thread starts a thread at once while there are fewer than four.
    /// More threads start only once closures have waited for a millisecond, so a burst of short
    /// closures starts few threads.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(1).blocking_threads(1).build()?;
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
    /// let runtime = selvedge_executor::Builder::new().workers(1).blocking_keep_alive(short).build()?;
    /// runtime.block_on(runtime.spawn_blocking(|| {})).unwrap();
    /// while runtime.snapshot().blocking_threads > 0 {
    ///     std::thread::yield_now(); // The idle thread ends soon.
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
    /// before the budget is used up.
    ///
    /// ```
    /// use coop_budget::consume;
    /// use selvedge_executor::{Budget, Builder};
    ///
    /// let runtime = Builder::new().workers(1).budget(Budget::new(10)).build()?;
    /// let task = runtime.spawn(async {
    ///     for _ in 0..25 {
    ///         consume().await;
    ///     }
    /// });
    /// runtime.block_on(task).unwrap();
    /// assert!(runtime.snapshot().forced_yields >= 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn budget(mut self, budget: Budget) -> Self {
        self.settings.budget = budget;
        self
    }

    /// Sets the seed of the random order in which workers steal from each other.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().seed(7).build()?;
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
    /// This costs two clock readings per poll.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = selvedge_executor::Builder::new().workers(1).measure_polls(true).build()?;
    /// let handle = runtime.handle().clone();
    /// let task = runtime.spawn(async { std::thread::sleep(Duration::from_millis(5)) });
    /// runtime.block_on(task).unwrap();
    /// drop(runtime);
    /// assert!(handle.snapshot().poll_times.quantile(1.0).unwrap() > Duration::from_millis(5));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn measure_polls(mut self, on: bool) -> Self {
        self.settings.poll_times = on;
        self
    }

    /// Sets whether the runtime lists its tasks, for [`Handle::tasks`](crate::Handle::tasks). Off
    /// by default.
    ///
    /// Without a list this costs a branch in each poll of a `block_on` and of a local task. With a
    /// list, each task has about 220 bytes more, and a local one some more. The spawn and the end
    /// of a task each take a lock that few threads share; the first poll of a `block_on` or of a
    /// local task and its end do so, too, and each such poll takes a lock of its own. Each poll of
    /// a task adds to a count, and reads the clock twice.
    ///
    /// The environment turns the list on, too, by `SELVEDGE_OBSERVE=list`: see
    /// [`observe`](Self::observe).
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().list_tasks(true).build()?;
    /// let tasks = [1, 2].map(|_| runtime.spawn(std::future::pending::<()>()));
    /// for task in runtime.handle().tasks().unwrap() {
    ///     println!("{task}");
    /// }
    /// assert_eq!(runtime.handle().tasks().unwrap().len(), tasks.len());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn list_tasks(mut self, on: bool) -> Self {
        self.settings.lists_tasks = on;
        self
    }

    /// Ignores `SELVEDGE_OBSERVE`. The package `selvedge-top` calls this for the runtime that
    /// serves its page, which is no part of what the program's user wants to see.
    #[doc(hidden)]
    pub fn unobserved(mut self) -> Self {
        self.unobserved = true;
        self
    }

    /// Sets whether workers measure how long they are awake, for
    /// [`Snapshot::busy_time`](crate::Snapshot::busy_time). Off by default.
    ///
    /// This costs two clock readings per park, and two every
    /// [`global_interval`](Self::global_interval) ticks.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(1).measure_busy(true).build()?;
    /// let while_busy = std::time::Duration::from_millis(5);
    /// let task = runtime.spawn(async move { std::thread::sleep(while_busy) });
    /// runtime.block_on(task).unwrap();
    /// while runtime.snapshot().busy_time < while_busy {
    ///     std::thread::yield_now(); // The time is counted when the worker goes to sleep.
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn measure_busy(mut self, on: bool) -> Self {
        self.settings.busy_time = on;
        self
    }

    /// Sets a driver of your own in which workers wait, such as timers or a poller of sockets.
    ///
    /// A driver is a [`Park`]. `build` calls `make` with the index of each worker, counted from 0.
    /// Without a driver of yours, a worker waits in the runtime's own driver, for timers and
    /// sockets.
    ///
    /// A worker parks in its driver when it has nothing to run. While the worker is busy, it polls
    /// the driver every [`global_interval`](Self::global_interval) ticks. After a park or a poll
    /// the worker [delivers](Park::deliver) the collected events. The tasks that the delivery wakes
    /// go to the worker's own queue, behind the tasks there. A task that
    /// [blocks in place](crate::block_in_place()) gives the driver away with the worker. `build`
    /// starts the threads of all workers, so that each driver is parked or polled.
    ///
    /// A panic of a driver that parks, polls or delivers goes to [`on_panic`](Self::on_panic), and
    /// the worker goes on. A panic of `make` or `waker` unwinds out of `build`. A panic of a
    /// driver's drop is ignored. A driver whose `park` returns at once each time, or panics each
    /// time, keeps a CPU busy.
    ///
    /// [`build_driven`](Self::build_driven) takes its own parkers and ignores this setting.
    ///
    /// ```
    /// use selvedge_executor::park::{Park, ThreadPark};
    /// use std::{sync::{Arc, Mutex}, task::{Poll, Waker}, time::{Duration, Instant}};
    ///
    /// /// Timers of all workers. Each worker that parks checks them.
    /// type Timers = Arc<Mutex<Vec<(Instant, Waker)>>>;
    ///
    /// struct TimerPark(ThreadPark, Timers, Vec<Waker>);
    ///
    /// impl Park for TimerPark {
    ///     fn park(&mut self) {
    ///         self.park_timeout(Duration::from_millis(1));
    ///     }
    ///     fn park_timeout(&mut self, limit: Duration) {
    ///         self.0.park_timeout(limit.min(Duration::from_millis(1)));
    ///         self.poll(usize::MAX);
    ///     }
    ///     fn poll(&mut self, max: usize) {
    ///         let is_due = |timer: &(Instant, Waker)| timer.0 <= Instant::now();
    ///         let mut timers = self.1.lock().unwrap();
    ///         while let Some(at) = timers.iter().position(is_due).filter(|_| self.2.len() < max) {
    ///             self.2.push(timers.swap_remove(at).1);
    ///         }
    ///     }
    ///     fn has_events(&self) -> bool {
    ///         !self.2.is_empty()
    ///     }
    ///     fn deliver(&mut self) {
    ///         self.2.drain(..).for_each(Waker::wake);
    ///     }
    ///     fn waker(&self) -> Waker {
    ///         self.0.waker()
    ///     }
    /// }
    ///
    /// let timers = Timers::default();
    /// let shared = timers.clone();
    /// let driver = move |_worker| TimerPark(ThreadPark::new(), shared.clone(), Vec::new());
    /// let runtime = selvedge_executor::Builder::new().workers(2).driver(driver).build()?;
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
}

/// The largest number of workers. No machine has more CPUs.
const MAX_WORKERS: usize = u16::MAX as usize;
