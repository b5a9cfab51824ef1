//! Tests of how runtimes start and end.
use super::*;

/// Records the names of the threads that drop it.
struct Drops(Arc<Mutex<Vec<String>>>);

impl Drop for Drops {
    fn drop(&mut self) {
        let name = std::thread::current().name().unwrap_or("?").to_owned();
        self.0.lock().unwrap().push(name);
    }
}

/// Counts the threads of this process whose names begin with `prefix`, except monitors. (The system
/// cuts names at 15 bytes.)
fn threads_named(prefix: &str) -> usize {
    let names = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = names.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    let counts = |name: &String| name.starts_with(prefix) && !name.contains("-mon");
    names.filter(counts).count()
}

#[test]
#[cfg(target_os = "linux")]
fn build_that_fails_to_start_a_thread_leaves_none() {
    for fails in 0..3 {
        let mut builder = Builder::new().workers(3).prestart().thread_name("failing");
        builder.fail_at_thread(fails);
        let error = builder.build().unwrap_err();
        assert!(error.to_string().contains("as the test asked"), "{error}");
        // The system may list an ended thread for a moment more.
        until(|| threads_named("failing") == 0);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_worker_gets_its_thread_when_those_before_it_are_busy() {
    let runtime = Builder::new().workers(3).thread_name("lazy").build();
    let runtime = runtime.unwrap();
    let has_threads = |threads| until(|| threads_named("lazy-") == threads);
    // Each task runs by itself, long after the previous one has ended.
    for parks in 1..4 {
        until(|| runtime.snapshot().parks >= parks);
        has_threads(1);
        runtime.block_on(runtime.spawn(async {})).unwrap();
    }
    until(|| runtime.snapshot().parks >= 4);
    let gates: Vec<_> = (1..=3)
        .map(|busy| {
            let (gate, held) = mpsc::channel::<()>();
            let (begin, begun) = mpsc::channel();
            runtime.spawn_detached(async move {
                begin.send(()).unwrap();
                let _ = held.recv();
            });
            begun.recv().unwrap();
            has_threads(busy);
            gate
        })
        .collect();
    drop(gates);
    drop(runtime);
    has_threads(0);
}

#[test]
fn runtime_goes_on_without_workers_whose_thread_is_refused() {
    for fails in 1..4 {
        let mut builder = Builder::new().workers(4);
        builder.fail_at_thread(fails);
        let runtime = builder.build().unwrap();
        // Three tasks wait for each other, each on a thread of its own.
        let all = Arc::new(std::sync::Barrier::new(3));
        let tasks = [(); 3].map(|()| {
            let all = all.clone();
            runtime.spawn(async move { all.wait().is_leader() })
        });
        let leaders = tasks.map(|task| usize::from(block_on(task).unwrap()));
        assert_eq!(leaders.iter().sum::<usize>(), 1);
        assert!(runtime.snapshot().thread_refusals <= 1);
        drop(runtime);
    }
}

#[test]
fn a_runtime_whose_workers_never_began_is_freed() {
    let held = Arc::new(());
    let hook = held.clone();
    let hook = move || drop(hook.clone());
    let runtime = Builder::new().workers(9).on_thread_stop(hook).build();
    drop(runtime.unwrap());
    assert_eq!(Arc::strong_count(&held), 1);
}

/// A hook for a thread's start spawns a task from outside, and waits for it. The other workers run
/// the task.
#[test]
fn a_hook_for_a_start_may_wait_for_a_task() {
    for which in 0..3 {
        let (give, handle) = mpsc::channel::<Handle>();
        let (done, ended) = mpsc::channel();
        let places = Mutex::new(Some((handle, done)));
        let started = AtomicUsize::new(0);
        let hook = move || {
            if started.fetch_add(1, SeqCst) == which {
                let (handle, done) = places.lock().unwrap().take().unwrap();
                let handle = handle.recv().unwrap();
                done.send(block_on(handle.spawn(async { 7 })).unwrap())
                    .unwrap();
            }
        };
        let runtime = Builder::new().workers(3).on_thread_start(hook);
        let runtime = runtime.build().unwrap();
        // The two other workers sleep.
        until(|| runtime.snapshot().parks >= 2);
        give.send(runtime.handle().clone()).unwrap();
        assert_eq!(ended.recv_timeout(LONG), Ok(7));
    }
}

/// The hook of the first park spawns a task that shuts the runtime down, while `build` goes on.
#[test]
fn a_runtime_may_end_while_it_is_built() {
    for _ in 0..20 {
        let hook =
            || drop(Handle::try_current().map(|here| here.spawn(async { panic!("at once") })));
        let runtime = Builder::new()
            .workers(1_000)
            .on_thread_park(hook)
            .unhandled_panic(UnhandledPanic::Shutdown);
        let runtime = runtime.build().unwrap();
        until(|| runtime.snapshot().spawns > 0);
        drop(runtime);
    }
}

#[test]
fn stack_size_that_the_system_refuses_is_an_error() {
    // Three quarters of the address space: on 32-bit machines, a quarter of it may be free.
    let builder = Builder::new().workers(1).stack_size(usize::MAX / 4 * 3);
    assert!(builder.build().is_err());
}

#[test]
fn a_shutdown_with_a_limit_says_whether_all_ended() {
    let runtime = workers(2);
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    assert!(runtime.shutdown_timeout(LONG));

    let runtime = workers(1);
    let (begun, wait) = (mpsc::channel(), mpsc::channel::<()>());
    let closure = runtime.spawn_blocking(move || {
        begun.0.send(()).unwrap();
        let _ = wait.1.recv();
        7
    });
    begun.1.recv().unwrap();
    let drops = Arc::new(Mutex::new(Vec::new()));
    let held = Drops(drops.clone());
    runtime.spawn_detached(async move {
        let _held = held;
        pending::<()>().await;
    });
    assert!(!runtime.shutdown_timeout(Duration::from_millis(200)));
    // The end of the task does not wait for the closure.
    until(|| drops.lock().unwrap().len() == 1);
    wait.0.send(()).unwrap();
    assert_eq!(block_on(closure).unwrap(), 7);
}

#[test]
fn shutdown_in_the_background_ends_all_tasks_later() {
    let drops = Arc::new(Mutex::new(Vec::new()));
    let runtime = workers(2);
    let tasks: Vec<_> = (0..10)
        .map(|_| {
            let held = Drops(drops.clone());
            runtime.spawn(async move {
                let _held = held;
                pending::<()>().await;
            })
        })
        .collect();
    runtime.shutdown_background();
    for task in tasks {
        assert!(block_on(task).unwrap_err().is_cancelled());
    }
    assert_eq!(drops.lock().unwrap().len(), 10);
}

#[test]
fn runtimes_that_are_dropped_by_each_others_tasks_end() {
    let (one, two) = (workers(1), workers(1));
    let handles = [one.handle().clone(), two.handle().clone()];
    let (sent, ended) = mpsc::channel::<()>();
    for (handle, runtime) in handles.into_iter().zip([two, one]) {
        let sent = sent.clone();
        // The task of the other runtime may cancel this task before this task runs. The runtime
        // that this task owns is still dropped.
        handle.spawn_detached(async move {
            let _sent = sent;
            drop(runtime);
        });
    }
    drop(sent);
    assert_eq!(
        ended.recv_timeout(LONG),
        Err(mpsc::RecvTimeoutError::Disconnected)
    );
}

#[test]
fn runtime_dropped_in_the_block_on_of_another_does_not_wait() {
    let outer = workers(1);
    let (sender, receiver) = mpsc::channel();
    outer.block_on(async {
        let inner = workers(1);
        let (begun, begins) = mpsc::channel();
        inner.spawn_blocking(move || {
            begun.send(()).unwrap();
            receiver.recv().unwrap()
        });
        begins.recv().unwrap();
        drop(inner);
        sender.send(()).unwrap();
    });
}

#[test]
fn a_runtime_dropped_in_its_own_blocking_closure_ends() {
    let runtime = workers(1);
    let handle = runtime.handle().clone();
    let closure = handle.spawn_blocking(move || drop(runtime));
    block_on(closure).unwrap();
    assert!(block_on(handle.spawn(async {})).unwrap_err().is_cancelled());
}

#[test]
fn unhandled_panic_shuts_the_runtime_down_if_the_policy_says() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = seen.clone();
    let runtime = Builder::new()
        .workers(2)
        .unhandled_panic(UnhandledPanic::Shutdown)
        .on_panic(move |payload| {
            let text = payload.downcast_ref::<&str>().copied().unwrap_or("?");
            heard.lock().unwrap().push(text.to_owned());
        })
        .build()
        .unwrap();
    let other = runtime.spawn(pending::<()>());
    let error = block_on(runtime.spawn(async { panic!("on purpose") })).unwrap_err();
    assert!(error.is_panic());
    assert!(block_on(other).unwrap_err().is_cancelled());
    assert!(
        block_on(runtime.spawn(async {}))
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!(*seen.lock().unwrap(), ["on purpose"]);
}

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in a drop");
    }
}

#[test]
fn panics_in_drops_hooks_and_closures_reach_the_handler() {
    let heard = Arc::new(AtomicUsize::new(0));
    let count = heard.clone();
    let runtime = Builder::new()
        .workers(1)
        .on_panic(move |_| {
            count.fetch_add(1, SeqCst);
            panic!("in the handler");
        })
        .on_thread_start(|| panic!("in a hook"))
        .build()
        .unwrap();
    let future_drop = runtime.spawn(async {
        let _bomb = Bomb;
        yield_now().await;
    });
    assert!(block_on(future_drop).unwrap_err().is_panic());
    let aborted = runtime.spawn(async {
        let _bomb = Bomb;
        pending::<()>().await;
    });
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    aborted.abort();
    assert!(block_on(aborted).is_err());
    assert!(
        block_on(runtime.spawn_blocking(|| panic!("in a closure")))
            .unwrap_err()
            .is_panic()
    );
    runtime.spawn_detached(async { Bomb });
    assert_eq!(runtime.block_on(runtime.spawn(async { 1 })).unwrap(), 1);
    drop(runtime);
    // These panicked: two hooks for starts, the drops of two futures, the closure, and the drop of
    // the output.
    assert_eq!(heard.load(SeqCst), 6);
}

#[test]
fn panic_without_a_join_handle_reaches_the_handler() {
    struct Loud;
    impl std::task::Wake for Loud {
        fn wake(self: Arc<Self>) {
            panic!("in a waker");
        }
    }
    let (sent, heard) = mpsc::channel();
    let runtime = Builder::new()
        .workers(1)
        .blocking_threads(1)
        .on_panic(move |payload| {
            assert!(Handle::try_current().is_ok());
            let text = payload.downcast_ref::<&str>().copied().unwrap_or("?");
            let _ = sent.send((text, std::thread::current().id()));
        })
        .build()
        .unwrap();
    let heard = || heard.recv_timeout(LONG).unwrap();

    runtime.spawn_detached(async { Bomb });
    assert_eq!(heard().0, "in a drop");
    drop(runtime.spawn_blocking(|| Bomb));
    assert_eq!(heard().0, "in a drop");
    let done = runtime.spawn(async { Bomb });
    while !done.is_finished() {
        std::thread::yield_now();
    }
    drop(done);
    assert_eq!(heard(), ("in a drop", std::thread::current().id()));

    let (open, gate) = oneshot::channel::<()>();
    let mut waited = runtime.spawn(async { gate.await.unwrap() });
    let waker = std::task::Waker::from(Arc::new(Loud));
    let poll = std::pin::Pin::new(&mut waited).poll(&mut std::task::Context::from_waker(&waker));
    assert!(poll.is_pending());
    open.send(()).unwrap();
    assert_eq!(heard().0, "in a waker");

    let handle = runtime.handle().clone();
    runtime.shutdown_background();
    let bomb = Bomb;
    let refused = handle.spawn_blocking(move || drop(bomb));
    assert_eq!(heard().0, "in a drop");
    assert!(block_on(refused).unwrap_err().is_panic());
}

#[test]
fn panic_without_a_join_handle_shuts_down_only_its_runtime() {
    let strict = Builder::new()
        .workers(1)
        .unhandled_panic(UnhandledPanic::Shutdown);
    let (told, heard) = mpsc::channel();
    let (one, two) = (strict.clone(), strict);
    let one = one.workers(3).on_panic(move |_| {
        let _ = told.send(Handle::current().snapshot().workers);
    });
    let (one, two) = (one.build().unwrap(), two.build().unwrap());
    let waits = [&one, &two].map(|runtime| runtime.spawn(pending::<()>()));
    let handle = one.handle().clone();
    // The drop of the `Bomb` panics in a task of the other runtime.
    block_on(two.spawn(async move {
        let done = handle.spawn(async { Bomb });
        while !done.is_finished() {
            yield_now().await;
        }
        drop(done);
    }))
    .unwrap();
    let [one, two] = waits;
    assert!(block_on(one).unwrap_err().is_cancelled());
    assert!(!two.is_finished());
    assert_eq!(heard.recv(), Ok(3), "the handler was in another runtime");
}

#[test]
fn hooks_are_called_in_pairs() {
    let counts: [Arc<AtomicUsize>; 8] = Default::default();
    let parks = counts[2].clone();
    let hook = |i: usize| {
        let count = counts[i].clone();
        move || {
            count.fetch_add(1, SeqCst);
        }
    };
    let task_hook = |i: usize| {
        let hook = hook(i);
        move |_| hook()
    };
    let runtime = Builder::new()
        .workers(2)
        .on_thread_start(hook(0))
        .on_thread_stop(hook(1))
        .on_thread_park(hook(2))
        .on_thread_unpark(hook(3))
        .on_task_spawn(task_hook(4))
        .on_before_poll(task_hook(5))
        .on_after_poll(task_hook(6))
        .on_task_end(task_hook(7))
        .build()
        .unwrap();
    let tasks: Vec<_> = (0..50).map(|_| runtime.spawn(yield_now())).collect();
    tasks.into_iter().for_each(|task| block_on(task).unwrap());
    // Once two tasks have met, both workers have a thread.
    let both = Arc::new(std::sync::Barrier::new(2));
    let tasks = [both.clone(), both].map(|both| {
        runtime.spawn(async move {
            both.wait();
        })
    });
    for task in tasks {
        block_on(task).unwrap();
    }
    // One task waits when the runtime ends, and one is queued or not polled yet.
    let (polled, heard) = std::sync::mpsc::channel();
    runtime.spawn_detached(async move {
        polled.send(()).unwrap();
        pending::<()>().await;
    });
    heard.recv().unwrap();
    until(|| parks.load(SeqCst) > 0);
    runtime.spawn_detached(pending::<()>());
    drop(runtime);
    let [start, stop, park, unpark, spawn, before, after, end] =
        counts.map(|count| count.load(SeqCst));
    assert_eq!((start, stop), (2, 2));
    assert!(park > 0);
    assert_eq!(park, unpark);
    assert_eq!((spawn, end), (54, 54));
    assert!(before >= 102, "{before}");
    assert_eq!(before, after);
}

#[test]
fn task_spawned_in_a_park_hook_runs() {
    let (sender, receiver) = mpsc::channel();
    let once = AtomicBool::new(false);
    let runtime = Builder::new()
        .workers(1)
        .on_thread_park(move || {
            if !once.swap(true, SeqCst) {
                let sender = sender.clone();
                spawn_detached(async move { sender.send(()).unwrap() });
            }
        })
        .build()
        .unwrap();
    receiver.recv_timeout(LONG).unwrap();
    drop(runtime);
}

#[test]
fn a_snapshot_accounts_for_every_task() {
    let runtime = workers(2);
    let tasks: Vec<_> = (0..100).map(|_| runtime.spawn(yield_now())).collect();
    tasks.into_iter().for_each(|task| block_on(task).unwrap());
    let waiting = runtime.spawn(pending::<()>());
    runtime.block_on(runtime.spawn(yield_now())).unwrap();
    let metrics = runtime.snapshot();
    assert_eq!((metrics.spawns, metrics.per_worker.len()), (102, 2));
    waiting.abort();
    assert!(block_on(waiting).is_err());
    let handle = runtime.handle().clone();
    drop(runtime);
    let metrics = handle.snapshot();
    assert_eq!((metrics.live_tasks, metrics.ends), (0, 102), "{metrics}");
    let polls: u64 = metrics.per_worker.iter().map(|worker| worker.polls).sum();
    assert_eq!(metrics.polls, polls);
}

/// For each thread whose name begins with `prefix`, returns how often the thread gave up its CPU by
/// itself, and how long the thread ran, in nanoseconds.
#[cfg(target_os = "linux")]
fn waits_and_time(prefix: &str) -> Vec<(String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let mut seen: Vec<_> = tasks
        .filter_map(|task| {
            let read = |file| std::fs::read_to_string(task.path().join(file)).ok();
            read("comm")?.starts_with(prefix).then_some(())?;
            let status = read("status")?;
            let waits = status
                .lines()
                .find(|line| line.starts_with("voluntary_ctxt_switches"))?;
            let time = read("schedstat")?.split_whitespace().next()?.to_owned();
            Some((format!("{:?} {waits}", task.file_name()), time))
        })
        .collect();
    seen.sort();
    seen
}

#[test]
#[cfg(target_os = "linux")]
fn an_idle_runtime_does_not_wake_up() {
    let stays_idle = |count, name| {
        let runtime = Builder::new().workers(count).prestart().thread_name(name);
        let runtime = runtime.build().unwrap();
        let tasks: Vec<_> = (0..100).map(|n| runtime.spawn(async move { n })).collect();
        for task in tasks {
            block_on(task).unwrap();
        }
        // A new thread has no name yet, and the watcher gives up after a while.
        until(|| {
            let before = waits_and_time(name);
            std::thread::sleep(Duration::from_secs(1));
            before.len() >= count && waits_and_time(name) == before
        });
        drop(runtime);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| stays_idle(2, "idle-of-two"));
        scope.spawn(|| stays_idle(4, "idle-of-four"));
    });
}

/// Makes a runtime of one worker, and a counter of the calls of its hook for ended tasks.
fn counts_ends() -> (Runtime, Arc<AtomicUsize>) {
    let ends = Arc::new(AtomicUsize::new(0));
    let count = ends.clone();
    let runtime = Builder::new()
        .workers(1)
        .on_task_end(move |_| {
            count.fetch_add(1, SeqCst);
        })
        .build()
        .unwrap();
    (runtime, ends)
}

#[test]
fn task_that_outlives_its_worker_is_counted_and_reported() {
    let (runtime, ends) = counts_ends();
    let handle = runtime.handle().clone();
    let (begun, begins) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    runtime.spawn_detached(async move {
        crate::block_in_place(|| {
            begun.send(()).unwrap();
            gate.recv().unwrap();
        });
        yield_now().await;
    });
    begins.recv().unwrap();
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(100));
        open.send(()).unwrap();
    });
    drop(runtime);
    later.join().unwrap();
    assert_eq!((handle.snapshot().live_tasks, ends.load(SeqCst)), (0, 1));
}

#[test]
#[should_panic(expected = "from 1 to 65535 workers")]
fn more_workers_than_the_limit_panic_at_the_caller() {
    let _ = Builder::new().workers(65_536);
}

#[test]
fn a_dropped_runtime_has_dropped_its_threads_locals() {
    struct Slow(Arc<AtomicUsize>);
    impl Drop for Slow {
        fn drop(&mut self) {
            std::thread::sleep(Duration::from_millis(50));
            self.0.fetch_add(1, SeqCst);
        }
    }
    thread_local! {
        static SLOW: std::cell::OnceCell<Slow> = const { std::cell::OnceCell::new() };
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let runtime = workers(1);
    let (ours, theirs) = (dropped.clone(), dropped.clone());
    let hold = |count| SLOW.with(|slow| drop(slow.set(Slow(count))));
    block_on(runtime.spawn(async move { hold(ours) })).unwrap();
    block_on(runtime.spawn_blocking(move || hold(theirs))).unwrap();
    drop(runtime);
    assert_eq!(dropped.load(SeqCst), 2);
}

#[test]
fn yielding_task_ends_with_its_runtime_and_is_reported() {
    let (runtime, ends) = counts_ends();
    let (sender, begun) = mpsc::channel();
    runtime.spawn_detached(async move {
        sender.send(()).unwrap();
        loop {
            yield_now().await;
        }
    });
    begun.recv_timeout(LONG).unwrap();
    let handle = runtime.handle().clone();
    drop(runtime);
    assert_eq!(handle.snapshot().live_tasks, 0);
    assert_eq!(ends.load(SeqCst), 1);
}

/// Returns the message of a thread's panic, if it was a string.
fn said(payload: Box<dyn std::any::Any + Send>) -> String {
    let text = payload.downcast::<String>().map(|text| *text);
    text.or_else(|payload| payload.downcast::<&str>().map(|text| text.to_string()))
        .unwrap_or_default()
}

fn shut_down_by_panics() -> Runtime {
    let builder = Builder::new().workers(1);
    let builder = builder.unhandled_panic(UnhandledPanic::Shutdown);
    builder.build().unwrap()
}

const UNHANDLED: &str = "shut down by an unhandled panic";

#[test]
fn block_on_that_waits_panics_after_an_unhandled_panic() {
    let runtime = shut_down_by_panics();
    let other = workers(1);
    let (polled, polls) = mpsc::channel();
    let wait = |handle: &Handle| {
        let (handle, polled) = (handle.clone(), polled.clone());
        std::thread::spawn(move || {
            handle.block_on(poll_fn(|_| {
                polled.send(()).unwrap();
                Poll::<()>::Pending
            }))
        })
    };
    let waits = [(); 3].map(|()| wait(runtime.handle()));
    let (gate, opened) = oneshot::channel::<()>();
    let bystander = other.handle().clone();
    let waits_elsewhere = std::thread::spawn(move || bystander.block_on(opened));
    for _ in &waits {
        polls.recv().unwrap();
    }
    runtime.spawn_detached(async { panic!("on purpose") });
    in_time(move || {
        for thread in waits {
            let text = said(thread.join().unwrap_err());
            assert!(text.contains(UNHANDLED), "{text}");
        }
    });
    assert_eq!(polls.try_iter().count(), 0, "polled after the shutdown");
    // The `block_on` of another runtime goes on.
    gate.send(()).unwrap();
    waits_elsewhere.join().unwrap().unwrap();
}

#[test]
fn block_on_after_an_unhandled_panic_returns_if_it_never_waits() {
    let runtime = shut_down_by_panics();
    let error = block_on(runtime.spawn(async { panic!("on purpose") })).unwrap_err();
    assert!(error.is_panic());
    assert_eq!(runtime.block_on(async { 7 }), 7);
    let late = runtime.spawn(async {});
    assert!(runtime.block_on(late).unwrap_err().is_cancelled());
    let waits = in_time(move || {
        let waits = || runtime.block_on(pending::<()>());
        std::panic::catch_unwind(waits).unwrap_err()
    });
    let text = said(waits);
    assert!(text.contains(UNHANDLED), "{text}");
}

#[test]
fn block_on_of_a_task_that_shuts_the_runtime_down_panics() {
    let waits = in_time(|| {
        let runtime = shut_down_by_panics();
        let (gate, opened) = oneshot::channel::<()>();
        let task = runtime.spawn(async {
            opened.await.unwrap();
            panic!("on purpose");
        });
        let mut gate = Some(gate);
        let mut task = std::pin::pin!(task);
        let waits = std::panic::AssertUnwindSafe(|| {
            runtime.block_on(poll_fn(|cx| {
                let poll = task.as_mut().poll(cx).map(drop);
                if let Some(gate) = gate.take() {
                    gate.send(()).unwrap();
                }
                poll
            }))
        });
        std::panic::catch_unwind(waits).unwrap_err()
    });
    let text = said(waits);
    assert!(text.contains(UNHANDLED), "{text}");
}

/// Fails if the closure's `block_on` goes on after the panic: then the runtime's drop waits
/// forever.
#[test]
fn closure_in_block_on_ends_after_an_unhandled_panic() {
    let runtime = shut_down_by_panics();
    let handle = runtime.handle().clone();
    let (polled, polls) = mpsc::channel();
    let closure = runtime.spawn_blocking(move || {
        handle.block_on(poll_fn(|_| {
            polled.send(()).unwrap();
            Poll::<()>::Pending
        }));
    });
    polls.recv().unwrap();
    let panics = runtime.spawn(async { panic!("on purpose") });
    assert!(block_on(panics).unwrap_err().is_panic());
    in_time(move || drop(runtime));
    let error = block_on(closure).unwrap_err();
    let text = said(error.into_panic());
    assert!(text.contains(UNHANDLED), "{text}");
}

#[test]
fn block_on_of_a_local_set_panics_after_an_unhandled_panic() {
    let waits = in_time(|| {
        let runtime = shut_down_by_panics();
        let set = crate::LocalSet::new();
        let waits = std::panic::AssertUnwindSafe(|| {
            set.block_on(&runtime, async {
                spawn_detached(async { panic!("on purpose") });
                pending::<()>().await;
            });
        });
        std::panic::catch_unwind(waits).unwrap_err()
    });
    let text = said(waits);
    assert!(text.contains(UNHANDLED), "{text}");
}

/// The only blocking thread is busy, so the other closures wait for it. One of them is aborted.
#[test]
fn closures_spawned_before_the_end_run_and_are_waited_for() {
    for end in 0..3 {
        let runtime = Builder::new().workers(1).blocking_threads(1).build();
        let runtime = runtime.unwrap();
        let (begun, begins) = mpsc::channel();
        let (open, gate) = mpsc::channel::<()>();
        let first = runtime.spawn_blocking(move || {
            begun.send(()).unwrap();
            let _ = gate.recv();
        });
        begins.recv().unwrap();
        let ran = Arc::new(AtomicUsize::new(0));
        let spawn_more = || {
            let ran = ran.clone();
            runtime.spawn_blocking(move || ran.fetch_add(1, SeqCst))
        };
        let aborted = spawn_more();
        let queued = [(); 9].map(|()| spawn_more());
        aborted.abort();
        let handle = runtime.handle().clone();
        match end {
            0 => {
                let closed = handle.clone();
                let opens = std::thread::spawn(move || {
                    while block_on(closed.spawn(async {})).is_ok() {
                        std::thread::yield_now();
                    }
                    drop(open);
                });
                drop(runtime);
                assert_eq!(ran.load(SeqCst), 9, "not waited for");
                opens.join().unwrap();
            }
            1 => {
                assert!(!runtime.shutdown_timeout(Duration::from_millis(1)));
                drop(open);
            }
            _ => {
                runtime.shutdown_background();
                drop(open);
            }
        }
        block_on(first).unwrap();
        assert!(block_on(aborted).unwrap_err().is_cancelled());
        block_on(join_all(queued)).into_iter().for_each(|ran| {
            ran.unwrap();
        });
        assert_eq!(ran.load(SeqCst), 9);
        assert!(
            block_on(handle.spawn_blocking(|| ()))
                .unwrap_err()
                .is_cancelled()
        );
    }
}

#[test]
fn closures_spawned_just_before_the_end_run() {
    for warm in [false, true] {
        for _ in 0..200 {
            let runtime = workers(1);
            if warm {
                // The thread now waits for the next closure.
                block_on(runtime.spawn_blocking(|| ())).unwrap();
            }
            let ran = Arc::new(AtomicUsize::new(0));
            for _ in 0..2 {
                let ran = ran.clone();
                drop(runtime.spawn_blocking(move || ran.fetch_add(1, SeqCst)));
            }
            drop(runtime);
            assert_eq!(ran.load(SeqCst), 2, "warm: {warm}");
        }
    }
}
