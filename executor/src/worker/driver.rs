//! How a worker with a thread of its own waits: in the runtime's own driver
//! ([`events`](crate::events)), or in the driver that the builder makes.
//!
//! A parker belongs to its worker's core, and goes with the core to another thread
//! ([`block_in_place`](crate::block_in_place())).
//!
//! 1. A worker that runs out of tasks parks in its driver. Meanwhile the driver collects events.
//!    The driver's code does not find the core then. So the wakes by that code take the path of
//!    wakes from outside.
//! 2. A busy worker polls its driver at the interval at which it looks at the injector (61 ticks,
//!    unless the builder says otherwise). It skips some polls while its ring is full
//!    (`Core::max_busy_events`).
//! 3. After a park, and after a poll of the driver, the worker delivers the collected events. The
//!    worker no longer counts as searching by then, because wakers are user code. The worker
//!    delivers in its own scope. So the tasks that it wakes go to its own queue, each behind the
//!    task before, and none of them into the LIFO slot. If the queue was empty, the first task is
//!    kept for this worker, which runs it next, and no other worker is notified of it
//!    ([`WorkerQueue::between_items`](worker_queue::WorkerQueue::between_items)). So a lone
//!    connection wakes one worker. A waker that blocks delays that task, unless it blocks in
//!    [`block_in_place`](crate::block_in_place()). A worker that does not run its next task at once,
//!    such as a driven one whose tick is over, notifies of the task after all.
//! 4. A panic of a driver is contained, as a panic of a hook is. The worker goes on. A panic of a
//!    driver's drop is ignored, because any thread may drop the core of a worker that was never
//!    started.
use crate::{
    events::{DrivenEvents, Events, EventsPark},
    worker::park::Park,
};
use std::{sync::Arc, task::Waker};
use sync_shim::panics;

/// A driver of any type. It moves with its core.
pub(crate) type BoxPark = Box<dyn Park + Send>;

/// Makes the driver of the worker with this index.
pub(crate) type MakeDriver = Arc<dyn Fn(usize) -> BoxPark + Send + Sync>;

/// How a worker's thread waits.
pub(crate) enum Parker {
    Events(EventsPark),
    Driver(OwnedDriver),
}

/// Owns a driver, and catches a panic of its drop: any thread may drop the core (rule 4).
pub(crate) struct OwnedDriver {
    pub(crate) driver: Option<BoxPark>,
    /// The timers over the driver, once the core has the driver.
    pub(crate) events: Option<DrivenEvents>,
}

impl Drop for OwnedDriver {
    fn drop(&mut self) {
        let driver = self.driver.take();
        panics::contain(|| drop(driver));
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

    /// Puts the timers over the builder's driver. The runtime's own driver has timers already.
    pub(crate) fn with_timers(mut self, events: &Events, worker: usize) -> Self {
        if let Self::Driver(driver) = &mut self {
            driver.events = Some(DrivenEvents::new(events, worker));
        }
        self
    }

    pub(crate) fn waker(&self) -> Waker {
        match self {
            Self::Events(park) => park.waker(),
            Self::Driver(driver) => {
                let driver = driver.driver.as_ref();
                driver.expect("it is there until the drop").waker()
            }
        }
    }
}
