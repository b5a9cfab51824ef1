//! The settings of the monitor.
use crate::Builder;
use std::time::Duration;

impl Builder {
    /// Sets whether the runtime has a monitor: a thread that watches the workers. It has one by
    /// default.
    ///
    /// The monitor
    ///
    /// - ends a worker's time slice after 10 ms: the polled task yields at its next operation, and
    ///   the tasks behind it have their turn;
    /// - hands a worker over to another thread if the worker's task is in a
    ///   [`syscall`](crate::syscall()) that takes long;
    /// - makes busy workers look at tasks from outside that have waited long;
    /// - fires timers and polls sockets when no worker waits for them and every awake worker is in
    ///   a long poll;
    /// - reports [long polls](Self::on_stall).
    ///
    /// The monitor looks at the workers every 1 to 10 ms while any worker is busy, and sleeps while
    /// all are idle. With `true` the monitor's thread starts in [`build`](Self::build). Without a
    /// call of this method, the thread starts when a worker has a second task to run, when a second
    /// worker starts, or when a task makes a `syscall`. So the monitor does not watch a worker's
    /// first task then. If the thread cannot be started, the runtime goes on without a monitor, and
    /// [`Snapshot::monitor_refused`](crate::Snapshot::monitor_refused) is 1. The monitor's thread
    /// does not call the [hooks for threads](Self::on_thread_start). A runtime with driven workers
    /// has no monitor.
    ///
    /// ```
    /// use selvedge::{Budget, Builder, task};
    ///
    /// // Without a limit of operations only the time slice lets the other task run.
    /// let runtime = Builder::new().workers(1).budget(Budget::UNLIMITED).monitor(true).build()?;
    /// let turns = runtime.spawn(async {
    ///     let (sender, receiver) = std::sync::mpsc::channel();
    ///     selvedge::spawn_detached(async move { sender.send(()).unwrap() });
    ///     selvedge::spawn_detached(async {}); // This task takes the LIFO slot.
    ///     while receiver.try_recv().is_err() {
    ///         task::consume_budget().await;
    ///     }
    /// });
    /// runtime.block_on(turns).unwrap();
    /// assert!(runtime.metrics().preempted > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "monitor")))]
    pub fn monitor(mut self, on: bool) -> Self {
        self.monitor.on = on;
        self.monitor.at_once = on;
        self
    }

    /// Sets a hook for long polls: by default those of 25 ms or longer.
    ///
    /// The monitor calls the hook in its own thread while the poll goes on, and again each time the
    /// poll's age has doubled. It calls the hook at most [five times a
    /// minute](Self::stall_reports_per_minute) over all workers. The hook must not block. With the
    /// feature `backtrace`, the lookup of the names on the [stack](crate::Stall) may take long, so
    /// the hook should leave the lookup to another thread. The monitor does not report a task in a
    /// [`syscall`](crate::syscall()), or one that [blocks in place](crate::block_in_place()) while
    /// another thread has its worker. Without a hook the report goes to standard error. With the
    /// feature `tracing` the report is also an event, with or without a hook.
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
    #[cfg_attr(docsrs, doc(cfg(feature = "monitor")))]
    pub fn stall_threshold(mut self, threshold: Duration) -> Self {
        self.monitor.threshold = threshold;
        self
    }

    /// Sets how many stalls are [reported](Self::on_stall) in a minute, over all workers. 5 by
    /// default. [`Snapshot::stalls`](crate::Snapshot::stalls) counts the other stalls, too. The
    /// next report says how many stalls were not reported.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().stall_reports_per_minute(u32::MAX).build()?;
    /// assert_eq!(runtime.metrics().stalls, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "monitor")))]
    pub fn stall_reports_per_minute(mut self, reports: u32) -> Self {
        self.monitor.reports_per_minute = reports;
        self
    }
}
