//! Changes of a group's shares and of its cap.
use super::{FairQueue, GroupKey, NONE, OWN};
use crate::{Cap, Clock, Shares, Stale};

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
    /// The runtime of the current group until now is charged at the old shares. The group's lead
    /// over its siblings is rescaled, so that it waits no longer than at the new shares.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn set_shares(&mut self, key: GroupKey, shares: Shares) -> Result<(), Stale> {
        let index = self.find(key)?;
        self.charge();
        let group = &mut self.groups[index as usize];
        let old = group.shares.get();
        (group.shares, group.weight) = (shares, shares.weight());
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
    /// Like [`set_shares`](Self::set_shares), which changes those beside its siblings.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn set_own_shares(&mut self, key: GroupKey, shares: Shares) -> Result<(), Stale> {
        let index = self.find(key)?;
        self.charge();
        let group = &mut self.groups[index as usize];
        let old = group.own_shares.get();
        (group.own_shares, group.own_weight) = (shares, shares.weight());
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

    /// Caps a group's runtime and that of its descendants, or with `None` removes its cap.
    ///
    /// The first period of a group's first cap begins now. A change of the cap keeps the present
    /// period, and rescales the runtime that the group has used. So a debt takes as long to pay at
    /// the new cap as at the old one. This lets a caller adjust a cap often: a throttled group
    /// stays throttled for about as long, even if its budget is raised. A group without a cap is
    /// not throttled, and a later cap does not count earlier runtime. Allocates.
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
        }
    }
}
