//! The clock of the groups: the time that passes, or a number that a test sets.
//!
//! A worker on which two groups have work reads the clock before each poll. So it estimates most
//! readings of the system's clock by the processor's cycle counter ([`cycles`]).
use cycles::Cycles;
use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

#[cfg_attr(
    not(all(target_arch = "x86_64", not(target_env = "sgx"), not(miri))),
    path = "clock/no_cycles.rs"
)]
mod cycles;

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
            ClockSource::Real => Self::Real(sync_shim::time::now()),
            ClockSource::Manual(time) => Self::Manual(time.clone()),
        }
    }
}

impl sched_group::Clock for Clock {
    #[inline]
    fn now(&self) -> u64 {
        match self {
            Self::Real(start) => sync_shim::time::since(*start).as_nanos() as u64,
            // Ordering: Relaxed, as the number publishes nothing. The user made this atomic, so it
            // is one of std.
            Self::Manual(time) => time.load(Relaxed),
        }
    }
}

/// The clock of a runtime as one worker reads it. [`cycles`] says by how much a reading may differ
/// from the [`Clock`]. A reading may also be earlier than the one before, by at most that
/// difference. The fair queue ignores such a step back.
pub(super) struct WorkerClock {
    clock: Clock,
    cycles: Option<Cycles>,
}

impl WorkerClock {
    pub(super) fn new(clock: Clock) -> Self {
        let cycles = match clock {
            Clock::Real(_) => Cycles::new(|| sched_group::Clock::now(&clock)),
            Clock::Manual(_) => None,
        };
        Self { clock, cycles }
    }
}

impl sched_group::Clock for WorkerClock {
    #[inline]
    fn now(&self) -> u64 {
        match &self.cycles {
            Some(cycles) => cycles.now(|| self.clock.now()),
            None => self.clock.now(),
        }
    }
}
