//! The errors of timers, under the paths of tokio's `time::error`.
//!
//! ```
//! use net_driver::{Driver, time::{self, error::Elapsed}};
//!
//! let waits = time::timeout(time::Duration::ZERO, std::future::pending::<()>());
//! let elapsed: Elapsed = Driver::new(1).park(0).block_on(waits).unwrap_err();
//! assert_eq!(elapsed.to_string(), "the time has passed");
//! ```
use std::fmt;

pub use super::timeout::Elapsed;

/// An error that no timer returns: its name is tokio's, whose timers can fail.
///
/// ```
/// use net_driver::time::error::Error;
///
/// assert!(Error::shutdown().is_shutdown());
/// assert!(Error::at_capacity().is_at_capacity());
/// assert!(Error::invalid().is_invalid());
/// assert_eq!(Error::invalid().to_string(), "the timer was set to an invalid time");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Error(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Shutdown,
    AtCapacity,
    Invalid,
}

impl Error {
    /// Makes the error of a timer whose driver has shut down.
    pub fn shutdown() -> Self {
        Self(Kind::Shutdown)
    }

    /// Returns whether the driver has shut down.
    pub fn is_shutdown(&self) -> bool {
        self.0 == Kind::Shutdown
    }

    /// Makes the error of a timer for which the driver has no room.
    pub fn at_capacity() -> Self {
        Self(Kind::AtCapacity)
    }

    /// Returns whether the driver has no room.
    pub fn is_at_capacity(&self) -> bool {
        self.0 == Kind::AtCapacity
    }

    /// Makes the error of a timer that was set to an invalid time.
    pub fn invalid() -> Self {
        Self(Kind::Invalid)
    }

    /// Returns whether the time was invalid.
    pub fn is_invalid(&self) -> bool {
        self.0 == Kind::Invalid
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Shutdown => "the driver of the timer has shut down",
            Kind::AtCapacity => "the driver has no room for the timer",
            Kind::Invalid => "the timer was set to an invalid time",
        })
    }
}

impl std::error::Error for Error {}
