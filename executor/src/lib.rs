#![doc = include_str!("../README.md")]
// Few tests are built with `selvedge_count`, so some test helpers are unused in that build.
#![cfg_attr(selvedge_count, allow(dead_code))]
#![cfg_attr(docsrs, feature(doc_cfg))]

// These features would add nothing there, and the error would be an import that is not found.
#[cfg(all(feature = "net", not(unix)))]
compile_error!(
    "the feature `net` of `selvedge` has sockets only on Unix so far. It is a default feature, and \
     the crate `selvedge-hyper` needs it. Without sockets: \
     `selvedge = { version = \"0.1\", default-features = false, \
     features = [\"fs\", \"macros\", \"monitor\", \"recycle\", \"time\"] }`"
);
#[cfg(all(feature = "signal", not(unix)))]
compile_error!("the feature `signal` of `selvedge` has signals only on Unix so far");

mod attributes;
mod block_in_place;
mod blocking;
mod builder;
mod call;
mod compat;
mod context;
mod core;
mod current_thread;
mod driven;
mod driver;
mod events;
mod exits;
mod extensions;
mod fork;
#[cfg(all(feature = "fs", not(any(selvedge_loom, selvedge_shuttle))))]
pub mod fs;
#[cfg(feature = "groups")]
mod groups;
mod handle;
mod hooks;
mod identity;
mod interval;
#[cfg(all(feature = "net", unix, not(any(selvedge_loom, selvedge_shuttle))))]
pub mod io;
pub mod join;
mod join_set;
mod local;
mod local_tasks;
mod look;
mod macros;
mod metrics;
#[cfg(feature = "monitor")]
mod monitor;
#[cfg(all(feature = "net", unix, not(any(selvedge_loom, selvedge_shuttle))))]
pub mod net;
#[cfg(not(feature = "monitor"))]
mod no_monitor;
pub mod park;
#[cfg(all(
    feature = "process",
    target_os = "linux",
    not(any(selvedge_loom, selvedge_shuttle))
))]
pub mod process;
mod queue;
mod run;
pub mod runtime;
mod scheduler;
mod scope;
#[cfg(feature = "macros")]
pub mod select;
mod shared;
mod shutdown;
#[cfg(all(feature = "signal", unix))]
pub use net_driver::signal;
mod spawn;
#[cfg(feature = "monitor")]
mod stall;
mod steal;
#[cfg(feature = "monitor")]
mod syscall;
pub mod task;
mod task_list;
mod threads;
#[cfg(feature = "time")]
pub mod time;
mod trace;
mod unhandled;
mod unpark;
mod wake;
mod watch;
mod yield_now;

#[cfg(not(feature = "monitor"))]
use no_monitor as monitor;

pub use crate::metrics::{PollTimes, Snapshot, WorkerSnapshot};
pub use block_in_place::block_in_place;
pub use builder::Builder;
pub use coop_budget::Budget;
pub use driven::{Tick, Worker};
#[cfg(feature = "groups")]
pub use groups::{
    Busy, GroupBuilder, GroupError, GroupGone, GroupLocal, GroupSnapshot, GroupWorkerSnapshot,
    InGroup, SchedulingGroup, WithGroup, spawn_in,
};
pub use handle::{EnterGuard, Handle, TryCurrentError};
pub use hooks::{TaskMeta, UnhandledPanic};
pub use join_set::JoinSet;
pub use local::{LocalEnterGuard, LocalRuntime, LocalSet, spawn_local};
#[cfg(not(feature = "monitor"))]
pub use no_monitor::syscall;
pub use runtime::Runtime;
#[cfg(feature = "monitor")]
pub use sched_monitor::{Cause, Times};
#[cfg(all(feature = "monitor", feature = "backtrace"))]
#[cfg_attr(docsrs, doc(cfg(feature = "backtrace")))]
pub use sched_monitor::{Frame, Stack};
#[cfg(feature = "macros")]
pub use selvedge_macros::{main, test};
pub use spawn::{spawn, spawn_blocking, spawn_detached};
#[cfg(feature = "monitor")]
pub use stall::Stall;
#[cfg(feature = "monitor")]
pub use syscall::syscall;
pub use task_header::{AbortHandle, Id, JoinError, JoinHandle};
pub use task_list::{TaskSnapshot, TaskState};
#[cfg(all(feature = "trace", not(any(selvedge_loom, selvedge_shuttle))))]
pub use trace::{Capture, Tracer};
pub use yield_now::{YieldNow, yield_now};

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
