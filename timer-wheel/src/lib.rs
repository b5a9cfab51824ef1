#![doc = include_str!("../README.md")]
#![no_std]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "alloc")]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod entry;
mod list;
#[cfg(feature = "alloc")]
mod timers;
mod wheel;

pub use entry::{Entry, Node};
#[cfg(feature = "alloc")]
pub use timers::{Expired, Key, Timers};
pub use wheel::{Step, Wheel};

/// Two links and a deadline.
#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<Node<u8>>() == 24);

#[cfg(all(test, feature = "alloc"))]
mod tests;
#[cfg(doctest)]
mod variance;
