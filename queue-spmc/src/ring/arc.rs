//! The shim's `Arc`; without `std`, the `Arc` of `alloc`. Models need `std` anyway.
#[cfg(not(feature = "std"))]
pub(super) use alloc::sync::Arc;
#[cfg(feature = "std")]
pub(super) use sync_shim::sync::Arc;
