//! Runs the conformance tests of `task-header` on the executor's `Schedule`.
use super::{Worker, run};
use crate::{
    Builder, Runtime, Tick,
    worker::{
        context::OnWorker,
        core::Core,
        park::ThreadPark,
        scheduler::{Scheduler, Task},
    },
};
use coop_budget::{Budget, Scope};
use std::{cell::Cell, ptr::NonNull};
use sync_shim::conformance::{LIMIT, check, explore};
use task_header::{
    Notified,
    conformance::{self as tasks, Order, Subject},
};
use worker_queue::RunQueue;

fn driven(lifo: bool) -> (Runtime, Worker<ThreadPark>) {
    let builder = Builder::new().ring_capacity(8).lifo_slot(lifo);
    let (runtime, mut workers) = builder.build_driven([ThreadPark::new()]);
    (runtime, workers.remove(0))
}

/// Runs a task as a worker's loop does. The calling thread is in the scope of this worker.
fn run_as_worker(core: &Core, task: Task) {
    Scope::new(Budget::UNLIMITED)
        .hook(&OnWorker)
        .turns(|turns| run::<false>(&core.shared, turns, core.begin_run(&task), task));
    RunQueue::leave(&core.queue, core);
}

/// A runtime whose tasks the checks wake from outside. The checks' thread drives the worker, but
/// leaves the worker's scope after each step. So a task that this thread wakes between two steps
/// goes to the injector.
struct Outside {
    runtime: Runtime,
    worker: Worker<ThreadPark>,
}

impl Subject for Outside {
    type Scheduler = Scheduler;
    const ORDER: Order = Order::Fifo;

    fn new() -> Self {
        let (runtime, worker) = driven(true);
        Self { runtime, worker }
    }

    fn scheduler(&self) -> Scheduler {
        Scheduler::of(self.runtime.handle().shared())
    }

    fn next(&mut self) -> Option<Notified<Scheduler>> {
        let core = &self.worker.core;
        core.as_worker(|| core.next())
    }

    fn run(&mut self, task: Notified<Scheduler>) {
        let core = &self.worker.core;
        core.as_worker(|| run_as_worker(core, task));
    }

    fn end(mut self) {
        drop(self.runtime);
        while self.worker.tick() != Tick::Ended {}
    }
}

std::thread_local! {
    /// The core that the checks' thread runs, and the core's runtime. `Inside::new` takes both.
    static WORKER: Cell<Option<(Runtime, NonNull<Core>)>> = const { Cell::new(None) };
}

/// A runtime whose worker is the checks' thread, also between two polls. A task that this thread
/// wakes goes to the worker's own queue: to the LIFO slot or, without one, to the ring.
struct Inside<const LIFO: bool> {
    runtime: Runtime,
    core: NonNull<Core>,
}

impl<const LIFO: bool> Inside<LIFO> {
    fn check(check: fn()) {
        let (runtime, mut worker) = driven(LIFO);
        WORKER.set(Some((runtime, NonNull::from(&**worker.core))));
        worker.core.as_worker(check);
        assert_eq!(worker.tick(), Tick::Ended);
    }

    fn core(&self) -> &Core {
        // SAFETY: `Inside::check` owns the worker, and so the core, until the check has returned.
        // Only the check calls this method.
        unsafe { self.core.as_ref() }
    }
}

impl<const LIFO: bool> Subject for Inside<LIFO> {
    type Scheduler = Scheduler;
    const ORDER: Order = if LIFO { Order::Any } else { Order::Fifo };

    fn new() -> Self {
        let (runtime, core) = WORKER.take().expect("a check has one subject");
        Self { runtime, core }
    }

    fn scheduler(&self) -> Scheduler {
        Scheduler::of(&self.core().shared)
    }

    fn next(&mut self) -> Option<Notified<Scheduler>> {
        self.core().next()
    }

    fn run(&mut self, task: Notified<Scheduler>) {
        run_as_worker(self.core(), task);
    }

    fn end(self) {
        self.core().shared.close();
        assert!(self.core().end(), "no other thread holds a task");
        drop(self.runtime);
    }
}

fn from_inside<const LIFO: bool>() {
    let inside = |name, run: fn()| check(name, move || Inside::<LIFO>::check(run));
    let checks = [
        inside(
            "a_task_is_queued_once_for_its_wakes",
            tasks::a_task_is_queued_once_for_its_wakes::<Inside<LIFO>>,
        ),
        inside(
            "tasks_run_in_the_promised_order",
            tasks::tasks_run_in_the_promised_order::<Inside<LIFO>>,
        ),
        inside(
            "a_wake_in_a_poll_is_not_lost",
            tasks::a_wake_in_a_poll_is_not_lost::<Inside<LIFO>>,
        ),
        inside(
            "an_abort_and_the_last_waker_end_a_task",
            tasks::an_abort_and_the_last_waker_end_a_task::<Inside<LIFO>>,
        ),
        inside(
            "tasks_queued_at_the_end_are_dropped",
            tasks::tasks_queued_at_the_end_are_dropped::<Inside<LIFO>>,
        ),
        inside(
            "a_wake_after_the_end_leaks_nothing",
            tasks::a_wake_after_the_end_leaks_nothing::<Inside<LIFO>>,
        ),
        inside(
            "a_wake_from_another_thread_is_not_lost",
            tasks::a_wake_from_another_thread_is_not_lost::<Inside<LIFO>>,
        ),
        inside(
            "wakes_from_two_other_threads_are_not_lost",
            tasks::wakes_from_two_other_threads_are_not_lost::<Inside<LIFO>>,
        ),
        inside(
            "a_spawn_and_an_abort_from_another_thread_are_not_lost",
            tasks::a_spawn_and_an_abort_from_another_thread_are_not_lost::<Inside<LIFO>>,
        ),
    ];
    explore(LIMIT, 3, checks);
}

mod models {
    use super::{Outside, from_inside, tasks};

    #[test]
    fn a_scheduler_passes_that_is_woken_from_outside() {
        tasks::schedule::<Outside>();
    }

    #[test]
    fn a_scheduler_passes_that_is_woken_by_its_worker() {
        from_inside::<true>();
    }

    #[test]
    fn scheduler_without_slot_woken_by_its_worker_conforms() {
        from_inside::<false>();
    }
}
