//! A lane: the events of one worker, or of one other thread.
use super::{
    Event,
    clock::Clock,
    event::Words,
    ring::{Ring, RingCopy},
    windows::Allowed,
};
use std::{panic::Location, sync::OnceLock};
use sync_shim::{
    CachePadded,
    atomic::{AtomicU64, Ordering::Relaxed},
    sync::{Arc, Mutex},
};

/// A task's name: the tick of its spawn, its id, and the length and bytes of the name.
pub(super) type NameWords = [u64; 16];

/// The most bytes of a name that are kept.
const NAME_BYTES: usize = (16 - 3) * 8;

/// The number of names that the lane of a worker keeps.
pub(super) const NAMES: usize = 2048;

/// The number of spawn places whose numbers a lane caches.
const KNOWN: usize = 64;

/// The places of all recorded spawns. Their numbers begin at 1.
pub(super) type Places = Arc<Mutex<Vec<&'static Location<'static>>>>;

/// The events of one worker, or of one other thread. One thread at a time writes to it.
pub struct Lane {
    pub(super) name: String,
    clock: Clock,
    events: OnceLock<Ring<4>>,
    /// The events of some windows, in a recorder that has a limit.
    sparse: OnceLock<Ring<4>>,
    names: OnceLock<Ring<16>>,
    /// The number of names that the lane keeps.
    kept_names: usize,
    places: Places,
    writer: CachePadded<Writer>,
}

/// State of the lane's one writer.
struct Writer {
    /// The task that is polled, or 0.
    current: AtomicU64,
    /// The number of events, since the lane's first one, after which the recorder pauses.
    limit: AtomicU64,
    /// The same for the sparse ring, after which it takes no more.
    sparse_limit: AtomicU64,
    /// The addresses of spawn places, each with the number of the place.
    known: [(AtomicU64, AtomicU64); KNOWN],
}

impl Lane {
    pub(super) fn new(name: String, kept_names: usize, clock: Clock, places: Places) -> Self {
        Self {
            name,
            clock,
            events: OnceLock::new(),
            sparse: OnceLock::new(),
            names: OnceLock::new(),
            kept_names,
            places,
            writer: CachePadded::new(Writer {
                current: AtomicU64::new(0),
                limit: AtomicU64::new(u64::MAX),
                sparse_limit: AtomicU64::new(0),
                known: std::array::from_fn(|_| (AtomicU64::new(0), AtomicU64::new(0))),
            }),
        }
    }

    /// Makes room for events, unless there is room already.
    pub(super) fn allocate(&self, events: usize) {
        self.events.get_or_init(|| Ring::new(events));
    }

    /// Makes room for events, unless there is room already, and forgets a poll whose end was not
    /// recorded.
    pub(super) fn prepare(&self, events: usize) {
        self.allocate(events);
        self.forget_poll();
    }

    /// Forgets a poll whose end was not recorded.
    pub(super) fn forget_poll(&self) {
        // Ordering: Relaxed; the writer may be in a poll. The end of that poll is then not
        // recorded.
        self.writer.current.store(0, Relaxed);
    }

    /// Makes room for events of sparse windows, unless there is room already.
    pub(super) fn allocate_sparse(&self, events: usize) {
        self.sparse.get_or_init(|| Ring::new(events));
    }

    /// Allows this many events from now on, before the recorder pauses.
    pub(super) fn allow(&self, allowed: Allowed) {
        let limit = |ring: &OnceLock<Ring<4>>, events| {
            let written = ring.get().map_or(0, Ring::written);
            written.saturating_add(events)
        };
        let (events, sparse) = (
            limit(&self.events, allowed.events),
            limit(&self.sparse, allowed.sparse),
        );
        // Ordering: Relaxed; the limit publishes nothing.
        self.writer.limit.store(events, Relaxed);
        // Ordering: Relaxed, as above.
        self.writer.sparse_limit.store(sparse, Relaxed);
    }

    /// Returns whether the lane has as many events as it was allowed. Costs three loads.
    #[inline]
    pub(super) fn is_spent(&self) -> bool {
        let Some(ring) = self.events.get() else {
            return false;
        };
        // Ordering: Relaxed, as in `allow`.
        ring.written() >= self.writer.limit.load(Relaxed)
    }

    /// Records an event. Only the lane's one writer calls this, while the recorder is on. Costs a
    /// reading of the clock and six stores, or twelve in a recorder with a limit.
    #[inline]
    pub fn record(&self, event: Event) {
        self.record_at(event, 0);
    }

    #[inline]
    fn record_at(&self, event: Event, place: u32) {
        let Some(ring) = self.events.get() else {
            return;
        };
        let words = event.encode(self.clock.now(), place);
        ring.push(words);
        if let Some(sparse) = self.sparse.get() {
            // Ordering: Relaxed, as in `allow`.
            if sparse.written() < self.writer.sparse_limit.load(Relaxed) {
                sparse.push(words);
            }
        }
    }

    /// Records a spawn. If the lane's thread polls a task, that task is recorded as the spawner.
    /// Only the lane's one writer calls this, while the recorder is on.
    pub fn spawn(&self, task: u64, location: &'static Location<'static>) {
        let place = self.number(location);
        let by = self.polled();
        let event = Event::Spawn {
            task,
            by,
            location: None, // The number of the place stands for it.
        };
        self.record_at(event, place);
    }

    /// Records a task's name at its spawn. Only the lane's one writer calls this, also while the
    /// recorder is off. The lane keeps its 2,048 newest names, and 104 bytes of each.
    pub fn name(&self, task: u64, name: &str) {
        let mut words = [0; 16];
        let mut end = name.len().min(NAME_BYTES);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        (words[0], words[1], words[2]) = (self.clock.now(), task, end as u64);
        for (word, bytes) in words[3..].iter_mut().zip(name.as_bytes()[..end].chunks(8)) {
            let mut eight = [0; 8];
            eight[..bytes.len()].copy_from_slice(bytes);
            *word = u64::from_le_bytes(eight);
        }
        let names = || Ring::new(self.kept_names);
        self.names.get_or_init(names).push(words);
    }

    /// Records that a poll begins. Only the lane's one writer calls this.
    #[inline]
    pub fn poll_begin(&self, task: u64, named: bool) {
        // Ordering: Relaxed; only the writer reads `current`, which publishes nothing.
        self.writer.current.store(task, Relaxed);
        self.record(Event::PollBegin { task, named });
    }

    /// Records that the poll has ended, if its begin was recorded. Only the lane's one writer calls
    /// this.
    #[inline]
    pub fn poll_end(&self, outcome: super::Outcome) {
        if let Some(task) = self.polled() {
            self.record(Event::PollEnd { task, outcome });
            // Ordering: Relaxed; only the writer reads `current`, which publishes nothing.
            self.writer.current.store(0, Relaxed);
        }
    }

    /// Returns the task that the writer polls, if the begin of its poll was recorded.
    #[inline]
    pub fn polled(&self) -> Option<u64> {
        // Ordering: Relaxed; `current` publishes nothing.
        let current = self.writer.current.load(Relaxed);
        (current != 0).then_some(current)
    }

    /// Returns the number of a place. Takes a lock if this lane has not cached the number.
    fn number(&self, location: &'static Location<'static>) -> u32 {
        let address = std::ptr::from_ref(location).addr() as u64;
        let (at, number) = &self.writer.known[(address >> 3) as usize % KNOWN];
        // Ordering: Relaxed; only the writer uses `at` and `number`.
        if at.load(Relaxed) == address {
            // Ordering: as above.
            return number.load(Relaxed) as u32;
        }
        let found = {
            let mut places = self.places.lock();
            let found = places.iter().position(|known| *known == location);
            found.unwrap_or_else(|| {
                places.push(location);
                places.len() - 1
            }) + 1
        };
        // Ordering: as above.
        at.store(address, Relaxed);
        // Ordering: as above.
        number.store(found as u64, Relaxed);
        found as u32
    }

    /// Returns the events so far, and those of the sparse ring.
    pub(super) fn events(&self) -> [RingCopy<4>; 2] {
        [&self.events, &self.sparse].map(|ring| ring.get().map_or_else(RingCopy::empty, Ring::copy))
    }

    /// Returns the names so far, with the tick of the spawn and the task.
    pub(super) fn names(&self) -> Vec<(u64, u64, String)> {
        let copy = self.names.get().map_or_else(RingCopy::empty, Ring::copy);
        copy.records.into_iter().map(read_name).collect()
    }
}

fn read_name(words: NameWords) -> (u64, u64, String) {
    let bytes: Vec<u8> = words[3..].iter().flat_map(|w| w.to_le_bytes()).collect();
    let name = &bytes[..(words[2] as usize).min(NAME_BYTES)];
    let name = String::from_utf8_lossy(name).into_owned();
    (words[0], words[1], name)
}

/// Returns the tick of an event.
pub(super) fn tick(words: &Words) -> u64 {
    words[0]
}

impl std::fmt::Debug for Lane {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}
