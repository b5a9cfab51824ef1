//! Ready tasks beside timers and sockets.
use super::*;

/// Fails if a timer that is due does not fire, in either runtime.
#[test]
fn run_until_stalled_fires_timers_that_are_due() {
    use net_driver::time::{Duration, sleep};
    let short = Duration::from_millis(2);
    let (runtime, local) = (current_thread(), LocalRuntime::new().unwrap());
    let (one, other) = (
        runtime.spawn(sleep(short)),
        local.spawn_local(async move {
            sleep(short).await;
        }),
    );
    let long = runtime.spawn(async { sleep(Duration::from_secs(3_600)).await });
    while !(one.is_finished() && other.is_finished()) {
        runtime.run_until_stalled();
        local.run_until_stalled();
    }
    assert!(!long.is_finished());
}

/// Fails, by a hang, if a timer does not fire while a local task is ready.
#[test]
fn local_task_that_yields_lets_a_timer_fire() {
    use net_driver::time::{Duration, sleep};
    use std::cell::Cell;

    for one in [false, true] {
        let local = LocalRuntime::new().unwrap();
        let flag = Rc::new(Cell::new(false));
        let set = flag.clone();
        local.spawn_local(async move {
            sleep(Duration::from_millis(1)).await;
            set.set(true);
        });
        let waits = local.spawn_local(async move {
            while !flag.get() {
                yield_now().await;
            }
        });
        if one {
            assert!(local.try_run_one() && local.try_run_one());
        } else {
            local.run_until_stalled();
        }
        assert!(waits.is_finished());
    }
}

/// The two ways to run all ready tasks: in one call, or one task after another.
const RUNS: [fn(&LocalRuntime); 2] = [
    |runtime| runtime.run_until_stalled(),
    |runtime| while runtime.try_run_one() {},
];

/// Waits until the time has come.
fn wait_until(time: std::time::Instant) {
    while std::time::Instant::now() < time {
        std::thread::yield_now();
    }
}

/// Fails if a local task that only the last look has woken stays behind.
#[test]
fn local_task_that_a_look_has_woken_runs_before_the_return() {
    use net_driver::time::{Duration, sleep};
    for run in RUNS {
        let local = LocalRuntime::new().unwrap();
        let task = local.spawn_local(async { sleep(Duration::from_millis(2)).await });
        // The first run arms the timer, and the second one finds it due.
        for _ in 0..2 {
            run(&local);
            wait_until(std::time::Instant::now() + Duration::from_millis(20));
        }
        assert!(task.is_finished());
    }
}

/// A socket becomes ready just after a look.
///
/// Fails if a look returns at once because there was another look a moment ago. (If the thread is
/// stopped for 500 microseconds between the two looks, the test does not notice that mistake.)
#[cfg(all(unix, not(selvedge_shuttle)))]
#[test]
fn socket_that_becomes_ready_after_a_look_is_seen() {
    use std::{io::Write, os::unix::net::UnixStream};
    async fn reads(stream: UnixStream) {
        let stream = net_driver::net::UnixStream::from_std(stream).unwrap();
        while stream.try_read(&mut [0]).is_err() {
            stream.readable().await.unwrap();
        }
    }
    fn check(spawn: impl Fn(UnixStream) -> crate::JoinHandle<()>, run: impl Fn()) {
        for _ in 0..30 {
            let (mut ours, theirs) = UnixStream::pair().unwrap();
            theirs.set_nonblocking(true).unwrap();
            let task = spawn(theirs);
            run();
            assert!(!task.is_finished());
            ours.write_all(b"a").unwrap();
            run();
            assert!(task.is_finished());
        }
    }
    let both = LocalRuntime::new().unwrap();
    check(
        |stream| both.spawn_local(reads(stream)),
        || both.run_until_stalled(),
    );
    check(
        |stream| both.spawn_local(reads(stream)),
        || while both.try_run_one() {},
    );
    check(
        |stream| both.handle().spawn(reads(stream)),
        || while both.try_run_one() {},
    );
    let runtime = current_thread();
    check(
        |stream| runtime.spawn(reads(stream)),
        || runtime.run_until_stalled(),
    );
}

/// A runtime whose timers no monitor fires.
fn unmonitored() -> Runtime {
    let builder = Builder::new_current_thread();
    let builder = builder.monitor(false);
    builder.build().unwrap()
}

/// Makes `count` sleeps of `millis` milliseconds, and polls them with `waker`. The caller is in a
/// runtime's scope.
pub(in crate::tests) fn poll_sleeps(
    count: usize,
    millis: u64,
    waker: &std::task::Waker,
) -> Vec<std::pin::Pin<Box<net_driver::time::Sleep>>> {
    use std::{future::Future, task::Context, time::Duration};
    let cx = &mut Context::from_waker(waker);
    let poll = |_| loop {
        // If the thread is stopped here for `millis` milliseconds, the sleep ends in its first
        // poll, before it keeps the waker. Then the loop makes another sleep.
        let mut sleep = Box::pin(net_driver::time::sleep(Duration::from_millis(millis)));
        if sleep.as_mut().poll(cx).is_pending() {
            break sleep;
        }
    };
    (0..count).map(poll).collect()
}

/// Sleeps behind `count` timers that wake `waker`.
async fn sleep_behind(count: usize, waker: std::task::Waker) {
    let _others = poll_sleeps(count, 20, &waker);
    net_driver::time::sleep(std::time::Duration::from_millis(30)).await;
}

/// Fails if timers that wake other things than tasks end the look before a task's timer.
#[test]
fn timers_that_wake_no_task_do_not_end_the_look() {
    use std::time::{Duration, Instant};
    let noop = || std::task::Waker::noop().clone();
    let (runtime, local) = (unmonitored(), LocalRuntime::new().unwrap());
    let tasks = [
        runtime.spawn(sleep_behind(5_000, noop())),
        local.spawn_local(sleep_behind(5_000, noop())),
    ];
    for _ in 0..2 {
        runtime.run_until_stalled();
        local.run_until_stalled();
        wait_until(Instant::now() + Duration::from_millis(50));
    }
    assert!(tasks.iter().all(|task| task.is_finished()));
}

/// Fails if wakers that panic keep the wakers behind them from being called.
#[test]
fn wakers_that_panic_do_not_end_the_look() {
    use std::time::{Duration, Instant};
    struct Panics;
    impl std::task::Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("on purpose");
        }
    }
    let runtime = unmonitored();
    let task = runtime.spawn(sleep_behind(200, Arc::new(Panics).into()));
    for _ in 0..2 {
        runtime.run_until_stalled();
        wait_until(Instant::now() + Duration::from_millis(50));
    }
    assert!(task.is_finished());
}

/// Fails if a waker finds no current driver when a look of a `LocalRuntime` calls it.
#[test]
fn waker_that_a_look_calls_may_make_a_timer() {
    struct Arms(AtomicBool);
    impl std::task::Wake for Arms {
        fn wake(self: Arc<Self>) {
            drop(poll_sleeps(1, 1, std::task::Waker::noop()));
            self.0.store(true, Relaxed);
        }
    }
    let local = LocalRuntime::new().unwrap();
    let arms = Arc::new(Arms(AtomicBool::new(false)));
    let _sleep = local.block_on(async { poll_sleeps(1, 1, &arms.clone().into()) });
    while !arms.0.load(Relaxed) {
        local.run_until_stalled();
    }
}

/// Fails if a waker can call into the `LocalRuntime` that calls the waker. The inner call would
/// wait for the worker that its own thread has.
#[test]
fn local_runtime_refuses_a_waker_that_blocks_in_it() {
    use net_driver::time::{Duration, sleep};
    use std::{cell::OnceCell, sync::Mutex};
    thread_local! {
        static RUNTIME: OnceCell<Rc<LocalRuntime>> = const { OnceCell::new() };
    }
    #[derive(Default)]
    struct Blocks(Mutex<Vec<String>>);
    impl std::task::Wake for Blocks {
        fn wake(self: Arc<Self>) {
            let runtime = RUNTIME.with(|runtime| runtime.get().unwrap().clone());
            for run in [
                |runtime: &LocalRuntime| runtime.block_on(async {}),
                |runtime: &LocalRuntime| runtime.run_until_stalled(),
            ] {
                let payload = catch_unwind(AssertUnwindSafe(|| run(&runtime))).unwrap_err();
                let text = match payload.downcast::<String>() {
                    Ok(text) => *text,
                    Err(payload) => payload.downcast_ref::<&str>().unwrap().to_string(),
                };
                self.0.lock().unwrap().push(text);
            }
        }
    }
    let local = Rc::new(LocalRuntime::new().unwrap());
    RUNTIME.with(|runtime| runtime.set(local.clone()).unwrap());
    let blocks = Arc::new(Blocks::default());
    let task = local.spawn_local(async { sleep(Duration::from_millis(40)).await });
    // The first time `run_until_stalled` calls the waker, the second time `block_on`.
    let _sleep = local.block_on(async { poll_sleeps(1, 1, &blocks.clone().into()) });
    while blocks.0.lock().unwrap().len() < 2 {
        local.run_until_stalled();
    }
    let _sleep = local.block_on(async { poll_sleeps(1, 1, &blocks.clone().into()) });
    // Only a `block_on` that parks calls the waker.
    while blocks.0.lock().unwrap().len() < 4 {
        local.block_on(sleep(Duration::from_millis(1)));
    }
    local.block_on(task).unwrap();
    let texts = blocks.0.lock().unwrap();
    assert_eq!(texts.len(), 4);
    assert!(
        texts
            .iter()
            .all(|text| text.contains("block_on was called"))
    );
}

/// Makes a driven worker with a ring of 16, and `ready` tasks that yield until the runtime ends.
fn busy(ready: usize) -> (Runtime, Worker<ThreadPark>) {
    let builder = Builder::new().ring_capacity(16);
    let (runtime, mut workers) = builder.build_driven([ThreadPark::new()]);
    for _ in 0..ready {
        drop(runtime.spawn(async {
            loop {
                yield_now().await;
            }
        }));
    }
    (runtime, workers.remove(0))
}

/// Fails if a look fires more timers than the ring has room for: the oldest tasks of the ring would
/// then wait behind all tasks of the injector.
#[test]
fn look_at_many_due_timers_overflows_no_ring() {
    use net_driver::time::{Duration, sleep};
    let (runtime, mut worker) = busy(1);
    let sleeps: Vec<_> = (0..200)
        .map(|_| runtime.spawn(sleep(Duration::from_millis(30))))
        .collect();
    let begun = std::time::Instant::now();
    while begun.elapsed() < Duration::from_millis(20) {
        let _ = worker.tick();
    }
    wait_until(begun + Duration::from_millis(60));
    while !sleeps.iter().all(|sleep| sleep.is_finished()) {
        let _ = worker.tick();
    }
    assert_eq!(runtime.snapshot().per_worker[0].overflows, 0);
}

/// Fails if a driven worker whose ring stays full skips its looks at timers: it counts its
/// intervals in ticks, and no monitor serves its timers.
#[test]
fn ring_that_stays_full_lets_a_timer_fire() {
    use net_driver::time::{Duration, sleep};
    // The ring has no room, or room for one task.
    for ready in [16, 15] {
        let (runtime, mut worker) = busy(ready);
        let begun = std::time::Instant::now();
        let sleep = runtime.spawn(sleep(Duration::from_millis(20)));
        let mut tick = |ticks| {
            for _ in 0..ticks {
                let _ = worker.tick();
            }
        };
        tick(27 * 61); // If the worker skipped looks, it would skip the next 10.
        wait_until(begun + Duration::from_millis(30));
        // A look comes every 61st tick. The woken task may push half of the ring, and itself, into
        // the injector, of which each look takes a share.
        tick((1 + 5) * 61);
        assert!(sleep.is_finished(), "beside {ready} tasks");
    }
}
