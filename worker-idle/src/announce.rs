//! Threads that push into a scheduler which may end while they still notify it.
//!
//! A wake from outside pushes a task and then notifies a worker. In between, the task may run and
//! complete, the workers end, and the scheduler be freed. To count a reference for each wake would
//! be two read-modify-writes on a line that all share; a record a thread costs two plain stores.
//!
//! - A record is written by its thread alone: busy before the push, idle after the notification.
//! - The busy store comes before the push, the push before the pop by release and acquire of the queue, the pop before
//!   the completion and that before the last worker's [`wait`](Registry::wait_keeping). So the wait sees the record busy, or idle again.
//! - A thread enters its record into the registry before the push, when the task that it holds
//!   still keeps the scheduler up.
//! - A thread's cache of its record holds the registry too, so that an address is not mistaken for another's.
//!
//! A push may run code of users (an unparker, the drop of a task), which may push again, and may end
//! a scheduler. So announcements and waits nest in announcements of the same thread:
//!
//! - The *outermost* announcement of a thread has the record in the thread's cache. It stays there
//!   while it is busy.
//! - A nested announcement to the same registry is part of the outermost one, whose record is busy
//!   for longer. One to another registry has a record of its own, for this once.
//! - A nested wait does not wait: its own thread's record would stay busy, and two threads would
//!   wait for each other. The outermost announcement takes the scheduler over. When its own record
//!   is idle it waits, and drops the scheduler after that. So a thread that waits is never busy, and
//!   no two threads wait for each other.
use std::{
    any::Any,
    cell::{Cell, RefCell},
    fmt,
    ptr::{self, NonNull},
    time::Duration,
};
use sync_shim::{
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    sync::{Arc, Mutex},
    thread,
};

/// Looks at a record with a yield in between: most announcements are over by then.
const YIELDS: u32 = 16;

/// The first sleep between two looks. The next ones double, so often.
const SHORTEST: Duration = Duration::from_micros(50);
const DOUBLINGS: u32 = 5;

/// The records of one scheduler.
///
/// Its last worker [waits](Self::wait_keeping) before the scheduler is freed; any other thread [announces](Self::announce) a push that may let the scheduler end.
///
/// ```
/// use std::{collections::VecDeque, ptr::NonNull, sync::Mutex, thread};
/// use sync_shim::sync::Arc;
/// use worker_idle::announce::Registry;
///
/// /// What a task points to. It ends with its last task.
/// struct Scheduler {
///     registry: Arc<Registry>,
///     queue: Mutex<VecDeque<u32>>,
/// }
///
/// struct Pointer(NonNull<Scheduler>);
/// unsafe impl Send for Pointer {}
///
/// impl Pointer {
///     fn get(self) -> NonNull<Scheduler> {
///         self.0
///     }
/// }
///
/// let scheduler = Box::new(Scheduler { registry: Arc::new(Registry::new()), queue: Mutex::default() });
/// let pointer = Pointer(NonNull::from(&*scheduler));
/// let waker = thread::spawn(move || {
///     let scheduler = pointer.get();
///     // SAFETY: the task that is not pushed yet keeps the scheduler.
///     let registry = NonNull::from(unsafe { &(*scheduler.as_ptr()).registry });
///     // SAFETY: as above; and what is pushed may run, and the scheduler end, but not before this closure is done.
///     unsafe {
///         Registry::announce(registry, || {
///             scheduler.as_ref().queue.lock().unwrap().push_back(7);
///             drop(scheduler.as_ref().queue.lock()); // Here it would notify a worker.
///         })
///     };
/// });
/// while scheduler.queue.lock().unwrap().pop_front().is_none() {
///     thread::yield_now();
/// }
/// let registry = scheduler.registry.clone();
/// Registry::wait_keeping(&registry, move || scheduler); // The task is done: there is no other.
/// waker.join().unwrap();
/// ```
pub struct Registry {
    records: Mutex<Records>,
}

struct Records {
    live: Vec<Arc<Record>>,
    /// What the others have counted.
    announced: u64,
}

/// One thread's announcements to one scheduler.
struct Record {
    /// Whether a push and its notification are under way.
    busy: AtomicBool,
    /// Announcements so far.
    announced: AtomicU64,
}

/// What a thread keeps from one announcement to the next.
struct Mine {
    registry: Arc<Registry>,
    record: Arc<Record>,
    /// The schedulers that ended in the announcement that is under way.
    ended: RefCell<Vec<Ended>>,
}

/// A scheduler that is dropped after a wait.
struct Ended {
    registry: Arc<Registry>,
    _scheduler: Box<dyn Any>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.registry.wait();
    }
}

sync_shim::thread_local! {
    /// The record that this thread used last, or null. Without a destructor, so that it is there in those of others.
    static LAST: Cell<*const Mine> = const { Cell::new(ptr::null()) };
    static KEPT: Kept = const { Kept(Cell::new(None)) };
}

/// Frees what `LAST` points to when the thread ends.
struct Kept(Cell<Option<NonNull<Mine>>>);

impl Kept {
    /// Keeps `mine`, if any, in place of what was kept, which is not busy.
    fn keep(&self, mine: Option<NonNull<Mine>>) {
        let at = mine.map_or(ptr::null(), |mine| mine.as_ptr().cast_const());
        // Without it, in a model's thread that ends, nothing points there.
        let _ = LAST.try_with(|last| last.set(at));
        if let Some(before) = self.0.replace(mine) {
            // SAFETY: made from a box by `Registry::announce_anew`, and kept nowhere else by now.
            drop(unsafe { Box::from_raw(before.as_ptr()) });
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // In an announcement, which has exited the process, the record stays: its frame names it for
        // good, and a wait of this thread is to find it.
        if self.0.get().is_some() && !is_announcing() {
            self.keep(None);
        }
    }
}

/// What this thread used last.
fn last() -> Option<NonNull<Mine>> {
    let last = LAST.try_with(Cell::get).ok()?;
    NonNull::new(last.cast_mut())
}

/// This thread's outermost announcement, if one is under way.
fn outermost() -> Option<NonNull<Mine>> {
    last().filter(|mine| {
        // SAFETY: what `LAST` points to is freed by this thread alone, after it has set `LAST`.
        unsafe { mine.as_ref() }.record.is_busy()
    })
}

/// Whether this thread is in an announcement, to whatever registry. A wait there for another thread
/// may last for ever, as that thread may wait for the announcement.
pub fn is_announcing() -> bool {
    outermost().is_some()
}

impl Registry {
    /// Without records.
    pub fn new() -> Self {
        Self {
            records: Mutex::new(Records {
                live: Vec::new(),
                announced: 0,
            }),
        }
    }

    /// Runs `push`, which pushes a task of the scheduler and notifies: announced. The caller holds
    /// that task. No read-modify-write, but for the first time that a thread turns to a scheduler.
    ///
    /// A thread keeps the record of the scheduler that it turned to last. One that turns from one to another each time pays each time: an allocation, the lock of the
    /// scheduler's records, and a look at each of those.
    ///
    /// # Safety
    /// `registry` is good when this is called. By pointer, as what `push` holds is to be: when it is done the scheduler may be
    /// freed, while a reference would have to be good until the end.
    #[inline]
    pub unsafe fn announce(registry: NonNull<Arc<Self>>, push: impl FnOnce()) {
        let idle = last().filter(|mine| {
            // SAFETY: what `LAST` points to is freed by this thread alone, after it has set `LAST`.
            let mine = unsafe { mine.as_ref() };
            // SAFETY: the caller's; nothing was pushed yet.
            let registry = unsafe { registry.as_ref() };
            Arc::ptr_eq(&mine.registry, registry) && !mine.record.is_busy()
        });
        let Some(mine) = idle else {
            // SAFETY: as above.
            let registry = unsafe { registry.as_ref() };
            return Self::announce_anew(registry.clone(), push);
        };
        // SAFETY: `LAST` points to it, and its record is idle.
        let _busy = unsafe { Busy::begin(mine) };
        push();
    }

    /// By a thread that has turned to this registry, or is in an announcement already.
    #[cold]
    #[inline(never)]
    fn announce_anew(registry: Arc<Self>, push: impl FnOnce()) {
        if let Some(outermost) = outermost() {
            // SAFETY: as `LAST` points to it; it stays there while it is busy.
            let mine = unsafe { outermost.as_ref() };
            if Arc::ptr_eq(&mine.registry, &registry) {
                mine.record.count();
                return push();
            }
            let _nested = Nested::begin(registry.add());
            return push();
        }
        let record = registry.add();
        let mine = NonNull::from(Box::leak(Box::new(Mine {
            registry,
            record,
            ended: RefCell::default(),
        })));
        // A thread that is ending keeps none for longer than this announcement.
        let once = Kept(Cell::new(None));
        if KEPT.try_with(|kept| kept.keep(Some(mine))).is_err() {
            once.keep(Some(mine));
        }
        // SAFETY: `LAST` points to it, if to anything, and its record is new.
        let _busy = unsafe { Busy::begin(mine) };
        push();
    }

    fn add(&self) -> Arc<Record> {
        let record = Arc::new(Record {
            busy: AtomicBool::new(false),
            announced: AtomicU64::new(0),
        });
        let mut records = self.records.lock();
        let Records { live, announced } = &mut *records;
        // The others are of threads that are gone, or have turned to another scheduler.
        live.retain(|record| {
            let used = Arc::strong_count(record) > 1;
            *announced += if used { 0 } else { record.announced() };
            used
        });
        live.push(record.clone());
        record
    }

    /// Announcements so far.
    pub fn announced(&self) -> u64 {
        let records = self.records.lock();
        let live = records.live.iter().map(|record| record.announced());
        records.announced + live.sum::<u64>()
    }

    /// Waits until every thread that has pushed a task which is complete by now is done notifying,
    /// and drops `keep` after that, so that it may own the scheduler.
    ///
    /// In an announcement of its own, to whatever registry, a thread does not wait. It calls `keep`,
    /// and the outermost announcement drops what that gives when it is done and has waited: the scheduler, or a reference
    /// that keeps it.
    pub fn wait_keeping<T: 'static>(this: &Arc<Self>, keep: impl FnOnce() -> T) {
        let Some(outermost) = outermost() else {
            this.wait();
            return drop(keep);
        };
        let ended = Ended {
            registry: this.clone(),
            _scheduler: Box::new(keep()),
        };
        // SAFETY: as `LAST` points to it; it stays there while it is busy.
        unsafe { outermost.as_ref() }.ended.borrow_mut().push(ended);
    }

    /// The wait, by a thread that is in no announcement.
    ///
    /// Yields the processor at first, then sleeps between its looks, at most 1.6 ms each: so a
    /// thread of a real-time priority lets one of a lower priority run.
    fn wait(&self) {
        let records: Vec<_> = self.records.lock().live.clone();
        for record in records {
            let mut looks = 0;
            // Ordering: Acquire pairs with the drop of `Busy`: the scheduler is freed after it.
            while record.busy.load(Acquire) {
                back_off(looks);
                looks = looks.saturating_add(1);
            }
        }
    }
}

/// Lets the announcing thread run, before the next look at its record.
///
/// A yield is not enough: it lets no thread of a lower priority run. Nothing wakes the waiting
/// thread: for that, an announcing thread would have to fence after its store and look for it, each
/// time.
fn back_off(looks: u32) {
    if looks < YIELDS || cfg!(any(selvedge_loom, selvedge_shuttle)) {
        thread::yield_now();
    } else {
        std::thread::sleep(SHORTEST * 2_u32.pow((looks - YIELDS).min(DOUBLINGS)));
    }
}

impl Record {
    /// Asked by its thread.
    fn is_busy(&self) -> bool {
        // Ordering: Relaxed, its only writer asks.
        self.busy.load(Relaxed)
    }

    /// Counts an announcement.
    fn count(&self) {
        // Ordering: Relaxed, a count by its only writer.
        let announced = self.announced.load(Relaxed);
        // Ordering: as above.
        self.announced.store(announced + 1, Relaxed);
    }

    /// Begins an announcement.
    fn begin(&self) {
        // Ordering: Relaxed, the push publishes it.
        self.busy.store(true, Relaxed);
        self.count();
    }

    /// Ends it.
    fn end(&self) {
        // Ordering: Release pairs with `wait`.
        self.busy.store(false, Release);
    }

    fn announced(&self) -> u64 {
        // Ordering: Relaxed, a snapshot.
        self.announced.load(Relaxed)
    }
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry")
            .field("announced", &self.announced())
            .finish()
    }
}

/// The thread's own record in use.
struct Busy(NonNull<Mine>);

impl Busy {
    /// # Safety
    /// `mine` is this thread's, and idle. `LAST` points to it, or nobody frees it before this is dropped.
    #[inline]
    unsafe fn begin(mine: NonNull<Mine>) -> Self {
        // SAFETY: the caller's.
        unsafe { mine.as_ref() }.record.begin();
        Self(mine)
    }
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: busy, and so not freed.
        let mine = unsafe { self.0.as_ref() };
        mine.record.end();
        if !mine.ended.borrow().is_empty() {
            // What is dropped may announce, and so free `mine`: it is used no more.
            drop(mine.ended.take());
        }
    }
}

/// A record of a nested announcement in use.
struct Nested(Arc<Record>);

impl Nested {
    fn begin(record: Arc<Record>) -> Self {
        record.begin();
        Self(record)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        self.0.end();
    }
}

#[cfg(test)]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
