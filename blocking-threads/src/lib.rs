#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "task-header")]
mod closure;
mod current;
mod growth;
mod lend;
mod pool;
mod running;
mod settings;

#[cfg(feature = "task-header")]
pub use closure::{Closure, OnPanic, Once};
pub use current::{CurrentPool, EnteredPool, NoPool, RunBlocking};
pub use lend::{Lent, Offered};
pub use pool::{Boxed, Counts, Job, Pool, Refused, StaticPool};
pub use running::{Dropped, Running};
pub use settings::{BeforePark, Settings, Spawn};
#[cfg(feature = "task-header")]
#[doc(no_inline)]
pub use task_header::{JoinError, JoinHandle};

#[cfg(all(test, not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
#[cfg(doctest)]
mod variance;
