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
//!    present in its inner level. `wants` is this rule. `refresh` restores it from a group up to
//!    the first ancestor that does not change.
//! 2. The current group is active. It stays present while it runs, as it is charged afterwards. A
//!    charge during its turn may find that its cap throttles it, which ends the turn.
//! 3. A turn is *watched* if another group is active, or if a cap applies to the current group. The
//!    clock is read between polls only in watched turns. A turn that was not watched is charged
//!    before a second group becomes active. So the second group starts at the virtual runtime that
//!    the current group has now, not at that of the start of its turn.
//! 4. `now` is the last reading of the clock. It is older than the last poll only in a turn that is
//!    not watched, or while no group is current. An operation reads the clock, which runs the
//!    caller's code, before it changes anything.
use crate::{
    Cap, Clock, DestroyError, Metrics, Shares, Stale,
    cap::{Caps, nanos},
    level::Level,
    metrics::Counts,
    shares::{ONE, charge},
};
use alloc::vec::Vec;
use core::{fmt, time::Duration};

/// The quota of a turn unless another one is set: half a millisecond.
pub const DEFAULT_QUOTA: Duration = Duration::from_micros(500);

/// The number of no group, no level and no cap.
const NONE: u32 = u32::MAX;

/// The level of the groups without a parent.
const ROOT: u32 = 0;

/// The leaf of a group's own work in its inner level: the first that is added.
const OWN: u32 = 0;

/// Names a group of the queue that returned it.
///
/// After the group was destroyed the key is stale: the queue refuses it, and never takes it for
/// another group. Do not use a key with another queue, which refuses it or takes it for a group of
/// its own.
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
        /// None of them may run before the queue's clock shows this time. Then pick again. The
        /// first cap releases its group at this time. That group may have no work, or be below
        /// another cap.
        until: u64,
    },
    /// No group has work.
    Idle,
}

struct Group<T> {
    /// The cost of a nanosecond in `level`; and in `inner`, the cost for the group's own work.
    weight: u64,
    own_weight: u64,
    level: u32,
    leaf: u32,
    /// The level of the children, or `NONE`.
    inner: u32,
    /// Place in `Caps`, or `NONE`.
    cap: u32,
    generation: u32,
    active: bool,
    throttled: bool,
    /// When the group began to wait or to starve.
    since: u64,
    counts: Counts,
    children: u32,
    shares: Shares,
    own_shares: Shares,
    /// `None` if there is no group of that index.
    value: Option<T>,
}

/// A weighted fair queue of groups that share one CPU.
///
/// The queue knows which groups have work, but not the work. `T` is the caller's data of a group,
/// such as a run queue. The queue belongs to one thread, a worker of an executor, and has no lock.
///
/// A worker's loop is: [`pick`](Self::pick) a group, run its tasks until
/// [`switch`](Self::switch) picks the next one, or [`pick_another`](Self::pick_another) if the
/// group has no more work. When a group gets work, [`activate`](Self::activate) it.
///
/// [`pick`](Self::pick), [`activate`](Self::activate) and [`deactivate`](Self::deactivate) take
/// O(log n) time for n siblings, for the group and for each of its ancestors. They do not allocate.
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
    /// Levels and groups to reuse.
    spare_levels: Vec<u32>,
    spare_groups: Vec<u32>,
    /// Groups that are not destroyed.
    len: usize,
    /// Groups that are active.
    active: usize,
    /// The current group, or `NONE`.
    current: u32,
    watched: bool,
    /// When the turn began, or became watched.
    began: u64,
    /// The time up to which the current group is charged.
    charged: u64,
    /// When the quota of a watched turn is used up.
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

    /// Adds a group without a parent and without work.
    ///
    /// # Panics
    ///
    /// If there are 2³² − 1 groups already.
    pub fn insert(&mut self, shares: Shares, value: T) -> GroupKey {
        self.now = self.read();
        self.insert_at(ROOT, shares, value)
    }

    /// Adds a group below another one, without work.
    ///
    /// The children of a group divide its time by their shares. The parent's own work counts as one
    /// more child, with the shares that [`set_own_shares`](Self::set_own_shares) sets. At first
    /// these are the shares that the parent has among its siblings.
    ///
    /// # Errors
    ///
    /// If the parent was destroyed. Returns the value.
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
            Some(index) => (index, self.groups[index as usize].generation),
            None => (number(self.groups.len()), 0),
        };
        let group = Group {
            weight: shares.weight(),
            own_weight: shares.weight(),
            level,
            leaf: self.levels[level as usize].add(index),
            inner: NONE,
            cap: NONE,
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

    /// Adds an inner level to a group. Its own work is in it at once, so `wants` does not change.
    fn add_level(&mut self, index: u32) -> u32 {
        let number = match self.spare_levels.pop() {
            Some(number) => number,
            None => {
                self.levels.push(Level::new(NONE));
                number(self.levels.len() - 1)
            }
        };
        let level = &mut self.levels[number as usize];
        *level = Level::new(index);
        let own = level.add(index);
        debug_assert_eq!(own, OWN);
        let group = &mut self.groups[index as usize];
        level.set_present(OWN, group.active);
        group.inner = number;
        number
    }

    /// Removes a group and returns its value.
    ///
    /// # Errors
    ///
    /// If the group has work or children ([`DestroyError::Busy`]), or was destroyed before. Nothing
    /// has changed then.
    pub fn destroy(&mut self, key: GroupKey) -> Result<T, DestroyError> {
        let index = self.find(key)?;
        let group = &mut self.groups[index as usize];
        if group.active || group.children > 0 {
            return Err(DestroyError::Busy);
        }
        let value = group.value.take().ok_or(DestroyError::Stale)?;
        let (level, leaf, cap) = (group.level, group.leaf, group.cap);
        if cap != NONE {
            self.caps.remove(cap);
        }
        // A place whose generations are used up is not reused, so no stale key becomes valid.
        group.generation += 1;
        if group.generation < u32::MAX {
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
                // Without children only its own work is in the inner level.
                self.spare_levels.push(parent.inner);
                parent.inner = NONE;
            }
        }
        Ok(value)
    }

    /// Marks a group as having work of its own. Does nothing if it is active already.
    ///
    /// The group starts with the least virtual runtime of its active siblings, unless its own is
    /// larger. So it has no credit for the time in which it was idle. The same holds for each
    /// ancestor that had no work below it.
    ///
    /// Reads the clock if no group is current, or if only one had work until now.
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
            if self.current != NONE && self.active == 1 {
                self.watched = self.is_capped();
            }
        }
        Ok(())
    }

    fn deactivate_current(&mut self) {
        self.groups[self.current as usize].active = false;
        self.active -= 1;
    }

    /// Gives the turn to the active group with the least virtual runtime, and returns it.
    ///
    /// Before that it ends and charges the turn of the current group, which still has work. The
    /// same group may get the next turn. A pick descends from a group to its children, or to its
    /// own work beside them. Among equals it takes the one that has waited longest. Reads the clock
    /// once.
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
    /// Like [`should_switch`](Self::should_switch) and then [`pick`](Self::pick), but with one
    /// reading of the clock for both. Call it between the polls of two tasks. While only the
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

    /// Returns the group with the least virtual runtime, of those with work that are not throttled.
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
    /// Like [`deactivate`](Self::deactivate) and then [`pick`](Self::pick), but reads the clock
    /// once.
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

    /// Whether the turn is over: the quota is used up, or no group is current.
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

    /// Returns when the quota of the turn is used up, on the queue's clock.
    ///
    /// `None` if the turn has no end, as only the current group has work, or if no group is
    /// current. A timer can use the result, which may change when a group is activated or
    /// deactivated.
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

    /// Returns a group's value.
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

    /// Whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how many groups have work of their own, including throttled ones.
    pub fn active(&self) -> usize {
        self.active
    }

    /// Whether a group has work of its own.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn is_active(&self, key: GroupKey) -> Result<bool, Stale> {
        Ok(self.groups[self.find(key)? as usize].active)
    }

    /// Whether a group's own cap keeps it from running. A pick releases it.
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
    /// period, and rescales the runtime that the group has used: a debt that takes some time to pay
    /// at the old cap takes the same time at the new one. So a cap may be adjusted often, and a
    /// throttled group stays throttled for about as long, even if its budget is raised. A group
    /// without a cap is not throttled, and a later cap does not count earlier runtime. Allocates.
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
    /// Without the turn in progress.
    ///
    /// # Errors
    ///
    /// If the group was destroyed.
    pub fn vruntime(&self, key: GroupKey) -> Result<u64, Stale> {
        let group = &self.groups[self.find(key)? as usize];
        let rank = self.levels[group.level as usize].rank(group.leaf);
        // Slightly too small, as weights are rounded down.
        let rounded = (rank + u128::from(ONE / 2)) / u128::from(ONE);
        Ok(rounded.try_into().unwrap_or(u64::MAX))
    }

    #[inline]
    fn find(&self, key: GroupKey) -> Result<u32, Stale> {
        match self.groups.get(key.index as usize) {
            // No key has the generation of a spare group.
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

    /// Whether a group should be present in its level (rule 1).
    #[inline]
    fn wants(&self, index: u32) -> bool {
        let group = &self.groups[index as usize];
        !group.throttled
            & match group.inner {
                NONE => group.active,
                inner => !self.levels[inner as usize].is_empty(),
            }
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

    /// Charges the current group and its ancestors for the time until now, at least for `least`
    /// nanoseconds, and restores rule 1.
    #[inline]
    fn charge_current(&mut self, now: u64, least: u64) {
        let ran = now - self.charged;
        let costs = ran.max(least);
        (self.charged, self.now) = (now, now);
        let mut index = self.current;
        let group = &self.groups[index as usize];
        if group.inner != NONE {
            let (cost, active) = (charge(costs, group.own_weight), group.active);
            self.levels[group.inner as usize].charge(OWN, cost, active);
        }
        while index != NONE {
            let group = &mut self.groups[index as usize];
            group.counts.runtime += ran;
            if group.cap != NONE && self.caps.charge(group.cap, ran, now) {
                group.throttled = true;
                self.ends = now;
            }
            let wants = self.wants(index);
            let group = &self.groups[index as usize];
            let level = &mut self.levels[group.level as usize];
            level.charge(group.leaf, charge(costs, group.weight), wants);
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
        self.current = NONE;
        (self.watched, self.ends) = (true, now);
    }

    /// Returns the present group with the least virtual runtime of its level, in each level.
    #[inline]
    fn least(&self) -> Option<u32> {
        let mut level = ROOT;
        loop {
            let index = self.levels[level as usize].pick()?;
            let inner = self.groups[index as usize].inner;
            // In its own inner level, a group is its own work.
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
        self.arm(now);
        Pick::Run(self.key(index))
    }

    /// Whether a cap applies to the current group.
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

    /// Sets whether the turn is watched, and its end. The end of a turn that is watched already
    /// does not become later. The current group must be charged until now.
    #[inline]
    fn arm(&mut self, now: u64) {
        let (mut left, mut capped) = (self.quota, false);
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

    fn unthrottle(&mut self, index: u32, since: u64, now: u64) {
        let group = &mut self.groups[index as usize];
        if group.throttled {
            group.throttled = false;
            group.counts.throttled += now - since;
            self.refresh(index);
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

/// Returns the number of a new group or level.
fn number(len: usize) -> u32 {
    let number = u32::try_from(len).ok().filter(|&number| number != NONE);
    number.expect("fewer than 2^32 - 1 groups")
}

#[cfg(test)]
impl<T, C> FairQueue<T, C> {
    /// Sets a group's generation to the last but one. For tests.
    pub(crate) fn age(&mut self, key: GroupKey) -> GroupKey {
        self.groups[key.index as usize].generation = u32::MAX - 1;
        GroupKey {
            generation: u32::MAX - 1,
            ..key
        }
    }
}
