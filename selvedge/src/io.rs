//! Traits and utilities of reading and writing, under tokio's names: those of `task-io`, and the
//! standard streams of the process.
//!
//! Sockets, files and pipes implement [`AsyncRead`] and [`AsyncWrite`], and those of `futures-io`.
//! An operation that is ready charges the budget of the task, so that a task which always finds
//! bytes makes room for the others. `stdin`, `stdout` and `stderr` need the feature `fs`, and the
//! module `unix` the feature `net`.
//!
//! ```
//! # #[cfg(all(feature = "net", unix))] {
//! use selvedge::{io::{AsyncRead, AsyncWrite, ReadBuf}, net::UnixStream};
//! use std::{future::poll_fn, pin::Pin};
//!
//! let runtime = selvedge::Runtime::new()?;
//! runtime.block_on(async {
//!     let (mut one, mut other) = UnixStream::pair()?;
//!     let wrote = poll_fn(|cx| AsyncWrite::poll_write(Pin::new(&mut one), cx, b"hello"));
//!     assert_eq!(wrote.await?, 5);
//!     let mut memory = [0; 8];
//!     let mut to = ReadBuf::new(&mut memory);
//!     poll_fn(|cx| AsyncRead::poll_read(Pin::new(&mut other), cx, &mut to)).await?;
//!     assert_eq!(to.filled(), b"hello");
//!     std::io::Result::Ok(())
//! })?;
//! # }
//! # Ok::<(), std::io::Error>(())
//! ```
#[cfg(all(feature = "fs", not(any(selvedge_loom, selvedge_shuttle))))]
#[doc(inline)]
pub use blocking_fs::stdio::{Stderr, Stdin, Stdout, stderr, stdin, stdout};
#[doc(inline)]
pub use task_io::*;

#[cfg(all(feature = "net", unix, not(any(selvedge_loom, selvedge_shuttle))))]
pub mod unix;
