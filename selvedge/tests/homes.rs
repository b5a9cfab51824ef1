//! Tests of runtimes whose workers do not steal: each task runs on its home, whichever thread wakes
//! it. The workers have threads, of which one waits for timers, sockets and children of all.
#![cfg(all(feature = "groups", feature = "net"))]
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]

use selvedge::{
    Builder, JoinHandle, Runtime, block_in_place,
    park::{Park, ThreadPark},
    runtime::worker_index,
    spawn, spawn_in,
    time::{Duration, Instant, sleep},
    yield_now,
};
use std::{
    future::{Future, poll_fn},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
        mpsc,
    },
    task::{Poll, Waker},
    thread,
};

/// Runs `test` on runtimes with 2 and with 4 workers that do not steal.
fn on_sharded(test: impl Fn(&Runtime, usize)) {
    for workers in [2, 4] {
        let builder = Builder::new().workers(workers).sharded(true).prestart();
        test(&builder.build().unwrap(), workers);
    }
}

/// Has each worker spawn tasks by `spawns`, and returns their handles.
fn on_each_worker<H: Send + 'static>(
    runtime: &Runtime,
    workers: usize,
    spawns: impl Fn(usize) -> Vec<H> + Clone + Send + 'static,
) -> Vec<H> {
    let (begun, begins) = mpsc::channel();
    let (spawned, handles) = mpsc::channel();
    let all_have = Arc::new(AtomicBool::new(false));
    for _ in 0..workers {
        let (begun, all_have, spawned) = (begun.clone(), all_have.clone(), spawned.clone());
        let spawns = spawns.clone();
        // The task keeps its worker until each worker has such a task.
        runtime.spawn_detached(async move {
            begun.send(()).unwrap();
            while !all_have.load(SeqCst) {
                thread::yield_now();
            }
            let worker = worker_index().expect("a worker runs it");
            spawned.send(spawns(worker)).unwrap();
        });
        begins.recv().unwrap();
    }
    all_have.store(true, SeqCst);
    drop(spawned);
    handles.into_iter().flatten().collect()
}

/// Returns a future that awaits what `wait` returns several times. It fails if the task that polls
/// it goes on on another worker than `home`.
async fn stays<F: Future<Output = ()>>(home: usize, wait: impl Fn(usize) -> F) {
    for round in 0..10 {
        assert_eq!(worker_index(), Some(home), "before round {round}");
        wait(round).await;
    }
    assert_eq!(worker_index(), Some(home));
}

fn join_all(runtime: &Runtime, tasks: Vec<JoinHandle<()>>) {
    for task in tasks {
        runtime.block_on(task).unwrap();
    }
}

/// Fails if a timer's wake goes to the worker that fires the timer.
#[test]
fn sleepers_of_sharded_workers_resume_at_home() {
    on_sharded(|runtime, workers| {
        let sleeper = |home| {
            stays(home, |round| {
                sleep(Duration::from_millis(1 + (round % 3) as u64))
            })
        };
        let tasks = on_each_worker(runtime, workers, move |home| {
            (0..4).map(|_| spawn(sleeper(home))).collect()
        });
        join_all(runtime, tasks);
        let group = runtime.group("batch").build().unwrap();
        let tasks = on_each_worker(runtime, workers, move |home| {
            let sleepers = (0..4).map(|_| spawn_in(&group, sleeper(home)).unwrap());
            sleepers.collect()
        });
        join_all(runtime, tasks);
        assert_eq!(runtime.snapshot().stolen_tasks, 0);
    });
}

/// Fails if a timer's wake goes to the worker that fires the timer, while every worker is busy.
#[test]
fn sleepers_beside_busy_tasks_resume_at_home() {
    on_sharded(|runtime, workers| {
        let done = Arc::new(AtomicBool::new(false));
        let group = runtime.group("busy").shares(50).build().unwrap();
        let stop = done.clone();
        let tasks = on_each_worker(runtime, workers, move |home| {
            let (group, stop) = (group.clone(), stop.clone());
            let busy = spawn_in(&group, async move {
                while !stop.load(SeqCst) {
                    assert_eq!(worker_index(), Some(home));
                    yield_now().await;
                }
            });
            let sleeper = || spawn(stays(home, |_| sleep(Duration::from_millis(1))));
            vec![(busy.unwrap(), [sleeper(), sleeper()])]
        });
        for (_, sleepers) in &tasks {
            while !sleepers.iter().all(JoinHandle::is_finished) {
                thread::sleep(Duration::from_millis(1));
            }
        }
        done.store(true, SeqCst);
        for (busy, sleepers) in tasks {
            join_all(runtime, sleepers.into_iter().chain([busy]).collect());
        }
    });
}

/// Fails if a socket's wake goes to the worker that polls the sockets.
#[cfg(all(feature = "net", unix))]
#[test]
fn readers_of_sharded_workers_resume_at_home() {
    use futures::AsyncReadExt;
    use selvedge::net::UnixStream;
    use std::{io::Write, os::unix};

    on_sharded(|runtime, workers| {
        let reads = Arc::new(AtomicUsize::new(0));
        let (give, writers) = mpsc::channel();
        let count = reads.clone();
        let tasks = on_each_worker(runtime, workers, move |home| {
            let reader = |_| {
                let (ours, theirs) = unix::net::UnixStream::pair().unwrap();
                give.send(theirs).unwrap();
                ours.set_nonblocking(true).unwrap();
                let mut ours = UnixStream::from_std(ours).unwrap();
                let count = count.clone();
                spawn(async move {
                    let mut byte = [0];
                    while ours.read(&mut byte).await.unwrap() > 0 {
                        assert_eq!(worker_index(), Some(home));
                        count.fetch_add(1, SeqCst);
                    }
                })
            };
            (0..3).map(reader).collect()
        });
        let mut writers: Vec<_> = writers.try_iter().collect();
        assert_eq!(writers.len(), 3 * workers);
        for round in 1..=20 {
            for writer in &mut writers {
                writer.write_all(b"x").unwrap();
            }
            // The readers wait for their sockets when all bytes are read.
            while reads.load(SeqCst) < round * 3 * workers && tasks.iter().all(|t| !t.is_finished())
            {
                thread::yield_now();
            }
        }
        drop(writers);
        join_all(runtime, tasks);
        assert_eq!(reads.load(SeqCst), 20 * 3 * workers);
    });
}

/// Fails if the wake at a child's end goes to the worker that waits for children.
#[cfg(all(feature = "process", target_os = "linux"))]
#[test]
fn waits_for_children_of_sharded_workers_resume_at_home() {
    use selvedge::process::Command;

    on_sharded(|runtime, workers| {
        let tasks = on_each_worker(runtime, workers, |home| {
            let waits = || async move {
                for _ in 0..3 {
                    assert!(Command::new("true").status().await.unwrap().success());
                    assert_eq!(worker_index(), Some(home));
                }
            };
            (0..2).map(|_| spawn(waits())).collect()
        });
        join_all(runtime, tasks);
    });
}

/// Tasks of all workers pass messages around, so that each is woken by the polls of others.
///
/// Fails if a wake goes to the worker whose task wakes.
#[test]
fn tasks_that_wake_each_other_resume_at_home() {
    on_sharded(|runtime, workers| {
        let ring: Vec<_> = (0..workers).map(|_| async_channel::bounded(1)).collect();
        let first = ring[0].0.clone();
        let tasks = on_each_worker(runtime, workers, move |home| {
            let (own, next) = (ring[home].1.clone(), ring[(home + 1) % workers].0.clone());
            vec![spawn(async move {
                for _ in 0..1_000 {
                    let message: u32 = own.recv().await.unwrap();
                    assert_eq!(worker_index(), Some(home));
                    // The task after the last message has ended, and receives nothing.
                    let _ = next.send(message + 1).await;
                }
            })]
        });
        first.send_blocking(0).unwrap();
        join_all(runtime, tasks);
    });
}

/// Each task joins a task of the same worker, which a foreign thread ends.
///
/// Fails if a wake from outside, or the wake of a join handle, goes to another worker.
#[test]
fn tasks_that_join_others_resume_at_home() {
    on_sharded(|runtime, workers| {
        let (give, senders) = mpsc::channel();
        let tasks = on_each_worker(runtime, workers, move |home| {
            let give = give.clone();
            let (sender, receiver) = futures::channel::oneshot::channel::<()>();
            give.send(sender).unwrap();
            let ends = spawn(async move {
                receiver.await.unwrap();
                assert_eq!(worker_index(), Some(home));
            });
            vec![spawn(async move {
                ends.await.unwrap();
                assert_eq!(worker_index(), Some(home));
            })]
        });
        for sender in senders.try_iter() {
            thread::spawn(move || sender.send(()).unwrap())
                .join()
                .unwrap();
        }
        join_all(runtime, tasks);
    });
}

/// A home always has tasks of its own, whose polls are long, and never looks at its inbox by
/// itself. Tasks that a foreign thread wakes run nevertheless.
///
/// Fails if the monitor does not watch inboxes: then the second wake waits for ever.
#[test]
fn wakes_of_a_busy_home_are_served_within_its_interval() {
    let builder = Builder::new().workers(2).sharded(true).monitor(true);
    let runtime = builder.global_interval(u32::MAX).build().unwrap();
    let (sender, receiver) = async_channel::bounded(1);
    let (done, polls) = <(Arc<AtomicBool>, Arc<AtomicUsize>)>::default();
    let (stop, count) = (done.clone(), polls.clone());
    let receives = runtime.spawn(async move {
        let home = worker_index().expect("a worker runs it");
        let busy = spawn(async move {
            while !stop.load(SeqCst) {
                assert_eq!(worker_index(), Some(home));
                count.fetch_add(1, SeqCst);
                thread::sleep(Duration::from_millis(1));
                yield_now().await;
            }
        });
        for n in 0..10 {
            assert_eq!(receiver.recv().await, Ok(n));
            assert_eq!(worker_index(), Some(home));
        }
        busy.await.unwrap();
    });
    let wait_until = |condition: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !condition() {
            assert!(begun.elapsed() < Duration::from_secs(600), "it hangs");
            thread::yield_now();
        }
    };
    for n in 0..10 {
        // The receiver waits for a wake once the other task runs again.
        let before = polls.load(SeqCst);
        wait_until(&|| polls.load(SeqCst) > before);
        sender.send_blocking(n).unwrap();
        wait_until(&|| sender.is_empty());
    }
    done.store(true, SeqCst);
    runtime.block_on(receives).unwrap();
}

/// A poll whose worker another thread has taken over goes on at home after its next yield.
///
/// Fails if such a poll's task goes to the injector.
#[test]
fn poll_that_lost_its_worker_returns_home() {
    on_sharded(|runtime, workers| {
        let tasks = on_each_worker(runtime, workers, |home| {
            vec![spawn(async move {
                // The end of the first poll makes the worker its home. A sleep may end before.
                yield_now().await;
                sleep(Duration::from_millis(1)).await;
                let (sender, receiver) = mpsc::channel();
                // Only the thread that takes the worker over runs this task.
                drop(spawn(async move { sender.send(worker_index()).unwrap() }));
                let other = block_in_place(|| receiver.recv().unwrap());
                assert_eq!((other, worker_index()), (Some(home), None));
                yield_now().await;
                assert_eq!(worker_index(), Some(home));
            })]
        });
        join_all(runtime, tasks);
    });
}

/// A task of a home blocks in place until others of that home, which wait for timers and for each
/// other, have ended. Another thread has the home meanwhile.
///
/// Fails if the tasks of a home wait for the poll that blocks, or go to another worker.
#[test]
fn tasks_of_a_home_run_there_while_its_poll_blocks_in_place() {
    on_sharded(|runtime, workers| {
        let tasks = on_each_worker(runtime, workers, |home| {
            let (sender, receiver) = mpsc::channel();
            let sleeper = |_| {
                let sender = sender.clone();
                spawn(async move {
                    stays(home, |_| sleep(Duration::from_millis(1))).await;
                    sender.send(()).unwrap();
                })
            };
            let mut tasks: Vec<_> = (0..3).map(sleeper).collect();
            drop(sender);
            tasks.push(spawn(async move {
                // The task gets its home with its first wait.
                yield_now().await;
                sleep(Duration::from_millis(1)).await;
                assert_eq!(worker_index(), Some(home));
                assert_eq!(block_in_place(|| receiver.iter().count()), 3);
                // A sleep might be over before its first poll: the task would not leave the thread.
                yield_now().await;
                assert_eq!(worker_index(), Some(home));
            }));
            tasks
        });
        join_all(runtime, tasks);
    });
}

/// Each wake in a runtime of one thread, by that thread or another one, leads to that thread.
///
/// Fails if a thread that wakes a task does not unpark the thread in `block_on`, or if `block_on`
/// does not look at the inbox.
#[test]
fn tasks_of_a_sharded_runtime_of_one_thread_resume() {
    let runtime = Builder::new_current_thread().sharded(true).build().unwrap();
    let group = runtime.group("batch").build().unwrap();
    let (sender, receiver) = async_channel::bounded(1);
    let senders = thread::spawn(move || (0..100).for_each(|n| sender.send_blocking(n).unwrap()));
    runtime.block_on(async {
        let receives = || {
            let receiver = receiver.clone();
            async move {
                let mut received = 0;
                while receiver.recv().await.is_ok() {
                    assert_eq!(worker_index(), Some(0));
                    received += 1;
                }
                received
            }
        };
        let tasks = [spawn(receives()), spawn_in(&group, receives()).unwrap()];
        let sleeper = || stays(0, |_| sleep(Duration::from_millis(1)));
        for sleeper in [spawn(sleeper()), spawn_in(&group, sleeper()).unwrap()] {
            sleeper.await.unwrap();
        }
        let mut sum = 0;
        for task in tasks {
            sum += task.await.unwrap();
        }
        assert_eq!(sum, 100);
    });
    senders.join().unwrap();
}

/// A driver that calls wakers while its worker sleeps, and not when it delivers events.
struct WakesInPark {
    thread: ThreadPark,
    wakers: Arc<Mutex<Vec<Waker>>>,
}

impl Park for WakesInPark {
    fn park(&mut self) {
        let wakers = std::mem::take(&mut *self.wakers.lock().unwrap());
        if wakers.is_empty() {
            self.thread.park();
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    fn park_timeout(&mut self, limit: Duration) {
        let wakers = std::mem::take(&mut *self.wakers.lock().unwrap());
        if wakers.is_empty() {
            self.thread.park_timeout(limit);
        }
        wakers.into_iter().for_each(Waker::wake);
    }

    fn waker(&self) -> Waker {
        self.thread.waker()
    }
}

/// The tasks of all workers wait for the drivers, of which each wakes its own worker's tasks and
/// those of others.
///
/// Fails if the wake of a driver's own worker, which sleeps at that time, is lost. Fails too if a
/// wake by a driver goes to another worker than the home.
#[test]
fn tasks_that_drivers_wake_in_their_parks_resume_at_home() {
    for workers in [2, 4] {
        let wakers = Arc::<Mutex<Vec<Waker>>>::default();
        let shared = wakers.clone();
        let builder = Builder::new().workers(workers).sharded(true);
        let driver = move |_| WakesInPark {
            thread: ThreadPark::new(),
            wakers: shared.clone(),
        };
        let runtime = builder.driver(driver).build().unwrap();
        let tasks = on_each_worker(&runtime, workers, move |home| {
            let wakers = wakers.clone();
            let waits = move |_| {
                let (wakers, mut has_waited) = (wakers.clone(), false);
                poll_fn(move |cx| {
                    if std::mem::replace(&mut has_waited, true) {
                        return Poll::Ready(());
                    }
                    wakers.lock().unwrap().push(cx.waker().clone());
                    Poll::Pending
                })
            };
            let tasks = (0..20).map(|_| spawn(stays(home, waits.clone())));
            tasks.collect()
        });
        join_all(&runtime, tasks);
    }
}

/// Fails if the tasks in inboxes keep the runtime from its end, or are dropped twice. With three
/// workers, one of them may see a task in another one's inbox, which takes it, and must not park.
#[test]
fn end_beside_wakes_drops_every_task() {
    struct Counted(Arc<AtomicUsize>);
    impl Drop for Counted {
        fn drop(&mut self) {
            self.0.fetch_add(1, SeqCst);
        }
    }
    for workers in [2, 3, 4].repeat(20) {
        let dropped = Arc::new(AtomicUsize::new(0));
        let runtime = Builder::new().workers(workers).sharded(true).prestart();
        let runtime = runtime.build().unwrap();
        let (sender, receiver) = async_channel::bounded(1);
        let count = dropped.clone();
        let tasks = on_each_worker(&runtime, workers, move |_| {
            let task = |_| {
                let (sender, receiver) = (sender.clone(), receiver.clone());
                let counted = Counted(count.clone());
                spawn(async move {
                    let _counted = counted;
                    loop {
                        let _ = sender.send(()).await;
                        let _ = receiver.recv().await;
                        yield_now().await; // Alone, the task would never wait.
                    }
                })
            };
            (0..50).map(task).collect()
        });
        drop(runtime);
        assert_eq!(dropped.load(SeqCst), tasks.len());
    }
}
