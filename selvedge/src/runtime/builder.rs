//! `runtime::Builder`: tokio's builder, whose methods take `&mut self`.
use super::{LocalOptions, LocalRuntime};
use crate::{
    Runtime,
    runtime::{TaskMeta, UnhandledPanic},
};
use std::{io, time::Duration};

/// Settings of a runtime, with tokio's names and signatures.
///
/// Each method changes the builder and returns it by reference, so that a program's `let mut
/// builder = ...; builder.worker_threads(2);` ports. Each method calls the method of
/// [`crate::Builder`] that its docs name. Settings that tokio does not have are methods of
/// [`crate::Builder`] only, but for [`observe`](Self::observe). Call these methods first, and then turn that builder into this type
/// with [`From`].
///
/// ```
/// use selvedge::runtime::Builder;
///
/// let mut builder = Builder::new_multi_thread();
/// builder.worker_threads(2);
/// if cfg!(unix) {
///     builder.thread_name("crunch");
/// }
/// let runtime = builder.build()?;
/// let name = runtime.spawn(async { std::thread::current().name().unwrap().to_owned() });
/// assert!(runtime.block_on(name).unwrap().starts_with("crunch"));
///
/// let mut builder = Builder::from(selvedge::Builder::new().ring_capacity(64));
/// assert_eq!(builder.worker_threads(1).build()?.snapshot().workers, 1);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder(crate::Builder);

impl From<crate::Builder> for Builder {
    fn from(builder: crate::Builder) -> Self {
        Self(builder)
    }
}

impl Builder {
    /// Changes a clone: if the change panics, this builder is as it was.
    fn set(&mut self, change: impl FnOnce(crate::Builder) -> crate::Builder) -> &mut Self {
        self.0 = change(self.0.clone());
        self
    }

    /// Returns a builder of a runtime whose tasks run in the thread that is in `block_on`.
    ///
    /// See [`crate::Builder::new_current_thread`].
    ///
    /// ```
    /// let runtime = selvedge::runtime::Builder::new_current_thread().build()?;
    /// let here = std::thread::current().id();
    /// let there = runtime.spawn(async { std::thread::current().id() });
    /// assert_eq!(runtime.block_on(there).unwrap(), here);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_current_thread() -> Self {
        Self(crate::Builder::new_current_thread())
    }

    /// Returns a builder of a runtime with worker threads.
    ///
    /// ```
    /// use selvedge::runtime::{Builder, RuntimeFlavor};
    ///
    /// let runtime = Builder::new_multi_thread().build()?;
    /// assert_eq!(runtime.handle().runtime_flavor(), RuntimeFlavor::MultiThread);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn new_multi_thread() -> Self {
        Self(crate::Builder::new())
    }

    /// Starts the runtime. The builder can start further runtimes.
    ///
    /// ```
    /// let mut builder = selvedge::runtime::Builder::new_current_thread();
    /// let (one, other) = (builder.build()?, builder.build()?);
    /// assert_ne!(one.handle().id(), other.handle().id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`crate::Builder::build`].
    pub fn build(&mut self) -> io::Result<Runtime> {
        self.0.clone().build()
    }

    /// Makes a runtime of this thread. The runtime also takes futures that are not `Send`.
    ///
    /// ```
    /// use selvedge::runtime::{Builder, LocalOptions};
    ///
    /// let mut builder = Builder::new_current_thread();
    /// let runtime = builder.name("local").build_local(LocalOptions::default())?;
    /// assert_eq!(runtime.handle().name(), Some("local"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`crate::Builder::build`].
    ///
    /// # Panics
    /// If the builder is one of [`new_multi_thread`](Self::new_multi_thread).
    #[track_caller]
    pub fn build_local(&mut self, options: LocalOptions) -> io::Result<LocalRuntime> {
        self.0.clone().build_local(options)
    }
}

/// Sockets and timers. They work in every runtime, also without these methods.
///
/// ```
/// use selvedge::runtime::Builder;
///
/// # let _ =
/// Builder::new_current_thread().enable_all().enable_time().build()?;
/// # Ok::<(), std::io::Error>(())
/// ```
impl Builder {
    /// Enables sockets and timers. They are always enabled.
    pub fn enable_all(&mut self) -> &mut Self {
        self
    }

    /// Enables timers. They are always enabled.
    pub fn enable_time(&mut self) -> &mut Self {
        self
    }

    /// Lets time stand still at first. See [`crate::Builder::start_paused`].
    ///
    /// ```
    /// let mut builder = selvedge::runtime::Builder::new_current_thread();
    /// let runtime = builder.start_paused(true).build()?;
    /// let hour = std::time::Duration::from_secs(3600);
    /// runtime.block_on(selvedge::time::sleep(hour)); // It returns at once.
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "test-util")]
    pub fn start_paused(&mut self, paused: bool) -> &mut Self {
        self.set(|builder| builder.start_paused(paused))
    }
}

/// Settings of sockets. They exist where sockets do.
///
/// ```
/// # let _ =
/// selvedge::runtime::Builder::new_current_thread()
///     .enable_io()
///     .max_io_events_per_tick(128)
///     .max_io_events_per_busy_tick(8)
///     .build()?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[cfg(all(
    feature = "net",
    any(unix, windows),
    not(any(selvedge_loom, selvedge_shuttle))
))]
#[cfg_attr(docsrs, doc(cfg(feature = "net")))]
impl Builder {
    /// Lets [`build`](Self::build) open the kernel objects that sockets need. If the kernel refuses
    /// them, `build` returns the error. Without this setting the first socket opens these objects.
    /// See [`crate::Builder::enable_io`].
    pub fn enable_io(&mut self) -> &mut Self {
        self.set(|builder| builder.enable_io())
    }

    /// Leaves sleeps or sockets out. See [`crate::Builder::without`].
    #[doc(hidden)]
    pub fn without(&mut self, sleeps: bool, sockets: bool) -> &mut Self {
        self.set(|builder| builder.without(sleeps, sockets))
    }

    /// Sets how many events of sockets a worker takes at once. See
    /// [`crate::Builder::max_io_events_per_tick`].
    ///
    /// # Panics
    /// If `events` is 0.
    #[track_caller]
    pub fn max_io_events_per_tick(&mut self, events: usize) -> &mut Self {
        self.0 = self.0.clone().max_io_events_per_tick(events);
        self
    }

    /// Sets how many events a worker that has tasks to run takes at once. See
    /// [`crate::Builder::max_io_events_per_busy_tick`].
    ///
    /// # Panics
    /// If `events` is 0.
    #[track_caller]
    pub fn max_io_events_per_busy_tick(&mut self, events: usize) -> &mut Self {
        self.0 = self.0.clone().max_io_events_per_busy_tick(events);
        self
    }
}

/// Threads.
///
/// ```
/// use selvedge::runtime::Builder;
/// use std::{sync::atomic::{AtomicU32, Ordering::Relaxed}, time::Duration};
///
/// static NEXT: AtomicU32 = AtomicU32::new(0);
///
/// let runtime = Builder::new_multi_thread()
///     .name("requests")
///     .worker_threads(1)
///     .max_blocking_threads(4)
///     .thread_keep_alive(Duration::from_secs(1))
///     .thread_stack_size(4 << 20)
///     .thread_name("named below")
///     .thread_name_fn(|| format!("thread-{}", NEXT.fetch_add(1, Relaxed)))
///     .on_thread_start(|| println!("starts"))
///     .on_thread_stop(|| println!("stops"))
///     .on_thread_park(|| println!("parks"))
///     .on_thread_unpark(|| println!("unparks"))
///     .build()?;
/// let name = runtime.spawn(async { std::thread::current().name().unwrap().to_owned() });
/// assert_eq!(runtime.block_on(name).unwrap(), "thread-0");
/// # Ok::<(), std::io::Error>(())
/// ```
impl Builder {
    /// See [`crate::Builder::observe`]. The attribute `main` calls this; tokio has no such method.
    ///
    /// ```
    /// let runtime = selvedge::runtime::Builder::new_multi_thread().observe("list").build()?;
    /// assert!(runtime.handle().tasks().unwrap().is_empty());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If there is no view of that name.
    #[track_caller]
    pub fn observe(&mut self, words: &str) -> &mut Self {
        self.set(|builder| builder.observe(words))
    }

    /// Sets the runtime's name. See [`crate::Builder::name`].
    ///
    /// # Panics
    /// If `name` is empty or has only white space.
    #[track_caller]
    pub fn name(&mut self, name: impl Into<String>) -> &mut Self {
        self.0 = self.0.clone().name(name);
        self
    }

    /// Sets the number of workers. See [`crate::Builder::workers`].
    ///
    /// # Panics
    /// If `workers` is not from 1 to 65,535.
    #[track_caller]
    pub fn worker_threads(&mut self, workers: usize) -> &mut Self {
        self.0 = self.0.clone().workers(workers);
        self
    }

    /// Sets the limit of threads for blocking closures. See [`crate::Builder::blocking_threads`].
    ///
    /// # Panics
    /// If `threads` is 0.
    #[track_caller]
    pub fn max_blocking_threads(&mut self, threads: usize) -> &mut Self {
        self.0 = self.0.clone().blocking_threads(threads);
        self
    }

    /// Sets how long an idle thread for blocking closures stays. See
    /// [`crate::Builder::blocking_keep_alive`].
    pub fn thread_keep_alive(&mut self, limit: Duration) -> &mut Self {
        self.set(|builder| builder.blocking_keep_alive(limit))
    }

    /// Sets the size of the threads' stacks. See [`crate::Builder::stack_size`].
    pub fn thread_stack_size(&mut self, bytes: usize) -> &mut Self {
        self.set(|builder| builder.stack_size(bytes))
    }

    /// Sets the first part of the threads' names. See [`crate::Builder::thread_name`].
    ///
    /// # Panics
    /// If `name` contains a NUL character.
    #[track_caller]
    pub fn thread_name(&mut self, name: impl Into<String>) -> &mut Self {
        self.0 = self.0.clone().thread_name(name);
        self
    }

    /// Sets a function that names each thread. See [`crate::Builder::thread_name_fn`].
    pub fn thread_name_fn<F>(&mut self, name: F) -> &mut Self
    where
        F: Fn() -> String + Send + Sync + 'static,
    {
        self.set(|builder| builder.thread_name_fn(name))
    }

    /// Sets a hook for each thread's start. See [`crate::Builder::on_thread_start`].
    pub fn on_thread_start<F: Fn() + Send + Sync + 'static>(&mut self, hook: F) -> &mut Self {
        self.set(|builder| builder.on_thread_start(hook))
    }

    /// Sets a hook for each thread's end. See [`crate::Builder::on_thread_stop`].
    pub fn on_thread_stop<F: Fn() + Send + Sync + 'static>(&mut self, hook: F) -> &mut Self {
        self.set(|builder| builder.on_thread_stop(hook))
    }

    /// Sets a hook for each sleep of a worker. See [`crate::Builder::on_thread_park`].
    pub fn on_thread_park<F: Fn() + Send + Sync + 'static>(&mut self, hook: F) -> &mut Self {
        self.set(|builder| builder.on_thread_park(hook))
    }

    /// Sets a hook for the end of a worker's sleep. See [`crate::Builder::on_thread_unpark`].
    pub fn on_thread_unpark<F: Fn() + Send + Sync + 'static>(&mut self, hook: F) -> &mut Self {
        self.set(|builder| builder.on_thread_unpark(hook))
    }
}

/// The scheduler, and hooks for tasks.
///
/// ```
/// use selvedge::{runtime::Builder, UnhandledPanic};
///
/// let runtime = Builder::new_multi_thread()
///     .global_queue_interval(31)
///     .event_interval(61)
///     .disable_lifo_slot()
///     .unhandled_panic(UnhandledPanic::ShutdownRuntime)
///     .on_task_spawn(|task| println!("{} was spawned at {}", task.id(), task.spawned_at()))
///     .on_before_task_poll(|task| println!("{} is polled", task.id()))
///     .on_after_task_poll(|task| println!("{} was polled", task.id()))
///     .on_task_terminate(|task| println!("{} has ended", task.id()))
///     .build()?;
/// runtime.block_on(runtime.spawn(async {})).unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
impl Builder {
    /// Sets the ticks between looks at the injector. See [`crate::Builder::global_interval`].
    ///
    /// # Panics
    /// If `ticks` is 0.
    #[track_caller]
    pub fn global_queue_interval(&mut self, ticks: u32) -> &mut Self {
        self.0 = self.0.clone().global_interval(ticks);
        self
    }

    /// Sets the ticks between looks at sockets and timers. See [`crate::Builder::event_interval`].
    ///
    /// # Panics
    /// If `ticks` is 0.
    #[track_caller]
    pub fn event_interval(&mut self, ticks: u32) -> &mut Self {
        self.0 = self.0.clone().event_interval(ticks);
        self
    }

    /// Turns the LIFO slot off. See [`crate::Builder::lifo_slot`].
    pub fn disable_lifo_slot(&mut self) -> &mut Self {
        self.set(|builder| builder.lifo_slot(false))
    }

    /// Sets the policy for unhandled panics. See [`crate::Builder::unhandled_panic`].
    pub fn unhandled_panic(&mut self, policy: UnhandledPanic) -> &mut Self {
        self.set(|builder| builder.unhandled_panic(policy))
    }

    /// Sets a hook for spawns. See [`crate::Builder::on_task_spawn`].
    pub fn on_task_spawn<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.set(|builder| builder.on_task_spawn(move |task| hook(&task)))
    }

    /// Sets a hook before polls. See [`crate::Builder::on_before_poll`].
    pub fn on_before_task_poll<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.set(|builder| builder.on_before_poll(move |task| hook(&task)))
    }

    /// Sets a hook after polls. See [`crate::Builder::on_after_poll`].
    pub fn on_after_task_poll<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.set(|builder| builder.on_after_poll(move |task| hook(&task)))
    }

    /// Sets a hook for tasks' ends. See [`crate::Builder::on_task_end`].
    pub fn on_task_terminate<F>(&mut self, hook: F) -> &mut Self
    where
        F: Fn(&TaskMeta<'_>) + Send + Sync + 'static,
    {
        self.set(|builder| builder.on_task_end(move |task| hook(&task)))
    }
}
