//! Counts the read-modify-writes and `SeqCst` fences of a spawn, a yield, a wake, a `syscall` and a
//! `block_in_place`. The docs of these operations state the counts.
use super::{Worker, run};
use crate::{
    Builder, Runtime, block_in_place, spawn, spawn_detached,
    worker::{context::OnWorker, park::ThreadPark},
    yield_now,
};
use coop_budget::{Budget, Scope, Turns};
use std::{
    future::{pending, poll_fn},
    task::Poll,
};
use sync_shim::count::counted;

/// The number of read-modify-writes, and that of `SeqCst` fences.
type Cost = (u64, u64);

fn driven() -> (Runtime, Worker<ThreadPark>) {
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    (runtime, workers.remove(0))
}

fn cost<R>(f: impl FnOnce() -> R) -> (R, Cost) {
    let (result, counts) = counted(f);
    (result, (counts.rmws, counts.seqcst_fences))
}

/// Runs `N` turns of a worker's loop, and returns the cost of each. All turns of a test must be
/// fewer than the 61 ticks of an interval: at its end the worker looks at the injector.
fn turns<const N: usize>(worker: &Worker<ThreadPark>) -> [Cost; N] {
    let core = &**worker.core;
    let turn = |turns: &Turns<'_>| {
        let task = core.next().expect("there is work");
        run::<false>(&core.shared, turns, core.begin_run(&task), task);
    };
    core.as_worker(|| {
        Scope::new(Budget::UNLIMITED)
            .hook(&OnWorker)
            .turns(|turns| [(); N].map(|()| cost(|| turn(turns)).1))
    })
}

async fn yields() {
    loop {
        yield_now().await;
    }
}

#[test]
fn spawn_by_a_task_costs_one_rmw_only_if_it_displaces_one() {
    let (_runtime, worker) = driven();
    worker.core.as_worker(|| {
        let (_join, first) = cost(|| spawn(pending::<()>()));
        assert_eq!(first, (0, 0));
        let (_join, displacing) = cost(|| spawn(pending::<()>()));
        assert_eq!(displacing, (1, 1));
        let ((), detached) = cost(|| spawn_detached(pending::<()>()));
        assert_eq!(detached, (1, 1));
    });
}

#[test]
fn spawn_from_outside_costs_two_rmws_a_fence_and_the_wake() {
    let (runtime, worker) = driven();
    let spawn = || cost(|| runtime.spawn(pending::<()>())).1;
    // The first spawn nudges the busy worker, by an exchange on that worker's own cache line.
    assert_eq!(spawn(), (2 + 1, 1));
    assert_eq!(spawn(), (2, 1));
    worker.core.shared.idle.sleep(0, false);
    // The notification costs two read-modify-writes, and the unpark one. With `test-util` the
    // unpark costs one more, which marks the worker as busy for a clock that a test may pause.
    let token = u64::from(cfg!(feature = "test-util"));
    assert_eq!(spawn(), (2 + 2 + 1 + token, 1));
    // The worker counts as searching now, so this spawn wakes no worker.
    assert_eq!(spawn(), (2, 1));
}

#[test]
fn yield_costs_no_rmw_alone_and_one_beside_others() {
    let (runtime, worker) = driven();
    runtime.spawn_detached(yields());
    // This turn takes the task out of the injector, and polls it for the first time.
    let [_] = turns(&worker);
    assert_eq!(turns(&worker), [(0, 0); 20]);
    worker.core.as_worker(|| spawn_detached(yields()));
    let [_, _] = turns(&worker);
    assert_eq!(turns(&worker), [(1, 0); 20]);
}

#[test]
fn yield_beside_a_filled_slot_costs_one_rmw_and_a_fence() {
    let (runtime, worker) = driven();
    runtime.spawn_detached(async {
        loop {
            spawn_detached(async {});
            yield_now().await;
        }
    });
    let [_] = turns(&worker);
    // The yield costs one read-modify-write, and the fence. To take the slot's task costs another
    // read-modify-write, and the end of that task a third one.
    assert_eq!(turns(&worker), [(1 + 2, 1); 20]);
}

#[test]
fn self_wake_in_a_poll_of_the_only_task_costs_two_rmws() {
    let (runtime, worker) = driven();
    runtime.spawn_detached(poll_fn(|cx| {
        cx.waker().wake_by_ref();
        Poll::<()>::Pending
    }));
    let [_] = turns(&worker);
    // The wake costs one read-modify-write, and the start of the next poll another.
    assert_eq!(turns(&worker), [(2, 0); 20]);
}

/// Returns the least cost of a call in a task, of the calls after which the thread still has the
/// core. If another thread gets the core, this thread may pay less, and the other one more.
fn least_cost(call: fn()) -> Cost {
    let runtime = Builder::new().workers(1).build().unwrap();
    let least = runtime.spawn(async move {
        let mut least = None;
        for _ in 0..100 {
            let ((), cost) = cost(call);
            if crate::worker::context::with_core(|_| ()).is_some() {
                least = least.into_iter().chain([cost]).min();
            }
            yield_now().await;
        }
        least
    });
    runtime.block_on(least).unwrap().unwrap()
}

/// The cost of `hold_clock`, which a call also calls if tests can pause the clock.
const HOLD_CLOCK: Cost = if cfg!(feature = "test-util") {
    (2, 1)
} else {
    (0, 0)
};

#[test]
fn block_in_place_that_keeps_the_worker_costs_two_rmws() {
    assert_eq!(
        least_cost(|| block_in_place(|| ())),
        (2 + HOLD_CLOCK.0, HOLD_CLOCK.1)
    );
}

#[test]
fn syscall_that_keeps_the_worker_costs_one_rmw() {
    assert_eq!(
        least_cost(|| crate::syscall(|| ())),
        (1 + HOLD_CLOCK.0, HOLD_CLOCK.1)
    );
}
