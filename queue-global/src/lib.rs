#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

mod boxed;
#[cfg(feature = "conformance")]
pub mod conformance;
mod injector;
mod link;
mod linked;
mod list;
mod lock;
pub mod mpsc;
#[cfg(feature = "queue-spmc")]
mod overflow;
mod submit;
mod top;
mod values;

pub use boxed::Boxed;
pub use injector::{Closed, Injector};
pub use linked::Linked;
pub use list::{IntoIter, Iter, List};
#[cfg(feature = "std")]
pub use lock::DefaultLock;
pub use lock::Lock;
pub use values::{Batch, ValueInjector};

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(test)]
mod tests;
#[cfg(doctest)]
mod variance;
