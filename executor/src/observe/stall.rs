//! Stall reports: what the monitor says about a long poll.
use sched_monitor::Stack;
use sched_monitor::{Cause, Times};
use std::{borrow::Cow, fmt, panic::Location, sync::Arc, time::Duration};

/// Hook of [`Builder::on_stall`](crate::Builder::on_stall).
pub(crate) type StallHook = Arc<dyn Fn(&Stall) + Send + Sync>;

/// A long poll that goes on. See [`Builder::on_stall`](crate::Builder::on_stall).
///
/// `Display` writes one block of lines.
///
/// ```
/// use std::{sync::mpsc, time::Duration};
///
/// let (sender, stalls) = mpsc::channel();
/// let runtime = selvedge_executor::Builder::new()
///     .stall_threshold(Duration::from_millis(5))
///     .on_stall(move |stall: &selvedge_executor::Stall| drop(sender.send((stall.task, stall.lasted))))
///     .build()?;
/// let task = runtime.spawn(async { std::thread::sleep(Duration::from_millis(100)) });
/// let (number, lasted) = stalls.recv().unwrap();
/// assert_eq!(number, Some(task.id().into()));
/// assert!(lasted >= Duration::from_millis(5));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stall {
    /// The number of the task, as `u64::from` of its [`Id`](crate::Id).
    pub task: Option<u64>,
    /// The name that [`TaskBuilder`](crate::TaskBuilder) gave the task.
    pub name: Option<Cow<'static, str>>,
    /// The place where the task was spawned, if it has a name or the runtime [lists its
    /// tasks](crate::Builder::list_tasks).
    pub location: Option<&'static Location<'static>>,
    /// The name of the task's group, once the runtime has groups.
    pub group: Option<String>,
    /// The worker that polls the task.
    pub worker: usize,
    /// The system's id of the worker's thread, if there is one.
    pub thread: Option<u32>,
    /// How long the poll has lasted, at least.
    pub lasted: Duration,
    /// Why the poll takes long: the thread computes, waits for a CPU, or blocks in a system call.
    pub cause: Cause,
    /// The CPU time of the thread, and its wait for a CPU, in about the second half of `lasted`.
    pub times: Option<Times>,
    /// Tasks that are ready and wait: those in the worker's own queue, and those in the injector,
    /// which any worker may take.
    pub waiting: u64,
    /// The number of reports that the monitor has held back since its last report. The monitor
    /// makes at most five a minute, or as many as
    /// [`stall_reports_per_minute`](crate::Builder::stall_reports_per_minute) says.
    pub held_back: u64,
    /// The stack of the thread, if the monitor could capture it. For this the program depends on
    /// `sched-monitor` with its feature `backtrace`, and runs on Linux, on x86-64 or 64-bit ARM.
    /// `None` also if the worker had begun another poll by the time of the capture.
    pub stack: Option<Stack>,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stall: a poll lasts for {:?} so far", self.lasted)?;
        if let Some(task) = self.task {
            write!(f, "\n  task:    {task:#x}")?;
        }
        if let Some(name) = self.name.as_ref().filter(|name| !name.is_empty()) {
            write!(f, " {name:?}")?;
        }
        if let Some(location) = self.location {
            write!(f, ", spawned at {location}")?;
        }
        if let Some(group) = &self.group {
            write!(f, "\n  group:   {group}")?;
        }
        write!(f, "\n  worker:  {}", self.worker)?;
        if let Some(thread) = self.thread {
            write!(f, " (thread {thread})")?;
        }
        write!(f, ", {} tasks wait", self.waiting)?;
        write!(f, "\n  cause:   {}", self.cause)?;
        if let Some(times) = self.times {
            let Times { on_cpu, runnable } = times;
            write!(
                f,
                "\n  times:   {on_cpu:?} on CPU, {runnable:?} waiting for a CPU"
            )?;
        }
        if let Some(stack) = &self.stack {
            write_stack(stack, f)?;
        }
        if self.held_back > 0 {
            write!(f, "\n  {} reports were held back", self.held_back)?;
        }
        Ok(())
    }
}

/// Writes the functions of a stack from the innermost one on, without those of the task's cell and
/// of the worker.
fn write_stack(stack: &Stack, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let frames = stack.resolve();
    // An inlined function has no path in its name, but it has a file.
    let is_cell = |frame: &sched_monitor::Frame| {
        let function = frame.function.as_deref().unwrap_or_default();
        let file = frame.file.as_deref().and_then(std::path::Path::to_str);
        function.starts_with("task_header::")
            || function.starts_with("<task_header::")
            || file.is_some_and(|file| file.contains("task-header"))
    };
    let of_task = frames.iter().position(is_cell).unwrap_or(frames.len());
    f.write_str("\n  stack:")?;
    for frame in &frames[..of_task] {
        write!(f, "\n    {frame}")?;
    }
    Ok(())
}
