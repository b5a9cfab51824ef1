//! The states of a source, and the interests of a task.
use core::{fmt, ops};

/// A set of states that a source may be in.
///
/// The closed states come together with `READABLE` or `WRITABLE`: a `read` then returns the bytes
/// that are left, and after them 0. A `write` fails.
///
/// ```
/// use net_driver::Ready;
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
pub struct Ready(pub(crate) u8);

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
    /// The driver has shut down.
    pub(crate) const SHUTDOWN: Self = Self(1 << 6);
    /// The source is a pipe.
    pub(crate) const PIPE: Self = Self(1 << 7);

    /// Returns whether nothing is in the set.
    ///
    /// ```
    /// assert!(net_driver::Ready::EMPTY.is_empty());
    /// ```
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns whether `READABLE` or `READ_CLOSED` is in the set.
    ///
    /// ```
    /// assert!(net_driver::Ready::READ_CLOSED.is_readable());
    /// ```
    pub const fn is_readable(self) -> bool {
        self.intersects(Self::READABLE.union(Self::READ_CLOSED))
    }

    /// Returns whether `WRITABLE` or `WRITE_CLOSED` is in the set.
    ///
    /// ```
    /// assert!(net_driver::Ready::WRITE_CLOSED.is_writable());
    /// ```
    pub const fn is_writable(self) -> bool {
        self.intersects(Self::WRITABLE.union(Self::WRITE_CLOSED))
    }

    /// Returns whether `READ_CLOSED` is in the set.
    ///
    /// ```
    /// assert!(!net_driver::Ready::READABLE.is_read_closed());
    /// ```
    pub const fn is_read_closed(self) -> bool {
        self.intersects(Self::READ_CLOSED)
    }

    /// Returns whether `WRITE_CLOSED` is in the set.
    ///
    /// ```
    /// assert!(!net_driver::Ready::WRITABLE.is_write_closed());
    /// ```
    pub const fn is_write_closed(self) -> bool {
        self.intersects(Self::WRITE_CLOSED)
    }

    /// Returns whether `PRIORITY` is in the set.
    ///
    /// ```
    /// assert!(net_driver::Ready::PRIORITY.is_priority());
    /// ```
    pub const fn is_priority(self) -> bool {
        self.intersects(Self::PRIORITY)
    }

    /// Returns whether `ERROR` is in the set.
    ///
    /// ```
    /// assert!(net_driver::Ready::ERROR.is_error());
    /// ```
    pub const fn is_error(self) -> bool {
        self.intersects(Self::ERROR)
    }

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) const fn difference(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub(crate) const fn intersects(self, other: Self) -> bool {
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
        const NAMES: [(Ready, &str); 8] = [
            (Ready::READABLE, "READABLE"),
            (Ready::WRITABLE, "WRITABLE"),
            (Ready::READ_CLOSED, "READ_CLOSED"),
            (Ready::WRITE_CLOSED, "WRITE_CLOSED"),
            (Ready::PRIORITY, "PRIORITY"),
            (Ready::ERROR, "ERROR"),
            (Ready::SHUTDOWN, "SHUTDOWN"),
            (Ready::PIPE, "PIPE"),
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

/// The states that a task waits for.
///
/// ```
/// use net_driver::Interest;
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
    /// All of the above.
    pub(crate) const ALL: Self = Self::READABLE
        .add(Self::WRITABLE)
        .add(Self::PRIORITY)
        .add(Self::ERROR);

    /// Returns whether this interest contains `READABLE`.
    ///
    /// ```
    /// assert!(net_driver::Interest::READABLE.is_readable());
    /// ```
    pub const fn is_readable(self) -> bool {
        self.0 & Self::READABLE.0 != 0
    }

    /// Returns whether this interest contains `WRITABLE`.
    ///
    /// ```
    /// assert!(net_driver::Interest::WRITABLE.is_writable());
    /// ```
    pub const fn is_writable(self) -> bool {
        self.0 & Self::WRITABLE.0 != 0
    }

    /// Returns whether this interest contains `PRIORITY`.
    ///
    /// ```
    /// assert!(net_driver::Interest::PRIORITY.is_priority());
    /// ```
    pub const fn is_priority(self) -> bool {
        self.0 & Self::PRIORITY.0 != 0
    }

    /// Returns whether this interest contains `ERROR`.
    ///
    /// ```
    /// assert!(net_driver::Interest::ERROR.is_error());
    /// ```
    pub const fn is_error(self) -> bool {
        self.0 & Self::ERROR.0 != 0
    }

    /// Returns both interests as one, as `|` does. This also works in constants.
    ///
    /// ```
    /// use net_driver::Interest;
    /// const BOTH: Interest = Interest::READABLE.add(Interest::WRITABLE);
    /// assert!(BOTH.is_writable());
    /// ```
    pub const fn add(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns this interest without the states of `other`, or `None` if nothing is left.
    ///
    /// ```
    /// use net_driver::Interest;
    /// let both = Interest::READABLE | Interest::WRITABLE;
    /// assert_eq!(both.remove(Interest::READABLE), Some(Interest::WRITABLE));
    /// assert_eq!(both.remove(both), None);
    /// ```
    pub fn remove(self, other: Self) -> Option<Self> {
        let left = self.0 & !other.0;
        (left != 0).then_some(Self(left))
    }

    /// Returns the part of this interest that names a state of `ready`.
    pub(crate) const fn intersection(self, ready: Ready) -> Self {
        Self(self.0 & ready.0)
    }

    /// Returns the states that end a wait. A closed state comes with `READABLE` or `WRITABLE`, but
    /// without `PRIORITY`.
    pub(crate) const fn wanted(self) -> Ready {
        if self.is_priority() {
            Ready(self.0).union(Ready::READ_CLOSED)
        } else {
            Ready(self.0)
        }
    }

    /// Returns the states that a wait reports.
    pub(crate) const fn mask(self) -> Ready {
        let mut mask = self.wanted();
        if self.is_readable() {
            mask = mask.union(Ready::READ_CLOSED);
        }
        if self.is_writable() {
            mask = mask.union(Ready::WRITE_CLOSED);
        }
        mask
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

fn write_set<'a>(
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
