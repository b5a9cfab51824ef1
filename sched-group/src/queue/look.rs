//! Queries: the values, states and counters of groups.
use super::{FairQueue, GroupKey, NONE};
use crate::{Clock, Metrics, Stale, shares::ONE};
use core::time::Duration;

impl<T, C: Clock> FairQueue<T, C> {
    /// Returns a group's value.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    #[inline]
    pub fn get(&self, key: GroupKey) -> Result<&T, Stale> {
        let index = self.find(key)?;
        self.groups[index as usize].value.as_ref().ok_or(Stale(()))
    }

    /// Returns a group's value, mutably.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    #[inline]
    pub fn get_mut(&mut self, key: GroupKey) -> Result<&mut T, Stale> {
        let index = self.find(key)?;
        self.groups[index as usize].value.as_mut().ok_or(Stale(()))
    }

    /// Returns the groups and their values, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (GroupKey, &T)> {
        (0..).zip(&self.groups).filter_map(|(index, group)| {
            let generation = group.generation;
            Some((GroupKey { index, generation }, group.value.as_ref()?))
        })
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many groups have work of their own, including throttled ones.
    pub fn active(&self) -> usize {
        self.active
    }

    /// Returns whether a group has work of its own.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn is_active(&self, key: GroupKey) -> Result<bool, Stale> {
        Ok(self.groups[self.find(key)? as usize].active)
    }

    /// Returns whether a group's own cap keeps the group from running. Only a pick, or a change of
    /// the cap, releases the group.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn is_throttled(&self, key: GroupKey) -> Result<bool, Stale> {
        Ok(self.groups[self.find(key)? as usize].throttled)
    }

    /// Returns a group's parent, if it has one.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn parent(&self, key: GroupKey) -> Result<Option<GroupKey>, Stale> {
        let parent = self.owner(self.find(key)?);
        Ok((parent != NONE).then(|| self.key(parent)))
    }

    /// Returns the counters of a group, until now.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn metrics(&self, key: GroupKey) -> Result<Metrics, Stale> {
        let index = self.find(key)?;
        let (now, group) = (self.read(), &self.groups[index as usize]);
        let mut metrics = group.counts.metrics();
        // The time that is not counted yet.
        let since = |time: u64| Duration::from_nanos(now.saturating_sub(time));
        match (group.active, index == self.current) {
            (true, false) => metrics.starving += since(group.since),
            (false, _) => metrics.waiting += since(group.since),
            (true, true) => {}
        }
        if group.throttled {
            metrics.throttled += since(self.caps.throttled(group.cap));
        }
        let mut running = self.current;
        while running != NONE && running != index {
            running = self.owner(running);
        }
        if running == index {
            metrics.runtime += since(self.charged);
        }
        Ok(metrics)
    }

    /// Returns a group's virtual runtime among its siblings, in nanoseconds a share.
    ///
    /// The result does not include runtime of the turn in progress that is not charged yet.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn vruntime(&self, key: GroupKey) -> Result<u64, Stale> {
        let group = &self.groups[self.find(key)? as usize];
        let rank = self.levels[group.level as usize].rank(group.leaf);
        // The rank is slightly too small, as the price of a nanosecond (`ONE / shares`) is rounded
        // down.
        let rounded = (rank + u128::from(ONE / 2)) / u128::from(ONE);
        Ok(rounded.try_into().unwrap_or(u64::MAX))
    }
}
