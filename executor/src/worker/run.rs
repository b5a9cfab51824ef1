//! A run: the poll of a task, and of the tasks that follow it through the LIFO slot.
//!
//! 1. The slot's task runs right after the task that filled the slot, in the same budget. At most
//!    three tasks in a row do so. The next task from the slot goes behind the others. If a hook, or
//!    a drop between two runs, has put a task into the slot, that task begins a run of its own.
//! 2. A task in its poll may give the core away ([`block_in_place`](crate::block_in_place())). So
//!    nothing here holds on to the core across a poll: the thread's own
//!    [`context`](crate::worker::context) says after each poll whether the thread is still a
//!    worker.
//! 3. A request that ends the time slice also ends the run. The worker begins the next slice when
//!    it looks for its next task. The interrupted task goes to the end of the injector, if a task
//!    waits there or in the worker's own queue. The task stays with its worker if no task waits, if
//!    the worker shares its time among groups, or if the workers do not steal.
use crate::{
    observe::{metrics::Times, trace},
    settings::hooks::TaskMeta,
    worker::{
        context::{self, with_core},
        core::Core,
        scheduler::{Scheduler, Task},
        shared::{Attached, Shared},
    },
};
use coop_budget::{Budget, Turns};
use sync_shim::atomic::Ordering::Relaxed;
use task_header::{Id, Ran};
use worker_queue::RunQueue;

/// The most tasks from the slot in one run.
const LIFO_CAP: u32 = 3;

impl Core {
    /// Begins a run, whose first poll is that of `task`.
    #[inline]
    pub(crate) fn begin_run(&self, task: &Task) -> RunSettings {
        self.leave_search();
        self.begin_poll(task.id());
        RunSettings {
            budget: self.budget,
            observed: self.observed,
        }
    }

    #[inline]
    fn take_slot(&self) -> Option<Task> {
        if self.queue.slice_over() {
            return None; // The slot's task begins a run of its own.
        }
        let task = self.queue.take_slot()?;
        self.counters().inherited_slices.add(1);
        self.begin_poll(task.id());
        Some(task)
    }

    #[inline]
    pub(crate) fn begin_poll(&self, task: Id) {
        self.counters().polls.add(1);
        self.counters().set_polled(Some(task));
    }

    /// Requeues the task whose poll is over, and which is to run again.
    #[inline(always)]
    pub(crate) fn requeue(&self, task: Task) {
        if self.slice.get().need_preempt() | self.is_sharing() {
            self.requeue_specially(task);
        } else {
            self.plain().requeue(task, self);
        }
    }

    /// Requeues a task whose time slice is over, or a task of a worker that shares its time among
    /// groups. A worker that shares keeps the task, which waits for the turn of its group. A worker
    /// that does not steal keeps the task behind its other tasks, as no other worker runs it.
    /// Otherwise the task goes to the injector, behind the tasks that wait there in the worker's
    /// shard. If no task waits here or in the injector, it stays here.
    #[cold]
    #[inline(never)]
    fn requeue_specially(&self, task: Task) {
        let (queue, shared) = (&self.queue, &self.shared);
        if self.is_sharing() || self.is_sharded() {
            return queue.requeue(task, self);
        }
        if queue.is_empty() && !shared.has_injected() {
            queue.requeue(task, self);
            return;
        }
        shared.requeue(task);
        // A worker with an empty queue takes from the injector next.
        if !queue.is_empty() {
            shared.notify();
        }
    }
}

/// The settings of a run, read before it.
#[derive(Clone, Copy)]
pub(crate) struct RunSettings {
    budget: Budget,
    observed: bool,
}

/// Runs a task, and those that follow it in the slot.
///
/// The calling thread is a worker. `LENDABLE` says whether the worker's tasks may lend the core. No
/// code reads `LENDABLE`. Because of it the compiler makes a copy of this function, and of the
/// closure in the function, for each of the two kinds of workers. Each copy has one caller, so the
/// compiler inlines the copy into that worker's loop. Without `LENDABLE` both kinds share the
/// closure, and a poll takes 31 instructions more (Rust 1.95, x86-64), even with `inline(always)`.
#[inline]
pub(crate) fn run<const LENDABLE: bool>(
    shared: &Shared,
    turns: &Turns<'_>,
    settings: RunSettings,
    task: Task,
) {
    turns.run(settings.budget, || {
        let (mut task, mut left) = (task, LIFO_CAP);
        loop {
            let core = if settings.observed {
                observed_poll(shared, task)
            } else {
                poll(shared, task)
            };
            let Some(core) = core else {
                return;
            };
            if core.queue.slot_is_empty() {
                return;
            }
            if left == 0 || !coop_budget::has_remaining() {
                return core.queue.requeue_slot(core);
            }
            left -= 1;
            match core.take_slot() {
                Some(next) => task = next,
                None => return,
            }
        }
    });
}

/// Polls a task. Returns the core, if this thread still has it.
#[inline(always)]
fn poll<'a>(shared: &Shared, task: Task) -> Option<&'a Core> {
    trace::poll_begin(shared, &task);
    let ran = task.run_in_loop(context::after_poll);
    trace::poll_end(shared, &ran);
    end_poll(shared, ran)
}

/// Counts the end of a task, or requeues the task if it is to run again. Returns the core, if this
/// thread still has it.
#[inline(always)]
fn end_poll<'a>(shared: &Shared, ran: Ran<Scheduler>) -> Option<&'a Core> {
    // SAFETY: the poll is over. The user code that runs until the next poll is that of hooks and of
    // unparkers, and neither can give the core away.
    let core = || unsafe { context::core() };
    // Each arm reads the core for itself, so that the compiler joins an arm with the place in the
    // run that leads to it.
    match ran {
        Ran::Pending => core(),
        Ran::Complete => {
            let core = core();
            count_end(shared, core);
            core
        }
        Ran::Notified(task) => {
            let core = core();
            match core {
                Some(core) => core.requeue(task),
                None => shared.take_in(task),
            }
            core
        }
    }
}

#[inline]
fn count_end(shared: &Shared, core: Option<&Core>) {
    match core {
        Some(core) => core.counters().ends.add(1),
        None => {
            // Ordering: Relaxed, as it is only a count.
            shared.ended_outside.fetch_add(1, Relaxed);
        }
    }
}

/// Polls a task, and calls the hooks for polls. Measures the poll, if the builder says so. Counts
/// the poll in the list of tasks, if the task is in that list.
#[cold]
fn observed_poll<'a>(shared: &Shared, task: Task) -> Option<&'a Core> {
    let (meta, hooks) = (TaskMeta::of(&task), &shared.hooks);
    hooks.call_task_hook(&hooks.before_poll, meta);
    let lists = shared.settings.lists_tasks;
    let listed = lists.then(|| Attached::listed(&task)).flatten();
    let entry = listed.map(|listed| listed.entry().clone());
    let request = entry.as_ref().and_then(|entry| entry.take_request());
    trace::poll_begin(shared, &task);
    let measures = shared.settings.poll_times && request.is_none();
    let begun = measures.then(sync_shim::time::now);
    let after = || {
        if let Some(begun) = begun {
            let record = |times: &Times| times.record(sync_shim::time::since(begun));
            with_core(|core| core.counters().poll_times.as_ref().map(record));
        }
        context::after_poll()
    };
    let ran = match (request, &entry) {
        (Some(request), Some(entry)) => request.answer(entry, |end| {
            let after = || {
                end(with_core(|_| ()).is_some());
                after()
            };
            let ran = coop_budget::poll_as(entry.number(), || task.run_in_loop(after));
            let has_ended = matches!(ran, Ran::Complete);
            (ran, has_ended)
        }),
        (_, Some(entry)) => {
            entry.begin_poll();
            let after = || {
                entry.end_poll();
                after()
            };
            coop_budget::poll_as(entry.number(), || task.run_in_loop(after))
        }
        _ => task.run_in_loop(after),
    };
    trace::poll_end(shared, &ran);
    hooks.call_task_hook(&hooks.after_poll, meta);
    let has_ended = matches!(ran, Ran::Complete);
    let core = end_poll(shared, ran);
    if has_ended {
        hooks.call_task_hook(&hooks.on_end, meta);
    }
    core
}
