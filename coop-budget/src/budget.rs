//! The budget as a value: the number of operations that are left.
//!
//! A budget is one word, so that a charge is a test and a decrement, with a limit or without. A
//! limit is at most `u32::MAX`. Without a limit, single charges count the word down from
//! `u64::MAX`, and no program runs long enough for it to reach `u32::MAX`. A batch leaves such a
//! word as it is: 2³² batches of the largest size, which take some seconds, would use it up.

/// A number of operations that may still be granted. A copy is a separate budget.
///
/// ```
/// use coop_budget::Budget;
/// let mut budget = Budget::new(2);
/// assert!(budget.charge() && budget.charge() && !budget.charge());
/// budget.refund();
/// assert_eq!(budget.remaining(), Some(1));
///
/// // A batch: operations that were not needed are refunded.
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
    /// 128 operations a poll, as in tokio, where this number kept tail latencies short at no loss
    /// of throughput.
    pub const DEFAULT: Self = Self::new(128);

    /// No limit: every operation is granted.
    pub const UNLIMITED: Self = Self(u64::MAX);

    /// Creates a budget of `operations`. With 0, no operation is granted: the first one makes the
    /// task yield.
    #[inline]
    pub const fn new(operations: u32) -> Self {
        Self(operations as u64)
    }

    /// Returns the number of operations that are left, or `None` without a limit.
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

    /// Returns whether another operation would be granted.
    #[inline]
    pub const fn has_remaining(self) -> bool {
        self.0 != 0
    }

    /// Grants an operation. Returns false if the task must yield.
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

    /// Returns a budget of one operation less than `self`, and whether `self` had an operation. If
    /// `self` had none, the caller may only pass the returned budget to
    /// [`uncharged`](Self::uncharged).
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) const fn charged(self) -> (Self, bool) {
        let (left, is_missing) = self.0.overflowing_sub(1);
        (Self(left), !is_missing)
    }

    /// Undoes [`charged`](Self::charged).
    #[cfg(feature = "std")]
    pub(crate) const fn uncharged(self) -> Self {
        Self(self.0.wrapping_add(1))
    }

    /// Grants up to `wanted` operations at once and returns how many: 0 if the task must yield.
    #[inline]
    pub const fn charge_n(&mut self, wanted: u32) -> u32 {
        if self.is_unlimited() {
            return wanted;
        }
        let granted = if self.0 < wanted as u64 {
            self.0
        } else {
            wanted as u64
        };
        self.0 -= granted;
        granted as u32
    }

    /// Takes a share of up to `limit` out of what is left. If `self` is unlimited, the share is
    /// `limit` itself, and `self` is not reduced.
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

    /// Takes back the rest of a share that [`split`](Self::split) took out.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) const fn join(&mut self, share: Self) {
        // A budget without a limit was not reduced by its shares. The share of a limited budget is
        // limited, and `join` returns at most as many operations to the budget as `split` took.
        if !self.is_unlimited() {
            self.0 += share.0;
        }
    }

    /// Refunds an operation that was charged to this budget. Saturates.
    #[inline]
    pub const fn refund(&mut self) {
        self.refund_n(1);
    }

    /// Refunds operations that were charged to this budget. Saturates.
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

/// Budgets are equal if the same number of operations is left.
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

#[cfg(test)]
mod tests {
    use super::Budget;

    /// Fails if a batch counts down the word of an unlimited budget.
    #[test]
    fn batches_do_not_use_up_an_unlimited_budget() {
        let mut budget = Budget::UNLIMITED;
        for _ in 0..3 {
            assert_eq!(budget.charge_n(u32::MAX), u32::MAX);
        }
        assert_eq!(budget.0, u64::MAX);
    }
}
