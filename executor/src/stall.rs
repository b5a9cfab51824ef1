//! Stall reports: what the monitor says of a poll that lasts, and where it says it.
use crate::shared::Shared;
use sched_monitor::{Cause, Subject, Times};
use std::{fmt, io::Write, sync::Arc, time::Duration};
use sync_shim::atomic::Ordering::Relaxed;

/// Hook of [`Builder::on_stall`](crate::Builder::on_stall).
pub(crate) type StallHook = Arc<dyn Fn(&Stall) + Send + Sync>;

/// A poll that lasts. See [`Builder::on_stall`](crate::Builder::on_stall).
///
/// `Display` writes one block of lines.
///
/// ```
/// use std::{sync::mpsc, time::Duration};
///
/// let (sender, stalls) = mpsc::channel();
/// let runtime = selvedge::Builder::new()
///     .stall_threshold(Duration::from_millis(5))
///     .on_stall(move |stall: &selvedge::Stall| drop(sender.send((stall.task, stall.lasted))))
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
    /// The number of the task, as `u64::from` of its [`Id`](crate::task::Id).
    pub task: Option<u64>,
    /// The worker that polls it.
    pub worker: usize,
    /// The system's id of its thread, if there is one.
    pub thread: Option<u32>,
    /// How long the poll has lasted, at least.
    pub lasted: Duration,
    /// Why it lasts: the thread computes, waits for a CPU, or blocks in a system call.
    pub cause: Cause,
    /// The CPU time of the thread, and its wait for a CPU, since about the half of `lasted`.
    pub times: Option<Times>,
    /// Tasks that wait in the worker's own queue.
    pub waiting: u64,
    /// Reports that were held back since the last one, as there are at most five a minute.
    pub held_back: u64,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stall: a poll lasts for {:?} so far", self.lasted)?;
        if let Some(task) = self.task {
            write!(f, "\n  task:    {task:#x}")?;
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
                "\n  times:   {on_cpu:?} on CPU, {runnable:?} runnable, of late"
            )?;
        }
        if self.held_back > 0 {
            write!(f, "\n  {} reports were held back", self.held_back)?;
        }
        Ok(())
    }
}

/// The task that a worker polls, and the worker's thread.
pub(crate) fn subject(shared: &Shared, worker: usize) -> Subject {
    let remote = &shared.remotes[worker];
    let task = remote.counters.polled();
    // Ordering: Relaxed, a number. It is of the thread that has the core, or had it a moment ago.
    let thread = remote.thread.load(Relaxed);
    Subject {
        task: (task != 0).then_some(task as u64),
        thread: (thread != 0).then_some(thread),
    }
}

/// Delivers a report: to the hook, or else to standard error; and to `tracing`.
pub(crate) fn report(shared: &Shared, stall: &sched_monitor::Stall, hook: Option<&StallHook>) {
    let stall = Stall {
        task: stall.subject.task,
        worker: stall.worker,
        thread: stall.subject.thread,
        lasted: stall.lasted,
        cause: stall.cause.clone(),
        times: stall.times,
        waiting: shared.remotes[stall.worker].stealer.len() as u64,
        held_back: stall.held_back,
    };
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "selvedge::stall",
        task = stall.task,
        worker = stall.worker,
        thread = stall.thread,
        lasted_ms = stall.lasted.as_millis() as u64,
        cause = %stall.cause,
        "a poll lasts"
    );
    match hook {
        Some(hook) => hook(&stall),
        None => {
            // In one write, so that the lines stay together. Nobody hears of its failure.
            let block = format!("selvedge: {stall}\n");
            let _ = std::io::stderr().lock().write_all(block.as_bytes());
        }
    }
}
