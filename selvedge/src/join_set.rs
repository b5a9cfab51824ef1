//! `JoinSet`: tasks that are awaited together, with methods that spawn them.
use crate::{AbortHandle, Handle, Id, JoinError, JoinHandle, LocalSet};
use std::{
    fmt,
    future::Future,
    mem::take,
    ops::{Deref, DerefMut},
    panic::resume_unwind,
    task::{Context, Poll},
};

/// Set of tasks that are awaited together, in the order in which they end.
///
/// The set spawns tasks, and has the methods of [`task_set::JoinSet`] as well. The drop of the set
/// aborts all of its tasks.
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
    /// Makes an empty set.
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

    /// Waits for all tasks, and returns their outputs in the order in which the tasks ended.
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
    /// If a task panicked or was cancelled. A task's panic is resumed with its payload. The other
    /// tasks are aborted.
    pub async fn join_all(mut self) -> Vec<T> {
        let joined = take(&mut self.set).join_all().await;
        joined.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            Err(cancelled) => panic!("{cancelled}"),
        })
    }
}

impl<T: Send + 'static> JoinSet<T> {
    /// Spawns a task on the current runtime and adds it.
    ///
    /// This costs a [`spawn`](crate::spawn()) and an [`insert`](task_set::JoinSet::insert).
    ///
    /// # Panics
    /// If this thread is in no runtime.
    #[track_caller]
    pub fn spawn<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.add(crate::spawn(future))
    }

    /// Spawns a task on the runtime of `handle` and adds it.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let mut set = selvedge::JoinSet::new();
    /// set.spawn_on(async { 7 }, runtime.handle());
    /// assert_eq!(runtime.block_on(set.join_next()).unwrap().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_on<F>(&mut self, future: F, handle: &Handle) -> AbortHandle
    where
        F: Future<Output = T> + Send + 'static,
    {
        self.add(handle.spawn(future))
    }

    /// Runs a closure on a blocking thread of the current runtime and adds it.
    ///
    /// A closure that has begun cannot be aborted.
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
    /// If this thread is in no runtime.
    #[track_caller]
    pub fn spawn_blocking<F>(&mut self, f: F) -> AbortHandle
    where
        F: FnOnce() -> T + Send + 'static,
    {
        self.add(crate::spawn_blocking(f))
    }

    /// Runs a closure on a blocking thread of the runtime of `handle` and adds it.
    ///
    /// Otherwise acts as [`spawn_blocking`](Self::spawn_blocking).
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// let mut set = selvedge::JoinSet::new();
    /// set.spawn_blocking_on(|| 7, runtime.handle());
    /// assert_eq!(runtime.block_on(set.join_all()), [7]);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
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
    /// let runtime = selvedge::LocalRuntime::new()?;
    /// let seven = runtime.block_on(async {
    ///     let mut set = selvedge::JoinSet::new();
    ///     set.spawn_local(async { std::rc::Rc::new(7) });
    ///     set.join_all().await
    /// });
    /// assert_eq!(*seven[0], 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// If this thread polls neither a [`LocalSet`](crate::LocalSet) nor a
    /// [`LocalRuntime`](crate::LocalRuntime).
    #[track_caller]
    pub fn spawn_local<F>(&mut self, future: F) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.add(crate::spawn_local(future))
    }
}

impl<T: 'static> JoinSet<T> {
    /// Spawns a task into the local set `set`, and adds the task to this set. The task runs when
    /// the local set is polled.
    ///
    /// ```
    /// use selvedge::{JoinSet, LocalSet, Runtime};
    ///
    /// let (runtime, local) = (Runtime::new()?, LocalSet::new());
    /// let mut set = JoinSet::new();
    /// set.spawn_local_on(async { 7 }, &local);
    /// let joined = local.block_on(&runtime, set.join_next());
    /// assert_eq!(joined.unwrap().unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    #[track_caller]
    pub fn spawn_local_on<F>(&mut self, future: F, set: &LocalSet) -> AbortHandle
    where
        F: Future<Output = T> + 'static,
    {
        self.add(set.spawn_local(future))
    }
}

/// Forwards to the methods of [`task_set::JoinSet`]. `Deref` alone would give the method calls, but
/// not paths such as `JoinSet::join_next`.
///
/// ```
/// use selvedge::{JoinError, JoinSet};
/// use std::future::{pending, poll_fn};
///
/// let runtime = selvedge::Runtime::new()?;
/// runtime.block_on(async {
///     let mut set: JoinSet<u32> = (0..4).map(|n| async move { n }).collect();
///     assert!(set.len() == 4 && !set.is_empty());
///     set.join_next().await.unwrap().unwrap();
///     set.join_next_with_id().await.unwrap().unwrap();
///     poll_fn(|cx| set.poll_join_next(cx)).await.unwrap().unwrap();
///     poll_fn(|cx| set.poll_join_next_with_id(cx)).await.unwrap().unwrap();
///     assert!(set.try_join_next().is_none() && set.try_join_next_with_id().is_none());
///
///     set.spawn(pending());
///     set.abort_all();
///     assert!(set.join_next().await.unwrap().unwrap_err().is_cancelled());
///     set.spawn(pending());
///     set.shutdown().await;
///     set.spawn(pending());
///     set.detach_all();
///     assert!(set.is_empty());
/// });
/// # Ok::<(), std::io::Error>(())
/// ```
impl<T> JoinSet<T> {
    /// Returns the number of tasks in the set, including those that have ended.
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Returns whether the set has no tasks.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Waits for a task that has ended, and returns its result. `None` if the set is empty.
    pub async fn join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.set.join_next().await
    }

    /// Waits as [`join_next`](Self::join_next) does, and returns the task's id, too.
    pub async fn join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.set.join_next_with_id().await
    }

    /// Returns the result of a task that has ended, if there is one.
    pub fn try_join_next(&mut self) -> Option<Result<T, JoinError>> {
        self.set.try_join_next()
    }

    /// Returns the id and the result of a task that has ended, if there is one.
    pub fn try_join_next_with_id(&mut self) -> Option<Result<(Id, T), JoinError>> {
        self.set.try_join_next_with_id()
    }

    /// Polls for a task that has ended. `Ready(None)` if the set is empty.
    pub fn poll_join_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<T, JoinError>>> {
        self.set.poll_join_next(cx)
    }

    /// Polls as [`poll_join_next`](Self::poll_join_next) does, and returns the task's id, too.
    pub fn poll_join_next_with_id(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Id, T), JoinError>>> {
        self.set.poll_join_next_with_id(cx)
    }

    /// Aborts all tasks. They stay in the set until they are joined.
    pub fn abort_all(&mut self) {
        self.set.abort_all();
    }

    /// Removes all tasks, which go on.
    pub fn detach_all(&mut self) {
        self.set.detach_all();
    }

    /// Aborts all tasks, and waits until each has ended.
    pub async fn shutdown(&mut self) {
        self.set.shutdown().await;
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

/// Spawns each future on the current runtime.
///
/// To collect the handles of tasks that are already spawned, use `task_set::JoinSet`, or its
/// `insert`.
impl<T, F> FromIterator<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn from_iter<I: IntoIterator<Item = F>>(futures: I) -> Self {
        let mut set = Self::new();
        set.extend(futures);
        set
    }
}

/// Spawns each future on the current runtime. To add handles use `insert`.
impl<T, F> Extend<F> for JoinSet<T>
where
    F: Future<Output = T> + Send + 'static,
    T: Send + 'static,
{
    #[track_caller]
    fn extend<I: IntoIterator<Item = F>>(&mut self, futures: I) {
        for future in futures {
            self.spawn(future);
        }
    }
}

impl<T> fmt::Debug for JoinSet<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.set.fmt(f)
    }
}
