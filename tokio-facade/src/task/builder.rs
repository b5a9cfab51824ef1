//! `task::Builder`, which is unstable in tokio.
use super::{JoinHandle, LocalSet};
use crate::runtime::Handle;
use std::io;

/// Spawns tasks that have a name, with tokio's signatures.
///
/// tokio has this type with `--cfg tokio_unstable` only. No spawn returns an error here.
///
/// ```
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let task = tokio::task::Builder::new().name("answer").spawn(async { 42 }).unwrap();
/// assert_eq!(task.await.unwrap(), 42);
/// # });
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use = "a builder does nothing before it spawns"]
pub struct Builder<'a> {
    name: &'a str,
}

impl<'a> Builder<'a> {
    /// Makes a builder whose tasks have an empty name.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a builder whose tasks have this name.
    pub fn name(&self, name: &'a str) -> Self {
        Self { name }
    }

    fn ours(self) -> selvedge::task::Builder {
        selvedge::task::Builder::new().name(self.name.to_owned())
    }

    /// Spawns a task on the current runtime.
    ///
    /// # Errors
    /// None.
    ///
    /// # Panics
    /// If this thread is in no runtime.
    #[track_caller]
    pub fn spawn<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Ok(self.ours().spawn(future))
    }

    /// Spawns a task on the runtime of `handle`.
    ///
    /// # Errors
    /// None.
    #[track_caller]
    pub fn spawn_on<F>(self, future: F, handle: &Handle) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        Ok(self.ours().spawn_on(future, handle))
    }

    /// Spawns a task on the current local set.
    ///
    /// # Errors
    /// None.
    ///
    /// # Panics
    /// If this thread polls no local set.
    #[track_caller]
    pub fn spawn_local<F>(self, future: F) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future<Output: 'static> + 'static,
    {
        Ok(self.ours().spawn_local(future))
    }

    /// Spawns a task into a local set.
    ///
    /// # Errors
    /// None.
    #[track_caller]
    pub fn spawn_local_on<F>(self, future: F, set: &LocalSet) -> io::Result<JoinHandle<F::Output>>
    where
        F: Future<Output: 'static> + 'static,
    {
        Ok(self.ours().spawn_local_on(future, set))
    }

    /// Runs a closure on a thread for blocking calls.
    ///
    /// # Errors
    /// None.
    ///
    /// # Panics
    /// If this thread is in no runtime.
    #[track_caller]
    pub fn spawn_blocking<F, R>(self, f: F) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Ok(self.ours().spawn_blocking(f))
    }

    /// Runs a closure on a thread of that runtime for blocking calls.
    ///
    /// # Errors
    /// None.
    #[track_caller]
    pub fn spawn_blocking_on<F, R>(self, f: F, handle: &Handle) -> io::Result<JoinHandle<R>>
    where
        F: FnOnce() -> R + Send + 'static,
        R: Send + 'static,
    {
        Ok(self.ours().spawn_blocking_on(f, handle))
    }
}
