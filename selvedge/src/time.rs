//! Sleeps, timeouts and intervals, under tokio's names: those of [`net_driver::time`].
//!
//! The first poll of a sleep that has to wait must be in a task, in a runtime's `block_on`, or
//! where a runtime's [`Handle`](crate::Handle) was entered. The workers of that runtime then wake
//! the task that sleeps: an idle worker as soon as the sleep is due, a busy one between its tasks.
//! In a [`LocalRuntime`](crate::LocalRuntime) the thread itself wakes the task.
//!
//! ```
//! use selvedge::time::{self, Duration};
//!
//! let runtime = selvedge::Runtime::new()?;
//! runtime.block_on(async {
//!     time::sleep(Duration::from_millis(1)).await;
//!     let late = time::timeout(Duration::from_millis(1), std::future::pending::<()>());
//!     assert!(late.await.is_err());
//! });
//! # Ok::<(), std::io::Error>(())
//! ```
pub use net_driver::time::*;
