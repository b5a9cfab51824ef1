#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

extern crate alloc;

#[cfg(feature = "std")]
mod blocking;
mod coop;
mod lock;
pub mod mpsc;
#[cfg(all(test, selvedge_count))]
mod one_receiver_counts;
#[cfg(doctest)]
mod one_receiver_variance;
pub mod oneshot;
mod waiters;
mod waiting;
mod waker_words;
#[cfg(all(test, feature = "std"))]
mod woken;

pub use waiting::Waiting;
