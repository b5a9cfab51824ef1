//! A clock that is cheap enough to read at each poll.
//!
//! On x86-64 the clock is the processor's time-stamp counter, if that counter is "invariant": it
//! counts at one rate and never stops. A reading takes about 10 ns. In all other cases the clock is
//! the system's. The length of a *tick* is computed when ticks are converted, from two readings of
//! both clocks: one when the clock is made, and one at the conversion.
use std::time::{Duration, Instant};

/// A clock that counts ticks of an unknown unit.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    counter: bool,
    begun: Instant,
    first: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        let mut clock = Self {
            counter: has_counter(),
            begun: Instant::now(),
            first: 0,
        };
        if clock.counter {
            clock.first = counter();
        }
        clock
    }

    /// Returns the ticks now.
    #[inline]
    pub(super) fn now(&self) -> u64 {
        if self.counter {
            counter()
        } else {
            self.begun.elapsed().as_nanos() as u64
        }
    }

    /// Returns a function from ticks to the time since the clock was made.
    pub(super) fn scale(&self) -> impl Fn(u64) -> Duration + use<> {
        let (first, (ticks, elapsed)) = (self.first, self.both());
        let unit = if self.counter {
            elapsed.as_nanos() as f64 / ticks.max(1) as f64
        } else {
            1.0
        };
        move |tick| {
            let nanos = tick.saturating_sub(first) as f64 * unit;
            Duration::from_nanos(nanos as u64)
        }
    }

    /// Returns the ticks that a time takes.
    pub(super) fn ticks(&self, time: Duration) -> u64 {
        if !self.counter {
            return u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        }
        let (ticks, elapsed) = self.both();
        let rate = ticks as f64 / elapsed.as_nanos().max(1) as f64;
        (time.as_nanos() as f64 * rate) as u64
    }

    /// Reads both clocks at nearly one moment. The function tries a few times and takes the closest
    /// pair of readings, as the system may suspend this thread between two readings.
    fn both(&self) -> (u64, Duration) {
        let read = |_| {
            let before = self.now();
            let elapsed = self.begun.elapsed();
            (
                // The difference wraps if the thread moved to a processor whose counter is behind.
                // Then this pair is not the closest one.
                self.now().wrapping_sub(before),
                before.saturating_sub(self.first),
                elapsed,
            )
        };
        let (_, ticks, elapsed) = (0..5).map(read).min().unwrap_or_default();
        (ticks, elapsed)
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(
    unused_unsafe,
    reason = "a newer Rust knows that each processor has `cpuid`"
)]
fn has_counter() -> bool {
    use std::arch::x86_64::__cpuid;

    // The leaf of `cpuid` that says whether the counter is invariant, if the processor has that
    // leaf.
    const POWER: u32 = 0x8000_0007;
    // SAFETY: every x86-64 processor has `cpuid`.
    let leaves = unsafe { __cpuid(0x8000_0000) }.eax;
    if leaves < POWER {
        return false;
    }
    // SAFETY: as above, and the processor has this leaf.
    unsafe { __cpuid(POWER) }.edx & 1 << 8 != 0
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has `rdtsc`, which `has_counter` has found usable.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn has_counter() -> bool {
    false
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
fn counter() -> u64 {
    0
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn later_tick_scales_to_a_later_time_and_back() {
        let clock = Clock::new();
        let one = clock.now();
        std::thread::sleep(Duration::from_millis(2));
        let two = clock.now();
        let scale = clock.scale();
        assert!(one < two && scale(one) < scale(two));
        let slept = clock.ticks(scale(two) - scale(one));
        assert!(slept.abs_diff(two - one) <= (two - one) / 100);
        assert_eq!(clock.ticks(Duration::ZERO), 0);
        assert!(clock.ticks(Duration::MAX) > u64::MAX / 2);
    }
}
