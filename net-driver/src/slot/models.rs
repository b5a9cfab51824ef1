//! Models of waiters against events, releases and the shutdown.
use super::*;
use std::task::Wake;
use sync_shim::{
    Model,
    atomic::{AtomicBool, Ordering::SeqCst},
    model, model_must_fail,
    sync::Arc,
    thread,
};

/// A waker whose wakes a model sees.
#[derive(Clone)]
struct Flag(Arc<AtomicBool>);

impl Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, SeqCst);
    }
}

impl Flag {
    fn new() -> Self {
        Self(Arc::new(AtomicBool::new(false)))
    }

    fn waker(&self) -> Waker {
        Waker::from(std::sync::Arc::new(self.clone()))
    }

    fn is_woken(&self) -> bool {
        self.0.load(SeqCst)
    }
}

fn dispatch(slot: &Slot, generation: u32, ready: Ready) {
    let mut out = VecDeque::new();
    slot.dispatch(generation, ready, &mut out);
    out.into_iter().for_each(Waker::wake);
}

/// Fails if a waiter does not load the readiness after it stored its waker.
#[test]
fn event_racing_a_wait_wakes_it_or_is_seen() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let generation = slot.occupy(Ready::EMPTY);
        let poller = {
            let slot = slot.clone();
            thread::spawn(move || dispatch(&slot, generation, Ready::READABLE))
        };
        let flag = Flag::new();
        let seen = slot.wait_in_cell(Direction::Read, &flag.waker());
        poller.join().unwrap();
        assert!(seen.is_ready_for(Interest::READABLE) || flag.is_woken());
    });
}

/// The same with the load before the store of the waker.
#[test]
fn wait_that_loads_first_forgets_its_waiter() {
    model_must_fail("nobody woke", || {
        let slot = Arc::new(Slot::new());
        let generation = slot.occupy(Ready::EMPTY);
        let poller = {
            let slot = slot.clone();
            thread::spawn(move || dispatch(&slot, generation, Ready::READABLE))
        };
        let flag = Flag::new();
        let seen = slot.load();
        slot.waiters.lock().reader = Some(flag.waker());
        poller.join().unwrap();
        let found = seen.is_ready_for(Interest::READABLE);
        assert!(found || flag.is_woken(), "nobody woke the waiter");
    });
}

/// Two tasks wait through a shared reference. The second one gives up while the event comes. The
/// first one is woken.
#[test]
fn cancelled_waiter_takes_no_wake_of_another() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let generation = slot.occupy(Ready::EMPTY);
        let (flag, mut key) = (Flag::new(), None);
        let seen = slot.wait_in_list(Interest::READABLE, &mut key, &flag.waker());
        assert!(!seen.ends_wait(Interest::READABLE));
        let poller = {
            let slot = slot.clone();
            thread::spawn(move || dispatch(&slot, generation, Ready::READABLE))
        };
        let canceller = {
            let slot = slot.clone();
            thread::spawn(move || {
                let mut key = None;
                let _ = slot.wait_in_list(Interest::READABLE, &mut key, Waker::noop());
                if let Some(key) = key {
                    slot.stop_waiting(key);
                }
            })
        };
        poller.join().unwrap();
        canceller.join().unwrap();
        assert!(flag.is_woken());
        slot.stop_waiting(key.unwrap());
    });
}

/// A reader and a writer wait while an event for both comes.
#[test]
fn reader_and_writer_racing_an_event_are_both_woken() {
    Model::new().bound(3).check(|| {
        let slot = Arc::new(Slot::new());
        let generation = slot.occupy(Ready::EMPTY);
        let poller = {
            let slot = slot.clone();
            let both = Ready::READABLE | Ready::WRITABLE;
            thread::spawn(move || dispatch(&slot, generation, both))
        };
        let writer = {
            let slot = slot.clone();
            thread::spawn(move || {
                let flag = Flag::new();
                let seen = slot.wait_in_cell(Direction::Write, &flag.waker());
                (seen, flag)
            })
        };
        let flag = Flag::new();
        let seen = slot.wait_in_cell(Direction::Read, &flag.waker());
        let (write_seen, write_flag) = writer.join().unwrap();
        poller.join().unwrap();
        assert!(seen.is_ready_for(Interest::READABLE) || flag.is_woken());
        assert!(write_seen.is_ready_for(Interest::WRITABLE) || write_flag.is_woken());
    });
}

/// The slot is released and used again while a stale event comes.
#[test]
fn stale_event_racing_a_reuse_leaves_the_new_source() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let old = slot.occupy(Ready::EMPTY);
        let poller = {
            let slot = slot.clone();
            thread::spawn(move || dispatch(&slot, old, Ready::READABLE | Ready::READ_CLOSED))
        };
        drop(slot.release());
        slot.occupy(Ready::EMPTY);
        let flag = Flag::new();
        let _ = slot.wait_in_cell(Direction::Read, &flag.waker());
        poller.join().unwrap();
        assert_eq!(slot.load().ready(), Ready::EMPTY);
        assert!(!flag.is_woken());
    });
}

/// Fails if `shut_down` sets the bit outside of the lock after it took the wakers.
#[test]
fn shutdown_racing_a_wait_ends_it() {
    model(|| {
        let slot = Arc::new(Slot::new());
        slot.occupy(Ready::EMPTY);
        let closer = {
            let slot = slot.clone();
            thread::spawn(move || {
                let mut out = VecDeque::new();
                slot.shut_down(&mut out);
                out.into_iter().for_each(Waker::wake);
            })
        };
        let (flag, mut key) = (Flag::new(), None);
        let seen = slot.wait_in_list(Interest::READABLE, &mut key, &flag.waker());
        closer.join().unwrap();
        assert!(seen.is_shutdown() || flag.is_woken());
        if let Some(key) = key {
            slot.stop_waiting(key);
        }
    });
}
