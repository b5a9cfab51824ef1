//! Signals of the process, under tokio's names. On Windows, the events of its console.
//!
//! On Unix a signal's handler sets a flag and writes a byte to a socket. One thread of the process
//! reads that socket and wakes the listeners. The first listener starts this thread. A listener
//! needs no driver, so it works in any runtime, and may outlive each of them.
//!
//! From the first listener for a signal on, the process no longer dies of that signal, also after
//! all listeners are dropped.
//!
//! A child made by `fork` has no such thread. If its parent has made a listener before, no listener
//! receives anything in the child, not even one that the child makes.
//!
//! ```
//! use futures_lite::future::poll_once;
//! use net_driver::{Driver, signal};
//! use std::pin::pin;
//!
//! Driver::new(1).park(0).block_on(async {
//!     let mut pressed = pin!(signal::ctrl_c());
//!     assert!(poll_once(pressed.as_mut()).await.is_none()); // It counts from here.
//!     unsafe { libc::raise(libc::SIGINT) }; // Ctrl-C does this.
//!     pressed.await
//! })?;
//! # std::io::Result::Ok(())
//! ```
mod listener;
#[cfg(unix)]
pub mod unix;
#[cfg(windows)]
pub mod windows;

use std::io;

/// Waits for the next SIGINT, which Ctrl-C sends.
///
/// The first poll begins to listen. From then on Ctrl-C does not end the process by itself.
///
/// ```
/// use std::{future::Future, pin::pin, task::{Context, Waker}};
///
/// let mut pressed = pin!(net_driver::signal::ctrl_c());
/// let mut cx = Context::from_waker(Waker::noop());
/// assert!(pressed.as_mut().poll(&mut cx).is_pending());
/// ```
///
/// # Errors
/// If the signal cannot be handled, or the thread that wakes listeners cannot be started.
pub async fn ctrl_c() -> io::Result<()> {
    #[cfg(unix)]
    let mut listener = unix::signal(unix::SignalKind::interrupt())?;
    #[cfg(windows)]
    let mut listener = windows::ctrl_c()?;
    listener.recv().await;
    Ok(())
}
