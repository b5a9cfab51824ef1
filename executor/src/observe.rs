//! Views of a runtime: its counters, its tasks, its stalls and its events.
pub(crate) mod dump;
pub(crate) mod environment;
pub(crate) mod listed_future;
pub(crate) mod metrics;
pub(crate) mod runtime_metrics;
pub(crate) mod stall;
pub(crate) mod task_list;
pub(crate) mod trace;
