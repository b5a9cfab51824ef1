//! The watchdog: a thread of the system that ends the process if a simulated thread never switches.
//!
//! It looks at each run that goes on, ten times a second, and counts the looks since the run's last
//! sign of life. So a process that was stopped for a while, as in a debugger, is not ended.
use std::{
    io::{self, Write},
    process, ptr,
    sync::{
        Arc, Mutex, Once, PoisonError,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::Duration,
};

const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

/// The runs that go on.
static RUNS: Mutex<Vec<Arc<Signs>>> = Mutex::new(Vec::new());

/// The signs of life of a run. Its thread writes them, and the watchdog reads them.
struct Signs {
    seed: u64,
    /// The most looks in a row without a sign of life.
    limit: u64,
    switches: AtomicU64,
    points: AtomicU64,
    /// The thread that runs, or 0.
    current: AtomicU32,
    names: Mutex<Vec<Option<String>>>,
    /// The watchdog's: the sum of switches and points at its last look, and the looks since that
    /// sum has changed.
    seen: Mutex<(u64, u64)>,
}

/// A run, from its begin to its end.
pub(crate) struct Watched(Option<Arc<Signs>>);

impl Watched {
    pub(crate) fn new(seed: u64, limit: Option<Duration>) -> Self {
        static STARTED: Once = Once::new();
        let Some(limit) = limit else {
            return Self(None);
        };
        let looks = limit.as_nanos() / BETWEEN_LOOKS.as_nanos();
        let signs = Arc::new(Signs {
            seed,
            limit: u64::try_from(looks).unwrap_or(u64::MAX).max(1),
            switches: AtomicU64::new(0),
            points: AtomicU64::new(0),
            current: AtomicU32::new(0),
            names: Mutex::default(),
            seen: Mutex::new((u64::MAX, 0)),
        });
        STARTED.call_once(|| {
            let watchdog = thread::Builder::new().name("selvedge-sim watchdog".to_owned());
            // Without this thread a loop that never switches hangs, and all else works.
            drop(watchdog.spawn(watch));
        });
        lock(&RUNS).push(signs.clone());
        Self(Some(signs))
    }

    /// Notes that this thread runs now, or the simulator (0).
    #[inline]
    pub(crate) fn switch_to(&self, thread: u32) {
        if let Some(signs) = &self.0 {
            // Ordering: Relaxed, as only this thread writes it.
            let switches = signs.switches.load(Relaxed);
            // Ordering: Relaxed here and below: the watchdog looks again and again.
            signs.switches.store(switches + 1, Relaxed);
            // Ordering: as above.
            signs.current.store(thread, Relaxed);
        }
    }

    /// Notes that the thread has come to this point, and goes on.
    #[inline]
    pub(crate) fn beat(&self, points: u64) {
        if let Some(signs) = &self.0 {
            // Ordering: Relaxed, as in `switch_to`.
            signs.points.store(points, Relaxed);
        }
    }

    pub(crate) fn add_thread(&self, name: Option<&str>) {
        if let Some(signs) = &self.0 {
            lock(&signs.names).push(name.map(str::to_owned));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(signs) = &self.0 {
            lock(&RUNS).retain(|other| !ptr::eq(&**other, &**signs));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn watch() {
    loop {
        thread::sleep(BETWEEN_LOOKS);
        lock(&RUNS).iter().for_each(|run| run.look());
    }
}

impl Signs {
    fn look(&self) {
        // Ordering: Relaxed, as a sign that is late is seen at the next look.
        let sum = self
            .switches
            .load(Relaxed)
            .wrapping_add(self.points.load(Relaxed));
        let looks = {
            let mut seen = lock(&self.seen);
            let looks = if seen.0 == sum { seen.1 + 1 } else { 0 };
            *seen = (sum, looks);
            looks
        };
        if looks > self.limit {
            self.abort();
        }
    }

    /// Ends the process: nothing else can end a thread that does not switch.
    fn abort(&self) {
        // Ordering: Relaxed, as the thread was stored long ago.
        let id = self.current.load(Relaxed);
        let names = lock(&self.names);
        let name = (id as usize).checked_sub(1).and_then(|at| names.get(at));
        let name = name.map_or("simulator", |name| name.as_deref().unwrap_or("unnamed"));
        let time = BETWEEN_LOOKS * u32::try_from(self.limit).unwrap_or(u32::MAX);
        let seed = self.seed;
        let report = format!(
            "selvedge-sim: with seed {seed}, thread {id} ({name}) has not switched for {time:?}.\n\
             It spins without a yield, or waits in the system. So the process aborts.\n\
             `Sim::watchdog` sets another limit, or none.\n"
        );
        // The test harness does not capture this.
        let _ = io::stderr().write_all(report.as_bytes());
        process::abort();
    }
}
