//! The costs of operations in read-modify-writes, as the documents state them. No figure includes
//! the count of an `Arc`.
use crate::{Notify, SetOnce, broadcast, watch};
use std::{
    pin::pin,
    task::{Context, Waker},
};
use sync_shim::count::counted;

fn rmws<R>(f: impl FnOnce() -> R) -> u64 {
    let (_, counts) = counted(f);
    assert_eq!((counts.shared_rmws, counts.seqcst_fences), (0, 0));
    counts.rmws
}

fn first_poll<F: Future>(future: F) -> u64 {
    let mut future = pin!(future);
    rmws(|| {
        let mut cx = Context::from_waker(Waker::noop());
        future.as_mut().poll(&mut cx).is_ready()
    })
}

#[test]
fn broadcast_costs_what_its_page_says() {
    let (tx, mut rx) = broadcast::channel(2);
    let mut other = rx.resubscribe();
    assert_eq!(rmws(|| rx.try_recv()), 0);
    assert_eq!(first_poll(rx.recv()), 1);
    assert_eq!(rmws(|| tx.send(1)), 3);
    assert_eq!(rmws(|| rx.try_recv()), 4);
    assert_eq!(first_poll(other.recv()), 2, "the last one");
    tx.send(2).unwrap();
    tx.send(3).unwrap();
    assert_eq!(rmws(|| tx.send(4)), 5);
    assert_eq!(rmws(|| rx.try_recv()), 1, "lagging");
}

#[test]
fn broadcast_to_many_costs_what_its_page_says() {
    let (tx, rx) = broadcast::channel(2);
    let mut receivers: Vec<_> = (0..9).map(|_| rx.resubscribe()).collect();
    let last = receivers.last_mut().unwrap();
    assert_eq!(first_poll(last.recv()), 2, "the list is used from now on");
    assert_eq!(first_poll(last.recv()), 1);
    assert_eq!(rmws(|| tx.send(1)), 6, "its bit is cleared, too");
    assert_eq!(rmws(|| tx.send(2)), 4);
}

#[test]
fn watch_costs_what_its_page_says() {
    let (tx, mut rx) = watch::channel(1);
    assert_eq!(rmws(|| tx.send(2)), 3);
    assert_eq!(rmws(|| rx.has_changed()), 0);
    assert_eq!(first_poll(rx.changed()), 0);
    assert_eq!(first_poll(rx.changed()), 2, "the list is used from now on");
    assert_eq!(first_poll(rx.changed()), 1);
    assert_eq!(rmws(|| drop(rx.borrow())), 2);
    assert_eq!(rmws(|| drop(rx.borrow_and_update())), 2);
}

#[test]
fn notify_costs_what_its_page_says() {
    let notify = Notify::new();
    assert_eq!(rmws(|| notify.notify_one()), 1);
    assert_eq!(first_poll(notify.notified()), 1);
    assert_eq!(rmws(|| notify.notify_waiters()), 1);
    // The first wait sets a flag, which then stays.
    let mut wait = pin!(notify.notified());
    assert_eq!(rmws(|| wait.as_mut().enable()), 2);
    assert_eq!(rmws(|| notify.notify_one()), 1);
    assert_eq!(first_poll(notify.notified()), 1);
    assert_eq!(rmws(|| notify.notify_one()), 2);
    assert_eq!(rmws(|| notify.notify_one()), 1);
}

#[test]
fn set_once_costs_a_lock_alone() {
    let cell = SetOnce::new();
    assert_eq!(first_poll(cell.wait()), 1);
    assert_eq!(rmws(|| cell.set(7)), 1);
    assert_eq!(first_poll(cell.wait()), 0);
    assert_eq!(rmws(|| cell.set(8).is_ok()), 0);
}
