#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod refused;

#[cfg(feature = "fs")]
#[doc(inline)]
pub use selvedge::fs;
pub mod io;
#[doc(hidden)]
pub mod macros;
pub mod net;
#[cfg(feature = "process")]
#[doc(inline)]
pub use selvedge::process;
pub mod runtime;
#[cfg(feature = "signal")]
pub mod signal;
#[doc(inline)]
pub use selvedge::sync;
pub mod task;
#[cfg(feature = "time")]
pub mod time;

/// An empty module, as in tokio: streams are in the crate `tokio-stream`.
pub mod stream {}

#[cfg(feature = "macros")]
#[doc(inline)]
pub use selvedge::{join, select, try_join};
#[doc(inline)]
pub use selvedge::{pin, spawn, task_local};
#[cfg(feature = "macros")]
#[doc(inline)]
pub use selvedge_macros::{tokio_main as main, tokio_test as test};
