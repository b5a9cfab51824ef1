//! Adding and destroying the groups of a queue.
use super::{FairQueue, Group, GroupKey, NONE, OWN, ROOT, to_index};
use crate::{Clock, DestroyError, Shares, Stale, level::Level, metrics::Counts};

impl<T, C: Clock> FairQueue<T, C> {
    /// Adds a group without a parent and without work.
    ///
    /// # Panics
    ///
    /// If there are 2³² − 1 groups already.
    pub fn insert(&mut self, shares: Shares, value: T) -> GroupKey {
        self.now = self.read();
        self.insert_at(ROOT, shares, value)
    }

    /// Adds a group without work below another group.
    ///
    /// The children of a group divide its time by their shares. The parent's own work counts as one
    /// more child, with the shares that [`set_own_shares`](Self::set_own_shares) sets. At first
    /// these are the shares that the parent has among its siblings.
    ///
    /// # Errors
    ///
    /// If the parent was destroyed. The error contains the value.
    ///
    /// # Panics
    ///
    /// If there are 2³² − 1 groups already.
    pub fn insert_under(
        &mut self,
        parent: GroupKey,
        shares: Shares,
        value: T,
    ) -> Result<GroupKey, Stale<T>> {
        let Ok(index) = self.find(parent) else {
            return Err(Stale(value));
        };
        self.now = self.read();
        let mut level = self.groups[index as usize].inner;
        if level == NONE {
            level = self.add_level(index);
        }
        self.groups[index as usize].children += 1;
        Ok(self.insert_at(level, shares, value))
    }

    fn insert_at(&mut self, level: u32, shares: Shares, value: T) -> GroupKey {
        let (index, generation) = match self.spare_groups.pop() {
            Some(index) => (index, self.groups[index as usize].generation + 1),
            None => (to_index(self.groups.len()), 1),
        };
        let group = Group {
            price: shares.price(),
            own_price: shares.price(),
            level,
            leaf: self.levels[level as usize].add(index),
            inner: NONE,
            cap: NONE,
            goal: NONE,
            generation,
            active: false,
            throttled: false,
            since: self.now,
            counts: Counts::default(),
            children: 0,
            shares,
            own_shares: shares,
            value: Some(value),
        };
        match self.groups.get_mut(index as usize) {
            Some(old) => *old = group,
            None => self.groups.push(group),
        }
        self.len += 1;
        GroupKey { index, generation }
    }

    /// Adds an inner level to a group. The new level holds the group's own work from the start, so
    /// the result of `FairQueue::wants` for the group does not change.
    fn add_level(&mut self, index: u32) -> u32 {
        let inner = match self.spare_levels.pop() {
            Some(inner) => inner,
            None => {
                self.levels.push(Level::new(NONE));
                to_index(self.levels.len() - 1)
            }
        };
        let level = &mut self.levels[inner as usize];
        *level = Level::new(index);
        let own = level.add(index);
        debug_assert_eq!(own, OWN);
        let group = &mut self.groups[index as usize];
        level.set_present(OWN, group.active);
        group.inner = inner;
        inner
    }

    /// Removes a group and returns its value.
    ///
    /// # Errors
    ///
    /// If the group has work or children ([`DestroyError::Busy`]), or was destroyed before. In both
    /// cases the call changes nothing.
    pub fn destroy(&mut self, key: GroupKey) -> Result<T, DestroyError> {
        let index = self.find(key)?;
        let group = &mut self.groups[index as usize];
        if group.active || group.children > 0 {
            return Err(DestroyError::Busy);
        }
        let value = group.value.take().ok_or(DestroyError::Stale)?;
        let (level, leaf, cap, goal) = (group.level, group.leaf, group.cap, group.goal);
        if cap != NONE {
            self.caps.remove(cap);
        }
        if goal != NONE {
            self.goals.remove(goal);
        }
        // A place whose generations are used up is not reused, so no stale key becomes valid.
        group.generation += 1;
        if group.generation < u32::MAX - 1 {
            self.spare_groups.push(index);
        }
        self.len -= 1;
        let level = &mut self.levels[level as usize];
        level.remove(leaf);
        let parent = level.owner;
        if parent != NONE {
            let parent = &mut self.groups[parent as usize];
            parent.children -= 1;
            if parent.children == 0 {
                // Without children only the parent's own work is in the inner level.
                self.spare_levels.push(parent.inner);
                parent.inner = NONE;
            }
        }
        Ok(value)
    }
}
