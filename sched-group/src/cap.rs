//! Caps: absolute limits on a group's runtime in each period.
use crate::tournament::{MAX_RANK, Tournament};
use alloc::vec::Vec;
use core::{fmt, time::Duration};

/// A limit on a group's runtime: a budget in each period, even if the group's siblings are idle.
///
/// The first period begins when a group without a cap gets one. Each later period begins when the
/// one before it ends. A group whose runtime in a period has reached the budget is *throttled*: the
/// group is not picked until a period begins in which it has budget left. Budget that a period does
/// not use is lost. Runtime beyond the budget (at most the longest poll) is taken from the
/// following periods. So in an interval in which n periods begin, a group runs for at most
/// `(n + 1) × budget`, plus one poll. If it always has work, and has no competitor, it runs for at
/// least `(n − 1) × budget`, less one poll. This lower bound holds if the worker picks again at the
/// time of [`Pick::Throttled`](crate::Pick::Throttled).
///
/// The runtime of a descendant counts for the group's cap, and also for the descendant's own cap. A
/// cap applies to one [`FairQueue`](crate::FairQueue): an executor with a queue for each worker
/// divides the budget among its queues.
///
/// ```
/// use sched_group::Cap;
/// use std::time::Duration;
///
/// // A fifth of the CPU, in parts of 20 ms.
/// let cap = Cap::new(Duration::from_millis(20), Duration::from_millis(100))?;
/// assert_eq!(cap.period(), 5 * cap.budget());
/// assert!(Cap::new(Duration::ZERO, Duration::from_millis(100)).is_err());
/// # Ok::<_, sched_group::BadCap>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cap {
    /// In nanoseconds, as is `period`. Both are at least 1.
    budget: u64,
    period: u64,
}

impl Cap {
    /// Creates a cap: a group may run for `budget` in each `period`.
    ///
    /// A budget of at least the period limits nothing.
    ///
    /// # Errors
    ///
    /// If the budget or the period is zero.
    pub fn new(budget: Duration, period: Duration) -> Result<Self, BadCap> {
        let [budget, period] = [budget, period].map(nanos);
        match (budget, period) {
            (0, _) | (_, 0) => Err(BadCap),
            _ => Ok(Self { budget, period }),
        }
    }

    /// Returns the runtime that a group has in each period.
    ///
    /// At most 584 years: a larger budget is reduced to that.
    pub const fn budget(&self) -> Duration {
        Duration::from_nanos(self.budget)
    }

    /// Returns how long a period lasts, at most 584 years.
    pub const fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// Returns whether the cap limits anything.
    const fn limits(&self) -> bool {
        self.budget < self.period
    }
}

/// The error of a [`Cap`] without a budget or without a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadCap;

impl fmt::Display for BadCap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a cap needs a budget and a period of at least a nanosecond each")
    }
}

impl core::error::Error for BadCap {}

/// Returns a duration in nanoseconds, at most 584 years.
pub(crate) fn nanos(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// The caps of a queue, and the times at which throttled groups are released.
pub(crate) struct Caps {
    /// Ranks the groups by the times of their releases. A group is present while it is throttled.
    releases: Tournament,
    /// Indexed by leaf in `releases`.
    usages: Vec<Usage>,
}

/// The state of a group's cap.
///
/// 1. The runtime of a period is added to `used`. At the end of the period the budget is subtracted
///    from `used`, down to zero.
/// 2. `began` is the start of the period in which the group was last charged, or in which its last
///    turn began if that was later (rules in `queue.rs`). So the next charged runtime starts in
///    that period.
#[derive(Clone, Copy)]
struct Usage {
    cap: Cap,
    began: u64,
    used: u64,
    /// When the group was last throttled.
    throttled: u64,
}

impl Usage {
    /// Subtracts the budgets of the periods that ended before `now`. The caller has charged all
    /// runtime up to `now`.
    fn begin(&mut self, now: u64) {
        let periods = now.saturating_sub(self.began) / self.cap.period;
        self.began += periods * self.cap.period;
        let paid = self.cap.budget.saturating_mul(periods);
        self.used = self.used.saturating_sub(paid);
    }

    /// Adds a runtime that ends now.
    #[inline]
    fn charge(&mut self, runtime: u64, now: u64) {
        if now - self.began < self.cap.period {
            self.used = self.used.saturating_add(runtime);
        } else {
            self.charge_periods(runtime, now);
        }
    }

    /// Adds a runtime that spans several periods, in three parts: the part in the first period,
    /// that in whole periods, and the rest.
    fn charge_periods(&mut self, runtime: u64, now: u64) {
        let mut time = now - runtime;
        let period = self.cap.period;
        let first = runtime.min(period - (time - self.began) % period);
        let whole = (runtime - first) / period * period;
        for part in [first, whole, runtime - first - whole] {
            self.used = self.used.saturating_add(part);
            time += part;
            // The part `whole` may be several periods. Charged one by one they would leave the same
            // `used`: each period adds `period` and subtracts `budget`. As the budget is smaller
            // than the period, no subtraction saturates.
            self.begin(time);
        }
    }

    /// Changes the cap. The present period keeps its start, and gets the new length. Rescales
    /// `used`, so that it takes as much time to fall to zero under the new cap as under the old
    /// one. So a group gains no runtime by changes of its cap.
    fn change(&mut self, cap: Cap, now: u64) {
        self.begin(now);
        let old = self.cap;
        if cap != old {
            let time = scale(self.used, old.period, old.budget);
            self.used = scale(time, cap.budget, cap.period);
            self.cap = cap;
            self.begin(now);
        }
    }
}

/// Returns `number × by / of`.
fn scale(number: u64, by: u64, of: u64) -> u64 {
    let scaled = u128::from(number) * u128::from(by) / u128::from(of);
    scaled.try_into().unwrap_or(u64::MAX)
}

impl Caps {
    pub(crate) const fn new() -> Self {
        Self {
            releases: Tournament::new(),
            usages: Vec::new(),
        }
    }

    /// Returns whether no group has a cap.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.releases.has_no_leaves()
    }

    /// Adds the cap of a group. Its first period begins now.
    pub(crate) fn add(&mut self, member: u32, cap: Cap, now: u64) -> u32 {
        let leaf = self.releases.add(member);
        let usage = Usage {
            cap,
            began: now,
            used: 0,
            throttled: now,
        };
        match self.usages.get_mut(leaf as usize) {
            Some(old) => *old = usage,
            None => self.usages.push(usage),
        }
        leaf
    }

    /// Changes a cap. Returns whether the group is throttled.
    pub(crate) fn change(&mut self, leaf: u32, cap: Cap, now: u64) -> bool {
        self.usages[leaf as usize].change(cap, now);
        let throttles = self.throttle(leaf, now);
        if !throttles {
            self.releases.set(leaf, 0, false);
        }
        throttles
    }

    /// Removes a cap.
    pub(crate) fn remove(&mut self, leaf: u32) {
        self.releases.set(leaf, 0, false);
        self.releases.remove(leaf);
    }

    pub(crate) fn cap(&self, leaf: u32) -> Cap {
        self.usages[leaf as usize].cap
    }

    /// Returns the rest of the budget, or `u64::MAX` if the cap limits nothing.
    pub(crate) fn left(&mut self, leaf: u32, now: u64) -> u64 {
        let usage = &mut self.usages[leaf as usize];
        usage.begin(now);
        match usage.cap.limits() {
            true => usage.cap.budget.saturating_sub(usage.used),
            false => u64::MAX,
        }
    }

    /// Charges a runtime that ends now. Returns whether the group is throttled.
    pub(crate) fn charge(&mut self, leaf: u32, runtime: u64, now: u64) -> bool {
        let usage = &mut self.usages[leaf as usize];
        if !usage.cap.limits() {
            return false;
        }
        usage.charge(runtime, now);
        self.throttle(leaf, now)
    }

    /// Throttles a group that has used up its budget, until a period begins in which the group has
    /// budget left. Returns whether the group is throttled.
    fn throttle(&mut self, leaf: u32, now: u64) -> bool {
        let usage = &mut self.usages[leaf as usize];
        if usage.used < usage.cap.budget || !usage.cap.limits() {
            return false;
        }
        let periods = usage.used / usage.cap.budget;
        let release = usage
            .began
            .saturating_add(periods.saturating_mul(usage.cap.period));
        if !self.releases.is_present(leaf) {
            usage.throttled = now;
        }
        self.releases.set(leaf, release.into(), true);
        true
    }

    /// Returns when the next throttled group is released.
    #[inline]
    pub(crate) fn next_release(&self) -> Option<u64> {
        let (time, ..) = self.releases.least()?;
        debug_assert!(time < MAX_RANK);
        Some(time as u64)
    }

    /// Releases a throttled group that is due. Returns the group's index, and the time at which it
    /// was throttled.
    #[inline]
    pub(crate) fn release(&mut self, now: u64) -> Option<(u32, u64)> {
        let (time, leaf, member) = self.releases.least()?;
        if time > u128::from(now) {
            return None;
        }
        self.releases.set(leaf, 0, false);
        Some((member, self.usages[leaf as usize].throttled))
    }

    /// Returns when the group was last throttled.
    pub(crate) fn throttled(&self, leaf: u32) -> u64 {
        self.usages[leaf as usize].throttled
    }
}
