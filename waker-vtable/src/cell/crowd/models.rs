//! A task among many that wake it: more threads than the model checker takes.
use crate::{WakeRef, WakerCell, from_arc};
use std::{array, task::Waker};
use sync_shim::{
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst},
    model,
    sync::Arc,
    thread::{self, Thread},
};

const NOTIFIERS: usize = 4;
const CONDITIONS: usize = 2 * NOTIFIERS;

/// Wakes a thread.
struct Unpark {
    times: AtomicUsize,
    thread: Thread,
}

impl WakeRef for Unpark {
    fn wake(&self) {
        // Ordering: SeqCst, as what it says is no part of the cell.
        self.times.fetch_add(1, SeqCst);
        self.thread.unpark();
    }
}

struct Shared {
    cell: WakerCell,
    conditions: [AtomicBool; CONDITIONS],
}

impl Shared {
    fn meet(&self, condition: usize) {
        // Ordering: Relaxed, the cell's to order.
        self.conditions[condition].store(true, Relaxed);
    }

    fn are_met(&self) -> bool {
        // Ordering: Relaxed, as above.
        self.conditions.iter().all(|met| met.load(Relaxed))
    }
}

/// Four meet two conditions each, and wake, by the cell or by what they take from it. The task registers, looks, and sleeps until it is woken: a lost wake leaves it
/// asleep. Each of its wakers is dropped.
///
/// Bites: drop the waker of a registration that was woken.
#[test]
fn a_task_that_four_wake_sees_all_that_they_did() {
    model(|| {
        let shared = Arc::new(Shared {
            cell: WakerCell::new(),
            conditions: array::from_fn(|_| AtomicBool::new(false)),
        });
        let notifiers: [_; NOTIFIERS] = array::from_fn(|n| {
            let shared = shared.clone();
            thread::spawn(move || {
                shared.meet(2 * n);
                shared.cell.wake();
                shared.meet(2 * n + 1);
                if let Some(waker) = shared.cell.take() {
                    waker.wake_by_ref();
                }
            })
        });
        let unparks = [(); 2].map(|()| {
            Arc::new(Unpark {
                times: AtomicUsize::new(0),
                thread: thread::current(),
            })
        });
        let wakers: [Waker; 2] = array::from_fn(|n| from_arc(unparks[n].clone()));
        // Ordering: SeqCst, as in `wake`.
        let times = || unparks.iter().map(|unpark| unpark.times.load(SeqCst)).sum();
        for turn in 0.. {
            let heard: usize = times();
            shared.cell.register(&wakers[turn % 2]);
            if shared.are_met() {
                break;
            }
            while times() == heard {
                thread::park();
            }
            // Who holds the cell, if that is why it was woken, goes on.
            thread::yield_now();
        }
        for notifier in notifiers {
            notifier.join().unwrap();
        }
        drop((shared.cell.take(), wakers));
        assert!(unparks.iter().all(|unpark| Arc::strong_count(unpark) == 1));
    });
}
