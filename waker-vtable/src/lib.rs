#![doc = include_str!("../README.md")]
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(docsrs, feature(doc_cfg))]

#[cfg(feature = "std")]
mod arc;
mod cell;
mod direct;
mod list;
mod safe;
mod target;

#[cfg(feature = "std")]
pub use arc::{ArcWake, from_arc};
pub use cell::WakerCell;
pub use direct::direct_waker;
pub use list::{WakeList, WakeListFull};
pub use safe::{WakeRef, from_static};
pub use target::{
    TargetVtable, WakeHeader, WakeTarget, WakerRef, target_header, try_target, waker,
};

static_assertions::assert_eq_size!(core::task::Waker, [usize; 2]);
static_assertions::assert_eq_size!(WakeHeader, usize);
static_assertions::assert_impl_all!(WakeHeader: Send, Sync);
static_assertions::assert_not_impl_any!(WakerRef<'static>: Clone);
static_assertions::assert_impl_all!(WakerRef<'static>: Send, Sync);
static_assertions::assert_impl_all!(WakerCell: Send, Sync, core::panic::RefUnwindSafe);
static_assertions::assert_impl_all!(WakeList: Send, Sync);
#[cfg(not(any(selvedge_loom, selvedge_shuttle, selvedge_count)))]
static_assertions::assert_eq_size!(WakerCell, [usize; 3]);

#[cfg(all(test, selvedge_count))]
mod counts;
#[cfg(all(test, feature = "std", not(selvedge_loom)))]
mod crowd {
    mod models;
}
#[cfg(all(test, feature = "std"))]
mod models;
#[cfg(all(test, feature = "std", not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
