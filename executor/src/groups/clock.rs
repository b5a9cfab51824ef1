//! The clock of the groups: the time that passes, or a number that a test sets.
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

/// The builder's choice of a clock.
#[derive(Clone, Default)]
pub(crate) enum ClockSource {
    #[default]
    Real,
    /// Nanoseconds that the user sets.
    Manual(Arc<AtomicU64>),
}

impl fmt::Debug for ClockSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Real => "Real",
            Self::Manual(_) => "Manual",
        })
    }
}

/// A clock of one runtime.
#[derive(Clone)]
pub(crate) enum Clock {
    Real(Instant),
    Manual(Arc<AtomicU64>),
}

impl Clock {
    pub(crate) fn new(source: &ClockSource) -> Self {
        match source {
            ClockSource::Real => Self::Real(Instant::now()),
            ClockSource::Manual(time) => Self::Manual(time.clone()),
        }
    }
}

impl sched_group::Clock for Clock {
    #[inline]
    fn now(&self) -> u64 {
        match self {
            Self::Real(start) => start.elapsed().as_nanos() as u64,
            // Ordering: Relaxed, as a number that publishes nothing. It is the user's atomic, so it
            // is std's.
            Self::Manual(time) => time.load(Relaxed),
        }
    }
}
