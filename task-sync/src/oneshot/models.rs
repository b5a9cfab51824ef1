//! Models of a channel's two ends against each other.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use crate::testing::Woken;
use core::task::Waker;
use sync_shim::{model, sync::Arc, thread};

/// A value whose drop the model counts: a leaked `Arc` fails a model.
type Value = Arc<u32>;

fn poll(rx: &mut Receiver<Value>, waker: &Waker) -> Poll<Result<u32, RecvError>> {
    let poll = Pin::new(rx).poll(&mut Context::from_waker(waker));
    poll.map(|received| received.map(|value| *value))
}

/// Fails if one of these is Relaxed: the exchange in `change`, the exchange in `poll_register` that
/// sets the bit, or the load in `state`.
#[test]
fn send_beside_polls_is_received_or_wakes() {
    model(|| {
        let (tx, mut rx) = channel();
        let (woken, waker) = Woken::new();
        let sender = thread::spawn(move || tx.send(Arc::new(7)).is_ok());
        let first = poll(&mut rx, &waker);
        assert!(sender.join().unwrap());
        if first.is_pending() {
            assert_eq!(woken.times(), 1);
            assert_eq!(poll(&mut rx, &waker), Poll::Ready(Ok(7)));
        }
    });
}

/// Fails if a poll stores a waker while the bit of the old waker is set, if a new waker keeps the
/// old version, or if the sender reads the waker's two words after its exchange.
#[test]
fn send_beside_changes_of_wakers_wakes_the_last() {
    model(|| {
        let (tx, mut rx) = channel();
        let wakers = [Woken::new(), Woken::new()];
        assert!(poll(&mut rx, &wakers[0].1).is_pending());
        let sender = thread::spawn(move || tx.send(Arc::new(7)).is_ok());
        let second = poll(&mut rx, &wakers[1].1);
        assert!(sender.join().unwrap());
        if second.is_pending() {
            assert_eq!(wakers[1].0.times(), 1);
            assert_eq!(poll(&mut rx, &wakers[1].1), Poll::Ready(Ok(7)));
        }
        assert!(wakers[0].0.times() <= 1);
    });
}

/// No version is left for a new waker. So the old waker stays, and each poll wakes its own task.
///
/// Fails if a waker is changed without a version.
#[test]
fn changes_of_wakers_after_the_last_version_wake() {
    model(|| {
        let (tx, mut rx) = channel();
        let wakers = [(); 4].map(|()| Woken::new());
        for (_, waker) in &wakers[..3] {
            assert!(poll(&mut rx, waker).is_pending());
        }
        let sender = thread::spawn(move || tx.send(Arc::new(7)).is_ok());
        let last = poll(&mut rx, &wakers[3].1);
        assert!(sender.join().unwrap());
        if last.is_pending() {
            assert!(wakers[3].0.times() >= 1);
            assert_eq!(poll(&mut rx, &wakers[3].1), Poll::Ready(Ok(7)));
        }
    });
}

/// Fails if `send` does not check `CLOSED` in its exchange.
#[test]
fn send_beside_close_is_received_or_handed_back() {
    model(|| {
        let (tx, mut rx) = channel();
        let sender = thread::spawn(move || tx.send(Arc::new(7)).is_ok());
        rx.close();
        let received = rx.try_recv();
        assert_eq!(sender.join().unwrap(), received.is_ok());
        assert!(matches!(rx.try_recv(), Err(TryRecvError::Closed)));
    });
}

/// Fails if an end that finds the other gone does not free, if both free, or if the loads of
/// `state` are Relaxed.
#[test]
fn send_beside_drop_of_receiver_drops_the_value_once() {
    model(|| {
        let (tx, rx) = channel();
        let sender = thread::spawn(move || {
            let _ = tx.send(Arc::new(7));
        });
        drop(rx);
        sender.join().unwrap();
    });
}

/// Fails if an end leaves with a waker in its slot.
#[test]
fn channel_is_freed_when_both_ends_drop_while_waiting() {
    model(|| {
        let (mut tx, mut rx) = channel::<Value>();
        let ((_, rx_waker), (_, tx_waker)) = (Woken::new(), Woken::new());
        assert!(poll(&mut rx, &rx_waker).is_pending());
        let sender = thread::spawn(move || {
            let mut cx = Context::from_waker(&tx_waker);
            let closed = tx.poll_closed(&mut cx);
            drop(tx);
            closed.is_ready()
        });
        drop(rx);
        sender.join().unwrap();
    });
}

/// Fails if the exchange of `change` does not take the sender's waker.
#[test]
fn close_beside_poll_closed_is_seen_or_wakes() {
    model(|| {
        let (mut tx, mut rx) = channel::<Value>();
        let (woken, waker) = Woken::new();
        let receiver = thread::spawn(move || {
            rx.close();
            assert!(matches!(rx.try_recv(), Err(TryRecvError::Closed)));
        });
        let mut cx = Context::from_waker(&waker);
        let first = tx.poll_closed(&mut cx);
        receiver.join().unwrap();
        assert!(first.is_ready() || woken.times() == 1);
        assert!(tx.poll_closed(&mut cx).is_ready());
        assert!(tx.send(Arc::new(7)).is_err());
    });
}

/// Fails if the drop of a sender does not take the receiver's waker.
#[test]
fn drop_of_sender_beside_a_poll_is_seen_or_wakes() {
    model(|| {
        let (tx, mut rx) = channel::<Value>();
        let (woken, waker) = Woken::new();
        let sender = thread::spawn(move || drop(tx));
        let first = poll(&mut rx, &waker);
        sender.join().unwrap();
        if first.is_pending() {
            assert_eq!(woken.times(), 1);
            assert_eq!(poll(&mut rx, &waker), Poll::Ready(Err(RecvError(()))));
        }
    });
}

/// A receiver ends beside a poll of the sender with another waker. The sender sees the end, and
/// what the receiver's thread did before.
///
/// Fails if an exchange of `poll_register` is Relaxed on failure.
#[test]
fn close_beside_a_second_poll_shows_what_came_before() {
    use sync_shim::atomic::{AtomicBool, Ordering::Relaxed};
    for is_registered in [true, false] {
        model(move || {
            let (mut tx, rx) = channel::<Value>();
            let (_first, waker) = Woken::new();
            let (_second, other) = Woken::new();
            if is_registered {
                assert!(
                    tx.poll_closed(&mut Context::from_waker(&waker))
                        .is_pending()
                );
            }
            let done = Arc::new(AtomicBool::new(false));
            let receiver = {
                let done = done.clone();
                thread::spawn(move || {
                    // Ordering: Relaxed, the channel must order it.
                    done.store(true, Relaxed);
                    drop(rx);
                })
            };
            if tx.poll_closed(&mut Context::from_waker(&other)).is_ready() {
                // Ordering: Relaxed, as above.
                assert!(done.load(Relaxed));
            }
            receiver.join().unwrap();
        });
    }
}
