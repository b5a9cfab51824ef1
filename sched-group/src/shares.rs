//! Shares, and the price of a nanosecond for the group that has them.
//!
//! A group's virtual runtime is its runtime divided by its shares. To avoid a division for each
//! charge, the runtime is multiplied by the reciprocal of the shares, in fixed point:
//!
//! 1. [`ONE`], 2⁶², is one nanosecond at one share. The reciprocal is `ONE / shares`, rounded down.
//! 2. A charge is the 128-bit product of less than 2⁶⁴ nanoseconds and a reciprocal of at most 2⁶².
//!    So the charge is less than 2¹²⁶, and no product overflows. (With 64 bits and a reciprocal of
//!    2³²/shares, a product would overflow after 4.3 seconds at one share.)
//! 3. A group that runs on one processor for 500 years runs for 1.58 × 10¹⁹ nanoseconds, less than
//!    2⁶⁴. So its virtual runtime stays below 2¹²⁶ even at one share. A clock that leaps could
//!    charge more than that. Then the virtual runtime stays at its maximum, where groups take
//!    turns.
//! 4. Rounding makes a group's virtual runtime too small by at most the fraction `shares / 2⁶²`: by
//!    four nanoseconds a share in 2⁶⁴ nanoseconds of runtime. This error never adds up to a turn,
//!    so the bound on fairness holds in intervals of any length. (If `ONE` were 2³², the error
//!    would add up to 0.8 µs a share in an hour, more than a turn of 0.5 ms at 1,000 shares.)
use core::{fmt, num::NonZeroU32};

/// One nanosecond at one share.
pub(crate) const ONE: u64 = 1 << 62;

/// The weight of a group beside its siblings, at least 1.
///
/// While two groups with the same parent both have work, they run for times in the proportion of
/// their shares. Only the proportion counts: 200 to 100 is the same as 2 to 1.
///
/// ```
/// use sched_group::{Shares, ZeroShares};
///
/// const MAIN: Shares = Shares::new(1000).unwrap();
/// assert_eq!(MAIN.get(), 1000);
/// assert_eq!(Shares::try_from(0), Err(ZeroShares));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shares(NonZeroU32);

impl Shares {
    /// Creates shares from a number. Returns `None` for 0.
    ///
    /// `Shares::try_from` returns an error with a message instead.
    pub const fn new(shares: u32) -> Option<Self> {
        // Not `map`, which is not const.
        match NonZeroU32::new(shares) {
            Some(shares) => Some(Self(shares)),
            None => None,
        }
    }

    /// Returns the number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns the price of a nanosecond: the reciprocal of the shares, in fixed point (rule 1).
    pub(crate) const fn price(self) -> u64 {
        ONE / self.0.get() as u64
    }
}

impl TryFrom<u32> for Shares {
    type Error = ZeroShares;

    fn try_from(shares: u32) -> Result<Self, ZeroShares> {
        Self::new(shares).ok_or(ZeroShares)
    }
}

impl From<NonZeroU32> for Shares {
    fn from(shares: NonZeroU32) -> Self {
        Self(shares)
    }
}

/// The error of [`Shares`] of 0: a group with no share would never run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroShares;

impl fmt::Display for ZeroShares {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a group needs at least one share: with none it would never run")
    }
}

impl core::error::Error for ZeroShares {}

/// Returns the charge for a runtime at a price.
#[inline]
pub(crate) fn charge(runtime: u64, price: u64) -> u128 {
    u128::from(runtime) * u128::from(price)
}
