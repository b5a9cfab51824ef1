//! The settings for hooks, and for panics.
use crate::{Builder, UnhandledPanic, settings::hooks::TaskMeta};
use std::any::Any;

impl Builder {
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
    /// drop(selvedge_executor::Builder::new().workers(2).on_thread_start(hook).build()?);
    /// assert_eq!(threads.load(SeqCst), 2);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn on_thread_start(mut self, hook: impl Fn() + Send + Sync + 'static) -> Self {
        self.hooks.on_start = Some(std::sync::Arc::new(hook));
        self
    }

    /// Sets a hook that each thread of the runtime calls before it ends. By then the thread has
    /// left the runtime.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering::SeqCst}};
    ///
    /// let threads = Arc::new(AtomicU32::new(0));
    /// let count = threads.clone();
    /// let hook = move || drop(count.fetch_add(1, SeqCst));
    /// drop(selvedge_executor::Builder::new().workers(2).prestart().on_thread_stop(hook).build()?);
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
    /// let runtime = selvedge_executor::Builder::new().workers(1).on_thread_park(hook).build()?;
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
    /// let runtime = selvedge_executor::Builder::new().workers(1).on_thread_unpark(hook).build()?;
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
    /// let hook = move |task: selvedge_executor::TaskMeta<'_>| drop(sender.send(task.id()));
    /// let runtime = selvedge_executor::Builder::new().on_task_spawn(hook).build()?;
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
    /// let hook = move |task: selvedge_executor::TaskMeta<'_>| drop(sender.send(task.id()));
    /// let runtime = selvedge_executor::Builder::new().on_before_poll(hook).build()?;
    /// let task = runtime.spawn(selvedge_executor::yield_now());
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
    /// let hook = move |task: selvedge_executor::TaskMeta<'_>| drop(sender.send(task.id()));
    /// let runtime = selvedge_executor::Builder::new().on_after_poll(hook).build()?;
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
    /// When the hook runs, another task may have the same id already. The hook is not called for a
    /// task that the runtime refuses and drops at its spawn.
    ///
    /// ```
    /// let (sender, ended) = std::sync::mpsc::channel();
    /// let hook = move |task: selvedge_executor::TaskMeta<'_>| drop(sender.send(task.id()));
    /// let runtime = selvedge_executor::Builder::new().on_task_end(hook).build()?;
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
    /// that waits for the task. The thread where the panic surfaced calls the hook. If a task or a
    /// closure has panicked, that thread is in this runtime during the call, even if it belongs to
    /// another runtime. A panic of a poll or a closure also goes to the join handle. Tasks of a
    /// [`LocalSet`](crate::LocalSet) belong to no runtime: their panics go only to their handles.
    ///
    /// With this hook, or with a policy other than `Ignore`, each task counts as a reference to the
    /// runtime's memory. This costs two more read-modify-writes of a cache line that all tasks
    /// share, and a waker that outlives the runtime keeps the runtime's memory.
    ///
    /// ```
    /// let (sender, said) = std::sync::mpsc::channel();
    /// let hook = move |payload: &(dyn std::any::Any + Send)| {
    ///     drop(sender.send(payload.downcast_ref::<&str>().copied()));
    /// };
    /// let runtime = selvedge_executor::Builder::new().on_panic(hook).build()?;
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
    /// use selvedge_executor::{Builder, UnhandledPanic};
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
}
