#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "std")]
mod arc;
mod cell;
mod list;
mod safe;
mod target;

#[cfg(feature = "std")]
pub use arc::{ArcWake, from_arc};
pub use cell::WakerCell;
pub use list::{WakeList, WakeListFull};
pub use safe::{WakeRef, from_static};
pub use target::{WakeTarget, WakerRef, try_target, vtable_of, waker};

/// A waker is two words.
const _: () = assert!(size_of::<core::task::Waker>() == size_of::<[usize; 2]>());
#[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
const _: () = assert!(size_of::<WakerCell>() == size_of::<[usize; 3]>());

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(all(test, feature = "std", not(selvedge_loom)))]
mod many_threads {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
