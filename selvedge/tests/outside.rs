//! Files outside of a runtime, and in runtimes without a pool.
#![cfg(all(feature = "fs", not(any(selvedge_loom, selvedge_shuttle))))]
use blocking_threads::NoPool;
use selvedge::{Builder, LocalRuntime, LocalSet, Runtime, fs};
use std::{
    future::Future,
    io,
    pin::pin,
    task::{Context, Poll, Waker},
};

/// Polls a future of files once. Returns its error.
fn error_of<T>(future: impl Future<Output = io::Result<T>>) -> io::Error {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        Poll::Ready(Err(error)) => error,
        _ => panic!("the future waits, or has read"),
    }
}

fn is_no_pool(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    inner.is_some_and(|_: &NoPool| true)
}

/// Fails if a thread stays in the pool of a runtime that it has left.
#[test]
fn file_outside_of_a_runtime_is_an_error() {
    assert!(is_no_pool(&error_of(fs::read("/dev/null"))));
    let runtime = Runtime::new().unwrap();
    runtime.block_on(fs::read("/dev/null")).unwrap();
    {
        let _entered = runtime.enter();
        let mut read = pin!(fs::read("/dev/null"));
        let mut cx = Context::from_waker(Waker::noop());
        let polled = read.as_mut().poll(&mut cx);
        assert!(!matches!(polled, Poll::Ready(Err(_))));
    }
    assert!(is_no_pool(&error_of(fs::read("/dev/null"))));
    let set = LocalSet::new();
    assert!(is_no_pool(&error_of(set.run_until(fs::read("/dev/null")))));
}

/// Fails if one of these places is not in the runtime's pool.
#[test]
fn file_is_read_wherever_a_runtime_is_current() {
    let read = || fs::read("/dev/null");
    let runtime = Builder::new().workers(1).build().unwrap();
    let handle = runtime.handle().clone();
    runtime.block_on(runtime.spawn(read())).unwrap().unwrap();
    let closure = runtime.spawn_blocking(move || handle.block_on(read()));
    runtime.block_on(closure).unwrap().unwrap();
    let in_place = runtime.spawn(async move {
        selvedge::block_in_place(|| selvedge::Handle::current().block_on(read()))
    });
    runtime.block_on(in_place).unwrap().unwrap();
    let current = Builder::new_current_thread().build().unwrap();
    current.block_on(current.spawn(read())).unwrap().unwrap();
    LocalSet::new().block_on(&runtime, read()).unwrap();
    let local = LocalRuntime::new().unwrap();
    local.block_on(read()).unwrap();
}

/// Fails if guards that are dropped out of order leave the wrong pool.
#[test]
fn guards_of_two_runtimes_may_be_dropped_in_any_order() {
    let (one, two) = (Runtime::new().unwrap(), Runtime::new().unwrap());
    let (first, second) = (one.enter(), two.enter());
    drop(first);
    let mut read = pin!(fs::read("/dev/null"));
    let mut cx = Context::from_waker(Waker::noop());
    // No error: the thread is in the second runtime.
    let polled = read.as_mut().poll(&mut cx);
    assert!(!matches!(polled, Poll::Ready(Err(_))));
    drop(second);
    assert!(is_no_pool(&error_of(fs::read("/dev/null"))));
}
