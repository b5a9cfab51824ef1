//! The table of names: a lookup takes no lock, a change takes one.
//!
//! The table is an array of *buckets*. A bucket is a list that never changes: a thread that changes
//! a name puts a new list in the place of the old one. The old list is freed when no lookup can
//! read it any more, by epochs ([`crossbeam_epoch`]). So a lookup writes only to memory of its own
//! thread, except for one pin in 128 (rule 5). When there are more names than buckets, a table of
//! twice as many takes the place of the whole table, in the same way.
//!
//! | field | meaning | written by |
//! |---|---|---|
//! | `table` | the buckets | the thread that has the lock |
//! | `buckets[n]` | the names whose hash ends in `n`, or null | the thread that has the lock |
//! | `len` | the number of names; its lock is the lock of the table | the thread that has the lock |
//!
//! 1. A thread that changes a name has the lock, so there is one such thread at a time. It has read
//!    every pointer that it replaces under that lock.
//! 2. A new list or table is complete before its pointer is published, with Release. A lookup reads
//!    the pointers with Acquire.
//! 3. A pointer that was replaced is handed to the epochs once, after the exchange that replaced
//!    it. Threads that read the pointer before have pinned the epoch, and the memory stays until
//!    they unpin it.
//! 4. A lookup that began with an old table may miss later changes. It answers as a lookup of the
//!    moment when the new table was published, which is within its own time.
//! 5. A thread pins the epoch before it takes the lock, since one pin in 128 may run what any crate
//!    of the program has deferred to a later epoch. This may be a user's code that changes names.
use crossbeam_epoch::{self as epoch, Atomic, Guard, Owned, Shared};
use std::{
    hash::BuildHasher,
    sync::{
        Arc,
        atomic::Ordering::{Acquire, Relaxed, Release},
    },
};
use sync_shim::sync::{Mutex, MutexGuard};

/// The hash of a model must be the same in each execution.
#[cfg(selvedge_loom)]
type State = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;
#[cfg(not(selvedge_loom))]
type State = std::hash::RandomState;

/// The number of buckets of a new table. A model fills them with few names.
const BUCKETS: usize = if cfg!(selvedge_loom) { 1 } else { 16 };

type Bucket<V> = Vec<(Arc<str>, V)>;

/// A table from names to values, which are pids but in a model.
pub(crate) struct NameTable<V> {
    len: Mutex<usize>,
    table: Atomic<Table<V>>,
    state: State,
}

struct Table<V> {
    /// A power of two of them.
    buckets: Box<[Atomic<Bucket<V>>]>,
}

/// The right to change the names.
pub(crate) struct Names<'a, V> {
    names: &'a NameTable<V>,
    /// Dropped before `guard`, so that the lock is held for less time.
    len: MutexGuard<'a, usize>,
    /// Pinned before the lock is taken (rule 5).
    guard: Guard,
}

impl<V: Clone + Send + Sync + 'static> NameTable<V> {
    pub(crate) fn new() -> Self {
        Self {
            len: Mutex::new(0),
            table: Atomic::new(Table::new(BUCKETS)),
            state: State::default(),
        }
    }

    /// Returns the value of a name. Takes no lock.
    pub(crate) fn get(&self, name: &str) -> Option<V> {
        self.find(name, &epoch::pin())
    }

    fn find(&self, name: &str, guard: &Guard) -> Option<V> {
        let bucket = self.bucket(name, guard);
        // Ordering: Acquire pairs with the Release of `replace` (rule 2).
        let bucket = bucket.load(Acquire, guard);
        // SAFETY: `bucket` was published complete (rule 2). The guard keeps its memory (rule 3).
        let bucket = unsafe { bucket.as_ref() }?;
        let found = bucket.iter().find(|(other, _)| **other == *name);
        found.map(|(_, value)| value.clone())
    }

    /// Takes the lock.
    pub(crate) fn lock(&self) -> Names<'_, V> {
        let guard = epoch::pin();
        Names {
            names: self,
            len: self.len.lock(),
            guard,
        }
    }

    fn table<'a>(&self, guard: &'a Guard) -> &'a Table<V> {
        // Ordering: Acquire pairs with the Release of `replace` (rule 2).
        let table = self.table.load(Acquire, guard);
        // SAFETY: `table` is never null. It was published complete (rule 2). The guard keeps its
        // memory (rule 3).
        unsafe { table.deref() }
    }

    fn bucket<'a>(&self, name: &str, guard: &'a Guard) -> &'a Atomic<Bucket<V>> {
        self.table(guard).bucket(self.state.hash_one(name))
    }
}

impl<V> Table<V> {
    fn new(buckets: usize) -> Self {
        Self {
            buckets: (0..buckets).map(|_| Atomic::null()).collect(),
        }
    }

    fn bucket(&self, hash: u64) -> &Atomic<Bucket<V>> {
        &self.buckets[hash as usize & (self.buckets.len() - 1)]
    }
}

impl<V> Drop for Table<V> {
    fn drop(&mut self) {
        for bucket in &mut self.buckets {
            let bucket = std::mem::replace(bucket, Atomic::null());
            // SAFETY: nobody reads this table any more: its owner drops it, or the epochs do
            // (rule 3). So nobody else reads or frees the bucket, to which it leads.
            drop(unsafe { bucket.try_into_owned() });
        }
    }
}

impl<V> Drop for NameTable<V> {
    fn drop(&mut self) {
        let table = std::mem::replace(&mut self.table, Atomic::null());
        // SAFETY: the borrow is unique, so no lookup runs. A table that was replaced before belongs
        // to the epochs, this one does not.
        drop(unsafe { table.try_into_owned() });
    }
}

impl<V: Clone + Send + Sync + 'static> Names<'_, V> {
    /// Returns the value of a name.
    pub(crate) fn get(&self, name: &str) -> Option<V> {
        self.names.find(name, &self.guard)
    }

    /// Gives a name a value, in place of its value before.
    pub(crate) fn insert(&mut self, name: &str, value: V) {
        let guard = &self.guard;
        let bucket = self.names.bucket(name, guard);
        let (mut changed, earlier) = self.without(name, bucket);
        changed.push((name.into(), value));
        replace(bucket, Owned::new(changed).into_shared(guard), guard);
        if earlier.is_none() {
            *self.len += 1;
            self.grow();
        }
    }

    /// Removes a name. Returns its value.
    pub(crate) fn remove(&mut self, name: &str) -> Option<V> {
        let guard = &self.guard;
        let bucket = self.names.bucket(name, guard);
        let (left, earlier) = self.without(name, bucket);
        let value = earlier?;
        let left = match left.is_empty() {
            true => Shared::null(),
            false => Owned::new(left).into_shared(guard),
        };
        replace(bucket, left, guard);
        *self.len -= 1;
        Some(value)
    }

    /// Returns a copy of a bucket without a name, and the value of the name.
    fn without(&self, name: &str, bucket: &Atomic<Bucket<V>>) -> (Bucket<V>, Option<V>) {
        // Ordering: Relaxed: the lock's owners before this one wrote the pointer (rule 1).
        let bucket = bucket.load(Relaxed, &self.guard);
        // SAFETY: the pointer was published complete, and only this thread may replace it (rule 1).
        let bucket = unsafe { bucket.as_ref() }.map_or(&[][..], |bucket| bucket);
        let mut found = None;
        let mut others = Vec::with_capacity(bucket.len() + 1);
        for (other, value) in bucket {
            match **other == *name {
                true => found = Some(value.clone()),
                false => others.push((other.clone(), value.clone())),
            }
        }
        (others, found)
    }

    /// Doubles the table, if there are more names than buckets.
    fn grow(&self) {
        let Self { names, guard, .. } = self;
        let old = names.table(guard);
        if *self.len <= old.buckets.len() {
            return;
        }
        let mut buckets = vec![Vec::new(); 2 * old.buckets.len()];
        for bucket in &old.buckets {
            // Ordering: Relaxed, as in `without`.
            let bucket = bucket.load(Relaxed, guard);
            // SAFETY: as in `without`.
            let bucket = unsafe { bucket.as_ref() };
            for (name, value) in bucket.into_iter().flatten() {
                let hash = names.state.hash_one(&**name) as usize;
                let mask = buckets.len() - 1;
                buckets[hash & mask].push((name.clone(), value.clone()));
            }
        }
        let publish = |bucket: Bucket<V>| match bucket.is_empty() {
            true => Atomic::null(),
            false => Atomic::new(bucket),
        };
        let table = Table {
            buckets: buckets.into_iter().map(publish).collect(),
        };
        replace(&names.table, Owned::new(table).into_shared(guard), guard);
    }
}

/// Publishes a pointer, and hands the one before to the epochs (rule 3). The caller has the lock.
fn replace<T: Send + Sync + 'static>(at: &Atomic<T>, new: Shared<'_, T>, guard: &Guard) {
    // Ordering: Release pairs with the Acquire of the lookups (rule 2). The pointer before was
    // published by an owner of the lock, so Acquire is not needed to free it.
    let old = at.swap(new, Release, guard);
    if !old.is_null() {
        // SAFETY: the exchange has taken the only pointer to `old` that lookups can find, and each
        // pointer is replaced once (rule 1). Any thread may drop a `T`. The drop may come after the
        // table's own, but `T` borrows nothing: it is a list or a table of strings and of pids.
        unsafe { guard.defer_destroy(old) };
    }
}

#[cfg(all(test, crossbeam_loom))]
mod models;
#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
