//! Counts the read-modify-writes that the operations of `mpsc` and `oneshot` cost, as their docs
//! say.
use crate::{mpsc, oneshot};
use core::{
    future::Future,
    pin::pin,
    task::{Context, Waker},
};
use std::{sync::Arc, task::Wake, thread_local};
use sync_shim::count::counted;

fn rmws<R>(f: impl FnOnce() -> R) -> u64 {
    let (_, counts) = counted(f);
    assert_eq!(counts.seqcst_fences, 0);
    counts.rmws
}

struct Nothing;

impl Wake for Nothing {
    fn wake(self: Arc<Self>) {}
}

/// Polls once, always with the same waker. (Clones of `Waker::noop` may differ in their tables.)
fn poll<F: Future>(future: F) -> bool {
    thread_local!(static WAKER: Waker = Waker::from(Arc::new(Nothing)));
    WAKER.with(|waker| {
        let mut cx = Context::from_waker(waker);
        pin!(future).poll(&mut cx).is_ready()
    })
}

#[test]
fn oneshot_costs_what_its_docs_say() {
    let (tx, mut rx) = oneshot::channel();
    assert_eq!(rmws(|| poll(&mut rx)), 1, "a wait");
    assert_eq!(rmws(|| poll(&mut rx)), 0, "the same waker");
    assert_eq!(rmws(|| tx.send(7)), 1);
    assert_eq!(rmws(|| poll(&mut rx)), 0, "a receive");
    let (tx, rx) = oneshot::channel::<u8>();
    assert_eq!(rmws(|| drop(rx)), 1);
    assert_eq!(rmws(|| drop(tx)), 0);
}

#[test]
fn mpsc_costs_what_its_docs_say() {
    let (tx, mut rx) = mpsc::unbounded_channel();
    assert_eq!(rmws(|| tx.send(7).is_ok()), 2);
    assert_eq!(rmws(|| rx.try_recv()), 0);
    tx.send(7).unwrap();
    assert_eq!(rmws(|| poll(rx.recv())), 0);
    let (tx, mut rx) = mpsc::channel(1);
    assert_eq!(rmws(|| tx.try_send(7).is_ok()), 3);
    assert_eq!(rmws(|| tx.try_send(8).is_ok()), 0, "full");
    assert_eq!(rmws(|| rx.try_recv()), 1);
    assert_eq!(rmws(|| poll(tx.send(7))), 3);
    assert_eq!(rmws(|| poll(rx.recv())), 1);
}
