#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc as alloc_crate;

mod backend;
mod const_fn;
mod invariant;
#[cfg(all(test, feature = "std"))]
mod litmus;
mod padded;

pub mod alloc;
pub mod atomic;
pub mod cell;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod count;
pub mod hint;
#[cfg(feature = "history")]
pub mod history;
#[cfg(feature = "std")]
mod model;
pub mod panics;
#[cfg(feature = "std")]
pub mod random;
#[doc(hidden)]
pub mod sim;
#[cfg(feature = "std")]
pub mod sync;
#[cfg(feature = "std")]
pub mod thread;
#[cfg(feature = "std")]
pub mod time;

#[cfg(feature = "std")]
pub use model::{Model, model, model_must_fail};
pub use padded::CachePadded;

#[cfg(selvedge_loom)]
#[doc(hidden)]
pub use {backend::imp::mutant, loom};

#[cfg(selvedge_shuttle)]
#[doc(hidden)]
pub use shuttle;

#[cfg(doctest)]
mod variance;
