use super::*;
use std::{
    panic,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    task::Wake,
};

/// Counts wakes.
#[derive(Default)]
struct Count(AtomicUsize);

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

fn counting() -> (Arc<Count>, Waker) {
    let count = Arc::new(Count::default());
    (count.clone(), Waker::from(count))
}

fn dispatch(slot: &Slot, generation: u32, ready: Ready) -> usize {
    let mut out = VecDeque::new();
    slot.dispatch(generation, ready, &mut out);
    out.len()
}

#[test]
fn event_wakes_the_waiters_of_its_direction_only() {
    let slot = Slot::new();
    let generation = slot.occupy(Ready::EMPTY);
    let (_, waker) = counting();
    let _ = slot.wait_in_cell(Direction::Read, &waker);
    let _ = slot.wait_in_cell(Direction::Write, &waker);
    let (mut reads, mut writes) = (None, None);
    let _ = slot.wait_in_list(Interest::READABLE, &mut reads, &waker);
    let _ = slot.wait_in_list(Interest::WRITABLE, &mut writes, &waker);
    assert_eq!(dispatch(&slot, generation, Ready::READABLE), 2);
    assert_eq!(dispatch(&slot, generation, Ready::READABLE), 0);
    assert_eq!(dispatch(&slot, generation, Ready::WRITABLE), 2);
    slot.stop_waiting(reads.unwrap());
    slot.stop_waiting(writes.unwrap());
}

#[test]
fn wait_on_a_ready_slot_stores_no_waker() {
    let slot = Slot::new();
    let generation = slot.occupy(Ready::READABLE);
    let mut key = None;
    let seen = slot.wait_in_list(Interest::READABLE, &mut key, Waker::noop());
    assert!(key.is_none() && seen.is_ready_for(Interest::READABLE));
    let seen = slot.wait_in_cell(Direction::Read, Waker::noop());
    assert!(seen.is_ready_for(Interest::READABLE));
    assert_eq!(dispatch(&slot, generation, Ready::READABLE), 0);
}

#[test]
fn stale_event_changes_nothing() {
    let slot = Slot::new();
    let old = slot.occupy(Ready::EMPTY);
    drop(slot.release());
    let new = slot.occupy(Ready::EMPTY);
    let _ = slot.wait_in_cell(Direction::Read, Waker::noop());
    assert_eq!(dispatch(&slot, old, Ready::READABLE), 0);
    assert_eq!(slot.load().ready(), Ready::EMPTY);
    assert_eq!(dispatch(&slot, new, Ready::READABLE), 1);
}

#[test]
fn removed_entry_is_used_again_and_not_woken() {
    let slot = Slot::new();
    let generation = slot.occupy(Ready::EMPTY);
    let mut keys = [None, None, None];
    for key in &mut keys {
        let _ = slot.wait_in_list(Interest::READABLE, key, Waker::noop());
    }
    slot.stop_waiting(keys[1].take().unwrap());
    slot.stop_waiting(keys[0].take().unwrap());
    assert_eq!(dispatch(&slot, generation, Ready::READABLE), 1);
    slot.clear(slot.load(), Interest::READABLE);
    for key in &mut keys[..2] {
        let _ = slot.wait_in_list(Interest::READABLE, key, Waker::noop());
    }
    assert_eq!(slot.waiters.lock().shared.iter().next_back().unwrap().0, 2);
    assert_eq!(dispatch(&slot, generation, Ready::READABLE), 2);
    keys.into_iter()
        .for_each(|key| slot.stop_waiting(key.unwrap()));
}

/// Fails if each later event visits the entries of waiters that have left.
#[test]
fn list_of_waiters_is_empty_after_all_have_left() {
    let slot = Slot::new();
    let generation = slot.occupy(Ready::EMPTY);
    for notified in [false, true] {
        let mut keys: Vec<_> = (0..1000).map(|_| None).collect();
        for key in &mut keys {
            let _ = slot.wait_in_list(Interest::READABLE, key, Waker::noop());
        }
        assert_eq!(slot.waiters.lock().shared.len(), 1000);
        if notified {
            assert_eq!(dispatch(&slot, generation, Ready::READABLE), 1000);
        }
        keys.into_iter()
            .for_each(|key| slot.stop_waiting(key.unwrap()));
        let waiters = slot.waiters.lock();
        assert!(waiters.shared.is_empty() && waiters.shared.capacity() < 1000);
    }
}

#[test]
fn shutdown_wakes_all_and_ends_later_waits() {
    let slot = Slot::new();
    slot.occupy(Ready::EMPTY);
    let mut key = None;
    let _ = slot.wait_in_cell(Direction::Write, Waker::noop());
    let _ = slot.wait_in_list(Interest::PRIORITY, &mut key, Waker::noop());
    let mut out = VecDeque::new();
    slot.shut_down(&mut out);
    assert_eq!(out.len(), 2);
    assert!(
        slot.wait_in_cell(Direction::Read, Waker::noop())
            .is_shutdown()
    );
    slot.stop_waiting(key.unwrap());
    drop(slot.release());
    out.clear();
    slot.shut_down(&mut out);
    slot.occupy(Ready::EMPTY);
    assert!(!slot.load().is_shutdown(), "a free slot does not shut down");
}

/// A waker whose drop waits in the slot again.
struct Reenter(Arc<Slot>);

impl Wake for Reenter {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Reenter {
    fn drop(&mut self) {
        let _ = self.0.wait_in_cell(Direction::Read, Waker::noop());
    }
}

#[test]
fn waker_drop_that_uses_its_slot_finds_no_lock_held() {
    let slot = Arc::new(Slot::new());
    slot.occupy(Ready::EMPTY);
    let reenter = || Waker::from(Arc::new(Reenter(slot.clone())));
    let _ = slot.wait_in_cell(Direction::Read, &reenter());
    let _ = slot.wait_in_cell(Direction::Read, &reenter());
    let mut key = None;
    let _ = slot.wait_in_list(Interest::READABLE, &mut key, &reenter());
    let _ = slot.wait_in_list(Interest::READABLE, &mut key, &reenter());
    slot.stop_waiting(key.unwrap());
    let _ = slot.wait_in_cell(Direction::Write, &reenter());
    drop(slot.release());
    // The drop of the last `Reenter` has stored another waker in the slot, which is free by then.
    assert!(slot.waiters.lock().reader.is_some());
}

#[test]
fn panicking_clone_of_a_waker_leaves_the_slot_usable() {
    use std::task::{RawWaker, RawWakerVTable};
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(|_| panic!("a clone"), |_| (), |_| (), |_| ());
    // SAFETY: the vtable ignores its pointer.
    let waker = unsafe { Waker::from_raw(RawWaker::new(std::ptr::null(), &VTABLE)) };
    let slot = Slot::new();
    let generation = slot.occupy(Ready::EMPTY);
    let caught = panic::catch_unwind(panic::AssertUnwindSafe(|| {
        slot.wait_in_cell(Direction::Read, &waker)
    }));
    caught.unwrap_err();
    let _ = slot.wait_in_cell(Direction::Read, Waker::noop());
    assert_eq!(dispatch(&slot, generation, Ready::READABLE), 1);
}
