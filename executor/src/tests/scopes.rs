//! Tests of where a thread may block, and of which runtime it is in.
use super::*;
use crate::{LocalRuntime, Tick, block_in_place, spawn_local, worker::park::ThreadPark};
use std::cell::RefCell;

fn named(name: &str) -> Runtime {
    let builder = Builder::new().workers(1).thread_name(name);
    builder.build().unwrap()
}

/// Spawns a task, and returns the name of the thread that runs it.
async fn where_it_spawns() -> String {
    let name = || std::thread::current().name().unwrap().to_owned();
    spawn(async move { name() }).await.unwrap()
}

/// Drops a runtime, and then sends a message.
struct Dropping(Option<Runtime>, mpsc::Sender<()>);

impl Drop for Dropping {
    fn drop(&mut self) {
        drop(self.0.take());
        let _ = self.1.send(());
    }
}

#[test]
fn runtime_dropped_after_its_own_detached_closure_ends() {
    let runtime = workers(1);
    let handle = runtime.handle().clone();
    let (sent, ended) = mpsc::channel();
    let (gate, held) = mpsc::channel::<()>();
    let output = Dropping(Some(runtime), sent);
    drop(handle.spawn_blocking(move || {
        held.recv().unwrap();
        output
    }));
    gate.send(()).unwrap();
    ended.recv_timeout(LONG).unwrap();
}

#[test]
fn runtime_dropped_under_another_runtimes_guard_ends() {
    for in_place in [false, true] {
        let (one, other) = (workers(1), workers(1));
        let handle = one.handle().clone();
        let (sent, ended) = mpsc::channel();
        let f = move || {
            let _entered = other.enter();
            drop(one);
            sent.send(()).unwrap();
        };
        if in_place {
            handle.spawn_detached(async { block_in_place(f) });
        } else {
            drop(handle.spawn_blocking(f));
        }
        ended.recv_timeout(LONG).unwrap();
    }
}

#[test]
fn a_runtime_dropped_in_a_hook_of_its_own_ends() {
    for panics in [false, true] {
        let place: Arc<Mutex<Option<Runtime>>> = Arc::default();
        let (sent, ended) = mpsc::channel();
        let (gate, held) = mpsc::channel::<()>();
        let (from, sent) = (place.clone(), Mutex::new(sent));
        let drop_it = move || {
            let runtime = from.lock().unwrap().take();
            if runtime.is_some() {
                drop(runtime);
                let _ = sent.lock().unwrap().send(());
            }
        };
        let builder = Builder::new()
            .workers(1)
            .blocking_keep_alive(Duration::from_millis(1));
        let builder = if panics {
            let stop = || panic!("on purpose");
            builder.on_thread_stop(stop).on_panic(move |_| drop_it())
        } else {
            builder.on_thread_stop(drop_it)
        };
        let runtime = builder.build().unwrap();
        let closure = runtime.spawn_blocking(move || held.recv());
        *place.lock().unwrap() = Some(runtime);
        gate.send(()).unwrap();
        ended.recv_timeout(LONG).unwrap();
        block_on(closure).unwrap().unwrap();
    }
}

#[test]
fn runtime_in_a_thread_local_of_its_own_thread_ends() {
    thread_local! {
        static LAST: RefCell<Option<Dropping>> = const { RefCell::new(None) };
    }
    for panics in [false, true] {
        let runtime = Builder::new()
            .workers(1)
            .blocking_keep_alive(Duration::from_millis(1))
            .unhandled_panic(UnhandledPanic::Shutdown)
            .build()
            .unwrap();
        let handle = runtime.handle().clone();
        let (sent, ended) = mpsc::channel();
        let last = Dropping(Some(runtime), sent);
        handle.spawn_detached(async move {
            LAST.set(Some(last));
            if panics {
                panic!("on purpose");
            }
            lose_the_core();
        });
        ended.recv_timeout(LONG).unwrap();
    }
}

#[test]
fn runtime_dropped_in_a_local_runtime_waits_for_no_closure() {
    in_time(|| {
        let (sender, receiver) = mpsc::channel::<()>();
        LocalRuntime::new().unwrap().block_on(async {
            let inner = workers(1);
            let (begun, begins) = mpsc::channel();
            inner.spawn_blocking(move || {
                begun.send(()).unwrap();
                receiver.recv()
            });
            begins.recv().unwrap();
            drop(inner);
            sender.send(()).unwrap();
        });
    });
}

#[test]
fn driven_worker_that_drops_its_runtime_waits_for_no_closure() {
    in_time(|| {
        let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
        let handle = runtime.handle().clone();
        let waiting = runtime.spawn(pending::<()>());
        let (begun, begins) = mpsc::channel();
        let closure = runtime.spawn_blocking(move || {
            begun.send(()).unwrap();
            block_on(waiting)
        });
        begins.recv().unwrap();
        handle.spawn_detached(async { block_in_place(|| drop(runtime)) });
        workers.remove(0).run();
        let waited = block_on(closure).unwrap();
        assert!(waited.unwrap_err().is_cancelled());
    });
}

#[test]
fn shutdown_under_a_guard_of_the_runtime_waits() {
    let runtime = workers(1);
    let handle = runtime.handle().clone();
    let (begun, begins) = mpsc::channel();
    let closure = runtime.spawn_blocking(move || {
        begun.send(()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    });
    begins.recv().unwrap();
    let _entered = handle.enter();
    assert!(runtime.shutdown_timeout(LONG));
    assert!(closure.is_finished());
}

#[test]
fn closure_in_place_may_call_block_on_at_the_end_or_when_driven() {
    fn blocks() -> (usize, bool) {
        let blocked = block_in_place(|| {
            Handle::current()
                .block_on(async { block_in_place(|| Handle::current().block_on(async { 7 })) })
        });
        let again = std::panic::catch_unwind(|| Handle::current().block_on(async {}));
        (blocked, again.is_err())
    }
    let runtime = workers(1);
    let (begun, wait) = (mpsc::channel(), mpsc::channel::<()>());
    let task = runtime.spawn(async move {
        begun.0.send(()).unwrap();
        wait.1.recv().unwrap();
        blocks()
    });
    begun.1.recv().unwrap();
    let handle = runtime.handle().clone();
    runtime.shutdown_background();
    wait.0.send(()).unwrap();
    assert_eq!(block_on(task).unwrap(), (7, true));
    assert!(block_on(handle.spawn(async {})).unwrap_err().is_cancelled());

    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    let task = runtime.spawn(async {
        let spawned = block_in_place(|| spawn(async { 1 }));
        (blocks(), spawned.await.unwrap())
    });
    while workers[0].tick() != Tick::Idle {}
    assert_eq!(block_on(task).unwrap(), ((7, true), 1));
    drop(runtime);
    workers.remove(0).run();
}

#[test]
fn guard_redirects_spawns_to_its_runtime_from_anywhere() {
    let (one, other) = (named("one"), named("other"));
    let handle = other.handle().clone();
    let scenes = move || {
        let handle = handle.clone();
        async move {
            let mut names = vec![where_it_spawns().await];
            let guarded = {
                let _entered = handle.enter();
                (
                    spawn(where_it_spawns()),
                    spawn_blocking(|| std::thread::current().name().unwrap().to_owned()),
                )
            };
            names.push(guarded.0.await.unwrap());
            names.push(guarded.1.await.unwrap());
            names.push(where_it_spawns().await);
            names
        }
    };
    let expected = ["one-0", "other-0", "other-blocking", "one-0"];
    assert_eq!(one.block_on(scenes()), expected);
    assert_eq!(block_on(one.spawn(scenes())).unwrap(), expected);
    assert_eq!(
        one.block_on(async { spawn(scenes()).await.unwrap() }),
        expected
    );
}

#[test]
fn poll_after_a_guard_across_block_in_place_is_in_its_runtime() {
    let (one, other) = (named("one"), named("other"));
    let handle = other.handle().clone();
    let task = one.spawn(async move {
        let (sender, receiver) = mpsc::channel();
        spawn_detached(async move { sender.send(()).unwrap() });
        let guarded = {
            let _entered = handle.enter();
            // The other task has run, so another thread has the core.
            block_in_place(|| receiver.recv().unwrap());
            spawn(where_it_spawns())
        };
        let rest = (Handle::try_current().is_ok(), where_it_spawns().await);
        (guarded.await.unwrap(), rest)
    });
    assert_eq!(
        block_on(task).unwrap(),
        ("other-0".into(), (true, "one-0".into()))
    );
}

#[test]
fn guards_may_be_dropped_in_any_order() {
    let (one, other) = (named("one"), named("other"));
    let first = one.enter();
    let second = other.enter();
    let third = one.enter();
    drop(first);
    drop(third);
    assert_eq!(block_on(where_it_spawns()), "other-0");
    drop(second);
    assert!(Handle::try_current().is_err());
}

#[test]
fn a_leaked_guard_and_a_core_that_is_given_away_hold_up_nobody() {
    let (one, other) = (named("one"), named("other"));
    let handle = other.handle().clone();
    let task = one.spawn(async move { std::mem::forget(handle.enter()) });
    block_on(task).unwrap();
    let task = one.spawn(where_it_spawns());
    assert_eq!(block_on(task).unwrap(), "other-0");
    let (sender, receiver) = mpsc::channel();
    let blocked = one.spawn(async move { block_in_place(|| receiver.recv().unwrap()) });
    let after = one.spawn(where_it_spawns());
    assert_eq!(block_on(after).unwrap(), "one-0");
    sender.send(()).unwrap();
    block_on(blocked).unwrap();
}

/// A task leaks a guard of another runtime. The worker's next tasks are in that runtime, and
/// [`Handle::enter`] says so.
///
/// Fails if a hook for a park or its end, or a waker that the worker calls, is in the guard's
/// runtime, too.
#[cfg(feature = "net")]
#[test]
fn leaked_guard_leaves_hooks_and_wakers_in_their_runtime() {
    #[derive(Clone)]
    struct Reports(
        mpsc::Sender<(&'static str, Option<crate::RuntimeId>)>,
        Arc<AtomicBool>,
    );
    impl Reports {
        fn report(&self, place: &'static str) {
            if self.1.load(SeqCst) {
                let here = Handle::try_current().map(|here| here.id());
                self.0.send((place, here.ok())).unwrap();
            }
        }
    }
    impl std::task::Wake for Reports {
        fn wake(self: Arc<Self>) {
            self.report("waker");
        }
    }
    let (sender, receiver) = mpsc::channel();
    let reports = Reports(sender, Arc::default());
    let [parks, unparks] = [reports.clone(), reports.clone()];
    let (one, other) = (
        Builder::new()
            .workers(1)
            .monitor(false)
            .on_thread_park(move || parks.report("park"))
            .on_thread_unpark(move || unparks.report("unpark"))
            .build()
            .unwrap(),
        workers(1),
    );
    let handle = other.handle().clone();
    let has_leaked = reports.1.clone();
    let sleep = block_on(one.spawn(async move {
        // Only the worker calls the waker, so the call comes after this poll.
        let sleep = ready::timers::poll_sleeps(1, 1, &Arc::new(reports).into());
        std::mem::forget(handle.enter());
        has_leaked.store(true, SeqCst);
        sleep
    }));
    let mut places = vec!["park", "unpark", "waker"];
    // Each task ends a park. The sleep calls the waker.
    while !places.is_empty() {
        let where_it_is = one.spawn(async { Handle::current().id() });
        assert_eq!(block_on(where_it_is).unwrap(), other.handle().id());
        for (place, here) in receiver.try_iter() {
            assert_eq!((place, here), (place, Some(one.handle().id())));
            places.retain(|&left| left != place);
        }
    }
    drop(sleep);
}

#[test]
fn thread_locals_destructor_may_enter_and_call_block_on() {
    struct Last(Handle, mpsc::Sender<(String, i32)>);
    impl Drop for Last {
        fn drop(&mut self) {
            let name = {
                let _entered = self.0.enter();
                self.0.block_on(where_it_spawns())
            };
            let local = LocalRuntime::new().unwrap();
            let seven = local.block_on(async { spawn_local(async { 7 }).await.unwrap() });
            self.1.send((name, seven)).unwrap();
        }
    }
    thread_local! {
        static LAST: RefCell<Option<Last>> = const { RefCell::new(None) };
    }
    let runtime = named("one");
    let handle = runtime.handle().clone();
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        LAST.set(Some(Last(handle.clone(), sender)));
        handle.block_on(async {});
        LocalRuntime::new().unwrap().block_on(async {});
    });
    assert_eq!(receiver.recv_timeout(LONG).unwrap(), ("one-0".into(), 7));
}

#[test]
fn panic_shuts_down_only_the_runtime_with_that_policy() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in a drop");
        }
    }
    let strict = Builder::new()
        .workers(1)
        .unhandled_panic(UnhandledPanic::Shutdown);
    let (ended, other) = (strict.build().unwrap(), workers(1));
    let handle = ended.handle().clone();
    drop(ended);
    let refused = other.spawn(async move {
        let bomb = Bomb;
        drop(handle.spawn(async move {
            let _bomb = bomb;
        }));
    });
    block_on(refused).unwrap();
    assert_eq!(block_on(other.spawn(async { 1 })).unwrap(), 1);

    // The panic of a task shuts down the task's own runtime, even if the task has leaked a guard of
    // another runtime.
    let strict = Builder::new()
        .workers(1)
        .unhandled_panic(UnhandledPanic::Shutdown);
    let runtime = strict.build().unwrap();
    let handle = other.handle().clone();
    let task = runtime.spawn(async move {
        std::mem::forget(handle.enter());
        panic!("on purpose");
    });
    assert!(block_on(task).unwrap_err().is_panic());
    assert!(
        block_on(runtime.spawn(async {}))
            .unwrap_err()
            .is_cancelled()
    );
    assert_eq!(block_on(other.spawn(async { 1 })).unwrap(), 1);
}
