//! Tests of a runtime whose only worker is the thread in `block_on`.
use selvedge_executor::{Builder, Runtime, UnhandledPanic};
use std::{
    future::pending,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    thread,
    time::Duration,
};

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

#[test]
fn tasks_run_in_block_on_and_nowhere_else() {
    let runtime = runtime();
    let here = thread::current().id();
    let task = runtime.spawn(async { thread::current().id() });
    assert!(!task.is_finished());
    runtime.block_on(selvedge_executor::yield_now());
    assert_eq!(runtime.block_on(task).unwrap(), here);
}

#[test]
fn task_spawned_from_outside_wakes_the_driver() {
    let runtime = runtime();
    let (sender, receiver) = mpsc::channel();
    let handle = runtime.handle().clone();
    let outside = thread::spawn(move || {
        let task = handle.spawn(async move { sender.send(thread::current().id()) });
        handle.block_on(task).unwrap().unwrap();
    });
    runtime.block_on(async {
        while !outside.is_finished() {
            selvedge_executor::yield_now().await;
        }
    });
    outside.join().unwrap();
    assert_eq!(receiver.recv().unwrap(), thread::current().id());
}

/// The first thread in `block_on` drives the worker, and the second thread waits. The first
/// thread's future is ready only when the second thread has begun. The second thread's future waits
/// for a task that may still be queued when the first thread leaves.
#[test]
fn waiting_thread_takes_over_from_the_driver() {
    for _ in 0..200 {
        let runtime = Arc::new(runtime());
        let meet = Arc::new(Barrier::new(2));
        let second = {
            let (runtime, meet) = (runtime.clone(), meet.clone());
            thread::spawn(move || {
                meet.wait();
                let task = runtime.spawn(async { 7 });
                runtime.block_on(task).unwrap()
            })
        };
        runtime.block_on(async {
            meet.wait();
            for _ in 0..3 {
                selvedge_executor::yield_now().await;
            }
        });
        assert_eq!(second.join().unwrap(), 7);
    }
}

/// Two threads wait. The first one's future blocks in its poll until a task has run, and the second
/// one's future waits for that task. The driver leaves.
///
/// Fails if the driver leaves the worker to the first thread.
#[test]
fn waiting_thread_that_blocks_in_its_poll_holds_up_nobody() {
    let runtime = Arc::new(runtime());
    let (enters, entered) = mpsc::channel();
    let (sender, has_run) = mpsc::channel();
    let (driver_enters, driver_entered) = mpsc::channel();
    let driver = {
        let runtime = runtime.clone();
        thread::spawn(move || {
            runtime.block_on(async {
                driver_enters.send(()).unwrap();
                for _ in 0..2 {
                    entered.recv().unwrap();
                }
            });
        })
    };
    driver_entered.recv().unwrap();
    let blocks = {
        let (runtime, enters) = (runtime.clone(), enters.clone());
        thread::spawn(move || {
            runtime.block_on(async {
                selvedge_executor::yield_now().await; // The thread has waited once.
                enters.send(()).unwrap();
                selvedge_executor::block_in_place(|| has_run.recv().unwrap());
            });
        })
    };
    runtime.block_on(async {
        let task = runtime.spawn(async move { sender.send(()).unwrap() });
        enters.send(()).unwrap();
        task.await.unwrap();
    });
    blocks.join().unwrap();
    driver.join().unwrap();
}

#[test]
fn many_threads_in_block_on_all_return() {
    let runtime = Arc::new(runtime());
    let count = Arc::new(AtomicUsize::new(0));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let (runtime, count) = (runtime.clone(), count.clone());
            thread::spawn(move || {
                for _ in 0..100 {
                    let count = count.clone();
                    let task = runtime.spawn(async move {
                        selvedge_executor::yield_now().await;
                        count.fetch_add(1, SeqCst);
                    });
                    runtime.block_on(task).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    assert_eq!(count.load(SeqCst), 800);
}

#[test]
fn driver_that_panics_leaves_the_worker_to_others() {
    let runtime = Arc::new(runtime());
    let meet = Arc::new(Barrier::new(2));
    let second = {
        let (runtime, meet) = (runtime.clone(), meet.clone());
        thread::spawn(move || {
            meet.wait();
            runtime.block_on(runtime.spawn(async { 7 })).unwrap()
        })
    };
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(async {
            meet.wait();
            selvedge_executor::yield_now().await;
            panic!("in the future");
        })
    }));
    assert!(unwound.is_err());
    assert_eq!(second.join().unwrap(), 7);
}

/// The inner `block_on` would wait for the worker, and its own thread drives that worker.
#[test]
fn block_on_by_the_driver_in_a_task_panics() {
    let runtime = Arc::new(runtime());
    let inner = runtime.clone();
    let task = runtime.spawn(async move {
        selvedge_executor::block_in_place(|| inner.block_on(async {}));
    });
    let panic = runtime.block_on(task).unwrap_err().into_panic();
    let text = panic.downcast::<&str>().unwrap();
    assert!(text.contains("block_on"), "{text}");
}

/// A waker of the user's panics when the thread that drives the worker wakes it, outside of any
/// task.
#[cfg(feature = "net")]
#[test]
fn panic_of_a_waker_stays_out_of_block_on() {
    use std::{
        future::Future,
        pin::pin,
        task::{Context, Wake},
    };

    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("in a waker");
        }
    }

    let runtime = runtime();
    let waker = Arc::new(Panics).into();
    let seven = runtime.block_on(async {
        let mut sleep = pin!(net_driver::time::sleep(Duration::from_millis(50)));
        assert!(
            sleep
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        net_driver::time::sleep(Duration::from_millis(60)).await;
        7
    });
    assert_eq!(seven, 7);
}

#[test]
fn drop_of_the_runtime_drops_its_tasks() {
    struct Dropped(mpsc::Sender<thread::ThreadId>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.send(thread::current().id()).unwrap();
        }
    }
    let (sender, receiver) = mpsc::channel();
    let runtime = runtime();
    let (waiting, unpolled) = (Dropped(sender.clone()), Dropped(sender));
    let waits = runtime.spawn(async move {
        let _waiting = waiting;
        pending::<()>().await;
    });
    runtime.block_on(selvedge_executor::yield_now());
    runtime.spawn_detached(async move {
        let _unpolled = unpolled;
    });
    drop(runtime);
    let here = thread::current().id();
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [here, here]);
    assert!(waits.is_finished());
}

#[test]
fn shutdown_with_a_limit_returns_whether_all_has_ended() {
    let first = runtime();
    first.spawn_detached(pending::<()>());
    assert!(first.shutdown_timeout(Duration::from_secs(60)));
    let second = runtime();
    second.spawn_detached(pending::<()>());
    second.shutdown_background();
}

#[test]
fn blocking_closures_have_threads_and_wake_the_driver() {
    let runtime = runtime();
    let here = thread::current().id();
    let there = runtime.spawn_blocking(|| thread::current().id());
    assert_ne!(runtime.block_on(there).unwrap(), here);
}

#[test]
fn runtime_dropped_in_its_own_future_does_not_hang() {
    let runtime = Arc::new(runtime());
    let task = {
        let runtime = runtime.clone();
        runtime.clone().spawn(async move { drop(runtime) })
    };
    runtime.block_on(task).unwrap();
    drop(runtime);
}

#[cfg(feature = "net")]
#[test]
fn sleep_ends_in_a_runtime_without_threads() {
    let runtime = runtime();
    let slept = runtime.spawn(net_driver::time::sleep(Duration::from_millis(2)));
    runtime.block_on(slept).unwrap();
    runtime.block_on(net_driver::time::sleep(Duration::from_millis(2)));
}

/// Only the thread in `block_on` can end the other tasks: without that, their handles wait until
/// the runtime's drop.
///
/// Fails if the thread polls its own future between the panic and the end of the tasks, or leaves
/// `block_on` between these.
#[test]
fn panic_in_block_on_comes_after_the_end_of_all_tasks() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a drop");
        }
    }
    let strict = || {
        let builder = Builder::new_current_thread().unhandled_panic(UnhandledPanic::Shutdown);
        builder.build().unwrap()
    };
    let runtime = strict();
    let other = runtime.spawn(pending::<()>());
    runtime.spawn_detached(async { panic!("on purpose") });
    let waits = || runtime.block_on(pending::<()>());
    assert!(catch_unwind(AssertUnwindSafe(waits)).is_err());
    assert!(other.is_finished());

    // The future of `block_on` drops the output, whose drop panics, and is ready in the same poll.
    let runtime = strict();
    let other = runtime.spawn(pending::<()>());
    runtime.block_on(async {
        let output = selvedge_executor::spawn(async { Bomb });
        while !output.is_finished() {
            selvedge_executor::yield_now().await;
        }
        drop(output);
    });
    assert!(other.is_finished());
}
