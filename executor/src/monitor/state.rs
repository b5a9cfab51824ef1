//! The monitor's settings, and its state, which the runtime shares.
use crate::{observe::stall::StallHook, settings::attributes::Attributes};
use sched_monitor::Doorbell;
use std::time::Duration;
use sync_shim::{
    atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed},
    sync::Mutex,
    thread,
};

/// Whether there may be a monitor. In a model there is none, as a model has no time.
pub(crate) const WATCHES: bool = cfg!(not(any(selvedge_loom, selvedge_shuttle)));

pub(super) const OFF: u32 = 0;
pub(super) const UNSTARTED: u32 = 1;
pub(super) const STARTING: u32 = 2;
pub(super) const RUNNING: u32 = 3;
pub(super) const REFUSED: u32 = 4;

/// The builder's settings for the monitor.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) on: bool,
    /// Whether `build` starts the monitor's thread.
    pub(crate) at_once: bool,
    pub(crate) threshold: Duration,
    pub(crate) reports_per_minute: u32,
    pub(crate) on_stall: Option<StallHook>,
    /// Whether the start of the thread fails, because the test wants it to.
    #[cfg(test)]
    pub(crate) fails: bool,
    /// Whether the monitor ends no time slice for its length alone.
    #[cfg(test)]
    pub(crate) endless_slices: bool,
}

impl Settings {
    pub(crate) fn new() -> Self {
        Self {
            on: true,
            at_once: false,
            threshold: Duration::from_millis(25),
            reports_per_minute: 5,
            on_stall: None,
            #[cfg(test)]
            fails: false,
            #[cfg(test)]
            endless_slices: false,
        }
    }

    pub(crate) fn turn_off(&mut self) {
        self.on = false;
    }

    pub(crate) fn is_on(&self) -> bool {
        self.on
    }
}

/// The monitor's state, which the runtime shares.
pub(crate) struct Monitor {
    pub(super) state: AtomicU32,
    pub(super) bell: Doorbell,
    /// The number of cores that are not dropped yet.
    cores: AtomicUsize,
    pub(super) thread: Mutex<Option<thread::JoinHandle<()>>>,
    pub(super) settings: Settings,
    pub(super) attributes: Attributes,
    pub(super) stalls: AtomicU64,
}

impl Monitor {
    /// Gives this thread the attributes that each thread of the runtime has.
    pub(crate) fn apply_attributes(&self) {
        self.attributes.apply();
    }

    pub(crate) fn new(settings: Settings, cores: usize, attributes: Attributes) -> Self {
        let on = settings.on && WATCHES;
        Self {
            state: AtomicU32::new(if on { UNSTARTED } else { OFF }),
            bell: Doorbell::new(),
            cores: AtomicUsize::new(cores),
            thread: Mutex::new(None),
            settings,
            attributes,
            stalls: AtomicU64::new(0),
        }
    }

    /// Whether the runtime has a monitor, or will have one.
    pub(crate) fn is_on(&self) -> bool {
        WATCHES && self.settings.on
    }

    /// Wakes the monitor, if there may be one, after a worker became busy. Costs a fence and a
    /// load.
    #[inline]
    pub(crate) fn ring(&self) {
        if self.is_on() {
            self.bell.ring();
        }
    }

    /// Counts the drop of a core (rule 4).
    pub(crate) fn core_dropped(&self) {
        // Ordering: Relaxed. The count only says which drop is the last, and the bell has a lock.
        // The monitor gets a core only from `Remote::call`, which has orderings of its own.
        if WATCHES && self.cores.fetch_sub(1, Relaxed) == 1 {
            self.bell.stop();
        }
    }

    /// Waits for the end of the thread, after all workers have ended.
    pub(crate) fn join(&self) {
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // Panics of duties and of hooks are contained.
            let _ = thread.join();
        }
    }

    /// The number of reports of stalls, including those that were held back.
    pub(crate) fn stalls(&self) -> u64 {
        // Ordering: Relaxed, as a snapshot is approximate.
        self.stalls.load(Relaxed)
    }

    /// Whether the thread was started.
    pub(crate) fn is_running(&self) -> bool {
        // Ordering: Relaxed; the state publishes nothing.
        self.state.load(Relaxed) == RUNNING
    }

    /// Whether the thread could not be started.
    pub(crate) fn is_refused(&self) -> bool {
        // Ordering: Relaxed, as a snapshot is approximate.
        self.state.load(Relaxed) == REFUSED
    }
}
