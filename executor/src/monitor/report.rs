//! Gathers the facts of a stalled poll for the monitor, and reports them.
use crate::{
    observe::stall::{Stall, StallHook},
    worker::shared::Shared,
};
use sched_monitor::Subject;
use std::{io::Write, thread};
use sync_shim::atomic::Ordering::Relaxed;

/// The task that a worker polls, and the worker's thread. `None` if the worker polls no task, or is
/// in an annotated call.
///
/// A call that begins while this function reads is counted, or is seen as a call, or has cleared
/// the polled task. Exceptions last for nanoseconds: `syscall` counts a call before its core is in
/// the cell, and a processor may reorder these loads, or the stores of the thread that begins the
/// call. A report then has the cause of the call, if the call ends before the monitor asks again.
pub(crate) fn subject(shared: &Shared, worker: usize) -> Option<Subject> {
    let remote = &shared.remotes[worker];
    // This is read first: see above.
    let calls = remote.counters.annotated_calls();
    if remote.call.is_inside() {
        return None;
    }
    let task = remote.counters.polled();
    // Ordering: Relaxed, as the number publishes nothing. It is the id of the thread that has the
    // core, or that had the core a moment ago.
    let thread = remote.thread.load(Relaxed);
    (task != 0).then_some(Subject {
        task: Some(task as u64),
        thread: (thread != 0).then_some(thread),
        calls,
    })
}

/// Delivers each report to the hook or, if there is no hook, to standard error. With the feature
/// `tracing`, delivers it to `tracing` as well.
///
/// A report with a stack is written by a thread of its own, because the names of the functions may
/// take long to find, and the monitor has other duties. Before it starts such a thread, the monitor
/// waits for the last one. This wait is rare, as there are only a few reports a minute. The hook is
/// called in the monitor's thread, and may itself start a thread to find the names.
#[derive(Default)]
pub(super) struct Reports {
    writing: Option<thread::JoinHandle<()>>,
}

impl Reports {
    pub(super) fn deliver(
        &mut self,
        shared: &Shared,
        stall: &sched_monitor::Stall,
        hook: Option<&StallHook>,
    ) {
        let stall = describe(shared, stall);
        if let Some(hook) = hook {
            hook(&stall);
        }
        let (to_stderr, to_tracing) = (hook.is_none(), cfg!(feature = "tracing"));
        if !to_stderr && !to_tracing {
            return;
        }
        if stall.stack.is_some() {
            self.wait();
            let name = format!("{}-stall", shared.settings.thread_name);
            let (own, report) = (stall.clone(), move |stall| write(&stall, to_stderr));
            let thread = thread::Builder::new().name(name);
            match thread.spawn(move || report(own)) {
                Ok(thread) => self.writing = Some(thread),
                Err(_) => write(&stall, to_stderr),
            }
            return;
        }
        write(&stall, to_stderr);
    }

    fn wait(&mut self) {
        if let Some(thread) = self.writing.take() {
            // If a subscriber of `tracing` panics, the panic ends only that thread.
            let _ = thread.join();
        }
    }
}

impl Drop for Reports {
    /// Waits for the last report, before the runtime's end.
    fn drop(&mut self) {
        self.wait();
    }
}

/// Describes the stalled poll. Takes the lock of the list of tasks and that of the injector. With
/// groups, also takes the lock of the worker's turns, that of the group's name, and those of the
/// worker's inbox.
fn describe(shared: &Shared, stall: &sched_monitor::Stall) -> Stall {
    let listed = stall.subject.task.and_then(|task| shared.tasks.find(task));
    let location = listed.as_ref().map(|entry| entry.location);
    let name = listed.and_then(|entry| entry.name.clone());
    let group = shared.groups.name_of_turn(stall.worker);
    let own = shared.remotes[stall.worker].waiting();
    // The stack belongs to the stalled poll only if the worker is still in that poll.
    let is_same_poll = shared.remotes[stall.worker].counters.polls.get() == stall.poll;
    Stall {
        task: stall.subject.task,
        name,
        location,
        group,
        worker: stall.worker,
        thread: stall.subject.thread,
        lasted: stall.lasted,
        cause: stall.cause.clone(),
        times: stall.times,
        waiting: (own + shared.count_injected()) as u64,
        held_back: stall.held_back,
        stack: stall.stack.clone().filter(|_| is_same_poll),
    }
}

/// Writes a report to `tracing`, if that feature is on, and to standard error, if `to_stderr`.
fn write(stall: &Stall, to_stderr: bool) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        target: "selvedge::stall",
        task = stall.task,
        name = stall.name.as_deref(),
        location = stall.location.map(tracing::field::display),
        group = stall.group.as_deref(),
        worker = stall.worker,
        thread = stall.thread,
        lasted_ms = stall.lasted.as_millis() as u64,
        cause = %stall.cause,
        stack = stall.stack.as_ref().map(tracing::field::display),
        "a poll lasts"
    );
    if to_stderr {
        // In one write, so that the lines stay together. An error is ignored.
        let block = format!("selvedge: {stall}\n");
        let _ = std::io::stderr().lock().write_all(block.as_bytes());
    }
}
