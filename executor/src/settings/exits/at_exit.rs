//! `at_exit`, and the steps of the exit: those of the runtime's owner, and those of the task that
//! runs the futures. [`exits`](super) has the rules.
use super::time_until;
use crate::{
    Handle, Runtime,
    settings::hooks::TaskMeta,
    worker::{
        scheduler::{Scheduler, Task},
        shared::Shared,
    },
};
use std::{
    future::{Future, poll_fn},
    task::Poll,
    time::{Duration, Instant},
};
use sync_shim::sync::Arc;

impl Handle {
    /// Runs a future at the runtime's end, as [`Runtime::at_exit`] does.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
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
    /// Runs a future at the runtime's end, while the runtime's other tasks still run.
    ///
    /// At its end, the runtime first refuses spawns. Then it runs these futures one after another,
    /// the newest first. Finally it drops the tasks that are left.
    ///
    /// Such a future may wait for tasks that were spawned before the end, for timers and for
    /// sockets. It may call [`spawn_blocking`](crate::spawn_blocking). It may also call
    /// [`Handle::at_exit`]: the added future runs next. Tasks that the future spawns are cancelled.
    /// If the future panics, the panic goes to the hook for panics, and the next future runs.
    ///
    /// The drop of the runtime waits for these futures, without a limit, unless the thread may not
    /// block there: in a task of the runtime, say.
    /// [`shutdown_timeout`](Self::shutdown_timeout) waits up to its limit, and then drops the
    /// futures that are left. [`shutdown_background`](Self::shutdown_background), and a drop that
    /// may not wait, drop the futures at once. The futures are also dropped if a
    /// panic shuts the runtime down, if the runtime is over already, or if a driven worker is
    /// dropped before the runtime's end. A runtime of driven workers ends when the workers have run
    /// the futures. The drop of such a runtime does not wait for that.
    ///
    /// With the feature `groups`, these futures run in the group `atexit`. The runtime makes this
    /// group at its end, with 1000 shares, as many as main has.
    ///
    /// A call costs an allocation and a lock.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let runtime = selvedge_executor::Runtime::new()?;
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

    /// Runs the futures of `at_exit` until the deadline. Returns whether the caller must close the
    /// runtime afterwards (rule 3).
    pub(crate) fn exit(&self, deadline: Option<Instant>) -> bool {
        let shared = self.handle.shared();
        if time_until(deadline) == Some(Duration::ZERO) || !shared.exits.begin() {
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
    let task = task_header::new_detached(run_futures(shared.clone()), Scheduler::at_exit(shared));
    shared.injector.count_spawned(1);
    let hooks = &shared.hooks;
    hooks.call_task_hook(&hooks.on_spawn, TaskMeta::of(&task));
    task
}

/// Runs the futures, the newest first, and then closes the runtime (rule 2).
async fn run_futures(shared: Arc<Shared>) {
    while let Some(future) = shared.exits.next() {
        let mut future = Some(future);
        poll_fn(|cx| {
            // A panic leaves this value, so a future that panics has ended.
            let mut polled = Poll::Ready(());
            if let Some(future) = &mut future {
                shared.hooks.contain(|| polled = future.as_mut().poll(cx));
            }
            if polled.is_ready() {
                let ended = future.take();
                shared.hooks.contain(|| drop(ended));
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
        for future in self.exits.end() {
            self.hooks.contain(|| drop(future));
        }
    }
}
