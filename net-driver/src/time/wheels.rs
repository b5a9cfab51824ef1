//! The timers of a runtime: a wheel for each worker, and one for all other threads.
//!
//! A timer is armed in the wheel of the thread that polls its future first. So the workers do not
//! share a lock, except when one worker fires the timers of another worker, which is busy.
//!
//! 1. The lock of a wheel guards its entries. No user code runs under it: wakers are cloned before
//!    the lock is taken, and woken or dropped after its release.
//! 2. `next` is a tick before which no timer of the wheel expires. `next` is written under the
//!    lock, and read without the lock. An insertion lowers `next`, a firing sets it anew, and a
//!    removal does not change it. So at that tick a thread may find no timer that is due.
//! 3. If timers are due shortly after each other, a park for the next deadline lasts until some
//!    time after the last firing, the *spacing*. So the poller does not park and wake for each
//!    timer. The first timer after a pause is not late. `spacing.rs` chooses the spacing.
//! 4. After a shutdown no wheel takes an entry.
//! 5. A thread reads the clock before it has the lock. Meanwhile another thread may have advanced
//!    the wheel further, and the wheel files a timer of an earlier tick as due. So a firing
//!    compares timers with the wheel's tick, if that is later, and fires such a timer. If the
//!    firing put it back for its own tick, it would be due again at once, for ever. The timer does
//!    not fire early: the clock of the other thread has passed the wheel's tick.
//! 6. A thread fires the timers of its own wheel first. But if the first deadline of another wheel
//!    is earlier by more than [`OVERTAKEN`], it begins with that wheel. So a worker that fires only
//!    some of the due timers at a time does not leave those of a worker in a long poll behind its
//!    own for ever.
use super::{
    Instant, clock,
    entry::{ArmedTimer, Timer},
    spacing::Spacing,
};
use crate::threads::Threads;
use std::{
    collections::VecDeque,
    ptr::NonNull,
    sync::{Arc, Weak},
    task::Waker,
};
use sync_shim::{
    CachePadded,
    atomic::{AtomicU64, Ordering::Relaxed},
    sync::{Mutex, MutexGuard},
};
use timer_wheel::{Step, Wheel};

/// The largest number of steps ([`Wheel::step`]) under one hold of the wheel's lock.
const STEPS: usize = 32;
/// A wheel whose first deadline is earlier by more than this, in ticks, comes before a thread's own
/// wheel (rule 6): 1 ms.
const OVERTAKEN: u64 = clock::ticks(1 << 20);
/// The value of `next` if the wheel has no timer.
const NONE: u64 = u64::MAX;

/// The wheels of a driver.
pub(crate) struct Timers {
    spacing: Spacing,
    /// The wheels of the workers, and after them the wheel of all other threads.
    wheels: Box<[Arc<WheelCell>]>,
}

impl Timers {
    pub(crate) fn new(workers: usize, threads: &Arc<Threads>) -> Self {
        let cell = |_| Arc::new(WheelCell::new(Arc::downgrade(threads)));
        Self {
            spacing: Spacing::new(),
            wheels: (0..=workers).map(cell).collect(),
        }
    }

    #[inline]
    pub(crate) fn wheel(&self, index: usize) -> &Arc<WheelCell> {
        &self.wheels[index]
    }

    /// Returns a tick before which no timer expires; the largest number if there is no timer.
    pub(crate) fn next(&self) -> u64 {
        let next = self.wheels.iter().map(|wheel| wheel.next());
        next.min().unwrap_or(NONE)
    }

    /// As [`next_exact`](Self::next_exact), without any effect.
    #[cfg(selvedge_sim)]
    pub(crate) fn peek_exact(&self) -> Option<u64> {
        let next = |wheel: &Arc<WheelCell>| wheel.lock().contents.wheel.next_expiration();
        let ticks = self.wheels.iter().filter_map(next);
        ticks.min().filter(|tick| *tick < clock::LAST_TICK)
    }

    /// Returns the tick at which the first timer expires. `None` also if that is the last tick,
    /// which stands for all deadlines beyond the clock.
    #[cfg(feature = "test-util")]
    pub(crate) fn next_exact(&self) -> Option<u64> {
        let ticks = self.wheels.iter().filter_map(|wheel| wheel.next_exact());
        ticks.min().filter(|tick| *tick < clock::LAST_TICK)
    }

    /// Returns the tick until which a park for this deadline lasts (rule 3).
    pub(crate) fn park_until(&self, next: u64) -> u64 {
        self.spacing.park_until(next)
    }

    /// Returns the tick since which no thread has fired a timer, although one with this deadline is
    /// due; at most `limit` ticks after the deadline.
    pub(crate) fn neglected_since(&self, next: u64, limit: u64) -> u64 {
        next.max(self.spacing.fired_at().min(next.saturating_add(limit)))
    }

    /// Takes the wakers of up to `max` timers that are due: those of the wheel with the index
    /// `own`, and then those of all other wheels (rule 6). Calls `now` once, if any wheel has a
    /// timer.
    pub(crate) fn collect_due(
        &self,
        own: usize,
        max: usize,
        now: impl Fn() -> Instant,
        wakers: &mut VecDeque<Waker>,
    ) {
        let mut tick = None;
        let mut left = max;
        let (before, after) = self.wheels.split_at(self.first_to_fire(own));
        for wheel in after.iter().chain(before) {
            let next = wheel.next();
            if next == NONE {
                continue;
            }
            let now = *tick.get_or_insert_with(|| clock::tick_at(now()));
            if next <= now {
                left -= wheel.fire(now, left, wakers);
                if left == 0 {
                    break;
                }
            }
        }
        if let Some(now) = tick.filter(|_| left < max) {
            self.spacing.record_firing(now, (max - left) as u64);
        }
    }

    /// Returns the index of the wheel that a thread fires first (rule 6).
    fn first_to_fire(&self, own: usize) -> usize {
        let (mut first, mut limit) = (own, self.wheels[own].next().saturating_sub(OVERTAKEN));
        for (index, wheel) in self.wheels.iter().enumerate() {
            let next = wheel.next();
            if next < limit {
                (first, limit) = (index, next);
            }
        }
        first
    }

    /// Takes the wakers of all timers, and refuses new timers (rule 4).
    pub(crate) fn shutdown(&self, wakers: &mut VecDeque<Waker>) {
        for wheel in &self.wheels {
            wheel.shutdown(wakers);
        }
    }
}

/// A wheel, its lock, and its next deadline.
pub(crate) struct WheelCell {
    shared: CachePadded<Shared>,
    threads: Weak<Threads>,
}

struct Shared {
    next: AtomicU64,
    contents: Mutex<Contents>,
}

struct Contents {
    wheel: Wheel<Timer>,
    open: bool,
}

impl WheelCell {
    pub(crate) fn new(threads: Weak<Threads>) -> Self {
        Self {
            shared: CachePadded::new(Shared {
                next: AtomicU64::new(NONE),
                contents: Mutex::new(Contents {
                    wheel: Wheel::new(),
                    open: true,
                }),
            }),
            threads,
        }
    }

    /// Returns the threads of the driver that the wheel belongs to, if the driver still exists.
    pub(crate) fn threads(&self) -> Option<Arc<Threads>> {
        self.threads.upgrade()
    }

    #[inline]
    pub(crate) fn next(&self) -> u64 {
        // Ordering: Relaxed: a number. The fences of the role order this load against the poller's
        // park.
        self.shared.next.load(Relaxed)
    }

    #[inline]
    pub(crate) fn lock(&self) -> LockedWheel<'_> {
        LockedWheel {
            next: &self.shared.next,
            contents: self.shared.contents.lock(),
        }
    }

    /// Fires up to `max` timers that expire at `now` or before, and takes their wakers. Returns
    /// their number.
    pub(crate) fn fire(&self, now: u64, max: usize, wakers: &mut VecDeque<Waker>) -> usize {
        let mut left = max;
        while left > 0 {
            if self.fire_some(now, &mut left, wakers) {
                break;
            }
        }
        max - left
    }

    /// Fires up to `left` timers under one hold of the lock, and takes their number off `left`.
    /// Returns whether no more timer is due.
    #[inline]
    fn fire_some(&self, now: u64, left: &mut usize, wakers: &mut VecDeque<Waker>) -> bool {
        let mut locked = self.lock();
        let wheel = &mut locked.contents.wheel;
        let now = now.max(wheel.now()); // Rule 5.
        let mut is_done = false;
        for _ in 0..STEPS {
            match wheel.step(now) {
                Step::Expired(timer) => match timer.fire(now) {
                    Ok(waker) => {
                        wakers.push_back(waker);
                        *left -= 1;
                        if *left == 0 {
                            break;
                        }
                    }
                    Err((timer, later)) => wheel.insert(timer, later),
                },
                Step::Moved => {}
                Step::Done => {
                    is_done = true;
                    break;
                }
            }
        }
        let next = wheel.next_bound().unwrap_or(NONE);
        // Ordering: Relaxed, as in `next`. The new value is no earlier than the old one, or an
        // insertion has published it.
        locked.next.store(next, Relaxed);
        is_done
    }

    #[cfg(feature = "test-util")]
    fn next_exact(&self) -> Option<u64> {
        let mut locked = self.lock();
        let next = locked.contents.wheel.next_expiration();
        // Ordering: Relaxed, as in `fire`.
        locked.next.store(next.unwrap_or(NONE), Relaxed);
        next
    }

    /// Takes the wakers of all timers, and refuses new timers.
    pub(crate) fn shutdown(&self, wakers: &mut VecDeque<Waker>) {
        let mut locked = self.lock();
        locked.contents.open = false;
        while let Some(timer) = locked.contents.wheel.pop_any() {
            wakers.push_back(timer.close());
        }
        // Ordering: Relaxed, as in `fire`.
        locked.next.store(NONE, Relaxed);
    }
}

/// A wheel whose lock is held.
pub(crate) struct LockedWheel<'a> {
    next: &'a AtomicU64,
    contents: MutexGuard<'a, Contents>,
}

impl LockedWheel<'_> {
    pub(crate) fn is_open(&self) -> bool {
        self.contents.open
    }

    /// Inserts a timer. Returns whether the wheel's next deadline is now this one.
    pub(crate) fn insert(&mut self, timer: ArmedTimer, tick: u64) -> bool {
        self.contents.wheel.insert(timer, tick);
        // Ordering: Relaxed: `next` is only written under the lock. The caller's fence orders the
        // store before its look at the poller (rule 2 of the role).
        let is_next = tick < self.next.load(Relaxed);
        if is_next {
            self.next.store(tick, Relaxed);
        }
        is_next
    }

    /// Removes a timer. `None` if it is in no wheel.
    ///
    /// # Safety
    /// The timer is in this wheel, or in none.
    pub(crate) unsafe fn remove(&mut self, timer: NonNull<Timer>) -> Option<ArmedTimer> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.contents.wheel.remove(timer) }
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
