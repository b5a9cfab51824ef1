//! Scheduling groups: how the workers divide their time among groups of tasks by shares.
//!
//! # Actors and places
//!
//! Every task belongs to one *group*: to *main*, or to a group that the user built. Its scheduler
//! pointer names the group ([`Scheduler`](crate::worker::scheduler::Scheduler)).
//!
//! | place | holds | filled by | emptied by |
//! |---|---|---|---|
//! | a worker's slot and ring, the runtime's injector | main's tasks | as without groups | as without groups |
//! | a worker's *requeued task* | a task of another group that has just run | the worker | the worker |
//! | a worker's *lists*, one for each group | tasks of the other groups | the worker | the worker, thieves |
//! | the groups' injector | tasks of the other groups from outside | any thread | the workers, which move them to their lists |
//! | a worker's *inbox*, in a runtime whose workers do not steal | tasks that other threads woke ([`inbox`]) | any thread | the worker, which moves them to its ring and its lists |
//!
//! A worker's lists and its [`FairQueue`](sched_group::FairQueue) are its *turns*
//! ([`turns`]), behind one lock. Main is a group of the fair queue as well.
//!
//! A worker *shares* its time while tasks of other groups than main are queued on it, and for a
//! short while after. Otherwise its queue is *plain*: the core uses main's queue directly, as in a
//! runtime without groups. A spawn and a wake check this when they compare the task's scheduler
//! with the field `plain`: it is main's scheduler while the queue is plain, and empty otherwise. It
//! is always empty where workers do not steal, so that each wake looks where the task's home is.
//! The flag `sharing` is tested when the worker looks for its next task, and when it requeues one.
//! Both combine the flag with another one that they test anyway, in one branch.
//!
//! # Rules
//!
//! 1. *The turn.* A worker that shares runs tasks of the group that has the turn, until the quota
//!    is used up or the group has no more tasks. The clock is read between polls, and only while
//!    two groups have work. The time of a poll is charged to the group whose turn it is, whatever
//!    the poll does: a panic changes nothing.
//! 2. *The slot is main's.* Before another group has its turn, the worker moves the slot's task and
//!    main's requeued task to the ring. During that turn main's tasks go to the ring. So the slot
//!    is empty in that turn, and no task of main runs from the slot in another group's time.
//! 3. *No task waits beside a sleeper.* A push into a list notifies, as a push into the ring does.
//!    The push of a requeued task need not notify while another task is queued in the lists: the
//!    push of that other task has notified, and the lists have not been empty since. So a worker
//!    that went to sleep after the other task's push has seen that the lists hold tasks. If the
//!    lists are empty and a task of main runs next, the push of the requeued task notifies. If the
//!    lists are empty and main has no tasks, the requeued task runs next.
//! 4. *Locks.* No user code runs under the lock of a worker's turns, and no thread holds two of
//!    these locks. A thief takes tasks from its victim's lists under the victim's lock, and then
//!    pushes them into its own lists under its own lock. In between the thief counts as searching,
//!    like a thief that copies from a ring.
//! 5. *A group lives while a task of it does.* The table has a counted reference to a group until
//!    the group is destroyed, and `destroy` refuses while the group has tasks or children. A spawn
//!    enters the group before it makes the task. The task leaves the group when the task's future
//!    is gone ([`Group`](group::Group)). After that no queue holds the task, so no thread follows
//!    the task's pointer to the group.
//! 6. *A late notifier touches no group.* A thread from outside reads the runtime's address out of
//!    the group before it pushes the task, and uses only the runtime after that. The groups'
//!    injector belongs to the runtime. So rules 1 to 3 of [`shared`](crate::worker::shared) hold as
//!    they are.
//! 7. *Changes reach a worker at its next turn.* A thread that changes shares stores them in the
//!    group. A thread that ends a group marks this in the group's count of uses. After that the
//!    thread increases the version. A worker that finds a new version between two polls brings its
//!    fair queue up to date. The group of the task that a worker runs stays in memory until the
//!    worker chooses its next task, even if the group is destroyed meanwhile.
//! 8. *Tasks from outside reach their group's list before the next poll.* A worker that shares
//!    looks at the groups' injector before each poll, which costs two loads, and at its inbox if it
//!    has one. Without this look, a task would wait there until the end of an interval, whatever
//!    the shares of its group are.
//! 9. *A requeued task is hidden for a moment.* A requeued task of another group than main waits in
//!    the field `requeued` of the worker's queue. When the worker chooses its next task, it pushes
//!    the requeued task under the same lock, so that a poll costs one lock. Before a look
//!    elsewhere, which may run the code of drivers and wakers, the worker *publishes* the requeued
//!    task: it pushes the task into the list of its group. `leave` and each push into a list also
//!    publish the task, and the shutdown takes it out of the field. So no user code runs while the
//!    field is filled, and the field is empty during a poll.
use crate::worker::{
    identity::RuntimePtr,
    scheduler::{Scheduler, Task},
};
use clock::Clock;
use inbox::Inbox;
use queue_global::Injector;
use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};
use sync_shim::{
    atomic::{
        AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    sync::Mutex,
};
use task_header::Node;
use turns::Turns;

mod api;
mod clock;
mod duties;
mod group;
mod in_group;
mod inbox;
mod inherit;
mod metrics;
mod plain;
mod queue;
mod runtime;
mod turns;
mod values;

pub use self::metrics::{GroupSnapshot, GroupWorkerSnapshot};
pub use api::{Busy, GroupBuilder, GroupError, GroupGone, SchedulingGroup, spawn_in};
pub(crate) use clock::ClockSource;
pub(crate) use duties::watch;
pub(crate) use group::Group as Target;
use group::Group;
pub use in_group::{InGroup, WithGroup};
pub(crate) use inherit::{Inherited, within};
pub(crate) use queue::{GroupQueue as Queue, GroupStealer as Stealer};
pub(crate) use runtime::{GroupRef, RuntimeGroups};
pub use values::GroupLocal;

/// The shares of main, as in Seastar.
const MAIN_SHARES: u32 = 1000;

/// The shares of the group of [`Runtime::at_exit`](crate::Runtime::at_exit), as in Seastar.
const AT_EXIT_SHARES: u32 = 1000;

/// The builder's settings for groups.
#[derive(Clone, Debug)]
pub(crate) struct GroupSettings {
    pub(crate) quota: Duration,
    pub(crate) sharded: bool,
    pub(crate) clock: ClockSource,
}

impl Default for GroupSettings {
    fn default() -> Self {
        Self {
            quota: sched_group::DEFAULT_QUOTA,
            sharded: false,
            clock: ClockSource::Real,
        }
    }
}

/// A runtime's groups. The fields are dropped in this order, so tasks that are still queued are
/// dropped before the groups that they name.
pub(crate) struct Groups {
    /// Tasks of other groups than main, from outside (rule 6).
    pub(crate) injector: Injector<Node<Scheduler>>,
    /// The inbox of each worker, or none if the workers steal.
    inboxes: Box<[Arc<Inbox>]>,
    /// The turns of each worker.
    pub(crate) workers: Box<[Arc<Turns>]>,
    pub(crate) main: Arc<Group>,
    table: Mutex<Table>,
    /// Increased after each change that workers take over (rule 7).
    version: AtomicU64,
    /// Whether a group other than main was ever built, or the workers have inboxes: a worker then
    /// looks at more queues than main's. Set before such a group's first task is made. The atomic
    /// is std's, so that models of runtimes without groups do not branch here.
    used: std::sync::atomic::AtomicBool,
    runtime: OnceLock<RuntimePtr>,
    clock: Clock,
    settings: GroupSettings,
}

/// The groups that are not destroyed, each at its index.
#[derive(Default)]
struct Table {
    groups: Vec<Option<Arc<Group>>>,
    spare: Vec<usize>,
}

impl Table {
    fn insert(&mut self, make: impl FnOnce(usize) -> Arc<Group>) -> Arc<Group> {
        let index = self.spare.pop().unwrap_or_else(|| {
            self.groups.push(None);
            self.groups.len() - 1
        });
        let group = make(index);
        self.groups[index] = Some(group.clone());
        group
    }
}

impl Groups {
    pub(crate) fn new(workers: usize, settings: GroupSettings) -> Self {
        let mut table = Table::default();
        let main = table.insert(|index| {
            let shares = sched_group::Shares::new(MAIN_SHARES).expect("it is not 0");
            Arc::new(Group::new("main", shares, None, index, true))
        });
        let clock = Clock::new(&settings.clock);
        let turns = || Arc::new(Turns::new(main.clone(), clock.clone(), settings.quota));
        let inboxes = if settings.sharded { workers } else { 0 };
        Self {
            injector: Injector::new(),
            inboxes: (0..inboxes).map(|_| Arc::new(Inbox::new())).collect(),
            workers: (0..workers).map(|_| turns()).collect(),
            main,
            table: Mutex::new(table),
            version: AtomicU64::new(0),
            used: std::sync::atomic::AtomicBool::new(settings.sharded),
            runtime: OnceLock::new(),
            clock,
            settings,
        }
    }

    /// Gives the groups the address of their runtime. Called once, before the first task.
    pub(crate) fn bind(&self, runtime: RuntimePtr) {
        let first = self.runtime.set(runtime).is_ok();
        debug_assert!(first, "groups belong to one runtime");
        self.main.bind(runtime);
    }

    /// Whether a group other than main was ever built, or the workers have inboxes. If not, every
    /// task is main's, and the workers steal.
    ///
    /// A worker that goes to sleep fences before it calls this, and a thread that pushes a group's
    /// task fences after the push. So the worker sees that `used` is set, or the thread sees that
    /// the worker sleeps. The same holds for the queues themselves.
    #[inline]
    pub(crate) fn is_used(&self) -> bool {
        // Ordering: Relaxed, by the fences above. Other threads get a group from its handle or its
        // tasks, and so after the store.
        self.used.load(Relaxed)
    }

    /// Whether tasks of groups wait in the groups' injector.
    #[inline]
    pub(crate) fn has_injected(&self) -> bool {
        self.is_used() && !self.injector.is_empty()
    }

    /// Whether the workers do not steal, and so have inboxes.
    pub(crate) fn is_sharded(&self) -> bool {
        self.settings.sharded
    }

    /// The worker to which a woken task goes: its home, if it has one ([`inbox`]).
    #[inline]
    pub(crate) fn home_of(&self, task: &Task) -> Option<usize> {
        match self.inboxes.is_empty() {
            true => None,
            false => task.owner_key(),
        }
    }

    /// Pushes a task into the inbox of its home. The caller unparks the home (rule 2 of [`inbox`]).
    pub(crate) fn send_to(&self, home: usize, task: Task) {
        self.inboxes[home].push(task);
    }

    /// Whether any worker's inbox holds a task: for shutdown (rule 5 of [`inbox`]).
    pub(crate) fn has_mail(&self) -> bool {
        self.inboxes.iter().any(|inbox| !inbox.is_empty())
    }

    /// Takes a task out of any inbox: for shutdown.
    pub(crate) fn pop_mail(&self) -> Option<Task> {
        self.inboxes.iter().find_map(|inbox| inbox.pop())
    }

    fn version(&self) -> u64 {
        // Ordering: Acquire pairs with `changed`: the worker finds the change.
        self.version.load(Acquire)
    }

    /// Makes the workers take a change over (rule 7).
    fn changed(&self) {
        // Ordering: Release pairs with `version`.
        self.version.fetch_add(1, Release);
    }

    /// Adds a group below `parent`. The caller has entered the parent.
    fn insert(
        &self,
        name: &str,
        shares: sched_group::Shares,
        latency: Option<Duration>,
        parent: Option<Arc<Group>>,
    ) -> Arc<Group> {
        // Ordering: Relaxed, see `is_used`.
        self.used.store(true, Relaxed);
        let runtime = *self.runtime.get().expect("a handle has bound it");
        self.table.lock().insert(|index| {
            let mut group = Group::new(name, shares, parent, index, false);
            group.latency = latency;
            group.bind(runtime);
            Arc::new(group)
        })
    }

    /// Makes the group for the futures of `at_exit`, and enters that group for the task that runs
    /// the futures.
    fn enter_at_exit(&self) -> Scheduler {
        let shares = sched_group::Shares::new(AT_EXIT_SHARES).expect("it is not 0");
        let group = self.insert("atexit", shares, None, None);
        let entered = group.enter();
        debug_assert!(entered, "nobody else has it");
        Scheduler::in_group(&group)
    }

    /// Removes a group that its destroyer has marked as gone.
    fn remove(&self, group: &Group) {
        let mut table = self.table.lock();
        let removed = table.groups[group.index].take();
        table.spare.push(group.index);
        drop(table);
        self.changed();
        if let Some(parent) = &group.parent {
            parent.leave();
        }
        drop(removed);
    }

    /// The groups that are not destroyed.
    pub(crate) fn all(&self) -> Vec<Arc<Group>> {
        self.table.lock().groups.iter().flatten().cloned().collect()
    }

    pub(crate) fn now(&self) -> u64 {
        sched_group::Clock::now(&self.clock)
    }

    /// Drops the values of `GroupLocal`s. Each drop is user code, and runs in `contain`.
    pub(crate) fn drop_values(&self, contain: impl Fn(Box<dyn FnOnce() + '_>)) {
        for group in self.all() {
            let values = std::mem::take(&mut *group.values.lock());
            for value in values.into_values() {
                contain(Box::new(move || drop(value)));
            }
        }
    }

    /// The most tasks to move to a worker's lists at a time. It takes some microseconds to move
    /// this many.
    const MOST: usize = 512;

    /// Takes a fair share of the groups' injector.
    fn take_share(&self) -> queue_global::List<Node<Scheduler>> {
        let share = self.injector.len() / self.workers.len() + 1;
        self.injector.pop_n(share.min(Self::MOST))
    }
}

#[cfg(all(test, not(selvedge_count)))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle, selvedge_count))))]
mod tests;
