//! How a worker of a normal runtime waits: in the runtime's own driver ([`events`](crate::events)),
//! or in the driver that the builder makes.
//!
//! A park belongs to its worker's core, and goes with the core to another thread
//! ([`block_in_place`](crate::block_in_place())).
//!
//! 1. A worker that runs out of tasks parks in its driver. The driver collects events meanwhile.
//!    Its code does not find the core then: a wake in there goes the way of a wake from outside.
//! 2. A busy worker polls its driver at the interval at which it looks at the injector (61 ticks,
//!    unless the builder says otherwise).
//! 3. After either the worker delivers what was collected. It has left the search by then, because
//!    wakers are code of users. It is in its own scope, so the tasks that it wakes go to its own
//!    queue: each behind the one before, and the last one out of the LIFO slot too, behind all.
//! 4. A panic of a driver is contained as one of a hook is. The worker goes on. A panic of its drop
//!    goes nowhere: any thread may drop the core of a worker that was never started.
//! 5. A busy worker that polls the runtime's own driver runs the task that was woken last at once,
//!    once a poll: its own tasks may be long, and then a single message need not wait for one.
use crate::{
    context,
    core::Core,
    events::{DrivenEvents, Events, EventsPark, Over},
    hooks,
    park::{self, Park},
    shared::Task,
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    task::Waker,
    time::Duration,
};
use worker_queue::RunQueue;

/// Events that a busy worker collects at once.
const MAX_EVENTS: usize = 64;

/// Makes the driver of the worker with this index.
pub(crate) type MakeDriver = Arc<dyn Fn(usize) -> Box<dyn Driver> + Send + Sync>;

/// A [`Park`] of any type. It moves with its core.
pub(crate) trait Driver: Send {
    fn park(&mut self);
    fn park_timeout(&mut self, limit: Duration);
    fn poll(&mut self, max: usize);
    fn has_events(&self) -> bool;
    fn deliver(&mut self);
    fn waker(&self) -> Waker;
}

impl<P: Park + Send> Driver for P {
    fn park(&mut self) {
        Park::park(self);
    }

    fn park_timeout(&mut self, limit: Duration) {
        Park::park_timeout(self, limit);
    }

    fn poll(&mut self, max: usize) {
        Park::poll(self, max);
    }

    fn has_events(&self) -> bool {
        Park::has_events(self)
    }

    fn deliver(&mut self) {
        Park::deliver(self);
    }

    fn waker(&self) -> Waker {
        park::waker(Park::unparker(self))
    }
}

/// How a worker's thread waits.
pub(crate) enum Parker {
    Events(EventsPark),
    Driver(OwnedDriver),
}

/// Owns a driver, and catches a panic of its drop: any thread may drop the core (rule 4).
pub(crate) struct OwnedDriver {
    driver: Option<Box<dyn Driver>>,
    /// The timers over it, from the moment that the core has it.
    events: Option<DrivenEvents>,
}

impl OwnedDriver {
    /// Runs `f` on the driver, with the timers over it.
    pub(crate) fn with<R>(&mut self, f: impl FnOnce(&mut Over<'_, Borrowed<'_>>) -> R) -> R {
        let driver = self.driver.as_deref_mut();
        let mut driver = Borrowed(driver.expect("it is there until the drop"));
        let events = self.events.as_mut();
        f(&mut events.expect("the core has it").over(&mut driver))
    }
}

impl Drop for OwnedDriver {
    fn drop(&mut self) {
        let driver = self.driver.take();
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(driver))) {
            hooks::discard(payload);
        }
    }
}

impl Parker {
    /// Makes the builder's driver for a worker.
    pub(crate) fn made_by(make: &MakeDriver, worker: usize) -> Self {
        Self::Driver(OwnedDriver {
            driver: Some(make(worker)),
            events: None,
        })
    }

    /// Puts the timers over a driver of the builder's. The runtime's own has them.
    pub(crate) fn with_timers(mut self, events: &Events, worker: usize) -> Self {
        if let Self::Driver(driver) = &mut self {
            driver.events = Some(DrivenEvents::new(events, worker));
        }
        self
    }

    pub(crate) fn unparker(&self) -> Waker {
        match self {
            Self::Events(park) => park::waker(park.unparker()),
            Self::Driver(driver) => {
                let driver = driver.driver.as_ref();
                driver.expect("it is there until the drop").waker()
            }
        }
    }
}

/// A borrowed driver, which nobody asks for an unparker.
pub(crate) struct Borrowed<'a>(&'a mut dyn Driver);

/// Stands for the unparker, which was taken when the runtime was built.
#[derive(Clone)]
pub(crate) struct NoUnpark;

impl park::Unpark for NoUnpark {
    fn unpark(&self) {}
}

impl Park for Borrowed<'_> {
    type Unpark = NoUnpark;

    fn park(&mut self) {
        context::without_core(|| self.0.park());
    }

    fn park_timeout(&mut self, limit: Duration) {
        context::without_core(|| self.0.park_timeout(limit));
    }

    fn poll(&mut self, max: usize) {
        context::without_core(|| self.0.poll(max));
    }

    fn has_events(&self) -> bool {
        context::without_core(|| self.0.has_events())
    }

    fn deliver(&mut self) {
        self.0.deliver();
    }

    fn unparker(&self) -> NoUnpark {
        NoUnpark
    }
}

impl Core {
    /// Wakes what was collected, if anything was (rule 3). No task may give the core away
    /// meanwhile.
    pub(crate) fn deliver(&self, park: &mut impl Park) {
        if !park.has_events() {
            return;
        }
        self.as_worker(|| {
            self.leave_search();
            park.deliver();
            self.queue.requeue_slot(self);
        });
    }

    /// A busy worker's look at its driver (rule 2).
    pub(crate) fn poll_park(&self, park: &mut impl Park) {
        park.poll(MAX_EVENTS);
        self.deliver(park);
    }

    /// The same for a worker with a thread of the runtime. Returns a task to run before the
    /// worker's own (rule 5).
    #[cold]
    pub(crate) fn poll_driver(&self) -> Option<Task> {
        let mut parker = self.park.take()?;
        let (hooks, mut first) = (&self.shared.hooks, None);
        hooks.contain(|| match &mut parker {
            Parker::Events(park) => {
                Park::poll(park, MAX_EVENTS);
                first = self.deliver_and_take(park);
            }
            Parker::Driver(driver) => driver.with(|park| self.poll_park(park)),
        });
        self.park.set(Some(parker));
        first
    }

    /// Delivers, and takes the task that was woken last (rule 5).
    fn deliver_and_take(&self, park: &mut impl Park) -> Option<Task> {
        if !park.has_events() {
            return None;
        }
        self.as_worker(|| {
            self.leave_search();
            park.deliver();
            // Not `take_slot`: there may be a requeued task, which another worker may have to take
            // if this one runs for long. `next` takes the slot's first, and sees to that.
            let takes = !self.queue.slot_is_empty() && !self.queue.slice_over();
            let first = takes.then(|| self.queue.next(self)).flatten();
            self.queue.requeue_slot(self);
            first.map(|next| next.item)
        })
    }
}
