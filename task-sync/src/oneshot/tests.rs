use super::*;
use crate::testing::Woken;
use core::task::Waker;
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::Arc,
    task::Wake,
    thread,
};

fn poll<T>(rx: &mut Receiver<T>) -> Poll<Result<T, RecvError>> {
    Pin::new(rx).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn receiver_after_its_value_is_terminated() {
    let (tx, mut rx) = channel();
    assert!(poll(&mut rx).is_pending());
    tx.send(7).unwrap();
    assert!(!rx.is_empty() && !rx.is_terminated());
    assert_eq!(poll(&mut rx), Poll::Ready(Ok(7)));
    assert!(rx.is_empty() && rx.is_terminated());
    assert_eq!(rx.try_recv(), Err(TryRecvError::Closed));
    rx.close();
    assert!(catch_unwind(AssertUnwindSafe(|| poll(&mut rx))).is_err());
}

#[test]
fn close_after_send_leaves_the_value() {
    let (tx, mut rx) = channel();
    tx.send(7).unwrap();
    rx.close();
    assert_eq!(rx.try_recv(), Ok(7));
    let (tx, mut rx) = channel::<u8>();
    rx.close();
    assert!(tx.is_closed());
    assert!(poll(&mut rx).is_ready());
    assert!(rx.is_terminated());
    assert_eq!(tx.send(7), Err(7));
}

#[test]
fn closed_waits_for_close_or_drop() {
    for how in [Receiver::<u8>::close, |rx: &mut Receiver<u8>| {
        *rx = channel().1;
    }] {
        let (mut tx, mut rx) = channel::<u8>();
        let (woken, waker) = Woken::new();
        let mut cx = Context::from_waker(&waker);
        for _ in 0..2 {
            assert!(tx.poll_closed(&mut cx).is_pending());
        }
        how(&mut rx);
        assert_eq!(woken.times(), 1);
        assert!(tx.poll_closed(&mut cx).is_ready());
    }
}

#[test]
fn poll_with_another_waker_drops_the_old_one() {
    let (tx, mut rx) = channel();
    let wakers = [Woken::new(), Woken::new()];
    for (_, waker) in &wakers {
        let poll = Pin::new(&mut rx).poll(&mut Context::from_waker(waker));
        assert!(poll.is_pending());
    }
    assert_eq!(sync_shim::sync::Arc::strong_count(&wakers[0].0), 2);
    assert_eq!(sync_shim::sync::Arc::strong_count(&wakers[1].0), 3);
    tx.send(7).unwrap();
    assert_eq!(wakers.each_ref().map(|(woken, _)| woken.times()), [0, 1]);
    assert_eq!(sync_shim::sync::Arc::strong_count(&wakers[1].0), 2);
}

#[test]
fn drop_of_an_end_that_waits_drops_its_waker() {
    let (mut tx, mut rx) = channel::<u8>();
    let (woken, waker) = Woken::new();
    let mut cx = Context::from_waker(&waker);
    assert!(tx.poll_closed(&mut cx).is_pending());
    assert!(Pin::new(&mut rx).poll(&mut cx).is_pending());
    assert_eq!(sync_shim::sync::Arc::strong_count(&woken), 4);
    drop(tx);
    assert_eq!(sync_shim::sync::Arc::strong_count(&woken), 2);
    assert_eq!(woken.times(), 1);
    drop(rx);
}

/// A value whose drop counts, and panics if it is told to.
struct Dropped(Rc<Cell<u32>>, bool);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
        if self.1 {
            panic!("the drop of a value");
        }
    }
}

#[test]
fn value_is_dropped_once_even_if_the_drop_panics() {
    let drops = Rc::new(Cell::new(0));
    let (tx, rx) = channel();
    assert!(tx.send(Dropped(drops.clone(), true)).is_ok());
    assert!(catch_unwind(AssertUnwindSafe(|| drop(rx))).is_err());
    assert_eq!(drops.get(), 1);
    let (tx, rx) = channel();
    drop(rx);
    let refused = tx.send(Dropped(drops.clone(), false));
    assert_eq!(drops.get(), 1);
    drop(refused);
    assert_eq!(drops.get(), 2);
    assert_eq!(Rc::strong_count(&drops), 1);
}

/// A value that has the other channel's receiver, and one that has its own sender.
#[test]
fn value_whose_drop_uses_a_channel_is_dropped() {
    let (tx, rx) = channel();
    let (inner_tx, inner_rx) = channel::<u8>();
    assert!(tx.send(inner_rx).is_ok());
    drop(rx);
    assert!(inner_tx.is_closed());
}

#[test]
fn send_whose_wake_panics_has_sent() {
    struct Broken;
    impl Wake for Broken {
        fn wake(self: Arc<Self>) {
            panic!("in a wake");
        }
    }
    let (tx, mut rx) = channel();
    let waker = Waker::from(Arc::new(Broken));
    let mut cx = Context::from_waker(&waker);
    assert!(Pin::new(&mut rx).poll(&mut cx).is_pending());
    tx.send(7).unwrap();
    assert_eq!(rx.try_recv(), Ok(7));
}

#[test]
fn blocking_recv_waits_for_the_value() {
    let (tx, rx) = channel();
    let receiver = thread::spawn(|| rx.blocking_recv());
    tx.send(7).unwrap();
    assert_eq!(receiver.join().unwrap(), Ok(7));
    let (tx, rx) = channel::<u8>();
    drop(tx);
    assert_eq!(rx.blocking_recv(), Err(RecvError(())));
}

#[test]
fn channel_is_forty_bytes_and_the_value() {
    if cfg!(target_pointer_width = "64") && cfg!(not(selvedge_count)) {
        assert_eq!(size_of::<Inner<u64>>(), 48);
    }
    assert_eq!(size_of::<Sender<u64>>(), size_of::<usize>());
    assert_eq!(size_of::<Option<Sender<u64>>>(), size_of::<usize>());
    assert_eq!(size_of::<Receiver<u64>>(), size_of::<usize>());
}
