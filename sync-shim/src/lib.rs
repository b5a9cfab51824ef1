//! One vocabulary of atomics, cells, threads and allocation with several backends behind it.
//!
//! | backend | chosen by | what it is |
//! |---|---|---|
//! | core/std | nothing | re-exports and inlined newtypes: no cost |
//! | loom | `--cfg selvedge_loom` | exhaustive models |
//! | shuttle | `--cfg selvedge_shuttle` | random schedules |
//! | count | `--cfg selvedge_count` | std, counting read-modify-writes and `SeqCst` fences |
//! | tsan | `--cfg selvedge_tsan` | std, with fences that ThreadSanitizer understands |
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc as alloc_crate;

mod backend;
mod padded;

pub mod alloc;
pub mod atomic;
pub mod cell;
pub mod hint;
#[cfg(feature = "std")]
mod model;
#[cfg(feature = "std")]
pub mod sync;
#[cfg(feature = "std")]
pub mod thread;

#[cfg(feature = "std")]
pub use model::{Model, model, model_must_fail};
pub use padded::CachePadded;

#[cfg(selvedge_loom)]
#[doc(hidden)]
pub use loom;
