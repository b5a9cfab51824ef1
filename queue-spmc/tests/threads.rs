//! An owner and two thieves on real threads: every item turns up exactly once.
#![cfg(not(any(selvedge_loom, selvedge_shuttle)))]
use queue_spmc::{
    Overflow,
    ring::{Steal, StealLimit, Worker},
};
use std::{
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    thread,
};

struct Global(Mutex<Vec<u32>>);

impl Overflow<u32> for Global {
    fn push(&self, item: u32) {
        self.0.lock().unwrap().push(item);
    }

    fn push_batch(&self, batch: impl ExactSizeIterator<Item = u32>) {
        self.0.lock().unwrap().extend(batch);
    }
}

#[test]
fn every_item_turns_up_once_and_in_order_for_each_thread() {
    const ITEMS: u32 = 300_000;
    let mut worker = Worker::new(64);
    let (global, over) = (Global(Mutex::default()), AtomicBool::new(false));
    let mut all = thread::scope(|scope| {
        let thieves = [(); 2].map(|()| {
            let (stealer, over) = (worker.stealer(), &over);
            scope.spawn(move || {
                let (mut mine, mut got) = (Worker::new(64), Vec::new());
                loop {
                    match stealer.steal_into_and_pop(&mut mine, StealLimit::Half) {
                        Steal::Success { first, .. } => {
                            got.push(first);
                            got.extend(mine.drain());
                        }
                        Steal::Empty if over.load(SeqCst) => return got,
                        _ => thread::yield_now(),
                    }
                }
            })
        });
        let mut got = Vec::new();
        for item in 0..ITEMS {
            worker.push_or_overflow(item, &global);
            if item % 3 == 0 {
                got.extend(worker.pop());
            }
        }
        assert!(got.is_sorted(), "the owner saw items out of order");
        got.extend(worker.drain());
        over.store(true, SeqCst);
        for thief in thieves {
            let stolen = thief.join().unwrap();
            assert!(stolen.is_sorted(), "a thief saw items out of order");
            got.extend(stolen);
        }
        got
    });
    all.extend(global.0.into_inner().unwrap());
    all.sort_unstable();
    assert!(all.into_iter().eq(0..ITEMS));
}
