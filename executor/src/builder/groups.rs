//! The settings for scheduling groups.
use crate::{Builder, groups::ClockSource};
use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

impl Builder {
    /// Sets the quota: how long a scheduling group has its turn while other groups have tasks to
    /// run. 0.5 ms by default.
    ///
    /// A turn ends between two polls. With a shorter quota a group waits less for its turn, and
    /// workers switch groups more often. With a quota of zero, workers switch after each poll.
    ///
    /// ```
    /// let quota = std::time::Duration::from_micros(200);
    /// let runtime = selvedge_executor::Builder::new().workers(1).group_quota(quota).build()?;
    /// let group = runtime.group("batch").build().unwrap();
    /// let task = selvedge_executor::spawn_in(&group, async { 7 }).unwrap();
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn group_quota(mut self, quota: Duration) -> Self {
        self.groups.quota = quota;
        self
    }

    /// Sets whether workers steal no tasks from each other. By default workers steal.
    ///
    /// Without steals each task stays on one worker, its *home*. So the shares of groups are exact
    /// on each worker, and a worker never gets the work of another one. The home of a task that
    /// another task spawned is the worker of that other task, unless the spawning poll has lost its
    /// worker, as in `block_in_place`. Such a task, and one from outside, goes to any worker, which
    /// becomes its home. A woken task goes back to its home, whichever thread wakes
    /// it: a worker that serves the timers and sockets of all, a task of another worker, or a
    /// thread from outside. A wake by another thread than the home's costs a push into the home's
    /// inbox, and an unpark if the home sleeps. A burst of such wakes unparks the home once.
    ///
    /// While a poll of the home takes long, its other tasks wait, as no other worker runs them. A
    /// poll that [blocks in place](crate::block_in_place()) gives the worker away: another thread
    /// then runs the home's tasks, and the worker is their home as before. The task that blocks is
    /// back on that worker after its next wait. A task that blocks in its first poll has no home
    /// yet: after its next wait it goes to any worker, which becomes its home.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(2).sharded(true).build()?;
    /// assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
    /// assert_eq!(runtime.snapshot().stolen_tasks, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn sharded(mut self, on: bool) -> Self {
        self.groups.sharded = on;
        self
    }

    /// Sets the clock of the scheduling groups to a number of nanoseconds that the user counts up.
    /// This is for tests and simulations. By default the groups use the system's clock.
    ///
    /// ```
    /// use selvedge_executor::spawn_in;
    /// use std::{sync::{Arc, atomic::{AtomicU64, Ordering::Relaxed}}, time::Duration};
    ///
    /// let time = Arc::new(AtomicU64::new(0));
    /// let runtime = selvedge_executor::Builder::new().workers(1).group_clock(time.clone()).build()?;
    /// let group = runtime.group("batch").build().unwrap();
    /// let task = spawn_in(&group, async move { time.fetch_add(1_000_000, Relaxed) });
    /// runtime.block_on(task.unwrap()).unwrap();
    /// while runtime.snapshot().groups[1].runtime < Duration::from_millis(1) {
    ///     std::thread::yield_now(); // The time is charged when the turn ends.
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn group_clock(mut self, nanoseconds: Arc<AtomicU64>) -> Self {
        self.groups.clock = ClockSource::Manual(nanoseconds);
        self
    }
}
