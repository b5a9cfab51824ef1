//! The shim's `Arc`, or `alloc`'s where there is no `std` (models need `std` anyway).
#[cfg(not(feature = "std"))]
pub(super) use alloc::sync::Arc;
#[cfg(feature = "std")]
pub(super) use sync_shim::sync::Arc;
