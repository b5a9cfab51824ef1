//! The present time, and times that depend on it.
use super::Instant;
#[cfg(feature = "test-util")]
use crate::driver;
use std::time::Duration;

impl Instant {
    /// Returns the present time. Reads the system's clock.
    ///
    /// With the feature `test-util`, this is the time of the current driver's clock, if a driver is
    /// current.
    #[inline]
    pub fn now() -> Self {
        #[cfg(feature = "test-util")]
        if let Some(now) = driver::with_current(|driver, _| driver.threads.now()) {
            return now;
        }
        Self::from_std(sync_shim::time::now())
    }

    /// Returns the time that has passed since this instant.
    pub fn elapsed(&self) -> Duration {
        Self::now().duration_since(*self)
    }

    /// Returns a time so late that it never comes, for a deadline that would overflow. It is beyond
    /// the last tick, unless the system's `Instant` has few bits above the present time.
    pub(crate) fn far_future() -> Self {
        const YEAR: u64 = 365 * 86_400;
        let now = Self::now();
        now.checked_add(Duration::from_secs(600 * YEAR))
            .unwrap_or_else(|| now + Duration::from_secs(30 * YEAR))
    }

    /// Returns this time plus `span`, or a time that never comes if the sum overflows.
    #[inline]
    pub(crate) fn after(self, span: Duration) -> Self {
        self.checked_add(span).unwrap_or_else(Self::far_future)
    }
}
