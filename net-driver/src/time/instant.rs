//! `Instant`: a time of the clock by which the sleep futures wait.
use std::{
    ops::{Add, AddAssign, Sub, SubAssign},
    time::Duration,
};

/// A time of the clock by which the sleep futures wait. This is the clock of
/// [`std::time::Instant`], unless a test has paused it.
///
/// ```
/// use net_driver::time::Instant;
/// use std::time::Duration;
///
/// let begun = Instant::now();
/// assert!(begun + Duration::from_secs(1) > begun);
/// assert!(begun.elapsed() < Duration::from_secs(3_600));
///
/// let (second, zero) = (Duration::from_secs(1), Duration::ZERO);
/// let later = begun.checked_add(second).unwrap();
/// assert_eq!(later.checked_sub(second), Some(begun));
/// assert_eq!((later.duration_since(begun), begun.duration_since(later)), (second, zero));
/// assert_eq!(begun.saturating_duration_since(later), zero);
/// assert_eq!(later.checked_duration_since(begun), Some(second));
/// assert_eq!(begun.checked_duration_since(later), None);
/// assert_eq!(later.into_std() - begun.into_std(), second);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(std::time::Instant);

impl Instant {
    /// Converts a time of the standard library.
    ///
    /// ```
    /// let now = std::time::Instant::now();
    /// assert_eq!(net_driver::time::Instant::from_std(now).into_std(), now);
    /// ```
    pub const fn from_std(std: std::time::Instant) -> Self {
        Self(std)
    }

    /// Converts this into a time of the standard library.
    pub const fn into_std(self) -> std::time::Instant {
        self.0
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later than this.
    pub fn duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Returns the time since `earlier`, or `None` if `earlier` is later than this.
    pub fn checked_duration_since(&self, earlier: Self) -> Option<Duration> {
        self.0.checked_duration_since(earlier.0)
    }

    /// Returns the time since `earlier`, or zero if `earlier` is later than this.
    pub fn saturating_duration_since(&self, earlier: Self) -> Duration {
        self.0.saturating_duration_since(earlier.0)
    }

    /// Returns this time plus `span`, or `None` if the sum overflows.
    pub fn checked_add(&self, span: Duration) -> Option<Self> {
        self.0.checked_add(span).map(Self)
    }

    /// Returns this time minus `span`, or `None` if the difference overflows.
    pub fn checked_sub(&self, span: Duration) -> Option<Self> {
        self.0.checked_sub(span).map(Self)
    }
}

impl From<std::time::Instant> for Instant {
    fn from(std: std::time::Instant) -> Self {
        Self(std)
    }
}

impl From<Instant> for std::time::Instant {
    fn from(instant: Instant) -> Self {
        instant.0
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0 + span)
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, span: Duration) {
        *self = *self + span;
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.duration_since(earlier)
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0 - span)
    }
}

impl SubAssign<Duration> for Instant {
    fn sub_assign(&mut self, span: Duration) {
        *self = *self - span;
    }
}
