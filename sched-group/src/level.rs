//! The groups that compete with each other: the children of one group, or the groups without a
//! parent.
use crate::tournament::{MAX_RANK, Tournament};

/// Siblings, ranked by virtual runtime.
///
/// 1. The *floor* is the least virtual runtime of the siblings with work. It never decreases: a
///    sibling that gets work starts at the floor or above, so it has no credit for its idle time.
/// 2. While no sibling has work, the floor is the largest virtual runtime that any sibling has had.
///    So all siblings start as equals, in whatever order they get work. A sibling that ran while
///    the others were idle has no disadvantage from that runtime. A disadvantage from other runtime
///    ends when no sibling has work any more.
/// 3. A sibling is at most one turn ahead of the floor, as it had the least virtual runtime when
///    its last turn began. Together with rule 1 this proves the bound on fairness in the README.
pub(crate) struct Level {
    siblings: Tournament,
    /// The floor while no sibling has work: the largest virtual runtime that a sibling without work
    /// has had.
    idle_floor: u128,
    /// The parent, or `NONE`.
    pub(crate) owner: u32,
}

impl Level {
    pub(crate) const fn new(owner: u32) -> Self {
        Self {
            siblings: Tournament::new(),
            idle_floor: 0,
            owner,
        }
    }

    pub(crate) fn add(&mut self, member: u32) -> u32 {
        self.siblings.add(member)
    }

    /// Removes a sibling without work.
    pub(crate) fn remove(&mut self, leaf: u32) {
        self.siblings.remove(leaf);
    }

    /// Returns whether no sibling has work.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.siblings.is_empty()
    }

    #[inline]
    pub(crate) fn is_present(&self, leaf: u32) -> bool {
        self.siblings.is_present(leaf)
    }

    #[inline]
    pub(crate) fn rank(&self, leaf: u32) -> u128 {
        self.siblings.rank(leaf)
    }

    /// Returns the sibling with the least virtual runtime.
    #[inline]
    pub(crate) fn pick(&self) -> Option<u32> {
        let (_, _, member) = self.siblings.least()?;
        Some(member)
    }

    fn floor(&self) -> u128 {
        let least = self.siblings.least();
        least.map_or(self.idle_floor, |(rank, ..)| rank)
    }

    /// Adds `cost` to the virtual runtime of a sibling that has run, and sets whether the sibling
    /// has more work.
    #[inline]
    pub(crate) fn charge(&mut self, leaf: u32, cost: u128, present: bool) {
        // The rank and the cost are each less than 2^126, so the sum does not overflow.
        let rank = (self.siblings.rank(leaf) + cost).min(MAX_RANK);
        self.set(leaf, rank, present);
    }

    /// Sets whether a sibling has work. Returns whether the level was empty before the change, or
    /// is empty after it; false if nothing changes.
    pub(crate) fn set_present(&mut self, leaf: u32, present: bool) -> bool {
        if self.is_present(leaf) == present {
            return false;
        }
        let was_empty = self.is_empty();
        let rank = self.siblings.rank(leaf);
        let rank = if present {
            rank.max(self.floor())
        } else {
            rank
        };
        self.set(leaf, rank, present);
        was_empty || self.is_empty()
    }

    /// Rescales a sibling's lead over the floor from its old shares to its new ones, as if the
    /// sibling had run for this lead at the new shares.
    pub(crate) fn reshare(&mut self, leaf: u32, old: u32, new: u32) {
        let (rank, floor) = (self.siblings.rank(leaf), self.floor());
        let Some(ahead) = rank.checked_sub(floor).filter(|&ahead| ahead > 0) else {
            return;
        };
        let ahead = ahead.saturating_mul(old.into()) / u128::from(new);
        let rank = floor.saturating_add(ahead).min(MAX_RANK);
        self.set(leaf, rank, self.is_present(leaf));
    }

    #[inline]
    fn set(&mut self, leaf: u32, rank: u128, present: bool) {
        self.siblings.set(leaf, rank, present);
        if !present {
            self.idle_floor = self.idle_floor.max(rank);
        }
    }
}
