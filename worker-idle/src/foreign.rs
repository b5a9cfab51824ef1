//! Threads that push into a scheduler which may end while they still notify it.
//!
//! A wake from outside pushes a task and then notifies a worker. In between, the task may run and
//! complete, the workers end, and the scheduler be freed. To count a reference for each wake would
//! be two read-modify-writes on a line that all share; a record a thread costs two plain stores.
//!
//! - A record is written by its thread alone: busy before the push, idle after the notification.
//! - The busy store comes before the push, the push before the pop by release and acquire of the queue, the pop before
//!   the completion and that before the last worker's [`wait`](Registry::wait). So the wait sees the record busy, or idle again.
//! - A thread enters its record into the registry before the push, when the task that it holds
//!   still keeps the scheduler up.
//! - A thread's cache of its record holds the registry too, so that an address is not mistaken for another's.
use std::{cell::Cell, fmt, ptr::NonNull};
use sync_shim::{
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{Acquire, Relaxed, Release},
    },
    sync::{Arc, Mutex},
    thread,
};

/// The records of one scheduler.
///
/// Its last worker [waits](Self::wait) before the scheduler is freed; any other thread [announces](Self::announce) a push that may let the scheduler end.
///
/// ```
/// use std::{collections::VecDeque, ptr::NonNull, sync::Mutex, thread};
/// use sync_shim::sync::Arc;
/// use worker_idle::foreign::Registry;
///
/// /// What a task points to. It ends with its last task.
/// struct Scheduler {
///     foreign: Arc<Registry>,
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
/// let scheduler = Box::new(Scheduler { foreign: Arc::new(Registry::new()), queue: Mutex::default() });
/// let pointer = Pointer(NonNull::from(&*scheduler));
/// let waker = thread::spawn(move || {
///     let scheduler = pointer.get();
///     // SAFETY: the task that is not pushed yet keeps the scheduler.
///     let foreign = NonNull::from(unsafe { &(*scheduler.as_ptr()).foreign });
///     // SAFETY: as above; and what is pushed may run, and the scheduler end, but not before this closure is done.
///     unsafe {
///         Registry::announce(foreign, || {
///             scheduler.as_ref().queue.lock().unwrap().push_back(7);
///             drop(scheduler.as_ref().queue.lock()); // Here it would notify a worker.
///         })
///     };
/// });
/// while scheduler.queue.lock().unwrap().pop_front().is_none() {
///     thread::yield_now();
/// }
/// scheduler.foreign.wait(); // The task is done: there is no other.
/// drop(scheduler);
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

sync_shim::thread_local! {
    /// The record that this thread used last, and whose it is. Taken out while it is busy.
    static LAST: Cell<Option<(Arc<Registry>, Arc<Record>)>> = Cell::new(None);
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
        // In a thread whose locals are gone already, the record serves once; inside another
        // announcement (an unparker that wakes tasks) too.
        let last = LAST.try_with(Cell::take).ok().flatten();
        let mine = {
            // SAFETY: the caller's; nothing was pushed yet.
            let registry = unsafe { registry.as_ref() };
            match last {
                Some(mine) if Arc::ptr_eq(&mine.0, registry) => mine,
                _ => (registry.clone(), registry.add()),
            }
        };
        // Ordering: Relaxed, the push publishes it.
        mine.1.busy.store(true, Relaxed);
        // Ordering: Relaxed, a count by its only writer.
        let announced = mine.1.announced.load(Relaxed);
        // Ordering: as above.
        mine.1.announced.store(announced + 1, Relaxed);
        let busy = Busy(Some(mine));
        push();
        drop(busy);
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

    /// Waits until every thread that has pushed a task which is complete by now is done notifying.
    pub fn wait(&self) {
        let records: Vec<_> = self.records.lock().live.clone();
        for record in records {
            // Ordering: Acquire pairs with the drop of `Busy`: the scheduler is freed after it.
            while record.busy.load(Acquire) {
                thread::yield_now();
            }
        }
    }
}

impl Record {
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

/// A record in use.
struct Busy(Option<(Arc<Registry>, Arc<Record>)>);

impl Drop for Busy {
    fn drop(&mut self) {
        let Some(mine) = self.0.take() else { return };
        // Ordering: Release pairs with `wait`.
        mine.1.busy.store(false, Release);
        // A thread that is ending keeps none.
        let _ = LAST.try_with(|last| last.set(Some(mine)));
    }
}

#[cfg(test)]
mod models;
