//! The list of live tasks, for reports of stalls and for [`Handle::tasks`].
//!
//! A task is in the list if [`task::Builder`](crate::task::Builder) has named it, or if the runtime
//! lists all tasks ([`Builder::list_tasks`](crate::Builder::list_tasks)). Any other task costs
//! nothing.
//!
//! The list has a *shard* for each worker and one for all other threads, each under a lock. A
//! *place* in a shard belongs to one task.
//!
//! 1. A spawn adds the task's entry to the shard of its thread, then makes the task with the entry
//!    as metadata, then adds the task's observer to the place, and only then queues the task.
//! 2. The drop of the metadata frees the place, under the shard's lock. So a thread that has the
//!    lock may use every observer in the shard: a task is freed only after that drop.
//! 3. No user code runs under a lock: entries are dropped outside of it, as an entry may drop the
//!    last reference to a group with its values.
//! 4. The flag for a poll is written by the thread that polls, before the task's run ends. So two
//!    polls of a task write it in order.
use crate::{
    Handle,
    context::with_core,
    core::Core,
    scheduler::{Scheduler, Task},
    shared::{Attached, Shared},
};
use std::{borrow::Cow, fmt, mem, panic::Location, ptr};
use sync_shim::{
    CachePadded,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    sync::{Arc, Mutex},
};
use task_header::{Id, Observer};

/// The listed tasks of a runtime.
pub(crate) struct TaskList(Box<[CachePadded<Mutex<Shard>>]>);

#[derive(Default)]
struct Shard {
    places: Vec<Place>,
    /// The first free place.
    free: Option<usize>,
    used: usize,
}

enum Place {
    /// With the next free place.
    Free(Option<usize>),
    /// Its task is about to be made.
    Reserved,
    Used(Arc<Entry>, Id, Observer),
}

/// The list's knowledge of a task.
pub(crate) struct Entry {
    pub(crate) name: Option<Cow<'static, str>>,
    pub(crate) location: &'static Location<'static>,
    #[cfg(feature = "groups")]
    group: std::sync::Arc<crate::groups::Group>,
    is_polled: AtomicBool,
    polls: AtomicU64,
}

/// A task's place in the list, which the task has as metadata (rule 2).
pub(crate) struct Listed {
    entry: Arc<Entry>,
    list: Arc<TaskList>,
    shard: usize,
    place: usize,
}

impl Entry {
    /// Makes the entry of a task with this scheduler, whose group it has entered.
    pub(crate) fn new(
        name: Option<Cow<'static, str>>,
        location: &'static Location<'static>,
        scheduler: Scheduler,
    ) -> Self {
        #[cfg(not(feature = "groups"))]
        let _ = scheduler;
        Self {
            name,
            location,
            // SAFETY: the task that has entered the group keeps it in memory.
            #[cfg(feature = "groups")]
            group: unsafe { scheduler.counted() },
            is_polled: AtomicBool::new(false),
            polls: AtomicU64::new(0),
        }
    }

    fn group(&self) -> Option<String> {
        #[cfg(feature = "groups")]
        return Some(self.group.name());
        #[cfg(not(feature = "groups"))]
        None
    }

    /// Notes that a poll begins.
    pub(crate) fn begin_poll(&self) {
        // Ordering: Relaxed; the task's runs are ordered, and so are their stores (rule 4).
        self.is_polled.store(true, Relaxed);
        // Ordering: as above.
        let polls = self.polls.load(Relaxed) + 1;
        // Ordering: as above; no other thread writes it meanwhile.
        self.polls.store(polls, Relaxed);
    }

    /// Notes that a poll is over, before the task's run ends.
    pub(crate) fn end_poll(&self) {
        // Ordering: Relaxed, as in `begin_poll`.
        self.is_polled.store(false, Relaxed);
    }
}

impl TaskList {
    pub(crate) fn new(workers: usize) -> Self {
        Self(
            (0..=workers)
                .map(|_| CachePadded::new(Mutex::new(Shard::default())))
                .collect(),
        )
    }

    /// Adds a task that is about to be made (rule 1).
    pub(crate) fn add(shared: &Shared, entry: Entry) -> Listed {
        let list = &shared.tasks;
        let ours = |core: &Core| ptr::eq(&*core.shared, shared).then_some(core.index);
        let shard = with_core(ours).flatten().unwrap_or(list.0.len() - 1);
        let entry = Arc::new(entry);
        let place = list.0[shard].lock().reserve();
        Listed {
            entry,
            list: list.clone(),
            shard,
            place,
        }
    }

    /// Finds the entry of a task. It looks through the whole list.
    #[cfg(feature = "monitor")]
    pub(crate) fn find(&self, task: u64) -> Option<Arc<Entry>> {
        self.0.iter().find_map(|shard| {
            let shard = shard.lock();
            shard.places.iter().find_map(|place| match place {
                Place::Used(entry, id, _) if u64::from(*id) == task => Some(entry.clone()),
                _ => None,
            })
        })
    }

    /// Looks at every task. Locks one shard after another.
    fn look(&self) -> Vec<(Arc<Entry>, Id, task_header::TaskState)> {
        let mut seen = Vec::new();
        for shard in &self.0 {
            let shard = shard.lock();
            seen.reserve(shard.used);
            for place in &shard.places {
                if let Place::Used(entry, id, task) = place {
                    // SAFETY: the lock keeps the task's metadata from being dropped (rule 2).
                    seen.push((entry.clone(), *id, unsafe { task.state() }));
                }
            }
        }
        seen
    }
}

impl Shard {
    fn reserve(&mut self) -> usize {
        self.used += 1;
        let place = Place::Reserved;
        let Some(at) = self.free else {
            self.places.push(place);
            return self.places.len() - 1;
        };
        if let Place::Free(next) = mem::replace(&mut self.places[at], place) {
            self.free = next;
        }
        at
    }

    /// Frees a place, and returns what was there, for a drop outside of the lock (rule 3).
    fn release(&mut self, at: usize) -> (Place, Vec<Place>) {
        self.used -= 1;
        let released = mem::replace(&mut self.places[at], Place::Free(self.free));
        self.free = Some(at);
        // An empty shard keeps little memory.
        let mut unused = Vec::new();
        if self.used == 0 && self.places.len() > 64 {
            unused = mem::take(&mut self.places);
            self.free = None;
        }
        (released, unused)
    }
}

impl Listed {
    /// Returns the place of a task that is in the list.
    pub(crate) fn of(task: &Task) -> Option<&Self> {
        task.metadata::<Attached>()?.listed.as_ref()
    }

    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Adds the observer of the task that has this as metadata (rule 1).
    pub(crate) fn observe(&self, task: &Task) {
        let place = Place::Used(self.entry.clone(), task.id(), task.observer());
        self.list.0[self.shard].lock().places[self.place] = place;
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let released = self.list.0[self.shard].lock().release(self.place);
        drop(released);
    }
}

/// The state of a task, at one look of [`Handle::tasks`].
///
/// ```
/// use selvedge::TaskState;
///
/// let runtime = selvedge::Builder::new().list_tasks(true).build()?;
/// let task = runtime.spawn(std::future::pending::<()>());
/// let waits = || runtime.handle().tasks().unwrap()[0].state == TaskState::Waiting;
/// while !waits() {
///     std::thread::yield_now();
/// }
/// # drop(task);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TaskState {
    /// It waits for a wake.
    Waiting,
    /// It waits for a worker: it was spawned, woken or aborted, or has yielded.
    Runnable,
    /// A thread polls it.
    Executing,
}

impl fmt::Display for TaskState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Waiting => "waiting",
            Self::Runnable => "runnable",
            Self::Executing => "executing",
        })
    }
}

/// A task, at one look of [`Handle::tasks`]. `Display` writes one line.
///
/// ```
/// let runtime = selvedge::Builder::new().list_tasks(true).build()?;
/// let task = selvedge::task::Builder::new()
///     .name("reader")
///     .spawn_on(std::future::pending::<()>(), runtime.handle());
/// let listed = &runtime.handle().tasks().unwrap()[0];
/// assert_eq!((listed.id, listed.name.as_deref()), (task.id(), Some("reader")));
/// assert_eq!(listed.location.file(), file!());
/// assert!(listed.to_string().contains("\"reader\""));
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct TaskSnapshot {
    /// The task's id, which another task may have once this one is freed.
    pub id: Id,
    /// The name, if [`task::Builder`](crate::task::Builder) gave it one.
    pub name: Option<Cow<'static, str>>,
    /// The place in the source where the task was spawned.
    pub location: &'static Location<'static>,
    /// The name of its scheduling group. None without the feature `groups`.
    pub group: Option<String>,
    /// Whether it waits, is queued or is polled.
    pub state: TaskState,
    /// How often it was polled, with a poll that has begun.
    pub polls: u64,
}

impl fmt::Display for TaskSnapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task {}", self.id)?;
        if let Some(name) = &self.name {
            write!(f, " {name:?}")?;
        }
        if let Some(group) = &self.group {
            write!(f, " of {group}")?;
        }
        let Self { state, polls, .. } = self;
        write!(f, ", {state} after {polls} polls, from {}", self.location)
    }
}

impl Handle {
    /// Lists the tasks that have not ended, in no order, if the runtime was built to
    /// [list tasks](crate::Builder::list_tasks). Otherwise returns `None`.
    ///
    /// It looks at the tasks one after another while they go on. So a state may be out of date by
    /// the time this returns, and a task that is spawned or ends meanwhile may be missing. It takes
    /// a lock for each worker, which spawns and the ends of tasks take, too, and holds each for a
    /// few nanoseconds a task.
    ///
    /// Closures of [`spawn_blocking`](crate::spawn_blocking), futures in `block_on` and the tasks
    /// of a [`LocalSet`](crate::LocalSet) are not in the list.
    ///
    /// ```
    /// use selvedge::TaskState;
    /// use tokio::sync::oneshot;
    ///
    /// let runtime = selvedge::Builder::new().workers(1).list_tasks(true).build()?;
    /// let (answer, waits) = oneshot::channel::<u32>();
    /// let task = runtime.spawn(waits);
    /// let other = runtime.spawn(async {
    ///     let tasks = selvedge::Handle::current().tasks().unwrap();
    ///     let this = tasks.iter().find(|task| task.id == selvedge::task::id()).unwrap();
    ///     (tasks.len(), this.state)
    /// });
    /// assert_eq!(runtime.block_on(other).unwrap(), (2, TaskState::Executing));
    /// answer.send(42).unwrap();
    /// assert_eq!(runtime.block_on(task).unwrap(), Ok(42));
    /// assert!(runtime.handle().tasks().unwrap().is_empty());
    ///
    /// assert!(selvedge::Runtime::new()?.handle().tasks().is_none());
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn tasks(&self) -> Option<Vec<TaskSnapshot>> {
        let shared = self.shared();
        let look = || shared.tasks.look();
        let seen = shared.settings.lists_tasks.then(look)?;
        let snapshots = seen.into_iter().filter_map(|(entry, id, state)| {
            // Ordering: Relaxed, a look.
            let is_polled = entry.is_polled.load(Relaxed);
            let state = match state {
                task_header::TaskState::Complete => return None,
                _ if is_polled => TaskState::Executing,
                task_header::TaskState::Active => TaskState::Runnable,
                task_header::TaskState::Waiting => TaskState::Waiting,
            };
            Some(TaskSnapshot {
                id,
                name: entry.name.clone(),
                location: entry.location,
                group: entry.group(),
                state,
                // Ordering: Relaxed, a count.
                polls: entry.polls.load(Relaxed),
            })
        });
        Some(snapshots.collect())
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
