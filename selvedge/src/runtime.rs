//! Runtimes, their settings and their handles, under the names of tokio's module `runtime`.
//!
//! ```
//! use selvedge::runtime::{Builder, Handle, Runtime};
//!
//! let runtime: Runtime = Builder::new_multi_thread().worker_threads(2).build()?;
//! let handle: &Handle = runtime.handle();
//! assert_eq!(runtime.block_on(handle.spawn(async { 7 })).unwrap(), 7);
//! # Ok::<(), std::io::Error>(())
//! ```
pub use builder::Builder;
pub use selvedge_executor::{
    EnterGuard, Handle, Runtime, RuntimeFlavor, RuntimeId as Id, RuntimeMetrics, TaskMeta,
    TryCurrentError, UnhandledPanic,
    runtime::{LocalOptions, LocalRuntime},
    worker_index,
};

mod builder;

use std::io;

/// Returns whether an error is that of a socket whose runtime has shut down.
///
/// ```
/// # #[cfg(all(feature = "net", unix))] {
/// use selvedge::{Runtime, net::TcpListener, runtime::is_rt_shutdown_err};
///
/// let (ended, runtime) = (Runtime::new()?, Runtime::new()?);
/// let listener = ended.block_on(TcpListener::bind("127.0.0.1:0"))?;
/// drop(ended);
/// let error = runtime.block_on(listener.accept()).unwrap_err();
/// assert!(is_rt_shutdown_err(&error));
/// # }
/// assert!(!selvedge::runtime::is_rt_shutdown_err(&std::io::Error::other("another")));
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn is_rt_shutdown_err(error: &io::Error) -> bool {
    let is_shut_down = |inner: &(dyn std::error::Error + Send + Sync)| {
        inner.source().is_none() && inner.to_string() == SHUT_DOWN
    };
    error.kind() == io::ErrorKind::Other && error.get_ref().is_some_and(is_shut_down)
}

/// The text of the error that `net-driver` returns for a socket whose runtime has shut down.
const SHUT_DOWN: &str = "the driver of this socket has shut down";
