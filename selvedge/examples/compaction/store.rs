//! The store: 64 tablets. Each has a sorted base, and sorted runs of newer entries.
//!
//! A read looks through a tablet's runs, newest first, and then through its base. *Compaction*
//! merges the oldest run into the base, and so each read has fewer runs to look through.
use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

pub const TABLETS: usize = 64;
/// Number of entries in a base.
pub const BASE: u64 = 50_000;
/// Number of entries in a run.
const RUN: u64 = 5_000;

/// Number of entries that a task merges between two yields. A step takes about 0.1 ms.
const STEP: usize = 16_000;

/// Pairs of a key and its value, sorted by key.
type Entries = Arc<Vec<(u64, u64)>>;

pub struct Store {
    tablets: Vec<Mutex<Tablet>>,
    /// The run that each flush adds.
    run: Entries,
    /// Number of entries that compaction has merged: those of the runs, and of the bases.
    pub merged: AtomicU64,
}

struct Tablet {
    base: Entries,
    /// The newest run is the last.
    runs: VecDeque<Entries>,
    is_compacting: bool,
}

impl Store {
    pub fn new() -> Self {
        let base = Arc::new((0..BASE).map(|key| (key * 2, 0)).collect::<Vec<_>>());
        let tablet = || {
            Mutex::new(Tablet {
                base: base.clone(),
                runs: VecDeque::new(),
                is_compacting: false,
            })
        };
        Self {
            tablets: (0..TABLETS).map(|_| tablet()).collect(),
            run: Arc::new((0..RUN).map(|key| (key * BASE / RUN * 2, 1)).collect()),
            merged: AtomicU64::new(0),
        }
    }

    /// Adds a run to a tablet. Returns whether the caller must start the tablet's compaction.
    pub fn flush(&self, tablet: usize) -> bool {
        let mut tablet = self.tablets[tablet].lock().unwrap();
        tablet.runs.push_back(self.run.clone());
        !std::mem::replace(&mut tablet.is_compacting, true)
    }

    /// Looks up a key.
    pub fn read(&self, tablet: usize, key: u64) -> Option<u64> {
        let tablet = self.tablets[tablet].lock().unwrap();
        let (runs, base) = (tablet.runs.clone(), tablet.base.clone());
        drop(tablet);
        runs.iter().rev().chain([&base]).find_map(|entries| {
            let index = entries.binary_search_by_key(&key, |(key, _)| *key);
            index.ok().map(|index| entries[index].1)
        })
    }

    /// Compacts a tablet until it has no run. Awaits `pause` between two steps.
    pub async fn compact<F: Future<Output = ()>>(&self, tablet: usize, pause: impl Fn() -> F) {
        loop {
            let (base, run) = {
                let mut tablet = self.tablets[tablet].lock().unwrap();
                let Some(run) = tablet.runs.front().cloned() else {
                    tablet.is_compacting = false;
                    return;
                };
                (tablet.base.clone(), run)
            };
            let mut merge = Merge::new(&base, &run);
            while merge.step() {
                pause().await;
            }
            let merged = (base.len() + run.len()) as u64;
            self.merged.fetch_add(merged, Relaxed);
            let base = Arc::new(merge.out);
            let mut tablet = self.tablets[tablet].lock().unwrap();
            tablet.base = base;
            tablet.runs.pop_front();
        }
    }

    /// Returns the number of runs that are not yet merged into their base.
    pub fn backlog(&self) -> usize {
        let runs = self.tablets.iter().map(|tablet| tablet.lock().unwrap());
        runs.map(|tablet| tablet.runs.len()).sum()
    }
}

/// A merge of two sorted lists. If both lists have a key, the entry of the newer list wins.
struct Merge<'a> {
    older: &'a [(u64, u64)],
    newer: &'a [(u64, u64)],
    out: Vec<(u64, u64)>,
}

impl<'a> Merge<'a> {
    fn new(older: &'a [(u64, u64)], newer: &'a [(u64, u64)]) -> Self {
        Self {
            older,
            newer,
            out: Vec::with_capacity(older.len() + newer.len()),
        }
    }

    /// Merges up to `STEP` entries. Returns false once both lists are at their end.
    fn step(&mut self) -> bool {
        for _ in 0..STEP {
            let (older, newer) = (self.older.first(), self.newer.first());
            let (Some(entry), is_newer) = (match (older, newer) {
                (Some(older), Some(newer)) if older.0 < newer.0 => (Some(*older), false),
                (_, Some(newer)) => (Some(*newer), true),
                (older, None) => (older.copied(), false),
            }) else {
                return false;
            };
            if older.is_some_and(|older| older.0 == entry.0) {
                self.older = &self.older[1..];
            }
            if is_newer {
                self.newer = &self.newer[1..];
            }
            self.out.push(entry);
        }
        true
    }
}
