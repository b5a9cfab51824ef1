//! Runtimes of one thread, in a process that need not have another one: on WebAssembly, too.
#![cfg(all(feature = "fs", feature = "net", feature = "macros"))]

use selvedge::{
    Builder, LocalRuntime, Runtime, spawn_local,
    sync::{Mutex, Notify, mpsc, oneshot},
    task::{self, JoinSet, yield_now},
    time::{self, Instant, MissedTickBehavior},
};
use std::{
    cell::RefCell,
    future::pending,
    io::ErrorKind,
    rc::Rc,
    sync::{Arc, atomic::AtomicU32, atomic::Ordering::Relaxed},
    time::Duration,
};

const HAS_THREADS: bool = cfg!(not(target_family = "wasm"));

fn runtime() -> Runtime {
    Builder::new_current_thread().build().unwrap()
}

fn millis(time: u64) -> Duration {
    Duration::from_millis(time)
}

#[test]
fn tasks_and_channels_run_in_block_on() {
    let runtime = runtime();
    let sum = runtime.block_on(async {
        let (send, mut receive) = mpsc::channel(2);
        for number in 0..100_u32 {
            let send = send.clone();
            drop(task::spawn(async move { send.send(number).await }));
        }
        drop(send);
        let mut sum = 0;
        while let Some(number) = receive.recv().await {
            sum += number;
        }
        sum
    });
    assert_eq!(sum, 4950);
    let (answer, question) = oneshot::channel();
    let task = runtime.spawn(question);
    runtime.run_until_stalled();
    assert!(!task.is_finished());
    answer.send(7).unwrap();
    assert_eq!(runtime.block_on(task).unwrap(), Ok(7));
}

#[test]
fn sleeps_and_time_limits_end() {
    let begun = Instant::now();
    let order = runtime().block_on(async {
        let mut sleeps = JoinSet::new();
        for time in [30, 10, 20] {
            sleeps.spawn(async move {
                time::sleep(millis(time)).await;
                time
            });
        }
        let late = time::timeout(millis(5), pending::<()>()).await;
        assert!(late.is_err());
        let mut order = Vec::new();
        while let Some(time) = sleeps.join_next().await {
            order.push(time.unwrap());
        }
        order
    });
    assert_eq!(order.len(), 3);
    assert!(begun.elapsed() >= millis(30));
    // A busy machine may end all of them at once.
    assert!([10, 20, 30].iter().all(|time| order.contains(time)));
}

#[test]
fn interval_ticks_beside_a_task_that_yields() {
    runtime().block_on(async {
        let yields = Arc::new(AtomicU32::new(0));
        let counted = yields.clone();
        let busy = task::spawn(async move {
            loop {
                counted.fetch_add(1, Relaxed);
                yield_now().await;
            }
        });
        let mut interval = time::interval(millis(1));
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        for _ in 0..5 {
            interval.tick().await;
        }
        assert!(yields.load(Relaxed) > 5);
        busy.abort();
        assert!(busy.await.unwrap_err().is_cancelled());
    });
}

#[test]
fn local_tasks_share_what_is_not_send() {
    let runtime = LocalRuntime::new().unwrap();
    let said = Rc::new(RefCell::new(Vec::new()));
    runtime.block_on(async {
        let notify = Rc::new(Notify::new());
        let (says, waits) = (said.clone(), notify.clone());
        let second = spawn_local(async move {
            waits.notified().await;
            says.borrow_mut().push("second");
        });
        time::sleep(millis(1)).await;
        said.borrow_mut().push("first");
        notify.notify_one();
        second.await.unwrap();
    });
    assert_eq!(*said.borrow(), ["first", "second"]);
}

#[test]
fn select_and_locks_work() {
    runtime().block_on(async {
        let mutex = Arc::new(Mutex::new(0));
        let guard = mutex.lock().await;
        let other = mutex.clone();
        let waits = task::spawn(async move { *other.lock().await += 1 });
        let first = selvedge::select! {
            biased;
            () = pending() => "never",
            () = time::sleep(millis(2)) => "the sleep",
        };
        assert_eq!(first, "the sleep");
        assert!(!waits.is_finished());
        drop(guard);
        waits.await.unwrap();
        assert_eq!(*mutex.lock().await, 1);
    });
}

/// Without threads, a blocking closure is cancelled, an operation of a file fails, and a runtime of
/// several threads is an error.
#[test]
fn what_needs_another_thread_says_so() {
    let file = runtime().block_on(selvedge::fs::read("no such file"));
    let file = file.unwrap_err().kind();
    let blocking = runtime().block_on(async { task::spawn_blocking(|| 7).await });
    let threads = Builder::new().workers(2).build();
    if HAS_THREADS {
        assert_eq!((blocking.unwrap(), threads.is_ok()), (7, true));
        assert_eq!(file, ErrorKind::NotFound);
    } else {
        assert_eq!(file, ErrorKind::Other);
        assert!(blocking.unwrap_err().is_cancelled());
        assert_eq!(threads.unwrap_err().kind(), ErrorKind::Unsupported);
    }
}
