#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

mod arc;
mod hooks;
mod queue;
mod run_queue;
mod slot;
mod steal;
mod stealer;
mod taken;

pub use hooks::QueueHooks;
pub use queue::WorkerQueue;
#[doc(no_inline)]
pub use queue_global::{Injector, Linked, List, Lock};
pub use run_queue::RunQueue;
pub use slot::{Slot, SlotContent};
pub use stealer::Stealer;
pub use taken::{Batch, Next};

#[cfg(all(test, selvedge_count, feature = "std"))]
mod counts;
#[cfg(all(test, feature = "std", not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
#[cfg(doctest)]
mod variance;
