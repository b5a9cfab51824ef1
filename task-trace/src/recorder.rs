//! A flight recorder for a scheduler: records spawns, polls, wakes, steals and sleeps, in one lane
//! for each worker.
//!
//! Each worker writes events into a ring of its own, without a lock and without a
//! read-modify-write, so the newest events are always there. A reader takes a [`Capture`] at any
//! time. The capture can be saved as a file that [Perfetto](https://ui.perfetto.dev) and the
//! browsers' own viewers open, or as a page of HTML that needs no network.
//!
//! The scheduler owns a [`Recorder`]. At each event it calls [`Recorder::is_on`], which is a load.
//! While the recorder is on, the scheduler then writes to a [`Lane`]: the lane of the worker, or
//! that of a thread that is no worker.
//!
//! ```
//! use task_trace::recorder::{Cause, Event, Outcome, Recorder};
//!
//! let recorder = Recorder::new(1); // One worker.
//! recorder.start(1024);
//! if recorder.is_on() {
//!     recorder.with_thread(|lane| {
//!         lane.name(7, "reader");
//!         lane.record(Event::Wake { task: 7, by: None, cause: Cause::Thread });
//!     });
//!     recorder.worker(0).poll_begin(7, true);
//!     recorder.worker(0).poll_end(Outcome::Ready);
//! }
//! let capture = recorder.capture();
//! assert_eq!(capture.lanes()[0].events.len(), 2);
//! let mut json = Vec::new();
//! capture.write_chrome(&mut json)?;
//! assert!(String::from_utf8(json).unwrap().contains("reader"));
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Why the format is Chrome's JSON
//!
//! Perfetto, Chrome's `chrome://tracing` and Firefox's profiler open this format. The recorder
//! needs no schema and no library to write it, and any person or script can read it. A file in
//! Perfetto's own protobuf format is a third of the size, but only Perfetto reads that format.
//!
//! # What a lane keeps
//!
//! A ring keeps the newest events: older ones are overwritten, and [`LaneCapture::lost`] counts
//! them. A task's id is its address, which a later task may have again. So a capture finds a task's
//! name by the id and the time. Names are kept in a ring of their own, also while the recorder is
//! off, so that a task that was spawned long ago still has its name.
mod capture;
mod chrome;
mod clock;
mod event;
mod lane;
mod lock;
mod page;
mod ring;
mod save;
mod windows;

pub use capture::{Capture, LaneCapture, Stamped};
pub use event::{Cause, Event, Outcome};
pub use lane::Lane;
pub use page::page_of;
pub use ring::{Ring, RingCopy};

use capture::Times;
use clock::Clock;
use lane::{NAMES, Places};
use lock::Mutex;
use std::{cell::RefCell, fmt, sync::OnceLock, thread, time::Duration};
use sync_shim::{
    CachePadded,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    sync::{self, Arc},
};
use windows::{Allowed, Next, Rule, Windows};

/// The number of lanes of ended threads that a recorder keeps.
const ENDED_LANES: usize = 64;

/// The number of threads, other than workers, that have rings of a sixteenth of a worker's room.
const LARGE_LANES: usize = 16;

/// The most events of a ring of each further thread.
const SMALL: usize = 64;

/// The most events of a ring: no larger power of two has room in the address space.
const MOST: usize = isize::MAX as usize / EVENT_BYTES / 2 + 1;
const EVENT_BYTES: usize = size_of::<event::Words>();
const _: () = assert!(MOST.is_power_of_two() && EVENT_BYTES.is_power_of_two());

/// Records the events of one scheduler; see the [module](self).
pub struct Recorder {
    switch: CachePadded<Switch>,
    windows: Mutex<Windows>,
    /// The tick of the clock at the last start.
    since: AtomicU64,
    /// The tick at the stop, or 0 while the recorder is started.
    stopped: AtomicU64,
    clock: Clock,
    /// The capacity of a worker's ring in events. Set by the first start.
    capacity: OnceLock<usize>,
    /// The capacity of a worker's sparse ring. Set by the first start with a limit.
    sparse: OnceLock<usize>,
    places: Places,
    workers: Box<[Lane]>,
    others: Mutex<Vec<Other>>,
    /// Identifies this recorder in each thread's list of lanes.
    identity: Arc<()>,
}

/// Whether events are recorded. The lock of the windows guards the changes.
struct Switch {
    on: AtomicBool,
    /// Whether there was a start, and no stop since.
    started: AtomicBool,
    /// The tick from which on [`Recorder::go_on`] begins a window, or 0.
    due: AtomicU64,
}

/// The lane of a thread that is no worker.
#[derive(Clone)]
struct Other {
    lane: Arc<Lane>,
    is_large: bool,
}

impl Other {
    fn has_ended(&self) -> bool {
        Arc::strong_count(&self.lane) == 1
    }
}

thread_local! {
    /// This thread's lanes, each with the identity of its recorder.
    static LANES: RefCell<Vec<(Arc<()>, Other)>> = const { RefCell::new(Vec::new()) };
}

impl Recorder {
    /// Makes a recorder for `workers` workers. It is off.
    pub fn new(workers: usize) -> Self {
        let clock = Clock::new();
        let places = Places::new(sync::Mutex::new(Vec::new()));
        let lane = |index| Lane::new(format!("worker {index}"), NAMES, clock, places.clone());
        Self {
            switch: CachePadded::new(Switch {
                on: AtomicBool::new(false),
                started: AtomicBool::new(false),
                due: AtomicU64::new(0),
            }),
            stopped: AtomicU64::new(0),
            windows: Mutex::new(Windows::new()),
            since: AtomicU64::new(0),
            capacity: OnceLock::new(),
            sparse: OnceLock::new(),
            workers: (0..workers).map(lane).collect(),
            others: Mutex::new(Vec::new()),
            identity: Arc::new(()),
            clock,
            places,
        }
    }

    /// Returns whether events are to be recorded now. Costs a load.
    #[inline]
    pub fn is_on(&self) -> bool {
        // Ordering: Relaxed; it does not matter if an event too many or too few is recorded, and a
        // lane's ring has its own orderings.
        self.switch.on.load(Relaxed)
    }

    /// Starts to record. A later capture has the events from here on.
    ///
    /// The first start allocates the rings: room for `capacity` events of 32 bytes for each worker.
    /// Of the other threads that record, 16 have room for a sixteenth as many events each, and each
    /// further one for 64. A later start keeps the rings, and ignores its `capacity`.
    ///
    /// # Panics
    /// If `capacity` is not a power of two, or if that many events exceed the address space.
    #[track_caller]
    pub fn start(&self, capacity: usize) {
        check(capacity);
        self.start_windows(capacity, None);
    }

    /// Starts to record, for as long as the scheduler runs: by its estimate in at most this part of
    /// each lane's time, and so that the recording goes back for the time `keep`.
    ///
    /// While the events come so fast that they would cost more, the recorder pauses. The scheduler
    /// calls [`go_on`](Self::go_on) from time to time, which ends a pause. So the recorder records
    /// in short windows, which are whole in the lanes of all workers, with gaps between them. The
    /// start measures the cost of an event.
    ///
    /// The first start gives a half of the room to the newest events, and a half to those of some
    /// windows: so few that they go back for the time `keep`. A thread that is no worker has little
    /// room, and its lane may go back less far.
    ///
    /// ```
    /// use std::time::Duration;
    /// use task_trace::recorder::{Event, Recorder};
    ///
    /// let recorder = Recorder::new(1);
    /// recorder.start_limited(1 << 15, 0.001, Duration::from_secs(10));
    /// while recorder.is_on() {
    ///     recorder.with_worker(0, |lane| lane.record(Event::Overflow));
    /// }
    /// assert_eq!(recorder.capture().gaps().len(), 1);
    /// while !recorder.is_on() {
    ///     recorder.go_on();
    /// }
    /// ```
    ///
    /// # Panics
    /// As `start` does, and if `part` is not above 0 and up to 1.
    #[track_caller]
    pub fn start_limited(&self, capacity: usize, part: f64, keep: Duration) {
        check(capacity);
        let half = (capacity / 2).max(1);
        let half = *self.sparse.get_or_init(|| half);
        for lane in &self.workers {
            lane.allocate_sparse(half);
        }
        self.start_windows(half, Some(Rule::new(half, part, keep, &self.clock)));
    }

    fn start_windows(&self, capacity: usize, rule: Option<Rule>) {
        let capacity = *self.capacity.get_or_init(|| capacity);
        for lane in &self.workers {
            lane.prepare(capacity);
        }
        let mut windows = self.windows.lock();
        let now = self.clock.now();
        let allowed = windows.start(rule, now);
        // Ordering: Relaxed; `since` is compared with the events' ticks, and publishes nothing.
        self.since.store(now, Relaxed);
        // Ordering: Relaxed, as above.
        self.stopped.store(0, Relaxed);
        // Ordering: Relaxed, as in `is_started`.
        self.switch.started.store(true, Relaxed);
        self.open(allowed, windows.due(), &self.others.lock());
    }

    /// Lets each lane record this many events. The caller holds the lock of the windows.
    fn open(&self, allowed: Allowed, due: u64, others: &[Other]) {
        self.workers.iter().for_each(|lane| lane.allow(allowed));
        others.iter().for_each(|other| other.lane.allow(allowed));
        // Ordering: Relaxed, as in `go_on`.
        self.switch.due.store(due, Relaxed);
        // Ordering: Relaxed; as in `is_on`.
        self.switch.on.store(true, Relaxed);
    }

    /// Pauses, or begins the next window, as a lane has recorded the events of its window.
    #[cold]
    #[inline(never)]
    fn end_window(&self, lane: &Lane) {
        // A worker does not wait: the lane's next event tries again. In a child made by `fork` the
        // locks may never become free.
        let (Some(mut windows), Some(others)) = (self.windows.try_lock(), self.others.try_lock())
        else {
            return;
        };
        // Another lane may have ended the window, and a stop or a start may have come.
        if !self.is_on() || !lane.is_spent() {
            return;
        }
        match windows.end(self.clock.now()) {
            Next::Nothing => {}
            Next::Window(allowed) => self.open(allowed, windows.due(), &others),
            Next::Pause(until) => {
                // Ordering: Relaxed, as in `go_on`.
                self.switch.due.store(until.max(1), Relaxed);
                // Ordering: Relaxed; as in `is_on`.
                self.switch.on.store(false, Relaxed);
            }
        }
    }

    /// Goes on to record, if the recorder pauses and the pause is over. Also begins a new window,
    /// from time to time, so that a flood of events does not overwrite the quiet time before it.
    /// Costs a load, and in a pause and in some windows a reading of the clock.
    #[inline]
    pub fn go_on(&self) {
        // Ordering: Relaxed; a caller that sees an old value goes on later. The lock of the windows
        // orders the rest.
        let due = self.switch.due.load(Relaxed);
        if due != 0 {
            self.go_on_at(due);
        }
    }

    #[cold]
    #[inline(never)]
    fn go_on_at(&self, due: u64) {
        let now = self.clock.now();
        if now < due {
            return;
        }
        // As in `end_window`; the next call tries again.
        let (Some(mut windows), Some(others)) = (self.windows.try_lock(), self.others.try_lock())
        else {
            return;
        };
        // A stop may have come, or another thread may have begun a window.
        // Ordering: Relaxed, as in `go_on`; the lock orders it.
        if self.switch.due.load(Relaxed) != due {
            return;
        }
        let (allowed, paused) = windows.go_on(now);
        if paused {
            self.workers.iter().for_each(Lane::forget_poll);
        }
        self.open(allowed, windows.due(), &others);
    }

    /// Returns whether the recorder was started, and not stopped since. It may pause. Costs a load.
    pub fn is_started(&self) -> bool {
        // Ordering: Relaxed; the flag publishes nothing.
        self.switch.started.load(Relaxed)
    }

    /// Stops recording. The events stay until the next start, and a capture ends at the stop.
    pub fn stop(&self) {
        let _windows = self.windows.lock();
        // Ordering: Relaxed, as in `is_started`; the lock orders it.
        if self.switch.started.swap(false, Relaxed) {
            // Ordering: Relaxed; as in `start_windows`.
            self.stopped.store(self.clock.now().max(1), Relaxed);
        }
        // Ordering: Relaxed, as in `go_on`.
        self.switch.due.store(0, Relaxed);
        // Ordering: Relaxed; as in `is_on`.
        self.switch.on.store(false, Relaxed);
    }

    /// Runs `f` on the lane of a worker. Only the thread that is the worker calls this, while the
    /// recorder is on. `f` records events and does nothing else.
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    #[track_caller]
    pub fn with_worker(&self, index: usize, f: impl FnOnce(&Lane)) {
        let lane = self.worker(index);
        f(lane);
        if lane.is_spent() {
            self.end_window(lane);
        }
    }

    /// Returns the lane of a worker. Only the thread that is the worker writes to it.
    ///
    /// # Panics
    /// If there is no such worker.
    #[inline]
    #[track_caller]
    pub fn worker(&self, index: usize) -> &Lane {
        &self.workers[index]
    }

    /// Runs `f` on the lane of this thread, which is no worker. Does nothing once the thread's
    /// thread-locals are destroyed. The first call of a thread takes a lock and allocates.
    ///
    /// `f` records events and does nothing else.
    pub fn with_thread(&self, f: impl FnOnce(&Lane)) {
        let f = |lane: &Lane| {
            f(lane);
            if lane.is_spent() {
                self.end_window(lane);
            }
        };
        // An allocator that records events itself may call this while the thread's lane is added.
        // Such a nested call records nothing.
        let _ = LANES.try_with(|lanes| {
            let own = |lanes: &[(Arc<()>, Other)]| {
                lanes
                    .iter()
                    .position(|(identity, _)| Arc::ptr_eq(identity, &self.identity))
            };
            if let Ok(lanes) = lanes.try_borrow() {
                if let Some(at) = own(&lanes) {
                    self.prepare(&lanes[at].1);
                    return f(&lanes[at].1.lane);
                }
            }
            if let Ok(mut lanes) = lanes.try_borrow_mut() {
                // An identity without another reference is that of a recorder that was dropped.
                lanes.retain(|(identity, _)| Arc::strong_count(identity) > 1);
                let other = self.add_thread();
                lanes.push((self.identity.clone(), other.clone()));
                f(&other.lane);
            }
        });
    }

    /// Makes room for the events of a thread's lane, once there was a start.
    fn prepare(&self, other: &Other) {
        let room = |capacity: &usize| {
            let large = (capacity / LARGE_LANES).max(1);
            if other.is_large {
                large
            } else {
                large.min(SMALL)
            }
        };
        if let Some(capacity) = self.capacity.get() {
            other.lane.allocate(room(capacity));
        }
        if let Some(capacity) = self.sparse.get() {
            other.lane.allocate_sparse(room(capacity));
        }
    }

    /// Adds the lane of this thread. The lanes of threads that have ended go, the oldest first, if
    /// there are more than [`ENDED_LANES`], or if the new one is to be large in place of one.
    fn add_thread(&self) -> Other {
        let thread = thread::current();
        let name = match thread.name() {
            Some(name) => name.to_owned(),
            None => format!("{:?}", thread.id()),
        };
        let names = NAMES / LARGE_LANES;
        let lane = Arc::new(Lane::new(name, names, self.clock, self.places.clone()));
        let windows = self.windows.lock();
        let mut others = self.others.lock();
        let mut large = others.iter().filter(|other| other.is_large).count();
        let mut excess = others.iter().filter(|other| other.has_ended()).count();
        others.retain(|other| {
            let has_room = !other.is_large || large < LARGE_LANES;
            let goes = other.has_ended() && (excess > ENDED_LANES || !has_room);
            excess -= usize::from(goes);
            large -= usize::from(goes && other.is_large);
            !goes
        });
        let is_large = large < LARGE_LANES;
        let other = Other { lane, is_large };
        self.prepare(&other);
        other.lane.allow(windows.allowed());
        others.push(other.clone());
        other
    }

    /// Copies the events since the last start. Writers continue meanwhile.
    pub fn capture(&self) -> Capture {
        self.capture_last(Duration::MAX)
    }

    /// Copies the events of the time `last` before now, or before the stop, but none from before
    /// the last start. A poll or a sleep that was in progress then is whole, if its begin is still
    /// there.
    ///
    /// ```
    /// use std::{thread, time::Duration};
    /// use task_trace::recorder::{Event, Recorder};
    ///
    /// let recorder = Recorder::new(1);
    /// recorder.start(64);
    /// recorder.worker(0).record(Event::Overflow);
    /// thread::sleep(Duration::from_millis(20));
    /// let capture = recorder.capture_last(Duration::from_millis(1));
    /// assert!(capture.lanes()[0].events.is_empty());
    /// assert!(capture.duration() >= Duration::from_millis(20));
    /// ```
    pub fn capture_last(&self, last: Duration) -> Capture {
        // Ordering: Relaxed; as in `start_windows`.
        let since = self.since.load(Relaxed);
        let others = self.others.lock().clone();
        let workers = self.workers.iter().enumerate();
        let workers = workers.map(|(index, lane)| (Some(index), lane));
        let others = others.iter().map(|other| (None, &*other.lane));
        let lanes: Vec<_> = workers.chain(others).collect();
        let copies: Vec<_> = lanes
            .iter()
            .map(|(_, lane)| (lane.events(), lane.names()))
            .collect();
        // Ordering: Relaxed; as in `start_windows`.
        let stopped = self.stopped.load(Relaxed);
        let end = if stopped == 0 {
            self.clock.now()
        } else {
            stopped
        };
        // The events of all workers go back to here.
        let oldest = |ring: &RingCopy<4>| {
            let oldest = ring.records.first().filter(|_| ring.lost > 0);
            oldest.map_or(since, lane::tick)
        };
        let cut_of = |ring: usize| {
            let workers = copies[..self.workers.len()].iter();
            let cut = workers.map(|(events, _)| oldest(&events[ring])).max();
            cut.unwrap_or(since).max(since)
        };
        let (cut, sparse_cut) = (cut_of(0), cut_of(1));
        // The workers do not wait for the computation.
        let windows = self.windows.lock().clone();
        let gaps = windows.gaps(since, (sparse_cut, cut), end);
        let first = end.saturating_sub(self.clock.ticks(last)).max(since);
        let places = self.places.lock().clone();
        let times = Times {
            since,
            sparse_cut,
            cut,
            first,
            end,
            gaps,
        };
        let mut capture = Capture::new(times, self.clock.scale(), places);
        for ((worker, lane), (events, names)) in lanes.into_iter().zip(copies) {
            capture.add(lane.name.clone(), worker, events, names);
        }
        capture.finish()
    }
}

#[track_caller]
fn check(capacity: usize) {
    assert!(
        capacity.is_power_of_two() && capacity <= MOST,
        "a ring's capacity is a power of two up to {MOST}, not {capacity}"
    );
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder")
            .field("workers", &self.workers.len())
            .field("is_on", &self.is_on())
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, not(any(selvedge_loom, selvedge_shuttle))))]
mod tests;
