//! Lets threads notify a scheduler that may end meanwhile.
//!
//! # Actors
//!
//! A *notifier* is a thread that is no worker of the scheduler: it pushes a task, and then notifies
//! a worker. Between the two, the task may run and complete, the workers may end, and the last
//! worker may free the scheduler, which the notifier still uses. A counted reference for each wake
//! would cost two read-modify-writes on a shared line. Here each notifier has a *record*: a wake
//! costs two plain stores, and a third one for a count. The *last worker* waits for the records
//! before it frees the scheduler.
//!
//! # States of a record
//!
//! | state | the notifier | the last worker |
//! |---|---|---|
//! | *idle* | uses nothing of the scheduler | goes on |
//! | *busy* | is between the start of its push and the end of its notification: it *announces* | waits |
//!
//! Only its own thread writes a record.
//!
//! # Why the scheduler is not freed too early
//!
//! 1. A notifier's busy store comes before its push. The push comes before the pop of the task, by
//!    release and acquire of the queue. The pop comes before the completion of the task, and the
//!    completion before the last worker's [wait](Registry::wait_keeping).
//! 2. So the wait finds the record either busy, or idle again after the notification. In the first
//!    case the last worker waits until the record is idle. In both cases it acquires the store that
//!    ends the announcement.
//! 3. A notifier enters its record into the registry before the push, while the task that it holds
//!    still keeps the scheduler alive. So the wait finds the record.
//! 4. A thread caches its last record. The cache holds a reference to the registry, so that a new
//!    registry never has the address of the cached one.
//!
//! # Announcements in announcements
//!
//! A push may run user code (an unparker, the drop of a task), which may push again, and may end a
//! scheduler. So announcements and waits nest.
//!
//! 1. The *outermost* announcement of a thread uses the record in the thread's cache. The record
//!    stays there while it is busy.
//! 2. A nested announcement to the same registry is part of the outermost one, whose record stays
//!    busy for longer. A nested announcement to another registry uses a new record, which is not
//!    cached.
//! 3. A nested wait returns at once: as its own thread's record is busy, two threads could
//!    otherwise wait for each other. It passes the scheduler to the outermost announcement. When
//!    the record of that announcement is idle again, the thread waits, and then drops the
//!    scheduler.
//! 4. So a thread that waits is never busy, and no two threads wait for each other.
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

/// The number of checks of a record with only a yield in between. Most announcements end before
/// the last of these checks.
const YIELDS: u32 = 16;

/// The first sleep between two checks, and the number of times that it doubles.
const SHORTEST: Duration = Duration::from_micros(50);
const DOUBLINGS: u32 = 5;

/// The records of the threads that notify one scheduler.
///
/// A thread that is no worker [announces](Self::announce) a push that may let the scheduler end.
/// The last worker [waits](Self::wait_keeping) before it frees the scheduler.
///
/// ```
/// use std::{collections::VecDeque, ptr::NonNull, sync::Mutex, thread};
/// use sync_shim::sync::Arc;
/// use worker_idle::announce::Registry;
///
/// /// The tasks point to their scheduler, which ends with its last task.
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
/// let registry = Arc::new(Registry::new());
/// let scheduler = Box::new(Scheduler { registry, queue: Mutex::default() });
/// let pointer = Pointer(NonNull::from(&*scheduler));
/// let waker = thread::spawn(move || {
///     let scheduler = pointer.get();
///     // SAFETY: the task that is not pushed yet keeps the scheduler alive.
///     let registry = NonNull::from(unsafe { &(*scheduler.as_ptr()).registry });
///     // SAFETY: as above. The pushed task may run and end the scheduler, but not before this
///     // closure has returned.
///     unsafe {
///         Registry::announce(registry, || {
///             scheduler.as_ref().queue.lock().unwrap().push_back(7);
///             drop(scheduler.as_ref().queue.lock()); // A real push notifies a worker here.
///         })
///     };
/// });
/// while scheduler.queue.lock().unwrap().pop_front().is_none() {
///     thread::yield_now();
/// }
/// let registry = scheduler.registry.clone();
/// Registry::wait_keeping(&registry, move || scheduler); // The scheduler's only task is done.
/// waker.join().unwrap();
/// ```
pub struct Registry {
    records: Mutex<Records>,
}

struct Records {
    live: Vec<Arc<Record>>,
    /// The number of announcements by the records that were removed.
    announced: u64,
}

/// The record of one thread for one scheduler.
struct Record {
    /// Whether the thread is between the start of its push and the end of its notification.
    busy: AtomicBool,
    /// The number of announcements so far.
    announced: AtomicU64,
}

/// The state that a thread caches between its announcements.
struct Mine {
    registry: Arc<Registry>,
    record: Arc<Record>,
    /// The schedulers that ended in the announcement in progress.
    ended: RefCell<Vec<Ended>>,
}

/// A scheduler that ended in an announcement. Its drop waits first, then drops the scheduler.
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
    /// Points to the cache of the thread's last record, or is null. This thread-local has no
    /// destructor, so that the destructors of other thread-locals can use it.
    static LAST: Cell<*const Mine> = const { Cell::new(ptr::null()) };
    static KEPT: Kept = const { Kept(Cell::new(None)) };
}

/// Owns the cache that `LAST` points to, and frees it when the thread ends.
struct Kept(Cell<Option<NonNull<Mine>>>);

impl Kept {
    /// Caches `mine`, if any. Frees the previous cache, whose record is not busy.
    fn keep(&self, mine: Option<NonNull<Mine>>) {
        let at = mine.map_or(ptr::null(), |mine| mine.as_ptr().cast_const());
        // If `LAST` is gone, as when a thread of a model ends, nothing points to the cache.
        let _ = LAST.try_with(|last| last.set(at));
        if let Some(before) = self.0.replace(mine) {
            // SAFETY: `Registry::announce_anew` made the pointer from a box. `LAST` no longer
            // points there.
            drop(unsafe { Box::from_raw(before.as_ptr()) });
        }
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        // This thread-local is dropped inside an announcement only if the process exits there. The
        // announcement still uses the cache, and a wait of this thread must find it. So the cache
        // is kept.
        if self.0.get().is_some() && !is_announcing() {
            self.keep(None);
        }
    }
}

/// Returns this thread's cache, if it has one.
fn last() -> Option<NonNull<Mine>> {
    let last = LAST.try_with(Cell::get).ok()?;
    NonNull::new(last.cast_mut())
}

/// Returns the cache of this thread's outermost announcement, if one is in progress.
fn outermost() -> Option<NonNull<Mine>> {
    last().filter(|mine| {
        // SAFETY: only this thread frees what `LAST` points to, after it has changed `LAST`.
        unsafe { mine.as_ref() }.record.is_busy()
    })
}

/// Returns whether this thread is in an announcement to any registry.
///
/// A thread in an announcement must not wait for another thread, which may wait for the end of the
/// announcement.
pub fn is_announcing() -> bool {
    outermost().is_some()
}

impl Registry {
    /// Creates a registry without records.
    pub fn new() -> Self {
        Self {
            records: Mutex::new(Records {
                live: Vec::new(),
                announced: 0,
            }),
        }
    }

    /// Runs `push`, which pushes a task of the scheduler and notifies a worker, as an announcement.
    ///
    /// The caller holds the task. This costs no read-modify-write if the thread's last announcement
    /// was to the same scheduler, and has ended. Otherwise this may cost two allocations, the lock
    /// of the scheduler's records, and a check of each record.
    ///
    /// # Safety
    /// `registry` must be valid when this is called. `push` must not hold references to the
    /// scheduler: the scheduler may be freed before this returns, and a reference must be valid
    /// until then. For the same reason `registry` is a pointer.
    #[inline]
    pub unsafe fn announce(registry: NonNull<Arc<Self>>, push: impl FnOnce()) {
        let idle = last().filter(|mine| {
            // SAFETY: only this thread frees what `LAST` points to, after it has changed `LAST`.
            let mine = unsafe { mine.as_ref() };
            // SAFETY: `registry` is valid, as the caller ensures: nothing was pushed yet.
            let registry = unsafe { registry.as_ref() };
            Arc::ptr_eq(&mine.registry, registry) && !mine.record.is_busy()
        });
        let Some(mine) = idle else {
            // SAFETY: as above.
            let registry = unsafe { registry.as_ref() };
            return Self::announce_anew(registry.clone(), push);
        };
        // SAFETY: `LAST` points to `mine`, whose record is idle.
        let _busy = unsafe { Busy::begin(mine) };
        push();
    }

    /// Announces where the cached record cannot be used: there is none, it is for another
    /// scheduler, or this thread is already in an announcement.
    #[cold]
    #[inline(never)]
    fn announce_anew(registry: Arc<Self>, push: impl FnOnce()) {
        if let Some(outermost) = outermost() {
            // SAFETY: `LAST` points to this cache, which stays while its record is busy.
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
        // If the thread is ending, the record is cached for this announcement only.
        let once = Kept(Cell::new(None));
        if KEPT.try_with(|kept| kept.keep(Some(mine))).is_err() {
            once.keep(Some(mine));
        }
        // SAFETY: the record is new, and so idle. `LAST` points to `mine`, or `once` keeps `mine`
        // for longer than `_busy`.
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
        // A record without another reference belongs to a thread that ended, or that announced to
        // another scheduler since.
        live.retain(|record| {
            let used = Arc::strong_count(record) > 1;
            *announced += if used { 0 } else { record.announced() };
            used
        });
        live.push(record.clone());
        record
    }

    /// Returns the number of announcements so far.
    pub fn announced(&self) -> u64 {
        let records = self.records.lock();
        let live = records.live.iter().map(|record| record.announced());
        records.announced + live.sum::<u64>()
    }

    /// Waits for every notifier that pushed a task which is complete by now, then drops `keep`.
    ///
    /// As the drop comes after the wait, `keep` may own the scheduler.
    ///
    /// Inside an announcement of the calling thread, to any registry, this does not wait yet, but
    /// calls `keep`, which returns the scheduler, or a reference that keeps the scheduler alive.
    /// When the outermost announcement has ended, the thread waits, and then drops the value that
    /// `keep` returned.
    pub fn wait_keeping<T: 'static>(this: &Arc<Self>, keep: impl FnOnce() -> T) {
        let Some(outermost) = outermost() else {
            this.wait();
            return drop(keep);
        };
        let ended = Ended {
            registry: this.clone(),
            _scheduler: Box::new(keep()),
        };
        // SAFETY: `LAST` points to this cache, which stays while its record is busy.
        unsafe { outermost.as_ref() }.ended.borrow_mut().push(ended);
    }

    /// Waits for the records. The caller is in no announcement.
    ///
    /// Yields the CPU at first, then sleeps at most 1.6 ms between two checks. So a thread with a
    /// real-time priority lets one of a lower priority run.
    fn wait(&self) {
        let records: Vec<_> = self.records.lock().live.clone();
        for record in records {
            let mut looks = 0;
            // Ordering: Acquire pairs with the store of `Record::end`: the scheduler is freed after
            // the notifier's last use of it.
            while record.busy.load(Acquire) {
                back_off(looks);
                looks = looks.saturating_add(1);
            }
        }
    }
}

/// Lets the announcing thread run before the next check of its record.
///
/// A yield alone is not enough, as it lets no thread of a lower priority run. Nothing wakes the
/// waiting thread: to do that, each announcement would need a fence after its last store, and a
/// check for a waiting thread.
fn back_off(looks: u32) {
    if looks < YIELDS || cfg!(any(selvedge_loom, selvedge_shuttle)) {
        thread::yield_now();
    } else {
        sync_shim::thread::sleep(SHORTEST * 2_u32.pow((looks - YIELDS).min(DOUBLINGS)));
    }
}

impl Record {
    /// Returns whether the record is busy. Only its own thread calls this.
    fn is_busy(&self) -> bool {
        // Ordering: Relaxed, because the caller is the only writer.
        self.busy.load(Relaxed)
    }

    /// Counts an announcement.
    fn count(&self) {
        // Ordering: Relaxed, a count with one writer.
        let announced = self.announced.load(Relaxed);
        // Ordering: as above.
        self.announced.store(announced + 1, Relaxed);
    }

    /// Begins an announcement.
    fn begin(&self) {
        // Ordering: Relaxed, the queue's release in the push publishes this store.
        self.busy.store(true, Relaxed);
        self.count();
    }

    /// Ends the announcement.
    fn end(&self) {
        // Ordering: Release pairs with the load in `wait`.
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

/// An announcement with the cached record. Dropping this value ends the announcement.
struct Busy(NonNull<Mine>);

impl Busy {
    /// # Safety
    /// `mine` must be this thread's cache, and its record idle. `LAST` must point to `mine`, or no
    /// code may free `mine` before the result is dropped.
    #[inline]
    unsafe fn begin(mine: NonNull<Mine>) -> Self {
        // SAFETY: `mine` is valid, as the caller ensures.
        unsafe { mine.as_ref() }.record.begin();
        Self(mine)
    }
}

impl Drop for Busy {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the record is busy, so the cache was not freed.
        let mine = unsafe { self.0.as_ref() };
        mine.record.end();
        if !mine.ended.borrow().is_empty() {
            // The drops of the ended schedulers may announce, and so free `mine`. It is not used
            // after the `take`.
            drop(mine.ended.take());
        }
    }
}

/// A nested announcement to another registry. Dropping this value ends the announcement.
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
