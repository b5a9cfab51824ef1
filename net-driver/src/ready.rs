//! The states and interests of `task-io`, and what the driver adds to them.
pub use task_io::{Interest, Ready};

/// The driver has shut down. No set that a user gets has this bit.
pub(crate) const SHUTDOWN: Ready = Ready::from_bits(1 << 6);
/// The source is a pipe. No set that a user gets has this bit.
pub(crate) const PIPE: Ready = Ready::from_bits(1 << 7);

/// Every state that a task may wait for.
pub(crate) const EVERY_INTEREST: Interest = Interest::READABLE
    .add(Interest::WRITABLE)
    .add(Interest::PRIORITY)
    .add(Interest::ERROR);

/// Does the same as `|`, also in constants.
pub(crate) const fn union(one: Ready, other: Ready) -> Ready {
    Ready::from_bits(one.bits() | other.bits())
}

pub(crate) trait ReadyBits {
    /// Returns whether both sets have a state in common.
    fn intersects(self, other: Self) -> bool;
}

impl ReadyBits for Ready {
    fn intersects(self, other: Self) -> bool {
        self.bits() & other.bits() != 0
    }
}

pub(crate) trait InterestBits {
    /// Returns the part of this interest that names a state of `ready`.
    fn intersection(self, ready: Ready) -> Self;

    /// Returns the states that end a wait. A closed state comes with `READABLE` or `WRITABLE`, but
    /// without `PRIORITY`.
    fn wanted(self) -> Ready;

    /// Returns the states that a wait reports.
    fn mask(self) -> Ready;
}

impl InterestBits for Interest {
    fn intersection(self, ready: Ready) -> Self {
        Self::from_bits(self.bits() & ready.bits())
    }

    fn wanted(self) -> Ready {
        let wanted = Ready::from_bits(self.bits());
        if self.is_priority() {
            union(wanted, Ready::READ_CLOSED)
        } else {
            wanted
        }
    }

    fn mask(self) -> Ready {
        let mut mask = self.wanted();
        if self.is_readable() {
            mask = union(mask, Ready::READ_CLOSED);
        }
        if self.is_writable() {
            mask = union(mask, Ready::WRITE_CLOSED);
        }
        mask
    }
}
