//! Tasks that stay on their thread.
pub(crate) mod runtime;
mod set;
mod tasks;

pub use set::{LocalEnterGuard, LocalSet, spawn_local};
pub(crate) use set::{current, spawn_in};
pub(crate) use tasks::LocalTasks;
