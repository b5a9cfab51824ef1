//! Panics of user code outside of steps, and senders that wait for room. One worker runs all
//! processes of a scheduler, so a panic that ends the worker fails the test.
use process_scheduler::Scheduler;
use std::{
    future::Future,
    panic,
    pin::Pin,
    sync::{Arc, Mutex, mpsc},
    task::{Context, Wake, Waker},
    time::Duration,
};

mod drops;
mod mailboxes;
mod panics;
mod timers;

/// A test that waits this long has failed.
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
