//! Tests of the thread of tasks.
use adopt::tasks::{Task, TaskThread};
use futures_lite::future::{block_on, pending, yield_now};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::mpsc,
    thread,
};

fn start() -> TaskThread {
    TaskThread::start("tasks").expect("a thread")
}

#[test]
fn tasks_run_on_their_thread() {
    let tasks = start();
    let id = |_| tasks.spawn(async { thread::current().id() });
    let ids: Vec<_> = (0..100).map(id).map(block_on).collect();
    assert!(
        ids.iter()
            .all(|id| *id == ids[0] && *id != thread::current().id())
    );
}

#[test]
fn wakes_from_another_thread_are_never_lost() {
    let (one, other) = (start(), start());
    let (ping, pings) = async_channel::bounded(1);
    let (pong, pongs) = async_channel::bounded(1);
    let echo = other.spawn(async move {
        while let Ok(n) = pings.recv().await {
            pong.send(n).await.unwrap();
        }
    });
    let sum = one.spawn(async move {
        let mut sum = 0;
        for n in 0..1_000 {
            ping.send(n).await.unwrap();
            sum += pongs.recv().await.unwrap();
        }
        sum
    });
    assert_eq!(block_on(sum), 499_500);
    block_on(echo);
}

#[test]
fn tasks_that_yield_take_turns() {
    let tasks = start();
    let (send, sent) = mpsc::channel();
    let (begin, begun) = mpsc::channel::<()>();
    tasks.spawn(async move { begun.recv().unwrap() }).detach();
    let spawn = |task| {
        let send = send.clone();
        tasks.spawn(async move {
            for _ in 0..3 {
                send.send(task).unwrap();
                yield_now().await;
            }
        })
    };
    let both: [Task<()>; 2] = [0, 1].map(spawn);
    begin.send(()).unwrap();
    both.into_iter().for_each(block_on);
    drop(send);
    assert!(sent.iter().eq([0, 1, 0, 1, 0, 1]));
}

#[test]
fn dropped_task_is_cancelled_and_detached_one_runs() {
    let tasks = start();
    let (send, sent) = mpsc::channel();
    let (begin, begun) = mpsc::channel::<()>();
    tasks.spawn(async move { begun.recv().unwrap() }).detach();
    let spawn = |n| {
        let send = send.clone();
        tasks.spawn(async move { send.send(n).unwrap() })
    };
    drop(spawn(0));
    spawn(1).detach();
    drop(send);
    begin.send(()).unwrap();
    assert!(sent.iter().eq([1]));
}

#[test]
fn cancel_waits_until_the_future_is_gone() {
    let tasks = start();
    let (held, gone) = mpsc::channel::<()>();
    let task = tasks.spawn(async move {
        let _held = held;
        pending::<()>().await;
    });
    assert!(block_on(task.cancel()).unwrap_err().is_cancelled());
    assert_eq!(gone.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    let done = tasks.spawn(async { 7 });
    block_on(tasks.spawn(async {}));
    assert_eq!(block_on(done.cancel()).unwrap(), 7);
}

#[test]
fn panic_of_a_task_is_resumed_by_its_handle() {
    let tasks = start();
    let task = tasks.spawn(async { panic!("of a task") });
    let panic = catch_unwind(AssertUnwindSafe(|| block_on(task))).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"of a task"));
    assert_eq!(block_on(tasks.spawn(async { 7 })), 7);
}

#[test]
fn dropped_thread_cancels_all_tasks() {
    for _ in 0..50 {
        let tasks = start();
        let (open, opens) = async_channel::bounded::<()>(1);
        let (held, gone) = mpsc::channel::<()>();
        let all = [(); 4].map(|()| {
            let (opens, held) = (opens.clone(), held.clone());
            tasks.spawn(async move {
                let _ = opens.recv().await;
                drop(held);
            })
        });
        drop(held);
        block_on(tasks.spawn(async {})); // Now the other tasks wait.
        // The drop of `open` wakes them under a lock that the drop of their futures takes.
        let waker = thread::spawn(move || drop(open));
        drop(tasks);
        assert_eq!(gone.try_recv(), Err(mpsc::TryRecvError::Disconnected));
        waker.join().unwrap();
        drop(all);
    }
}

#[test]
fn thread_dropped_by_its_own_task_ends() {
    let tasks = start();
    let (send, sent) = mpsc::channel::<TaskThread>();
    let (held, gone) = mpsc::channel::<()>();
    tasks
        .spawn(async move {
            drop(sent.recv().unwrap());
            drop(held);
        })
        .detach();
    send.send(tasks).unwrap();
    assert!(gone.recv().is_err());
}
