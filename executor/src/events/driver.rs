//! The runtime's timers and sockets, in builds with `net-driver`.
use crate::worker::{
    park::{self, Park},
    shared::Shared,
};
use net_driver::{Driver, OverPark, WorkerPark, WorkerTimers};
use std::{future::Future, io, sync::Arc, task::Waker, time::Duration};
use worker_idle::Wait;

#[cfg_attr(not(feature = "test-util"), path = "driver/no_clock.rs")]
mod clock;

pub(crate) use clock::ClockHold;
pub(crate) use net_driver::{Entered, Polling};

/// The parker of a worker that parks in the runtime's driver.
pub(crate) type EventsPark = WorkerPark;

/// The borrowed parker of a driven worker, or of a worker with a driver from the builder, together
/// with the runtime's timers.
pub(crate) enum Over<'a, P> {
    /// A user's parker, with the runtime's timers over it.
    Timers(OverPark<'a, P>),
    /// A parker that waits for timers and sockets itself.
    Events(&'a mut P),
}

impl<P: Park> Park for Over<'_, P> {
    fn park(&mut self) {
        match self {
            Self::Timers(park) => park.park(),
            Self::Events(park) => park.park(),
        }
    }

    fn park_timeout(&mut self, limit: Duration) {
        match self {
            Self::Timers(park) => park.park_timeout(limit),
            Self::Events(park) => park.park_timeout(limit),
        }
    }

    fn poll(&mut self, max: usize) {
        match self {
            Self::Timers(park) => park.poll(max),
            Self::Events(park) => park.poll(max),
        }
    }

    fn has_events(&self) -> bool {
        match self {
            Self::Timers(park) => park.has_events(),
            Self::Events(park) => park.has_events(),
        }
    }

    fn deliver(&mut self) {
        match self {
            Self::Timers(park) => park.deliver(),
            Self::Events(park) => park.deliver(),
        }
    }

    fn waker(&self) -> Waker {
        match self {
            Self::Timers(park) => park.waker(),
            Self::Events(park) => park.waker(),
        }
    }
}

/// The driver of a runtime.
#[derive(Clone)]
pub(crate) struct Events(Driver);

impl Events {
    pub(crate) fn new(workers: usize, polling: Polling) -> Self {
        Self(Driver::with_polling(workers, polling))
    }

    /// Leaves sleeps or sockets out, before there is a park.
    pub(crate) fn without(self, sleeps: bool, sockets: bool) -> Self {
        Self(self.0.without(sleeps, sockets))
    }

    /// Sets the runtime that serves timers and sockets ([`standby`](super::standby)).
    pub(crate) fn bind(&self, shared: &Arc<Shared>) {
        let shared = Arc::downgrade(shared);
        self.0.on_first_use(move || {
            let Some(shared) = shared.upgrade().filter(|shared| !shared.is_closing()) else {
                return;
            };
            if !shared.monitor.start(&shared) {
                shared.notify_standby();
            }
        });
    }

    /// Makes the kernel objects that sockets need.
    pub(crate) fn open(&self) -> io::Result<()> {
        self.0.open()
    }

    /// Makes a driver for workers that park in users' parkers. Each of `wakers` unparks one worker.
    pub(crate) fn over(wakers: impl IntoIterator<Item = Waker>) -> Self {
        Self(Driver::with_wakers(wakers))
    }

    /// Returns the waker by which the runtime unparks a worker whose own waker is `unpark`.
    pub(crate) fn waker(&self, worker: usize, unpark: Waker) -> Waker {
        drop(unpark);
        self.0.waker(worker)
    }

    /// Sets how many events of sockets a thread collects at once.
    pub(crate) fn set_max_events(&self, max: usize) {
        #[cfg(any(unix, windows))]
        self.0.set_max_events(max);
        let _ = max;
    }

    /// Sets how the driver runs closures that block.
    pub(crate) fn set_blocking(&self, run: fn(Box<dyn FnOnce() + Send>)) {
        #[cfg(any(unix, windows))]
        self.0.set_blocking(run);
        let _ = run;
    }

    pub(crate) fn park(&self, worker: usize, wait: Wait) -> EventsPark {
        self.park_of_users(worker, wait).on_own_threads()
    }

    /// As [`park`](Self::park), for a worker that runs on users' threads.
    pub(crate) fn park_of_users(&self, worker: usize, wait: Wait) -> EventsPark {
        self.0.park(worker).with_wait(wait)
    }

    /// Runs `f` with `this` as the thread's current driver. If `this` is `None`, the thread's
    /// current driver stays as it is.
    ///
    /// # Safety
    /// The runtime of `this` exists until this function returns. If `f` ends the process, the
    /// runtime exists until the process has ended.
    #[inline]
    pub(crate) unsafe fn borrowed_scope<R>(
        this: Option<&Self>,
        worker: Option<usize>,
        f: impl FnOnce() -> R,
    ) -> R {
        // SAFETY: the caller guarantees that the runtime exists, and the runtime keeps the driver.
        unsafe { Driver::borrowed_scope(this.map(|events| &events.0), worker, f) }
    }

    /// Blocks this thread, which is not a worker, on a future. The caller has made the driver the
    /// thread's current one.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        if clock::MAY_PAUSE || self.0.may_stand_by() {
            self.0.block_on(future)
        } else {
            park::ThreadPark::block_on(future)
        }
    }

    /// Lets parked threads stand by, in a runtime without a monitor ([`standby`](super::standby)).
    pub(crate) fn with_standby(self) -> Self {
        Self(self.0.with_standby())
    }

    /// The same for a runtime that runs already.
    pub(crate) fn let_stand_by(&self) {
        self.0.let_stand_by();
    }

    /// Returns whether a thread must stand by, and none does.
    #[inline]
    pub(crate) fn lacks_standby(&self) -> bool {
        self.0.lacks_standby()
    }

    /// Lets a thread that waits stand by. Returns false if no worker waits that could.
    pub(crate) fn recruit_standby(&self) -> bool {
        self.0.recruit_standby()
    }

    /// Fires timers and polls sockets that no worker has looked at for this time.
    pub(crate) fn poll_overdue(&self, late: Duration) {
        self.0.poll_overdue(late);
    }

    /// Returns the time until the call of [`poll_overdue`](Self::poll_overdue) that is due next, if
    /// no worker looks at timers and sockets before. `None` if a parked worker waits for them, or
    /// if there are none.
    pub(crate) fn until_overdue(&self, late: Duration) -> Option<Duration> {
        self.0.until_overdue(late)
    }

    /// Returns the first deadline of all timers, as the time since the start of the simulation, for
    /// the checks of a simulation.
    #[cfg(selvedge_sim)]
    pub(crate) fn first_deadline(&self) -> Option<std::time::Duration> {
        self.0.first_deadline()
    }

    /// Keeps a paused clock from jumping.
    pub(crate) fn hold_clock(&self) -> ClockHold {
        clock::hold_clock(&self.0)
    }

    /// Pauses the clock, if tests may.
    pub(crate) fn pause(&self) {
        clock::pause(&self.0);
    }

    pub(crate) fn enter(&self) -> Entered {
        self.0.enter(None)
    }

    /// Returns whether a busy worker should poll its parker: timers or sockets are due.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.0.is_due()
    }
}

/// The timers that are put over a worker's parker: `None` over an [`EventsPark`], which has timers
/// of its own.
pub(crate) struct DrivenEvents(Option<WorkerTimers>);

impl DrivenEvents {
    pub(crate) fn new(events: &Events, worker: usize) -> Self {
        Self(Some(events.0.timers(worker)))
    }

    /// Returns no timers: for a worker with an [`EventsPark`], or to take the place of others.
    pub(crate) fn none() -> Self {
        Self(None)
    }

    pub(crate) fn over<'a, P: Park>(&'a mut self, park: &'a mut P) -> Over<'a, P> {
        match &mut self.0 {
            Some(timers) => Over::Timers(timers.over(park)),
            None => Over::Events(park),
        }
    }
}

/// Collects all timers that are due, and all events of sockets that have come, without a wait.
pub(crate) fn poll_all(park: &mut EventsPark) {
    park.poll_all();
}
