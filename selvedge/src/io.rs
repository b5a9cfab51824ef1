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

pub mod unix;
