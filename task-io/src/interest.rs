//! The states that a task waits for.
use crate::ready::write_set;
use core::{fmt, ops};

/// The states that a task waits for.
///
/// ```
/// use task_io::Interest;
///
/// let both = Interest::READABLE | Interest::WRITABLE;
/// assert!(both.is_readable() && both.is_writable());
/// assert!(!both.is_priority());
/// assert_eq!(format!("{both:?}"), "Interest(READABLE | WRITABLE)");
///
/// let rest = Interest::PRIORITY | Interest::ERROR;
/// assert!(rest.is_priority() && rest.is_error());
/// assert!(!rest.is_readable());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Interest(u8);

impl Interest {
    /// Bytes to read, or the end of the stream.
    pub const READABLE: Self = Self(1);
    /// Room to write.
    pub const WRITABLE: Self = Self(1 << 1);
    /// Priority data.
    pub const PRIORITY: Self = Self(1 << 4);
    /// An error. It also ends a wait for `READABLE` or `WRITABLE`.
    pub const ERROR: Self = Self(1 << 5);

    /// Returns whether this interest contains `READABLE`.
    ///
    /// ```
    /// assert!(task_io::Interest::READABLE.is_readable());
    /// ```
    pub const fn is_readable(self) -> bool {
        self.0 & Self::READABLE.0 != 0
    }

    /// Returns whether this interest contains `WRITABLE`.
    ///
    /// ```
    /// assert!(task_io::Interest::WRITABLE.is_writable());
    /// ```
    pub const fn is_writable(self) -> bool {
        self.0 & Self::WRITABLE.0 != 0
    }

    /// Returns whether this interest contains `PRIORITY`.
    ///
    /// ```
    /// assert!(task_io::Interest::PRIORITY.is_priority());
    /// ```
    pub const fn is_priority(self) -> bool {
        self.0 & Self::PRIORITY.0 != 0
    }

    /// Returns whether this interest contains `ERROR`.
    ///
    /// ```
    /// assert!(task_io::Interest::ERROR.is_error());
    /// ```
    pub const fn is_error(self) -> bool {
        self.0 & Self::ERROR.0 != 0
    }

    /// Returns both interests as one, as `|` does. This also works in constants.
    ///
    /// ```
    /// use task_io::Interest;
    /// const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);
    /// assert!(BOTH.is_writable());
    /// ```
    pub const fn add(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns this interest without the states of `other`, or `None` if nothing is left.
    ///
    /// ```
    /// use task_io::Interest;
    /// let both = Interest::READABLE | Interest::WRITABLE;
    /// assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    /// assert_eq!(both.remove(both), None);
    /// ```
    pub fn remove(self, other: Self) -> Option<Self> {
        let left = self.0 & !other.0;
        (left != 0).then_some(Self(left))
    }

    /// Makes an interest of a driver's bits, which are those of [`Ready`](crate::Ready).
    #[doc(hidden)]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the bits of the interest, for a driver.
    #[doc(hidden)]
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl ops::BitOr for Interest {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.add(other)
    }
}

impl ops::BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.add(other);
    }
}

impl fmt::Debug for Interest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (self.is_readable(), "READABLE"),
            (self.is_writable(), "WRITABLE"),
            (self.is_priority(), "PRIORITY"),
            (self.is_error(), "ERROR"),
        ];
        write_set(
            f,
            "Interest",
            names.into_iter().filter(|(is, _)| *is).map(|n| n.1),
        )
    }
}
