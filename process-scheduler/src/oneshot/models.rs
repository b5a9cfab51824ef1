//! Models of the two ends of a slot. loom checks the accesses to the bits and the places. It does
//! not check the block, which is the allocator's.
//!
//! "Fails if" names the changes to the code that make a model fail.
use super::*;
use std::{panic::resume_unwind, sync::Arc, task::Wake};
use sync_shim::{atomic::AtomicBool, model, panics::catch, thread};

/// A waker that sets a flag. A thread that sees the flag sees what the waking thread did before.
struct Woken(AtomicBool);

impl Woken {
    fn new() -> Arc<Self> {
        Arc::new(Self(AtomicBool::new(false)))
    }

    fn is_set(&self) -> bool {
        // Ordering: Acquire pairs with the swap of `wake`, as in a process's state.
        self.0.load(Acquire)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        // Ordering: AcqRel, as above.
        self.0.swap(true, AcqRel);
    }
}

fn poll<R>(receiver: &mut Receiver<R>, woken: &Arc<Woken>) -> Poll<Result<R, NoValue>> {
    receiver.poll(&Context::from_waker(&Waker::from(woken.clone())))
}

/// The receiver waits while the value comes: it gets the value, or is woken and then gets it.
///
/// Fails if the sender's first exchange is a Release store, or Relaxed; or if the receiver
/// registers its waker by a store.
#[test]
fn value_against_poll_is_taken_or_wakes() {
    model(|| {
        let (sender, mut receiver) = channel();
        let woken = Woken::new();
        let sends = thread::spawn(move || sender.send(Box::new(7)).unwrap());
        let mut polled = poll(&mut receiver, &woken);
        sends.join().unwrap();
        if polled.is_pending() {
            assert!(woken.is_set(), "it waits forever");
            polled = poll(&mut receiver, &woken);
        }
        assert_eq!(polled, Poll::Ready(Ok(Box::new(7))));
        assert_eq!(
            poll(&mut receiver, &woken),
            Poll::Ready(Err(NoValue::Dropped))
        );
    });
}

/// The receiver waits with one waker and then with another: the sender wakes the last one.
///
/// Fails if the receiver replaces the waker without taking it back.
#[test]
fn value_against_a_new_waker_wakes_the_last_one() {
    model(|| {
        let (sender, mut receiver) = channel();
        let wakers = [Woken::new(), Woken::new()];
        assert!(poll(&mut receiver, &wakers[0]).is_pending());
        let sends = thread::spawn(move || sender.send(7).unwrap());
        let polled = poll(&mut receiver, &wakers[1]);
        sends.join().unwrap();
        if polled.is_pending() {
            assert!(wakers[1].is_set(), "it waits forever");
            assert_eq!(poll(&mut receiver, &wakers[1]), Poll::Ready(Ok(7)));
        }
    });
}

/// The receiver leaves while the value comes: the value is handed back, or dropped, once. If the
/// receiver has waited, its waker is dropped by the receiver, or used by the sender.
///
/// Fails if a receiver that leaves does not take its waker back, or if an exchange is Relaxed.
#[test]
fn value_against_drop_is_handed_back_or_dropped() {
    for waits in [false, true] {
        model(move || {
            let (sender, mut receiver) = channel();
            let woken = Woken::new();
            if waits {
                assert!(poll(&mut receiver, &woken).is_pending());
            }
            let value = Arc::new(());
            let count = Arc::downgrade(&value);
            let sends = thread::spawn(move || sender.send(value).is_err());
            drop(receiver);
            sends.join().unwrap();
            assert_eq!(count.strong_count(), 0);
            assert_eq!(Arc::strong_count(&woken), 1);
        });
    }
}

/// A value whose drop panics, and prints nothing.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        resume_unwind(Box::new(()));
    }
}

/// The receiver waits, and leaves while a value comes whose drop panics. If the sender has the
/// waker, the sender wakes the receiver's task, even if the sender also drops the value.
///
/// Fails if the sender drops the value before it wakes.
#[test]
fn sender_that_drops_a_value_that_panics_wakes() {
    model(|| {
        let (sender, mut receiver) = channel();
        let woken = Woken::new();
        assert!(poll(&mut receiver, &woken).is_pending());
        let sends = thread::spawn(move || {
            let _ = catch(|| sender.send(Bomb).map_err(mem::forget));
        });
        let own = receiver.unregister();
        let _ = catch(|| drop(receiver));
        sends.join().unwrap();
        assert!(own.is_some() || woken.is_set(), "the wake-up is lost");
        drop(own);
        assert_eq!(Arc::strong_count(&woken), 1);
    });
}

/// The receiver takes the value and leaves while the sender leaves: the value is dropped once.
///
/// Fails if the drop of the receiver does not set TAKEN.
#[test]
fn take_against_the_end_of_the_sender_frees_once() {
    model(|| {
        let (sender, mut receiver) = channel();
        let sends = thread::spawn(move || sender.send(Arc::new(())).is_ok());
        if let Poll::Ready(value) = poll(&mut receiver, &Woken::new()) {
            drop(receiver);
            assert_eq!(value.as_ref().map(Arc::strong_count), Ok(1));
        }
        sends.join().unwrap();
    });
}

/// The sender ends because its node is down, while the receiver waits.
///
/// Fails if `end_by_loss` does not wake.
#[test]
fn lost_sender_against_poll_wakes_and_says_so() {
    model(|| {
        let (sender, mut receiver) = channel::<u8>();
        let woken = Woken::new();
        let loses = thread::spawn(move || sender.end_by_loss());
        let mut polled = poll(&mut receiver, &woken);
        loses.join().unwrap();
        if polled.is_pending() {
            assert!(woken.is_set(), "it waits forever");
            polled = poll(&mut receiver, &woken);
        }
        assert_eq!(polled, Poll::Ready(Err(NoValue::NodeDown)));
    });
}

/// The sender is dropped while the receiver waits.
///
/// Fails if the drop of a sender does not wake.
#[test]
fn dropped_sender_against_poll_wakes() {
    model(|| {
        let (sender, mut receiver) = channel::<u8>();
        let woken = Woken::new();
        let drops = thread::spawn(move || drop(sender));
        let polled = poll(&mut receiver, &woken);
        drops.join().unwrap();
        assert!(polled.is_ready() || woken.is_set(), "it waits forever");
        assert_eq!(
            poll(&mut receiver, &woken),
            Poll::Ready(Err(NoValue::Dropped))
        );
    });
}
