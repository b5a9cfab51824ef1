//! The names of the module `clock`, for builds in which tests cannot pause the clock.
use net_driver::Driver;

/// Stands for a hold of the clock.
pub(crate) struct ClockHold;

pub(super) const MAY_PAUSE: bool = false;

pub(super) fn hold_clock(_: &Driver) -> ClockHold {
    ClockHold
}

pub(super) fn pause(_: &Driver) {}
