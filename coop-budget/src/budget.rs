//! The budget as a value: how many operations are left.

/// Operations that may still be granted. Copied, it counts on its own.
///
/// ```
/// use coop_budget::Budget;
/// let mut budget = Budget::new(2);
/// assert!(budget.charge() && budget.charge() && !budget.charge());
/// budget.refund();
/// assert_eq!(budget.remaining(), Some(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget(Option<u32>);

impl Budget {
    /// 128 operations a poll: what Tokio found to keep tails short at no loss of throughput.
    pub const DEFAULT: Self = Self::new(128);

    /// No limit: every operation is granted, none is counted.
    pub const UNLIMITED: Self = Self(None);

    /// So many operations. With 0 none is granted: the first asks the task to yield.
    pub const fn new(operations: u32) -> Self {
        Self(Some(operations))
    }

    /// What is left, `None` without a limit.
    pub const fn remaining(self) -> Option<u32> {
        self.0
    }

    /// Whether one more operation would be granted.
    pub const fn has_remaining(self) -> bool {
        !matches!(self.0, Some(0))
    }

    /// Grants an operation, or says that the task is to yield.
    pub const fn charge(&mut self) -> bool {
        match &mut self.0 {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// Gives an operation back that was charged to this budget. Saturates.
    pub const fn refund(&mut self) {
        if let Some(left) = &mut self.0 {
            *left = left.saturating_add(1);
        }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::DEFAULT
    }
}
