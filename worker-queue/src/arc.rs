//! The shim's counted pointer, or `alloc`'s without `std`: models need `std` anyway.
#[cfg(not(feature = "std"))]
pub(crate) use alloc::sync::Arc;
#[cfg(feature = "std")]
pub(crate) use sync_shim::sync::Arc;
