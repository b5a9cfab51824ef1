//! The spawn path: from a future to a queue, by a task or by a handle.
//!
//! A hook for spawns, a subscriber of `tracing` and the drop of a refused future are user code:
//! nothing borrows a core across them.
use crate::{
    Handle,
    observe::{
        task_list::{Entry, TaskList},
        trace::{self, TaskKind},
    },
    settings::hooks::TaskMeta,
    worker::{
        context::{self, with_core},
        core::Core,
        scheduler::{Scheduler, Task},
        shared::{Attached, PanicReporter, Shared},
    },
};
use queue_global::{Injector, List};
use std::{borrow::Cow, future::Future, mem, panic::Location, ptr};
use task_header::{JoinHandle, Node};
use worker_queue::RunQueue;

impl Handle {
    /// Spawns a task, which runs whether its handle is awaited or not.
    ///
    /// A panic of the task goes to the handle as a [`JoinError`](crate::JoinError). Dropping the
    /// handle detaches the task. From a thread that is not a worker of the runtime, a spawn costs
    /// one allocation, two read-modify-writes and a fence. To wake a sleeper costs two more
    /// read-modify-writes and an unpark.
    ///
    /// # Panics
    /// In a child made by [`fork`](crate::Runtime#fork).
    // Not inlined, for the reason of `spawn_on`.
    #[inline(never)]
    #[track_caller]
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let shared = self.shared();
        let queue = |task| shared.submit(task);
        let to = || Scheduler::inherited(shared);
        self.spawn_to_queue(to, future, Location::caller(), queue)
    }

    /// Spawns a task with the scheduler that `to` returns, one of this runtime, and gives the task
    /// to `queue`. If hooks or subscribers observe spawns, the task takes the slow path instead.
    #[inline]
    pub(crate) fn spawn_to_queue<F>(
        &self,
        to: impl FnOnce() -> Scheduler,
        future: F,
        at: &'static Location<'static>,
        queue: impl FnOnce(Task),
    ) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let shared = self.shared();
        if shared.observes_spawns() {
            return self.spawn_special_to(to, None, future, at);
        }
        let (task, join) = task_header::new(future, to());
        trace::spawn_at(shared, &task, at);
        queue(task);
        join
    }

    /// Spawns a task without a join handle.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let (sender, receiver) = std::sync::mpsc::channel();
    /// runtime.spawn_detached(async move { sender.send(7).unwrap() });
    /// assert_eq!(receiver.recv().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_detached<F>(&self, future: F)
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let shared = self.shared();
        if shared.observes_spawns() {
            drop(self.spawn_special(None, future, Location::caller()));
        } else {
            let task = task_header::new_detached(future, Scheduler::inherited(shared));
            trace::spawn(shared, &task);
            shared.submit(task);
        }
    }

    /// Spawns a task for each future, and puts the handles into `handles`.
    ///
    /// A thread that is no worker of the runtime queues up to 500 tasks at a time, with one
    /// read-modify-write, and wakes one worker for them. That worker takes its share and wakes the
    /// next one. So one call is cheaper than as many calls of [`spawn`](Self::spawn), but the first
    /// task runs later. A worker of the runtime puts each task into its own queue, as `spawn` does.
    ///
    /// A task may begin only when 500 more were made, or when the iterator has ended. So `futures`
    /// and `handles` must not wait for these tasks.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let mut squares = Vec::new();
    /// runtime.handle().spawn_many((0..10).map(|n| async move { n * n }), &mut squares);
    /// let sum = runtime.block_on(async {
    ///     let mut sum = 0;
    ///     for square in squares {
    ///         sum += square.await.unwrap();
    ///     }
    ///     sum
    /// });
    /// assert_eq!(sum, 285);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If the iterator or `handles` panics. The tasks that were spawned until then run.
    #[track_caller]
    pub fn spawn_many<F>(
        &self,
        futures: impl IntoIterator<Item = F>,
        handles: &mut impl Extend<JoinHandle<F::Output>>,
    ) where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let (shared, at) = (self.shared(), Location::caller());
        shared.assert_is_not_in_forked_child("spawn_many");
        let mut batch = Batch {
            shared,
            to: shared.injector.mine(),
            tasks: List::new(),
        };
        handles.extend(futures.into_iter().map(|future| {
            let to = || Scheduler::inherited(shared);
            self.spawn_to_queue(to, future, at, |task| batch.add(task))
        }));
    }

    /// Spawns a task that has a name or is listed, or that a hook or a subscriber of `tracing`
    /// observes.
    #[cold]
    #[track_caller]
    pub(crate) fn spawn_special<F>(
        &self,
        name: Option<Cow<'static, str>>,
        future: F,
        at: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let to = || Scheduler::inherited(self.shared());
        self.spawn_special_to(to, name, future, at)
    }

    #[track_caller]
    fn spawn_special_to<F>(
        &self,
        to: impl FnOnce() -> Scheduler,
        name: Option<Cow<'static, str>>,
        future: F,
        at: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.shared().assert_is_not_in_forked_child("spawn");
        let (span, future) = trace::trace(TaskKind::Task, name.as_deref(), at, future);
        let (shared, to) = (self.shared(), to());
        let is_listed = name.is_some() || shared.settings.lists_tasks;
        let list = || {
            let ours = |core: &Core| ptr::eq(&*core.shared, &**shared).then_some(core.index);
            // SAFETY: the task that has entered the group keeps it in memory.
            let entry = Entry::new(name.clone(), at, unsafe { to.group_ref() });
            TaskList::add(&shared.tasks, with_core(ours).flatten(), entry)
        };
        let attached = Attached {
            reporter: PanicReporter::by(shared),
            listed: is_listed.then(list),
        };
        let builder = task_header::Builder::new().metadata(attached).location(at);
        let (task, join) = match name {
            None => builder.spawn(future, to),
            Some(name) => builder.name(name).spawn(future, to),
        };
        if let Some(listed) = Attached::listed(&task) {
            listed.observe(&task);
        }
        span.record_id(&task.id());
        trace::spawn_named(shared, &task, at);
        let hooks = &shared.hooks;
        hooks.call_task_hook(&hooks.on_spawn, TaskMeta::new(task.id(), Some(at)));
        shared.submit(task);
        join
    }
}

/// Tasks of a [`Handle::spawn_many`] that are not queued yet. The drop queues them.
struct Batch<'a> {
    shared: &'a Shared,
    /// The injector for all of these tasks.
    to: &'a Injector<Node<Scheduler>>,
    tasks: List<Node<Scheduler>>,
}

impl Batch<'_> {
    /// The most tasks that the batch holds back before it queues them.
    const LIMIT: usize = 500;

    fn add(&mut self, task: Task) {
        let Some(task) = self.shared.accept_on_worker(task) else {
            return;
        };
        let to = self.shared.injector_of(&task);
        if !ptr::eq(to, self.to) || self.tasks.len() == Self::LIMIT {
            self.queue();
            self.to = to;
        }
        self.tasks.push_back(task);
    }

    fn queue(&mut self) {
        let tasks = mem::replace(&mut self.tasks, List::new());
        if !tasks.is_empty() {
            self.shared.inject_batch(self.to, tasks);
        }
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        self.queue();
    }
}

impl Shared {
    /// Queues a task in the slot if this thread is a worker, or else in the injector. Once the
    /// runtime is closing, the task is cancelled here.
    #[track_caller]
    pub(crate) fn submit(&self, task: Task) {
        if let Some(task) = self.accept_on_worker(task) {
            self.inject(task);
        }
    }

    /// Queues a task in the slot if this thread is a worker. Otherwise returns it.
    fn accept_on_worker(&self, task: Task) -> Option<Task> {
        let mut task = Some(task);
        with_core(|core| {
            if ptr::eq(&*core.shared, self) {
                task = task.take().and_then(|task| core.accept(task));
            }
        });
        task
    }
}

/// Returns this thread's core if it has one, and nobody observes or redirects the core's spawns.
/// The caller runs no user code while it uses the reference, except in its last use.
#[inline]
fn core_of_plain_spawn<'a>() -> Option<&'a Core> {
    // SAFETY: guaranteed by the rule of this function.
    let core = unsafe { context::core() }?;
    (!core.special_spawns.get() && !trace::enabled()).then_some(core)
}

impl Shared {
    /// Returns whether a hook, the list of tasks or a subscriber of `tracing` observes spawns.
    #[inline]
    fn observes_spawns(&self) -> bool {
        self.settings.special_spawns || trace::enabled()
    }
}

impl Core {
    /// Queues a new task, or returns it if the runtime refuses spawns.
    pub(crate) fn accept(&self, task: Task) -> Option<Task> {
        if self.shared.refuses_spawns() {
            return Some(task);
        }
        self.counters().spawns.add(1);
        RunQueue::push_next(&self.queue, task, self);
        None
    }

    /// As [`accept`](Self::accept), for a task with [`plain_scheduler`](Self::plain_scheduler).
    #[inline]
    pub(crate) fn accept_plain(&self, task: Task) -> Option<Task> {
        if self.shared.refuses_spawns() {
            return Some(task);
        }
        self.counters().spawns.add(1);
        self.plain().push_next(task, self);
        None
    }
}

/// Spawns on a worker. This function is not inlined: inlined code moves the handle among the
/// caller's variables, and these moves cost as much as the rest of the spawn.
///
/// # Safety
/// `core` is this thread's core. The argument is a pointer because the drop of a refused future may
/// lend the core: a reference would have to be valid until this function returns.
#[inline(never)]
#[cfg_attr(feature = "recorder", track_caller)]
unsafe fn spawn_on<F>(core: *const Core, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    // SAFETY: the caller's promise. The reference is not used after the drop of a refused future.
    let core = unsafe { &*core };
    let Some(scheduler) = core.plain_scheduler() else {
        // SAFETY: as above.
        return unsafe { spawn_on_sharing(core, future) };
    };
    let (task, join) = task_header::new(future, scheduler);
    trace::spawn(&core.shared, &task);
    drop(core.accept_plain(task));
    join
}

/// Spawns on a worker that shares its time among groups.
///
/// # Safety
/// As for [`spawn_on`].
#[cold]
#[inline(never)]
#[cfg_attr(feature = "recorder", track_caller)]
unsafe fn spawn_on_sharing<F>(core: *const Core, future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    // SAFETY: the caller's promise, as in `spawn_on`.
    let core = unsafe { &*core };
    let (task, join) = task_header::new(future, Scheduler::inherited_on(core));
    trace::spawn(&core.shared, &task);
    drop(core.accept(task));
    join
}

/// Spawns a task on the current runtime; see [`Handle::spawn`]. A spawn by a task costs one
/// allocation and no read-modify-write. If it displaces another task from the LIFO slot, it costs
/// one read-modify-write and a `SeqCst` fence. The first spawn that fills a slot wakes a sleeper,
/// which watches the slots from then on.
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let seven = runtime.block_on(async { selvedge_executor::spawn(async { 7 }).await.unwrap() });
/// assert_eq!(seven, 7);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// Outside a runtime, also in a [`LocalSet`](crate::LocalSet) that no runtime polls.
#[track_caller]
pub fn spawn<F>(future: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    match core_of_plain_spawn() {
        Some(core) => {
            // SAFETY: `core` is this thread's core, by the call above.
            unsafe { spawn_on(core, future) }
        }
        _ => Handle::current().spawn(future),
    }
}

/// Spawns a task without a join handle on the current runtime. This costs what [`spawn`] costs.
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let (sender, receiver) = std::sync::mpsc::channel();
/// runtime.block_on(async { selvedge_executor::spawn_detached(async move { sender.send(7).unwrap() }) });
/// assert_eq!(receiver.recv().unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// Outside a runtime, also in a [`LocalSet`](crate::LocalSet) that no runtime polls.
#[track_caller]
pub fn spawn_detached<F>(future: F)
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    match core_of_plain_spawn() {
        Some(core) => {
            let task = task_header::new_detached(future, Scheduler::inherited_on(core));
            trace::spawn(&core.shared, &task);
            drop(core.accept(task));
        }
        _ => Handle::current().spawn_detached(future),
    }
}

/// Runs `f` on the current runtime's threads for blocking work; see
/// [`Handle::spawn_blocking`].
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let read = runtime.block_on(async { selvedge_executor::spawn_blocking(|| std::fs::read("/dev/null")).await });
/// assert!(read.unwrap().is_ok());
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Panics
/// Outside a runtime, also in a [`LocalSet`](crate::LocalSet) that no runtime polls.
#[track_caller]
pub fn spawn_blocking<F, R>(f: F) -> JoinHandle<R>
where
    F: FnOnce() -> R + Send + 'static,
    R: Send + 'static,
{
    Handle::current().spawn_blocking(f)
}
