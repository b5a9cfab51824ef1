#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod gate;
mod join_set;
mod local_set;
mod scope;

pub use join_set::JoinSet;
pub use local_set::{LocalSet, Ran};
pub use scope::{Scope, scope};
#[doc(no_inline)]
pub use task_header::{Builder, Details, Id, JoinError, JoinHandle};

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(doctest)]
mod variance;
