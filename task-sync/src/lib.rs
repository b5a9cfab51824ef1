#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

#[cfg(feature = "std")]
mod blocking;
mod coop;
mod lock;
mod waiters;
mod waiting;

pub use waiting::Waiting;
