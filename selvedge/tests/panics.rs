//! Tests of panics that are the caller's fault: each panic names the caller's line, and says what
//! to do instead.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use blocking_threads::Once;
use coop_budget::{Slices, Ticker};
use queue_global::Boxed;
use selvedge::{
    Builder, Handle, JoinError, JoinSet, LocalRuntime, LocalSet, Runtime, Tick, block_in_place,
    park::ThreadPark,
    runtime, spawn, spawn_blocking, spawn_detached, spawn_local,
    task::{self, JoinHandle},
};
use std::{
    cell::{Cell, RefCell},
    future::{Future, pending, poll_fn, ready},
    panic::{self, AssertUnwindSafe},
    pin::{Pin, pin},
    sync::Once as Hooked,
    task::{Context, Poll, Waker},
    time::Duration,
};
use worker_queue::WorkerQueue;

/// Place of a panic, and its message.
struct Said {
    file: String,
    line: u32,
    message: String,
}

thread_local! {
    static LISTENS: Cell<bool> = const { Cell::new(false) };
    static SAID: RefCell<Option<Said>> = const { RefCell::new(None) };
}

/// Returns the panic of `f` on this thread, even if `f` catches it.
fn said(f: impl FnOnce()) -> Option<Said> {
    static HOOKED: Hooked = Hooked::new();
    HOOKED.call_once(|| {
        let others = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !LISTENS.get() {
                return others(info);
            }
            let payload = info.payload();
            let text = payload.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
            let at = info.location().expect("it is always there");
            SAID.set(Some(Said {
                file: at.file().into(),
                line: at.line(),
                message: text.unwrap_or_default().into(),
            }));
        }));
    });
    LISTENS.set(true);
    drop(panic::catch_unwind(AssertUnwindSafe(f)));
    LISTENS.set(false);
    SAID.take()
}

/// Name of a call that panics, the line of the call, words of the panic's message, and the call.
type Row<'a> = (&'static str, u32, &'static str, Box<dyn FnOnce() + 'a>);

fn ignore<T>(_: T) {}

macro_rules! row {
    ($name:literal, $words:expr => $($call:tt)+) => {
        ($name, line!(), $words, Box::new(move || ignore({ $($call)+ })))
    };
}

/// Checks that each row's panic is on the row's line.
fn check(rows: Vec<Row<'_>>) {
    let mut wrong = Vec::new();
    for (name, line, words, call) in rows {
        let Some(said) = said(call) else {
            wrong.push(format!("{name} does not panic"));
            continue;
        };
        if (&*said.file, said.line) != (file!(), line) {
            let Said { file, line, .. } = &said;
            wrong.push(format!("{name} is said to panic at {file}:{line}"));
        }
        if !said.message.contains(words) {
            wrong.push(format!("{name} says {:?}", said.message));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn runtime() -> Runtime {
    Builder::new().workers(1).build().unwrap()
}

fn cancelled() -> JoinError {
    let task = LocalRuntime::new().unwrap().spawn_local(pending::<()>());
    task.abort();
    LocalRuntime::new().unwrap().block_on(task).unwrap_err()
}

/// Runs `f` in a task, on this thread.
fn in_task(f: impl FnOnce() + Send + 'static) {
    let (runtime, mut workers) = Builder::new().build_driven([ThreadPark::new()]);
    runtime.spawn_detached(async move { f() });
    assert_eq!(workers[0].tick(), Tick::Ran);
}

const OUTSIDE: &str = "block_on, or while a guard of `Handle::enter` is held";
const LOCAL: &str = "spawn_local";
const IN_LOCAL: &str = "LocalSet or LocalRuntime";

#[test]
fn panic_outside_of_a_runtime_names_the_caller() {
    check(vec![
        row!("Handle::current", OUTSIDE => Handle::current()),
        row!("spawn", OUTSIDE => spawn(async {})),
        row!("spawn_detached", OUTSIDE => spawn_detached(async {})),
        row!("spawn_blocking", OUTSIDE => spawn_blocking(|| ())),
        row!("spawn_local", IN_LOCAL => spawn_local(async {})),
        row!("Builder::spawn", OUTSIDE => task::Builder::new().spawn(async {})),
        row!("Builder::spawn_local", IN_LOCAL => task::Builder::new().spawn_local(async {})),
        row!("Builder::spawn_blocking", OUTSIDE => task::Builder::new().spawn_blocking(|| ())),
        row!("JoinSet::spawn", OUTSIDE => JoinSet::new().spawn(async {})),
        row!("JoinSet::spawn_local", IN_LOCAL => JoinSet::new().spawn_local(async {})),
        row!("JoinSet::spawn_blocking", OUTSIDE => JoinSet::new().spawn_blocking(|| ())),
        row!("JoinSet::from_iter", OUTSIDE => JoinSet::from_iter([async {}])),
    ]);
}

#[test]
fn panic_in_a_local_set_says_what_to_do() {
    let local = &LocalRuntime::new().unwrap();
    let in_local = |f: fn()| local.block_on(async move { f() });
    let set = &LocalSet::new();
    let in_set = |f: fn()| {
        let mut cx = Context::from_waker(Waker::noop());
        let _ = pin!(set.run_until(async move { f() })).poll(&mut cx);
    };
    check(vec![
        row!("Handle::current", LOCAL => in_set(|| drop(Handle::current()))),
        row!("spawn", LOCAL => in_set(|| drop(spawn(async {})))),
        row!("spawn_detached", LOCAL => in_set(|| spawn_detached(async {}))),
        row!("spawn_blocking", LOCAL => in_set(|| drop(spawn_blocking(|| ())))),
        row!("JoinSet::spawn", LOCAL => in_set(|| drop(JoinSet::new().spawn(async {})))),
        row!("block_in_place", IN_LOCAL => in_local(|| block_in_place(|| ()))),
        row!("block_in_place in a set", IN_LOCAL => in_set(|| block_in_place(|| ()))),
    ]);
    // A runtime around the set is the current one.
    let runtime = runtime();
    let seven = runtime.block_on(set.run_until(async { spawn(async { 7 }).await.unwrap() }));
    assert_eq!(seven, 7);
    let entered = set.enter();
    let error = Handle::try_current().unwrap_err();
    assert!(error.to_string().contains(LOCAL), "{error}");
    drop(entered);
}

#[test]
fn nested_block_on_names_the_caller() {
    let (outer, inner) = (&runtime(), &runtime());
    let (local, set) = (&LocalRuntime::new().unwrap(), &LocalSet::new());
    let inside = "inside block_on";
    let in_set = "in a LocalSet or LocalRuntime";
    let in_worker = "in a task";
    let handle = inner.handle().clone();
    check(vec![
        row!("Runtime", inside => outer.block_on(async { inner.block_on(ready(())) })),
        row!("Handle", inside => outer.block_on(async { inner.handle().block_on(ready(())) })),
        row!("LocalSet", inside => outer.block_on(async { set.block_on(inner, ready(())) })),
        row!("LocalRuntime", inside => outer.block_on(async { local.block_on(ready(())) })),
        row!("in local", in_set => local.block_on(async { inner.block_on(ready(())) })),
        row!("in a task", in_worker => in_task(move || handle.block_on(ready(())))),
    ]);
}

#[test]
fn panic_of_a_builder_names_the_caller() {
    let new = Builder::new;
    let tokios = runtime::Builder::new_multi_thread;
    check(vec![
        row!("workers", "from 1 to 65535 workers, not 0" => new().workers(0)),
        row!("worker_threads", "not 65536" => _ = tokios().worker_threads(65_536)),
        row!("thread_name", "NUL" => new().thread_name("a\0b")),
        row!("ring_capacity", "power of two from 2 to 2^31, not 3" => new().ring_capacity(3)),
        row!("global_interval", "at least 1" => new().global_interval(0)),
        row!("global_queue_interval", "at least 1" => _ = tokios().global_queue_interval(0)),
        row!("blocking_threads", "at least 1" => new().blocking_threads(0)),
        row!("max_blocking_threads", "at least 1" => _ = tokios().max_blocking_threads(0)),
        row!("build_driven", "a Park" => new().build_driven(None::<ThreadPark>)),
    ]);
}

#[test]
fn panic_of_a_part_names_the_caller() {
    let ready_task = || {
        let local = LocalRuntime::new().unwrap();
        let mut task: JoinHandle<()> = local.spawn_local(async {});
        local
            .block_on(poll_fn(|cx| Pin::new(&mut task).poll(cx)))
            .unwrap();
        task
    };
    let mut polled = ready_task();
    let awaited = ready_task();
    let mut once = Once::new(|| ());
    let cx = &mut Context::from_waker(Waker::noop());
    assert_eq!(Pin::new(&mut once).poll(cx), Poll::Ready(()));
    let cx_again = &mut Context::from_waker(Waker::noop());
    let local = LocalRuntime::new().unwrap();
    let cancelled = cancelled();
    let slices = &Slices::new(2);
    check(vec![
        row!("JoinError::into_panic", "was cancelled" => cancelled.into_panic()),
        row!("JoinHandle::poll", "gave its output" => Pin::new(&mut polled).poll(cx)),
        row!("awaited again", "gave its output" => local.block_on(async { awaited.await.is_ok() })),
        row!("Once::poll", "its output" => Pin::new(&mut once).poll(cx_again)),
        row!("ring::Worker", "2^31, not 6" => queue_spmc::ring::Worker::<u8>::new(6)),
        row!("deque::Worker", "2^30" => queue_spmc::deque::Worker::<u8>::with_capacity(1 << 31)),
        row!("WorkerQueue", "2^31, not 1" => WorkerQueue::<Boxed<u8>>::new(1)),
        row!("Slices::new", "workers, not 0" => Slices::new(0)),
        row!("Slices::of", "out of bounds" => slices.of(2)),
        row!("Ticker::new", "longer than zero" => Ticker::new(Duration::ZERO, [])),
    ]);
}

#[cfg(debug_assertions)]
#[test]
fn panic_for_a_node_that_is_in_a_list_names_the_caller() {
    use queue_global::{Injector, Linked, List};

    let nodes = [1, 2, 3].map(|n| Boxed::into_ptr(Box::new(Boxed::new(n))));
    let linked = |n: usize| {
        // SAFETY: this test owns the node.
        unsafe { Boxed::set_next(nodes[n], Some(nodes[n])) };
        // SAFETY: `into_ptr` made the pointer, and this is the node's only handle so far.
        unsafe { Boxed::from_ptr(nodes[n]) }
    };
    let injector = &Injector::<Boxed<u8>>::new();
    let in_list = "in a list already";
    check(vec![
        row!("Injector::push", in_list => drop(injector.push(linked(0)))),
        row!("Injector::requeue", in_list => injector.requeue(linked(1))),
        row!("List::push_back", in_list => List::<Boxed<u8>>::new().push_back(linked(2))),
    ]);
    for node in nodes {
        // SAFETY: the list refused the node, so the node's handle was taken apart and no longer
        // exists.
        drop(unsafe { Boxed::from_ptr(node) });
    }
}
