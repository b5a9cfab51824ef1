//! Signals of the process, as in tokio.
use std::io;

/// Listeners for the signals of Unix, as in tokio.
pub mod unix {
    pub use selvedge::signal::unix::*;
    use std::io;

    /// Makes a listener for a signal. See [`selvedge::signal::unix::signal`].
    ///
    /// # Errors
    /// If the signal cannot be handled.
    ///
    /// # Panics
    /// Outside of a runtime, and in one without `enable_io`.
    #[track_caller]
    pub fn signal(kind: SignalKind) -> io::Result<Signal> {
        selvedge::checks::assert_may_listen();
        selvedge::signal::unix::signal(kind)
    }
}

/// Waits for the next SIGINT, which Ctrl-C sends. See [`selvedge::signal::ctrl_c`].
///
/// # Errors
/// As [`unix::signal`].
///
/// # Panics
/// As [`unix::signal`], at the first poll.
pub async fn ctrl_c() -> io::Result<()> {
    selvedge::checks::assert_may_listen();
    selvedge::signal::ctrl_c().await
}
