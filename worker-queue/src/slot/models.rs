//! Models of an owner and thieves. Each task must be taken once, and whole: its taker must see all
//! that the owner wrote to it. To check this, each run of a task writes to the `UnsafeCell` in the
//! task.
use super::*;
use queue_global::Boxed;
use sync_shim::{Model, cell::UnsafeCell, model, sync::Arc, thread};

pub(super) type Node = Boxed<UnsafeCell<usize>>;

pub(super) fn task(n: usize) -> Box<Node> {
    let node = Box::new(Boxed::new(UnsafeCell::new(0)));
    // SAFETY: the task is not shared yet. (The model checker ignores the value that a cell is made
    // with, so this line writes the value.)
    node.value.with_mut(|value| unsafe { *value = n });
    node
}

/// Runs a task, and returns its number as a bit.
pub(super) fn run(task: Option<Box<Node>>) -> usize {
    task.map_or(0, |task| {
        task.value.with_mut(|n| {
            // SAFETY: the holder of a task has it alone; the model checks that.
            let n = unsafe { &mut *n };
            *n += 1;
            1 << (*n - 1)
        })
    })
}

/// Puts a task into the slot. Only the model's first thread, which owns each slot, calls this.
pub(super) fn put(slot: &Slot<Node>, task: Box<Node>) -> Option<Box<Node>> {
    // SAFETY: only that thread calls this.
    unsafe { slot.put(task) }
}

pub(super) fn look_and_steal(slot: &Slot<Node>) -> usize {
    run(slot.look().and_then(|seen| slot.steal(seen)))
}

/// Fails if the slot is filled with Relaxed, or if a thief empties it with a store.
#[test]
fn a_thief_gets_a_task_whole_or_the_owner_does() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let thief = {
            let slot = slot.clone();
            thread::spawn(move || look_and_steal(&slot))
        };
        let displaced = run(put(&slot, task(0)));
        let taken = run(slot.take());
        let ran = [displaced, taken, thief.join().unwrap()];
        assert_eq!(ran.iter().sum::<usize>(), 1, "{ran:?}");
    });
}

/// Fails if `take` swaps with Relaxed.
#[test]
fn thread_other_than_the_owner_takes_a_task_whole() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let other = {
            let slot = slot.clone();
            thread::spawn(move || run(slot.take()))
        };
        let displaced = run(put(&slot, task(0)));
        let ran = [displaced, run(slot.take()), other.join().unwrap()];
        assert_eq!(ran.iter().sum::<usize>(), 1, "{ran:?}");
    });
}

/// Fails if `put` displaces with a load and a store.
#[test]
fn a_task_is_displaced_or_stolen_not_both() {
    model(|| {
        let slot = Arc::new(Slot::new());
        put(&slot, task(0));
        let thief = {
            let slot = slot.clone();
            thread::spawn(move || look_and_steal(&slot))
        };
        let displaced = run(put(&slot, task(1)));
        let again = run(put(&slot, task(2)));
        let taken = run(slot.take());
        let ran = [displaced, again, taken, thief.join().unwrap()];
        assert_eq!(ran.iter().sum::<usize>(), 0b111, "{ran:?}");
    });
}

/// Fails if a thief steals with a load and a store.
#[test]
fn one_of_two_thieves_and_the_owner_gets_the_task() {
    Model::new().bound(3).check(|| {
        let slot = Arc::new(Slot::new());
        put(&slot, task(0));
        let thieves = [(); 2].map(|()| {
            let slot = slot.clone();
            thread::spawn(move || look_and_steal(&slot))
        });
        let taken = run(slot.take());
        let stolen: usize = thieves.map(|thief| thief.join().unwrap()).iter().sum();
        assert_eq!(taken + stolen, 1);
    });
}
