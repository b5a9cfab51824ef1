//! A runtime's driver.
//!
//! A runtime makes one [`Driver`] and gives each worker a [`WorkerPark`](crate::WorkerPark) of that
//! driver. While a thread runs tasks, the runtime sets that thread's *current driver*, and the
//! index of its worker. A sleep uses the current driver of the thread that polls it first. A socket
//! uses the current driver of the thread that makes it.
//!
//! | path | file |
//! |---|---|
//! | park and unpark a worker | `park.rs`, `token.rs`; `over.rs` for a parker of another kind |
//! | which parked thread waits for timers and sockets | `role.rs`, `standby.rs`, `guest.rs` |
//! | arm a timer, and unpark the poller for it | `time/entry.rs`, `threads.rs` |
//! | look for the events of sockets | `poller.rs` has the rules, `sockets.rs` the calls |
//! | find the current driver | `current.rs` |
use crate::{
    poller::{self, Poller, Polling},
    threads::Threads,
    time::{Timers, clock},
};
use std::{
    collections::VecDeque,
    fmt,
    panic::{RefUnwindSafe, UnwindSafe},
    sync::{Arc, Weak},
    task::Waker,
    time::Duration,
};
use sync_shim::{
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    panics::contain,
};

mod current;
mod sockets;

pub use current::Entered;
pub(crate) use current::with_current;

/// The timers and sockets of one runtime, driven by its idle workers.
///
/// A clone is a handle of the same driver. The drop of the last handle [shuts the driver
/// down](Driver::shutdown), and catches the panics of wakers.
///
/// ```
/// use net_driver::{Driver, time};
/// use std::time::Duration;
///
/// let driver = Driver::new(1);
/// let begun = time::Instant::now();
/// // A worker whose only task is this one:
/// driver.park(0).block_on(time::sleep(Duration::from_millis(5)));
/// assert!(begun.elapsed() >= Duration::from_millis(5));
/// ```
#[derive(Clone)]
pub struct Driver(Arc<Inner>);

/// A reference that does not keep its driver alive.
#[derive(Debug)]
pub(crate) struct WeakDriver(Weak<Inner>);

impl WeakDriver {
    /// Returns the driver, unless its last handle was dropped.
    pub(crate) fn upgrade(&self) -> Option<Driver> {
        self.0.upgrade().map(Driver)
    }
}

/// The state that the clones of a driver, its parks and its frames share.
pub(crate) struct Inner {
    pub(crate) threads: Arc<Threads>,
    pub(crate) timers: Timers,
    pub(crate) poller: Arc<Poller>,
    /// The number of [`WorkerPark`](crate::WorkerPark)s and [`WorkerTimers`](crate::WorkerTimers)
    /// of workers that were made and not dropped yet.
    parks: AtomicUsize,
    /// For each worker, whether one of these parks or timers is the worker's.
    has_park: Box<[AtomicBool]>,
    pub(crate) left_out: LeftOut,
}

/// The parts that a runtime has left out: see [`Driver::without`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LeftOut {
    pub(crate) sleeps: bool,
    pub(crate) sockets: bool,
}

// As for `Threads`.
impl UnwindSafe for Inner {}
impl RefUnwindSafe for Inner {}

impl Driver {
    /// Returns the first deadline of all timers, as the time since the start of the clock, which is
    /// the start of the simulation. For the checks of a simulation. Changes nothing.
    #[cfg(selvedge_sim)]
    #[doc(hidden)]
    pub fn first_deadline(&self) -> Option<Duration> {
        self.inner().timers.peek_exact().map(clock::since_start)
    }

    /// Creates the driver of a runtime with this many workers.
    ///
    /// # Panics
    /// If `workers` is 0.
    pub fn new(workers: usize) -> Self {
        Self::with(workers, [].into(), Polling::default())
    }

    /// Creates the driver of a runtime whose workers park in parkers of their own. There is one
    /// waker for each worker, in the order of the workers' indices. It must end the park of that
    /// worker.
    ///
    /// Each worker drives its timers over its own parker, by the handle that
    /// [`timers`](Self::timers) returns.
    ///
    /// ```
    /// use net_driver::Driver;
    /// use worker_idle::park::{self, Park, ThreadPark};
    ///
    /// let park = ThreadPark::new();
    /// let driver = Driver::with_wakers([park.waker()]);
    /// driver.scope(Some(0), || assert!(Driver::current().is_some()));
    /// ```
    ///
    /// # Panics
    /// If there is no waker.
    #[track_caller]
    pub fn with_wakers(wakers: impl IntoIterator<Item = Waker>) -> Self {
        let wakers: Box<[_]> = wakers.into_iter().collect();
        Self::with(wakers.len(), wakers, Polling::default())
    }

    #[track_caller]
    pub(crate) fn with(workers: usize, wakers: Box<[Waker]>, polling: Polling) -> Self {
        assert!(workers > 0, "a driver has at least one worker");
        let poller = Arc::new(Poller::new(polling, workers));
        let threads = Arc::new(Threads::new(workers, wakers, &poller));
        Self(Arc::new(Inner {
            timers: Timers::new(workers, &threads),
            threads,
            poller,
            parks: AtomicUsize::new(0),
            has_park: (0..workers).map(|_| AtomicBool::new(false)).collect(),
            left_out: LeftOut::default(),
        }))
    }

    /// Leaves sockets, or the sleeps that [`checks`](crate::checks) checks, out of a new driver:
    /// their creation panics, as in a runtime of tokio's that has not enabled them.
    ///
    /// # Panics
    /// If the driver has a clone or a park already.
    #[doc(hidden)]
    #[track_caller]
    pub fn without(mut self, sleeps: bool, sockets: bool) -> Self {
        let inner = Arc::get_mut(&mut self.0).expect("the driver is new");
        inner.left_out = LeftOut { sleeps, sockets };
        self
    }

    /// Returns a waker that ends the present or the next park of the worker with this index.
    ///
    /// For a driver made by [`with_wakers`](Self::with_wakers) this is the waker that the caller
    /// gave. With the feature `test-util` the waker also marks the worker as busy, so that a paused
    /// clock does not jump. The clock does not know of an unpark by other means: then it may jump
    /// before the unparked worker has looked for tasks.
    ///
    /// ```
    /// use net_driver::Driver;
    /// use worker_idle::park::{self, Park, ThreadPark};
    ///
    /// let mut park = ThreadPark::new();
    /// let driver = Driver::with_wakers([park.waker()]);
    /// driver.waker(0).wake();
    /// driver.timers(0).over(&mut park).park(); // Returns at once.
    /// ```
    ///
    /// # Panics
    /// If there is no such worker.
    #[track_caller]
    pub fn waker(&self, worker: usize) -> Waker {
        self.0.threads.assert_worker(worker);
        self.0.threads.waker(worker)
    }

    /// Sets a function that the first timer of the driver calls, or the first socket that workers
    /// poll. Only the first call of this method counts.
    ///
    /// A runtime may start the thread that calls [`poll_overdue`](Self::poll_overdue) there: until
    /// then there is nothing to poll. The function runs on the thread that arms the timer or makes
    /// the socket, where this driver is current. It must not block.
    ///
    /// ```
    /// use net_driver::{Driver, time};
    /// use std::{sync::mpsc, time::Duration};
    ///
    /// let (driver, (sender, used)) = (Driver::new(1), mpsc::channel());
    /// driver.on_first_use(move || sender.send(()).unwrap());
    /// assert!(used.try_recv().is_err());
    /// driver.park(0).block_on(time::sleep(Duration::from_millis(1)));
    /// assert!(used.try_recv().is_ok());
    /// ```
    pub fn on_first_use(&self, f: impl Fn() + Send + Sync + 'static) {
        self.0.threads.set_first_use(Box::new(f));
    }

    /// Returns whether a busy worker should call [`poll`](crate::Park::poll) of its parker soon.
    /// This is so if no parked worker waits for timers and sockets, and if either a timer is due or
    /// no thread has polled the sockets for 500 µs (or for 100 µs, if the driver has one worker).
    ///
    /// Before the first timer or socket this costs one load, and no reading of the clock.
    ///
    /// ```
    /// assert!(!net_driver::Driver::new(1).is_due());
    /// ```
    #[inline]
    pub fn is_due(&self) -> bool {
        self.0.threads.role.is_active() && self.0.is_due_for(Duration::ZERO)
    }

    /// Ends the sockets and the timers: wakes the tasks that wait for them, and refuses new sockets
    /// and timers.
    ///
    /// A runtime calls this when the runtime shuts down. The drop of the last park does the same,
    /// and so does the drop of the last handle. The next operation on a socket fails. The next poll
    /// of a sleep that waits in this driver panics, and so does the first poll of a new sleep. Such
    /// a poll does not panic if the sleep's deadline has passed, or if another driver is current.
    ///
    /// ```
    /// use std::{future::Future, pin::pin, task::{Context, Waker}, time::Duration};
    ///
    /// let driver = net_driver::Driver::new(1);
    /// driver.shutdown();
    /// let mut sleep = pin!(net_driver::time::sleep(Duration::from_secs(9)));
    /// let mut poll = || sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    /// let poll = || driver.scope(None, || poll());
    /// assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(poll)).is_err());
    /// ```
    ///
    /// # Panics
    /// If a waker panics, after all wakers were called.
    pub fn shutdown(&self) {
        let mut wakers = VecDeque::new();
        self.0.shut_down(&mut wakers);
        poller::wake_all(&mut wakers);
    }

    pub(crate) fn downgrade(&self) -> WeakDriver {
        WeakDriver(Arc::downgrade(&self.0))
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Inner {
        &self.0
    }

    #[inline]
    pub(crate) fn threads(&self) -> &Threads {
        &self.0.threads
    }
}

impl Inner {
    /// Adds the park of a worker to the count of parks.
    ///
    /// # Panics
    /// If the worker has a park already.
    #[track_caller]
    pub(crate) fn add_park(&self, worker: usize) {
        // Ordering: Relaxed. It only finds a mistake of the caller. The parks of a worker share the
        // worker's token and the role, which synchronise by themselves.
        let has_park = self.has_park[worker].swap(true, Relaxed);
        assert!(
            !has_park,
            "worker {worker} has a park already: drop that first"
        );
        // Ordering: Relaxed. It is only a count: the drop of the last park takes it to 0.
        self.parks.fetch_add(1, Relaxed);
    }

    /// Calls the wakers that a dropped park has collected, and lowers the count of parks by 1.
    /// Shuts the driver down after the last park. If this was not the last park, the worker
    /// retires, if it `may_owe_role`. Catches the panics of wakers, because any thread may drop the
    /// park of a worker that was never started.
    pub(crate) fn remove_park(
        &self,
        worker: usize,
        may_owe_role: bool,
        collected: &mut VecDeque<Waker>,
    ) {
        contain(|| poller::wake_all(collected));
        // Ordering: Relaxed, as in `add_park`.
        self.has_park[worker].store(false, Relaxed);
        // Ordering: Relaxed: the count only says which park is the last. The shutdown synchronises
        // by the lock under which the reactor is opened, and by the locks of the wheels.
        if self.parks.fetch_sub(1, Relaxed) == 1 {
            self.end();
        } else if may_owe_role {
            self.threads.retire(worker);
        }
    }

    /// Shuts the driver down, and takes the wakers of the tasks that wait for it.
    fn shut_down(&self, wakers: &mut VecDeque<Waker>) {
        self.poller.shut_down(wakers);
        self.timers.shutdown(wakers);
    }

    /// Shuts the driver down, and wakes the tasks that wait for it. Catches the panics of wakers.
    #[cold]
    #[inline(never)]
    fn end(&self) {
        let mut wakers = VecDeque::new();
        self.shut_down(&mut wakers);
        contain(|| poller::wake_all(&mut wakers));
    }

    /// Returns the time until [`is_due_for`](Self::is_due_for) will be true of `late`, unless a
    /// thread looks at timers and sockets before. `None` if a parked thread waits for them, or if
    /// there are none.
    pub(crate) fn until_due_for(&self, late: Duration) -> Option<Duration> {
        if self.threads.role.is_held() || self.threads.is_clock_paused() {
            return None;
        }
        let next = self.timers.next();
        let late_ticks = late_ticks(late);
        let timer = (next != u64::MAX).then(|| {
            let due = self.late_since(next, late_ticks).saturating_add(late_ticks);
            clock::span_until(due, self.threads.now())
        });
        let poll = (!self.threads.parks_elsewhere()).then(|| self.poller.until_due_for(late));
        [timer, poll.flatten()].into_iter().flatten().min()
    }

    /// Returns whether timers or sockets have been due for the time `late`, once there has been a
    /// timer or a socket: a timer has been due for that long, counted as in `late_since`, or nobody
    /// has polled the sockets for that long. Zero asks whether they are due now.
    pub(crate) fn is_due_for(&self, late: Duration) -> bool {
        if self.threads.role.is_held() {
            return false;
        }
        let next = self.timers.next();
        let late_ticks = if self.threads.is_clock_paused() {
            0 // The clock stands still, so no timer would ever be due for long.
        } else {
            late_ticks(late)
        };
        let due = self.late_since(next, late_ticks).saturating_add(late_ticks);
        let timer_is_due = next != u64::MAX && due <= clock::tick_at(self.threads.now());
        // A thread of the driver polls for workers that park elsewhere.
        timer_is_due || !self.threads.parks_elsewhere() && self.poller.is_due_for(late)
    }

    /// Returns the tick from which the lateness of a timer with this deadline counts. A thread that
    /// fires timers will come to the others that are due: so the lateness counts from the last
    /// firing, but from half of `late_ticks` after the deadline at the latest. Without this limit,
    /// a thread that fires a few of many due timers at a time would put off the others for ever.
    fn late_since(&self, next: u64, late_ticks: u64) -> u64 {
        match late_ticks {
            0 => next,
            _ => self.timers.neglected_since(next, late_ticks / 2),
        }
    }

    /// Publishes the next deadline (rule 2 of `role.rs`). Then returns how long the poller may
    /// park, or `None` if there is no timer.
    pub(crate) fn until_next_deadline(&self) -> Option<Duration> {
        let mut next = self.timers.next();
        loop {
            self.threads.role.publish_until(next);
            let again = self.timers.next();
            if again >= next {
                break;
            }
            next = again;
        }
        (next != u64::MAX)
            .then(|| clock::span_until(self.timers.park_until(next), self.threads.now()))
    }
}

/// Returns a span of lateness in ticks.
fn late_ticks(late: Duration) -> u64 {
    clock::ticks(u64::try_from(late.as_nanos()).unwrap_or(u64::MAX))
}

impl Drop for Inner {
    /// Shuts the driver down, because it may never have had a park. No other thread would fire its
    /// timers or end its polling thread. That thread, the sockets and the armed timers hold no
    /// handle of the driver, so they do not keep it from being dropped.
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("workers", &self.0.threads.tokens.len())
            .finish_non_exhaustive()
    }
}
