//! Models of a look at the injector against a push that nudges the worker. Under loom a
//! notification makes no nudge, so the pusher makes it.
use crate::{
    Builder,
    worker::{
        core::Core,
        park::ThreadPark,
        scheduler::{Scheduler, Task},
    },
};
use sync_shim::{Model, thread};

/// A worker that was nudged looks at the injector, while a thread pushes a task and nudges the
/// worker. The look finds the task, or the worker is nudged after it.
fn push_and_nudge_racing(look: fn(&Core) -> Option<Task>) {
    Model::new().branches(20_000).check(move || {
        let (runtime, mut workers) = Builder::new()
            .ring_capacity(2)
            .build_driven([ThreadPark::new()]);
        let worker = workers.remove(0);
        let shared = runtime.handle().shared().clone();
        assert!(worker.core.slice.get().nudge());
        let pusher = {
            let shared = shared.clone();
            let task = task_header::new_detached(async {}, Scheduler::of(&shared));
            thread::spawn(move || {
                shared.inject(task);
                shared.nudge();
            })
        };
        let found = look(&worker.core);
        pusher.join().unwrap();
        let is_nudged = worker.core.slice.get().is_set();
        assert!(found.is_some() || is_nudged, "a task, and no nudge");
        drop((found, shared, runtime));
        worker.run();
    });
}

/// Fails if the look of `take_share` has no fence.
#[test]
fn look_for_a_share_racing_a_nudge_is_not_the_last() {
    push_and_nudge_racing(Core::take_share);
}

/// Fails if the look of `take_one` has no fence.
#[test]
fn look_for_one_task_racing_a_nudge_is_not_the_last() {
    push_and_nudge_racing(Core::take_one);
}
