//! Turns: a group gets work, a pick gives the turn to the group with the least virtual runtime, and
//! that group is charged for its runtime.
//!
//! The rules are those of [`queue`](super).
use super::{FairQueue, GroupKey, NONE, OWN, Pick, ROOT};
use crate::{Clock, Stale, shares::charge};
use core::mem;

impl<T, C: Clock> FairQueue<T, C> {
    /// Marks a group as having work of its own. Does nothing if it is active already.
    ///
    /// The group starts with the least virtual runtime of its active siblings, unless its own is
    /// larger. So it has no credit for the time in which it was idle. The same holds for each
    /// ancestor that had no work below it.
    ///
    /// Reads the clock if no group is current, or if the turn in progress was not watched: only the
    /// current group had work, and no cap applied to it.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn activate(&mut self, key: GroupKey) -> Result<(), Stale> {
        let index = self.find(key)?;
        if self.groups[index as usize].active {
            return Ok(());
        }
        if self.current == NONE {
            self.now = self.read();
        } else if !self.watched {
            let now = self.read();
            self.charge_current(now, 0);
            (self.began, self.ends) = (now, now.saturating_add(self.quota));
            self.watched = true;
        }
        self.active += 1;
        let group = &mut self.groups[index as usize];
        group.active = true;
        group.counts.waiting += self.now - group.since;
        group.since = self.now;
        self.refresh_own(index);
        self.refresh_goal(index);
        self.shorten();
        Ok(())
    }

    /// Marks a group as having no more work of its own. Does nothing if it is not active.
    ///
    /// For the current group this ends the turn. [`pick_another`](Self::pick_another) does this and
    /// picks, with one reading of the clock for both.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn deactivate(&mut self, key: GroupKey) -> Result<(), Stale> {
        let index = self.find(key)?;
        if index == self.current {
            let now = self.read();
            self.deactivate_current();
            self.end(now);
        } else if self.groups[index as usize].active {
            self.active -= 1;
            let group = &mut self.groups[index as usize];
            group.active = false;
            group.counts.starving += self.now - group.since;
            group.since = self.now;
            self.refresh_own(index);
            self.refresh_goal(index);
            if self.current != NONE && self.active == 1 {
                self.watched = self.is_capped();
            }
        }
        Ok(())
    }

    /// Lets the turn in progress end after the least latency goal of the groups that wait. If that
    /// time has passed already, the turn ends now.
    #[inline]
    pub(super) fn shorten(&mut self) {
        if self.current != NONE && self.watched {
            let ends = self.began.saturating_add(self.length()).max(self.now);
            self.ends = self.ends.min(ends);
        }
    }

    fn deactivate_current(&mut self) {
        self.groups[self.current as usize].active = false;
        self.active -= 1;
    }

    /// Gives the turn to the active group with the least virtual runtime, and returns it.
    ///
    /// Before that, the call charges the current group, which still has work, and ends its turn.
    /// The same group may get the next turn. A pick descends from a group to its children, or to
    /// its own work beside them. Among equal groups it takes the one that has waited longest. Reads
    /// the clock once.
    pub fn pick(&mut self) -> Pick {
        let now = self.read();
        self.pick_at(now)
    }

    #[inline]
    fn pick_at(&mut self, now: u64) -> Pick {
        if self.current != NONE {
            self.end(now);
        }
        self.start(now)
    }

    /// Picks the next group if the turn is over. Returns `None` if the turn goes on.
    ///
    /// Does the same as [`should_switch`](Self::should_switch) and then [`pick`](Self::pick), with
    /// one reading of the clock for both. Call it between the polls of two tasks. While only the
    /// current group has work, and no cap applies to it, this is one predictable branch and reads
    /// no clock.
    ///
    /// ```
    /// use sched_group::{FairQueue, Pick, Shares};
    /// use std::cell::Cell;
    ///
    /// let time = Cell::new(0);
    /// let mut queue = FairQueue::new(|| time.get());
    /// let [a, b] = ["a", "b"].map(|name| queue.insert(Shares::new(1).unwrap(), name));
    /// queue.activate(a)?;
    /// queue.activate(b)?;
    /// assert_eq!(queue.pick(), Pick::Run(a));
    /// assert_eq!(queue.switch(), None);
    /// time.set(500_000);
    /// assert_eq!(queue.switch(), Some(Pick::Run(b)));
    /// # Ok::<_, sched_group::Stale>(())
    /// ```
    #[inline]
    pub fn switch(&mut self) -> Option<Pick> {
        if !self.watched {
            return None;
        }
        self.now = self.read();
        (self.now >= self.ends).then(|| self.pick_at(self.now))
    }

    /// Returns the group with the least virtual runtime of the unthrottled groups with work.
    ///
    /// A thief should help this group first. The search descends as in [`pick`](Self::pick), but
    /// changes nothing and reads no clock. So the turn in progress is not charged, and a throttled
    /// group is not returned, even if a pick would release it. The result may be the current group.
    ///
    /// ```
    /// use sched_group::{FairQueue, Shares};
    ///
    /// let mut queue = FairQueue::new(|| 0);
    /// let group = queue.insert(Shares::new(1).unwrap(), ());
    /// assert_eq!(queue.peek(), None);
    /// queue.activate(group)?;
    /// assert_eq!(queue.peek(), Some(group));
    /// # Ok::<_, sched_group::Stale>(())
    /// ```
    pub fn peek(&self) -> Option<GroupKey> {
        self.least().map(|index| self.key(index))
    }

    /// Marks the current group as having no more work of its own, and picks another one.
    ///
    /// Does the same as [`deactivate`](Self::deactivate) and then [`pick`](Self::pick), with one
    /// reading of the clock for both.
    pub fn pick_another(&mut self) -> Pick {
        let now = self.read();
        if self.current != NONE {
            self.deactivate_current();
            self.end(now);
        }
        self.start(now)
    }

    /// Ends the turn of the current group. No group is charged until the next pick.
    ///
    /// Call it before the worker polls a driver, or steals from another worker.
    pub fn end_turn(&mut self) {
        let now = self.read();
        if self.current != NONE {
            self.end(now);
        }
    }

    /// Charges the current group for the time until now. Its turn goes on.
    ///
    /// [`pick`](Self::pick) does this itself.
    pub fn charge(&mut self) {
        let now = self.read();
        if self.current != NONE {
            self.charge_current(now, 0);
        }
    }

    /// Returns whether the turn is over, or no group is current.
    ///
    /// It is for a caller that has other work to do before it picks. [`switch`](Self::switch)
    /// checks and picks with one reading of the clock. While only the current group has work, and
    /// no cap applies to it, this is one predictable branch and returns false. Otherwise it reads
    /// the clock.
    #[inline]
    pub fn should_switch(&mut self) -> bool {
        if !self.watched {
            return false;
        }
        self.now = self.read();
        self.now >= self.ends
    }

    /// Returns when the turn is over, on the queue's clock: by the quota, a cap or a latency goal.
    ///
    /// Returns `None` if no group is current. Also returns `None` if the turn has no end: only the
    /// current group has work, and no cap applies to it. A timer can use the result. The result may
    /// change when a group is activated or deactivated, or when a cap or a goal is set.
    pub fn turn_end(&self) -> Option<u64> {
        (self.current != NONE && self.watched).then_some(self.ends)
    }

    /// Returns the group that has the turn.
    #[inline]
    pub fn current(&self) -> Option<GroupKey> {
        (self.current != NONE).then(|| self.key(self.current))
    }

    /// Returns the group that has the turn, and its value.
    #[inline]
    pub fn current_mut(&mut self) -> Option<(GroupKey, &mut T)> {
        let key = self.current()?;
        let value = self.groups[self.current as usize].value.as_mut()?;
        Some((key, value))
    }

    /// Charges the current group and its ancestors for the time until now, at least for `least`
    /// nanoseconds, and restores rule 1.
    #[inline]
    pub(super) fn charge_current(&mut self, now: u64, least: u64) {
        let ran = now - self.charged;
        let costs = ran.max(least);
        (self.charged, self.now) = (now, now);
        if self.is_flat() {
            let group = &mut self.groups[self.current as usize];
            group.counts.runtime += ran;
            let cost = charge(costs, group.price);
            return self.levels[ROOT as usize].charge(group.leaf, cost, group.active);
        }
        self.charge_nested(ran, costs);
    }

    /// Charges the current group and its ancestors, and restores rule 1, where there may be several
    /// levels or caps.
    #[inline(never)]
    fn charge_nested(&mut self, ran: u64, costs: u64) {
        let now = self.now;
        let mut index = self.current;
        let group = &self.groups[index as usize];
        if group.inner != NONE {
            let (cost, active) = (charge(costs, group.own_price), group.active);
            self.levels[group.inner as usize].charge(OWN, cost, active);
        }
        while index != NONE {
            let group = &mut self.groups[index as usize];
            group.counts.runtime += ran;
            if group.cap != NONE && self.caps.charge(group.cap, ran, now) {
                let was_throttled = mem::replace(&mut group.throttled, true);
                self.ends = now;
                if !was_throttled {
                    self.refresh_goals(index);
                }
            }
            let wants = self.wants(index);
            let group = &self.groups[index as usize];
            let level = &mut self.levels[group.level as usize];
            level.charge(group.leaf, charge(costs, group.price), wants);
            index = level.owner;
        }
    }

    /// Charges the current group and ends its turn. A turn costs at least a nanosecond, so that one
    /// group does not get all turns if the clock stands still.
    #[inline]
    fn end(&mut self, now: u64) {
        self.charge_current(now, 1);
        let group = &mut self.groups[self.current as usize];
        group.since = now;
        if self.watched {
            let over = (now - self.began).saturating_sub(self.quota);
            group.counts.overrun += over;
            group.counts.violations += u64::from(over > self.quota);
        }
        let index = mem::replace(&mut self.current, NONE);
        (self.watched, self.ends) = (true, now);
        self.refresh_goal(index);
    }

    /// Returns the group to which a pick descends: in each level, it follows the present group with
    /// the least virtual runtime.
    #[inline]
    fn least(&self) -> Option<u32> {
        let mut level = ROOT;
        loop {
            let index = self.levels[level as usize].pick()?;
            let inner = self.groups[index as usize].inner;
            // In its own inner level, a group stands for its own work.
            if inner == NONE || inner == level {
                return Some(index);
            }
            level = inner;
        }
    }

    /// Gives the turn to the group with the least virtual runtime.
    #[inline]
    fn start(&mut self, now: u64) -> Pick {
        self.now = now;
        if !self.caps.is_empty() {
            while let Some((index, since)) = self.caps.release(now) {
                self.unthrottle(index, since, now);
            }
        }
        let Some(index) = self.least() else {
            return match self.caps.next_release() {
                Some(until) if self.active > 0 => Pick::Throttled { until },
                _ => Pick::Idle,
            };
        };
        let group = &mut self.groups[index as usize];
        group.counts.picked += 1;
        group.counts.starving += now - group.since;
        (self.current, self.charged) = (index, now);
        self.watched = false;
        self.refresh_goal(index);
        self.arm(now);
        Pick::Run(self.key(index))
    }

    /// Returns whether there is one level, and no cap. Then a group is present while it is active.
    #[inline]
    fn is_flat(&self) -> bool {
        self.levels.len() == 1 && self.caps.is_empty()
    }

    /// Returns whether a cap applies to the current group.
    fn is_capped(&self) -> bool {
        let mut index = self.current;
        while index != NONE {
            if self.groups[index as usize].cap != NONE {
                return true;
            }
            index = self.owner(index);
        }
        false
    }

    /// Sets whether the turn is watched, and when it ends. The end of a turn that is watched
    /// already does not become later. The current group must be charged until now.
    #[inline]
    pub(super) fn arm(&mut self, now: u64) {
        let (mut left, mut capped) = (self.length(), false);
        if !self.caps.is_empty() {
            let mut index = self.current;
            while index != NONE {
                let cap = self.groups[index as usize].cap;
                if cap != NONE {
                    (left, capped) = (left.min(self.caps.left(cap, now)), true);
                }
                index = self.owner(index);
            }
        }
        let ends = now.saturating_add(left);
        if self.watched {
            self.ends = self.ends.min(ends);
        } else {
            (self.began, self.ends) = (now, ends);
        }
        self.watched = capped || self.active > 1;
    }
}
