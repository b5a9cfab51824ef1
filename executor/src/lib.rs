#![doc = include_str!("../README.md")]
// Few tests are built with `selvedge_count`, so some test helpers are unused in that build.
#![cfg_attr(selvedge_count, allow(dead_code))]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod blocking;
mod builder;
mod current_thread;
mod events;
mod fork;
#[cfg_attr(not(feature = "groups"), path = "groups/none.rs")]
mod groups;
mod handle;
mod local;
mod monitor;
mod observe;
pub mod runtime;
mod scope;
mod settings;
mod shutdown;
#[cfg(selvedge_sim)]
mod simulation;
mod spawn;
mod task_builder;
mod worker;

#[doc(hidden)]
pub use blocking::block_in_place_beside_workers;
pub use blocking::{block_in_place, syscall};
pub use builder::Builder;
pub use coop_budget::{Budget, WaitsOn};
#[cfg(feature = "groups")]
pub use groups::{
    Busy, GroupBuilder, GroupError, GroupGone, GroupLocal, GroupSnapshot, GroupWorkerSnapshot,
    InGroup, SchedulingGroup, WithGroup, spawn_in,
};
pub use handle::{EnterGuard, Handle, RuntimeFlavor, TryCurrentError, worker_index};
pub use local::{LocalEnterGuard, LocalSet, spawn_local};
#[cfg(all(
    feature = "net",
    any(unix, windows),
    not(any(selvedge_loom, selvedge_shuttle))
))]
pub use net_driver::Polling;
pub use observe::stall::Stall;
#[cfg(all(feature = "recorder", not(any(selvedge_loom, selvedge_shuttle))))]
pub use observe::trace::{Capture, Recordings, Tracer};
pub use observe::{
    dump::{DumpOutcome, TaskDump, TaskWait, WaitCycle, wait_cycles},
    metrics::{PollTimes, Snapshot, WorkerSnapshot},
    runtime_metrics::RuntimeMetrics,
    task_list::{TaskSnapshot, TaskState},
};
pub use runtime::{LocalRuntime, Runtime};
pub use sched_monitor::{Cause, Frame, Stack, Times};
pub use settings::hooks::{TaskMeta, UnhandledPanic};
pub use spawn::{spawn, spawn_blocking, spawn_detached};
pub use task_builder::TaskBuilder;
pub use task_header::{AbortHandle, Id, JoinError, JoinHandle};
pub use worker::{
    driven::{Tick, Worker},
    identity::RuntimeId,
    park,
    yield_now::{YieldNow, yield_if_needed, yield_now},
};
pub use worker_idle::Wait;

#[cfg(all(test, not(any(selvedge_loom, selvedge_count))))]
mod many_threads {
    mod models;
}
#[cfg(all(test, not(selvedge_count)))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_count))))]
mod tests;
#[cfg(doctest)]
mod variance;
