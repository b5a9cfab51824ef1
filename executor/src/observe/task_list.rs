//! The list of live tasks, for reports of stalls and for [`Handle::tasks`].
//!
//! A task is in the list if [`TaskBuilder`](crate::TaskBuilder) has named it, or if the runtime
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
//! 5. The request of a [dump](super::dump) is put into an entry by the thread that has woken the
//!    task, before it queues the task. So the next poll finds the request, and no earlier one does.
//!
//! [`Handle::tasks`]: crate::Handle::tasks
use crate::{
    groups::GroupRef,
    observe::dump::request::Request,
    worker::scheduler::{Scheduler, Task},
};
use coop_budget::WaitsOn;
use std::{
    borrow::Cow,
    mem,
    panic::Location,
    time::{Duration, Instant},
};
use sync_shim::{
    CachePadded,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    sync::{Arc, Mutex},
};
use task_header::{Id, Observer};

/// The listed tasks of a runtime.
pub(crate) struct TaskList {
    shards: Box<[CachePadded<Mutex<Shard>>]>,
    /// Locked by the thread of a dump.
    pub(super) dumps: Mutex<()>,
}

#[derive(Default)]
struct Shard {
    places: Vec<Place>,
    /// The first free place.
    free: Option<usize>,
    used: usize,
}

enum Place {
    /// A place without a task. The field is the next free place.
    Free(Option<usize>),
    /// The place of a task that is about to be made.
    Reserved,
    Used(Arc<Entry>, Id, Observer),
}

/// The data that the list keeps about a task.
pub(crate) struct Entry {
    /// A number that no other task of the process has, for the locks that the task holds.
    number: u32,
    pub(crate) name: Option<Cow<'static, str>>,
    pub(crate) location: &'static Location<'static>,
    group: GroupRef,
    is_polled: AtomicBool,
    polls: AtomicU64,
    made: Instant,
    /// When the last poll began or ended, in nanoseconds since `made`. 0 before the first poll.
    turned: AtomicU64,
    /// The request of a dump, for the next poll.
    request: Mutex<Option<Request>>,
    /// Whether there is a request, or the poll for one goes on.
    is_asked: AtomicBool,
    /// The waits that the last dump has found, and the number of polls then.
    waits: Mutex<Option<Waits>>,
}

/// The waits of a task, which hold until it is polled again.
struct Waits {
    polls: u64,
    /// When the dump ended.
    at: Instant,
    on: Box<[WaitsOn]>,
}

/// A listed task's place, which another task may have by the time of a look.
pub(crate) struct Found {
    pub(crate) entry: Arc<Entry>,
    pub(crate) id: Id,
    /// The state at the look.
    pub(crate) state: task_header::TaskState,
    shard: usize,
    place: usize,
}

/// The state of an entry before a poll, for a poll that does not count.
pub(crate) struct BeforePoll {
    polls: u64,
    turned: u64,
}

/// A task's place in the list, which the task has as metadata (rule 2).
pub(crate) struct Listed {
    entry: Arc<Entry>,
    list: Arc<TaskList>,
    shard: usize,
    place: usize,
}

impl Entry {
    /// Makes the entry of a task with this scheduler. The task has entered the scheduler's group.
    pub(crate) fn new(
        name: Option<Cow<'static, str>>,
        location: &'static Location<'static>,
        scheduler: Scheduler,
    ) -> Self {
        Self {
            number: next_number(),
            name,
            location,
            // SAFETY: the task that has entered the group keeps it in memory.
            group: unsafe { scheduler.group_ref() },
            is_polled: AtomicBool::new(false),
            polls: AtomicU64::new(0),
            made: sync_shim::time::now(),
            turned: AtomicU64::new(0),
            request: Mutex::new(None),
            is_asked: AtomicBool::new(false),
            waits: Mutex::new(None),
        }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Keeps what the task waits for, as a dump has found, until the task has made more polls.
    pub(crate) fn keep_waits(&self, polls: u64, on: Box<[WaitsOn]>) {
        let at = sync_shim::time::now();
        let old = self.waits.lock().replace(Waits { polls, at, on });
        drop(old);
    }

    /// Returns what the last dump has found, if the task was not polled since. The time until a
    /// deadline is the one from now on.
    fn waits_on(&self) -> Vec<WaitsOn> {
        let waits = self.waits.lock();
        // Ordering: Relaxed, as the answer may be out of date anyway.
        let polls = self.polls.load(Relaxed);
        let waits = waits.as_ref().filter(|waits| waits.polls == polls);
        let mut on = waits.map_or_else(Vec::new, |waits| waits.on.to_vec());
        for on in &mut on {
            if let (WaitsOn::Time { left, .. }, Some(waits)) = (on, waits) {
                *left = left.saturating_sub(sync_shim::time::now() - waits.at);
            }
        }
        on
    }

    /// Puts the request of a dump into the entry, for the next poll (rule 5). Returns the request
    /// that was there.
    pub(crate) fn ask(&self, request: Request) -> Option<Request> {
        let mut place = self.request.lock();
        // Ordering: Relaxed; the submission of the task, which follows, makes it visible to the
        // poll.
        self.is_asked.store(true, Relaxed);
        place.replace(request)
    }

    /// Takes the request of a dump that gives it up, if no poll has taken it yet. The task is then
    /// one that waits for a worker.
    pub(crate) fn withdraw(&self) -> Option<Request> {
        let mut place = self.request.lock();
        let request = place.take()?;
        // Ordering: Relaxed, as in `ask`. A poll that misses it finds no request.
        self.is_asked.store(false, Relaxed);
        Some(request)
    }

    /// Takes the request of a dump, for the poll that begins, or for a task that has ended.
    #[inline]
    pub(crate) fn take_request(&self) -> Option<Request> {
        // Ordering: Relaxed, as in `ask`.
        if !self.is_asked.load(Relaxed) {
            return None;
        }
        self.request.lock().take()
    }

    fn group(&self) -> Option<String> {
        self.group.name()
    }

    /// Notes that a poll begins.
    pub(crate) fn begin_poll(&self) {
        // Ordering: Relaxed; the task's runs are ordered, and so are their stores (rule 4).
        self.is_polled.store(true, Relaxed);
        // Ordering: as above.
        let polls = self.polls.load(Relaxed) + 1;
        // Ordering: as above; no other thread writes the count meanwhile.
        self.polls.store(polls, Relaxed);
        self.note_turn();
    }

    /// Returns whether there is a request, or the poll for one goes on.
    pub(crate) fn is_asked(&self) -> bool {
        // Ordering: Relaxed, as the answer may be out of date anyway.
        self.is_asked.load(Relaxed)
    }

    /// Notes that a poll for a dump begins.
    pub(crate) fn begin_dump(&self) -> BeforePoll {
        let before = BeforePoll {
            // Ordering: Relaxed, as in `begin_poll`, here and below.
            polls: self.polls.load(Relaxed),
            turned: self.turned.load(Relaxed),
        };
        self.begin_poll();
        before
    }

    /// Notes that a poll for a dump is over, before the task's run ends. The poll counts only if it
    /// made progress.
    pub(crate) fn end_dump(&self, before: &BeforePoll, has_progressed: bool) {
        // Ordering: Relaxed, as in `begin_poll`, here and below.
        self.is_asked.store(false, Relaxed);
        self.end_poll();
        if !has_progressed {
            // Ordering: as above.
            self.polls.store(before.polls, Relaxed);
            // Ordering: as above.
            self.turned.store(before.turned, Relaxed);
        }
    }

    /// Notes that a poll is over, before the task's run ends.
    pub(crate) fn end_poll(&self) {
        self.note_turn();
        // Ordering: Relaxed, as in `begin_poll`.
        self.is_polled.store(false, Relaxed);
    }

    fn note_turn(&self) {
        let nanos = sync_shim::time::since(self.made).as_nanos();
        // Ordering: Relaxed, as in `begin_poll`.
        self.turned
            .store(u64::try_from(nanos).unwrap_or(u64::MAX), Relaxed);
    }

    /// Returns the time since a poll began or ended last, or since the spawn.
    fn since_turn(&self) -> Duration {
        // Ordering: Relaxed, as the answer may be out of date anyway.
        let turned = Duration::from_nanos(self.turned.load(Relaxed));
        sync_shim::time::since(self.made).saturating_sub(turned)
    }
}

/// Returns the number of a new task: after four billion tasks a number comes again.
fn next_number() -> u32 {
    // An atomic of std, so that models need not explore it.
    static LAST: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    // Ordering: Relaxed, as only the numbers must differ.
    let last = LAST.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    last.wrapping_add(1).max(1)
}

impl TaskList {
    pub(crate) fn new(workers: usize) -> Self {
        let shard = |_| CachePadded::new(Mutex::new(Shard::default()));
        Self {
            shards: (0..=workers).map(shard).collect(),
            dumps: Mutex::new(()),
        }
    }

    /// Adds a task that is about to be made (rule 1). `worker` is the index of the worker whose
    /// thread this is.
    pub(crate) fn add(list: &Arc<Self>, worker: Option<usize>, entry: Entry) -> Listed {
        let shard = worker.unwrap_or(list.shards.len() - 1);
        let entry = Arc::new(entry);
        let place = list.shards[shard].lock().reserve();
        Listed {
            entry,
            list: list.clone(),
            shard,
            place,
        }
    }

    /// Finds the entry of a task, by a search through the whole list.
    pub(crate) fn find(&self, task: u64) -> Option<Arc<Entry>> {
        self.shards.iter().find_map(|shard| {
            let shard = shard.lock();
            shard.places.iter().find_map(|place| match place {
                Place::Used(entry, id, _) if u64::from(*id) == task => Some(entry.clone()),
                _ => None,
            })
        })
    }

    /// Returns the tasks, or the one of this id. Locks one shard after another.
    pub(crate) fn look(&self, only: Option<Id>) -> Vec<Found> {
        let mut seen = Vec::new();
        for (shard, places) in self.shards.iter().enumerate() {
            let places = places.lock();
            if only.is_none() {
                seen.reserve(places.used);
            }
            for (place, content) in places.places.iter().enumerate() {
                if let Place::Used(entry, id, task) = content {
                    if only.is_none_or(|only| only == *id) {
                        seen.push(Found {
                            entry: entry.clone(),
                            id: *id,
                            // SAFETY: the lock keeps the task's metadata from being dropped (rule
                            // 2).
                            state: unsafe { task.state() },
                            shard,
                            place,
                        });
                    }
                }
            }
        }
        seen
    }

    /// Calls `look` with the observer of a task, unless the task is gone. The list is locked
    /// meanwhile, so `look` calls no user code (rule 3), and may use the observer (rule 2).
    pub(crate) fn observe<R>(&self, task: &Found, look: impl FnOnce(Observer) -> R) -> Option<R> {
        match self.shards[task.shard].lock().places.get(task.place)? {
            Place::Used(entry, _, observer) if Arc::ptr_eq(entry, &task.entry) => {
                Some(look(*observer))
            }
            _ => None,
        }
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

    /// Frees a place. Returns the values that the caller drops outside of the lock (rule 3): the
    /// place's old content, and the places of a large shard that is now empty.
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
    pub(crate) fn entry(&self) -> &Arc<Entry> {
        &self.entry
    }

    /// Adds the observer of the task that has this `Listed` as metadata (rule 1).
    pub(crate) fn observe(&self, task: &Task) {
        let place = Place::Used(self.entry.clone(), task.id(), task.observer());
        self.list.shards[self.shard].lock().places[self.place] = place;
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        let released = self.list.shards[self.shard].lock().release(self.place);
        drop(released);
    }
}

mod snapshot;

pub use snapshot::{TaskSnapshot, TaskState};

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
