//! How timers and sockets are served while workers are in long polls.
//!
//! A worker that is awake looks at timers and sockets between its polls. During a long poll, the
//! parked worker with the poller role of [`net_driver`] serves them. If no parked worker has that
//! role:
//!
//! 1. In a runtime with a monitor, the monitor serves them. The first timer or socket starts its
//!    thread, because the poll in progress may be the first one of the runtime, and long. If a poll
//!    is long while a worker sleeps, the monitor also wakes that worker, which takes the role.
//! 2. In a runtime without a monitor, a parked worker or a thread in `block_on` *stands by*
//!    ([`Driver::with_standby`](net_driver::Driver::with_standby)). An unstarted worker cannot. So
//!    where no thread stands by, a worker that begins to run tasks wakes another one, and so does
//!    the first timer or socket. That worker starts, finds nothing to do, and parks.
//! 3. If the monitor's thread cannot be started, rule 2 holds from then on. A thread that waits in
//!    `block_on` by then does not stand by.
//! 4. Workers with drivers of users do not stand by. Without a monitor, a thread in `block_on`
//!    serves their timers.
//! 5. If all workers are in blocked polls, there is no monitor, and no thread is in `block_on`,
//!    then timers and sockets wait.
use crate::worker::shared::Shared;

impl Shared {
    /// Wakes another thread, if a thread must stand by and none does (rule 2). Costs a load in a
    /// runtime with a monitor.
    #[inline]
    pub(crate) fn notify_standby(&self) {
        if !self.events.lacks_standby() || self.events.recruit_standby() {
            return;
        }
        if self.remotes.len() > 1 {
            self.notify();
        }
    }
}
