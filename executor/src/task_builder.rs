//! `TaskBuilder`: spawns tasks that have a name.
use crate::{Handle, JoinHandle, LocalSet, local};
use std::{borrow::Cow, future::Future, panic::Location};

/// Spawns tasks that keep a name and the place of their spawn, for about 150 bytes more each.
///
/// A task's handles return the name and the place, and a report of a stall has both. With the
/// feature `tracing` the task's span has them as well. The spawn and the end of such a task take a
/// lock of the runtime.
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let builder = selvedge_executor::TaskBuilder::new().name("answer");
/// let task = runtime.block_on(async { builder.spawn(async { 42 }) });
/// assert_eq!(task.name(), Some("answer"));
/// assert_eq!(task.location().unwrap().file(), file!());
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a builder does nothing before it spawns"]
pub struct TaskBuilder {
    name: Cow<'static, str>,
}

impl TaskBuilder {
    /// Makes a builder whose tasks have an empty name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the name of the tasks.
    pub fn name(mut self, name: impl Into<Cow<'static, str>>) -> Self {
        self.name = name.into();
        self
    }

    /// Spawns a task on the current runtime, as [`spawn`](crate::spawn()).
    ///
    /// # Panics
    /// If this thread is in no runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.spawn_on(future, &Handle::current())
    }

    /// Spawns a task on the runtime of `handle`.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let builder = selvedge_executor::TaskBuilder::new().name("answer");
    /// let task = builder.spawn_on(async { 42 }, runtime.handle());
    /// assert_eq!(runtime.block_on(task).unwrap(), 42);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        handle.spawn_special(Some(self.name), future, Location::caller())
    }

    /// Spawns a task on the current local set, as [`spawn_local`](crate::spawn_local()).
    ///
    /// ```
    /// let runtime = selvedge_executor::LocalRuntime::new()?;
    /// let builder = selvedge_executor::TaskBuilder::new().name("here");
    /// let task = runtime.block_on(async { builder.spawn_local(async { 1 }) });
    /// assert_eq!(task.name(), Some("here"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If this thread polls neither a [`LocalSet`] nor a [`LocalRuntime`](crate::LocalRuntime).
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: 'static> + 'static,
    {
        local::spawn_in(
            &local::current(),
            Some(self.name),
            future,
            Location::caller(),
        )
    }

    /// Spawns a task into a local set, as [`LocalSet::spawn_local`].
    ///
    /// ```
    /// use selvedge_executor::{LocalSet, Runtime, TaskBuilder};
    ///
    /// let (runtime, set) = (Runtime::new()?, LocalSet::new());
    /// let task = TaskBuilder::new().name("there").spawn_local_on(async { 1 }, &set);
    /// assert_eq!(task.name(), Some("there"));
    /// assert_eq!(set.block_on(&runtime, task).unwrap(), 1);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, set: &LocalSet) -> JoinHandle<F::Output>
    where
        F: Future<Output: 'static> + 'static,
    {
        set.spawn_named(self.name, future)
    }

    /// Runs a closure on a blocking thread of a runtime, as [`Handle::spawn_blocking`].
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let builder = selvedge_executor::TaskBuilder::new().name("read");
    /// let task = builder.spawn_blocking_on(|| 1, runtime.handle());
    /// assert_eq!(task.name(), Some("read"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_blocking_on<F, R>(self, f: F, handle: &Handle) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        handle.spawn_blocking_as(Some(self.name), f, Location::caller())
    }

    /// Runs a closure on a blocking thread of the current runtime, as
    /// [`spawn_blocking`](crate::spawn_blocking()).
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let _entered = runtime.enter();
    /// let task = selvedge_executor::TaskBuilder::new().name("read").spawn_blocking(|| 1);
    /// assert_eq!(task.name(), Some("read"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If this thread is in no runtime.
    #[track_caller]
    pub fn spawn_blocking<F, R>(self, f: F) -> JoinHandle<R>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Handle::current().spawn_blocking_as(Some(self.name), f, Location::caller())
    }
}
