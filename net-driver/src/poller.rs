//! How a driver polls its sockets, and which thread does it.
//!
//! A driver has no kernel object before its first socket: until then a worker parks on its thread.
//! After that:
//!
//! 1. The worker with the poller role (see `role.rs`) waits in the reactor. The others wait on
//!    their threads.
//! 2. A busy worker polls the reactor, between two tasks, if no thread waits in it and no thread
//!    has polled it for [`INTERVAL`]. A clock decides this and not a count of tasks, because the
//!    polls of tasks may be long.
//!    The only worker of a driver polls after [`INTERVAL_OF_ONLY_WORKER`]: while it is busy nobody
//!    else does, and a task that always yields runs again and again until a poll finds events.
//! 3. A thread of the driver waits in the reactor, and wakes the tasks, if the workers park in
//!    parkers of their own (see `over.rs`) or if the runtime asks for it ([`Polling::Thread`]).
//! 4. A worker that leaves the role hands the role over, if the worker has collected wakers and if
//!    no thread had polled for [`INTERVAL`] when the worker took the role. It then unparks another
//!    parked worker, which takes the role. So during a task's long poll, a worker waits for events
//!    and timers. During the first long poll no worker does: `Driver::poll_overdue`, or a thread
//!    that stands by (`standby.rs`), finds the events and timers that come then. A worker that
//!    stops parking hands the role over too (rule 4 of `role.rs`).
//! 5. The thread that makes the first socket opens the reactor, unless the executor has
//!    (`Driver::open`), and unparks every worker afterwards. A worker that has not seen the reactor
//!    takes the token of that unpark in its present or next park, and sees the reactor in the park
//!    after that. So a worker that took the role before it saw the reactor does not keep the role.
//! 6. The kernel gives each event to one thread, also the event of a wake. So a thread that looks
//!    without a wait (rule 2) may take a wake that was meant for the thread that waits. The
//!    unparker does not repeat that wake. Therefore the looking thread wakes the reactor again, if
//!    the role is held, or if the workers park in parkers of their own.
use crate::{
    looks::Looks,
    reactor::{Reactor, shut_down_error},
    sys::{self, Os},
};
use std::{
    collections::VecDeque,
    io,
    panic::resume_unwind,
    sync::{MutexGuard, OnceLock, PoisonError, atomic::AtomicUsize},
    task::Waker,
    time::{Duration, Instant},
};
use sync_shim::{
    atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    panics,
    sync::{Arc, Mutex},
};

/// The time without a poll by any thread after which a busy worker polls.
const INTERVAL: Duration = Duration::from_micros(500);

/// The same for the only worker of a driver. On the machine of the benchmarks the system call then
/// takes less than a hundredth of the worker's time. Where a driver has several workers, an
/// interval this short takes events from the idle ones: on two processors the p99 of the row
/// `http_50` is then three times as long.
const INTERVAL_OF_ONLY_WORKER: Duration = Duration::from_micros(100);

/// The largest number of events that a thread collects at once, unless `Driver::set_max_events`
/// sets another. Further events wait for the next look.
pub(crate) const MAX_EVENTS: usize = 64;

/// How a driver's sockets are polled: see [`Driver::with_polling`](crate::Driver::with_polling).
///
/// ```
/// use net_driver::{Driver, Polling};
///
/// for polling in [Polling::IdleWorker, Polling::Thread] {
///     let driver = Driver::with_polling(1, polling);
///     driver.open()?;
///     driver.park(0).block_on(async {
///         let (sender, receiver) = net_driver::net::unix::pipe::pipe()?;
///         sender.try_write(b"a")?;
///         receiver.readable().await
///     })?;
/// }
/// # std::io::Result::Ok(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Polling {
    /// One idle worker waits for all sockets. A busy worker looks between two tasks if no worker
    /// waits and nobody has looked for 500 µs. The only worker of a driver looks after 100 µs.
    #[default]
    IdleWorker,
    /// A thread of the driver waits for all sockets, and wakes their tasks. No worker polls them.
    Thread,
}

/// A function that runs a blocking closure on a thread that may block.
pub(crate) type Blocking = Box<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// The sockets' half of a driver.
pub(crate) struct Poller {
    reactor: sys::OnceLock<Arc<Reactor<Os>>>,
    /// Whether there has been a socket.
    is_used: AtomicBool,
    /// Held while the reactor is opened.
    opening: Mutex<()>,
    is_shut_down: Arc<AtomicBool>,
    /// The time of the last poll, in nanoseconds since `start`. The thread of rule 3 does not
    /// record its polls.
    polled_at: AtomicU64,
    start: Instant,
    polling: Polling,
    /// The time without a poll by any thread after which a busy worker polls (rule 2).
    interval: Duration,
    /// The largest number of events that a thread collects at once. It is an atomic of std, so that
    /// models need not explore it.
    max_events: AtomicUsize,
    /// The function that the executor has set by `Driver::set_blocking`.
    blocking: OnceLock<Blocking>,
    /// Only the thread with the role uses this (rule 1 of `role.rs`), so the lock is always free.
    /// It is a lock of std, so that models need not explore it.
    looks: std::sync::Mutex<Looks>,
}

impl Poller {
    pub(crate) fn new(polling: Polling, workers: usize) -> Self {
        Self {
            polling,
            interval: match polling {
                Polling::IdleWorker if workers == 1 => INTERVAL_OF_ONLY_WORKER,
                _ => INTERVAL,
            },
            reactor: sys::OnceLock::new(),
            is_used: AtomicBool::new(false),
            opening: Mutex::new(()),
            is_shut_down: Arc::new(AtomicBool::new(false)),
            polled_at: AtomicU64::new(0),
            start: sync_shim::time::now(),
            max_events: AtomicUsize::new(MAX_EVENTS),
            blocking: OnceLock::new(),
            looks: std::sync::Mutex::new(Looks::new()),
        }
    }

    /// Returns what earlier looks and waits found, for the thread that has the role.
    pub(crate) fn looks(&self) -> MutexGuard<'_, Looks> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn max_events(&self) -> usize {
        // Ordering: Relaxed, as the number is only a setting.
        self.max_events.load(Relaxed)
    }

    pub(crate) fn set_max_events(&self, max: usize) {
        // Ordering: Relaxed, as the number is only a setting.
        self.max_events.store(max, Relaxed);
    }

    /// Sets the function that runs closures that may block. Only the first call counts.
    pub(crate) fn set_blocking(&self, run: Blocking) {
        let _ = self.blocking.set(run); // An error hands a later `run` back.
    }

    /// Returns the reactor, if it was opened.
    #[inline]
    pub(crate) fn reactor(&self) -> Option<&Arc<Reactor<Os>>> {
        self.reactor.get()
    }

    /// Returns the reactor, if it was opened and the workers poll it.
    pub(crate) fn workers_reactor(&self) -> Option<&Arc<Reactor<Os>>> {
        self.reactor().filter(|_| !self.has_thread())
    }

    /// Returns whether a thread of its own polls the reactor, and no worker does.
    pub(crate) fn has_thread(&self) -> bool {
        self.polling == Polling::Thread
    }

    /// Returns whether this is the first call.
    pub(crate) fn begin_use(&self) -> bool {
        // Ordering: Relaxed. The tokens of the unparks publish the reactor (rule 5), and the
        // exchange only chooses the first caller.
        !self.is_used.load(Relaxed) && !self.is_used.swap(true, Relaxed)
    }

    /// Returns the reactor. Opens it if it is not open yet. If `with_thread`, the reactor then gets
    /// a thread of its own (rule 3).
    pub(crate) fn open(&self, with_thread: bool) -> io::Result<&Arc<Reactor<Os>>> {
        if let Some(reactor) = self.reactor.get() {
            return Ok(reactor);
        }
        let _opening = self.opening.lock();
        // Ordering: Relaxed. `shut_down` sets the flag under the lock.
        if self.is_shut_down.load(Relaxed) {
            return Err(shut_down_error());
        }
        if let Some(reactor) = self.reactor.get() {
            return Ok(reactor);
        }
        let reactor = Arc::new(Reactor::open()?);
        if with_thread {
            // This comes before any thread sees the reactor: if the system refuses a thread, the
            // next call tries again.
            self.spawn_poller(reactor.clone())?;
        }
        Ok(self.reactor.get_or_init(|| reactor))
    }

    /// Waits in the reactor for the first events, at most for `limit`.
    pub(crate) fn wait(&self, limit: Option<Duration>, out: &mut VecDeque<Waker>) {
        let Some(reactor) = self.reactor() else {
            return;
        };
        if reactor.collect(limit, self.max_events(), out).is_err() {
            // Other code has closed a descriptor of the driver. The worker must not spin on the
            // error.
            sync_shim::sim::thread::sleep(Duration::from_millis(1));
        }
        self.note_end();
    }

    /// Collects the events that have already arrived, without a wait.
    pub(crate) fn look(&self, out: &mut VecDeque<Waker>) {
        if let Some(reactor) = self.reactor() {
            // This ignores an error: the wait that follows gets it too.
            let _ = reactor.collect(Some(Duration::ZERO), self.max_events(), out);
        }
    }

    /// Returns whether no thread has polled for [`INTERVAL`]. A worker that takes the role calls
    /// this (rule 4).
    pub(crate) fn is_overdue(&self) -> bool {
        self.since_poll(self.now()) >= INTERVAL
    }

    /// If a busy worker is to poll now (rule 2), records the time as that of a poll, and returns
    /// true.
    pub(crate) fn begin_if_due(&self) -> bool {
        let now = self.now();
        let is_due = self.since_poll(now) >= self.interval;
        if is_due {
            // Two workers that come at once may both poll: each event goes to one of them.
            self.record(now);
        }
        is_due
    }

    /// Returns the time from the last poll by any thread to `now`.
    fn since_poll(&self, now: u64) -> Duration {
        // Ordering: Relaxed. The time only spaces the polls; the kernel orders the events
        // themselves.
        Duration::from_nanos(now.saturating_sub(self.polled_at.load(Relaxed)))
    }

    /// Notes that this thread has just polled.
    pub(crate) fn note_end(&self) {
        self.record(self.now());
    }

    /// Returns whether the workers poll the reactor, a busy worker is to do so now (rule 2), and no
    /// thread has polled for the time `late`.
    pub(crate) fn is_due_for(&self, late: Duration) -> bool {
        self.workers_reactor().is_some() && self.since_poll(self.now()) >= late.max(self.interval)
    }

    /// Returns the time until [`is_due_for`](Self::is_due_for) will be true of `late`, unless a
    /// thread polls before. `None` if the workers poll no reactor.
    pub(crate) fn until_due_for(&self, late: Duration) -> Option<Duration> {
        let interval = late.max(self.interval);
        self.workers_reactor()?;
        Some(interval.saturating_sub(self.since_poll(self.now())))
    }

    fn now(&self) -> u64 {
        if cfg!(selvedge_loom) {
            return 0; // No time passes in a model.
        }
        sync_shim::time::since(self.start).as_nanos() as u64
    }

    fn record(&self, now: u64) {
        // Ordering: Relaxed, as in `since_poll`.
        self.polled_at.store(now, Relaxed);
    }

    /// Ends all waits of sockets with an error, and refuses further sockets. Takes the wakers of
    /// the tasks that waited.
    pub(crate) fn shut_down(&self, out: &mut VecDeque<Waker>) {
        let opening = self.opening.lock();
        // Ordering: Relaxed. The lock orders the store for `open`. The thread of rule 3 reads only
        // this flag, and the wake of the reactor makes that thread read it again.
        self.is_shut_down.store(true, Relaxed);
        drop(opening);
        if let Some(reactor) = self.reactor() {
            reactor.shut_down(out);
            reactor.wake();
        }
    }

    pub(crate) fn is_shut_down(&self) -> bool {
        // Ordering: Relaxed. A shutdown that this misses is as one that comes after this call.
        self.is_shut_down.load(Relaxed)
    }

    /// Starts the thread that polls the sockets instead of the workers (rule 3).
    fn spawn_poller(&self, reactor: Arc<Reactor<Os>>) -> io::Result<()> {
        #[cfg(all(test, target_os = "linux", not(selvedge_loom)))]
        tests::refuse_thread()?;
        let builder = sync_shim::sim::thread::Builder::new().name("net-poller".into());
        let (is_shut_down, max) = (self.is_shut_down.clone(), self.max_events());
        let handle = builder.spawn(move || {
            let mut wakers = VecDeque::new();
            // Ordering: Relaxed: `shut_down` wakes the reactor after its store.
            while !is_shut_down.load(Relaxed) {
                if reactor.collect(None, max, &mut wakers).is_err() {
                    sync_shim::sim::thread::sleep(Duration::from_millis(1));
                }
                // The panic hook reports a panic of a waker. This thread goes on.
                panics::contain(|| wake_all(&mut wakers));
            }
        });
        drop(handle?);
        Ok(())
    }

    /// Runs a closure that may block: by the function of `Driver::set_blocking`, or else on a new
    /// thread.
    pub(crate) fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        match self.blocking.get() {
            Some(blocking) => blocking(job),
            None => {
                let builder = sync_shim::sim::thread::Builder::new().name("net-driver".into());
                drop(builder.spawn(job)?);
            }
        }
        Ok(())
    }
}

/// Calls each waker, also if some of them panic. Resumes the first panic afterwards.
pub(crate) fn wake_all(wakers: &mut VecDeque<Waker>) {
    let mut panicked = None;
    while let Some(waker) = wakers.pop_front() {
        if let Err(payload) = panics::catch(|| waker.wake()) {
            match panicked {
                None => panicked = Some(payload),
                Some(_) => panics::discard(payload),
            }
        }
    }
    if let Some(payload) = panicked {
        resume_unwind(payload);
    }
}

/// In the models, a kernel made for models makes the events.
#[cfg(all(test, selvedge_loom))]
mod models;
#[cfg(all(test, target_os = "linux", not(selvedge_loom)))]
mod tests;
