//! The runtime's timers and sockets, in builds with `net-driver`.
use crate::park::{self, Park, ThreadPark};
use net_driver::{Driver, OverPark, WorkerPark, WorkerTimers};
use std::{cell::Cell, fmt, future::Future, io, task::Waker, time::Duration};

pub(crate) use net_driver::{Entered, Polling};

#[cfg(feature = "test-util")]
pub(crate) use net_driver::time::ClockHold;
/// Stands for a hold of a test's clock, which this build does not have.
#[cfg(not(feature = "test-util"))]
pub(crate) struct ClockHold;

/// The way in which a worker of the runtime waits.
pub(crate) type EventsPark = WorkerPark;

/// The parker of a worker that has no thread of its own.
pub(crate) enum Over<'a, P> {
    /// A user's parker, with the timers.
    Timers(OverPark<'a, P>),
    /// A parker that waits for timers and sockets itself.
    Events(&'a mut P),
}

impl<P: Park> Park for Over<'_, P> {
    type Unpark = P::Unpark;

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

    fn unparker(&self) -> P::Unpark {
        match self {
            Self::Timers(park) => park.unparker(),
            Self::Events(park) => park.unparker(),
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

    /// Makes the kernel objects that sockets need.
    pub(crate) fn open(&self) -> io::Result<()> {
        self.0.open()
    }

    /// Makes a driver for workers that park in users' parkers. `wakers` unpark them.
    pub(crate) fn over(wakers: impl IntoIterator<Item = Waker>) -> Self {
        Self(Driver::with_wakers(wakers))
    }

    /// Returns the waker by which the runtime unparks a worker whose own waker is `unpark`.
    pub(crate) fn waker(&self, worker: usize, unpark: Waker) -> Waker {
        drop(unpark);
        self.0.waker(worker)
    }

    /// Sets how the driver runs closures that block.
    #[cfg(all(feature = "net", unix))]
    pub(crate) fn set_blocking(&self, run: fn(Box<dyn FnOnce() + Send>)) {
        self.0.set_blocking(run);
    }

    pub(crate) fn park(&self, worker: usize) -> EventsPark {
        self.0.park(worker).on_own_threads()
    }

    /// As [`park`](Self::park), for a worker that runs on users' threads.
    pub(crate) fn park_of_users(&self, worker: usize) -> EventsPark {
        self.0.park(worker)
    }

    /// Runs `f` with `this` as the thread's current driver, or with no current driver.
    ///
    /// # Safety
    /// The runtime exists until this returns, or until the process ends if `f` ends it.
    #[inline]
    pub(crate) unsafe fn borrowed_scope<R>(
        this: Option<&Self>,
        worker: Option<usize>,
        f: impl FnOnce() -> R,
    ) -> R {
        // SAFETY: guaranteed by the caller, as the runtime has the driver.
        unsafe { Driver::borrowed_scope(this.map(|events| &events.0), worker, f) }
    }

    /// Blocks a thread that is not a worker, in the scope of the driver.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        #[cfg(feature = "test-util")]
        return self.0.block_on(future);
        #[cfg(not(feature = "test-util"))]
        ThreadPark::block_on(future)
    }

    /// Fires timers and polls sockets that no worker has looked at for a while.
    #[cfg(feature = "monitor")]
    pub(crate) fn poll_overdue(&self) {
        self.0.poll_overdue();
    }

    /// Keeps a paused clock from jumping.
    pub(crate) fn hold_clock(&self) -> ClockHold {
        #[cfg(feature = "test-util")]
        return self.0.hold_clock();
        #[cfg(not(feature = "test-util"))]
        ClockHold
    }

    #[cfg(feature = "test-util")]
    pub(crate) fn pause(&self) {
        self.0.pause();
    }

    pub(crate) fn enter(&self) -> Entered {
        self.0.enter(None)
    }

    /// Returns whether a worker that is awake should poll its park.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.0.is_due()
    }
}

/// The timers over a user's parker. An [`EventsPark`] has timers of its own, so there are none over
/// it.
pub(crate) struct DrivenEvents(Option<WorkerTimers>);

impl DrivenEvents {
    pub(crate) fn new(events: &Events, worker: usize) -> Self {
        Self(Some(events.0.timers(worker)))
    }

    /// Returns no timers, as an [`EventsPark`] has its own.
    pub(crate) fn of_events_park() -> Self {
        Self(None)
    }

    pub(crate) fn over<'a, P: Park>(&'a mut self, park: &'a mut P) -> Over<'a, P> {
        match &mut self.0 {
            Some(timers) => Over::Timers(timers.over(park)),
            None => Over::Events(park),
        }
    }
}

/// The driver of a `LocalRuntime`, made when it first blocks.
#[derive(Default)]
pub(crate) struct LocalEvents(Cell<Option<WorkerPark>>);

impl LocalEvents {
    /// Blocks the thread on a future, in the scope of the driver.
    pub(crate) fn block_on<F: Future>(&self, future: F) -> F::Output {
        match &mut self.take().1 {
            Some(park) => park.block_on(future),
            None => ThreadPark::block_on(future),
        }
    }

    /// Fires timers that are due and polls the sockets, without a wait.
    pub(crate) fn look(&self) {
        if let Some(park) = &mut self.take().1 {
            park.poll(park::MAX_EVENTS);
            park.deliver();
        }
    }

    /// Takes the park. A nested call finds none, and makes a driver of its own.
    fn take(&self) -> PutBack<'_> {
        let park = self.0.take().unwrap_or_else(|| Driver::new(1).park(0));
        PutBack(&self.0, Some(park))
    }
}

/// Puts the park back when it is dropped.
struct PutBack<'a>(&'a Cell<Option<WorkerPark>>, Option<WorkerPark>);

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        self.0.set(self.1.take());
    }
}

impl fmt::Debug for LocalEvents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalEvents")
    }
}
