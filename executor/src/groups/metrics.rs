//! The counters of groups, for snapshots.
use super::{Groups, group::Group};
use std::{collections::HashMap, fmt, sync::Arc, time::Duration};

/// Counters of one scheduling group so far: the sums over the workers, and the counters of each
/// worker.
///
/// A worker measures the time of its groups while tasks of other groups than main are queued on it,
/// and for a short while after. So main's time is not measured in a runtime without other groups.
///
/// ```
/// use selvedge_executor::spawn_in;
///
/// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
/// let group = runtime.group("batch").shares(200).build().unwrap();
/// runtime.block_on(spawn_in(&group, async {}).unwrap()).unwrap();
/// let metrics = runtime.snapshot();
/// let batch = metrics.groups.iter().find(|group| group.name == "batch").unwrap();
/// assert_eq!((batch.shares, batch.tasks, batch.queued), (200, 0, 0));
/// assert!(batch.to_string().starts_with("batch: shares 200, got "));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "metrics", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GroupSnapshot {
    /// The name.
    pub name: String,
    /// The shares that the group is to have.
    pub shares: u32,
    /// The shares that the group's time so far amounts to: its part of the runtime of its siblings
    /// and itself, times the sum of their shares. A group that always has tasks to run, among
    /// siblings that do, gets about its shares. Less than its shares also means that it had nothing
    /// to run. Compare [`starving`](Self::starving).
    pub shares_got: u64,
    /// The [goal for latency](crate::GroupBuilder::latency).
    pub latency: Option<Duration>,
    /// The name of the parent.
    pub parent: Option<String>,
    /// The number of tasks that have not ended, plus the number of the group's children. 0 for
    /// main, which counts neither.
    pub tasks: u64,
    /// The number of tasks in the workers' lists. 0 for main, whose tasks are not in these lists.
    pub queued: u64,
    /// How long the tasks of the group and of its descendants ran.
    pub runtime: Duration,
    /// How long the group had no tasks to run: the sum over the workers on which the group, or a
    /// descendant, has had a task.
    pub waiting: Duration,
    /// How long the group had tasks to run, but did not run.
    pub starving: Duration,
    /// The number of turns that took more than twice the quota while another group had work.
    pub violations: u64,
    /// Counters of each worker.
    pub per_worker: Vec<GroupWorkerSnapshot>,
}

/// Counters of one scheduling group on one worker so far.
///
/// ```
/// let runtime = selvedge_executor::Builder::new().workers(2).build()?;
/// let group = runtime.group("batch").build().unwrap();
/// let metrics = runtime.snapshot();
/// let batch: &selvedge_executor::GroupSnapshot = metrics.groups.last().unwrap();
/// let worker: &selvedge_executor::GroupWorkerSnapshot = &batch.per_worker[1];
/// assert_eq!(worker.turns, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "metrics", derive(serde::Serialize))]
#[non_exhaustive]
pub struct GroupWorkerSnapshot {
    /// The number of tasks in the worker's list for the group.
    pub queued: u64,
    /// The number of turns that the group had for its own tasks, not for those of its children.
    pub turns: u64,
    /// How long the tasks of the group and of its descendants ran on the worker.
    pub runtime: Duration,
    /// How long the group had no tasks to run.
    pub waiting: Duration,
    /// How long the group had tasks to run, but did not run.
    pub starving: Duration,
    /// The number of turns that took more than twice the quota while another group had work.
    pub violations: u64,
    /// The virtual runtime: the runtime divided by the shares, in nanoseconds. When a group gets
    /// tasks again, its virtual runtime is raised to the least one of the groups with tasks.
    pub vruntime: u64,
}

impl Groups {
    /// The counters of all groups, if a group was ever built.
    pub(crate) fn snapshots(&self) -> Vec<GroupSnapshot> {
        if !self.is_used() {
            return Vec::new();
        }
        let counted = self.counted(self.all());
        counted.into_iter().map(|(_, snapshot)| snapshot).collect()
    }

    /// The counters of one group.
    pub(super) fn snapshot_of(&self, group: &Arc<Group>) -> GroupSnapshot {
        let counted = self.counted(self.all());
        let own = counted.into_iter().find(|(one, _)| Arc::ptr_eq(one, group));
        // A group that was destroyed has no siblings any more.
        own.map_or_else(|| self.snapshot(group), |(_, snapshot)| snapshot)
    }

    /// The counters of all groups, with the shares that they got.
    fn counted(&self, all: Vec<Arc<Group>>) -> Vec<(Arc<Group>, GroupSnapshot)> {
        let parent = |group: &Group| group.parent.as_ref().map(Arc::as_ptr);
        let mut sums = HashMap::<_, (u128, u128)>::new();
        let count = |group: Arc<Group>| {
            let snapshot = self.snapshot(&group);
            let (shares, runtime) = sums.entry(parent(&group)).or_default();
            *shares += u128::from(snapshot.shares);
            *runtime += snapshot.runtime.as_nanos();
            (group, snapshot)
        };
        let mut counted: Vec<_> = all.into_iter().map(count).collect();
        for (group, snapshot) in &mut counted {
            let (shares, runtime) = sums[&parent(group)];
            let got = snapshot.runtime.as_nanos().saturating_mul(shares) / runtime.max(1);
            snapshot.shares_got = u64::try_from(got).unwrap_or(u64::MAX);
        }
        counted
    }

    /// The name of the group whose turn it is on a worker, if a group was ever built.
    pub(crate) fn name_of_turn(&self, worker: usize) -> Option<String> {
        if !self.is_used() {
            return None;
        }
        let current = self.workers[worker].with(|state| {
            let entry = state.fair.get(state.fair.current()?).ok()?;
            Some(entry.group.clone())
        });
        let group = current.as_ref().unwrap_or(&self.main);
        Some(group.name.lock().clone())
    }

    fn snapshot(&self, group: &Arc<Group>) -> GroupSnapshot {
        let name = |group: &Arc<Group>| group.name.lock().clone();
        let mut sum = GroupSnapshot {
            name: name(group),
            shares: group.shares().get(),
            latency: group.latency,
            parent: group.parent.as_ref().map(name),
            tasks: group.uses() as u64,
            ..GroupSnapshot::default()
        };
        for turns in &self.workers {
            let own = turns.with(|state| {
                let key = state.known(group)?;
                let (metrics, vruntime) = (state.fair.metrics(key), state.fair.vruntime(key));
                let (metrics, vruntime) = (metrics.ok()?, vruntime.ok()?);
                Some(GroupWorkerSnapshot {
                    queued: state
                        .fair
                        .get(key)
                        .map_or(0, |entry| entry.tasks.len() as u64),
                    turns: metrics.picked,
                    runtime: metrics.runtime,
                    waiting: metrics.waiting,
                    starving: metrics.starving,
                    violations: metrics.violations,
                    vruntime,
                })
            });
            let own = own.unwrap_or_default();
            sum.queued += own.queued;
            sum.runtime += own.runtime;
            sum.waiting += own.waiting;
            sum.starving += own.starving;
            sum.violations += own.violations;
            sum.per_worker.push(own);
        }
        sum
    }
}

impl fmt::Display for GroupSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: shares {}, got {}, tasks {}, queued {}, runtime {:?}, waiting {:?}, starving {:?}, \
             violations {}",
            self.name,
            self.shares,
            self.shares_got,
            self.tasks,
            self.queued,
            self.runtime,
            self.waiting,
            self.starving,
            self.violations
        )
    }
}
