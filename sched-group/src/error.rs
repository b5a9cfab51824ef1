//! The errors of keys.
use core::fmt;

/// The error of a key whose group was destroyed. Holds the value that the caller passed.
pub struct Stale<T = ()>(pub T);

impl<T> fmt::Debug for Stale<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stale").finish_non_exhaustive()
    }
}

impl<T> fmt::Display for Stale<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the group was destroyed")
    }
}

impl<T> core::error::Error for Stale<T> {}

impl<T: PartialEq> PartialEq for Stale<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// The reason why a group was not destroyed. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DestroyError {
    /// The group has work of its own, or children.
    Busy,
    /// The group was destroyed before.
    Stale,
}

impl fmt::Display for DestroyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "the group has work or children",
            Self::Stale => "the group was destroyed before",
        })
    }
}

impl core::error::Error for DestroyError {}

impl From<Stale> for DestroyError {
    fn from(_: Stale) -> Self {
        Self::Stale
    }
}
