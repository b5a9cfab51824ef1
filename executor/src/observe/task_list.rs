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
//!    A [listed future](super::listed_future) is woken afterwards: any poll may find its request.
//!
//! [`Handle::tasks`]: crate::Handle::tasks
use crate::{groups::GroupRef, observe::dump::request::Request, worker::scheduler::Task};
use coop_budget::WaitsOn;
use std::{
    borrow::Cow,
    mem,
    panic::Location,
    task::Waker,
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
    /// Whether there is a dump.
    is_dumping: AtomicBool,
}

/// A dump in progress.
pub(super) struct Dumping<'a>(&'a TaskList);

impl Drop for Dumping<'_> {
    fn drop(&mut self) {
        // Ordering: Relaxed, as the polls that a dump causes may count.
        self.0.is_dumping.store(false, Relaxed);
    }
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
    Used(Arc<Entry>, Id, Subject),
}

/// How the list looks at a task, and wakes it.
pub(crate) enum Subject {
    Task(Observer),
    Future(Arc<WaitingFuture>),
}

/// A [listed future](super::listed_future).
pub(crate) struct WaitingFuture {
    /// The waker of the last poll. `None` before the first poll, and from the wake for a dump until
    /// the next poll: then the future is about to be polled.
    waker: Mutex<Option<Waker>>,
    is_block_on: bool,
}

impl WaitingFuture {
    pub(crate) fn new(is_block_on: bool) -> Self {
        Self {
            waker: Mutex::new(None),
            is_block_on,
        }
    }

    /// Keeps the waker of a poll that begins. Runs no user code under the lock.
    pub(crate) fn keep(&self, waker: &Waker) {
        let is_kept = |kept: &Option<Waker>| kept.as_ref().is_some_and(|old| old.will_wake(waker));
        if !is_kept(&self.waker.lock()) {
            let waker = waker.clone();
            let old = self.waker.lock().replace(waker);
            drop(old);
        }
    }

    fn may_be_woken(&self) -> bool {
        self.waker.lock().is_some()
    }

    /// Wakes the future by the waker of its last poll. A panic of that waker is no panic of the
    /// dump's.
    fn wake(&self) {
        let waker = self.waker.lock().take();
        if let Some(waker) = waker {
            sync_shim::panics::contain(|| waker.wake());
        }
    }
}

/// A task that is woken for a dump. The drop queues it, or wakes it.
pub(crate) enum Woken {
    Task(#[expect(dead_code, reason = "held for its drop")] task_header::Wake),
    Future(Arc<WaitingFuture>),
}

impl Drop for Woken {
    fn drop(&mut self) {
        if let Self::Future(future) = self {
            future.wake();
        }
    }
}

impl Subject {
    /// Returns the task's state.
    ///
    /// # Safety
    /// The subject is in a shard, which is locked.
    unsafe fn state(&self) -> task_header::TaskState {
        match self {
            // SAFETY: the lock keeps the task's metadata from being dropped (rule 2).
            Self::Task(task) => unsafe { task.state() },
            // Its poll is noted in its entry. Nobody knows whether another waker has woken it.
            Self::Future(future) if future.may_be_woken() => task_header::TaskState::Waiting,
            Self::Future(_) => task_header::TaskState::Active,
        }
    }

    /// Wakes the task for a dump, if it waits.
    ///
    /// # Safety
    /// As for `state`.
    unsafe fn wake(&self, entry: &Entry) -> Option<Woken> {
        match self {
            // SAFETY: as in `state`.
            Self::Task(task) => unsafe { task.wake() }.map(Woken::Task),
            // Ordering: Relaxed. A poll that has begun meanwhile leaves the request to the next
            // one, for which the drop wakes the future.
            Self::Future(future) => {
                let may_wake = !entry.is_polled.load(Relaxed) && future.may_be_woken();
                may_wake.then(|| Woken::Future(future.clone()))
            }
        }
    }
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
    /// Whether it is a listed future.
    pub(crate) is_future: bool,
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
    /// Makes the entry of a task of this group.
    pub(crate) fn new(
        name: Option<Cow<'static, str>>,
        location: &'static Location<'static>,
        group: GroupRef,
    ) -> Self {
        Self {
            number: next_number(),
            name,
            location,
            group,
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
    /// made progress, or is the first one.
    pub(crate) fn end_dump(&self, before: &BeforePoll, has_progressed: bool) {
        let request = self.request.lock();
        // Ordering: Relaxed, as in `begin_poll`, here and below. A later dump may have asked.
        self.is_asked.store(request.is_some(), Relaxed);
        drop(request);
        self.end_poll();
        if !has_progressed && before.polls > 0 {
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
            is_dumping: AtomicBool::new(false),
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

    /// Returns the tasks, or the one of this id. Locks one shard after another. Leaves out the
    /// future of a `block_on` that has the number `caller`: it is the one that looks.
    pub(crate) fn look(&self, only: Option<Id>, caller: Option<u32>) -> Vec<Found> {
        let mut seen = Vec::new();
        for (shard, places) in self.shards.iter().enumerate() {
            let places = places.lock();
            if only.is_none() {
                seen.reserve(places.used);
            }
            for (place, content) in places.places.iter().enumerate() {
                if let Place::Used(entry, id, subject) = content {
                    let is_caller = caller == Some(entry.number)
                        && matches!(subject, Subject::Future(future) if future.is_block_on);
                    if only.is_none_or(|only| only == *id) && !is_caller {
                        seen.push(Found {
                            entry: entry.clone(),
                            id: *id,
                            // SAFETY: the shard is locked.
                            state: unsafe { subject.state() },
                            is_future: matches!(subject, Subject::Future(_)),
                            shard,
                            place,
                        });
                    }
                }
            }
        }
        seen
    }

    pub(super) fn begin_dump(&self) -> Dumping<'_> {
        // Ordering: Relaxed, as in the drop.
        self.is_dumping.store(true, Relaxed);
        Dumping(self)
    }

    /// Returns a task's state, unless the task is gone.
    pub(crate) fn state_of(&self, task: &Found) -> Option<task_header::TaskState> {
        // SAFETY: the shard is locked.
        self.observe(task, |subject| unsafe { subject.state() })
    }

    /// Wakes a task for a dump, if `may_wake` and if it waits. Returns its state, unless the task
    /// is gone.
    pub(crate) fn wake(
        &self,
        task: &Found,
        may_wake: bool,
    ) -> Option<(task_header::TaskState, Option<Woken>)> {
        self.observe(task, |subject| {
            // SAFETY: the shard is locked.
            let woken = may_wake
                .then(|| unsafe { subject.wake(&task.entry) })
                .flatten();
            // SAFETY: as above.
            (unsafe { subject.state() }, woken)
        })
    }

    /// Calls `look` with a task's subject, unless the task is gone. The shard is locked meanwhile,
    /// so `look` calls no user code (rule 3).
    fn observe<R>(&self, task: &Found, look: impl FnOnce(&Subject) -> R) -> Option<R> {
        match self.shards[task.shard].lock().places.get(task.place)? {
            Place::Used(entry, _, subject) if Arc::ptr_eq(entry, &task.entry) => {
                Some(look(subject))
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

    /// Returns whether there is a dump of the runtime.
    pub(crate) fn is_dumping(&self) -> bool {
        // Ordering: Relaxed, as in the drop of `Dumping`.
        self.list.is_dumping.load(Relaxed)
    }

    /// Adds the observer of the task that has this `Listed` as metadata (rule 1).
    pub(crate) fn observe(&self, task: &Task) {
        self.show(task.id(), Subject::Task(task.observer()));
    }

    /// Fills the place. The subject of a task is that of the one that has this `Listed` as
    /// metadata.
    pub(crate) fn show(&self, id: Id, subject: Subject) {
        let place = Place::Used(self.entry.clone(), id, subject);
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
