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
use lane::Places;
use std::{cell::RefCell, fmt, sync::OnceLock, thread, time::Duration};
use sync_shim::{
    CachePadded,
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    sync::{Arc, Mutex},
};
use windows::{Allowed, Next, Rule, Windows};

/// The number of lanes of ended threads that a recorder keeps.
const ENDED_LANES: usize = 64;

/// The most events of a ring: no larger power of two has room in the address space.
const MOST: usize = isize::MAX as usize / EVENT_BYTES / 2 + 1;
const EVENT_BYTES: usize = size_of::<event::Words>();
const _: () = assert!(MOST.is_power_of_two() && EVENT_BYTES.is_power_of_two());

/// Records the events of one scheduler; see the [module](self).
pub struct Recorder {
    on: CachePadded<AtomicBool>,
    /// The tick until which the recorder pauses, or 0.
    paused_until: AtomicU64,
    windows: Mutex<Windows>,
    /// The tick of the clock at the last start.
    since: AtomicU64,
    clock: Clock,
    /// The capacity of a worker's ring in events. Set by the first start.
    capacity: OnceLock<usize>,
    /// The capacity of a worker's sparse ring. Set by the first start with a limit.
    sparse: OnceLock<usize>,
    places: Places,
    workers: Box<[Lane]>,
    others: Mutex<Vec<Arc<Lane>>>,
    /// Identifies this recorder in each thread's list of lanes.
    identity: Arc<()>,
}

thread_local! {
    /// This thread's lanes, each with the identity of its recorder.
    static LANES: RefCell<Vec<(Arc<()>, Arc<Lane>)>> = const { RefCell::new(Vec::new()) };
}

impl Recorder {
    /// Makes a recorder for `workers` workers. It is off.
    pub fn new(workers: usize) -> Self {
        let clock = Clock::new();
        let places = Places::new(Mutex::new(Vec::new()));
        let lane = |index| Lane::new(format!("worker {index}"), clock, places.clone());
        Self {
            on: CachePadded::new(AtomicBool::new(false)),
            paused_until: AtomicU64::new(0),
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
        self.on.load(Relaxed)
    }

    /// Starts to record. A later capture has the events from here on.
    ///
    /// The first start allocates the rings: room for `capacity` events of 32 bytes for each worker.
    /// Each other thread that records has room for a sixteenth as many events. A later start keeps
    /// the rings, and ignores its `capacity`.
    ///
    /// # Panics
    /// If `capacity` is not a power of two, or if that many events exceed the address space.
    #[track_caller]
    pub fn start(&self, capacity: usize) {
        check(capacity);
        self.start_windows(capacity, None);
    }

    /// Starts to record, for as long as the scheduler runs: in at most this part of each lane's
    /// time, and so that the recording goes back for the time `keep`.
    ///
    /// While the events come so fast that they would cost more, the recorder pauses. The scheduler
    /// calls [`go_on`](Self::go_on) from time to time, which ends a pause. So the recorder records
    /// in short windows, which are whole in all lanes, with gaps between them. The start measures
    /// the cost of an event.
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
        self.open(allowed);
    }

    /// Lets each lane record this many events. The caller holds the lock of the windows.
    fn open(&self, allowed: Allowed) {
        self.workers.iter().for_each(|lane| lane.allow(allowed));
        let others = self.others.lock();
        others.iter().for_each(|lane| lane.allow(allowed));
        // Ordering: Relaxed, as in `go_on`.
        self.paused_until.store(0, Relaxed);
        // Ordering: Relaxed; as in `is_on`.
        self.on.store(true, Relaxed);
    }

    /// Pauses, or begins the next window, as a lane has recorded the events of its window.
    #[cold]
    #[inline(never)]
    fn end_window(&self) {
        let mut windows = self.windows.lock();
        // Another lane may have ended the window, and a stop or a start may have come.
        if !self.is_on() {
            return;
        }
        match windows.end(self.clock.now()) {
            Next::Nothing => {}
            Next::Window(allowed) => self.open(allowed),
            Next::Pause(until) => {
                // Ordering: Relaxed, as in `go_on`.
                self.paused_until.store(until.max(1), Relaxed);
                // Ordering: Relaxed; as in `is_on`.
                self.on.store(false, Relaxed);
            }
        }
    }

    /// Goes on to record, if the recorder pauses and the pause is over. Costs a load if the
    /// recorder does not pause.
    #[inline]
    pub fn go_on(&self) {
        // Ordering: Relaxed; a caller that sees an old value goes on later. The lock of the windows
        // orders the rest.
        let until = self.paused_until.load(Relaxed);
        if until != 0 {
            self.go_on_at(until);
        }
    }

    #[cold]
    #[inline(never)]
    fn go_on_at(&self, until: u64) {
        let now = self.clock.now();
        if now < until {
            return;
        }
        let mut windows = self.windows.lock();
        // A stop may have come, or another thread may have gone on and paused again.
        // Ordering: Relaxed, as in `go_on`; the lock orders it.
        if self.paused_until.load(Relaxed) != until {
            return;
        }
        if let Some(allowed) = windows.go_on(now) {
            self.workers.iter().for_each(Lane::forget_poll);
            self.open(allowed);
        }
    }

    /// Returns whether the recorder was started, and not stopped since. It may pause. Takes a lock.
    pub fn is_started(&self) -> bool {
        let _windows = self.windows.lock();
        // Ordering: Relaxed, as in `go_on`; the lock orders it.
        self.is_on() || self.paused_until.load(Relaxed) != 0
    }

    /// Stops recording. The events stay until the next start.
    pub fn stop(&self) {
        let _windows = self.windows.lock();
        // Ordering: Relaxed, as in `go_on`.
        self.paused_until.store(0, Relaxed);
        // Ordering: Relaxed; as in `is_on`.
        self.on.store(false, Relaxed);
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
            self.end_window();
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
                self.end_window();
            }
        };
        // An allocator that records events itself may call this while the thread's lane is added.
        // Such a nested call records nothing.
        let _ = LANES.try_with(|lanes| {
            let own = |lanes: &[(Arc<()>, Arc<Lane>)]| {
                lanes
                    .iter()
                    .position(|(identity, _)| Arc::ptr_eq(identity, &self.identity))
            };
            if let Ok(lanes) = lanes.try_borrow() {
                if let Some(at) = own(&lanes) {
                    self.prepare(&lanes[at].1);
                    return f(&lanes[at].1);
                }
            }
            if let Ok(mut lanes) = lanes.try_borrow_mut() {
                // An identity without another reference is that of a recorder that was dropped.
                lanes.retain(|(identity, _)| Arc::strong_count(identity) > 1);
                let lane = self.add_thread();
                lanes.push((self.identity.clone(), lane.clone()));
                f(&lane);
            }
        });
    }

    /// Makes room for the events of a thread's lane, once there was a start.
    fn prepare(&self, lane: &Lane) {
        if let Some(capacity) = self.capacity.get() {
            lane.allocate((capacity / 16).max(1));
        }
        if let Some(capacity) = self.sparse.get() {
            lane.allocate_sparse((capacity / 16).max(1));
        }
    }

    fn add_thread(&self) -> Arc<Lane> {
        let thread = thread::current();
        let name = match thread.name() {
            Some(name) => name.to_owned(),
            None => format!("{:?}", thread.id()),
        };
        let lane = Arc::new(Lane::new(name, self.clock, self.places.clone()));
        self.prepare(&lane);
        let windows = self.windows.lock();
        lane.allow(windows.allowed());
        let mut others = self.others.lock();
        let ended = |lane: &Arc<Lane>| Arc::strong_count(lane) == 1;
        let mut excess = others.iter().filter(|lane| ended(lane)).count();
        others.retain(|lane| {
            let goes = excess > ENDED_LANES && ended(lane);
            excess -= usize::from(goes);
            !goes
        });
        others.push(lane.clone());
        lane
    }

    /// Copies the events since the last start. Writers continue meanwhile.
    pub fn capture(&self) -> Capture {
        self.capture_last(Duration::MAX)
    }

    /// Copies the events of the last so long, but none from before the last start. A poll or a
    /// sleep that was in progress then is whole, if its begin is still there.
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
        let others = others.iter().map(|lane| (None, &**lane));
        let lanes: Vec<_> = workers.chain(others).collect();
        let copies: Vec<_> = lanes
            .iter()
            .map(|(_, lane)| (lane.events(), lane.names()))
            .collect();
        let end = self.clock.now();
        // The recent events of all workers go back to here.
        let oldest = |lane: &[RingCopy<4>; 2]| {
            let [recent, _] = lane;
            let oldest = recent.records.first().filter(|_| recent.lost > 0);
            oldest.map_or(since, lane::tick)
        };
        let workers = copies[..self.workers.len()].iter();
        let cut = workers.map(|(events, _)| oldest(events)).max();
        let cut = cut.unwrap_or(since).max(since);
        let gaps = self.windows.lock().gaps(since, cut, end);
        let first = end.saturating_sub(self.clock.ticks(last)).max(since);
        let places = self.places.lock().clone();
        let times = Times {
            since,
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
