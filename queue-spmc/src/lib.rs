#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

#[cfg(feature = "conformance")]
pub mod conformance;
#[cfg(feature = "deque")]
pub mod deque;
#[cfg(feature = "deque")]
pub mod fifo;
#[cfg(feature = "deque")]
mod growable;
mod local;
mod overflow;
pub mod ring;
mod steal;

pub use local::{LocalQueue, LocalStealer};
pub use overflow::Overflow;
pub use steal::{Full, Steal, StealLimit};

#[cfg(doctest)]
mod variance;
