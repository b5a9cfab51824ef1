//! Tests of `at_exit`.
use super::*;
use crate::worker::park::ThreadPark;

/// Limit of a wait: far more than a busy machine needs.
const LONG: Duration = Duration::from_secs(600);

type Log = Arc<Mutex<Vec<&'static str>>>;

/// A future that writes to the log.
fn says(log: &Log, what: &'static str) -> impl Future<Output = ()> + Send + 'static {
    let log = log.clone();
    async move { log.lock().unwrap().push(what) }
}

fn said(log: &Log) -> Vec<&'static str> {
    log.lock().unwrap().clone()
}

/// Writes to the log when it is dropped.
struct Dropped(Log, &'static str);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.lock().unwrap().push(self.1);
    }
}

fn runtimes() -> [Runtime; 3] {
    let builders = [
        Builder::new().workers(1),
        Builder::new().workers(2),
        Builder::new_current_thread(),
    ];
    builders.map(|builder| builder.build().unwrap())
}

/// Fails if the futures run in the order of the calls of `at_exit`, or if the end closes the
/// runtime before they run.
#[test]
fn exits_run_at_the_drop_the_newest_first() {
    for runtime in runtimes() {
        let log = Log::default();
        runtime.at_exit(says(&log, "one"));
        runtime.at_exit(says(&log, "two"));
        drop(runtime);
        assert_eq!(said(&log), ["two", "one"]);
    }
}

/// Fails if the end runs the futures before it refuses spawns, or after it has ended the tasks.
#[test]
fn exit_may_await_tasks_and_closures_but_may_not_spawn() {
    for runtime in runtimes() {
        let log = Log::default();
        let (sender, receiver) = async_channel::bounded::<()>(1);
        let last = says(&log, "task");
        let task = runtime.spawn(async move {
            receiver.recv().await.unwrap();
            last.await;
        });
        let end = says(&log, "exit");
        runtime.at_exit(async move {
            let refused = spawn(async {}).await;
            assert!(refused.unwrap_err().is_cancelled());
            assert_eq!(spawn_blocking(|| 7).await.unwrap(), 7);
            sender.send(()).await.unwrap();
            task.await.unwrap();
            end.await;
        });
        assert!(runtime.shutdown_timeout(LONG));
        assert_eq!(said(&log), ["task", "exit"]);
    }
}

/// Fails if a panic ends the task that runs the futures.
#[test]
fn exit_after_one_that_panics_runs() {
    for runtime in runtimes() {
        let log = Log::default();
        runtime.at_exit(says(&log, "one"));
        runtime.at_exit(async { panic!("as the test wants") });
        drop(runtime);
        assert_eq!(said(&log), ["one"]);
    }
}

/// Fails if the owner waits for the end of the future, or if the future is not dropped.
#[test]
fn exit_that_never_ends_is_dropped_at_the_deadline() {
    for runtime in runtimes() {
        let log = Log::default();
        let (left, running) = (
            Dropped(log.clone(), "left"),
            Dropped(log.clone(), "running"),
        );
        runtime.at_exit(async move { drop(left) });
        runtime.at_exit(async move {
            let _running = running;
            loop {
                yield_now().await;
            }
        });
        let handle = runtime.handle().clone();
        runtime.shutdown_timeout(Duration::from_millis(20));
        while handle.snapshot().live_tasks > 0 {
            // The worker's thread, or the drop of the worker, ends the task of the futures.
            std::thread::yield_now();
        }
        let mut said = said(&log);
        said.sort_unstable();
        assert_eq!(said, ["left", "running"]);
    }
}

/// Fails if a future that is added during the exit is lost, or runs after the older ones.
#[test]
fn exit_added_in_an_exit_runs_next() {
    for runtime in runtimes() {
        let log = Log::default();
        runtime.at_exit(says(&log, "one"));
        let (handle, three) = (runtime.handle().clone(), says(&log, "three"));
        runtime.at_exit(async move { handle.at_exit(three) });
        drop(runtime);
        assert_eq!(said(&log), ["three", "one"]);
    }
}

/// Fails if the background shutdown waits, or if a late future is kept.
#[test]
fn exits_of_a_shutdown_without_wait_are_dropped() {
    for runtime in runtimes() {
        let (log, handle) = (Log::default(), runtime.handle().clone());
        let dropped = Dropped(log.clone(), "dropped");
        runtime.at_exit(async move {
            let _dropped = dropped;
            pending().await
        });
        runtime.shutdown_background();
        assert_eq!(said(&log), ["dropped"]);
        let late = Dropped(log.clone(), "late");
        handle.at_exit(async move { drop(late) });
        assert_eq!(said(&log), ["dropped", "late"]);
    }
}

/// The future holds a handle: if the runtime kept the future, the two would keep each other for
/// good.
///
/// Fails if the end of a runtime without futures leaves it open for late ones.
#[test]
fn first_exit_after_the_end_is_dropped_at_once() {
    for runtime in runtimes() {
        let (log, handle) = (Log::default(), runtime.handle().clone());
        drop(runtime);
        let (late, own) = (Dropped(log.clone(), "late"), handle.clone());
        handle.at_exit(async move { drop((late, own)) });
        assert_eq!(said(&log), ["late"]);
    }
}

/// Fails if the owner of a runtime of driven workers waits, or closes the runtime.
#[test]
fn driven_workers_run_the_exits_and_end() {
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    let log = Log::default();
    runtime.at_exit(says(&log, "one"));
    drop(runtime);
    assert_eq!(said(&log), [""; 0]);
    workers.remove(0).run();
    assert_eq!(said(&log), ["one"]);
}

#[test]
#[cfg(feature = "groups")]
fn exits_run_in_the_group_atexit() {
    for runtime in runtimes() {
        let (sender, receiver) = mpsc::channel();
        runtime.at_exit(async move {
            let group = crate::SchedulingGroup::current();
            sender.send((group.name(), group.shares())).unwrap();
        });
        drop(runtime);
        assert_eq!(receiver.recv().unwrap(), ("atexit".into(), 1000));
    }
}
