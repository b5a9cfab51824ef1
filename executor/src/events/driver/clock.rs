//! The clock of the driver, which tests may pause.
use net_driver::Driver;

pub(crate) use net_driver::time::ClockHold;

/// Whether tests may pause the clock.
pub(super) const MAY_PAUSE: bool = true;

pub(super) fn hold_clock(driver: &Driver) -> ClockHold {
    driver.hold_clock()
}

pub(super) fn pause(driver: &Driver) {
    driver.pause();
}
