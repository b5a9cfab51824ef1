//! Who is told of what a worker puts behind its other tasks, under the model checker: a worker whose task won't let go of it, and another that sleeps or is
//! about to. If nobody is told, all wait for good, which the model finds. Too large for every day.
use crate::{Builder, spawn_detached, yield_now};
use std::future::Future;
use sync_shim::{
    Model,
    sync::{Arc, Condvar, Mutex},
};

/// Opened once. Who waits for it holds up its thread.
#[derive(Clone)]
struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    fn new() -> Self {
        Self(Arc::new((Mutex::new(false), Condvar::new())))
    }

    fn open(&self) {
        *self.0.0.lock() = true;
        self.0.1.notify_all();
    }

    fn wait(&self) {
        let mut open = self.0.0.lock();
        while !*open {
            open = self.0.1.wait(open);
        }
    }
}

/// Two workers run what `task` spawns until all gates are open.
fn two_workers<const GATES: usize, F>(task: impl Fn([Gate; GATES]) -> F + Send + Sync + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    Model::new().bound(1).branches(50_000).check(move || {
        let builder = Builder::new().workers(2).ring_capacity(4);
        let runtime = builder.build().unwrap();
        let gates = [(); GATES].map(|()| Gate::new());
        runtime.spawn_detached(task(gates.clone()));
        gates.iter().for_each(Gate::wait);
        drop(runtime);
    });
}

/// A task that yields while its child is in the slot is told of: the child holds up the worker until the task is through.
///
/// Bites: a requeue that tells nobody.
#[test]
fn full_a_task_that_yields_to_its_child_is_found() {
    two_workers(|[gate]| async move {
        let child = gate.clone();
        spawn_detached(async move { child.wait() });
        yield_now().await;
        gate.open();
    });
}

/// Two tasks that yield to each other: nobody is told of that, and still one of them is found when the other holds up the worker.
///
/// Bites: a push of what the slot's new task displaces that tells nobody.
#[test]
fn full_one_of_two_tasks_that_yield_in_turns_is_found() {
    two_workers(|[one, two]| async move {
        for (mine, other) in [(one.clone(), two.clone()), (two, one)] {
            spawn_detached(async move {
                yield_now().await;
                mine.open();
                other.wait();
            });
        }
    });
}
