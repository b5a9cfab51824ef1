//! The budget as a value: how many operations are left.
//!
//! One word, so that a charge is a test and a decrement, whether there is a limit or not: a limit is at most `u32::MAX`, and no
//! limit counts down from `u64::MAX`, which nobody lives to see reach `u32::MAX`.

/// Operations that may still be granted. Copied, it counts on its own.
///
/// ```
/// use coop_budget::Budget;
/// let mut budget = Budget::new(2);
/// assert!(budget.charge() && budget.charge() && !budget.charge());
/// budget.refund();
/// assert_eq!(budget.remaining(), Some(1));
///
/// // Of many at once what was not needed goes back.
/// let mut budget = Budget::DEFAULT;
/// assert_eq!((budget.charge_n(100), budget.charge_n(100)), (100, 28));
/// assert!(!budget.has_remaining());
/// budget.refund_n(20);
/// assert_eq!(budget, Budget::new(20));
/// assert_eq!(Budget::UNLIMITED.remaining(), None);
/// ```
#[derive(Clone, Copy)]
pub struct Budget(u64);

const MOST: u64 = u32::MAX as u64;

impl Budget {
    /// 128 operations a poll: what Tokio found to keep tails short at no loss of throughput.
    pub const DEFAULT: Self = Self::new(128);

    /// No limit: every operation is granted.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// So many operations. With 0 none is granted: the first asks the task to yield.
    #[inline]
    pub const fn new(operations: u32) -> Self {
        Self(operations as u64)
    }

    /// What is left, `None` without a limit.
    #[inline]
    pub const fn remaining(self) -> Option<u32> {
        if self.is_unlimited() {
            return None;
        }
        Some(self.0 as u32)
    }

    #[inline]
    pub(crate) const fn is_unlimited(self) -> bool {
        self.0 > MOST
    }

    /// Whether one more operation would be granted.
    #[inline]
    pub const fn has_remaining(self) -> bool {
        self.0 != 0
    }

    /// Grants an operation, or says that the task is to yield.
    #[inline]
    pub const fn charge(&mut self) -> bool {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                true
            }
            None => false,
        }
    }

    /// One operation less, and whether that was there. If not, what is left is nothing to go by, but to take it back.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) const fn charged(self) -> (Self, bool) {
        let (left, is_missing) = self.0.overflowing_sub(1);
        (Self(left), !is_missing)
    }

    /// Takes back [`charged`](Self::charged).
    #[cfg(feature = "std")]
    pub(crate) const fn uncharged(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Grants up to `wanted` operations at once and tells how many; 0 when the task is to yield.
    #[inline]
    pub const fn charge_n(&mut self, wanted: u32) -> u32 {
        let granted = if self.0 < wanted as u64 {
            self.0
        } else {
            wanted as u64
        };
        self.0 -= granted;
        granted as u32
    }

    /// Takes a share of up to `limit` out of what is left. Without a limit of its own, it stays whole.
    ///
    /// ```
    /// use coop_budget::Budget;
    ///
    /// let mut budget = Budget::new(10);
    /// assert_eq!(budget.split(Budget::new(4)), Budget::new(4));
    /// assert_eq!(budget.split(Budget::UNLIMITED), Budget::new(6));
    /// assert!(!budget.has_remaining());
    /// ```
    #[inline]
    pub const fn split(&mut self, limit: Self) -> Self {
        if self.is_unlimited() {
            return limit;
        }
        let share = if limit.0 < self.0 { limit.0 } else { self.0 };
        self.0 -= share;
        Self(share)
    }

    /// Puts back what is left of a share that [`split`](Self::split) took.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) const fn join(&mut self, share: Self) {
        // Without a limit nothing was taken. With one the share has one too, and is no more than
        // was taken.
        if !self.is_unlimited() {
            self.0 += share.0;
        }
    }

    /// Gives an operation back that was charged to this budget. Saturates.
    #[inline]
    pub const fn refund(&mut self) {
        self.refund_n(1);
    }

    /// Gives operations back that were charged to this budget. Saturates.
    #[inline]
    pub const fn refund_n(&mut self, operations: u32) {
        let most = if self.is_unlimited() { u64::MAX } else { MOST };
        let sum = self.0.saturating_add(operations as u64);
        self.0 = if sum > most { most } else { sum };
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Equal if as much is left.
impl PartialEq for Budget {
    fn eq(&self, other: &Self) -> bool {
        self.remaining() == other.remaining()
    }
}

impl Eq for Budget {}

impl core::fmt::Debug for Budget {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.remaining() {
            Some(left) => write!(f, "Budget({left})"),
            None => f.write_str("Budget(unlimited)"),
        }
    }
}
