//! A worker's turns: the lists of its groups' tasks, and the fair queue that chooses among them.
//!
//! The worker and its thieves use the turns under the lock. Only the worker pushes into the lists
//! and gives turns. A thief only takes tasks out. If it empties a list, it marks the list's group
//! as inactive, unless that group has the turn. The number of tasks in the lists is also kept
//! outside of the lock, as a hint for thieves and for a worker's last look before a sleep.
//!
//! 1. A group's list enters the fair queue, as an *entry*, with the first task of the group or of a
//!    descendant on this worker. The entry leaves when the worker finds the group gone. An entry
//!    keeps its group in memory. The worker finds an entry by its group's index. If that entry has
//!    another group, the index was reused, and the entry's group is gone. A group that is gone has
//!    no tasks.
//! 2. A group with tasks in its list is active. An active group other than main has tasks in its
//!    list, or it had some when its turn began. Main's list is always empty.
//! 3. The address in `GroupQueue::turn` is that of the main group, of an entry's group, or of a
//!    group in `removed`. The worker clears `removed` only after it has stored the next turn.
use super::{
    Groups,
    clock::{Clock, WorkerClock},
    group::Group,
};
use crate::worker::scheduler::{Scheduler, Task};
use queue_global::List;
use sched_group::{FairQueue, GroupKey, Pick};
use std::{sync::Arc, time::Duration};
use sync_shim::{
    CachePadded,
    atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    sync::{Mutex, MutexGuard},
};
use task_header::Node;

/// The turns of one worker.
pub(crate) struct Turns {
    /// The number of tasks in the lists. Written under the lock.
    queued: CachePadded<AtomicUsize>,
    /// The time at which the turn ends, by the quota or by a goal for latency. [`NEVER`] if no
    /// other group waits. Written under the lock.
    ends: AtomicU64,
    state: Mutex<State>,
}

/// Stands for the end of a turn that has no end.
const NEVER: u64 = u64::MAX;

pub(super) struct State {
    pub(super) fair: FairQueue<Entry, WorkerClock>,
    pub(super) main: GroupKey,
    /// The keys of the groups, by index.
    keys: Vec<Option<GroupKey>>,
    /// The index at which [`pop_any`](Self::pop_any) goes on.
    next_any: usize,
    /// The version that the fair queue knows (rule 7 of [`groups`](super)).
    version: u64,
    pub(super) queued: usize,
    ends: u64,
    /// Groups without an entry, one of which may still have the turn (rule 3).
    pub(super) removed: Vec<Arc<Group>>,
}

/// A group's list. The tasks in the list are dropped before the group.
pub(super) struct Entry {
    pub(super) tasks: List<Node<Scheduler>>,
    pub(super) group: Arc<Group>,
}

impl Turns {
    pub(super) fn new(main: Arc<Group>, clock: Clock, quota: Duration) -> Self {
        let mut fair = FairQueue::with_quota(WorkerClock::new(clock), quota);
        let (shares, index) = (main.shares(), main.index);
        let tasks = List::new();
        let key = fair.insert(shares, Entry { tasks, group: main });
        let mut keys = vec![None; index + 1];
        keys[index] = Some(key);
        Self {
            queued: CachePadded::new(AtomicUsize::new(0)),
            ends: AtomicU64::new(NEVER),
            state: Mutex::new(State {
                fair,
                main: key,
                keys,
                next_any: 0,
                version: 0,
                queued: 0,
                ends: NEVER,
                removed: Vec::new(),
            }),
        }
    }

    /// The number of tasks in the lists. This is a hint, unless fences order it: if a push is
    /// followed by a `SeqCst` fence, and this call preceded by one, and the fence of the push comes
    /// first, then the result is not 0 while the task is in its list.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        // Ordering: Relaxed, by the fences above. Without them the number is only a hint.
        self.queued.load(Relaxed)
    }

    /// The time at which the turn ends, by the quota or by a goal for latency. `None` if no other
    /// group waits.
    pub(super) fn end(&self) -> Option<u64> {
        // Ordering: Relaxed, as in `with`.
        Some(self.ends.load(Relaxed)).filter(|&ends| ends != NEVER)
    }

    /// Runs `f` under the lock. `f` runs no user code.
    #[inline]
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut State) -> R) -> R {
        let mut state: MutexGuard<'_, State> = self.state.lock();
        let before = state.queued;
        let result = f(&mut state);
        if state.queued != before {
            // Ordering: Relaxed, as in `queued`.
            self.queued.store(state.queued, Relaxed);
        }
        let ends = state.fair.turn_end().unwrap_or(NEVER);
        if state.ends != ends {
            state.ends = ends;
            // Ordering: Relaxed, as the number publishes nothing.
            self.ends.store(ends, Relaxed);
        }
        result
    }
}

impl State {
    /// Brings the fair queue up to date, if the groups have a new version.
    #[inline]
    pub(super) fn refresh(&mut self, groups: &Groups) {
        let version = groups.version();
        if version != self.version {
            self.version = version;
            self.take_over();
        }
    }

    #[cold]
    fn take_over(&mut self) {
        self.remove_gone();
        let entries = self
            .fair
            .iter()
            .map(|(key, entry)| (key, entry.group.shares()));
        for (key, shares) in entries.collect::<Vec<_>>() {
            if self.fair.shares(key) != Ok(shares) {
                let _ = self.fair.set_shares(key, shares);
                let _ = self.fair.set_own_shares(key, shares);
            }
        }
    }

    /// Removes the groups that are gone, children before their parents.
    ///
    /// A group and its parent may both end while this method looks at the groups. It may then find
    /// the parent gone and the child not. In this case the parent's entry stays until the next
    /// look. The worker looks again, because the child's end increases the version after `refresh`
    /// has read the version.
    fn remove_gone(&mut self) {
        let gone = self.fair.iter().filter(|(_, entry)| entry.group.is_gone());
        let mut gone: Vec<_> = gone.map(|(key, entry)| (entry.group.depth, key)).collect();
        gone.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        for (_, key) in gone {
            let _ = self.fair.deactivate(key);
            if let Ok(entry) = self.fair.destroy(key) {
                debug_assert!(entry.tasks.is_empty(), "its tasks have ended");
                let at = &mut self.keys[entry.group.index];
                *at = at.filter(|at| *at != key);
                self.removed.push(entry.group);
            }
        }
    }

    /// Returns the key of a group that is not gone. If the group is new here, adds it, after those
    /// of its ancestors that are new here.
    fn key(&mut self, group: &Arc<Group>) -> GroupKey {
        let mut key = self.current_key(group);
        let mut missing = Vec::new();
        // This is a loop, as groups may be nested too deep for a recursion.
        let mut next = Some(group);
        while let (None, Some(group)) = (key, next) {
            missing.push(group);
            next = group.parent.as_ref();
            key = next.and_then(|parent| self.current_key(parent));
        }
        while let Some(group) = missing.pop() {
            key = Some(self.insert(group, key));
        }
        key.expect("the group is there, or was just added")
    }

    /// Returns the key of a group, unless the group is new here.
    fn current_key(&mut self, group: &Arc<Group>) -> Option<GroupKey> {
        let known = self.known(group);
        if known.is_none() && self.keys.get(group.index).is_some_and(Option::is_some) {
            self.remove_gone(); // Rule 1.
        }
        known
    }

    /// Adds a group below its parent, if it has one.
    fn insert(&mut self, group: &Arc<Group>, parent: Option<GroupKey>) -> GroupKey {
        let (shares, tasks) = (group.shares(), List::new());
        let entry = Entry {
            tasks,
            group: group.clone(),
        };
        let key = match parent {
            None => self.fair.insert(shares, entry),
            Some(parent) => {
                let inserted = self.fair.insert_under(parent, shares, entry);
                inserted.expect("the parent is there while a child is")
            }
        };
        let _ = self.fair.set_latency(key, group.latency);
        if self.keys.len() <= group.index {
            self.keys.resize(group.index + 1, None);
        }
        self.keys[group.index] = Some(key);
        key
    }

    /// The key of a group, if the group has an entry here.
    pub(super) fn known(&self, group: &Arc<Group>) -> Option<GroupKey> {
        let key = (*self.keys.get(group.index)?)?;
        let entry = self.fair.get(key).ok()?;
        Arc::ptr_eq(&entry.group, group).then_some(key)
    }

    /// Begins to share: main has the turn, as it ran until now.
    pub(super) fn begin(&mut self) {
        let _ = self.fair.activate(self.main);
        let first = self.fair.pick();
        debug_assert_eq!(first, Pick::Run(self.main), "no other group is active");
    }

    /// Pushes a task into its group's list.
    #[inline]
    pub(super) fn push(&mut self, task: Task) {
        let group = task.scheduler().group();
        // SAFETY: this function holds the task, and the task keeps its group (rule 5 of `groups`).
        let index = unsafe { group.as_ref() }.index;
        let known = self.keys.get(index).copied().flatten();
        let key = match known {
            Some(key) if self.is_entry_of(key, group.as_ptr()) => key,
            _ => self.add(&task),
        };
        let Ok(entry) = self.fair.get_mut(key) else {
            return debug_assert!(false, "it is there, or was just added");
        };
        let was_empty = entry.tasks.is_empty();
        entry.tasks.push_back(task);
        self.queued += 1;
        if was_empty {
            let _ = self.fair.activate(key); // With a filled list, the group is active (rule 2).
        }
    }

    /// Pushes a task of the group that has the turn, and takes the oldest task of that group. Gives
    /// the task back if another group has the turn.
    #[inline]
    pub(super) fn exchange(&mut self, task: Task) -> Result<Task, Task> {
        match self.fair.current_mut() {
            Some((_, entry)) if Arc::as_ptr(&entry.group) == task.scheduler().group().as_ptr() => {
                let Some(oldest) = entry.tasks.pop_front() else {
                    return Ok(task);
                };
                entry.tasks.push_back(task);
                Ok(oldest)
            }
            _ => Err(task),
        }
    }

    fn is_entry_of(&self, key: GroupKey, group: *const Group) -> bool {
        let entry = self.fair.get(key);
        entry.is_ok_and(|entry| Arc::as_ptr(&entry.group) == group)
    }

    #[cold]
    fn add(&mut self, task: &Task) -> GroupKey {
        // SAFETY: the task keeps its group in memory (rule 5 of `groups`).
        let group = unsafe { task.scheduler().counted() };
        self.key(&group)
    }

    /// Takes the oldest task of a group.
    #[inline]
    pub(super) fn pop(&mut self, key: GroupKey) -> Option<Task> {
        let task = self.fair.get_mut(key).ok()?.tasks.pop_front()?;
        self.queued -= 1;
        Some(task)
    }

    /// Takes any task: for shutdown. Goes on with the group of the last such task, so that the
    /// tasks of many groups take one round. An entry without a key has no tasks (rule 1).
    pub(super) fn pop_any(&mut self) -> Option<Task> {
        if self.queued == 0 {
            return None;
        }
        for _ in 0..self.keys.len() {
            let key = self.keys[self.next_any];
            if let Some(task) = key.and_then(|key| self.pop(key)) {
                return Some(task);
            }
            self.next_any = (self.next_any + 1) % self.keys.len();
        }
        debug_assert!(false, "a list has a task");
        None
    }

    /// Takes half of the tasks of the group that needs help most, for a thief. The neediest group
    /// is the active group with the least virtual runtime. If this is main, its tasks are in the
    /// ring: this method returns `Main`, unless the thief has found the ring empty. If the list of
    /// the neediest group is empty, any group with a filled list takes its place.
    pub(super) fn steal(&mut self, ring_is_empty: bool) -> Stolen {
        /// The most tasks to take while the lock is held once.
        const MOST: usize = 128;
        let has_tasks = |key: &GroupKey| {
            let entry = self.fair.get(*key);
            entry.is_ok_and(|entry| !entry.tasks.is_empty())
        };
        let neediest = self.fair.peek();
        if neediest == Some(self.main) && !ring_is_empty {
            return Stolen::Main;
        }
        let any = || self.fair.iter().map(|(key, _)| key).find(has_tasks);
        let Some(key) = neediest.filter(has_tasks).or_else(any) else {
            return Stolen::Nothing;
        };
        let Ok(entry) = self.fair.get_mut(key) else {
            return Stolen::Nothing;
        };
        let half = entry.tasks.len().div_ceil(2).min(MOST);
        let tasks = entry.tasks.split_off_front(half);
        let is_empty = entry.tasks.is_empty();
        self.queued -= tasks.len();
        if is_empty && self.fair.current() != Some(key) {
            let _ = self.fair.deactivate(key);
        }
        Stolen::Tasks(tasks)
    }
}

/// The result of a thief's look at a victim's turns.
pub(super) enum Stolen {
    /// The neediest group is main, whose tasks are in the ring.
    Main,
    Tasks(List<Node<Scheduler>>),
    Nothing,
}
