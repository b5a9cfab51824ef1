//! Changes of a group's shares, of its cap and of its latency goal.
use super::{FairQueue, GroupKey, NONE, OWN};
use crate::{Cap, Clock, Shares, Stale, cap::nanos};
use core::time::Duration;

impl<T, C: Clock> FairQueue<T, C> {
    /// Returns a group's shares.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn shares(&self, key: GroupKey) -> Result<Shares, Stale> {
        Ok(self.groups[self.find(key)? as usize].shares)
    }

    /// Changes a group's shares, at once.
    ///
    /// First the current group is charged for its runtime until now, at the old shares. Then the
    /// lead of the changed group over its siblings is rescaled, as if the group had run for this
    /// lead at the new shares.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn set_shares(&mut self, key: GroupKey, shares: Shares) -> Result<(), Stale> {
        let index = self.find(key)?;
        self.charge();
        let group = &mut self.groups[index as usize];
        let old = group.shares.get();
        (group.shares, group.price) = (shares, shares.price());
        let (level, leaf) = (group.level, group.leaf);
        self.levels[level as usize].reshare(leaf, old, shares.get());
        Ok(())
    }

    /// Returns the shares that a group's own work has beside its children.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn own_shares(&self, key: GroupKey) -> Result<Shares, Stale> {
        Ok(self.groups[self.find(key)? as usize].own_shares)
    }

    /// Changes the shares that a group's own work has beside its children, at once.
    ///
    /// In all else the call does the same as [`set_shares`](Self::set_shares), which changes the
    /// shares that the group has beside its siblings.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn set_own_shares(&mut self, key: GroupKey, shares: Shares) -> Result<(), Stale> {
        let index = self.find(key)?;
        self.charge();
        let group = &mut self.groups[index as usize];
        let old = group.own_shares.get();
        (group.own_shares, group.own_price) = (shares, shares.price());
        if group.inner != NONE {
            self.levels[group.inner as usize].reshare(OWN, old, shares.get());
        }
        Ok(())
    }

    /// Returns a group's cap.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn cap(&self, key: GroupKey) -> Result<Option<Cap>, Stale> {
        let leaf = self.groups[self.find(key)? as usize].cap;
        Ok((leaf != NONE).then(|| self.caps.cap(leaf)))
    }

    /// Caps the runtime of a group and its descendants, or with `None` removes the group's cap.
    ///
    /// If the group had no cap, its first period begins now. A change of the cap keeps the start of
    /// the present period, and rescales the runtime that the group has used. So a debt takes as
    /// long to pay at the new cap as at the old one. This lets a caller adjust a cap often: a
    /// throttled group stays throttled for about as long, even if its budget is raised. A group
    /// without a cap is not throttled, and a later cap does not count earlier runtime. The call may
    /// allocate.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn set_cap(&mut self, key: GroupKey, cap: Option<Cap>) -> Result<(), Stale> {
        let index = self.find(key)?;
        let now = self.read();
        if self.current != NONE {
            self.charge_current(now, 0);
        }
        self.now = now;
        let old = self.groups[index as usize].cap;
        match (cap, old) {
            (Some(cap), NONE) => {
                self.groups[index as usize].cap = self.caps.add(index, cap, now);
            }
            (Some(cap), _) => {
                let since = self.caps.throttled(old);
                if self.caps.change(old, cap, now) {
                    self.groups[index as usize].throttled = true;
                    self.refresh(index);
                    self.refresh_goals(index);
                } else {
                    self.unthrottle(index, since, now);
                }
            }
            (None, NONE) => {}
            (None, _) => {
                let since = self.caps.throttled(old);
                self.caps.remove(old);
                self.groups[index as usize].cap = NONE;
                self.unthrottle(index, since, now);
            }
        }
        if self.current != NONE {
            self.arm(now);
        }
        Ok(())
    }

    pub(super) fn unthrottle(&mut self, index: u32, since: u64, now: u64) {
        let group = &mut self.groups[index as usize];
        if group.throttled {
            group.throttled = false;
            group.counts.throttled += now - since;
            self.refresh(index);
            self.refresh_goals(index);
        }
    }

    /// Returns a group's latency goal.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn latency(&self, key: GroupKey) -> Result<Option<Duration>, Stale> {
        let goal = self.groups[self.find(key)? as usize].goal;
        Ok((goal != NONE).then(|| Duration::from_nanos(self.goals.rank(goal) as u64)))
    }

    /// Sets how long other groups' turns may last while this group waits, or with `None` removes
    /// this goal. Reads no clock. The call may allocate.
    ///
    /// While the group has work of its own and does not run, each turn ends after `goal`, if that
    /// is less than the [quota](Self::quota). The goal does not count while a cap throttles the
    /// group or an ancestor of it. The smallest goal applies. The order of turns and the groups'
    /// shares stay as they are. So a group that gets work still waits for the turns of groups with
    /// a smaller virtual runtime, but these turns are short. Meanwhile the worker switches more
    /// often; with a goal of zero, each check ends a turn.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    ///
    /// ```
    /// use sched_group::{FairQueue, Pick, Shares};
    /// use std::{cell::Cell, time::Duration};
    ///
    /// let time = Cell::new(0);
    /// let mut queue = FairQueue::new(|| time.get()); // Turns of 500 µs.
    /// let [batch, other, reads] = [1; 3].map(|n| queue.insert(Shares::new(n).unwrap(), ()));
    /// queue.set_latency(reads, Some(Duration::from_micros(50)))?;
    /// queue.activate(batch)?;
    /// queue.activate(other)?;
    /// assert_eq!(queue.pick(), Pick::Run(batch));
    /// assert_eq!(queue.turn_end(), Some(500_000));
    /// time.set(20_000);
    /// queue.activate(reads)?;
    /// assert_eq!(queue.turn_end(), Some(50_000));
    /// # Ok::<_, sched_group::Stale>(())
    /// ```
    pub fn set_latency(&mut self, key: GroupKey, goal: Option<Duration>) -> Result<(), Stale> {
        let index = self.find(key)?;
        let old = self.groups[index as usize].goal;
        match goal {
            None if old == NONE => {}
            None => {
                self.goals.set(old, 0, false);
                self.goals.remove(old);
                self.groups[index as usize].goal = NONE;
            }
            Some(goal) => {
                let leaf = match old {
                    NONE => self.goals.add(index),
                    leaf => leaf,
                };
                self.groups[index as usize].goal = leaf;
                self.goals.set(leaf, nanos(goal).into(), false);
                self.refresh_goal(index);
                self.shorten();
            }
        }
        Ok(())
    }
}
