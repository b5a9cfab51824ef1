//! Threads that push into a runtime which may end while they still notify it.
//!
//! A wake from outside pushes a task and then notifies a worker. In between, the task may run and
//! complete, the workers end, and the runtime be freed. To count a reference for each wake would
//! be two read-modify-writes on a line that all share; a record a thread costs two plain stores.
//!
//! - A record is written by its thread alone: busy before the push, idle after the notification.
//! - The busy store comes before the push, the push before the pop by release and acquire of the queue, the pop before
//!   the completion and that before the last worker's [`wait`](Registry::wait). So the wait sees the record busy, or idle again.
//! - A thread enters its record into the registry before the push, when the task that it holds
//!   still keeps the runtime up.
//! - A thread's cache of its record holds the registry too, so that an address is not mistaken for another's.
use crate::metrics::Counter;
use std::{cell::Cell, ptr::NonNull};
use sync_shim::{
    atomic::{
        AtomicBool,
        Ordering::{Acquire, Relaxed, Release},
    },
    sync::{Arc, Mutex},
    thread,
};

/// The records of one runtime.
pub(crate) struct Registry {
    records: Mutex<Records>,
}

struct Records {
    live: Vec<Arc<Record>>,
    /// What the others have counted.
    schedules: u64,
}

/// One thread's announcements to one runtime.
struct Record {
    /// Whether a push and its notification are under way.
    busy: AtomicBool,
    /// Announcements so far.
    schedules: Counter,
}

sync_shim::thread_local! {
    /// The record that this thread used last, and whose it is. Taken out while it is busy.
    static LAST: Cell<Option<(Arc<Registry>, Arc<Record>)>> = Cell::new(None);
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            records: Mutex::new(Records {
                live: Vec::new(),
                schedules: 0,
            }),
        }
    }

    /// Runs `push`, which pushes a task of the runtime and notifies: announced. The caller holds
    /// that task. No read-modify-write, but for the first time that a thread turns to a runtime.
    ///
    /// # Safety
    /// `registry` is good when this is called. By pointer, as what `push` holds is to be: when it is done the runtime may be
    /// freed, while a reference would have to be good until the end.
    pub(crate) unsafe fn announce(registry: NonNull<Arc<Self>>, push: impl FnOnce()) {
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
        mine.1.schedules.add(1);
        let busy = Busy(Some(mine));
        push();
        drop(busy);
    }

    fn add(&self) -> Arc<Record> {
        let record = Arc::new(Record {
            busy: AtomicBool::new(false),
            schedules: Counter::new(),
        });
        let mut records = self.records.lock();
        let Records { live, schedules } = &mut *records;
        // The others are of threads that are gone, or have turned to another runtime.
        live.retain(|record| {
            let used = Arc::strong_count(record) > 1;
            *schedules += if used { 0 } else { record.schedules.get() };
            used
        });
        live.push(record.clone());
        record
    }

    /// Announcements so far.
    pub(crate) fn schedules(&self) -> u64 {
        let records = self.records.lock();
        let live = records.live.iter().map(|record| record.schedules.get());
        records.schedules + live.sum::<u64>()
    }

    /// Waits until every thread that has pushed a task which is complete by now is done notifying.
    pub(crate) fn wait(&self) {
        let records: Vec<_> = self.records.lock().live.clone();
        for record in records {
            // Ordering: Acquire pairs with the drop of `Busy`: the runtime is freed after it.
            while record.busy.load(Acquire) {
                thread::yield_now();
            }
        }
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
