//! Senders that wait for room in a mailbox.
use process_scheduler::{Address, Mailbox, Scheduler, Sending, Spawn, from_fn};
use std::{
    future::Future,
    panic,
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Wake, Waker},
    time::Duration,
};

/// A test that waits so long has failed.
const LIMIT: Duration = Duration::from_secs(60);

/// Silences the panics that a test makes on purpose.
fn quiet() {
    panic::set_hook(Box::new(|_| {}));
}

fn one_worker() -> Scheduler {
    quiet();
    Scheduler::builder().workers(1).build()
}

/// Asserts that the worker still runs processes.
fn assert_works(scheduler: &Scheduler) {
    let (sender, steps) = mpsc::channel();
    let probe = scheduler.spawn_fn(move |n: u32, _| sender.send(n).unwrap());
    probe.unwrap().try_send(7).unwrap();
    assert_eq!(steps.recv_timeout(LIMIT), Ok(7), "the worker has ended");
}

/// A waker that panics.
struct PanicsInWake;

impl Wake for PanicsInWake {
    fn wake(self: Arc<Self>) {
        panic!("in a waker");
    }
}

/// A waker that reports its wake.
struct Reports(Mutex<mpsc::Sender<()>>);

impl Wake for Reports {
    fn wake(self: Arc<Self>) {
        self.0.lock().unwrap().send(()).unwrap();
    }
}

fn reports() -> (Waker, mpsc::Receiver<()>) {
    let (sender, woken) = mpsc::channel();
    (Arc::new(Reports(Mutex::new(sender))).into(), woken)
}

fn is_pending<F: Future + Unpin>(future: &mut F, waker: &Waker) -> bool {
    let mut cx = Context::from_waker(waker);
    Pin::new(future).poll(&mut cx).is_pending()
}

/// A process whose lane of one message is full, and which is in a step until `go` is sent to.
struct Full {
    scheduler: Scheduler,
    address: Address<u32>,
    go: mpsc::Sender<()>,
    got: mpsc::Receiver<u32>,
}

fn full() -> Full {
    let scheduler = one_worker();
    let (go, wait) = mpsc::channel();
    let (sender, got) = mpsc::channel();
    let wait = Mutex::new(wait);
    let process = from_fn(move |n: u32, _| {
        sender.send(n).unwrap();
        let _ = wait.lock().unwrap().recv();
    });
    let spawn = Spawn::new().mailbox(Mailbox::Bounded(1));
    let address = scheduler.spawn_process(process, spawn).unwrap();
    address.try_send(1).unwrap();
    assert_eq!(got.recv(), Ok(1));
    address.try_send(2).unwrap();
    Full {
        scheduler,
        address,
        go,
        got,
    }
}

fn wait_for_room<'a>(address: &'a Address<u32>, waker: &Waker) -> Sending<'a, u32> {
    let mut sending = address.send(3);
    assert!(is_pending(&mut sending, waker));
    sending
}

#[test]
fn panic_of_a_senders_waker_loses_no_other_wake() {
    let full = full();
    let (waker, woken) = reports();
    let _first = wait_for_room(&full.address, &Arc::new(PanicsInWake).into());
    let _second = wait_for_room(&full.address, &waker);
    full.go.send(()).unwrap();
    assert_eq!(woken.recv_timeout(LIMIT), Ok(()));
    // The process has not failed by it.
    assert_eq!(full.got.recv_timeout(LIMIT), Ok(2));
    drop(full.go);
}

#[test]
fn panic_of_a_senders_waker_at_the_end_keeps_the_worker() {
    let full = full();
    let (waker, woken) = reports();
    let _first = wait_for_room(&full.address, &Arc::new(PanicsInWake).into());
    let mut second = wait_for_room(&full.address, &waker);
    full.scheduler.kill(full.address.pid());
    drop(full.go);
    assert_eq!(woken.recv_timeout(LIMIT), Ok(()));
    assert!(!is_pending(&mut second, &waker));
    assert_works(&full.scheduler);
}

#[test]
fn waiting_send_keeps_one_waker_until_its_drop() {
    let full = full();
    let (sender, _woken) = mpsc::channel();
    let own = Arc::new(Reports(Mutex::new(sender)));
    let waker = Waker::from(own.clone());
    let outside = Arc::strong_count(&own);
    let mut sending = full.address.send(3);
    for _ in 0..100 {
        assert!(is_pending(&mut sending, &waker));
    }
    assert_eq!(Arc::strong_count(&own), outside + 1);
    let (other, _other_woken) = reports();
    assert!(is_pending(&mut sending, &other));
    assert_eq!(Arc::strong_count(&own), outside, "the last waker counts");
    assert!(is_pending(&mut sending, &waker));
    drop(sending);
    assert_eq!(Arc::strong_count(&own), outside);
    drop(full.go);
}
