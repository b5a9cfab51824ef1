//! The results of stealing and pushing, which all queues share.
use core::fmt;

/// The error of a push into a full ring. It holds the item that was refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Full<T>(pub T);

/// The result of a steal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "a stolen item would be dropped"]
pub enum Steal<T> {
    /// The queue had no item to take.
    Empty,
    /// Another thief is copying, or another thread took items during this steal. Try again: there
    /// may be something to take.
    Retry,
    /// The steal took items.
    Success {
        /// The oldest item.
        first: T,
        /// How many more items were moved to the thief's queue.
        moved: usize,
    },
}

impl<T> Steal<T> {
    /// Returns the first item and the number of the others, if the steal took any.
    ///
    /// ```
    /// use queue_spmc::Steal;
    ///
    /// assert_eq!(Steal::Success { first: 'a', moved: 2 }.success(), Some(('a', 2)));
    /// assert_eq!(Steal::<char>::Retry.success(), None);
    /// ```
    #[inline]
    pub fn success(self) -> Option<(T, usize)> {
        match self {
            Self::Success { first, moved } => Some((first, moved)),
            Self::Empty | Self::Retry => None,
        }
    }

    /// Returns whether to try again, as there may be something to take.
    ///
    /// ```
    /// use queue_spmc::Steal;
    ///
    /// assert!(Steal::<char>::Retry.is_retry());
    /// assert!(!Steal::<char>::Empty.is_retry());
    /// ```
    #[inline]
    pub fn is_retry(&self) -> bool {
        matches!(self, Self::Retry)
    }
}

/// How many items a thief takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StealLimit {
    /// Half of the items, rounded up.
    Half,
    /// At most this many items. With 0 nothing is taken, and the result is [`Steal::Empty`].
    AtMost(usize),
}

impl StealLimit {
    /// Returns how many of `len` items a thief takes.
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
