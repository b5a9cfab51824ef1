//! The executor's hooks for `task-trace`: the spans of tasks, and the recorder of the scheduler.
//!
//! Each hook of the recorder is one call in the path that it observes. Without the feature
//! `recorder` the hook is an empty function, which leaves no instruction. With the feature it is a
//! load and a branch while the recorder is off. In a simulation the hooks also report to the
//! simulator, with the feature and without it (`simulated`).
//!
//! A *lane* holds the recorded events of one worker, or of one other thread. The thread that has a
//! worker's core writes the worker's lane. Any other thread writes a lane of its own. The models
//! leave the hooks out: `task-trace` has models of the buffer in which a lane keeps its events.
#[cfg_attr(
    not(all(feature = "recorder", not(any(selvedge_loom, selvedge_shuttle)))),
    path = "trace/none.rs"
)]
mod hooks;
mod simulated;

pub(crate) use hooks::*;
#[cfg(all(feature = "recorder", not(any(selvedge_loom, selvedge_shuttle))))]
pub use hooks::{Capture, Recordings, Tracer};
pub(crate) use task_trace::{TaskKind, enabled, trace};
