//! Tasks, under the names of tokio's module `task`.
//!
//! ```
//! use selvedge::task::{self, JoinError, JoinHandle};
//!
//! let runtime = selvedge::Runtime::new()?;
//! let joined: Result<u32, JoinError> = runtime.block_on(async {
//!     let task: JoinHandle<u32> = task::spawn(std::future::pending());
//!     task.abort();
//!     task.await
//! });
//! assert!(joined.unwrap_err().is_cancelled());
//! # Ok::<(), std::io::Error>(())
//! ```
pub use coop_budget::{consume as consume_budget, has_remaining, need_preempt, unconstrained};
#[doc(hidden)]
pub use selvedge_executor::block_in_place_beside_workers;
pub use selvedge_executor::{
    LocalEnterGuard, LocalSet, TaskBuilder as Builder, block_in_place, spawn, spawn_blocking,
    spawn_local, syscall, yield_if_needed, yield_now,
};
pub use task_header::{AbortHandle, Id, JoinError, JoinHandle};

pub use crate::join_set::JoinSet;
pub use id::{id, try_id};
#[doc(hidden)]
pub use local_key::Slot;
pub use local_key::{AccessError, LocalKey};

pub mod coop;
pub mod futures;
mod id;
mod local_key;
