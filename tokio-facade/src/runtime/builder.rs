//! `runtime::Builder`, which knows what the program has enabled.
use super::{LocalOptions, LocalRuntime, Runtime, TaskMeta, UnhandledPanic};
use std::{io, time::Duration};

/// Settings of a runtime: those of [`selvedge::runtime::Builder`].
///
/// As in tokio, a sleep panics in a runtime without [`enable_time`](Self::enable_time), and a
/// socket panics in one without `enable_io`.
///
/// ```
/// let mut builder = tokio::runtime::Builder::new_current_thread();
/// let runtime = builder.enable_all().build()?;
/// assert_eq!(runtime.block_on(async { 7 }), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Builder {
    builder: selvedge::runtime::Builder,
    has_time: bool,
    has_io: bool,
}

/// Defines methods that call those of the same name of `selvedge`'s builder.
macro_rules! settings {
    ($($name:ident($($argument:ident: $type:ty)?);)*) => {
        /// The same settings as those of [`selvedge::runtime::Builder`].
        impl Builder {$(
            #[doc = concat!("See [`selvedge::runtime::Builder::", stringify!($name), "`].")]
            #[track_caller]
            pub fn $name(&mut self, $($argument: $type)?) -> &mut Self {
                self.builder.$name($($argument)?);
                self
            }
        )*}
    };
}

settings! {
    name(name: impl Into<String>);
    worker_threads(workers: usize);
    max_blocking_threads(threads: usize);
    thread_keep_alive(limit: Duration);
    thread_stack_size(bytes: usize);
    thread_name(name: impl Into<String>);
    thread_name_fn(name: impl Fn() -> String + Send + Sync + 'static);
    on_thread_start(hook: impl Fn() + Send + Sync + 'static);
    on_thread_stop(hook: impl Fn() + Send + Sync + 'static);
    on_thread_park(hook: impl Fn() + Send + Sync + 'static);
    on_thread_unpark(hook: impl Fn() + Send + Sync + 'static);
    global_queue_interval(ticks: u32);
    event_interval(ticks: u32);
    disable_lifo_slot();
    unhandled_panic(policy: UnhandledPanic);
    on_task_spawn(hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static);
    on_before_task_poll(hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static);
    on_after_task_poll(hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static);
    on_task_terminate(hook: impl Fn(&TaskMeta<'_>) + Send + Sync + 'static);
}

#[cfg(feature = "test-util")]
settings! {
    start_paused(paused: bool);
}

#[cfg(any(feature = "net", feature = "process", feature = "signal"))]
settings! {
    max_io_events_per_tick(events: usize);
    max_io_events_per_busy_tick(events: usize);
}

impl Builder {
    /// Returns a builder of a runtime whose tasks run in the thread that is in `block_on`.
    pub fn new_current_thread() -> Self {
        Self::of(selvedge::runtime::Builder::new_current_thread(), false)
    }

    /// Returns a builder of a runtime with worker threads.
    pub fn new_multi_thread() -> Self {
        Self::of(selvedge::runtime::Builder::new_multi_thread(), false)
    }

    fn of(builder: selvedge::runtime::Builder, has_all: bool) -> Self {
        Self {
            builder,
            has_time: has_all,
            has_io: has_all,
        }
    }

    /// Enables timers and sockets.
    pub fn enable_all(&mut self) -> &mut Self {
        self.has_io = true;
        self.enable_time()
    }

    /// Enables timers.
    pub fn enable_time(&mut self) -> &mut Self {
        self.has_time = true;
        self
    }

    /// Enables sockets. See [`selvedge::runtime::Builder::enable_io`].
    #[cfg(any(feature = "net", feature = "process", feature = "signal"))]
    pub fn enable_io(&mut self) -> &mut Self {
        self.has_io = true;
        self.builder.enable_io();
        self
    }

    /// Returns the builder of a runtime without the parts that are not enabled.
    #[allow(unused_mut)] // Without these features there are no such parts.
    fn ours(&self) -> selvedge::runtime::Builder {
        let mut builder = self.builder.clone();
        #[cfg(any(
            feature = "net",
            feature = "process",
            feature = "signal",
            feature = "time"
        ))]
        builder.without(!self.has_time, !self.has_io);
        builder
    }

    /// Starts the runtime.
    ///
    /// # Errors
    /// If a thread cannot be started.
    pub fn build(&mut self) -> io::Result<Runtime> {
        self.ours().build()
    }

    /// Makes a runtime of this thread. The runtime also takes futures that are not `Send`.
    ///
    /// # Errors
    /// As for [`build`](Self::build).
    ///
    /// # Panics
    /// If the builder is one of [`new_multi_thread`](Self::new_multi_thread).
    #[track_caller]
    pub fn build_local(&mut self, options: LocalOptions) -> io::Result<LocalRuntime> {
        self.ours().build_local(options)
    }
}

/// A builder of `selvedge` has enabled everything.
impl From<selvedge::Builder> for Builder {
    fn from(builder: selvedge::Builder) -> Self {
        Self::of(builder.into(), true)
    }
}
