//! Descriptors of other code, as sources of events.
//!
//! ```
//! use selvedge::io::unix::AsyncFd;
//!
//! let runtime = selvedge::Runtime::new()?;
//! runtime.block_on(async {
//!     let (one, _other) = std::os::unix::net::UnixStream::pair()?;
//!     one.set_nonblocking(true)?;
//!     let fd = AsyncFd::new(one)?;
//!     assert!(fd.writable().await?.ready().is_writable());
//!     std::io::Result::Ok(())
//! })?;
//! # Ok::<(), std::io::Error>(())
//! ```
pub use net_driver::net::{
    AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
};
