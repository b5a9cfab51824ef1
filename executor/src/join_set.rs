//! Many tasks that are waited for together, and how they get into the set.
use crate::{AbortHandle, Handle, JoinHandle, local};
use std::{
    fmt,
    future::Future,
    mem::take,
    ops::{Deref, DerefMut},
    panic::resume_unwind,
};

/// A set of tasks that are waited for together, in the order in which they get done.
///
/// It is a [`task_set::JoinSet`] which also spawns: what that can do it can do, too. Its drop aborts all that are in it.
///
/// ```
/// let runtime = selvedge::Runtime::new()?;
/// let sum = runtime.block_on(async {
///     let mut set = selvedge::JoinSet::new();
///     for n in 1..=10 {
///         set.spawn(async move { n });
///     }
///     let mut sum = 0;
///     while let Some(n) = set.join_next().await {
///         sum += n.unwrap();
///     }
///     sum
/// });
/// assert_eq!(sum, 55);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct JoinSet<T> {
    set: task_set::JoinSet<T>,
}

impl<T> JoinSet<T> {
    /// An empty set.
    pub fn new() -> Self {
        Self {
            set: task_set::JoinSet::new(),
        }
    }

    fn add(&mut self, task: JoinHandle<T>) -> AbortHandle {
        let abort = task.abort_handle();
        self.set.insert(task);
        abort
    }

    /// Waits for all tasks, and gives what came of them, in the order in which they got done.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let mut all = runtime.block_on(async {
    ///     let set: selvedge::JoinSet<u32> = (0..3).map(|n| async move { n * n }).collect();
    ///     set.join_all().await
    /// });
    /// all.sort();
    /// assert_eq!(all, [0, 1, 4]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// With a task's own panic; and when one was cancelled. The others are aborted.
    pub async fn join_all(mut self) -> Vec<T> {
        let joined = take(&mut self.set).join_all().await;
        joined.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            Err(cancelled) => panic!("{cancelled}"),
        })
    }
}

impl<T: Send + 'static> JoinSet<T> {
    /// Spawns a task on the current runtime and adds it. Costs as [`spawn`](crate::spawn()) does and what
    /// [`insert`](task_set::JoinSet::insert) does.
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.add(crate::spawn(future))
    }

    /// Spawns a task on another runtime and adds it.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let mut set = selvedge::JoinSet::new();
    /// set.spawn_on(async { 7 }, runtime.handle());
    /// assert_eq!(runtime.block_on(set.join_next()).unwrap().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn spawn_on<F>(&mut self, future: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.add(handle.spawn(future))
    }

    /// Runs a closure on the current runtime's threads for blocking work and adds it. One that has begun can't be aborted.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let seven = runtime.block_on(async {
    ///     let mut set = selvedge::JoinSet::new();
    ///     set.spawn_blocking(|| 7);
    ///     set.join_all().await
    /// });
    /// assert_eq!(seven, [7]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.add(crate::spawn_blocking(f))
    }

    /// As [`spawn_blocking`](Self::spawn_blocking), on another runtime.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let mut set = selvedge::JoinSet::new();
    /// set.spawn_blocking_on(|| 7, runtime.handle());
    /// assert_eq!(runtime.block_on(set.join_all()), [7]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[cfg_attr(feature = "tracing", track_caller)]
    pub fn spawn_blocking_on<F>(&mut self, f: F, handle: &Handle) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.add(handle.spawn_blocking(f))
    }
}

impl<T: 'static> JoinSet<T> {
    /// Spawns a task on the current local set and adds it.
    ///
    /// ```
    /// let runtime = selvedge::LocalRuntime::new();
    /// let seven = runtime.block_on(async {
    ///     let mut set = selvedge::JoinSet::new();
    ///     set.spawn_local(async { std::rc::Rc::new(7) });
    ///     set.join_all().await
    /// });
    /// assert_eq!(*seven[0], 7);
    /// ```
    ///
    /// # Panics
    /// Outside of a [`LocalSet`](crate::LocalSet) and a [`LocalRuntime`](crate::LocalRuntime).
    #[track_caller]
    pub fn spawn_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.add(local::spawn_local(future))
    }
}

impl<T> Deref for JoinSet<T> {
    type Target = task_set::JoinSet<T>;

    fn deref(&self) -> &Self::Target {
        &self.set
    }
}

impl<T> DerefMut for JoinSet<T> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.set
    }
}

impl<T> Default for JoinSet<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Spawns what comes, on the current runtime. For handles of tasks that are there already: `task_set::JoinSet`, or `extend`.
impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        let mut set = Self::new();
        for future in futures {
            set.spawn(future);
        }
        set
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.set.fmt(f)
    }
}
