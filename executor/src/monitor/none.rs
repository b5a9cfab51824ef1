//! Stands for the monitor in builds without the feature `monitor`.
use crate::{blocking::block_in_place, settings::attributes::Attributes, worker::shared::Shared};
use sync_shim::sync::Arc;

#[derive(Clone)]
pub(crate) struct Settings;

impl Settings {
    pub(crate) fn new() -> Self {
        Self
    }

    pub(crate) fn turn_off(&mut self) {}

    pub(crate) fn is_on(&self) -> bool {
        false
    }
}

pub(crate) struct Monitor;

impl Monitor {
    pub(crate) fn new(_: Settings, _: usize, _: Attributes) -> Self {
        Self
    }

    pub(crate) fn start_at_once(&self, _: &Arc<Shared>) {}

    #[inline(always)]
    pub(crate) fn is_unstarted(&self) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn start(&self, _: &Arc<Shared>) -> bool {
        false
    }

    #[inline(always)]
    pub(crate) fn ring(&self) {}

    pub(crate) fn core_dropped(&self) {}

    pub(crate) fn join(&self) {}

    pub(crate) fn stalls(&self) -> u64 {
        0
    }

    pub(crate) fn is_refused(&self) -> bool {
        false
    }
}

/// As [`block_in_place`](crate::block_in_place()). With the feature `monitor` it costs less.
///
/// ```
/// assert_eq!(selvedge_executor::syscall(|| 7), 7);
/// ```
///
/// # Panics
/// As `block_in_place`.
#[track_caller]
pub fn syscall<R>(f: impl FnOnce() -> R) -> R {
    block_in_place(f)
}
