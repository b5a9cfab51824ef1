//! Types of futures of [`task`](super), under tokio's path.
//!
//! ```
//! use selvedge::task::futures::TaskLocalFuture;
//! use std::future::Ready;
//!
//! selvedge::task_local! {
//!     static USER: u32;
//! }
//!
//! struct Request(TaskLocalFuture<u32, Ready<()>>);
//!
//! let request = Request(USER.scope(7, std::future::ready(())));
//! # drop(request.0);
//! ```
pub use super::local_key::TaskLocalFuture;
