//! An owner, three thieves, and one who takes whatever is there: more threads than the model checker takes.
use super::super::{
    Slot,
    models::{look_and_steal, put, run, task},
};
use alloc::vec::Vec;
use sync_shim::{model, sync::Arc, thread};

const TASKS: usize = 6;

/// Each task is run once, by one of them, and only one is left for the slot's end.
///
/// Bites: a `put` that displaces with a load and a store; steal with a load and a store; a `take` that leaves the task there.
#[test]
fn of_an_owner_and_four_others_one_gets_each_task() {
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
        // Each is a bit: so many, and all.
        ran.retain(|task| *task != 0);
        assert_eq!(ran.len(), TASKS, "{ran:?}");
        assert_eq!(ran.iter().sum::<usize>(), (1 << TASKS) - 1, "{ran:?}");
    });
}
