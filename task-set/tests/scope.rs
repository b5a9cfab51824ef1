//! Tasks in a scope borrow from its caller. Whatever the closure, the tasks or other threads do,
//! all tasks have ended when `scope` returns.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use std::{
    cell::{Cell, RefCell},
    future::{Future, pending, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    sync::{Mutex, mpsc},
    task::{Context, Poll, Waker},
    thread,
};
use task_header::{JoinError, JoinHandle};
use task_set::scope;

fn outcome<T>(join: JoinHandle<T>) -> Result<T, JoinError> {
    let Poll::Ready(outcome) = pin!(join).poll(&mut Context::from_waker(Waker::noop())) else {
        panic!("the task is not done");
    };
    outcome
}

/// Forgets a handle, but keeps its address where a leak checker finds it.
fn forget<T>(join: JoinHandle<T>) {
    static FORGOTTEN: Mutex<Vec<usize>> = Mutex::new(Vec::new());
    let address = join.into_raw().as_ptr().expose_provenance();
    FORGOTTEN.lock().unwrap().push(address);
}

/// Counts its drops.
struct Drops<'a>(&'a Cell<usize>);

impl Drop for Drops<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

/// Sends its waker at the first poll, and is ready at the second one, after the receiver's wake.
async fn woken(wakers: mpsc::Sender<Waker>) {
    let mut sent = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut sent, true) {
            return Poll::Ready(());
        }
        wakers.send(cx.waker().clone()).unwrap();
        Poll::Pending
    })
    .await;
}

#[test]
fn a_scope_waits_for_tasks_that_other_threads_wake() {
    let (send, wakers) = mpsc::channel::<Waker>();
    let waking = thread::spawn(move || wakers.into_iter().for_each(Waker::wake));
    let (drops, order) = (Cell::new(0), RefCell::new(Vec::new()));
    let result = scope(|scope| {
        for n in 0..10 {
            let (send, held, order) = (send.clone(), Drops(&drops), &order);
            scope.spawn(async move {
                woken(send).await;
                order.borrow_mut().push(n);
                drop(held);
            });
        }
        7
    });
    drop(send);
    assert_eq!((result, drops.get(), order.borrow().len()), (7, 10, 10));
    waking.join().unwrap();
}

#[test]
fn a_task_spawns_into_the_scope_that_runs_it() {
    let depth = Cell::new(0);
    scope(|scope| {
        let depth = &depth;
        scope.spawn(async move {
            depth.set(1);
            scope.spawn(async move {
                depth.set(depth.get() + 1);
                scope.spawn(async move { depth.set(depth.get() + 1) });
            });
        });
    });
    assert_eq!(depth.get(), 3);
}

#[test]
fn block_on_in_a_task_runs_the_other_tasks() {
    let log = RefCell::new(Vec::new());
    scope(|scope| {
        let log = &log;
        scope.spawn(async move {
            let inner = scope.spawn(async move { log.borrow_mut().push("inner") });
            scope.block_on(inner).unwrap();
            log.borrow_mut().push("outer");
        });
    });
    assert_eq!(*log.borrow(), ["inner", "outer"]);
}

#[test]
fn a_panic_of_the_closure_cancels_the_tasks() {
    let drops = Cell::new(0);
    let join = Cell::new(None);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        scope(|scope| {
            let (first, second) = (Drops(&drops), Drops(&drops));
            let waits = scope.spawn(async {
                let _held = first;
                pending::<()>().await;
            });
            join.set(Some(waits));
            scope.block_on(async {});
            scope.spawn(async { drop(second) });
            panic!("closure");
        })
    }));
    let payload = panicked.unwrap_err();
    assert_eq!(payload.downcast_ref(), Some(&"closure"));
    assert_eq!(drops.get(), 2);
    let error = outcome(join.take().unwrap()).unwrap_err();
    assert!(error.is_cancelled());
}

#[test]
fn a_panic_of_a_task_goes_to_its_handle_and_that_of_a_block_on() {
    let join = scope(|scope| {
        let panics = || scope.block_on(async { panic!("block_on") });
        let caught: Result<(), _> = catch_unwind(AssertUnwindSafe(panics));
        assert_eq!(caught.unwrap_err().downcast_ref(), Some(&"block_on"));
        scope.spawn(async { panic!("task") })
    });
    let error: Result<(), _> = outcome(join);
    assert!(error.unwrap_err().is_panic());
}

#[test]
fn handles_outlive_the_scope_without_the_futures() {
    let (drops, value) = (Cell::new(0), String::from("value"));
    let (forgotten, slot) = (Drops(&drops), Cell::new(None));
    let kept = scope(|scope| {
        forget(scope.spawn(async {
            let _held = forgotten;
            scope.spawn(async {});
        }));
        forget(scope.spawn(async { &value }));
        scope.spawn(poll_fn(|cx| {
            slot.set(Some(cx.waker().clone()));
            Poll::Ready(())
        }));
        let join = scope.spawn(async { value.len() });
        (join.abort_handle(), join)
    });
    assert_eq!(drops.get(), 1);
    drop(value);
    slot.take().unwrap().wake();
    let (abort, join) = kept;
    abort.abort();
    assert_eq!(outcome(join).unwrap(), 5);
}

#[test]
fn scopes_nest() {
    let (outer, inner) = (Cell::new(0), Cell::new(0));
    scope(|first| {
        first.spawn(async {
            outer.set(1);
            scope(|second| {
                second.spawn(async { inner.set(outer.get() + 1) });
            });
            outer.set(inner.get() + 1);
        });
    });
    assert_eq!((outer.get(), inner.get()), (3, 2));
}
