//! Estimates the system's clock by the processor's cycle counter, which takes less time to read.
//!
//! A reading of the system's clock takes 26 ns, and a reading of the counter 10 ns. The counter is
//! used if the processor says that the counter has one rate in all states of the processor
//! (*invariant TSC*).
//!
//! A *sample* is a time of the system's clock, together with the count of the counter just before
//! that time was read. A reading converts the cycles since the last sample to nanoseconds, and adds
//! them to that sample's time. For this it uses the *rate* between two earlier samples. If the sum
//! is more than [`LONGEST`] after the sample, or if no rate is known, the reading takes a new
//! sample instead, and returns the time of the new sample.
//!
//! # The error
//!
//! 1. An estimate is never before the last sample's time, and at most `LONGEST` after it. So an
//!    estimate is never ahead of the system's clock by more than `LONGEST`. It is ahead, for
//!    example, if the thread was preempted within the sample, between the count and the time.
//! 2. Unless the counter jumps (3), an estimate is behind the system's clock by less than
//!    `LONGEST`, and usually by some nanoseconds. A rate is taken between two samples that took
//!    fewer than [`TIGHT`] cycles each and lie [`APART`] cycles apart or more. So the rate is wrong
//!    by 2 % at most. Over `LONGEST` this makes 40 ns.
//! 3. The counter may jump, if the thread moves to a processor whose counter differs, or if a
//!    virtual machine moves to another host or is stopped. After a jump back, or a jump ahead by
//!    more than `LONGEST`, the next reading takes a sample. A smaller jump may make estimates
//!    wrong, but only until the next sample. A rate between two samples before and after a jump may
//!    also be wrong. But a rate is used only if it corresponds to a counter of 8 GHz or less. So
//!    the next sample is taken after 16,000 cycles at the latest, which are 5 µs at 3 GHz. Until
//!    then an estimate is behind by at most these 5 µs, plus the time for which the counter stood
//!    still.
use std::{
    arch::x86_64::{__cpuid, _rdtsc, CpuidResult},
    cell::Cell,
    sync::OnceLock,
};

/// The most nanoseconds between a sample and the readings that use it.
const LONGEST: u64 = 2_000;

/// The thread may have been interrupted in a sample that takes this many cycles or more.
const TIGHT: u64 = 1_000;

/// The least cycles between two samples that give a rate.
const APART: u64 = 1 << 16;

/// The number of bits of a rate that are its fraction.
const FRACTION: u32 = 32;

/// The least rate that is used: an eighth of a nanosecond per cycle.
const LEAST_RATE: u64 = 1 << (FRACTION - 3);

/// With this rate any reading takes a sample, except one at exactly the count of the last sample.
const NO_RATE: u64 = u64::MAX;

/// The state of a worker's readings.
pub(super) struct Cycles {
    /// Nanoseconds per cycle, as a fixed-point number with [`FRACTION`] bits after the point.
    rate: Cell<u64>,
    last: Cell<Sample>,
    /// The sample from which the next rate is taken.
    base: Cell<Sample>,
}

#[derive(Clone, Copy)]
struct Sample {
    count: u64,
    time: u64,
}

impl Sample {
    /// Takes a sample. Also returns whether the sample is tight: it took fewer than [`TIGHT`]
    /// cycles.
    fn take(clock: impl Fn() -> u64) -> (Self, bool) {
        let (count, time) = (read(), clock());
        let sample = Self { count, time };
        (sample, read().wrapping_sub(count) < TIGHT)
    }

    /// Returns the rate from `base` to this sample.
    fn rate_since(self, base: Self) -> Option<u64> {
        let cycles = self.count.wrapping_sub(base.count);
        let time = self.time.checked_sub(base.time)?;
        let fits = time >> (u64::BITS - FRACTION) == 0;
        let rate = fits.then(|| (time << FRACTION).checked_div(cycles))??;
        (rate >= LEAST_RATE).then_some(rate)
    }
}

impl Cycles {
    /// Returns `None` if the counter's rate may change, or if the counter is slow to read, for
    /// example because a hypervisor emulates it.
    pub(super) fn new(clock: impl Fn() -> u64) -> Option<Self> {
        /// The most samples that this takes to get a tight one. An interrupt may disturb some.
        const ATTEMPTS: usize = 8;
        if !is_invariant() || sync_shim::sim::is_simulated() {
            return None;
        }
        let mut samples = (0..ATTEMPTS).map(|_| Sample::take(&clock));
        let (first, _) = samples.find(|(_, tight)| *tight)?;
        Some(Self {
            rate: Cell::new(NO_RATE),
            last: Cell::new(first),
            base: Cell::new(first),
        })
    }

    /// Returns the time of `clock`, in nanoseconds, or an estimate of it.
    #[inline]
    pub(super) fn now(&self, clock: impl Fn() -> u64) -> u64 {
        let last = self.last.get();
        let cycles = read().wrapping_sub(last.count);
        let passed = (u128::from(cycles) * u128::from(self.rate.get())) >> FRACTION;
        if passed <= u128::from(LONGEST) {
            return last.time + passed as u64;
        }
        self.sample(clock)
    }

    #[cold]
    #[inline(never)]
    fn sample(&self, clock: impl Fn() -> u64) -> u64 {
        let (sample, is_tight) = Sample::take(clock);
        self.last.set(sample);
        let base = self.base.get();
        if is_tight && sample.count.wrapping_sub(base.count) >= APART {
            self.base.set(sample);
            self.rate.set(sample.rate_since(base).unwrap_or(NO_RATE));
        }
        sample.time
    }
}

#[inline]
fn read() -> u64 {
    // SAFETY: every processor of this target has the instruction.
    unsafe { _rdtsc() }
}

/// Returns whether the counter counts at one rate in all states of the processor.
fn is_invariant() -> bool {
    static IS_INVARIANT: OnceLock<bool> = OnceLock::new();
    *IS_INVARIANT.get_or_init(|| {
        cpuid(0x8000_0000).eax >= 0x8000_0007 && { cpuid(0x8000_0007).edx & (1 << 8) != 0 }
    })
}

#[allow(unused_unsafe, reason = "safe in later versions of Rust")]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every processor of this target has the instruction.
    unsafe { __cpuid(leaf) }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests {
    use super::{Cycles, FRACTION, LONGEST, Sample, read};
    use std::{cell::Cell, time::Instant};

    fn system_clock() -> impl Fn() -> u64 + Copy {
        let begun = Instant::now();
        move || begun.elapsed().as_nanos() as u64
    }

    /// Fails if readings use a sample for longer than `LONGEST`, or if the rate is wrong.
    #[test]
    fn estimates_stay_close_to_the_clock() {
        let clock = system_clock();
        let Some(cycles) = Cycles::new(clock) else {
            return;
        };
        let (mut estimates, mut wrong) = (0, 0);
        for _ in 0..1_000_000 {
            if estimates == 10_000 {
                break;
            }
            let (before, samples) = (clock(), Cell::new(0));
            let time = cycles.now(|| {
                samples.set(1);
                clock()
            });
            let after = clock();
            // A virtual machine that is stopped or moved may make a few estimates wrong.
            wrong += u64::from(time > after + LONGEST || time + LONGEST < before);
            estimates += 1 - samples.get();
        }
        assert!(wrong <= 1 + estimates / 100, "{wrong} of {estimates}");
    }

    /// Fails if a reading treats a jump of the counter, back or ahead, as a small number of cycles,
    /// or if the multiplication by the rate may overflow.
    #[test]
    fn counter_that_jumps_leads_to_a_sample() {
        let Some(cycles) = Cycles::new(|| 0) else {
            return;
        };
        for jump in [1 << 20, 1 << 40, 1 << 63] {
            for count in [read().wrapping_add(jump), read().wrapping_sub(jump)] {
                cycles.rate.set(1 << (FRACTION - 1));
                cycles.last.set(Sample { count, time: 1 });
                assert_eq!(cycles.now(|| 7), 7);
            }
        }
    }

    /// Fails if `rate_since` returns a rate that is too small, or that overflows, after a jump of
    /// the counter or of the clock. With a rate that is too small, readings would use a sample for
    /// too long.
    #[test]
    fn rate_that_no_processor_has_is_refused() {
        let base = Sample {
            count: 5,
            time: 1_000,
        };
        let rate = |cycles: u64, nanoseconds: u64| {
            let count = base.count.wrapping_add(cycles);
            let time = base.time.wrapping_add(nanoseconds);
            Sample { count, time }.rate_since(base)
        };
        assert_eq!(rate(200_000, 100_000), Some(1 << (FRACTION - 1)));
        assert_eq!(rate(1 << 40, 100_000), None);
        assert_eq!(rate(200_000, 0), None);
        assert_eq!(rate(200_000, u64::MAX), None); // The clock has gone back.
        assert_eq!(rate(0, 100_000), None);
        assert_eq!(rate(1 << 34, 1 << FRACTION), None); // The time does not fit before the point.
    }
}
