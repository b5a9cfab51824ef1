//! `at_exit`: the owner's and the task's parts of the exit, by the rules of [`exits`](super).
use super::left;
use crate::{
    Handle, Runtime,
    hooks::TaskMeta,
    scheduler::{Scheduler, Task},
    shared::Shared,
};
use std::{
    future::{Future, poll_fn},
    task::Poll,
    time::{Duration, Instant},
};
use sync_shim::{atomic::Ordering::Relaxed, sync::Arc};

impl Handle {
    /// Runs a future at the runtime's end, as [`Runtime::at_exit`].
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// runtime.handle().at_exit(async move { sender.send("over").unwrap() });
    /// drop(runtime);
    /// assert_eq!(receiver.recv(), Ok("over"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn at_exit<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        // The future is dropped here if the runtime is over.
        let _ = self.shared().exits.add(Box::pin(future));
    }
}

impl Runtime {
    /// Runs a future at the runtime's end, while its other tasks still run.
    ///
    /// The end refuses spawns first. Then it runs these futures one after another, the one that was
    /// added last first, and after that it drops the tasks that are left. A future may wait for
    /// tasks that were spawned before, for timers and for sockets. It may run closures by
    /// [`spawn_blocking`](crate::spawn_blocking), and add another future by [`Handle::at_exit`],
    /// which runs next. Tasks that it spawns are cancelled. A panic goes to the hook for panics,
    /// and the next future runs.
    ///
    /// The drop of the runtime waits for these futures, without a limit.
    /// [`shutdown_timeout`](Self::shutdown_timeout) drops them when it has waited for its limit.
    /// [`shutdown_background`](Self::shutdown_background), and a drop of the runtime that does not
    /// wait, drop them at once. They are also dropped if a panic shuts the runtime down, if the
    /// runtime is over already, and if a driven worker is dropped before its end. A runtime of
    /// driven workers ends when the workers have run the futures: its drop does not wait for that.
    ///
    /// With the feature `groups` they run in the group `atexit`, which is made at the end with 1000
    /// shares, as many as main has.
    ///
    /// It costs an allocation and a lock.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = selvedge::Runtime::new()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// let (log, store) = (sender.clone(), sender);
    /// runtime.at_exit(async move { log.send("the log is flushed").unwrap() });
    /// runtime.at_exit(async move { store.send("the store is closed").unwrap() });
    /// assert!(runtime.shutdown_timeout(Duration::from_secs(600)));
    /// let done: Vec<_> = receiver.iter().collect();
    /// assert_eq!(done, ["the store is closed", "the log is flushed"]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn at_exit<F>(&self, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.handle.at_exit(future);
    }

    /// Runs the futures of `at_exit`, until the deadline. Returns whether the caller must then
    /// close the runtime (rule 3).
    pub(crate) fn exit(&self, deadline: Option<Instant>) -> bool {
        let shared = self.handle.shared();
        if left(deadline) == Some(Duration::ZERO) || !shared.exits.begin() {
            return true;
        }
        shared.refuse_spawns();
        shared.take_in(exit_task(shared));
        if let Some(worker) = &self.current_thread {
            worker.run_until(|| shared.is_closing(), deadline);
        } else if self.is_driven && deadline.is_none() {
            return false;
        } else {
            shared.exits.wait(deadline);
        }
        true
    }
}

/// Makes the task that runs the futures (rule 1).
fn exit_task(shared: &Arc<Shared>) -> Task {
    let task = task_header::new_detached(run(shared.clone()), scheduler(shared));
    // Ordering: Relaxed, as it is only a count.
    shared.spawned_outside.fetch_add(1, Relaxed);
    let hooks = &shared.hooks;
    hooks.call_with(&hooks.on_spawn, TaskMeta::of(&task));
    task
}

#[cfg(not(feature = "groups"))]
fn scheduler(shared: &Shared) -> Scheduler {
    Scheduler::of(shared)
}

#[cfg(feature = "groups")]
fn scheduler(shared: &Shared) -> Scheduler {
    shared.groups.enter_at_exit()
}

async fn run(shared: Arc<Shared>) {
    while let Some(exit) = shared.exits.next() {
        let mut exit = Some(exit);
        poll_fn(|cx| {
            let mut polled = Poll::Ready(());
            if let Some(exit) = &mut exit {
                shared.hooks.contain(|| polled = exit.as_mut().poll(cx));
            }
            if polled.is_ready() {
                let done = exit.take();
                shared.hooks.contain(|| drop(done));
            }
            polled
        })
        .await;
    }
    shared.close();
}

impl Shared {
    /// Ends the exit at the close of the runtime (rule 4).
    pub(crate) fn end_exit(&self) {
        if self.exits.is_used() {
            for left in self.exits.end() {
                self.hooks.contain(|| drop(left));
            }
        }
    }
}
