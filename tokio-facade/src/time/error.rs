//! Errors of timers, as in tokio.
use std::fmt;

#[doc(inline)]
pub use selvedge::time::Elapsed;

/// The reason why a timer failed. No function here returns one.
#[derive(Clone, Copy, Debug)]
pub struct Error(Kind);

#[derive(Clone, Copy, Debug)]
enum Kind {
    Shutdown,
    AtCapacity,
    Invalid,
}

impl Error {
    /// Makes the error of a timer whose runtime has shut down.
    pub fn shutdown() -> Self {
        Self(Kind::Shutdown)
    }

    /// Returns whether the timer's runtime has shut down.
    pub fn is_shutdown(&self) -> bool {
        matches!(self.0, Kind::Shutdown)
    }

    /// Makes the error of a runtime that can hold no further timer.
    pub fn at_capacity() -> Self {
        Self(Kind::AtCapacity)
    }

    /// Returns whether the runtime can hold no further timer.
    pub fn is_at_capacity(&self) -> bool {
        matches!(self.0, Kind::AtCapacity)
    }

    /// Makes the error of a timer that was set wrongly.
    pub fn invalid() -> Self {
        Self(Kind::Invalid)
    }

    /// Returns whether the timer was set wrongly.
    pub fn is_invalid(&self) -> bool {
        matches!(self.0, Kind::Invalid)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Shutdown => "the runtime of this timer has shut down",
            Kind::AtCapacity => "the runtime can hold no further timer",
            Kind::Invalid => "the timer was set wrongly",
        })
    }
}

impl std::error::Error for Error {}
