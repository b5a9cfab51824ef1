//! Senders that wait for room in a mailbox.
use crate::{LIMIT, PanicsInWake, Reports, assert_works, is_pending, one_worker, reports};
use process_scheduler::{Address, Mailbox, Scheduler, Sending, Spawn, from_fn};
use std::{
    sync::{Arc, Mutex, mpsc},
    task::Waker,
};

/// A process whose mailbox of one message is full. It is in a step until the test sends to `go` or
/// drops it.
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
    // The panic has not failed the process.
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

/// Fails if a mailbox without any room lets a sender wait forever.
#[test]
fn bounded_mailbox_of_zero_holds_one_message() {
    let scheduler = one_worker();
    let (sender, got) = mpsc::channel();
    let process = from_fn(move |n: u32, _| sender.send(n).unwrap());
    let spawn = Spawn::new().mailbox(Mailbox::Bounded(0));
    let address = scheduler.spawn_process(process, spawn).unwrap();
    let (waker, woken) = reports();
    for n in 0..10 {
        let mut sending = address.send(n);
        while is_pending(&mut sending, &waker) {
            woken.recv_timeout(LIMIT).unwrap();
        }
        assert_eq!(got.recv_timeout(LIMIT), Ok(n));
    }
}
