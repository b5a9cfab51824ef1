//! tokio's names for the settings, so that a program ports by renaming the crate.
use crate::Builder;
use std::time::Duration;

/// Settings under tokio's names.
///
/// Each method takes the builder and returns it. If you keep the builder in a variable, assign the
/// result.
///
/// ```
/// use std::time::Duration;
///
/// let mut builder = selvedge::Builder::new_multi_thread();
/// builder = builder.worker_threads(2).max_blocking_threads(4).thread_stack_size(1 << 20);
/// builder = builder.thread_keep_alive(Duration::from_secs(1)).global_queue_interval(31);
/// builder = builder.enable_all();
/// assert_eq!(builder.build()?.metrics().workers, 2);
/// # Ok::<(), std::io::Error>(())
/// ```
impl Builder {
    /// As [`new`](Self::new).
    pub fn new_multi_thread() -> Self {
        Self::new()
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
    /// let runtime = selvedge::runtime::Builder::new_current_thread().build()?;
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

    /// As [`workers`](Self::workers).
    ///
    /// # Panics
    /// If `workers` is 0, or above 65,535.
    #[track_caller]
    pub fn worker_threads(self, workers: usize) -> Self {
        self.workers(workers)
    }

    /// As [`blocking_threads`](Self::blocking_threads).
    ///
    /// # Panics
    /// If `threads` is 0.
    #[track_caller]
    pub fn max_blocking_threads(self, threads: usize) -> Self {
        self.blocking_threads(threads)
    }

    /// As [`blocking_keep_alive`](Self::blocking_keep_alive).
    pub fn thread_keep_alive(self, limit: Duration) -> Self {
        self.blocking_keep_alive(limit)
    }

    /// As [`stack_size`](Self::stack_size).
    pub fn thread_stack_size(self, bytes: usize) -> Self {
        self.stack_size(bytes)
    }

    /// As [`global_interval`](Self::global_interval).
    ///
    /// # Panics
    /// If `ticks` is 0.
    #[track_caller]
    pub fn global_queue_interval(self, ticks: u32) -> Self {
        self.global_interval(ticks)
    }

    /// Does nothing: sockets and timers are always enabled, by the features `net` and `time`. They
    /// cost nothing before the first socket or sleep.
    pub fn enable_all(self) -> Self {
        self
    }

    /// Lets [`build`](Self::build) make the kernel objects that sockets need. If the kernel refuses
    /// them, `build` returns the error. Sockets also work without this setting: the first socket
    /// then makes these objects, and the call that makes the socket returns the error. This method
    /// exists where sockets exist: with the feature `net`, on Unix.
    ///
    /// ```
    /// use selvedge::net::TcpListener;
    ///
    /// let runtime = selvedge::runtime::Builder::new_multi_thread().enable_io().build()?;
    /// let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    /// assert_ne!(listener.local_addr()?.port(), 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(all(feature = "net", unix, not(any(selvedge_loom, selvedge_shuttle))))]
    pub fn enable_io(mut self) -> Self {
        self.enable_io = true;
        self
    }

    /// Returns the builder as it is: timers work in every runtime. This method exists where timers
    /// exist: with the feature `time`.
    ///
    /// ```
    /// use selvedge::time::{Duration, sleep};
    ///
    /// let runtime = selvedge::runtime::Builder::new_current_thread().enable_time().build()?;
    /// runtime.block_on(sleep(Duration::from_millis(1)));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg(feature = "time")]
    pub fn enable_time(self) -> Self {
        self
    }
}
