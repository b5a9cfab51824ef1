//! `Failure`: what a simulation found.
use std::{fmt, time::Duration};

/// A fault that a run has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The main function of a thread panicked, or began to panic and went on for ever.
    Panic {
        /// The name of the thread.
        thread: String,
        /// The message of the panic.
        message: String,
        /// The file, line and column, if they are known.
        place: Option<String>,
    },
    /// Work is ready, and a thread that could take it waits, and was not unparked.
    LostWake(String),
    /// All threads wait, and no time limit ends a wait. Each thread is described. If a runtime
    /// lists its tasks, so is each of these, with what it waits for, and each circle of tasks that
    /// wait for each other. The addresses of locks in those texts differ between two runs of a
    /// seed.
    Deadlock(Vec<String>),
    /// A timer is served this much later than its deadline.
    LateTimer(Duration),
    /// A task was ready while each worker that did not wait made so many polls.
    Starved {
        /// The task's number in the events.
        task: u64,
        /// The least number of polls of a worker, since the task was suspected.
        polls: u64,
    },
    /// Tasks were never freed.
    TasksLeft(usize),
    /// Runtimes, or schedulers of processes, still exist after the end of all threads.
    PartsLeft(usize),
    /// Threads still run, or wait, long after the main function has ended.
    ThreadsLeft(Vec<String>),
    /// The run has taken too many steps.
    TooLong(u64),
    /// Two runs of a seed differ. Both events are described.
    Diverged(String, String),
}

impl Failure {
    /// Returns the kind of the failure, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Panic { .. } => "panic",
            Self::LostWake(_) => "lost-wake",
            Self::Deadlock(_) => "deadlock",
            Self::LateTimer(_) => "late-timer",
            Self::Starved { .. } => "starved",
            Self::TasksLeft(_) => "tasks-left",
            Self::PartsLeft(_) => "parts-left",
            Self::ThreadsLeft(_) => "threads-left",
            Self::TooLong(_) => "too-long",
            Self::Diverged(..) => "diverged",
        }
    }

    /// Returns whether this may be the same fault: the kind is the same and, of panics, the place.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Panic { place, .. }, Self::Panic { place: other, .. }) => place == other,
            _ => self.kind() == other.kind(),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic {
                thread,
                message,
                place,
            } => {
                let place = place.as_deref().unwrap_or("an unknown place");
                write!(f, "the thread {thread} panicked at {place}: {message}")
            }
            Self::LostWake(what) => write!(f, "all threads wait, but {what}"),
            Self::Deadlock(threads) => {
                f.write_str("all threads wait, and nothing will end a wait:")?;
                threads
                    .iter()
                    .try_for_each(|thread| write!(f, "\n  {thread}"))
            }
            Self::LateTimer(late) => write!(f, "a timer is {late:?} late"),
            Self::Starved { task, polls } => write!(
                f,
                "task {task} is ready, but each worker has made {polls} polls, or more, of others"
            ),
            Self::TasksLeft(tasks) => write!(f, "{tasks} tasks were never freed"),
            Self::PartsLeft(parts) => write!(f, "{parts} runtimes or schedulers were never freed"),
            Self::ThreadsLeft(threads) => {
                f.write_str("threads are left long after the end of the main function:")?;
                threads
                    .iter()
                    .try_for_each(|thread| write!(f, "\n  {thread}"))
            }
            Self::TooLong(steps) => write!(f, "the run has not ended after {steps} steps"),
            Self::Diverged(one, other) => {
                write!(f, "two runs of the seed differ:\n  {one}\n  {other}")
            }
        }
    }
}

impl std::error::Error for Failure {}
