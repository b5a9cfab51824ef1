//! When a busy worker looks at the injector.
//!
//! A *look* takes a fair share of the injector. A worker that has tasks of its own looks in two
//! cases:
//!
//! 1. *At the end of an interval*, a number of ticks. The builder sets the longest one. A worker
//!    with a thread of its own reads the clock at the end of an interval, and estimates the length
//!    of a tick. The worker then chooses the next interval: one that takes about [`TARGET`], and at
//!    least one tick. So with long polls the worker looks earlier than after 61 ticks. Where
//!    intervals are shorter than the target, the worker reads the clock only at the end of some.
//! 2. *At a signal*: another thread has set the flag of the worker's time slice, between two polls
//!    or during one. A push from outside that finds all workers busy nudges one of them. So such a
//!    push waits for one poll, whatever the interval.
//!
//! A slice ignores nudges after a look that found work, because the worker will look again soon
//! (see [`Preempt`]). The interval says how soon. So a look at a signal begins a new interval, if
//! the worker reads the clock.
//!
//! While a worker's own polls are long, tasks from outside get as much of its time as its own
//! tasks, by the clock. After its own ticks the worker *owes* as much time to tasks from outside.
//! At a look it then takes tasks from the injector one by one, and runs each at once, until it owes
//! nothing more. So a burst need not wait in the ring behind long polls. A worker that owes nothing
//! moves its share into its ring, behind its own tasks. But a worker without own tasks whose
//! intervals are one tick long also takes tasks one by one: in its ring they would wait behind one
//! long poll, while another worker may be free.
//!
//! The worker's own tasks get their time, too. If a task from outside took longer than
//! [`MAX_OWED`], the worker owes its own tasks as much, up to [`MAX_OWED_TO_OWN`]. Until they have
//! had that time, the worker does not look. Without this rule, a task with long polls could run
//! before each short task of the ring: such a task is requeued at the injector, as its slices end.
//! The end of a slice shows that a task took long, even where the worker skips the reading that
//! would show it ([`Interval::note_ended_slice`]).
//!
//! A driven worker reads no clock, so that a program may repeat a run exactly. The intervals of a
//! driven worker have the length that the builder says.
//!
//! The worker records how long the work that it found had waited (`Core::record_wait`). The looks
//! themselves are in [`next`](crate::worker::next).
use coop_budget::{Preempt, Slices};
use std::{
    cell::Cell,
    ptr::NonNull,
    time::{Duration, Instant},
};

/// The time that an interval is to take. With a target of 10 µs, polls of 200 ns shorten intervals
/// of 61 ticks: then a tree of forks and joins moves twice as many tasks through the injector, and
/// takes 1.08 times as long as with 30 µs. With 60 µs the tree gains a little more, but a burst
/// beside polls of 1 µs takes 1.5 times as long as with 10 µs (`docs/benchmarks/log.md`,
/// `fork_join`).
const TARGET: Duration = Duration::from_micros(30);

/// The most time that the worker owes to tasks from outside.
const MAX_OWED: Duration = Duration::from_millis(1);

/// The most time that the worker owes to its own tasks. Longer than [`MAX_OWED`], because this time
/// also passes while the worker's thread waits for a CPU. For example, a thread that the worker's
/// tasks have woken may use that CPU.
const MAX_OWED_TO_OWN: Duration = Duration::from_millis(10);

/// The least average length of own ticks, in nanoseconds, at which the worker owes their time to
/// tasks from outside.
const LONG: u64 = 1_000;

/// The number of tasks from outside that the worker takes one by one between two readings of the
/// clock, minus one.
const REPAYS: u64 = 3;

/// The length of an interval, in ticks, while nothing is known of the ticks' length.
const UNKNOWN: u32 = 2;

/// The most intervals without a reading of the clock, in a row.
const MAX_SKIPS: u64 = 7;

/// The ticks until a worker's next look.
pub(crate) struct Interval {
    /// Ticks until the look, at least 1.
    left: Cell<u32>,
    /// Length of the interval in progress.
    length: Cell<u32>,
    longest: u32,
    /// Ticks of the intervals that ended since the last reading.
    ticks: Cell<u64>,
    /// Intervals until the next reading.
    skips: Cell<u64>,
    /// The last reading, unless the worker has slept since.
    read: Cell<Option<Instant>>,
    /// The time, in nanoseconds, that tasks from outside are owed.
    owed: Cell<u64>,
    /// The time, in nanoseconds, that the worker's own tasks are owed.
    owed_to_own: Cell<u64>,
    /// Whether the ticks since the last reading were those of tasks from outside, taken one by one.
    repays: Cell<bool>,
    /// Whether the ticks since the last reading began with a task from outside, and each look since
    /// has found another.
    from_outside: Cell<bool>,
    /// Whether the last look has found a task, of which no ended slice is noted.
    has_found: Cell<bool>,
    /// Whether the worker reads the clock.
    adapts: bool,
}

/// A reading of the clock at a look.
pub(crate) struct Reading {
    pub(crate) now: Instant,
    pub(crate) before: Option<Instant>,
}

impl Interval {
    pub(crate) fn new(longest: u32, adapts: bool) -> Self {
        let length = if adapts {
            longest.min(UNKNOWN)
        } else {
            longest
        };
        Self {
            left: Cell::new(length),
            length: Cell::new(length),
            longest,
            ticks: Cell::new(0),
            skips: Cell::new(0),
            read: Cell::new(None),
            owed: Cell::new(0),
            owed_to_own: Cell::new(0),
            repays: Cell::new(false),
            from_outside: Cell::new(false),
            has_found: Cell::new(false),
            adapts,
        }
    }

    /// Counts a tick. Returns whether the interval is over: then the caller begins the next one.
    #[inline]
    pub(crate) fn tick(&self) -> bool {
        let left = self.left.get() - 1;
        if left == 0 {
            return true;
        }
        self.left.set(left);
        false
    }

    /// Begins the next interval. Reads the clock if `is_due`, or after the intervals that skip a
    /// reading. A worker that reads no clock goes on with its interval if `is_due`.
    pub(crate) fn begin(&self, is_due: bool) -> Option<Reading> {
        if !self.adapts {
            if !is_due {
                self.left.set(self.length.get());
            }
            return None;
        }
        // At the end of an interval `left` is 1.
        let done = u64::from(self.length.get() - self.left.get() + 1);
        let ticks = self.ticks.get() + done;
        self.left.set(self.length.get());
        let skips = self.skips.get();
        if !is_due && skips > 0 {
            self.skips.set(skips - 1);
            self.ticks.set(ticks);
            return None;
        }
        let now = sync_shim::time::now();
        let before = self.read.replace(Some(now));
        if let Some(before) = before {
            let took = now.duration_since(before);
            self.adapt(took, ticks);
            self.share(took, ticks);
        }
        self.ticks.set(0);
        Some(Reading { now, before })
    }

    /// Chooses the length of the interval, and the intervals until the next reading. The last
    /// `ticks` ticks took the time `took`.
    fn adapt(&self, took: Duration, ticks: u64) {
        let took = u64::try_from(took.as_nanos()).map_or(u64::MAX, |took| took.max(1));
        let target = TARGET.as_nanos() as u64;
        let wanted = (target.saturating_mul(ticks) / took).clamp(1, u64::from(self.longest)) as u32;
        // The interval shrinks at once and grows step by step: polls of mixed lengths count as long
        // ones.
        let length = wanted.min(self.length.get().saturating_mul(2));
        self.length.set(length);
        self.left.set(length);
        let interval = (took / ticks).saturating_mul(u64::from(length)).max(1);
        self.skips
            .set((target / interval).saturating_sub(1).min(MAX_SKIPS));
    }

    /// Counts the time of ticks. One side's tasks ran in them: the worker's own, or those from
    /// outside. The time that this side is owed shrinks by the time of the ticks. The other side is
    /// then owed the time of the ticks if that time was long, and nothing otherwise.
    fn share(&self, took: Duration, ticks: u64) {
        let to_own = took.min(MAX_OWED_TO_OWN).as_nanos() as u64;
        self.owed_to_own.set(match self.from_outside.get() {
            true if took >= MAX_OWED => to_own,
            true => 0,
            false => self.owed_to_own.get().saturating_sub(to_own),
        });
        let took = took.min(MAX_OWED).as_nanos() as u64;
        if self.repays.get() {
            self.owed.set(self.owed.get().saturating_sub(took));
        } else {
            self.owed.set(if took / ticks >= LONG { took } else { 0 });
        }
    }

    /// Whether tasks from outside are taken one by one, and the clock need not be read yet.
    pub(crate) fn goes_on_repaying(&self) -> bool {
        self.repays.get() && self.skips.get() > 0
    }

    /// Whether tasks from outside are owed time.
    pub(crate) fn owes(&self) -> bool {
        self.owed.get() > 0
    }

    /// Whether the polls are so long that an interval is one tick.
    pub(crate) fn is_one_tick(&self) -> bool {
        self.adapts && self.length.get() == 1
    }

    /// Whether the worker reads the clock, and the interval is several ticks: then it takes about
    /// [`TARGET`], or less.
    pub(crate) fn is_surely_short(&self) -> bool {
        self.adapts && self.length.get() > 1
    }

    /// Whether the worker's own tasks are owed time.
    pub(crate) fn owes_own(&self) -> bool {
        self.owed_to_own.get() > 0
    }

    /// Counts the ticks from here on as the worker's own. [`note_look`](Self::note_look) says
    /// whether they begin with a task from outside.
    pub(crate) fn stop_repaying(&self) {
        self.repays.set(false);
    }

    /// Notes whether a look has found a task from outside, and whether the look has read the clock.
    pub(crate) fn note_look(&self, has_found: bool, reads: bool) {
        self.has_found.set(has_found);
        self.from_outside
            .set(has_found && (reads || self.from_outside.get()));
    }

    /// Lets the next tick end with a look that takes one task.
    pub(crate) fn repay(&self, reads: bool) {
        self.end_at_next_tick();
        self.repays.set(true);
        if reads {
            self.skips.set(REPAYS);
        }
    }

    /// Notes that a request has ended the slice of the last task, so the task took long. Then the
    /// next look reads the clock. If the task came from outside, the worker owes its own tasks as
    /// much time. `is_over` says whether the interval has ended with that task.
    pub(crate) fn note_ended_slice(&self, is_over: bool) {
        let ticks = self.length.get() - self.left.get() + u32::from(is_over);
        self.skips.set(0);
        if self.has_found.take() && ticks == 1 && self.adapts {
            self.read.set(None);
            self.ticks.set(0);
            self.owed.set(0);
            self.repays.set(false);
            self.from_outside.set(false);
            self.owed_to_own.set(MAX_OWED_TO_OWN.as_nanos() as u64);
        }
    }

    /// Lets the interval end at the next tick.
    pub(crate) fn end_at_next_tick(&self) {
        if self.adapts {
            self.length.set(1);
        }
        self.left.set(1);
    }

    /// Forgets the estimate, after a sleep or at a change of the thread. The tasks that come next
    /// may be different ones, and the time until the next reading is not that of polls alone.
    pub(crate) fn forget(&self) {
        if self.adapts {
            self.read.set(None);
            self.ticks.set(0);
            self.skips.set(0);
            self.owed.set(0);
            self.owed_to_own.set(0);
            self.repays.set(false);
            self.from_outside.set(false);
            let length = self.length.get().min(UNKNOWN);
            self.length.set(length);
            self.left.set(length);
        }
    }
}

/// The flag of a worker's time slice, without the look-up in the runtime.
pub(crate) struct Slice(NonNull<Preempt>);

// SAFETY: a `Slice` is a shared reference to a `Preempt`, which is `Sync`.
unsafe impl Send for Slice {}

impl Slice {
    /// # Safety
    /// `slices` stay alive, at the same address, as long as the returned value.
    pub(crate) unsafe fn of(slices: &Slices, worker: usize) -> Self {
        Self(NonNull::from(slices.of(worker)))
    }

    #[inline]
    pub(crate) fn get(&self) -> &Preempt {
        // SAFETY: the `Preempt` is alive, at a fixed address, by the contract of `of`.
        unsafe { self.0.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Interval, TARGET, UNKNOWN};
    use std::time::{Duration, Instant};

    fn after(interval: &Interval, each: Duration, ticks: u32) -> (u32, u64) {
        interval.adapt(each * ticks, ticks.into());
        (interval.length.get(), interval.skips.get())
    }

    #[test]
    fn interval_shrinks_at_once_and_grows_step_by_step() {
        let interval = Interval::new(61, true);
        assert_eq!(interval.length.replace(61), UNKNOWN);
        assert_eq!(after(&interval, Duration::from_micros(1), 61), (30, 0));
        assert_eq!(after(&interval, Duration::from_millis(50), 10), (1, 0));
        let short = Duration::from_nanos(20);
        let lengths = [(); 7].map(|()| after(&interval, short, 10).0);
        assert_eq!(lengths, [2, 4, 8, 16, 32, 61, 61]);
    }

    #[test]
    fn intervals_of_short_ticks_skip_readings() {
        let interval = Interval::new(61, true);
        interval.length.set(61);
        assert_eq!(after(&interval, Duration::from_nanos(123), 61), (61, 2));
        assert_eq!(after(&interval, Duration::from_nanos(1), 61), (61, 7));
        assert_eq!(after(&interval, TARGET, 61), (1, 0));
    }

    /// Fails if the worker owes nothing to its own tasks after a long task from outside, because it
    /// skips the reading of the clock. Fails too if an own task counts as one from outside.
    #[test]
    fn ended_slice_of_a_task_from_outside_owes_time_to_own_tasks() {
        for (length, found, own_ticks, owes) in [
            (1, true, 0, true),
            (8, true, 0, true),
            (8, true, 1, false),
            (8, false, 0, false),
        ] {
            let interval = Interval::new(61, true);
            interval.length.set(length);
            interval.left.set(length);
            interval.read.set(Some(Instant::now()));
            interval.skips.set(7);
            interval.note_look(found, false);
            let ticks = (0..=own_ticks).map(|_| interval.tick());
            let is_over = ticks.last().unwrap();
            interval.note_ended_slice(is_over);
            assert_eq!(interval.owes_own(), owes, "{length} {found} {own_ticks}");
            assert!(
                interval.begin(false).is_some(),
                "the next look reads the clock"
            );
            interval.note_ended_slice(is_over);
            assert_eq!(
                interval.owes_own(),
                owes,
                "the second slice was not from outside"
            );
        }
    }

    #[test]
    fn extreme_times_leave_a_valid_interval() {
        let interval = Interval::new(u32::MAX, true);
        interval.length.set(u32::MAX);
        assert_eq!(after(&interval, Duration::ZERO, 1), (30_000, 0));
        assert!(after(&interval, Duration::from_nanos(1), u32::MAX).0 > 0);
        interval.adapt(Duration::MAX, u64::MAX);
        assert!(interval.length.get() >= 1);
    }
}
