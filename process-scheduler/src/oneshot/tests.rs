use super::*;
use std::{
    mem::ManuallyDrop,
    sync::{Arc, Mutex},
    task::{RawWaker, RawWakerVTable, Wake},
};
use sync_shim::atomic::AtomicBool;

fn poll<R>(receiver: &mut Receiver<R>) -> Poll<Result<R, NoValue>> {
    receiver.poll(&Context::from_waker(Waker::noop()))
}

#[test]
fn value_reaches_a_receiver_that_polls_later() {
    let (sender, mut receiver) = channel();
    assert!(poll(&mut receiver).is_pending());
    assert!(!sender.is_abandoned());
    sender.send("value".to_owned()).unwrap();
    assert_eq!(poll(&mut receiver), Poll::Ready(Ok("value".to_owned())));
    assert_eq!(poll(&mut receiver), Poll::Ready(Err(NoValue::Dropped)));
}

#[test]
fn value_without_a_receiver_is_handed_back() {
    let (sender, mut receiver) = channel();
    assert!(poll(&mut receiver).is_pending());
    drop(receiver);
    assert!(sender.is_abandoned());
    assert_eq!(sender.send("value".to_owned()), Err("value".to_owned()));
}

/// Fails if an end leaks or drops the value twice.
#[test]
fn value_that_nobody_takes_is_dropped_once() {
    let value = Arc::new(());
    let (sender, receiver) = channel();
    sender.send(value.clone()).unwrap();
    assert_eq!(Arc::strong_count(&value), 2);
    drop(receiver);
    assert_eq!(Arc::strong_count(&value), 1);
}

#[test]
fn receiver_of_a_dropped_sender_gets_an_error() {
    let (sender, mut receiver) = channel::<u8>();
    drop(sender);
    assert_eq!(poll(&mut receiver), Poll::Ready(Err(NoValue::Dropped)));
}

/// A task that notes its wake.
#[derive(Default)]
struct Noted(AtomicBool);

impl Wake for Noted {
    fn wake(self: Arc<Self>) {
        // Ordering: Relaxed, one thread.
        self.0.store(true, Relaxed);
    }
}

/// The target of a waker that is lent for one poll: a clone of the waker wakes the task that polls.
struct Lent(Mutex<Arc<Noted>>);

static LENT: RawWakerVTable =
    RawWakerVTable::new(clone_lent, |_| unreachable!(), |_| unreachable!(), |_| ());

unsafe fn clone_lent(lent: *const ()) -> RawWaker {
    // SAFETY: the test keeps the `Lent` alive.
    let lent = unsafe { &*lent.cast::<Lent>() };
    let task = lent.0.lock().unwrap().clone();
    let waker = ManuallyDrop::new(Waker::from(task));
    RawWaker::new(waker.data(), waker.vtable())
}

/// Fails if the receiver compares the context's waker with that of an earlier poll, instead of with
/// the clone that it registered.
#[test]
fn equal_wakers_whose_clones_differ_are_both_registered() {
    let tasks = [(); 2].map(|()| Arc::<Noted>::default());
    let lent = Lent(Mutex::new(tasks[0].clone()));
    let (sender, mut receiver) = channel();
    for task in &tasks {
        *lent.0.lock().unwrap() = task.clone();
        // SAFETY: the functions keep the contract of a waker, and `lent` outlives this waker.
        let waker = unsafe { Waker::new((&raw const lent).cast(), &LENT) };
        let polled = receiver.poll(&Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    sender.send(7).unwrap();
    // Ordering: Relaxed, one thread.
    assert_eq!(tasks.map(|task| task.0.load(Relaxed)), [false, true]);
    assert_eq!(poll(&mut receiver), Poll::Ready(Ok(7)));
}

/// Fails if the panic of the waker's drop comes out of the receiver's drop, or if it keeps the
/// receiver from leaving the slot.
#[test]
fn receiver_whose_waker_panics_in_its_drop_leaves() {
    let (sender, mut receiver) = channel();
    let waker = Waker::from(Arc::new(Frail));
    assert!(receiver.poll(&Context::from_waker(&waker)).is_pending());
    drop(waker); // The slot has the last clone.
    drop(receiver);
    assert!(sender.is_abandoned());
    assert_eq!(sender.send(7), Err(7));
}

/// A value, or the task of a waker, whose drop panics.
struct Frail;

impl Wake for Frail {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Frail {
    fn drop(&mut self) {
        panic!("this drop panics");
    }
}

/// The target of a waker whose clone sends a value, and then panics in its drop.
struct Sends(Mutex<Option<Sender<Frail>>>);

static SENDS: RawWakerVTable =
    RawWakerVTable::new(clone_sends, |_| unreachable!(), |_| unreachable!(), |_| ());

unsafe fn clone_sends(target: *const ()) -> RawWaker {
    // SAFETY: the test keeps the `Sends` alive.
    let target = unsafe { &*target.cast::<Sends>() };
    let sender = target.0.lock().unwrap().take();
    assert!(sender.unwrap().send(Frail).is_ok());
    let waker = ManuallyDrop::new(Waker::from(Arc::new(Frail)));
    RawWaker::new(waker.data(), waker.vtable())
}

/// The value comes while the receiver clones its waker, so the clone is not needed.
///
/// Fails if the value is dropped while the panic of the clone's drop unwinds.
#[test]
fn value_sent_by_a_clone_whose_drop_panics_arrives() {
    let (sender, mut receiver) = channel();
    let target = Sends(Mutex::new(Some(sender)));
    // SAFETY: the functions keep the contract of a waker, and `target` outlives this waker.
    let waker = unsafe { Waker::new((&raw const target).cast(), &SENDS) };
    let polled = receiver.poll(&Context::from_waker(&waker));
    let Poll::Ready(Ok(value)) = polled else {
        panic!("the value has come");
    };
    mem::forget(value);
}
