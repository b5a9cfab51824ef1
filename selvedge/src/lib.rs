#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod io;
pub mod join;
mod join_set;
mod macros;
#[cfg(all(
    feature = "net",
    any(unix, windows),
    not(any(selvedge_loom, selvedge_shuttle))
))]
pub mod net;
pub mod runtime;
#[cfg(feature = "macros")]
pub mod select;
pub mod task;
#[cfg(feature = "net")]
pub mod time;

#[cfg(all(feature = "fs", not(any(selvedge_loom, selvedge_shuttle))))]
#[doc(inline)]
pub use blocking_fs as fs;
#[cfg(all(feature = "process", unix, not(any(selvedge_loom, selvedge_shuttle))))]
#[doc(inline)]
pub use child_process as process;
pub use join_set::JoinSet;
#[cfg(feature = "net")]
#[doc(hidden)]
pub use net_driver::checks;
#[cfg(all(feature = "net", any(unix, windows)))]
#[doc(inline)]
pub use net_driver::signal;
#[doc(inline)]
pub use selvedge_executor::{
    AbortHandle, Budget, Builder, Cause, DumpOutcome, EnterGuard, Frame, Handle, Id, JoinError,
    JoinHandle, LocalEnterGuard, LocalRuntime, LocalSet, PollTimes, Runtime, Snapshot, Stack,
    Stall, TaskDump, TaskMeta, TaskSnapshot, TaskState, TaskWait, Tick, Times, TryCurrentError,
    UnhandledPanic, Wait, WaitCycle, WaitsOn, Worker, WorkerSnapshot, YieldNow, block_in_place,
    park, spawn, spawn_blocking, spawn_detached, spawn_local, syscall, wait_cycles, yield_now,
};
#[cfg(feature = "groups")]
#[doc(inline)]
pub use selvedge_executor::{
    Busy, GroupBuilder, GroupError, GroupGone, GroupLocal, GroupSnapshot, GroupWorkerSnapshot,
    InGroup, SchedulingGroup, WithGroup, spawn_in,
};
#[cfg(all(feature = "recorder", not(any(selvedge_loom, selvedge_shuttle))))]
#[doc(inline)]
pub use selvedge_executor::{Capture, Recordings, Tracer};
#[cfg(feature = "macros")]
pub use selvedge_macros::{main, test};
#[doc(inline)]
pub use task_sync as sync;

#[cfg(doctest)]
mod variance;
