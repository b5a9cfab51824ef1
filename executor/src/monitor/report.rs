//! Where the monitor gets the facts of a stall from, and where it reports them.
use crate::{
    shared::Shared,
    stall::{Stall, StallHook},
};
use sched_monitor::Subject;
use std::io::Write;
use sync_shim::atomic::Ordering::Relaxed;

/// The task that a worker polls, and the worker's thread.
pub(crate) fn subject(shared: &Shared, worker: usize) -> Subject {
    let remote = &shared.remotes[worker];
    let task = remote.counters.polled();
    // Ordering: Relaxed, a number. It is of the thread that has the core, or had it a moment ago.
    let thread = remote.thread.load(Relaxed);
    Subject {
        task: (task != 0).then_some(task as u64),
        thread: (thread != 0).then_some(thread),
    }
}

/// Delivers a report: to the hook, or else to standard error; and to `tracing`.
pub(crate) fn report(shared: &Shared, stall: &sched_monitor::Stall, hook: Option<&StallHook>) {
    let stall = Stall {
        task: stall.subject.task,
        worker: stall.worker,
        thread: stall.subject.thread,
        lasted: stall.lasted,
        cause: stall.cause.clone(),
        times: stall.times,
        waiting: shared.remotes[stall.worker].stealer.len() as u64,
        held_back: stall.held_back,
    };
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "selvedge::stall",
        task = stall.task,
        worker = stall.worker,
        thread = stall.thread,
        lasted_ms = stall.lasted.as_millis() as u64,
        cause = %stall.cause,
        "a poll lasts"
    );
    match hook {
        Some(hook) => hook(&stall),
        None => {
            // In one write, so that the lines stay together. Nobody hears of its failure.
            let block = format!("selvedge: {stall}\n");
            let _ = std::io::stderr().lock().write_all(block.as_bytes());
        }
    }
}
