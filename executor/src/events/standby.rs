//! Who serves timers and sockets while workers are in long polls.
//!
//! A worker that is awake looks at timers and sockets between its polls. If one poll is long, a
//! parked worker that has the poller role of [`net_driver`] serves them. If no parked worker has
//! that role, somebody else must:
//!
//! 1. In a runtime with a monitor, the monitor does. The first timer or socket starts its thread,
//!    because that poll may be the first one of the runtime, and long. If a poll is long while a
//!    worker sleeps, the monitor also wakes that worker, which takes the role.
//! 2. In a runtime without a monitor, a parked worker or a thread in `block_on` *stands by*
//!    ([`Driver::let_stand_by`](net_driver::Driver::let_stand_by)). An unstarted worker cannot. So
//!    where no thread stands by, the first timer or socket wakes another worker, and so does a
//!    worker that ends its search. That worker starts, finds nothing to do, and parks.
//! 3. If the monitor's thread cannot be started, rule 2 holds from then on. A thread that waits in
//!    `block_on` by then does not stand by.
//! 4. Nobody serves them only if all started threads are in polls: a runtime of one worker without
//!    a monitor, and no thread in `block_on`.
use crate::{scope, shared::Shared};

/// Called at the first timer or socket of the current runtime.
pub(super) fn first_used() {
    if let Some(shared) = scope::current() {
        if !shared.monitor.start(&shared) {
            shared.notify_standby();
        }
    }
}

impl Shared {
    /// Wakes another worker, if a thread must stand by and none does (rule 2). Costs a load in a
    /// runtime with a monitor.
    #[inline]
    pub(crate) fn notify_standby(&self) {
        if self.remotes.len() > 1 && self.events.lacks_standby() {
            self.notify();
        }
    }
}
