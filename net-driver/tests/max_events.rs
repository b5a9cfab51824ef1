//! Tests of `Driver::set_max_events`: how many events one wait in the kernel takes.
#![cfg(unix)]
use net_driver::{
    Driver, Park, WorkerPark,
    net::unix::pipe::{self, Receiver, Sender},
};
use std::{
    panic::catch_unwind,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Wake, Waker},
};

#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, SeqCst);
    }
}

/// Makes pipes with a byte each, for which `waker` waits.
fn readable(pipes: usize, waker: &Waker) -> Vec<(Sender, Receiver)> {
    let make = |_| {
        let (sender, receiver) = pipe::pipe().unwrap();
        assert!(receiver.try_read(&mut [0]).is_err());
        let mut cx = Context::from_waker(waker);
        assert!(receiver.poll_read_ready(&mut cx).is_pending());
        sender.try_write(b"a").unwrap();
        (sender, receiver)
    };
    (0..pipes).map(make).collect()
}

/// Returns how many of `pipes` receivers are woken after each call of `collect`.
fn wakes(max: Option<usize>, pipes: usize, collect: fn(&mut WorkerPark)) -> Vec<usize> {
    let driver = Driver::new(1);
    if let Some(max) = max {
        driver.set_max_events(max);
    }
    let mut park = driver.park(0);
    let (count, _entered) = (Arc::new(Count::default()), driver.enter(Some(0)));
    let _pipes = readable(pipes, &Waker::from(count.clone()));
    let (mut wakes, mut before) = (Vec::new(), 0);
    while before < pipes {
        collect(&mut park);
        park.deliver();
        let now = count.0.load(SeqCst);
        wakes.push(now - before);
        before = now;
    }
    // The first socket unparks the worker, whose park then returns at once.
    wakes.retain(|woken| *woken > 0);
    wakes
}

/// Fails if a wait takes more events than the driver's number.
#[test]
fn wait_takes_few_events_at_once() {
    // Each sender has an event, too, and so has the wake of the poller.
    let wakes = wakes(Some(2), 7, WorkerPark::park);
    assert!(wakes.iter().all(|woken| *woken <= 2), "{wakes:?}");
}

/// Fails if a wait takes at most 64 events, the default, whatever the driver's number is.
#[test]
fn wait_takes_many_events_at_once() {
    let all = |max| wakes(max, 200, WorkerPark::park).len() == 1;
    assert!(all(Some(1_000)));
    assert!(!all(None));
}

/// Fails if the look of a busy worker has no other limit than its own.
#[test]
fn look_takes_no_more_events_than_a_wait() {
    let wakes = wakes(Some(2), 7, |park| park.poll(usize::MAX));
    assert!(wakes.iter().all(|woken| *woken <= 2), "{wakes:?}");
}

#[test]
fn wait_for_no_events_is_refused() {
    let refused = catch_unwind(|| Driver::new(1).set_max_events(0)).unwrap_err();
    assert!(refused.downcast::<&str>().unwrap().contains("at least 1"));
}
