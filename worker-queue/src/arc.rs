//! The shim's counted pointer. Without `std` it is that of `alloc`, since models need `std` anyway.
#[cfg(not(feature = "std"))]
pub(crate) use alloc::sync::Arc;
#[cfg(feature = "std")]
pub(crate) use sync_shim::sync::Arc;
