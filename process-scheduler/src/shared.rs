//! The state that all threads of a scheduler share: the queues of ready processes, the tables, and
//! the count of live processes.
use crate::{
    Info, Mailbox, Pid, Relay,
    group::ProcessGroup,
    guard::{Guarded, guarded},
    metrics::Counters,
    name_table::NameTable,
    node_table::NodeTable,
    panic_hook::{PanicHook, write_panic},
    registry::Registry,
    remote::RemoteTable,
    runnable::Runnable,
    timer::Timer,
};
use queue_global::ValueInjector;
use queue_spmc::{Steal, deque::Stealer};
use std::{
    any::{Any, TypeId},
    collections::HashMap,
    sync::{Arc, RwLock},
    task::Waker,
    time::Duration,
};
use sync_shim::{
    CachePadded,
    atomic::{
        AtomicBool, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed},
    },
    count,
    sync::{Condvar, Mutex},
};
use worker_idle::{Backoff, Idle};

/// The handlers of [`Builder::handler`](crate::Builder::handler). The key has the types of the
/// commands, of the outputs and of the errors.
type Handlers = HashMap<TypeId, Box<dyn Any + Send + Sync>>;

/// The settings of a scheduler.
pub(crate) struct Config {
    pub(crate) step_budget: u32,
    pub(crate) messages: u32,
    pub(crate) mailbox: Mailbox,
    pub(crate) max_processes: usize,
    pub(crate) shutdown_timeout: Duration,
    /// Whether the workers wait in a driver of the user.
    pub(crate) has_driver: bool,
    /// The state from which each worker's waits before parks begin.
    pub(crate) backoff: Backoff,
    pub(crate) node: u32,
    pub(crate) handlers: Handlers,
    pub(crate) on_panic: Guarded<Box<PanicHook>>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            step_budget: 32,
            messages: 128,
            mailbox: Mailbox::Unbounded,
            max_processes: usize::MAX,
            shutdown_timeout: Duration::from_secs(5),
            has_driver: false,
            backoff: Backoff::new(),
            node: 0,
            handlers: HashMap::new(),
            on_panic: Guarded::new(Box::new(write_panic)),
        }
    }
}

pub(crate) struct Shared {
    pub(crate) injector: ValueInjector<Runnable>,
    pub(crate) stealers: Vec<Stealer<Runnable>>,
    pub(crate) idle: Idle,
    /// The wakers that end the parks of the workers.
    pub(crate) wakers: Vec<Waker>,
    pub(crate) stop: AtomicBool,
    pub(crate) registry: Registry,
    pub(crate) counters: Counters,
    pub(crate) config: Config,
    pub(crate) timer: Timer,
    pub(crate) names: NameTable<Pid>,
    pub(crate) groups: Mutex<HashMap<String, ProcessGroup>>,
    pub(crate) relay: RwLock<Option<Arc<dyn Relay>>>,
    pub(crate) nodes: NodeTable,
    pub(crate) remote: RemoteTable,
    /// `begun` counts the spawns. `gone` counts the processes that have ended for good, and the
    /// spawns that were refused. There are two counts, so that a thread that spawns processes and
    /// a thread that ends processes write to different cache lines. The counts have 64 bits on each
    /// target, so they do not wrap.
    pub(crate) begun: CachePadded<AtomicU64>,
    pub(crate) gone: CachePadded<AtomicU64>,
    pub(crate) is_closed: AtomicBool,
    /// True if the last end must stop the workers (rule 5 of the shutdown).
    pub(crate) is_unattended: AtomicBool,
    pub(crate) ended: Mutex<()>,
    pub(crate) all_ended: Condvar,
}

impl Shared {
    /// Makes the state of workers with these deques and parkers.
    pub(crate) fn new(
        config: Config,
        stealers: Vec<Stealer<Runnable>>,
        wakers: Vec<Waker>,
    ) -> Self {
        let workers = stealers.len();
        Self {
            injector: ValueInjector::new(),
            stealers,
            idle: Idle::new(workers),
            wakers,
            stop: AtomicBool::new(false),
            registry: Registry::new(config.node),
            counters: Counters::new(workers),
            config,
            timer: Timer::new(),
            names: NameTable::new(),
            groups: Mutex::new(HashMap::new()),
            relay: RwLock::new(None),
            nodes: NodeTable::new(),
            remote: RemoteTable::new(),
            begun: CachePadded::new(count::shared(AtomicU64::new(0))),
            gone: CachePadded::new(count::shared(AtomicU64::new(0))),
            is_closed: AtomicBool::new(false),
            is_unattended: AtomicBool::new(false),
            ended: Mutex::new(()),
            all_ended: Condvar::new(),
        }
    }

    /// Wakes a worker for a process that was pushed, if a worker sleeps and none searches.
    pub(crate) fn notify(&self) {
        if let Some(worker) = self.idle.notify() {
            self.wake_worker(worker);
        }
    }

    /// Ends the present or the next park of a worker.
    pub(crate) fn wake_worker(&self, worker: usize) {
        // The waker of a driver is user code.
        guarded(|| self.wakers[worker].wake_by_ref());
    }

    /// Returns whether a queue has a process that a thief takes at once: see rule 4 of
    /// `worker.rs`.
    pub(crate) fn has_shared(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|stealer| stealer.len() > 1)
    }

    /// Returns whether any queue has a process.
    pub(crate) fn has_ready(&self) -> bool {
        !self.injector.is_empty() || self.stealers.iter().any(|stealer| !stealer.is_empty())
    }

    /// Takes a process that is left in a queue after the stop (rule 6 of `worker.rs`).
    pub(crate) fn take_left(&self) -> Option<Runnable> {
        // Ordering: Acquire pairs with `stop_workers`: a worker that sees the stop sees the
        // processes that were queued before it, also those that the shutdown has killed.
        if !self.stop.load(Acquire) {
            return None;
        }
        let from_injector = self.injector.pop();
        from_injector.or_else(|| self.stealers.iter().find_map(steal_one))
    }

    pub(crate) fn live(&self) -> usize {
        // Ordering: Acquire pairs with `ended`: a thread that counts an end sees the writes before
        // that end. A shutdown that leaks a stuck thread has no join that would order this.
        let gone = self.gone.load(Acquire);
        // Ordering: Relaxed. The begin of each process came before its end, so this load sees the
        // begins of all ends in `gone`. Later begins count as live, so the result is zero only if
        // nothing was live.
        self.begun.load(Relaxed).wrapping_sub(gone) as usize
    }

    /// Calls the hook for a panic of a process.
    pub(crate) fn report_panic(&self, process: &Info, text: &str) {
        guarded(|| (self.config.on_panic)(process, text));
    }

    /// Returns the number of spawns, including those that were refused.
    pub(crate) fn begun(&self) -> u64 {
        // Ordering: Relaxed, as the other counters.
        self.begun.load(Relaxed)
    }

    /// Counts a new process. False if there are too many.
    pub(crate) fn begin(&self) -> bool {
        // Ordering: Relaxed, the count guards nothing else.
        let before = self.begun.fetch_add(1, Relaxed);
        let most = self.config.max_processes as u64;
        // Ordering: Relaxed: a spawn that misses an end is refused.
        if before < most || before.saturating_sub(self.gone.load(Relaxed)) < most {
            return true;
        }
        self.ended();
        false
    }

    /// Counts an end.
    pub(crate) fn ended(&self) {
        // Ordering: Release pairs with `live`: the thread that waits for all ends sees what came
        // before each end. Acquire pairs with `stop_after_the_last_end`: the loads below then see
        // the close and `is_unattended`.
        self.gone.fetch_add(1, AcqRel);
        if self.is_closed() && self.live() == 0 {
            let guard = self.ended.lock();
            self.all_ended.notify_all();
            drop(guard);
            // Ordering: Relaxed, as the read-modify-write above orders this load.
            if self.is_unattended.load(Relaxed) {
                self.stop_unattended();
            }
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        // Ordering: Relaxed. `close` locks each shard of the registry after its store. A thread may
        // lock a shard and then load this flag. Either the thread sees the store, or `close` locks
        // that shard later and sees what the thread did before. An end that misses the store
        // notifies nobody, so `wait_for_all` looks again soon.
        self.is_closed.load(Relaxed)
    }
}

/// Steals the oldest process of a deque, unless the deque is empty.
fn steal_one(stealer: &Stealer<Runnable>) -> Option<Runnable> {
    loop {
        match stealer.steal() {
            Steal::Success { first, .. } => return Some(first),
            Steal::Empty => return None,
            // Another thread takes a process.
            Steal::Retry => sync_shim::thread::yield_now(),
        }
    }
}

#[cfg(test)]
pub(crate) mod models;
