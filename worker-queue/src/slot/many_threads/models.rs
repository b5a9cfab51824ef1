//! Models of an owner, three thieves, and a thread that takes any item: more threads than the model
//! checker takes.
use super::super::{
    Slot,
    models::{look_and_steal, put, run, task},
};
use alloc::vec::Vec;
use sync_shim::{model, sync::Arc, thread};

const TASKS: usize = 6;

/// Each task is run once, by one of the threads. In the end, the owner takes the last task from the
/// slot, if there is one.
///
/// Fails if `put` displaces with a load and a store, if a thief steals with a load and a store, or
/// if `take` leaves the task in the slot.
#[test]
fn one_of_an_owner_and_four_threads_gets_each_task() {
    model(|| {
        let slot = Arc::new(Slot::new());
        let thieves = [(); 3].map(|()| {
            let slot = slot.clone();
            thread::spawn(move || [(); 3].map(|()| look_and_steal(&slot)).into())
        });
        let taker = {
            let slot = slot.clone();
            thread::spawn(move || [(); 3].map(|()| run(slot.take())).into())
        };
        let mut ran = Vec::new();
        for n in 0..TASKS {
            ran.push(run(put(&slot, task(n))));
            if n % 3 == 1 {
                ran.push(run(slot.take()));
            }
        }
        for other in thieves.into_iter().chain([taker]) {
            let others: Vec<_> = other.join().unwrap();
            ran.extend(others);
        }
        ran.push(run(slot.take()));
        assert!(slot.is_empty());
        // There is one bit per task: this checks the number of bits, and their union.
        ran.retain(|task| *task != 0);
        assert_eq!(ran.len(), TASKS, "{ran:?}");
        assert_eq!(ran.iter().sum::<usize>(), (1 << TASKS) - 1, "{ran:?}");
    });
}
