//! What stealing and pushing answer: the words that ring and deque share.
use core::fmt;

/// The ring was full; here is the item.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// What came of a steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a stolen item would be dropped"]
pub enum Steal<T> {
    /// There was nothing to take.
    Empty,
    /// Another thief is copying, or got in between: there may be something.
    Retry,
    /// The oldest item, and how many more were moved to the thief's queue.
    Success {
        /// The oldest item.
        first: T,
        /// Items moved besides.
        moved: usize,
    },
}

/// How much a thief takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StealLimit {
    /// Half of the items, rounded up.
    Half,
    /// At most so many. With 0 nothing is taken, and the answer is [`Steal::Empty`].
    AtMost(usize),
}

impl StealLimit {
    /// How many of `len` items a thief takes.
    #[inline]
    pub(crate) fn of(self, len: u32) -> u32 {
        match self {
            Self::Half => len - len / 2,
            Self::AtMost(n) => len.min(u32::try_from(n).unwrap_or(u32::MAX)),
        }
    }
}

impl<T> fmt::Debug for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full(..)")
    }
}

impl<T> fmt::Display for Full<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the ring is full")
    }
}

impl<T> core::error::Error for Full<T> {}
