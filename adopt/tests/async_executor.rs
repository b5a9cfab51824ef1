//! The executor as its users see it.
use adopt::async_executor::Executor;
use futures_lite::future::{block_on, yield_now};
use std::{
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    ptr,
    sync::{
        Arc,
        atomic::{
            AtomicBool, AtomicPtr, AtomicUsize,
            Ordering::{Acquire, Relaxed, Release},
        },
        mpsc,
    },
    task::{Context, Poll, Wake, Waker},
    thread,
};

/// Waits for a wake from another thread.
async fn woken_elsewhere() {
    let woken = Arc::new(AtomicBool::new(false));
    let mut begun = false;
    poll_fn(|cx| {
        if woken.load(Acquire) {
            return Poll::Ready(());
        }
        if !begun {
            begun = true;
            let (waker, woken) = (cx.waker().clone(), woken.clone());
            thread::spawn(move || {
                woken.store(true, Release);
                waker.wake();
            });
        }
        Poll::Pending
    })
    .await;
}

/// Adds one to a count when it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A waker that records that it was woken.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Relaxed);
    }
}

#[test]
fn tasks_spawned_by_tasks_complete() {
    let executor = Arc::new(Executor::new(1));
    let sum = executor.run(async {
        let mut tasks = Vec::new();
        for n in 0..100_u64 {
            let inner = executor.clone();
            tasks.push(executor.spawn(async move {
                let tasks: Vec<_> = (0..100)
                    .map(|m| inner.spawn(async move { n * m }))
                    .collect();
                let mut sum = 0;
                for task in tasks {
                    yield_now().await;
                    sum += task.await.unwrap();
                }
                sum
            }));
        }
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        sum
    });
    assert_eq!(block_on(sum), 4_950 * 4_950);
}

#[test]
fn wakes_from_other_threads_reach_sleeping_runners() {
    let executor = Executor::new(2);
    thread::scope(|threads| {
        for _ in 0..2 {
            threads.spawn(|| {
                let tasks: Vec<_> = (0..50).map(|_| executor.spawn(woken_elsewhere())).collect();
                block_on(executor.run(async {
                    for task in tasks {
                        task.await.unwrap();
                    }
                }));
            });
        }
    });
}

#[test]
fn task_spawned_by_a_blocked_runner_is_stolen() {
    let executor = Executor::new(2);
    let (stop, stopped) = async_channel::bounded::<()>(1);
    thread::scope(|threads| {
        threads.spawn(|| block_on(executor.run(stopped.recv())));
        block_on(executor.run(async {
            let here = thread::current().id();
            let (send, sent) = mpsc::channel();
            let task = executor.spawn(async move { send.send(thread::current().id()).unwrap() });
            // This runner is blocked, so the task runs only if the other runner steals it.
            assert_ne!(sent.recv().unwrap(), here);
            task.await.unwrap();
        }));
        drop(stop);
    });
}

#[test]
fn spawn_by_a_woken_runners_future_wakes_another() {
    let executor = Executor::new(2);
    let woken = [0, 1].map(|_| Arc::new(Woken::default()));
    let wakers = woken.each_ref().map(|woken| Waker::from(woken.clone()));
    let mut slept = false;
    let mut first = Box::pin(executor.run(poll_fn(|_| {
        if slept {
            // The future may block on the task from here on, so the second runner must be woken.
            drop(executor.spawn(async {}));
            assert!(woken[1].0.load(Relaxed));
        }
        slept = true;
        Poll::<()>::Pending
    })));
    let mut second = Box::pin(executor.run(pending::<()>()));
    let mut cxs = wakers.each_ref().map(Context::from_waker);
    assert!(first.as_mut().poll(&mut cxs[0]).is_pending());
    assert!(second.as_mut().poll(&mut cxs[1]).is_pending());
    assert!(first.as_mut().poll(&mut cxs[0]).is_pending());
}

#[test]
fn woken_runner_blocking_on_its_spawn_does_not_hang() {
    let executor = Executor::new(2);
    let (stop, stopped) = async_channel::bounded::<()>(1);
    thread::scope(|threads| {
        threads.spawn(|| block_on(executor.run(stopped.recv())));
        block_on(executor.run(async {
            for _ in 0..20 {
                woken_elsewhere().await;
                let (send, sent) = mpsc::channel();
                let task = executor.spawn(async move { send.send(()).unwrap() });
                sent.recv().unwrap();
                task.await.unwrap();
            }
        }));
        drop(stop);
    });
}

#[test]
fn dropped_runner_leaves_its_tasks_to_the_next() {
    let executor = Executor::new(1);
    let (send, sent) = mpsc::channel();
    let mut cx = Context::from_waker(Waker::noop());
    for n in 0..1_000 {
        let send = send.clone();
        let mut spawned = false;
        let spawn = poll_fn(|_| {
            if !spawned {
                spawned = true;
                let send = send.clone();
                executor.spawn(async move {
                    yield_now().await;
                    send.send(n).unwrap();
                });
            }
            Poll::<()>::Pending
        });
        // The run is dropped after one poll, in which it also runs the task. So its runner sleeps.
        assert!(pin!(executor.run(spawn)).poll(&mut cx).is_pending());
    }
    drop(send);
    block_on(executor.run(async {
        for _ in 0..1_000 {
            yield_now().await;
        }
    }));
    assert!(sent.iter().eq(0..1_000));
}

#[test]
fn dropped_sleeper_passes_its_notification_on() {
    let executor = Executor::new(2);
    for dropped in 0..2 {
        let (stop, stopped) = async_channel::bounded::<()>(1);
        let mut runs = [0, 1].map(|_| Box::pin(executor.run(stopped.recv())));
        let woken = [0, 1].map(|_| Arc::new(Woken::default()));
        let wakers = woken.each_ref().map(|woken| Waker::from(woken.clone()));
        let mut poll = |n: usize| runs[n].as_mut().poll(&mut Context::from_waker(&wakers[n]));
        assert!(poll(0).is_pending() && poll(1).is_pending());
        let task = executor.spawn(async move { drop(stop) });
        let chosen = usize::from(woken[1].0.load(Relaxed));
        if dropped == 0 {
            let mut runs: Vec<_> = runs.into();
            drop(runs.remove(chosen));
            assert!(woken[1 - chosen].0.load(Relaxed));
            let mut cx = Context::from_waker(&wakers[1 - chosen]);
            assert!(runs[0].as_mut().poll(&mut cx).is_pending());
            assert!(runs[0].as_mut().poll(&mut cx).is_ready());
        } else {
            assert!(poll(chosen).is_pending() && poll(chosen).is_ready());
        }
        assert!(task.is_finished());
    }
}

#[test]
fn dropped_executor_cancels_idle_and_queued_tasks() {
    let dropped = Arc::new(AtomicUsize::new(0));
    let executor = Executor::new(2);
    let spawn = |waits: bool| {
        let counted = Counted(dropped.clone());
        executor.spawn(async move {
            if waits {
                pending::<()>().await;
            }
            drop(counted);
        })
    };
    let idle: Vec<_> = (0..10).map(|_| spawn(true)).collect();
    block_on(executor.run(yield_now()));
    let queued: Vec<_> = (0..10).map(|_| spawn(false)).collect();
    drop(executor);
    assert_eq!(dropped.load(Relaxed), 20);
    for task in idle.into_iter().chain(queued) {
        assert!(block_on(task).unwrap_err().is_cancelled());
    }
}

/// Forgets a run, but keeps its address where a leak checker finds it.
fn forget<F>(run: Pin<Box<F>>, kept: &AtomicPtr<()>) {
    // SAFETY: the future is never moved again.
    let run = Box::into_raw(unsafe { Pin::into_inner_unchecked(run) });
    kept.store(run.cast(), Relaxed);
}

#[test]
fn dropped_executor_cancels_tasks_in_a_forgotten_ring() {
    static FORGOTTEN: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
    let executor = Executor::new(2);
    let (open, opens) = async_channel::bounded::<()>(1);
    let woken = Arc::new(AtomicBool::new(false));
    let seen = woken.clone();
    let task = executor.spawn(async move {
        _ = opens.recv().await;
        seen.store(true, Relaxed);
        loop {
            yield_now().await;
        }
    });
    let mut cx = Context::from_waker(Waker::noop());
    // The task enters the list of the first run, and stays in the ring of the second.
    let mut first = Box::pin(executor.run(pending::<()>()));
    assert!(first.as_mut().poll(&mut cx).is_pending());
    let mut second = Box::pin(executor.run(poll_fn(|_| {
        open.close();
        Poll::<()>::Pending
    })));
    assert!(second.as_mut().poll(&mut cx).is_pending());
    assert!(woken.load(Relaxed));
    forget(second, &FORGOTTEN);
    drop(first);
    drop(executor);
    assert!(task.is_finished());
    let outcome: Result<(), _> = block_on(task);
    assert!(outcome.unwrap_err().is_cancelled());
}

#[test]
fn dropped_executor_without_slots_cancels_queued_tasks() {
    static FORGOTTEN: AtomicPtr<()> = AtomicPtr::new(ptr::null_mut());
    let executor = Executor::new(1);
    let mut run = Box::pin(executor.run(pending::<()>()));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(run.as_mut().poll(&mut cx).is_pending());
    forget(run, &FORGOTTEN);
    let task = executor.spawn(async {});
    drop(executor);
    assert!(task.is_finished());
    assert!(block_on(task).unwrap_err().is_cancelled());
}

#[test]
fn dropped_executor_cancels_tasks_during_wakes() {
    for _ in 0..50 {
        let executor = Executor::new(1);
        let tasks: Vec<_> = (0..10).map(|_| executor.spawn(woken_elsewhere())).collect();
        block_on(executor.run(yield_now()));
        drop(executor);
        for task in tasks {
            assert!(block_on(task).map_or_else(|error| error.is_cancelled(), |()| true));
        }
    }
}

#[test]
fn dropped_executor_waits_for_wakes_under_locks() {
    for _ in 0..100 {
        let executor = Executor::new(1);
        let (open, opens) = async_channel::bounded::<()>(1);
        let tasks = [(); 4].map(|()| {
            let opens = opens.clone();
            executor.spawn(async move { _ = opens.recv().await })
        });
        block_on(executor.run(yield_now()));
        // The drop of `open` wakes the tasks under a lock that the drop of their futures takes.
        let waker = thread::spawn(move || drop(open));
        drop(executor);
        waker.join().unwrap();
        assert!(tasks.iter().all(|task| task.is_finished()));
    }
}

#[test]
fn panic_of_a_task_goes_to_its_handle() {
    let executor = Executor::new(1);
    let task = executor.spawn(async { panic!("of a task") });
    let error = block_on(executor.run(task)).unwrap_err();
    assert_eq!(error.into_panic().downcast_ref(), Some(&"of a task"));
    assert_eq!(
        block_on(executor.run(executor.spawn(async { 7 }))).unwrap(),
        7
    );
}

#[test]
fn panic_of_a_runs_future_frees_its_slot() {
    let executor = Executor::new(1);
    for _ in 0..3 {
        let run = || block_on(executor.run(async { panic!("of a run") }));
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    }
    assert_eq!(
        block_on(executor.run(executor.spawn(async { 7 }))).unwrap(),
        7
    );
}

#[test]
fn executor_inside_a_task_of_another_keeps_its_own_ring() {
    let outer = Executor::new(1);
    let task = outer.spawn(async {
        let inner = Executor::new(1);
        let task = inner.spawn(async {
            yield_now().await;
            1
        });
        block_on(inner.run(task)).unwrap() + 1
    });
    assert_eq!(block_on(outer.run(task)).unwrap(), 2);
}

#[test]
fn run_is_send_where_its_future_is() {
    fn assert_send<T: Send>(_: T) {}
    assert_send(Executor::new(1).run(async {}));
}
