//! Hooks of a runtime's users, and the policy for panics. `calls` has the calls of the hooks.
use crate::worker::scheduler::Task;
use std::{any::Any, fmt, marker::PhantomData, panic::Location, sync::Arc};
use task_header::Id;

mod calls;

/// Policy for the panics of tasks and blocking closures.
///
/// In any case the panic also goes to the join handle.
///
/// ```
/// use selvedge_executor::{Builder, UnhandledPanic};
///
/// let runtime = Builder::new().unhandled_panic(UnhandledPanic::Ignore).build()?;
/// let panics = runtime.spawn(async { panic!("oh no") });
/// assert!(runtime.block_on(panics).unwrap_err().is_panic());
/// assert_eq!(runtime.block_on(runtime.spawn(async { 7 })).unwrap(), 7);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnhandledPanic {
    /// Does nothing more. The other tasks go on.
    #[default]
    Ignore,
    /// Shuts the runtime down.
    ///
    /// The other tasks are cancelled. Each [`block_on`](crate::Handle::block_on) that waits in the
    /// runtime, now or later, panics: on outside threads, and in closures of `spawn_blocking`.
    ///
    /// ```
    /// use selvedge_executor::{Builder, UnhandledPanic};
    ///
    /// let runtime = Builder::new().unhandled_panic(UnhandledPanic::Shutdown).build()?;
    /// runtime.spawn_detached(async { panic!("oh no") });
    /// let waits = || runtime.block_on(std::future::pending::<()>());
    /// assert!(std::panic::catch_unwind(waits).is_err());
    /// assert_eq!(runtime.block_on(async { 7 }), 7); // This future never waits.
    /// # Ok::<(), std::io::Error>(())
    /// ```
    Shutdown,
}

impl UnhandledPanic {
    /// tokio's name of [`Shutdown`](Self::Shutdown).
    ///
    /// ```
    /// use selvedge_executor::UnhandledPanic;
    ///
    /// assert_eq!(UnhandledPanic::ShutdownRuntime, UnhandledPanic::Shutdown);
    /// ```
    #[allow(non_upper_case_globals, reason = "tokio's variant")]
    pub const ShutdownRuntime: Self = Self::Shutdown;
}

/// A task, as a hook sees it.
///
/// ```
/// use selvedge_executor::{Builder, TaskMeta};
/// use std::sync::mpsc;
///
/// let (sender, places) = mpsc::channel();
/// let hook = move |task: TaskMeta<'_>| sender.send((task.id(), task.spawned_at())).unwrap();
/// let runtime = Builder::new().on_task_spawn(hook).build()?;
/// let task = runtime.spawn(async {});
/// let (id, place) = places.recv().unwrap();
/// assert_eq!((id, place.file()), (task.id(), file!()));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TaskMeta<'a> {
    id: Id,
    spawned_at: &'static Location<'static>,
    lives: PhantomData<&'a ()>,
}

impl TaskMeta<'static> {
    pub(crate) fn new(id: Id, spawned_at: Option<&'static Location<'static>>) -> Self {
        // While there are hooks, each task has a location.
        const UNKNOWN: &Location<'_> = Location::caller();
        Self {
            id,
            spawned_at: spawned_at.unwrap_or(UNKNOWN),
            lives: PhantomData,
        }
    }

    pub(crate) fn of(task: &Task) -> Self {
        Self::new(task.id(), task.location())
    }
}

impl TaskMeta<'_> {
    /// Returns the task's id. When the hook for a task's end runs, another task may have this id.
    pub fn id(&self) -> Id {
        self.id
    }

    /// Returns the place in the source where the task was spawned.
    pub fn spawned_at(&self) -> &'static Location<'static> {
        self.spawned_at
    }
}

type Hook = Option<Arc<dyn Fn() + Send + Sync>>;
type TaskHook = Option<Arc<dyn Fn(TaskMeta<'static>) + Send + Sync>>;
type PanicHook = Option<Arc<dyn Fn(&(dyn Any + Send)) + Send + Sync>>;

/// Hooks that a builder has set. A panic of a hook goes to `on_panic`, and no further.
#[derive(Clone, Default)]
pub(crate) struct Hooks {
    pub(crate) on_start: Hook,
    pub(crate) on_stop: Hook,
    pub(crate) on_park: Hook,
    pub(crate) on_unpark: Hook,
    pub(crate) on_spawn: TaskHook,
    pub(crate) before_poll: TaskHook,
    pub(crate) after_poll: TaskHook,
    pub(crate) on_end: TaskHook,
    pub(crate) on_panic: PanicHook,
    pub(crate) policy: UnhandledPanic,
}

impl Hooks {
    /// Whether a hook observes polls.
    pub(crate) fn observe_polls(&self) -> bool {
        self.before_poll.is_some() || self.after_poll.is_some() || self.on_end.is_some()
    }

    /// Whether spawns take the slow path: a hook observes them, or tasks report their panics.
    pub(crate) fn observe_spawns(&self) -> bool {
        // A hook for polls or for a task's end needs the task's location, which only the slow path
        // keeps.
        self.on_spawn.is_some() || self.observe_polls() || self.observe_panics()
    }

    /// Whether tasks report their panics: to a hook, or for the policy.
    pub(crate) fn observe_panics(&self) -> bool {
        self.on_panic.is_some() || self.policy != UnhandledPanic::Ignore
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").finish_non_exhaustive()
    }
}
