//! The error of bytes that are no message.
use std::fmt;

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DecodeError {
    /// There are too few bytes.
    Short,
    /// There are bytes behind the message.
    Long,
    /// A byte has a value that it cannot have.
    Invalid,
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Short => "there are too few bytes",
            Self::Long => "there are bytes behind the message",
            Self::Invalid => "a byte has a value that it cannot have",
        })
    }
}

impl std::error::Error for DecodeError {}
