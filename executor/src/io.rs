//! Readiness, under the paths of tokio's `io`.
//!
//! tokio's traits of reading and writing stay in tokio: with the feature `tokio`, sockets, files
//! and pipes implement them.
//!
//! ```
//! use selvedge::io::{Interest, Ready, unix::AsyncFd};
//! use std::io::Write;
//!
//! let runtime = selvedge::Runtime::new()?;
//! let ready: Ready = runtime.block_on(async {
//!     let (one, mut other) = std::os::unix::net::UnixStream::pair()?;
//!     one.set_nonblocking(true)?;
//!     let fd = AsyncFd::with_interest(one, Interest::READABLE)?;
//!     other.write_all(b"a")?;
//!     let guard = fd.readable().await?;
//!     std::io::Result::Ok(guard.ready())
//! })?;
//! assert!(ready.is_readable());
//! # Ok::<(), std::io::Error>(())
//! ```
pub use net_driver::{Interest, Ready};

/// Descriptors of other code, as sources of events.
///
/// ```
/// use selvedge::io::unix::AsyncFd;
///
/// let runtime = selvedge::Runtime::new()?;
/// runtime.block_on(async {
///     let (one, _other) = std::os::unix::net::UnixStream::pair()?;
///     one.set_nonblocking(true)?;
///     let fd = AsyncFd::new(one)?;
///     assert!(fd.writable().await?.ready().is_writable());
///     std::io::Result::Ok(())
/// })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub mod unix {
    pub use net_driver::net::{
        AsyncFd, AsyncFdReadyGuard, AsyncFdReadyMutGuard, AsyncFdRegisterError, TryIoError,
    };
}
