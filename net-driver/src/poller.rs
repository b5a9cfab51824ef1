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
//!    and timers. During the first long poll no worker does: [`Driver::poll_overdue`], or a thread
//!    that stands by (`standby.rs`), finds the events and timers that come then. A worker
//!    that stops parking hands the role over too (rule 4 of `role.rs`).
//! 5. The thread that makes the first socket opens the reactor, unless the executor has
//!    ([`Driver::open`]), and unparks every worker afterwards. A worker that has not seen
//!    the reactor takes the token of that unpark in its present or next park, and sees the reactor
//!    in the park after that. So a worker that took the role before it saw the reactor does not
//!    keep the role.
//! 6. The kernel gives each event to one thread, also the event of a wake. So a thread that looks
//!    without a wait (rule 2) may take a wake that was meant for the thread that waits. The
//!    unparker does not repeat that wake. Therefore the looking thread wakes the reactor again, if
//!    the role is held, or if the workers park in parkers of their own.
use crate::{
    Driver,
    driver::Inner,
    reactor::{Reactor, shut_down_error},
    sys::{self, MOST, Os},
};
use std::{
    collections::VecDeque,
    io,
    panic::resume_unwind,
    sync::{OnceLock, atomic::AtomicUsize},
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

/// The largest number of events that a thread collects at once, unless
/// [`Driver::set_max_events`] sets another. Further events wait for the next look.
pub(crate) const MAX_EVENTS: usize = 64;

/// How a driver's sockets are polled: see [`Driver::with_polling`].
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
    /// The function that the executor has set by [`Driver::set_blocking`].
    blocking: OnceLock<Blocking>,
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
            start: Instant::now(),
            max_events: AtomicUsize::new(MAX_EVENTS),
            blocking: OnceLock::new(),
        }
    }

    pub(crate) fn max_events(&self) -> usize {
        // Ordering: Relaxed, as the number is only a setting.
        self.max_events.load(Relaxed)
    }

    /// Returns the reactor, if it was opened.
    #[inline]
    pub(crate) fn reactor(&self) -> Option<&Arc<Reactor<Os>>> {
        self.reactor.get()
    }

    /// Returns the reactor, if it was opened and the workers poll it.
    pub(crate) fn workers_reactor(&self) -> Option<&Arc<Reactor<Os>>> {
        self.reactor().filter(|_| self.polling != Polling::Thread)
    }

    /// Returns the reactor. Opens it if it is not open yet. If `with_thread`, the reactor then gets
    /// a thread of its own (rule 3).
    fn open(&self, with_thread: bool) -> io::Result<&Arc<Reactor<Os>>> {
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
            std::thread::sleep(Duration::from_millis(1));
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
        self.start.elapsed().as_nanos() as u64
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

    /// Starts the thread that polls the sockets instead of the workers (rule 3).
    fn spawn_poller(&self, reactor: Arc<Reactor<Os>>) -> io::Result<()> {
        #[cfg(all(test, target_os = "linux", not(selvedge_loom)))]
        tests::refuse_thread()?;
        let builder = std::thread::Builder::new().name("net-poller".into());
        let (is_shut_down, max) = (self.is_shut_down.clone(), self.max_events());
        let handle = builder.spawn(move || {
            let mut wakers = VecDeque::new();
            // Ordering: Relaxed: `shut_down` wakes the reactor after its store.
            while !is_shut_down.load(Relaxed) {
                if reactor.collect(None, max, &mut wakers).is_err() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                // The panic hook reports a panic of a waker. This thread goes on.
                panics::contain(|| wake_all(&mut wakers));
            }
        });
        drop(handle?);
        Ok(())
    }

    /// Runs a closure that may block: by the function of [`set_blocking`](Driver::set_blocking), or
    /// else on a new thread.
    pub(crate) fn run_blocking(&self, job: Box<dyn FnOnce() + Send>) -> io::Result<()> {
        match self.blocking.get() {
            Some(blocking) => blocking(job),
            None => {
                let builder = std::thread::Builder::new().name("net-driver".into());
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

impl Inner {
    /// Collects up to `max` events without a wait, and no more than a wait takes, if a busy worker
    /// is to poll now (rule 2).
    pub(crate) fn poll_if_due(&self, max: usize, out: &mut VecDeque<Waker>) {
        let poller = &self.poller;
        let Some(reactor) = poller.workers_reactor() else {
            return;
        };
        let now = poller.now();
        if poller.since_poll(now) < poller.interval {
            return;
        }
        // Two workers that come at once may both poll: each event goes to one of them.
        poller.record(now);
        self.look_beside(reactor, max.min(poller.max_events()), out);
    }

    /// Collects all events that have come, without a wait, even if a thread has just polled.
    pub(crate) fn poll_all(&self, out: &mut VecDeque<Waker>) {
        if let Some(reactor) = self.poller.workers_reactor() {
            self.poller.note_end();
            let was_woken = reactor.collect_all(self.poller.max_events(), out);
            self.pass_wake_on(reactor, was_woken);
        }
    }

    /// Collects up to `max` events without a wait, beside a thread that may wait in the reactor. If
    /// the look takes a wake that was meant for that thread, this function wakes the reactor again
    /// (rule 6).
    fn look_beside(&self, reactor: &Reactor<Os>, max: usize, out: &mut VecDeque<Waker>) {
        // This ignores an error: the parked worker gets it too.
        let was_woken = reactor.collect(Some(Duration::ZERO), max, out);
        self.pass_wake_on(reactor, was_woken.unwrap_or(false));
    }

    /// Wakes the reactor again, if a look has taken a wake that was meant for a waiting thread
    /// (rule 6).
    fn pass_wake_on(&self, reactor: &Reactor<Os>, was_woken: bool) {
        // `is_held` sees that the waiting thread has the role: that thread took the role before it
        // was unparked, and the kernel orders the wake of that unpark before this.
        if was_woken && (self.role.is_held() || self.parks_elsewhere()) {
            reactor.wake();
        }
    }

    /// Unparks a worker that waits on its thread, so that it takes the role (rule 4). Does nothing
    /// if a worker has the role. The caller has left the role.
    #[cold]
    pub(crate) fn hand_over(&self) {
        if self.role.is_still_held() {
            return;
        }
        let sleeper = self.tokens.iter().find(|token| token.is_in_thread());
        if let Some(sleeper) = sleeper {
            sleeper.unpark();
        }
    }

    /// Returns the reactor, for a socket. Opens it if it is not open yet.
    pub(crate) fn open_reactor(&self) -> io::Result<Arc<Reactor<Os>>> {
        let reactor = self.poller.open(self.has_polling_thread())?;
        let is_used = &self.poller.is_used;
        // Ordering: Relaxed. The tokens of the unparks publish the reactor (rule 5), and the
        // exchange only chooses the first caller.
        if !is_used.load(Relaxed) && !is_used.swap(true, Relaxed) && !self.has_polling_thread() {
            // Each worker is unparked here, whether or not a timer has activated the role before.
            match self.role.activate() {
                true => self.first_used(),
                false => self.unpark_all(),
            }
        }
        Ok(reactor.clone())
    }

    /// Returns whether a thread of the driver polls the sockets (rule 3).
    fn has_polling_thread(&self) -> bool {
        self.parks_elsewhere() || self.poller.polling == Polling::Thread
    }
}

impl Driver {
    /// Creates the driver of a runtime with this many workers, whose sockets are polled as
    /// `polling` says.
    ///
    /// # Panics
    /// If `workers` is 0.
    #[track_caller]
    pub fn with_polling(workers: usize, polling: Polling) -> Self {
        Self::with(workers, [].into(), polling)
    }

    /// Makes the kernel objects that sockets need. Without this call, the first socket makes them.
    ///
    /// ```
    /// net_driver::Driver::new(1).open()?;
    /// # std::io::Result::Ok(())
    /// ```
    ///
    /// # Errors
    /// If the kernel refuses the objects or the thread of [`Polling::Thread`], or if the driver has
    /// shut down.
    pub fn open(&self) -> io::Result<()> {
        let inner = self.inner();
        inner.poller.open(inner.has_polling_thread())?;
        // Ordering: Relaxed. A shutdown that this misses is as one that comes after this call.
        match inner.poller.is_shut_down.load(Relaxed) {
            true => Err(shut_down_error()),
            false => Ok(()),
        }
    }

    /// Sets how the driver runs closures that block, such as the lookup of a host's name. A runtime
    /// usually has threads for such closures. Without this call, each closure runs on a new thread.
    /// Only the first call counts.
    ///
    /// ```
    /// use std::sync::{Arc, atomic::{AtomicU32, Ordering::Relaxed}};
    ///
    /// let (driver, jobs) = (net_driver::Driver::new(1), Arc::new(AtomicU32::new(0)));
    /// let count = jobs.clone();
    /// driver.set_blocking(move |job| {
    ///     count.fetch_add(1, Relaxed);
    ///     std::thread::spawn(job);
    /// });
    /// let looked_up = driver.park(0).block_on(async {
    ///     net_driver::net::lookup_host("localhost:80").await.map(Iterator::count)
    /// });
    /// assert_eq!(jobs.load(Relaxed), 1);
    /// # drop(looked_up);
    /// ```
    pub fn set_blocking(&self, run: impl Fn(Box<dyn FnOnce() + Send>) + Send + Sync + 'static) {
        let _ = self.inner().poller.blocking.set(Box::new(run));
    }

    /// Sets how many events of sockets a thread collects at once: the length of the list that the
    /// kernel fills. 64 by default. Further events wait for the next look. A number above 65,536
    /// counts as that number.
    ///
    /// A small number lets the tasks of the first events run earlier, and a large one saves system
    /// calls. A [`poll`](crate::Park::poll) of a parker has a limit of its own, and takes no more.
    ///
    /// Each wait and look of a worker takes the number that was set last. The thread of
    /// [`Polling::Thread`] takes the number that is set when the first socket starts that thread: a
    /// later call does not change it. Above 64, the driver keeps the list that the last wait has
    /// used.
    ///
    /// ```
    /// net_driver::Driver::new(1).set_max_events(1_024);
    /// ```
    ///
    /// # Panics
    /// If `max` is 0.
    #[track_caller]
    pub fn set_max_events(&self, max: usize) {
        assert!(max > 0, "a look takes at least 1 event, not 0");
        // Ordering: Relaxed, as the number is only a setting.
        self.inner().poller.max_events.store(max.min(MOST), Relaxed);
    }

    /// Does nothing unless the driver [is due](Self::is_due), and has been so for the time `late`:
    /// a timer is due for that long, or no thread has polled the sockets for that long. Collects
    /// the timers that are due, and the events of sockets. Wakes the tasks of both on this thread,
    /// and returns the number of wakes.
    ///
    /// This is for a thread that watches a runtime, such as a monitor: all of the workers may be in
    /// long polls. A worker calls [`poll`](crate::Park::poll) of its parker instead. If there is
    /// nothing to do, this costs a few loads and perhaps a reading of the clock.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// assert_eq!(net_driver::Driver::new(1).poll_overdue(Duration::ZERO), 0);
    /// ```
    ///
    /// # Panics
    /// If a waker panics.
    pub fn poll_overdue(&self, late: Duration) -> usize {
        let (driver, mut out) = (self.inner(), VecDeque::new());
        if !driver.role.is_active() || !driver.is_due_for(late) {
            return 0;
        }
        driver.poll_if_due(usize::MAX, &mut out);
        let no_worker = driver.tokens.len();
        driver
            .timers
            .collect_due(no_worker, usize::MAX, || driver.now(), &mut out);
        let count = out.len();
        wake_all(&mut out);
        count
    }

    /// Returns the time until [`poll_overdue`](Self::poll_overdue) has something to do, unless a
    /// worker looks at timers and sockets before. `None` if a parked worker waits for them, or if
    /// there are none.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// assert_eq!(net_driver::Driver::new(1).until_overdue(Duration::ZERO), None);
    /// ```
    pub fn until_overdue(&self, late: Duration) -> Option<Duration> {
        let driver = self.inner();
        driver
            .role
            .is_active()
            .then(|| driver.until_due_for(late))?
    }

    /// Returns the number of sockets, or other sources, that are registered. Costs a lock.
    ///
    /// ```
    /// assert_eq!(net_driver::Driver::new(1).sources(), 0);
    /// ```
    pub fn sources(&self) -> usize {
        self.inner()
            .poller
            .reactor()
            .map_or(0, |reactor| reactor.registered())
    }
}

/// In the models, a kernel made for models makes the events.
#[cfg(all(test, selvedge_loom))]
mod models;
#[cfg(all(test, target_os = "linux", not(selvedge_loom)))]
mod tests;
