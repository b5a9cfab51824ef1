//! tokio's names for a runtime's identity: its id, name and flavor, and the current worker's index.
use crate::{Handle, context::with_core, identity::Id};

/// The threads on which a runtime runs its tasks.
///
/// ```
/// use selvedge::runtime::{Builder, RuntimeFlavor};
///
/// let runtime = Builder::new_current_thread().build()?;
/// assert_eq!(runtime.handle().runtime_flavor(), RuntimeFlavor::CurrentThread);
/// let runtime = Builder::new_multi_thread().build()?;
/// assert_eq!(runtime.handle().runtime_flavor(), RuntimeFlavor::MultiThread);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RuntimeFlavor {
    /// The thread in `block_on`.
    CurrentThread,
    /// Threads of the runtime's own, or the callers of its driven workers.
    MultiThread,
}

impl Handle {
    /// Returns the runtime's id, which no other runtime of this process has or had.
    ///
    /// ```
    /// let runtime = selvedge::Runtime::new()?;
    /// assert_eq!(runtime.handle().id(), runtime.handle().clone().id());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn id(&self) -> Id {
        self.shared().id
    }

    /// Returns the runtime's name, if [`Builder::name`](crate::Builder::name) gave it one.
    ///
    /// ```
    /// let runtime = selvedge::Builder::new().name("requests").build()?;
    /// assert_eq!(runtime.handle().name(), Some("requests"));
    /// assert_eq!(selvedge::Runtime::new()?.handle().name(), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(&self) -> Option<&str> {
        self.shared().settings.name.as_deref()
    }

    /// Returns on which threads the runtime runs its tasks.
    ///
    /// ```
    /// use selvedge::{Handle, runtime::RuntimeFlavor};
    ///
    /// let runtime = selvedge::Runtime::new()?;
    /// let flavor = runtime.block_on(async { Handle::current().runtime_flavor() });
    /// assert_eq!(flavor, RuntimeFlavor::MultiThread);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn runtime_flavor(&self) -> RuntimeFlavor {
        match self.shared().settings.current_thread {
            true => RuntimeFlavor::CurrentThread,
            false => RuntimeFlavor::MultiThread,
        }
    }
}

/// Returns the index of this thread's worker, if the thread is one.
///
/// Returns `None` outside of tasks and hooks of a worker, for example in the future of `block_on`.
/// Also returns `None` inside [`block_in_place`](crate::block_in_place()) and
/// [`syscall`](crate::syscall()), and in the rest of a poll that has lost its worker in one of
/// these calls. Indexes count from 0, as in [`Snapshot::per_worker`](crate::Snapshot::per_worker).
///
/// ```
/// use selvedge::{Builder, runtime::worker_index};
///
/// let runtime = Builder::new().workers(1).build()?;
/// assert_eq!(runtime.block_on(runtime.spawn(async { worker_index() })).unwrap(), Some(0));
/// assert_eq!(runtime.block_on(async { worker_index() }), None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn worker_index() -> Option<usize> {
    with_core(|core| core.index)
}
