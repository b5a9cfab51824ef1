//! Views of a runtime: its counters, its tasks, its stalls and its events.
pub(crate) mod metrics;
pub(crate) mod runtime_metrics;
#[cfg(feature = "monitor")]
pub(crate) mod stall;
pub(crate) mod task_list;
pub(crate) mod trace;
