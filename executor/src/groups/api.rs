//! The handle of a group, and how it is built, changed and destroyed.
use super::{group::Group, inherit};
use crate::{
    Handle, Runtime,
    worker::{scheduler::Scheduler, shared::Shared},
};
use sched_group::Shares;
use std::{fmt, future::Future, panic::Location, sync::Arc, time::Duration};
use task_header::JoinHandle;

/// A group of tasks that has its share of each worker's time.
///
/// While several groups have tasks to run, a worker divides its time among them in proportion to
/// their *shares*. A group without tasks leaves its time to the others, and earns no credit for
/// later. A group with a parent has its share of the parent's time. Every runtime has the group
/// `main`, whose shares are 1000.
///
/// [`spawn_in`] names the group of the new task. With any other spawn, a task that a task spawns is
/// in the group of the spawning task, and a task that is spawned from outside is in `main`.
///
/// A handle may be cloned and sent anywhere. It does not keep the group from being
/// [destroyed](Self::destroy), and it does not keep the runtime running.
///
/// ```
/// use selvedge_executor::spawn_in;
///
/// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
/// let queries = runtime.group("queries").shares(1000).build().unwrap();
/// let compaction = runtime.group("compaction").shares(100).build().unwrap();
/// let merge = spawn_in(&compaction, async {
///     for _ in 0..1000 {
///         selvedge_executor::yield_now().await; // A real task merges a few blocks before each yield.
///     }
/// });
/// let answer = spawn_in(&queries, async { 42 }).unwrap();
/// assert_eq!(runtime.block_on(answer).unwrap(), 42);
/// runtime.block_on(merge.unwrap()).unwrap();
/// compaction.destroy().unwrap();
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone)]
pub struct SchedulingGroup {
    handle: Handle,
    pub(super) group: Arc<Group>,
}

impl SchedulingGroup {
    /// Returns the group of the task that calls this.
    ///
    /// A closure of [`spawn_blocking`](crate::spawn_blocking) is in the group of the task that
    /// spawned the closure. Any other code, such as a future in `block_on`, is in the main group of
    /// the current runtime.
    ///
    /// ```
    /// use selvedge_executor::{SchedulingGroup, spawn_in};
    ///
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let queries = runtime.group("queries").build().unwrap();
    /// let task = spawn_in(&queries, async {
    ///     selvedge_executor::spawn(async { SchedulingGroup::current().name() }).await.unwrap()
    /// });
    /// assert_eq!(runtime.block_on(task.unwrap()).unwrap(), "queries");
    /// assert_eq!(runtime.block_on(async { SchedulingGroup::current().name() }), "main");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Panics
    /// Outside a runtime.
    #[track_caller]
    pub fn current() -> Self {
        let handle = Handle::current();
        let group = inherit::current(handle.shared());
        let group = group.unwrap_or_else(|| handle.shared().groups.main.clone());
        Self::new(handle, group)
    }
}

impl SchedulingGroup {
    pub(super) fn new(handle: Handle, group: Arc<Group>) -> Self {
        Self { handle, group }
    }

    /// Returns the name.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let group = runtime.group("compaction").build().unwrap();
    /// assert_eq!(group.name(), "compaction");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn name(&self) -> String {
        self.group.name()
    }

    /// Changes the name, which metrics show.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let group = runtime.group("tenant 7").build().unwrap();
    /// group.rename("tenant 8");
    /// assert_eq!(group.name(), "tenant 8");
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn rename(&self, name: impl Into<String>) {
        *self.group.name.lock() = name.into();
    }

    /// Returns the group's counters, with the shares that it got. Costs as much as the counters of
    /// all groups, because the shares that it got depend on its siblings.
    ///
    /// ```
    /// use selvedge_executor::spawn_in;
    ///
    /// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
    /// let group = runtime.group("batch").shares(200).build().unwrap();
    /// runtime.block_on(spawn_in(&group, async {}).unwrap()).unwrap();
    /// let metrics = group.metrics();
    /// assert_eq!((&*metrics.name, metrics.shares, metrics.tasks), ("batch", 200, 0));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn metrics(&self) -> crate::GroupSnapshot {
        self.handle.shared().groups.snapshot_of(&self.group)
    }

    /// Returns the shares.
    pub fn shares(&self) -> u32 {
        self.group.shares().get()
    }

    /// Returns the goal for latency, if the builder [set one](GroupBuilder::latency).
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let group = runtime.group("batch").build().unwrap();
    /// assert_eq!(group.latency(), None);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn latency(&self) -> Option<Duration> {
        self.group.latency
    }

    /// Changes the shares. Each worker uses the new shares from the next task on that it runs.
    ///
    /// The time that the group has run until then is charged at the old shares.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let compaction = runtime.group("compaction").shares(100).build().unwrap();
    /// compaction.set_shares(300).unwrap(); // Its backlog has grown.
    /// assert_eq!(compaction.shares(), 300);
    /// assert!(compaction.set_shares(0).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If `shares` is 0: a group without a share would never run. Nothing has changed then.
    pub fn set_shares(&self, shares: u32) -> Result<(), GroupError> {
        let shares = Shares::new(shares).ok_or(GroupError::ZeroShares)?;
        self.group.set_shares(shares);
        self.handle.shared().groups.changed();
        Ok(())
    }

    /// Returns the number of tasks that have not ended, plus the number of children. Returns 0 for
    /// the main group, which counts neither.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let group = runtime.group("batch").build().unwrap();
    /// assert_eq!(group.tasks(), 0);
    /// let task = selvedge_executor::spawn_in(&group, std::future::pending::<()>()).unwrap();
    /// assert_eq!(group.tasks(), 1);
    /// # drop(task);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn tasks(&self) -> usize {
        self.group.uses()
    }

    /// Ends the group: the group refuses spawns from now on. Does nothing if the group was
    /// destroyed before.
    ///
    /// ```
    /// use selvedge_executor::spawn_in;
    ///
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let group = runtime.group("once").build().unwrap();
    /// let task = spawn_in(&group, std::future::pending::<()>()).unwrap();
    /// assert!(group.destroy().is_err());
    /// task.abort();
    /// assert!(runtime.block_on(task).is_err());
    /// group.destroy().unwrap();
    /// assert!(spawn_in(&group, async {}).is_err());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the group has tasks that have not ended, if it has children, or if it is the main group.
    /// Then nothing has changed.
    pub fn destroy(&self) -> Result<(), Busy> {
        if self.group.destroy() {
            self.handle.shared().groups.remove(&self.group);
            let values = std::mem::take(&mut *self.group.values.lock());
            drop(values);
            return Ok(());
        }
        if self.group.is_gone() {
            Ok(())
        } else {
            Err(Busy(()))
        }
    }
}

impl PartialEq for SchedulingGroup {
    /// Whether both are handles of the same group.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.group, &other.group)
    }
}

impl Eq for SchedulingGroup {}

impl fmt::Debug for SchedulingGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.group.fmt(f)
    }
}

/// Spawns a task in a group. Apart from the group, this does the same as [`Handle::spawn`].
///
/// It costs a spawn, and a read-modify-write of a count that the group's tasks share. The end of
/// the task costs one more read-modify-write of this count.
///
/// ```
/// use selvedge_executor::{GroupGone, spawn_in};
///
/// let runtime = selvedge_executor::Runtime::new()?;
/// let group = runtime.group("batch").shares(50).build().unwrap();
/// let task = spawn_in(&group, async { 7 }).unwrap();
/// assert_eq!(runtime.block_on(task).unwrap(), 7);
///
/// group.destroy().unwrap();
/// let GroupGone(future) = spawn_in(&group, async { 8 }).unwrap_err();
/// assert_eq!(runtime.block_on(future), 8);
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// If the group was destroyed. Returns the future.
#[track_caller]
pub fn spawn_in<F>(
    group: &SchedulingGroup,
    future: F,
) -> Result<JoinHandle<F::Output>, GroupGone<F>>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let Some(group_use) = GroupUse::of(&group.group) else {
        return Err(GroupGone(future));
    };
    Ok(group
        .handle
        .spawn_to(|| group_use.pass_on(), future, Location::caller()))
}

/// One use in a group's count, until the use is passed on to a task.
struct GroupUse<'a>(&'a Arc<Group>);

impl<'a> GroupUse<'a> {
    fn of(group: &'a Arc<Group>) -> Option<Self> {
        group.enter().then(|| Self(group))
    }

    fn pass_on(self) -> Scheduler {
        let scheduler = Scheduler::in_group(self.0);
        std::mem::forget(self);
        scheduler
    }
}

impl Drop for GroupUse<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// Builds a group. Made by [`Runtime::group`] and [`Handle::group`].
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let tenants = runtime.group("tenants").shares(500).build().unwrap();
/// let big = runtime.group("big").shares(200).parent(&tenants).build().unwrap();
/// let small = runtime.group("small").shares(100).parent(&tenants).build().unwrap();
/// assert_ne!(big, small);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing before `build`"]
pub struct GroupBuilder {
    handle: Handle,
    name: String,
    shares: u32,
    latency: Option<Duration>,
    parent: Option<SchedulingGroup>,
}

impl GroupBuilder {
    /// Sets the shares. 100 by default.
    pub fn shares(mut self, shares: u32) -> Self {
        self.shares = shares;
        self
    }

    /// Sets a goal for latency. None by default.
    ///
    /// While tasks of this group wait on a worker and another group has the turn, each turn lasts
    /// at most for `goal`, if `goal` is less than the [quota](crate::Builder::group_quota). The
    /// shares keep their effect: groups that have had less time still come first, but their turns
    /// are shorter. So the worker switches more often. A turn ends between two polls. A poll that
    /// takes long ends as [`Handle::preempt_overdue_groups`] says.
    ///
    /// ```
    /// let runtime = selvedge_executor::Builder::new().workers(1).build()?;
    /// let goal = std::time::Duration::from_micros(50);
    /// let reads = runtime.group("reads").latency(goal).build().unwrap();
    /// let read = selvedge_executor::spawn_in(&reads, async { 7 }).unwrap();
    /// assert_eq!(runtime.block_on(read).unwrap(), 7);
    /// assert_eq!(reads.latency(), Some(goal));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn latency(mut self, goal: Duration) -> Self {
        self.latency = Some(goal);
        self
    }

    /// Sets the parent: the group gets its share of the parent's time. By default a group has no
    /// parent, like main.
    ///
    /// The tasks of the parent itself count as one more child, with the parent's shares.
    pub fn parent(mut self, parent: &SchedulingGroup) -> Self {
        self.parent = Some(parent.clone());
        self
    }

    /// Builds the group.
    ///
    /// # Errors
    /// If the shares are 0, or if the parent was destroyed, or is of another runtime.
    ///
    /// ```
    /// use selvedge_executor::GroupError;
    ///
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let refused = runtime.group("none").shares(0).build().unwrap_err();
    /// assert_eq!(refused, GroupError::ZeroShares);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn build(self) -> Result<SchedulingGroup, GroupError> {
        let shares = Shares::new(self.shares).ok_or(GroupError::ZeroShares)?;
        let parent = match self.parent {
            None => None,
            Some(parent) if parent.group.runtime() != self.handle.shared().address() => {
                return Err(GroupError::OtherRuntime);
            }
            Some(parent) if !parent.group.enter() => return Err(GroupError::ParentGone),
            Some(parent) => Some(parent.group),
        };
        let group = self
            .handle
            .shared()
            .groups
            .insert(&self.name, shares, self.latency, parent);
        Ok(SchedulingGroup::new(self.handle, group))
    }
}

impl Handle {
    /// Begins to build a scheduling group.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let group = runtime.handle().group("compaction").shares(200).build().unwrap();
    /// assert_eq!((group.name(), group.shares()), ("compaction".into(), 200));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn group(&self, name: impl Into<String>) -> GroupBuilder {
        GroupBuilder {
            handle: self.clone(),
            name: name.into(),
            shares: 100,
            latency: None,
            parent: None,
        }
    }

    /// Returns the main group. A task is in the main group unless [`spawn_in`] named another group,
    /// or a task of another group spawned it.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let main = runtime.handle().main_group();
    /// assert_eq!((main.name(), main.shares()), ("main".into(), 1000));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn main_group(&self) -> SchedulingGroup {
        SchedulingGroup::new(self.clone(), self.shared().groups.main.clone())
    }

    /// Requests the end of the time slice of each worker on which a group has used up its quota
    /// while another group waits.
    ///
    /// A poll that takes long then ends at its next cooperative operation, or at the next
    /// [`yield_if_needed`](crate::yield_if_needed), rather than when it returns by itself.
    /// While a worker has two groups with work, the monitor does this whenever the first turn ends,
    /// but at most once a millisecond. For a shorter quota, and for driven workers, which have no
    /// monitor, a timer may call this once per quota. A call costs a load for each worker, and an
    /// exchange for each worker whose slice it ends.
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// runtime.handle().preempt_overdue_groups(); // No worker has two groups with work.
    /// assert_eq!(runtime.snapshot().ended_slices, 0);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn preempt_overdue_groups(&self) {
        self.shared().end_overdue_turns();
    }
}

impl Shared {
    /// Requests the end of the slices in which a turn's quota is used up. Returns the time until
    /// the first turn ends, or 0 if the quota of one is used up. Returns `None` if no turn has an
    /// end.
    pub(crate) fn end_overdue_turns(&self) -> Option<Duration> {
        if !self.groups.is_used() {
            return None;
        }
        let (mut first, mut now) = (None, None);
        for (worker, turns) in self.groups.workers.iter().enumerate() {
            let Some(ends) = turns.end() else { continue };
            let now = *now.get_or_insert_with(|| self.groups.now());
            let left = ends.saturating_sub(now);
            if left == 0 {
                self.slices.of(worker).request();
            }
            first = Some(first.unwrap_or(left).min(left));
        }
        first.map(Duration::from_nanos)
    }
}

impl Runtime {
    /// Begins to build a scheduling group. See [`SchedulingGroup`].
    ///
    /// ```
    /// let runtime = selvedge_executor::Runtime::new()?;
    /// let compaction = runtime.group("compaction").shares(200).build().unwrap();
    /// let task = selvedge_executor::spawn_in(&compaction, async { 7 }).unwrap();
    /// assert_eq!(runtime.block_on(task).unwrap(), 7);
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn group(&self, name: impl Into<String>) -> GroupBuilder {
        self.handle().group(name)
    }
}

/// Error of [`SchedulingGroup::destroy`]: the group has tasks or children, or is the main group.
/// Nothing has changed.
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let busy: selvedge_executor::Busy = runtime.handle().main_group().destroy().unwrap_err();
/// assert!(busy.to_string().starts_with("the group has tasks"));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Busy(());

impl fmt::Display for Busy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the group has tasks that have not ended, or children, or is main")
    }
}

impl std::error::Error for Busy {}

/// Error of [`GroupBuilder::build`] and [`SchedulingGroup::set_shares`].
///
/// ```
/// let error = selvedge_executor::GroupError::ZeroShares;
/// assert!(error.to_string().starts_with("a group needs at least one share"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupError {
    /// The shares are 0.
    ZeroShares,
    /// The parent was destroyed.
    ParentGone,
    /// The parent is a group of another runtime.
    OtherRuntime,
}

impl fmt::Display for GroupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroShares => "a group needs at least one share: with none it would never run",
            Self::ParentGone => "the group's parent was destroyed",
            Self::OtherRuntime => "the group's parent is of another runtime",
        })
    }
}

impl std::error::Error for GroupError {}

/// Error of [`spawn_in`]: the group was destroyed. Contains the future that was not spawned.
///
/// ```
/// let runtime = selvedge_executor::Runtime::new()?;
/// let group = runtime.group("gone").build().unwrap();
/// group.destroy().unwrap();
/// let gone = selvedge_executor::spawn_in(&group, async { 7 }).unwrap_err();
/// assert_eq!(gone.to_string(), "the group was destroyed");
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct GroupGone<F>(pub F);

impl<F> fmt::Debug for GroupGone<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GroupGone").finish_non_exhaustive()
    }
}

impl<F> fmt::Display for GroupGone<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the group was destroyed")
    }
}

impl<F> std::error::Error for GroupGone<F> {}

impl Handle {
    /// Spawns a task with a scheduler of this runtime.
    fn spawn_to<F>(
        &self,
        to: impl FnOnce() -> Scheduler,
        future: F,
        at: &'static Location<'static>,
    ) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        self.spawn_to_queue(to, future, at, |task| self.shared().submit(task))
    }
}
