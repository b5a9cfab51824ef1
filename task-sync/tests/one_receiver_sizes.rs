//! No channel, message or waiting task takes more bytes than tokio's on a 64-bit machine.
use allocation_counter::measure;
use std::{cell::Cell, future::Future, mem::size_of_val};
use task_sync::{broadcast, mpsc, oneshot, watch};
use tokio::sync as theirs;

/// Returns the bytes that `f` allocates in all.
fn bytes(f: impl FnOnce()) -> u64 {
    measure(f).bytes_total
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "the sizes are of 64 bits")]
fn channels_take_no_more_bytes_than_tokios() {
    let ours = bytes(|| drop(oneshot::channel::<u64>()));
    let tokios = bytes(|| drop(theirs::oneshot::channel::<u64>()));
    assert!(ours <= tokios, "oneshot: {ours}, tokio {tokios}");
    let ours = bytes(|| drop(mpsc::channel::<u64>(8)));
    let tokios = bytes(|| drop(theirs::mpsc::channel::<u64>(8)));
    assert!(ours <= tokios, "bounded: {ours}, tokio {tokios}");
    let ours = bytes(|| drop(mpsc::unbounded_channel::<[u8; 1000]>()));
    let tokios = bytes(|| drop(theirs::mpsc::unbounded_channel::<[u8; 1000]>()));
    assert!(ours <= tokios, "large messages: {ours}, tokio {tokios}");
    for capacity in [1, 2, 16, 100] {
        let ours = bytes(|| drop(broadcast::channel::<u64>(capacity)));
        let tokios = bytes(|| drop(theirs::broadcast::channel::<u64>(capacity)));
        assert!(
            ours <= tokios,
            "broadcast of {capacity}: {ours}, tokio {tokios}"
        );
    }
    let ours = bytes(|| drop(watch::channel(0_u64)));
    let tokios = bytes(|| drop(theirs::watch::channel(0_u64)));
    assert!(ours <= tokios, "watch: {ours}, tokio {tokios}");
}

#[test]
#[cfg_attr(not(target_pointer_width = "64"), ignore = "the sizes are of 64 bits")]
fn messages_take_no_more_bytes_than_tokios() {
    for count in [1, 32, 33, 100, 10_000] {
        let (tx, _rx) = mpsc::unbounded_channel();
        let ours = bytes(|| (0..count).for_each(|n| tx.send(n).unwrap()));
        let (tx, _rx) = theirs::mpsc::unbounded_channel();
        let tokios = bytes(|| (0..count).for_each(|n| tx.send(n).unwrap()));
        assert!(ours <= tokios, "{count} messages: {ours}, tokio {tokios}");
    }
}

/// Asserts that the first future is not larger than the second.
macro_rules! smaller {
    ($($ours:expr, $tokios:expr;)*) => {$(
        let (ours, tokios) = (size_of_val(&$ours), size_of_val(&$tokios));
        assert!(ours <= tokios, "{}: {ours}, tokio {tokios}", stringify!($ours));
    )*};
}

#[test]
fn waits_take_no_more_bytes_than_tokios() {
    let (tx, mut rx) = mpsc::channel::<u64>(1);
    let (their_tx, mut their_rx) = theirs::mpsc::channel::<u64>(1);
    let (mut buffer, mut their_buffer) = (Vec::new(), Vec::new());
    smaller! {
        tx.send(1), their_tx.send(1);
        tx.reserve(), their_tx.reserve();
        tx.reserve_many(1), their_tx.reserve_many(1);
        tx.clone().reserve_owned(), their_tx.clone().reserve_owned();
        tx.closed(), their_tx.closed();
        rx.recv(), their_rx.recv();
        rx.recv_many(&mut buffer, 1), their_rx.recv_many(&mut their_buffer, 1);
    }
    let (mut tx, _rx) = oneshot::channel::<u64>();
    let (mut their_tx, _rx) = theirs::oneshot::channel::<u64>();
    smaller! { tx.closed(), their_tx.closed(); }
}

/// A wait allocates nothing.
#[test]
fn wait_allocates_nothing() {
    let (tx, mut rx) = mpsc::channel(1);
    tx.try_send(Cell::new(1)).unwrap();
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let mut send = std::pin::pin!(tx.send(Cell::new(2)));
    let waited = bytes(|| assert!(send.as_mut().poll(&mut cx).is_pending()));
    assert_eq!(waited, 0);
    rx.try_recv().unwrap();
    assert!(send.poll(&mut cx).is_ready());
    rx.try_recv().unwrap();
    assert_eq!(bytes(|| assert!(rx.poll_recv(&mut cx).is_pending())), 0);
}
