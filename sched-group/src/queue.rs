//! The fair queue: which group runs next, and for how long.
//!
//! # States of a group
//!
//! | state | meaning |
//! |---|---|
//! | *active* | the group has work of its own |
//! | *throttled* | its cap keeps it from running |
//! | *present* | its level may pick it (rule 1) |
//! | *current* | it has the *turn*: it runs, and is charged for its time |
//!
//! Every group is a sibling in the level of its parent (`levels[ROOT]` if it has none). A group
//! with children has an *inner* level for them, in which its own work is one more sibling, at the
//! leaf `OWN`.
//!
//! # Rules
//!
//! 1. A group is present if it is not throttled and has work: it is active itself, or a sibling is
//!    present in its inner level. `wants` computes this rule. `refresh` restores the rule from a
//!    group up to the first ancestor that does not change.
//! 2. The current group is active. It stays present while it runs, as it is charged afterwards. If
//!    a charge during the turn finds that a cap throttles the group, the charge ends the turn.
//! 3. A turn is *watched* if another group is active, or if a cap applies to the current group. The
//!    clock is read between polls only in watched turns. A turn that was not watched is charged
//!    before a second group becomes active. So the second group starts at the virtual runtime that
//!    the current group has now, and not at that from the start of the current group's turn.
//! 4. A group with a latency goal is present in `goals` while it *waits*: it is active and not
//!    current, and neither it nor an ancestor is throttled. While such groups wait, a turn ends
//!    after the least of their goals, if that is less than the quota. `refresh_goal` restores
//!    this rule for one group. `refresh_goals` restores it for a group whose `throttled` has
//!    changed, and for all groups below that group.
//! 5. `now` is the last reading of the clock. It is older than the last poll only in a turn that is
//!    not watched, or while no group is current. An operation reads the clock, which runs the
//!    caller's code, before it changes anything.
use crate::{
    Clock, Shares, Stale,
    cap::{Caps, nanos},
    level::Level,
    metrics::Counts,
    tournament::Tournament,
};
use alloc::vec::Vec;
use core::{fmt, time::Duration};

mod limits;
mod look;
mod members;
mod turns;

/// The quota of a turn unless another quota is set: half a millisecond.
pub const DEFAULT_QUOTA: Duration = Duration::from_micros(500);

/// The index that stands for no group, no level, no cap or no goal.
const NONE: u32 = u32::MAX;

/// The level of the groups without a parent.
const ROOT: u32 = 0;

/// The leaf of a group's own work in its inner level: the first leaf that is added there.
const OWN: u32 = 0;

/// Names a group of the queue that returned the key.
///
/// After the group was destroyed the key is stale: the queue refuses it, and never takes it for
/// another group. Do not use a key with another queue: the other queue refuses the key, or uses one
/// of its own groups instead.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupKey {
    index: u32,
    generation: u32,
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GroupKey({}.{})", self.index, self.generation)
    }
}

/// The result of a pick: the group to run next.
#[must_use = "the group that was picked is charged until the next pick"]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// This group has the turn.
    Run(GroupKey),
    /// All groups with work are throttled by caps.
    Throttled {
        /// None of these groups may run before the queue's clock shows this time. Then pick again.
        /// At this time the first cap releases its group. That group may have no work, or be below
        /// another cap.
        until: u64,
    },
    /// No group has work.
    Idle,
}

struct Group<T> {
    /// The price of a nanosecond in `level`. The field `own_price` is the price of a nanosecond of
    /// the group's own work in `inner`.
    price: u64,
    own_price: u64,
    level: u32,
    leaf: u32,
    /// The level of the children, or `NONE`.
    inner: u32,
    /// Place in `Caps`, or `NONE`.
    cap: u32,
    /// Leaf in `goals`, or `NONE`.
    goal: u32,
    /// Odd while there is a group at this index, even after that.
    generation: u32,
    active: bool,
    throttled: bool,
    /// When the group's time of `waiting` or `starving` began (see `Metrics`).
    since: u64,
    counts: Counts,
    children: u32,
    shares: Shares,
    own_shares: Shares,
    /// `None` if there is no group at this index.
    value: Option<T>,
}

/// A weighted fair queue of groups that share one CPU.
///
/// The queue knows which groups have work, but not the work. `T` is the caller's data of a group,
/// such as a run queue. The queue belongs to one thread, a worker of an executor, and has no lock.
///
/// A worker [picks](Self::pick) a group and runs its tasks. After each task it calls
/// [`switch`](Self::switch), which picks the next group once the turn is over. If the group has no
/// more work the worker calls [`pick_another`](Self::pick_another). When a group gets work, the
/// worker [activates](Self::activate) it.
///
/// [`pick`](Self::pick), [`activate`](Self::activate) and [`deactivate`](Self::deactivate) take
/// O(log n) time for n siblings, for the group and for each of its ancestors. They do not allocate.
/// A call that throttles or releases a group with children also takes O(g) time for the g groups
/// with a latency goal and their ancestors.
///
/// ```
/// use sched_group::{FairQueue, Pick, Shares};
/// use std::cell::Cell;
///
/// let time = Cell::new(0);
/// let mut queue = FairQueue::new(|| time.get());
/// let queries = queue.insert(Shares::try_from(1000)?, "queries");
/// let compaction = queue.insert(Shares::try_from(100)?, "compaction");
/// queue.activate(queries)?;
/// queue.activate(compaction)?;
///
/// let mut turns = Vec::new();
/// let mut pick = queue.pick();
/// for _ in 0..11 {
///     let Pick::Run(group) = pick else { unreachable!() };
///     turns.push(*queue.get(group)?);
///     pick = loop {
///         time.set(time.get() + 10_000); // A task that takes 10 µs.
///         if let Some(next) = queue.switch() {
///             break next;
///         }
///     };
/// }
/// assert_eq!(turns.iter().filter(|name| **name == "queries").count(), 10);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct FairQueue<T, C> {
    clock: C,
    /// In nanoseconds.
    quota: u64,
    levels: Vec<Level>,
    groups: Vec<Group<T>>,
    caps: Caps,
    /// The latency goals, ranked by their nanoseconds (rule 4).
    goals: Tournament,
    /// The indices of levels, and of groups, to reuse.
    spare_levels: Vec<u32>,
    spare_groups: Vec<u32>,
    /// How many groups there are.
    len: usize,
    /// How many groups are active.
    active: usize,
    /// The current group, or `NONE`.
    current: u32,
    watched: bool,
    /// When the turn began, or became watched.
    began: u64,
    /// The time up to which the current group is charged.
    charged: u64,
    /// When a watched turn ends: by its quota, a cap or a latency goal.
    ends: u64,
    now: u64,
}

impl<T, C: Clock> FairQueue<T, C> {
    /// Creates a queue without groups, with the [default quota](DEFAULT_QUOTA).
    pub fn new(clock: C) -> Self {
        let now = clock.now();
        Self {
            clock,
            quota: nanos(DEFAULT_QUOTA),
            levels: Vec::from([Level::new(NONE)]),
            groups: Vec::new(),
            caps: Caps::new(),
            goals: Tournament::new(),
            spare_levels: Vec::new(),
            spare_groups: Vec::new(),
            len: 0,
            active: 0,
            current: NONE,
            watched: true,
            began: now,
            charged: now,
            ends: now,
            now,
        }
    }

    /// Creates a queue without groups, whose turns last for `quota`.
    ///
    /// A turn ends at the first check after the quota. With a short quota the groups' shares are
    /// exact over short intervals, and switches are frequent. With a quota of zero each check ends
    /// the turn.
    pub fn with_quota(clock: C, quota: Duration) -> Self {
        let mut queue = Self::new(clock);
        queue.set_quota(quota);
        queue
    }

    /// Sets the quota of the turns that begin later.
    pub fn set_quota(&mut self, quota: Duration) {
        self.quota = nanos(quota);
    }

    /// Returns the quota of a turn.
    pub fn quota(&self) -> Duration {
        Duration::from_nanos(self.quota)
    }

    /// Returns the clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    #[inline]
    fn find(&self, key: GroupKey) -> Result<u32, Stale> {
        match self.groups.get(key.index as usize) {
            // The generation of a key is odd. That of a place without a group is even, so not even
            // a key of another queue matches it.
            Some(group) if group.generation == key.generation => Ok(key.index),
            _ => Err(Stale(())),
        }
    }

    #[inline]
    fn key(&self, index: u32) -> GroupKey {
        let generation = self.groups[index as usize].generation;
        GroupKey { index, generation }
    }

    #[inline]
    fn owner(&self, index: u32) -> u32 {
        self.levels[self.groups[index as usize].level as usize].owner
    }

    #[inline]
    fn read(&self) -> u64 {
        self.clock.now().max(self.now)
    }

    /// Returns whether a group should be present in its level (rule 1).
    #[inline]
    fn wants(&self, index: u32) -> bool {
        let group = &self.groups[index as usize];
        !group.throttled
            & match group.inner {
                NONE => group.active,
                inner => !self.levels[inner as usize].is_empty(),
            }
    }

    /// Restores rule 4 for a group.
    #[inline]
    fn refresh_goal(&mut self, index: u32) {
        let group = &self.groups[index as usize];
        if group.goal != NONE {
            let waits = group.active && index != self.current && !self.is_held(index);
            let goal = self.goals.rank(group.goal);
            self.goals.set(group.goal, goal, waits);
        }
    }

    /// Restores rule 4 after `throttled` of a group has changed. If the group has children, this
    /// looks at each group with a goal. There are few such groups, and a cap throttles a group at
    /// most once a period.
    fn refresh_goals(&mut self, index: u32) {
        if self.groups[index as usize].inner == NONE {
            return self.refresh_goal(index);
        }
        for leaf in 0..self.goals.places() {
            let member = self.goals.member(leaf);
            // A leaf that was removed still names its old member.
            if self.groups[member as usize].goal == leaf {
                self.refresh_goal(member);
            }
        }
    }

    /// Returns whether a group or an ancestor of it is throttled.
    fn is_held(&self, mut index: u32) -> bool {
        while index != NONE {
            if self.groups[index as usize].throttled {
                return true;
            }
            index = self.owner(index);
        }
        false
    }

    /// Returns how long a turn may last now: the quota, or the least goal of the groups that wait.
    #[inline]
    fn length(&self) -> u64 {
        let goal = self.goals.least();
        goal.map_or(self.quota, |(goal, ..)| self.quota.min(goal as u64))
    }

    /// Restores rule 1 after `active` of a group has changed.
    fn refresh_own(&mut self, index: u32) {
        let group = &self.groups[index as usize];
        let (inner, active) = (group.inner, group.active);
        if inner == NONE || self.levels[inner as usize].set_present(OWN, active) {
            self.refresh(index);
        }
    }

    /// Restores rule 1 for a group and its ancestors.
    fn refresh(&mut self, mut index: u32) {
        while index != NONE {
            let wants = self.wants(index);
            let group = &self.groups[index as usize];
            let level = &mut self.levels[group.level as usize];
            if !level.set_present(group.leaf, wants) {
                return;
            }
            index = level.owner;
        }
    }
}

impl<T, C> fmt::Debug for FairQueue<T, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FairQueue")
            .field("len", &self.len)
            .field("active", &self.active)
            .finish_non_exhaustive()
    }
}

/// Returns the index of a new group or level.
fn to_index(len: usize) -> u32 {
    let index = u32::try_from(len).ok().filter(|&index| index != NONE);
    index.expect("fewer than 2^32 - 1 groups")
}

#[cfg(test)]
impl<T, C> FairQueue<T, C> {
    /// Sets a group's generation to the last one of a group. For tests.
    pub(crate) fn age(&mut self, key: GroupKey) -> GroupKey {
        let generation = u32::MAX - 2;
        self.groups[key.index as usize].generation = generation;
        GroupKey { generation, ..key }
    }
}
