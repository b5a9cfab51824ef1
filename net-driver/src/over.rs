//! Timers over any parker: for a worker that does not park in a
//! [`WorkerPark`](crate::WorkerPark).
//!
//! While the worker parks in its parker, the worker has the poller role, if no other worker has the
//! role. The worker then limits the park to the next deadline. A thread that arms an earlier timer
//! unparks the worker by the worker's waker, as [`role`](crate::role) says.
//!
//! A paused clock knows of an unpark by [`Driver::waker`], which marks the worker's token first.
//! The clock does not know of a wake by the parker's own waker.
use crate::{driver::Driver, threads::LeaveRole};
#[cfg(feature = "test-util")]
use crate::{threads::Threads, token::Token};
use std::{collections::VecDeque, fmt, task::Waker, time::Duration};
use worker_idle::park::Park;

/// The largest number of timers that a park collects at once.
const MAX_TIMERS: usize = 128;

/// Drives the timers of one worker over the worker's own parker. Made by [`Driver::timers`].
///
/// The drop of a `WorkerTimers` wakes the tasks whose timers the value has collected. If no parked
/// worker waits for timers then, the drop also wakes the other workers, one of which then waits for
/// them. The drop of a driver's last `WorkerTimers` [shuts the driver down](Driver::shutdown), as
/// the drop of the last [`WorkerPark`](crate::WorkerPark) does.
///
/// ```
/// use net_driver::{Driver, WorkerTimers, time};
/// use std::{future::Future, pin::pin, task::{Context, Waker}, time::Duration};
/// use worker_idle::park::{Park, ThreadPark};
///
/// let mut park = ThreadPark::new();
/// let driver = Driver::with_wakers([park.waker()]);
/// let mut timers: WorkerTimers = driver.timers(0);
///
/// driver.scope(Some(0), || {
///     let mut sleep = pin!(time::sleep(Duration::from_millis(1)));
///     let mut cx = Context::from_waker(Waker::noop());
///     while sleep.as_mut().poll(&mut cx).is_pending() {
///         let mut park = timers.over(&mut park);
///         park.park(); // Until the sleep is due.
///         park.deliver();
///     }
/// });
/// ```
pub struct WorkerTimers {
    driver: Driver,
    worker: usize,
    /// Whether the worker has parked under the rules of the role, and so may be responsible for it
    /// (rule 4 of `role.rs`).
    may_owe_role: bool,
    collected: VecDeque<Waker>,
}

/// A parker that also waits for timers: see [`WorkerTimers`].
///
/// ```
/// use net_driver::{Driver, OverPark};
/// use worker_idle::park::{Park, ThreadPark};
///
/// let mut park = ThreadPark::new();
/// park.waker().wake();
/// let mut timers = Driver::with_wakers([park.waker()]).timers(0);
/// let mut park: OverPark<'_, ThreadPark> = timers.over(&mut park);
/// park.park(); // Takes the token.
/// ```
pub struct OverPark<'a, P> {
    timers: &'a mut WorkerTimers,
    park: &'a mut P,
}

impl Driver {
    /// Returns a handle that drives the timers of the worker with this index over the worker's own
    /// parker: see [`with_wakers`](Self::with_wakers). A worker has one handle at a time. The drop
    /// of a handle may call the wakers of the other workers: hold no lock then that a waker takes.
    ///
    /// # Panics
    /// If there is no such worker, or if an earlier handle of the worker was not dropped yet or was
    /// forgotten. Also if the driver was not made by [`with_wakers`](Self::with_wakers): it could
    /// not end the parks of a parker that it does not know.
    #[track_caller]
    pub fn timers(&self, worker: usize) -> WorkerTimers {
        self.threads().assert_worker(worker);
        assert!(
            self.threads().parks_elsewhere(),
            "the workers of this driver park in its own parkers: use `Driver::park`, or make the \
             driver by `Driver::with_wakers`"
        );
        WorkerTimers::new(self.clone(), worker)
    }
}

impl WorkerTimers {
    #[track_caller]
    pub(crate) fn new(driver: Driver, worker: usize) -> Self {
        driver.inner().add_park(worker);
        Self {
            driver,
            worker,
            may_owe_role: false,
            collected: VecDeque::new(),
        }
    }

    /// Lets a parker wait for timers too. `park` must be the parker whose waker the driver has for
    /// this worker.
    pub fn over<'a, P: Park>(&'a mut self, park: &'a mut P) -> OverPark<'a, P> {
        OverPark { timers: self, park }
    }

    fn collect(&mut self, max: usize) {
        let driver = self.driver.inner();
        let timers = &driver.timers;
        timers.collect_due(
            self.worker,
            max,
            || driver.threads.now(),
            &mut self.collected,
        );
    }
}

impl<P: Park> OverPark<'_, P> {
    fn wait(&mut self, limit: Option<Duration>) {
        let park = |park: &mut P, limit| match limit {
            None => park.park(),
            Some(limit) => park.park_timeout(limit),
        };
        let driver = self.timers.driver.inner();
        self.timers.may_owe_role |= driver.threads.role.is_active();
        #[cfg(feature = "test-util")]
        let (waits, limit) = Waits::begin(&driver.threads, self.timers.worker, limit);
        if !self.timers.may_owe_role || !driver.threads.role.try_take(self.timers.worker) {
            #[cfg(feature = "test-util")]
            driver.threads.began_to_wait();
            return park(self.park, limit);
        }
        let role = LeaveRole(&driver.threads);
        let next = driver.until_next_deadline();
        #[cfg(feature = "test-util")]
        let next = if driver.threads.clock.is_paused() {
            let jumped = driver.jump_if_idle(self.timers.worker);
            jumped.then_some(Duration::ZERO)
        } else {
            next
        };
        match next {
            None => park(self.park, limit),
            Some(next) => {
                let limit = limit.map_or(next, |limit| limit.min(next));
                park(self.park, Some(limit));
            }
        }
        // The worker ends the mark of its wait before it leaves the role: from then on another
        // worker may take the role and look at the tokens.
        #[cfg(feature = "test-util")]
        drop(waits);
        drop(role);
        self.timers.collect(MAX_TIMERS);
    }
}

/// Marks a worker as waiting, for the test clock, until this value is dropped.
#[cfg(feature = "test-util")]
struct Waits<'a>(&'a Token);

#[cfg(feature = "test-util")]
impl<'a> Waits<'a> {
    /// Begins the wait. Also returns the limit of the park: zero if the worker was unparked before.
    /// The parker got a token from that unpark too, but a park outside of the [`OverPark`] may have
    /// taken the parker's token.
    fn begin(
        threads: &'a Threads,
        worker: usize,
        limit: Option<Duration>,
    ) -> (Self, Option<Duration>) {
        let token = &threads.tokens[worker];
        threads.clock.will_wait();
        let limit = if token.begin_wait() {
            limit
        } else {
            Some(Duration::ZERO)
        };
        (Self(token), limit)
    }
}

#[cfg(feature = "test-util")]
impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.end_wait();
    }
}

impl<P: Park> Park for OverPark<'_, P> {
    fn park(&mut self) {
        self.wait(None);
    }

    fn park_timeout(&mut self, limit: Duration) {
        self.wait(Some(limit));
    }

    fn poll(&mut self, max: usize) {
        self.park.poll(max);
        if self.timers.driver.threads().role.is_active() {
            self.timers.collect(max);
        }
    }

    fn has_events(&self) -> bool {
        !self.timers.collected.is_empty() || self.park.has_events()
    }

    fn deliver(&mut self) {
        // Each waker is taken out before it is called: if it panics, the other wakers stay for the
        // next `deliver`.
        while let Some(waker) = self.timers.collected.pop_front() {
            waker.wake();
        }
        if self.park.has_events() {
            self.park.deliver();
        }
    }

    fn waker(&self) -> Waker {
        self.park.waker()
    }
}

impl Drop for WorkerTimers {
    fn drop(&mut self) {
        let driver = self.driver.inner();
        driver.remove_park(self.worker, self.may_owe_role, &mut self.collected);
    }
}

impl fmt::Debug for WorkerTimers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerTimers")
            .field("worker", &self.worker)
            .finish_non_exhaustive()
    }
}

impl<P> fmt::Debug for OverPark<'_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverPark")
            .field("timers", self.timers)
            .finish_non_exhaustive()
    }
}
