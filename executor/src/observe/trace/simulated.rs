//! The events that a simulation (`sync_shim::sim`) keeps, with and without the recorder. Without a
//! simulation each function is empty.
use crate::worker::scheduler::{Scheduler, Task};
use sync_shim::sim;
use task_header::{Id, Ran};

/// Records an event of a task.
#[inline(always)]
pub(super) fn of_task(kind: &'static str, task: Id, number: usize) {
    // Only a simulation asks for the address.
    let address = if sim::is_simulated() {
        task.address()
    } else {
        0
    };
    sim::event(kind, address, number as u64);
}

/// Records an event of the scheduler.
#[inline(always)]
pub(super) fn of_scheduler(kind: &'static str, number: usize) {
    sim::event(kind, 0, number as u64);
}

#[inline(always)]
pub(super) fn poll_begin(task: &Task) {
    of_task("poll", task.id(), 0);
}

/// The event's number is 1 if the task runs again.
#[inline(always)]
pub(super) fn poll_end(ran: &Ran<Scheduler>) {
    let (kind, again) = match ran {
        Ran::Complete => ("end of poll and task", 0),
        Ran::Pending => ("end of poll", 0),
        Ran::Notified(_) => ("end of poll", 1),
    };
    of_scheduler(kind, again);
}
