//! The builder's settings of the monitor.
use crate::Builder;
use std::time::Duration;

impl Builder {
    /// Sets whether the runtime has a monitor: a thread that watches the workers. By default the
    /// runtime has one.
    ///
    /// The monitor
    ///
    /// - ends a worker's time slice after 10 ms: the polled task yields at its next operation, and
    ///   the worker runs its other tasks;
    /// - hands a worker over to another thread if the worker's task is in a
    ///   [`syscall`](crate::syscall()) that takes long;
    /// - makes busy workers look at the injector if tasks wait there and no worker takes any;
    /// - fires timers and polls sockets if no worker waits for them: at once if a worker is idle
    ///   (the monitor then also wakes that worker), or else once a timer has been due for 5 ms, or
    ///   no worker has polled the sockets for that long;
    /// - reports [long polls](Self::on_stall).
    ///
    /// The monitor looks at the workers every 1 to 10 ms while any worker is busy. When all workers
    /// have been idle for a while, the monitor sleeps.
    ///
    /// With `monitor(true)`, [`build`](Self::build) starts the monitor's thread. By default the
    /// thread starts later, at the first of these events:
    ///
    /// - A worker that has run a task looks for the next one and finds it. If
    ///   [`global_interval`](Self::global_interval) is set, a worker starts the monitor's thread
    ///   only at the end of an interval, and only if it then finds a task.
    /// - A worker other than the first one starts.
    /// - A task calls `syscall`.
    /// - There is a first timer or socket.
    ///
    /// Until the thread starts, no poll is watched. For example, a long first poll may go
    /// unreported.
    ///
    /// With `monitor(false)`, a sleeping worker or a thread in `block_on` serves timers and sockets
    /// if the workers that are awake do not. For this it wakes up every 5 ms, until the runtime has
    /// been idle for 50 ms.
    ///
    /// If the thread cannot be started, the runtime works without a monitor, and
    /// [`Snapshot::monitor_refusals`](crate::Snapshot::monitor_refusals) is 1. The monitor's thread
    /// calls no [hooks for threads](Self::on_thread_start). A runtime with
    /// [driven workers](Self::build_driven) has no monitor.
    ///
    /// ```
    /// use selvedge_executor::{Budget, Builder};
    ///
    /// // The budget is unlimited, so only the end of a time slice makes the first task yield.
    /// let runtime = Builder::new().workers(1).budget(Budget::UNLIMITED).monitor(true).build()?;
    /// let turns = runtime.spawn(async {
    ///     let (sender, receiver) = std::sync::mpsc::channel();
    ///     selvedge_executor::spawn_detached(async move { sender.send(()).unwrap() });
    ///     // This task displaces the sending task from the LIFO slot.
    ///     selvedge_executor::spawn_detached(async {});
    ///     while receiver.try_recv().is_err() {
    ///         coop_budget::consume().await;
    ///     }
    /// });
    /// runtime.block_on(turns).unwrap();
    /// assert!(runtime.snapshot().preemptions > 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn monitor(mut self, on: bool) -> Self {
        self.monitor.on = on;
        self.monitor.at_once = on;
        self
    }

    /// Sets a hook that gets a report of each long poll.
    ///
    /// A poll is long if it has lasted for 25 ms, or for the time that
    /// [`stall_threshold`](Self::stall_threshold) sets. The time in which its thread waits for a
    /// CPU doesn't count, as far as the system reports it. The monitor calls the hook while the
    /// poll still goes on, and again each time the poll's age has doubled. By default it calls the
    /// hook at most [five times a minute](Self::stall_reports_per_minute), over all workers.
    ///
    /// The monitor calls the hook in its own thread, so the hook must not block. In a program that
    /// depends on `sched-monitor` with its feature `backtrace`, a report has the
    /// [stack](crate::Stall) of the worker's thread. The lookup of the functions' names on that
    /// stack may take long, so the hook should leave the lookup to another thread.
    ///
    /// The monitor does not report a poll that is in a [`syscall`](crate::syscall()). Nor does it
    /// report a poll that [blocks in place](crate::block_in_place()), once another thread has taken
    /// the worker over.
    ///
    /// Without a hook the report goes to standard error. With the feature `tracing` the report is
    /// also an event, with or without a hook.
    ///
    /// If this hook is set and the [monitor](Self::monitor) is on, `build` starts the monitor's
    /// thread.
    ///
    /// ```
    /// use selvedge_executor::{Builder, Cause, Stall};
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
    pub fn on_stall(mut self, hook: impl Fn(&crate::Stall) + Send + Sync + 'static) -> Self {
        self.monitor.on_stall = Some(std::sync::Arc::new(hook));
        self.monitor.at_once = true;
        self
    }

    /// Sets how long a poll lasts before the monitor [reports](Self::on_stall) it. 25 ms by
    /// default.
    ///
    /// ```
    /// let rarely = std::time::Duration::from_secs(1);
    /// let runtime = selvedge_executor::Builder::new().stall_threshold(rarely).build()?;
    /// runtime.spawn_detached(async { std::thread::sleep(std::time::Duration::from_millis(50)) });
    /// assert_eq!(runtime.snapshot().stalls, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stall_threshold(mut self, threshold: Duration) -> Self {
        self.monitor.threshold = threshold;
        self
    }

    /// Sets how many [reports of long polls](Self::on_stall) the monitor makes in a minute at most,
    /// over all workers. 5 by default.
    ///
    /// The monitor holds further reports back. The next report says how many were held back, and
    /// from then on [`Snapshot::stalls`](crate::Snapshot::stalls) counts them too.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().stall_reports_per_minute(u32::MAX).build()?;
    /// assert_eq!(runtime.snapshot().stalls, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn stall_reports_per_minute(mut self, reports: u32) -> Self {
        self.monitor.reports_per_minute = reports;
        self
    }
}
