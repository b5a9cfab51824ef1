//! The states of a source.
use core::{fmt, ops};

/// A set of states that a source may be in.
///
/// The closed states come together with `READABLE` or `WRITABLE`: a `read` then returns the bytes
/// that are left, and after them 0. A `write` fails.
///
/// ```
/// use task_io::Ready;
///
/// let ready = Ready::READABLE | Ready::READ_CLOSED;
/// assert!(ready.is_readable() && ready.is_read_closed());
/// assert!(!ready.is_writable());
/// assert_eq!(format!("{ready:?}"), "Ready(READABLE | READ_CLOSED)");
///
/// let failed = Ready::WRITABLE | Ready::WRITE_CLOSED | Ready::ERROR;
/// assert!(failed.is_write_closed() && failed.is_error());
/// assert_eq!(failed & ready, Ready::EMPTY);
/// assert_eq!(Ready::ALL - failed, ready | Ready::PRIORITY);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Ready(u8);

impl Ready {
    /// The empty set.
    pub const EMPTY: Self = Self(0);
    /// A `read` would return bytes, the end of the stream or an error.
    pub const READABLE: Self = Self(1);
    /// A `write` would take bytes or return an error.
    pub const WRITABLE: Self = Self(1 << 1);
    /// The other side writes no more.
    pub const READ_CLOSED: Self = Self(1 << 2);
    /// The other side reads no more.
    pub const WRITE_CLOSED: Self = Self(1 << 3);
    /// There is priority data to read, such as TCP's urgent byte.
    pub const PRIORITY: Self = Self(1 << 4);
    /// The source has failed. The next operation returns the error.
    pub const ERROR: Self = Self(1 << 5);
    /// All of the above.
    pub const ALL: Self = Self((1 << 6) - 1);

    /// Makes a set of a driver's bits. The two high bits are free for the driver.
    #[doc(hidden)]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    /// Returns the bits of the set, for a driver.
    #[doc(hidden)]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns whether nothing is in the set.
    ///
    /// ```
    /// assert!(task_io::Ready::EMPTY.is_empty());
    /// ```
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether `READABLE` or `READ_CLOSED` is in the set.
    ///
    /// ```
    /// assert!(task_io::Ready::READ_CLOSED.is_readable());
    /// ```
    pub const fn is_readable(self) -> bool {
        self.intersects(Self::READABLE.union(Self::READ_CLOSED))
    }

    /// Returns whether `WRITABLE` or `WRITE_CLOSED` is in the set.
    ///
    /// ```
    /// assert!(task_io::Ready::WRITE_CLOSED.is_writable());
    /// ```
    pub const fn is_writable(self) -> bool {
        self.intersects(Self::WRITABLE.union(Self::WRITE_CLOSED))
    }

    /// Returns whether `READ_CLOSED` is in the set.
    ///
    /// ```
    /// assert!(!task_io::Ready::READABLE.is_read_closed());
    /// ```
    pub const fn is_read_closed(self) -> bool {
        self.intersects(Self::READ_CLOSED)
    }

    /// Returns whether `WRITE_CLOSED` is in the set.
    ///
    /// ```
    /// assert!(!task_io::Ready::WRITABLE.is_write_closed());
    /// ```
    pub const fn is_write_closed(self) -> bool {
        self.intersects(Self::WRITE_CLOSED)
    }

    /// Returns whether `PRIORITY` is in the set.
    ///
    /// ```
    /// assert!(task_io::Ready::PRIORITY.is_priority());
    /// ```
    pub const fn is_priority(self) -> bool {
        self.intersects(Self::PRIORITY)
    }

    /// Returns whether `ERROR` is in the set.
    ///
    /// ```
    /// assert!(task_io::Ready::ERROR.is_error());
    /// ```
    pub const fn is_error(self) -> bool {
        self.intersects(Self::ERROR)
    }

    const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

impl ops::BitOr for Ready {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl ops::BitOrAssign for Ready {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl ops::BitAnd for Ready {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.intersection(other)
    }
}

impl ops::Sub for Ready {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self.difference(other)
    }
}

impl fmt::Debug for Ready {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Ready, &str); 6] = [
            (Ready::READABLE, "READABLE"),
            (Ready::WRITABLE, "WRITABLE"),
            (Ready::READ_CLOSED, "READ_CLOSED"),
            (Ready::WRITE_CLOSED, "WRITE_CLOSED"),
            (Ready::PRIORITY, "PRIORITY"),
            (Ready::ERROR, "ERROR"),
        ];
        write_set(
            f,
            "Ready",
            NAMES
                .iter()
                .filter(|(bit, _)| self.intersects(*bit))
                .map(|n| n.1),
        )
    }
}

/// Writes the names of a set, as `Ready(READABLE | WRITABLE)`.
pub(crate) fn write_set<'a>(
    f: &mut fmt::Formatter<'_>,
    of: &str,
    names: impl Iterator<Item = &'a str>,
) -> fmt::Result {
    write!(f, "{of}(")?;
    for (n, name) in names.enumerate() {
        let before = if n == 0 { "" } else { " | " };
        write!(f, "{before}{name}")?;
    }
    f.write_str(")")
}
