//! The spans of time in which a worker does not sleep, if the builder has them measured.
use crate::observe::metrics::Counters;
use std::{cell::Cell, time::Instant};

pub(crate) struct BusyTime {
    is_measured: bool,
    /// The start of the span in progress.
    begun: Cell<Option<Instant>>,
}

impl BusyTime {
    pub(crate) fn new(is_measured: bool) -> Self {
        Self {
            is_measured,
            begun: Cell::new(None),
        }
    }

    /// Begins a span, unless one has begun.
    pub(crate) fn begin(&self) {
        if self.is_measured && self.begun.get().is_none() {
            self.begun.set(Some(sync_shim::time::now()));
        }
    }

    /// Ends the span in progress, and counts it.
    pub(crate) fn end(&self, counters: &Counters) {
        if let Some(begun) = self.begun.take() {
            counters.add_busy(sync_shim::time::since(begun));
        }
    }
}
