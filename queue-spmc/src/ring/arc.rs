//! The shim's `Arc`. Without `std` it is that of `alloc`, since models need `std` anyway.
#[cfg(not(feature = "std"))]
pub(super) use alloc::sync::Arc;
#[cfg(feature = "std")]
pub(super) use sync_shim::sync::Arc;
