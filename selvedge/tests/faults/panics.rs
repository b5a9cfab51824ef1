//! Tests of panics in each place where the runtime calls user code.
//!
//! Each panic stays in its task or goes to the panic handler. The other tasks go on, and the
//! runtime can still end.
use crate::process::is_child;
use selvedge::{Builder, Runtime};
use std::{
    future::{Future, pending, poll_fn},
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll, RawWaker, RawWakerVTable, Wake, Waker},
};

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("drop");
        }
    }
}

/// Checks after a fault that the workers run tasks, and that closures run.
fn works(runtime: &Runtime) {
    let tasks: Vec<_> = (0..8).map(|n| runtime.spawn(async move { n })).collect();
    for (n, task) in tasks.into_iter().enumerate() {
        assert_eq!(runtime.block_on(task).unwrap(), n);
    }
    assert_eq!(runtime.block_on(runtime.spawn_blocking(|| 1)).unwrap(), 1);
}

fn counting_panics() -> (Builder, Arc<AtomicUsize>) {
    let panics = Arc::new(AtomicUsize::new(0));
    let count = panics.clone();
    let builder = Builder::new().workers(2).on_panic(move |_| {
        count.fetch_add(1, SeqCst);
    });
    (builder, panics)
}

/// Adds a hook that panics each time, or, for the name "none", no hook.
type With = fn(Builder) -> Builder;

const HOOKS: [(&str, With); 9] = [
    ("thread start", |builder| {
        builder.on_thread_start(|| panic!("hook"))
    }),
    ("thread stop", |builder| {
        builder.on_thread_stop(|| panic!("hook"))
    }),
    ("thread park", |builder| {
        builder.on_thread_park(|| panic!("hook"))
    }),
    ("thread unpark", |builder| {
        builder.on_thread_unpark(|| panic!("hook"))
    }),
    ("task spawn", |builder| {
        builder.on_task_spawn(|_| panic!("hook"))
    }),
    ("before a poll", |builder| {
        builder.on_before_poll(|_| panic!("hook"))
    }),
    ("after a poll", |builder| {
        builder.on_after_poll(|_| panic!("hook"))
    }),
    ("task end", |builder| {
        builder.on_task_end(|_| panic!("hook"))
    }),
    ("none", |builder| builder),
];

#[test]
fn a_hook_that_panics_each_time_stops_nothing() {
    if !is_child("panics::a_hook_that_panics_each_time_stops_nothing") {
        return;
    }
    for (name, with) in HOOKS {
        let (builder, panics) = counting_panics();
        let runtime = with(builder).build().unwrap();
        works(&runtime);
        let waits = runtime.spawn(pending::<()>());
        works(&runtime);
        // Perhaps no worker has parked or been unparked yet. Then the hook for that is still to
        // come. The hook "thread stop" is called only when the runtime ends.
        while panics.load(SeqCst) == 0 && !["thread stop", "none"].contains(&name) {
            works(&runtime);
        }
        drop(runtime);
        assert!(waits.is_finished());
        assert_eq!(panics.load(SeqCst) == 0, name == "none", "{name}");
    }
}

#[test]
fn a_panic_handler_that_panics_stops_nothing() {
    if !is_child("panics::a_panic_handler_that_panics_stops_nothing") {
        return;
    }
    let runtime = Builder::new()
        .workers(1)
        .on_panic(|_| panic!("handler"))
        .build()
        .unwrap();
    assert!(
        runtime
            .block_on(runtime.spawn(async { panic!("task") }))
            .unwrap_err()
            .is_panic()
    );
    assert!(
        runtime
            .block_on(runtime.spawn_blocking(|| panic!("closure")))
            .unwrap_err()
            .is_panic()
    );
    works(&runtime);
}

#[test]
fn tasks_that_panic_in_a_poll_or_a_drop_stop_no_others() {
    if !is_child("panics::tasks_that_panic_in_a_poll_or_a_drop_stop_no_others") {
        return;
    }
    let (builder, panics) = counting_panics();
    let runtime = builder.build().unwrap();
    // The task panics in its first poll, or in a later one.
    for polls in 0..3 {
        let task = runtime.spawn(async move {
            for _ in 0..polls {
                selvedge::yield_now().await;
            }
            panic!("poll");
        });
        assert!(runtime.block_on(task).unwrap_err().is_panic());
    }
    assert_eq!(panics.load(SeqCst), 3);
    // The future panics in its drop. It is dropped when it is done, when its task is aborted before
    // the first poll or while the task waits, or when the runtime ends.
    let waits = || {
        let bomb = Bomb;
        async move {
            let _bomb = bomb;
            pending::<()>().await;
        }
    };
    let done = runtime.spawn({
        let bomb = Bomb;
        poll_fn(move |_| {
            let _bomb = &bomb;
            Poll::Ready(())
        })
    });
    assert!(runtime.block_on(done).unwrap_err().is_panic());
    for yields in [false, true] {
        let task = runtime.spawn(waits());
        if yields {
            works(&runtime);
        }
        task.abort();
        let error = runtime.block_on(task).unwrap_err();
        assert!(error.is_panic(), "{error}");
    }
    // Nobody takes the output: one task is detached before it ends, and the handle of the other is
    // dropped with the output.
    drop(runtime.spawn(async { Bomb }));
    let output = runtime.spawn(async { Bomb });
    works(&runtime);
    drop(output);
    works(&runtime);
    let left = [runtime.spawn(waits()), runtime.spawn(waits())];
    works(&runtime);
    drop(runtime);
    assert!(left.iter().all(|task| task.is_finished()));
}

/// Makes a waker that panics in the operation named `at`.
fn waker(at: &'static str) -> Waker {
    fn act(data: *const (), now: &str) {
        // SAFETY: the data pointer was made from a `&'static &'static str`.
        let at = unsafe { *data.cast::<&'static str>() };
        assert!(at != now || std::thread::panicking(), "waker {now}");
    }
    const TABLE: RawWakerVTable = RawWakerVTable::new(
        |data| {
            act(data, "clone");
            RawWaker::new(data, &TABLE)
        },
        |data| act(data, "wake"),
        |data| act(data, "wake"),
        |data| act(data, "drop"),
    );
    let data: &'static &'static str = match at {
        "clone" => &"clone",
        "wake" => &"wake",
        _ => &"drop",
    };
    // SAFETY: the data is a constant, so no function has to count or free it.
    unsafe { Waker::new(std::ptr::from_ref(data).cast(), &TABLE) }
}

#[test]
fn a_waker_that_panics_when_a_task_is_awaited_stops_nothing() {
    if !is_child("panics::a_waker_that_panics_when_a_task_is_awaited_stops_nothing") {
        return;
    }
    for at in ["clone", "wake", "drop"] {
        let runtime = Builder::new().workers(1).build().unwrap();
        let (go, waits) = futures::channel::oneshot::channel::<()>();
        let mut task = pin!(runtime.spawn(waits));
        let bad = std::mem::ManuallyDrop::new(waker(at));
        let polled = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _ = task.as_mut().poll(&mut Context::from_waker(&bad));
        }));
        assert_eq!(polled.is_err(), at == "clone");
        // This poll replaces the task's join waker, so the bad waker is dropped.
        if at == "drop" {
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                let _ = task.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            }));
        }
        go.send(()).unwrap();
        let output = runtime.block_on(task);
        assert!(output.unwrap().is_ok(), "{at}");
        works(&runtime);
    }
}

#[test]
fn wake_that_panics_in_a_poll_panics_the_task() {
    if !is_child("panics::wake_that_panics_in_a_poll_panics_the_task") {
        return;
    }
    struct Panics;
    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            panic!("wake");
        }
    }
    let runtime = Builder::new().workers(1).build().unwrap();
    let task = runtime.spawn(async { Waker::from(Arc::new(Panics)).wake() });
    assert!(runtime.block_on(task).unwrap_err().is_panic());
    works(&runtime);
}
