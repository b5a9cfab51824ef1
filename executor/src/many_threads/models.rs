//! Models of a whole runtime of three or four workers, and two threads that spawn: more threads
//! than the model checker supports.
//!
//! In the first model each task keeps its worker until as many tasks run as there are workers. So
//! every round needs all workers. The model hangs if a worker stays asleep while a task is queued.
use crate::{Builder, JoinError, JoinHandle, worker::park};
use std::{future::poll_fn, pin::Pin};
use sync_shim::{
    model,
    sync::{Arc, Condvar, Mutex},
    thread,
};

const WORKERS: usize = 4;
const SPAWNERS: usize = 2;
const TASKS: usize = 2 * WORKERS;

#[derive(Default)]
struct Rounds {
    begun: Mutex<usize>,
    full: Condvar,
}

impl Rounds {
    fn run_task(&self) {
        let mut begun = self.begun.lock();
        let until = (*begun / WORKERS + 1) * WORKERS;
        *begun += 1;
        if *begun == until {
            self.full.notify_all();
        }
        while *begun < until {
            begun = self.full.wait(begun);
        }
    }
}

fn ended<T>(mut task: JoinHandle<T>) -> Result<T, JoinError> {
    let mut park = park::ThreadPark::new();
    let joined = poll_fn(move |cx| Pin::new(&mut task).poll(cx));
    park::block_on(&mut park, joined)
}

fn wait(task: JoinHandle<()>) {
    ended(task).unwrap();
}

/// Each task runs, each worker is woken for the tasks that need it, and the runtime ends.
///
/// Fails if a worker announces its sleep and does not look at the queues.
#[test]
fn four_workers_run_the_tasks_of_two_threads() {
    model(|| {
        let runtime = Builder::new()
            .workers(WORKERS)
            .ring_capacity(4)
            .build()
            .unwrap();
        let rounds = Arc::new(Rounds::default());
        let spawners = [(); SPAWNERS].map(|()| {
            let (handle, rounds) = (runtime.handle().clone(), rounds.clone());
            thread::spawn(move || {
                let tasks = [(); TASKS / SPAWNERS].map(|()| {
                    let rounds = rounds.clone();
                    handle.spawn(async move { rounds.run_task() })
                });
                tasks.into_iter().for_each(wait);
            })
        });
        for spawner in spawners {
            spawner.join().unwrap();
        }
        drop(runtime);
        assert_eq!(*rounds.begun.lock(), TASKS);
    });
}

/// The runtime ends while two threads spawn tasks that each spawn one: each task runs or is
/// cancelled, and no future is left.
///
/// Fails if the runtime closes without unparking its workers, or leaves tasks in the injector.
#[test]
fn spawns_of_two_threads_racing_the_end_leave_no_future() {
    model(|| {
        let runtime = Builder::new().workers(3).ring_capacity(2).build().unwrap();
        let held = Arc::new(());
        let spawners = [(); SPAWNERS].map(|()| {
            let (handle, held) = (runtime.handle().clone(), held.clone());
            thread::spawn(move || {
                [(); 3].map(|()| {
                    let (handle, outer, inner) = (handle.clone(), held.clone(), held.clone());
                    handle.clone().spawn(async move {
                        let _outer = outer;
                        let _inner = handle.spawn(async move { drop(inner) });
                        crate::yield_now().await;
                    })
                })
            })
        });
        drop(runtime);
        for spawner in spawners {
            for task in spawner.join().unwrap() {
                let ended = ended(task);
                assert!(ended.is_ok() || ended.unwrap_err().is_cancelled());
            }
        }
        assert_eq!(Arc::strong_count(&held), 1);
    });
}
