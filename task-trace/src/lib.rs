#![doc = include_str!("../README.md")]

#[cfg(not(feature = "tracing"))]
mod silent;
#[cfg(feature = "tracing")]
mod traced;

#[cfg(not(feature = "tracing"))]
pub use silent::{Traced, Unnamed, enabled, trace};
#[cfg(feature = "tracing")]
pub use traced::{Traced, Unnamed, enabled, trace};

/// What a task is to the console.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// One that any worker may run.
    Task,
    /// One that stays on its thread.
    Local,
    /// A closure on a thread where it may block.
    Blocking,
}
