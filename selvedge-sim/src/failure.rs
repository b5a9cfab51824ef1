//! `Failure`: what a simulation found.
use std::{fmt, time::Duration};

/// A fault that a run has shown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The program's main function panicked, with this message.
    Panic(String),
    /// Work is ready while all threads wait, and none of them was unparked.
    LostWake(String),
    /// All threads wait, and no time limit ends a wait. Each thread is described.
    Deadlock(Vec<String>),
    /// A timer is served this much later than its deadline.
    LateTimer(Duration),
    /// Tasks were never freed.
    TasksLeft(usize),
    /// The runtime, or another watched part, still exists after the end of all threads.
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
            Self::Panic(_) => "panic",
            Self::LostWake(_) => "lost-wake",
            Self::Deadlock(_) => "deadlock",
            Self::LateTimer(_) => "late-timer",
            Self::TasksLeft(_) => "tasks-left",
            Self::PartsLeft(_) => "parts-left",
            Self::ThreadsLeft(_) => "threads-left",
            Self::TooLong(_) => "too-long",
            Self::Diverged(..) => "diverged",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panic(message) => write!(f, "the main function panicked: {message}"),
            Self::LostWake(what) => write!(f, "all threads wait, but {what}"),
            Self::Deadlock(threads) => {
                f.write_str("all threads wait, and nothing will end a wait:")?;
                threads
                    .iter()
                    .try_for_each(|thread| write!(f, "\n  {thread}"))
            }
            Self::LateTimer(late) => write!(f, "a timer is {late:?} late"),
            Self::TasksLeft(tasks) => write!(f, "{tasks} tasks were never freed"),
            Self::PartsLeft(parts) => write!(f, "{parts} runtimes were never freed"),
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
