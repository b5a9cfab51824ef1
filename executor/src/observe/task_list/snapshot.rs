//! [`Handle::tasks`]: what a look at the list of tasks returns.
use super::Found;
use crate::Handle;
use coop_budget::WaitsOn;
use std::{borrow::Cow, fmt, panic::Location, time::Duration};
use sync_shim::atomic::Ordering::Relaxed;
use task_header::Id;

/// The state of a task, at one look of [`Handle::tasks`].
///
/// ```
/// use selvedge_executor::TaskState;
///
/// let runtime = selvedge_executor::Builder::new().list_tasks(true).build()?;
/// let task = runtime.spawn(std::future::pending::<()>());
/// let waits = || runtime.handle().tasks().unwrap()[0].state == TaskState::Waiting;
/// while !waits() {
///     std::thread::yield_now();
/// }
/// # drop(task);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// The task waits for a wake.
    Waiting,
    /// The task waits for a worker: it was spawned, woken or aborted, or has yielded.
    Runnable,
    /// A thread polls the task.
    Executing,
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "waiting",
            Self::Runnable => "runnable",
            Self::Executing => "executing",
        })
    }
}

/// A task, at one look of [`Handle::tasks`]. `Display` writes one line.
///
/// ```
/// let runtime = selvedge_executor::Builder::new().list_tasks(true).build()?;
/// let task = selvedge_executor::TaskBuilder::new()
///     .name("reader")
///     .spawn_on(std::future::pending::<()>(), runtime.handle());
/// let listed = &runtime.handle().tasks().unwrap()[0];
/// assert_eq!((listed.id, listed.name.as_deref()), (task.id(), Some("reader")));
/// assert_eq!(listed.location.file(), file!());
/// assert!(listed.to_string().contains("\"reader\""));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskSnapshot {
    /// The task's id, which another task may have once this one is freed.
    pub id: Id,
    /// The name, if [`TaskBuilder`](crate::TaskBuilder) gave the task one.
    pub name: Option<Cow<'static, str>>,
    /// The place in the source where the task was spawned.
    pub location: &'static Location<'static>,
    /// The name of the task's scheduling group. `None` without the feature `groups`.
    pub group: Option<String>,
    /// Whether the task waits, is queued or is polled.
    pub state: TaskState,
    /// How often the task was polled. A poll that goes on counts, too.
    pub polls: u64,
    /// The time since the last poll ended, and so how long a waiting task has waited. While a
    /// thread polls the task, the time since this poll began. Before the first poll, the time
    /// since the spawn.
    pub since: Duration,
    /// The events that the task waits for, as the last [dump](Handle::dump) has found. Empty if the
    /// task was polled since, or no dump has asked it: only a poll can tell, as the events are in
    /// the task's future. The holder of a lock is the one at that dump.
    pub waits_on: Vec<WaitsOn>,
}

impl fmt::Display for TaskSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        if let Some(group) = &self.group {
            write!(f, " of {group}")?;
        }
        let Self {
            state,
            polls,
            since,
            ..
        } = self;
        let s = if *polls == 1 { "" } else { "s" };
        write!(f, ", {state} after {polls} poll{s}")?;
        match (state, polls) {
            (TaskState::Executing, _) => write!(f, ", for {since:.1?}")?,
            (_, 0) => write!(f, ", spawned {since:.1?} ago")?,
            _ => write!(f, ", the last one {since:.1?} ago")?,
        }
        write!(f, ", from {}", self.location)?;
        let mut before = ", awaits ";
        for on in &self.waits_on {
            write!(f, "{before}{on}")?;
            before = " and ";
        }
        Ok(())
    }
}

impl Handle {
    /// Lists the tasks that have not ended, in no order, if the runtime was built to
    /// [list tasks](crate::Builder::list_tasks). Otherwise returns `None`.
    ///
    /// This method looks at the tasks one after another while they go on. So a state may be out of
    /// date by the time the method returns, and a task that is spawned or ends meanwhile may be
    /// missing. There is a lock for each worker, and one for all other threads. Spawns and the ends
    /// of tasks take these locks, too. The method holds each lock for a few nanoseconds a task.
    ///
    /// The futures in `block_on` are in the list, under the name `block_on`, but for the one that
    /// calls this method. A task of a [`LocalSet`](crate::LocalSet) is there from its first poll
    /// on, in the runtime of that poll. Both count as waiting until they are polled, also when they
    /// are woken, but for a wake by a dump. Closures of [`spawn_blocking`](crate::spawn_blocking),
    /// and the task that runs the futures of [`at_exit`](Self::at_exit), are not in the list.
    ///
    /// ```
    /// use selvedge_executor::TaskState;
    /// use tokio::sync::oneshot;
    ///
    /// let runtime = selvedge_executor::Builder::new().workers(1).list_tasks(true).build()?;
    /// let (answer, waits) = oneshot::channel::<u32>();
    /// let task = runtime.spawn(waits);
    /// let other = runtime.block_on(runtime.spawn(async {
    ///     let tasks = selvedge_executor::Handle::current().tasks().unwrap();
    ///     let id = task_header::current().unwrap();
    ///     tasks.iter().find(|task| task.id == id).unwrap().state
    /// }));
    /// assert_eq!(other.unwrap(), TaskState::Executing);
    /// answer.send(42).unwrap();
    /// assert_eq!(runtime.block_on(task).unwrap(), Ok(42));
    /// assert!(runtime.handle().tasks().unwrap().is_empty());
    ///
    /// assert!(selvedge_executor::Runtime::new()?.handle().tasks().is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn tasks(&self) -> Option<Vec<TaskSnapshot>> {
        let shared = self.shared();
        if !shared.settings.lists_tasks {
            return None;
        }
        let snapshot = |found: Found| TaskSnapshot::of(&found, found.state);
        Some(
            shared
                .tasks
                .look(None, coop_budget::polled_task())
                .into_iter()
                .filter_map(snapshot)
                .collect(),
        )
    }
}

impl TaskSnapshot {
    /// Returns the snapshot for a text that shows the waits elsewhere.
    pub(in crate::observe) fn without_waits(&self) -> Self {
        Self {
            waits_on: Vec::new(),
            ..self.clone()
        }
    }

    /// Returns what a look at a task shows, unless the task has ended.
    pub(in crate::observe) fn of(found: &Found, state: task_header::TaskState) -> Option<Self> {
        let Found { entry, id, .. } = found;
        // Ordering: Relaxed, as the answer may be out of date anyway.
        let is_polled = entry.is_polled.load(Relaxed);
        let state = match state {
            task_header::TaskState::Complete => return None,
            _ if is_polled => TaskState::Executing,
            // A task that only a dump has woken waits.
            task_header::TaskState::Active if entry.is_asked() => TaskState::Waiting,
            task_header::TaskState::Active => TaskState::Runnable,
            task_header::TaskState::Waiting => TaskState::Waiting,
        };
        Some(Self {
            id: *id,
            name: entry.name.clone(),
            location: entry.location,
            group: entry.group(),
            state,
            // Ordering: Relaxed, as it is only a count.
            polls: entry.polls.load(Relaxed),
            since: entry.since_turn(),
            waits_on: entry.waits_on(),
        })
    }
}
