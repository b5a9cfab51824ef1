#![doc = include_str!("../README.md")]

#[cfg(feature = "recorder")]
pub mod recorder;
#[cfg(not(feature = "tracing"))]
mod silent;
#[cfg(feature = "tracing")]
mod traced;

#[cfg(not(feature = "tracing"))]
pub use silent::{TaskSpan, Traced, enabled, trace};
#[cfg(feature = "tracing")]
pub use traced::{TaskSpan, Traced, enabled, trace};

/// The kind of a task, as the console shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskKind {
    /// A task that any worker may run.
    Task,
    /// A task that stays on its thread.
    Local,
    /// A closure on a thread where it may block.
    Blocking,
}
